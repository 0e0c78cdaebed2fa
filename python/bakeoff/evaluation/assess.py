"""Verdicts on cases, and what is worst."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff.claims import verdict
from bakeoff.claims.evaluate import evaluate
from bakeoff.claims.required_runs import calls_by_folder
from bakeoff.claims.verdict import Ours, Verdict
from bakeoff.errors import MeasureError
from bakeoff.evaluation.battery import BASELINE
from bakeoff.results import Result

if TYPE_CHECKING:
    from bakeoff.claims.expression import Expression, Values
    from bakeoff.evaluation.battery import Case
    from bakeoff.evaluation.seats import Asked, Seats
    from bakeoff.evaluation.versions import Changed
    from bakeoff.text.markup import Format

NOT_APPLICABLE: Final = "does not apply"
VOID: Final = "void"
JUDGEMENT: Final = "needs judgement"
WORDS: Final = (
    verdict.HOLDS, verdict.NOT, verdict.UNDECIDED, VOID, NOT_APPLICABLE, JUDGEMENT, verdict.CANNOT, verdict.FAILED,
)  # fmt: skip
MOST_FINDINGS: Final = 5
_FRAME: Final = re.compile(r'File "(?P<path>[^"]+)", line (?P<line>\d+)')
_RESULT: Final = re.compile(r"(?P<hook>[A-Za-z_]\w*\.\w+) failed\n(ValueError: )?(?P<told>.+)", re.DOTALL)
"""A hook that returned what is impossible."""
_LONGEST: Final = 200


@dataclass(frozen=True)
class Assessed:
    """A case with its verdict."""

    case: Case
    other: str | None
    """The competitor, if the case has one."""
    verdict: Verdict
    """One of `WORDS`, and why."""
    cc: Ours | None = None
    """What the case measures of the control or queue; None if it was not measured."""
    baseline: Ours | None = None
    crashed: bool = False
    baseline_crashed: bool = False
    path: Path | None = None
    """The folder of its first run."""

    @property
    def distance(self) -> float:
        """How far it is from the baseline: 0 for the same number, 1 if one of the two is 0 or infinite."""
        if self.cc is None or self.baseline is None:
            return 0.0
        ours, theirs = self.cc.mean, self.baseline.mean
        if not (isfinite(ours) and isfinite(theirs)):
            return 0.0 if ours == theirs else 1.0
        return abs(ours - theirs) / (abs(ours) + abs(theirs)) if ours != theirs else 0.0

    @property
    def is_better(self) -> bool:
        """Whether its number is better than that of the baseline."""
        if self.cc is None or self.baseline is None or self.case.test is None:
            return False
        ours, theirs = self.cc.mean, self.baseline.mean
        return {"higher": ours > theirs, "lower": ours < theirs, "neither": False}[self.case.test.better]


@dataclass(frozen=True)
class Outcomes:
    """How the runs ended, by their keys."""

    paths: Mapping[str, Path]
    """The folder of each run that ended well."""
    refused: Mapping[str, str]
    """Why the engine refused a run."""
    failed: Mapping[str, str]
    """Why a run failed."""
    left: Mapping[str, str]
    """Why a run did not begin."""


@dataclass(frozen=True)
class Evaluation:
    """What an evaluation found."""

    asked: Asked
    engine: str
    cases: list[Assessed]
    root: Path
    """The folder of the runs."""
    runs: int
    wall_s: float
    """The time of all runs [s]."""
    versions: Mapping[str, str]

    @property
    def counts(self) -> dict[str, int]:
        """Number of cases by verdict, in the order of `WORDS`, without those of 0."""
        found = Counter(each.verdict.word for each in self.cases)
        return {word: found[word] for word in WORDS if found[word]}

    @property
    def worst(self) -> list[Assessed]:
        """At most five cases that do not hold, each once with its worst competitor: crashes first, one for each reason,
        then those that are farthest from the baseline, those that are better than the baseline last."""
        broken = sorted(
            (each for each in self.cases if each.verdict.word == verdict.NOT),
            key=lambda each: (not each.crashed, each.distance if each.is_better else -each.distance),
        )
        first = {(each.crashed, each.verdict.why if each.crashed else each.case.name): each for each in broken[::-1]}
        return sorted(first.values(), key=broken.index)[:MOST_FINDINGS]

    @property
    def changes(self) -> list[Changed]:
        """What changed from the baseline in each case that was measured; empty unless the baseline was given."""
        from bakeoff.evaluation.versions import changes

        return changes(self.cases, self.asked.seeds) if self.asked.versions else []

    def text(self, form: Format = "terminal") -> str:
        """The report in a format, as `bakeoff evaluate --format` prints it."""
        from bakeoff.evaluation.as_document import written

        return written(self, form)

    def __repr__(self) -> str:
        return self.text()


def assess(cases: Sequence[Case], several: Sequence[Seats], outcomes: Outcomes, jobs: int) -> list[Assessed]:
    """The verdicts on the cases in their order."""
    paths = outcomes.paths
    wanted = [each.direction for each in several] + [each.applies for each in several if each.applies is not None]
    tasks = {path: dict.fromkeys(calls) for path, calls in calls_by_folder(wanted, paths).items()}
    for each in several:
        for run in (run for runs in each.runs.values() for run in runs):
            if run.key in paths:
                tasks.setdefault(paths[run.key], {}).update(dict.fromkeys(each.number_calls()))
    values = evaluate(tasks, jobs)
    found = []
    for case in cases:
        if case.test is None:
            found.append(Assessed(case, None, Verdict(JUDGEMENT, case.question)))
        decided = [_one(each, values, outcomes) for each in several if each.case is case]
        found += decided
        if case.test is not None and not decided:
            found.append(Assessed(case, None, Verdict(NOT_APPLICABLE)))
    return found


def _one(made: Seats, values: Mapping[Path, Values], outcomes: Outcomes) -> Assessed:
    paths, refused, failed = outcomes.paths, outcomes.refused, outcomes.failed
    undone = {**failed, **outcomes.left}
    assert made.case.test is not None
    lacks = made.lacks or _untraced(made, paths)
    if lacks is not None:
        return Assessed(made.case, made.other, Verdict(NOT_APPLICABLE, f"it traces no '{lacks}'"))
    made, void = _not_void(made, paths, values)
    if void is not None:
        return Assessed(made.case, made.other, void)
    test = made.case.test
    assert test is not None
    crash = next((failed[run.key] for run in made.runs[made.case.of] if run.key in failed), None)
    broken = any(run.key in failed for run in made.runs[BASELINE])
    number = test.number
    ours, theirs = (_measured(number, made, seat, paths, values) for seat in (made.case.of, BASELINE))
    if made.case.variables:
        theirs = None
    path = next((paths[run.key] for run in made.runs[made.case.of] if run.key in paths), None)
    if crash is not None:
        why = Verdict(verdict.NOT, reason(crash))
        return Assessed(made.case, made.other, why, ours, theirs, True, broken, path)
    if made.applies is not None:
        condition = verdict.decide(made.applies, paths, values, refused, undone).direction
        if condition is not None and condition.word == verdict.NOT:
            return Assessed(made.case, made.other, Verdict(NOT_APPLICABLE), path=path)
    decided = verdict.decide(made.direction, paths, values, refused, undone).direction
    assert decided is not None
    return Assessed(made.case, made.other, decided, ours, theirs, False, broken, path)


def _untraced(made: Seats, paths: Mapping[str, Path]) -> str | None:
    """A variable that the case is about and that a run's trace lacks; None if there is none, or no run."""
    wanted = made.case.variables
    path = next((paths[run.key] for run in made.runs[made.case.of] if run.key in paths), None)
    if not wanted or path is None:
        return None
    traced = {metric for _, _, metric in Result.read(path).trace_parts([f"cc.{name}" for name in wanted])}
    return next((name for name in wanted if f"cc.{name}" not in traced), None)


