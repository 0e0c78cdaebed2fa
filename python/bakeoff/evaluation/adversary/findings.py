"""What a search found, with its files and the report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from bakeoff import files
from bakeoff.claims.verdict import Ours
from bakeoff.evaluation.adversary import document, space
from bakeoff.evaluation.adversary.goal import ITSELF
from bakeoff.evaluation.adversary.hunt import FRESH
from bakeoff.evaluation.assess import reason
from bakeoff.expressions import quantity
from bakeoff.measure import interval
from bakeoff.scenario.python_cc import split
from bakeoff.text.columns import Column
from bakeoff.text.markup import Block, written

if TYPE_CHECKING:
    from bakeoff.evaluation.adversary.document import Contest
    from bakeoff.evaluation.adversary.hunt import Confirmed, Hunt
    from bakeoff.evaluation.adversary.search import Best

UNCONFIRMED: Final = "interrupted"


@dataclass(frozen=True)
class Measured:
    """The measure in a scenario, over seeds."""

    cc: Ours
    baseline: Ours
    scores: tuple[float, ...]
    """For each seed the binary logarithm of how many times worse the control is."""

    @property
    def worse(self) -> bool:
        """Whether the control is worse than the baseline: the 95 % interval of the scores is above 0."""
        half = interval(self.scores)["ci95"]
        return half is not None and fmean(self.scores) - half > 0

    @property
    def factor(self) -> float:
        """How many times worse it is, as the search scores it."""
        return float(2 ** fmean(self.scores))


@dataclass(frozen=True)
class OnKernel:
    """The same scenario on the kernel engine."""

    measured: Measured | None
    why: str | None
    """Why there is no measurement."""


@dataclass(frozen=True)
class Finding:
    """A scenario in which the control is worse than the baseline."""

    path: Path
    """The scenario file."""
    other: str | None
    """The competitor; None without one."""
    unlike_rtt: bool
    """Whether it has an RTT of its own."""
    queue: str
    measured: Measured | None
    """None if a run with the control failed, or before the confirmation."""
    shrunk: bool
    """Whether nothing more can be taken from the scenario."""
    failure: str | None = None
    """Why a run with the control failed."""
    kernel: OnKernel | None = None

    @property
    def verdict(self) -> str:
        """`confirmed`, `not confirmed`, `fails`, or `interrupted` before the confirmation."""
        if self.failure is not None:
            return "fails"
        if self.measured is None:
            return UNCONFIRMED
        return "confirmed" if self.measured.worse else "not confirmed"


@dataclass(frozen=True)
class Worst:
    """The findings of a search, the worst first."""

    cc: str
    baseline: str
    against: tuple[str, ...]
    measure: str
    """As it was asked for."""
    expression: str
    engine: str
    findings: tuple[Finding, ...]
    runs: int
    seeds: int
    """Of the confirmation, from 11 on."""
    wall_s: float
    """The time of all runs [s]."""
    root: Path
    """The folder of the scenario files and the runs."""
    interrupted: bool
    versions: Mapping[str, str]

    def __repr__(self) -> str:
        """The report as text."""
        return text(self)


def name_of(contest: Contest, other: str | None, queue: str, *, unlike_rtt: bool = False) -> str:
    """The name of a finding's scenario and file."""
    beside = "alone" if other is None else "itself" if other == ITSELF else document.label(other)
    rtt = "unlike rtt" if unlike_rtt else ""
    words = f"{document.label(contest.cc)} {_plain(contest.goal.name)} {beside} {queue} {rtt}"
    return "-".join("".join(each if each.isalnum() else " " for each in words).split()).lower()


def _plain(name: str) -> str:
    return name.replace("low:", "").replace("high:", "")


def write(contest: Contest, best: Best, root: Path, confirmed: Confirmed | None, seeds: int) -> Finding:
    """Write the scenario file of a finding. FileError if that fails."""
    queue = str(best.point[space.QUEUE])
    name = name_of(contest, best.other, queue, unlike_rtt=best.unlike_rtt)
    path = root / f"{name}.yaml"
    measured = None
    failure = confirmed.failure if confirmed is not None else None
    if confirmed is not None and failure is None and confirmed.values:
        measured = measured_of(contest, confirmed.values, confirmed.scores)
    finding = Finding(
        path, best.other, best.unlike_rtt, queue, measured, best.shrunk, reason(failure) if failure else None
    )
    lines = document.text(contest, best.point, best.other, name).splitlines()
    lines[0] += f"  # {contest.goal.expression.text}{_told(contest, finding, seeds)}"
    files.write(path, ("\n".join(lines) + "\n").encode())
    return finding


def measured_of(contest: Contest, values: Sequence[tuple[float, float]], scores: Sequence[float]) -> Measured:
    """Pairs of values, as they are reported."""
    expression = contest.goal.expression
    ours, theirs = (
        Ours((tuple(pair[seat] for pair in values),), expression.unit, expression.limits) for seat in (0, 1)
    )
    return Measured(ours, theirs, tuple(scores))


def _told(contest: Contest, finding: Finding, seeds: int) -> str:
    if finding.measured is None:
        return f": {finding.verdict}"
    ours, theirs = (
        f"{_number(number)} with {document.label(cc)}"
        for number, cc in zip((finding.measured.cc, finding.measured.baseline), contest.seats, strict=True)
    )
    return f": {ours}, {theirs} (seeds {FRESH} to {FRESH + seeds - 1})"


