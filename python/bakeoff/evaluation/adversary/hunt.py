"""The runs of a search, as a campaign asks for them: batch by batch, until the budget is spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite
from typing import TYPE_CHECKING, Final

from bakeoff.claims.evaluate import check_number, number_of, take
from bakeoff.errors import MeasureError
from bakeoff.evaluation.adversary import document, space
from bakeoff.evaluation.adversary.goal import WORST
from bakeoff.evaluation.adversary.search import Best, Found, Score, Tries, Try, search
from bakeoff.evaluation.adversary.shrink import shrink
from bakeoff.measure.functions import CATALOGUE
from bakeoff.measure.measured_run import MeasuredRun

if TYPE_CHECKING:
    from bakeoff.campaign import Done
    from bakeoff.evaluation.adversary.document import Contest
    from bakeoff.results import Result
    from bakeoff.scenario import Run

LEAST: Final = 0.3
"""The score from which a scenario is a finding: a factor of 1.23."""
FRESH: Final = 11
"""The first seed of the confirmation: none of the search's."""
MOST: Final = 5
"""Findings, each with a competitor and a kind of queue of its own."""
_OF_FINDING: Final = 120
"""Runs that shorten and confirm one, about."""
_SEATS: Final = 2
_SEARCH: Final = 0.6
"""The share of the runs that is for the search; the rest is for simpler scenarios and the confirmation."""
_NEVER: Final = 1e12
"""An infinite value, where only finite ones are kept."""

Refused = Callable[[Sequence["Run"]], Mapping[str, str]]
"""Gives the keys of the runs that an engine does not accept, with the reasons."""


@dataclass(frozen=True)
class Confirmed:
    """A scenario with what was measured there."""

    best: Best
    written: str
    """The scenario file."""
    values: tuple[tuple[float, float], ...]
    """For each seed what was measured with the control and with the baseline, base units."""
    scores: tuple[float, ...]
    """For each of these seeds."""
    failure: str | None
    """Why a run with the control failed."""


@dataclass
class _Seats:
    """What both runs of a try gave, as far as they have ended."""

    rate: float
    keys: tuple[str, str]
    values: dict[str, float | None] = field(default_factory=dict)
    failure: str | None = None

    def score(self, contest: Contest) -> Score:
        ours, theirs = (self.values.get(each) for each in self.keys)
        if self.failure is not None:
            return None if theirs is None else WORST
        return contest.goal.score(ours, theirs, self.rate)


