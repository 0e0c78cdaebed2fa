"""Verdicts: what runs say of a statement, over seeds. They are computed here and nowhere written in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import inf, isfinite
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Final

from bakeoff.claims import over_starts
from bakeoff.claims.expression import Call, Expression, Values
from bakeoff.errors import MeasureError
from bakeoff.measure import ends, interval

if TYPE_CHECKING:
    from bakeoff.claims.claim import Cause, Claim, Statement
    from bakeoff.claims.over_starts import Judged
    from bakeoff.claims.required_runs import RequiredRuns

HOLDS: Final = "holds"
NOT: Final = "does not hold"
UNDECIDED: Final = "undecided"
CANNOT: Final = "cannot be run here"
FAILED: Final = "cannot be decided"
WORDS: Final = (HOLDS, NOT, UNDECIDED, CANNOT, FAILED)
ARITHMETIC: Final = "holds by arithmetic"
"""What tables count a claim under that follows from numbers alone."""


@dataclass(frozen=True)
class Verdict:
    """One of `WORDS`, and the reason where there is one."""

    word: str
    why: str | None = None

    def __str__(self) -> str:
        return f"{self.word}: {self.why}" if self.why else self.word


@dataclass(frozen=True)
class Ours:
    """What was measured, in the base unit."""

    values: tuple[tuple[float, ...], ...]
    """For each run one per seed; a single run if the statement is about runs together."""
    unit: str | None
    limits: tuple[float, float] = (-inf, inf)
    """The least and the greatest value that is possible."""

    @property
    def n(self) -> int:
        """Number of values."""
        return sum(map(len, self.values))

    @property
    def mean(self) -> float:
        """Of one run the mean over seeds; of several runs the median of these."""
        return median([fmean(seeds) for seeds in self.values])

    @property
    def ci95(self) -> float | None:
        """Half the width of the mean's 95 % interval over seeds; None of several runs, or without one."""
        [first, *others] = self.values
        return None if others or not all(map(isfinite, first)) else interval(first)["ci95"]

    @property
    def interval(self) -> tuple[float, float] | None:
        """Both ends of this interval, cut to what is possible; None without one."""
        half = self.ci95
        return None if half is None else ends({"n": self.n, "mean": self.mean, "ci95": half}, self.limits)

    @property
    def range(self) -> tuple[float, float]:
        """The smallest and the largest value."""
        several = [value for seeds in self.values for value in seeds]
        return min(several), max(several)


@dataclass(frozen=True)
class Outcome:
    """How a statement was decided."""

    direction: Verdict | None
    size: Verdict | None
    ours: Ours | None
    """What `size.of` measures; None without a size, or if it could not be taken."""
    sides: tuple[tuple[str, Ours], ...]
    """What the direction compares."""
    runs: int
    seeds: int

    @property
    def holds(self) -> bool:
        """Whether all its predicates hold."""
        return all(part.word == HOLDS for part in (self.direction, self.size) if part is not None)


@dataclass(frozen=True)
class Decided:
    """A claim on one engine."""

    claim: Claim
    outcome: Outcome
    cause: Outcome | None
    """What came out of the test of the cause, if there is one."""

    @property
    def word(self) -> str:
        """One verdict for the claim: the worse of direction and size."""
        return worse([part.word for part in (self.outcome.direction, self.outcome.size) if part is not None])

    @property
    def counted(self) -> str:
        """The word that tables count the claim under: one of `WORDS`, or `ARITHMETIC`."""
        return counted(self.word, self.claim)


def word_of(truth: bool | None) -> str:
    """The verdict of a predicate; None is undecided."""
    return UNDECIDED if truth is None else HOLDS if truth else NOT


def counted(word: str, claim: Claim) -> str:
    """The word that tables count a claim with this verdict under."""
    return ARITHMETIC if claim.arithmetic and word == HOLDS else word


_SEVERITY: Final = (HOLDS, UNDECIDED, NOT, FAILED, CANNOT)


def worse(outcomes: Iterable[str]) -> str:
    """The one of `WORDS` that a claim with several predicates is counted under; at least one is expected."""
    return max(outcomes, key=_SEVERITY.index)


SHOWN: Final = "shown"
WOULD_EXPLAIN: Final = "would explain"


def cause_state(cause: Cause, outcome: Outcome | None) -> str:
    """`shown`, `would explain` (no source says that the document had it), `not shown` or `open`, and why not."""
    if outcome is None:
        return "open"
    if outcome.holds:
        return SHOWN if cause.source else WOULD_EXPLAIN
    reasons = [part for part in (outcome.direction, outcome.size) if part is not None and part.word != HOLDS]
    text = f"not shown ({'; '.join(map(str, reasons))})"
    return f"open, {text}" if cause.kind == "open" else text


