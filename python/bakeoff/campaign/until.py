"""Repetitions until a number is known well enough: each run with new seeds until its interval is narrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bakeoff.errors import CampaignError
from bakeoff.measure import interval

if TYPE_CHECKING:
    from bakeoff.campaign.worker import Done
    from bakeoff.measure import Interval
    from bakeoff.scenario import Run

LEAST: Final = 3
"""Seeds: of two, Student's t makes an interval that says nothing."""
METHOD: Final = "mean over seeds with its 95 % interval by Student's t"


@dataclass(frozen=True)
class Goal:
    """How narrow the interval of which number has to be."""

    number: str
    """Of `Done.numbers`."""
    half_width: float
    """In the number's unit, or as a share of the mean's size."""
    relative: bool

    def reached(self, found: Interval) -> bool:
        """Whether half of the 95 % interval is at most so wide."""
        if found["ci95"] is None:
            return False
        return found["ci95"] <= self.half_width * (abs(found["mean"]) if self.relative else 1.0)


@dataclass
class Repeated:
    """One run of the matrix, with the seeds that were done."""

    name: str
    """suite/scenario/run."""
    runs: list[Run]
    """By seed, as many as there may be."""
    begun: int = 0
    ended: int = 0
    values: list[float] = field(default_factory=list)
    lost: int = 0
    """Seeds that failed or gave no number."""
    reached: bool = False

    @property
    def found(self) -> Interval | None:
        """The interval over the seeds that gave a number; None if none did."""
        return interval(self.values) if self.values else None


class Repetitions:
    """The seeds of several runs, as `campaign.run` asks for them: one more for each whose interval is too wide."""

    def __init__(self, runs: Sequence[Run], goal: Goal, least: int = LEAST) -> None:
        """`runs` with all the seeds that there may be, of which `least` are done in any case.

        BakeoffError for fewer than three.
        """
        self._goal = goal
        self._least = max(least, LEAST)
        named: dict[tuple[str, str, str], Repeated] = {}
        for run in sorted(runs, key=lambda run: run.seed):
            name = run.suite, run.scenario, run.run
            named.setdefault(name, Repeated("/".join(name), [])).runs.append(run)
        # In the order in which they were given.
        self.all = [named[name] for name in dict.fromkeys((run.suite, run.scenario, run.run) for run in runs)]
        self._of = {run.key: each for each in self.all for run in each.runs}
        for each in self.all:
            if len(each.runs) < LEAST:
                raise CampaignError(f"--max-seeds: {len(each.runs)}; expected {LEAST} or more")

    def first(self) -> list[Run]:
        """The runs to begin with."""
        return [run for each in self.all for run in self._next(each, self._least)]

    def more(self, done: Done, _waiting: int) -> list[Run]:
        """One more seed of the run, if all of it have ended and its interval is too wide."""
        each = self._of[done.key]
        each.ended += 1
        value = done.numbers.get(self._goal.number)
        if value is None:
            each.lost += 1
        else:
            each.values.append(value)
        if each.ended < each.begun:
            return []
        found = each.found
        each.reached = found is not None and found["n"] >= LEAST and self._goal.reached(found)
        # What gives no number with any seed will give none with the next.
        return [] if each.reached or found is None else self._next(each, 1)

    def _next(self, each: Repeated, count: int) -> list[Run]:
        chosen = each.runs[each.begun : each.begun + count]
        each.begun += len(chosen)
        return chosen