def _not_void(made: Seats, paths: Mapping[str, Path], values: Mapping[Path, Values]) -> tuple[Seats, Verdict | None]:
    """The case without void seeds; a verdict if no other is left. One that failed or was not measured is not void."""
    assert made.case.test is not None
    unless = made.case.test.void_unless
    if unless is None:
        return made, None
    keep = [
        n
        for n, run in enumerate(made.runs[made.case.of])
        if run.key not in paths or _counts(unless, values[paths[run.key]])
    ]
    if not keep:
        return made, Verdict(VOID, f"in no run: {unless.text}")
    return replace(made, runs={seat: [runs[n] for n in keep] for seat, runs in made.runs.items()}), None


def _counts(unless: Expression, values: Values) -> bool:
    try:
        return unless.truth(values)
    except MeasureError:
        return True


def _measured(
    number: Expression, made: Seats, seat: str, paths: Mapping[str, Path], values: Mapping[Path, Values]
) -> Ours | None:
    """The number of a case in one seat, for the seeds that ended well; None if there is none."""
    found = []
    for run in made.runs[seat]:
        if run.key in paths:
            try:
                found.append(number.number(values[paths[run.key]]))
            except MeasureError:
                return None
    return Ours((tuple(found),), number.unit, number.limits) if found else None


def reason(error: str) -> str:
    """Why a run failed, in one line of at most 200 characters: of an exception in a hook its file, its line and its
    words; of an impossible result its hook."""
    frames = list(_FRAME.finditer(error))
    if frames:
        last = frames[-1]
        # The line of the source is indented, the exception is not.
        told = re.split(r"\n(?=\S)", error[last.end() :], maxsplit=1)[-1]
        found = f"{Path(last['path']).name}:{last['line']}: {told}"
    elif result := _RESULT.search(error):
        found = f"{result['hook']}: {result['told']}"
    else:
        found = error
    line = " ".join(found.split()) or "failed"
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
