"""A sweep as a campaign does it: which points come next, and how many the budget has room for."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from bakeoff.errors import CampaignError
from bakeoff.scenario import units

if TYPE_CHECKING:
    from bakeoff.campaign.worker import Done
    from bakeoff.scenario import Run
    from bakeoff.scenario.sweep_points import Point

_TRIAL: Final = 8
"""Points by whose runs the time of the others is told."""
_BESIDES_S: Final = 0.01
"""Of each run, besides the engine's time: measures and files."""
_AT_FIRST: Final = 64
"""Runs that are made when the cost of a sweep is known: all workers wait for some then."""
_AT_ONCE: Final = 16
"""Runs that are made one after the other, where none has to be seen before the next is chosen. They take less time than
single ones, between which the simulations of the other processes have the processor's caches."""

Outcome = tuple[float | None, ...]
"""What the runs at a point gave, one number for each run of one seed: the mean over seeds, None where there is none."""


@dataclass(frozen=True)
class Budget:
    """What a sweep may cost: a number of runs, or a time."""

    runs: int | None = None
    wall_s: float | None = None

    @classmethod
    def parse(cls, text: str | None) -> Budget:
        """`500` is a number of runs, `10min` a time. BakeoffError for anything else."""
        if text is None:
            return cls()
        known = units.si(text)
        if known is not None and known[1] == "" and known[0] == int(known[0]) >= 1:
            return cls(runs=int(known[0]))
        if known is not None and known[1] == "s" and known[0] > 0:
            return cls(wall_s=known[0])
        raise CampaignError(f"--budget: '{text}'; expected a number of runs such as 500, or a time such as 10min")

    def points(self, runs_per_point: int, run_s: float | None, jobs: int) -> int | None:
        """How many points it has room for, if a run takes `run_s` on one of `jobs` cores; None for any number.

        BakeoffError if there is no room for one.
        """
        if self.runs is not None:
            room = self.runs // runs_per_point
            if not room:
                raise CampaignError(
                    f"--budget: {self.runs} runs, but each point takes {runs_per_point}; expected {runs_per_point} or "
                    "more"
                )
            return room
        if self.wall_s is None or run_s is None:
            return None
        return int(self.wall_s * jobs / run_s) // runs_per_point


@dataclass(frozen=True)
class Told:
    """What is known of a sweep's cost after its first runs."""

    run_s: float
    """Of one core, for a run."""
    of: int
    """From so many runs."""
    points: int
    """That will be done in all."""
    left_out: int
    """That the budget has no room for."""
    wall_s: float
    """That the rest will take."""


class Chooser(Protocol):
    """What says at which points of a sweep runs are done."""

    waits: bool
    """Whether it has to see what came out before it chooses further points."""

    def first(self) -> Sequence[Point]:
        """The points to begin with."""

    def room(self, points: int | None) -> int:
        """So many points may be done in all, or any number; how many that will be."""

    def next(self, outcomes: Mapping[int, Outcome]) -> Sequence[Point]:
        """Further points, of which the numbers go on; none at the end. `outcomes` by the number of the point."""