def interrupted(hunt: Hunt, root: Path, seeds: int) -> list[Finding]:
    """Findings from what is known before the end: those that were confirmed, and the best of all others."""
    confirmed = [write(hunt.contest, each.best, root, each, seeds) for each in hunt.confirmed]
    left = next((each for each in hunt.pending if not hunt.is_known(each)), None)
    return confirmed if left is None else [*confirmed, write(hunt.contest, left, root, None, seeds)]


def command(finding: Finding, worst: Worst) -> str:
    """The command that repeats the runs of the confirmation, or the run that fails."""
    words = ["bakeoff", "run", str(finding.path)]
    if finding.measured is not None:
        words += ["--seed", str(FRESH), "--seeds", str(worst.seeds)]
    if split(worst.cc) or split(worst.baseline):
        words.append("--allow-code")
    return shlex.join(words)


def text(worst: Worst, *, width: int | None = None, colour: bool | None = None) -> str:
    """The report: a line for each finding, the worst scenario with its command, cost and versions."""
    blocks = []
    head = f"{worst.cc}: worst case of {worst.measure}"
    if worst.findings:
        several = worst.findings
        columns = [
            Column("beside", [_beside(each) for each in several], text=True),
            Column("queue", [each.queue for each in several], text=True),
            Column(worst.cc, [_number(each.measured.cc if each.measured else None) for each in several]),
            Column(worst.baseline, [_number(each.measured.baseline if each.measured else None) for each in several]),
            Column("verdict", [each.verdict for each in several], text=True),
            Column("kernel", [_kernel(each) for each in several], text=True, keep=1),
            Column("file", [each.path.name for each in several], text=True, keep=1),
        ]
        notes = [
            f"{worst.expression}, means with the 95 % interval over {worst.seeds} seeds that the search did not use."
        ]
        notes += sorted(
            {each.kernel.why for each in several if each.kernel is not None and each.kernel.why is not None}
        )
        notes += [f"not shortened, as the runs were spent: {each.path.name}" for each in several if not each.shrunk]
        notes += [f"{each.path.name}: {each.failure}" for each in several if each.failure is not None]
        blocks.append(Block(head, columns, notes))
        first = several[0]
        blocks.append(
            Block(
                str(first.path), [], [*files.read(first.path, 1 << 16).decode().splitlines(), "", command(first, worst)]
            )
        )
    else:
        ended = "interrupted before a finding" if worst.interrupted else "nothing found that is worse than the baseline"
        blocks.append(Block(head, [], [ended]))
    spent = f"{worst.runs} runs in {worst.wall_s:.0f} s, engine {worst.engine}"
    versions = ", ".join(f"{name} {value}" for name, value in worst.versions.items())
    blocks.append(Block("Cost and versions", [], [spent, versions]))
    return written("terminal", blocks, (), width=width, colour=colour)


def record(worst: Worst) -> dict[str, Any]:
    """The report as plain data, numbers in base units."""
    return {
        "cc": worst.cc,
        "baseline": worst.baseline,
        "against": list(worst.against),
        "measure": worst.measure,
        "expression": worst.expression,
        "engine": worst.engine,
        "findings": [
            {
                "beside": _beside(each),
                "queue": each.queue,
                "verdict": each.verdict,
                "shrunk": each.shrunk,
                "failure": each.failure,
                "measured": _record(each.measured),
                "kernel": _kernel_record(each.kernel),
                "file": str(each.path),
                "command": command(each, worst),
            }
            for each in worst.findings
        ],
        "runs": worst.runs,
        "seeds": worst.seeds,
        "wall_s": worst.wall_s,
        "interrupted": worst.interrupted,
        "versions": dict(worst.versions),
        "results": str(worst.root),
    }  # fmt: skip


def _beside(each: Finding) -> str:
    name = "itself" if each.other == ITSELF else each.other or "nobody"
    return f"{name}, unlike RTT" if each.unlike_rtt else name


def _kernel(each: Finding) -> str:
    if each.kernel is None or each.kernel.measured is None:
        return "not run" if each.kernel is not None else ""
    found = each.kernel.measured
    return f"{_number(found.cc)}, {_number(found.baseline)}"


def _number(ours: Ours | None) -> str:
    if ours is None:
        return ""
    if ours.ci95 is None or ours.interval is None:
        return quantity.formatted(ours.mean, ours.unit)
    return quantity.spread(ours.mean, ours.ci95, ours.interval, ours.unit)


def _record(measured: Measured | None) -> dict[str, Any] | None:
    if measured is None:
        return None
    return {
        "unit": measured.cc.unit,
        "cc": _finite(measured.cc),
        "baseline": _finite(measured.baseline),
        "factor": measured.factor,
        "worse": measured.worse,
    }


def _kernel_record(kernel: OnKernel | None) -> dict[str, Any] | None:
    return None if kernel is None else {"measured": _record(kernel.measured), "why": kernel.why}


def _finite(ours: Ours) -> list[float | str]:
    """Infinity is no number in JSON."""
    from math import isfinite

    return [value if isfinite(value) else "infinite" for value in ours.values[0]]