class Hunt:
    """The search of one contest."""

    def __init__(
        self,
        contest: Contest,
        runs: int,
        *,
        seed: int = 1,
        seeds: int = 10,
        refused: Refused = lambda _: {},
    ) -> None:
        """At most `runs` runs. `seed` is that of the search, `seeds` the number of seeds of the confirmation."""
        self.contest = contest
        self.found = Found()
        self.confirmed: list[Confirmed] = []
        self.used = 0
        """Runs that were asked for."""
        self.ended = 0
        """Runs that have ended."""
        self.expected = runs
        """Runs that there will be."""
        self._room, self._seed, self._seeds, self._refused = runs, seed, range(FRESH, FRESH + seeds), refused
        niches = [
            space.Niche(other, kind, unlike)
            for other in contest.goal.competitors
            for kind in space.KINDS
            for unlike in contest.goal.rtts
        ]
        self._ranges = {niche: space.dimensions(niche) for niche in niches}
        self._tries = self._all()
        self._batch: list[Try] = []
        self._known: dict[tuple[str, int], _Seats] = {}
        self._names: dict[str, str] = {}
        self._of: dict[str, _Seats] = {}
        self._waiting: set[str] = set()

    @property
    def pending(self) -> list[Best]:
        """What is worse than the baseline as far as it is known, and was not confirmed; the worst first."""
        several = [best for _, best in self.found.ranked]
        if not several:
            # In the first batch: what has ended of it.
            scores = [(each, self._known[self._written(each), each.seed].score(self.contest)) for each in self._batch]
            several = [Best(each.other, each.point, score) for each, score in scores if score is not None]
        done = [each.best for each in self.confirmed]
        left = [best for best in several if best.score >= LEAST and best not in done]
        return sorted(left, key=lambda each: -each.score)

    def first(self) -> list[Run]:
        """The runs to begin with."""
        return self._next(None)

    def check(self, runs: Sequence[Run]) -> None:
        """BakeoffError if the measure names a flow that no run has."""
        check_number(self.contest.goal.expression.text, runs, "--worst")

    def more(self, done: Done, _: int = 0) -> list[Run]:
        """The runs that follow when one has ended."""
        self.ended += 1
        seats = self._of[done.key]
        seats.values[done.key] = _read(done.numbers.get(self.contest.goal.expression.text))
        if done.status == "failed" and done.key == seats.keys[0]:
            seats.failure = done.error or "failed"
        self._waiting.discard(done.key)
        return [] if self._waiting else self._next(self._scores())

    def _next(self, scores: list[Score] | None) -> list[Run]:
        """The runs of the next batch that are not known yet; none at the end."""
        while True:
            try:
                self._batch = next(self._tries) if scores is None else self._tries.send(scores)
            except StopIteration:
                self.expected = self.used
                return []
            runs = [run for each in self._batch for run in self._runs(each)]
            refused = self._refused(runs)
            wanted = [run for run in runs if run.key not in refused]
            self.used += len(wanted)
            self._waiting = {run.key for run in wanted}
            if wanted:
                return wanted
            scores = self._scores()

    def _scores(self) -> list[Score]:
        return [self._known[self._written(each), each.seed].score(self.contest) for each in self._batch]

    def _written(self, each: Try) -> str:
        return document.text(self.contest, each.point, each.other)

    def _runs(self, each: Try) -> list[Run]:
        """Both runs of a try, unless they were asked for before."""
        written = self._written(each)
        if (written, each.seed) in self._known:
            return []
        name = self._names.setdefault(written, f"p{len(self._names) + 1:04d}")
        [(ours, theirs)] = document.runs(self.contest, written, name, [each.seed])
        seats = _Seats(document.mean_rate(each.point), (ours.key, theirs.key))
        self._known[written, each.seed] = seats
        self._of |= {ours.key: seats, theirs.key: seats}
        return [ours, theirs]

    def _cost(self, tries: Sequence[Try]) -> int:
        return _SEATS * len({(self._written(each), each.seed) for each in tries} - self._known.keys())

    def _all(self) -> Tries:
        """The search, and then each finding shrunk and confirmed, the worst first."""
        plain = Best(next(iter(self._ranges)).other, space.usual(next(iter(self._ranges.values()))), WORST, shrunk=True)
        first = [Try(plain.point, plain.other)]
        yield first
        if self._known[self._written(first[0]), 1].failure is not None:
            # A control that fails at once, or does not end, is not run a thousand times.
            self.confirmed.append(self._confirmed(plain, first))
            return
        points = int(_SEARCH * self._room / _SEATS) - len(first)
        yield from search(self._ranges, max(points, 1), self.found, seed=self._seed)
        ranked = [best for _, best in self.found.ranked if best.score >= LEAST]
        for number, best in enumerate(ranked):
            room = self._room - self.used
            left = max(1, min(len(ranked) - number, MOST - len(self.confirmed), room // _OF_FINDING))
            confirmation = _SEATS * len(self._seeds)
            yield from self._shrunk(best, self.used + room // left - confirmation)
            tries = [Try(best.point, best.other, seed) for seed in self._seeds]
            if self.is_known(best):
                continue
            if self.used + self._cost(tries) > self._room:
                break
            yield tries
            self.confirmed.append(self._confirmed(best, tries))
            if len(self.confirmed) == MOST:
                break

    def is_known(self, best: Best) -> bool:
        """Whether there is a finding of the same niche."""
        return any(self._niche(each.best) == self._niche(best) for each in self.confirmed)

    def _niche(self, best: Best) -> space.Niche:
        unlike = None if self.contest.goal.rtts == (None,) else best.unlike_rtt
        return space.Niche(best.other, space.kind(best.point.get(space.QUEUE)), unlike)

    def _shrunk(self, best: Best, room: int) -> Tries:
        """Shrink for as long as the runs are at most `room`."""
        ranges = space.dimensions(space.Niche(best.other))
        steps = shrink(best, ranges, alone=None in self.contest.goal.competitors)
        try:
            batch = next(steps)
            while self.used + self._cost(batch) <= room and not self.is_known(best):
                scores = yield batch
                batch = steps.send(scores)
        except StopIteration:
            return
        steps.close()

    def _confirmed(self, best: Best, tries: Sequence[Try]) -> Confirmed:
        seats = [self._known[self._written(each), each.seed] for each in tries]
        pairs = [tuple(each.values.get(key) for key in each.keys) for each in seats]
        return Confirmed(
            best=best,
            written=self._written(tries[0]),
            values=tuple((ours, theirs) for ours, theirs in pairs if ours is not None and theirs is not None),
            scores=tuple(score for each in seats if (score := each.score(self.contest)) is not None),
            failure=next((each.failure for each in seats if each.failure is not None), None),
        )


def measured(result: Result, words: str) -> dict[str, float | None]:
    """What a run gives for the expression, for `campaign.run`'s `also`; None where it gives no number."""
    expression = number_of(words)
    metrics = {metric for call in expression.calls for metric in CATALOGUE[call.measure].needs}
    run = MeasuredRun(result, metrics)
    try:
        value = expression.number({call: take(run, call) for call in expression.calls})
    except MeasureError:
        return {words: None}
    return {words: value if isfinite(value) else _NEVER if value > 0 else None}


def _read(value: float | None) -> float | None:
    return inf if value is not None and value >= _NEVER else value