class Listed:
    """The points of a grid or a sample, one after the other."""

    waits = False

    def __init__(self, points: Sequence[Point]) -> None:
        # Some from all over, so that the time that they take is that of the others.
        step = max(1, len(points) // _TRIAL)
        trial = range(0, len(points), step)[:_TRIAL]
        self._first = [points[number] for number in trial]
        self._rest = deque(point for number, point in enumerate(points) if number not in trial)
        self._left = len(self._rest)

    def first(self) -> Sequence[Point]:
        """See `Chooser`."""
        return self._first

    def room(self, points: int | None) -> int:
        """See `Chooser`; the first points are done in any case."""
        if points is not None:
            self._left = max(0, min(len(self._rest), points - len(self._first)))
        return min(len(self._first) if points is None else points, len(self._first)) + self._left

    def next(self, outcomes: Mapping[int, Outcome]) -> Sequence[Point]:
        """See `Chooser`."""
        if not self._left:
            return []
        self._left -= 1
        return [self._rest.popleft()]


@dataclass
class Sweep:
    """The runs of a sweep, as `campaign.run` asks for them."""

    chooser: Chooser
    runs_at: Callable[[Point], Sequence[Run]]
    """The runs at a point, with their repetitions."""
    total: int
    """Points that there are, as far as the budget does not say otherwise."""
    budget: Budget
    jobs: int
    number: str | None = None
    """Of `Done.numbers`: what the chooser sees."""
    tell: Callable[[Told], None] = lambda told: None
    points: list[Point] = field(default_factory=list)
    """Those that were chosen so far."""
    _of: dict[str, int] = field(default_factory=dict)
    _keys: list[list[str]] = field(default_factory=list)
    _open: dict[int, int] = field(default_factory=dict)
    _found: dict[str, float | None] = field(default_factory=dict)
    _outcomes: dict[int, Outcome] = field(default_factory=dict)
    _spent: list[float] = field(default_factory=list)
    _announced: bool = False
    _pending: int = 0

    def first(self) -> list[Run]:
        """The runs to begin with."""
        runs: list[Run] = []
        room = self.budget.points(self._per_point, None, self.jobs)
        for point in list(self.chooser.first())[:room]:
            runs += self._added(point)
        return runs

    def more(self, done: Done, waiting: int) -> list[Run]:
        """The runs that follow when this one has ended, while so many wait."""
        number = self._of[done.key]
        self._pending -= 1
        self._found[done.key] = done.numbers.get(self.number) if self.number is not None else None
        if done.wall_s:
            self._spent.append(done.wall_s)
        self._open[number] -= 1
        if not self._open[number]:
            self._outcomes[number] = self._outcome(number)
        wanted = _AT_ONCE
        if not self._announced:
            if self._pending:
                return []
            self._tell()
            wanted = max(_AT_FIRST, 2 * self.jobs)
        if self._pending if self.chooser.waits else waiting >= _AT_ONCE:
            return []
        runs: list[Run] = []
        while len(runs) < wanted:
            further = self.chooser.next(self._outcomes)
            if not further:
                break
            for point in further:
                runs += self._added(point)
            if self.chooser.waits:
                break
        return runs

    def outcomes(self) -> dict[int, Outcome]:
        """What came out at each point that is done, by its number."""
        return dict(self._outcomes)

    @property
    def expected(self) -> int:
        """The runs that there will be in all, as far as is known."""
        return max(self.total * self._per_point, len(self._of))

    @property
    def _per_point(self) -> int:
        return max(1, len(self._keys[0])) if self._keys else max(1, len(self.runs_at(self.chooser.first()[0])))

    def _added(self, point: Point) -> list[Run]:
        runs = list(self.runs_at(point))
        number = len(self.points)
        self.points.append(point)
        self._keys.append([run.key for run in runs])
        self._of.update({run.key: number for run in runs})
        self._open[number] = len(runs)
        self._pending += len(runs)
        return runs

    def _tell(self) -> None:
        self._announced = True
        # The first run of each process has to load the engine.
        usual = self._spent[self.jobs :] or self._spent
        run_s = sum(usual) / len(usual) + _BESIDES_S if usual else None
        room = self.budget.points(self._per_point, run_s, self.jobs)
        will = self.chooser.room(room)
        every, self.total = self.total, will
        left = max(0, will - len(self.points)) * self._per_point
        wall_s = left * (run_s or 0.0) / self.jobs
        self.tell(Told(run_s or 0.0, len(usual), will, max(0, every - will), wall_s))

    def _outcome(self, number: int) -> Outcome:
        """The mean over seeds of each run at a point."""
        several: dict[str, list[float]] = {}
        for key in self._keys[number]:
            value = self._found[key]
            several.setdefault(key.partition("~seed")[0], []).extend([] if value is None else [value])
        return tuple(sum(values) / len(values) if values else None for values in several.values())