def cannot(claim: Claim, why: str) -> Decided:
    """A claim that nothing here can run."""
    verdict = Verdict(CANNOT, why)
    return Decided(claim, Outcome(verdict, verdict, None, (), 0, 0), None)


def of_claims(claims: Iterable[Claim], outcomes: Mapping[Statement, Outcome]) -> list[Decided]:
    """The claims with what came out for their statements and those of their causes."""
    decided = []
    for claim in claims:
        if claim.statement is None:
            decided.append(cannot(claim, f"it needs {claim.needs}"))
            continue
        cause = claim.cause.statement if claim.cause else None
        decided.append(Decided(claim, outcomes[claim.statement], outcomes[cause] if cause else None))
    return decided


def decide(
    found: RequiredRuns,
    paths: Mapping[str, Path],
    values: Mapping[Path, Values],
    refused: Mapping[str, str],
    failed: Mapping[str, str],
) -> Outcome:
    """The verdicts on a statement.

    `paths` has the results folder of each run by its key, `values` what was measured there, `refused` and `failed` the
    reasons for runs without one. A predicate about each of several runs has a verdict for each; it holds if it does
    for `share` of them.
    """
    statement = found.statement
    every = [run for runs in found.runs.values() for run in runs]
    seeds = min((len(runs) for runs in found.runs.values()), default=0)
    verdict = None
    for reasons, word in ((refused, CANNOT), (failed, FAILED)):
        stopped = next((run.key for run in every if run.key in reasons), None)
        if stopped is not None and verdict is None:
            verdict = Verdict(word, reasons[stopped])
    if verdict is not None:
        direction, size = (verdict if part else None for part in (statement.direction, statement.size))
        return Outcome(direction, size, None, (), len(found.runs), seeds)
    table: list[list[Values]] = [
        [_gathered(found, names, seed, paths, values) for seed in range(seeds)] for names in _together(found)
    ]
    if not found.runs:
        table = [[{}]]
    size = ours = None
    if statement.size is not None:
        size = _verdict(table, statement.share, partial(over_starts.size, statement.size, holds=statement.holds))
        ours = _ours(table, statement.size.of)
    sides = []
    direction = None
    if statement.direction is not None:
        judge = partial(over_starts.direction, statement.direction, holds=statement.holds)
        direction = _verdict(table, statement.share, judge)
    for text, node in statement.direction.sides if statement.direction else ():
        side = _ours(table, Expression(text, node))
        sides += [(text, side)] if side else []
    return Outcome(
        direction=direction,
        size=size,
        ours=ours,
        sides=tuple(sides),
        runs=len(found.runs),
        seeds=seeds,
    )


def _together(found: RequiredRuns) -> list[list[str]]:
    """The runs that one value of a predicate is made of."""
    return [[name] for name in found.runs] if found.each else [list(found.runs)]


def _gathered(
    found: RequiredRuns, names: Sequence[str], seed: int, paths: Mapping[str, Path], values: Mapping[Path, Values]
) -> Values:
    """What was measured in the runs with one seed, under the calls as the expressions have them."""
    gathered: dict[Call, float | MeasureError] = {}
    for name in names:
        own = values[paths[found.runs[name][seed].key]]
        for call in found.calls(name):
            gathered[replace(call, of=None if found.each else name)] = own[call]
    return gathered


def _verdict(table: Sequence[Sequence[Values]], share: float, judge: Callable[[Sequence[Values]], Judged]) -> Verdict:
    """A word for each run over its seeds, and whether enough of them hold."""
    try:
        judged = [judge(row) for row in table]
    except MeasureError as error:
        return Verdict(FAILED, str(error))
    right, undecided = (sum(each.truth is word for each in judged) for word in (True, None))
    enough = share * len(judged) - 1e-9
    word = HOLDS if right >= enough else UNDECIDED if right + undecided >= enough else NOT
    if len(judged) == 1:
        return Verdict(word, judged[0].why)
    told = f"holds in {right} of {len(judged)} runs" + (f", undecided in {undecided}" if undecided else "")
    return Verdict(word, told if right < len(judged) else None)


def _ours(table: Sequence[Sequence[Values]], expression: Expression) -> Ours | None:
    try:
        values = tuple(tuple(expression.number(values) for values in row) for row in table)
    except MeasureError:
        return None
    return Ours(values, expression.unit, expression.limits)
