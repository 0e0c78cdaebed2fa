"""The search: a sampler of optuna for each competitor, in batches of a fixed size.

What is tried depends on the seed and on the scores of earlier batches alone, not on how many runs there are at a time.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from bakeoff.errors import UsageError
from bakeoff.evaluation.adversary.space import OTHER_RTT, Choice, Dimension, Key, Niche, Point, Range, Value, key

if TYPE_CHECKING:
    import optuna

BATCH: Final = 8
"""Points of a niche that are tried at a time."""
AGAIN: Final = (2, 3)
"""Seeds with which promising points are tried again."""
PROMISING: Final = 3
"""At most so many points of a niche in a batch."""
_AT_FIRST: Final = 2 * BATCH
"""Points of every niche, at random; the rest goes to those that are best."""
_GO_ON: Final = 5
"""Niches that each further batch is for."""
_PRESENT: Final = 0.5
"""How often an ingredient is there, in the beginning."""

_Place = tuple[Niche, Key]

Score = float | None
"""How bad a scenario is; None if it says nothing."""
Tries = Generator[list["Try"], list[Score], None]
"""Asks for scores, and gets them in the same order."""


@dataclass(frozen=True)
class Try:
    """A point with a competitor and a seed."""

    point: Point
    other: str | None
    seed: int = 1


@dataclass
class Best:
    """The worst scenario of a niche, as far as it is known."""

    other: str | None
    point: Point
    score: float
    """The mean over seeds."""
    shrunk: bool = False
    """Whether nothing more can be taken from it."""

    @property
    def unlike_rtt(self) -> bool:
        """Whether the competitor has an RTT of its own."""
        return self.other is not None and self.point.get(OTHER_RTT) is not None


@dataclass
class Found:
    """What a search knows at any time."""

    best: dict[Niche, Best] = field(default_factory=dict)

    @property
    def ranked(self) -> list[tuple[Niche, Best]]:
        """The worst first."""
        return sorted(self.best.items(), key=lambda each: -each[1].score)


def load_optuna() -> Any:  # noqa: ANN401 (a module)
    """The library. UsageError without it."""
    try:
        import optuna
    except ImportError:
        raise UsageError(
            "--worst: needs optuna, which is not installed; install it: pip install 'bakeoff[adversary]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


def search(spaces: Mapping[Niche, Sequence[Dimension]], tries: int, found: Found, *, seed: int = 1) -> Tries:
    """Try about `tries` points and seeds for the highest score of each niche; `found` has them at any time.

    First every niche gets some points at random, then the best niches get batches that their samplers choose. Points
    that seem worse than the worst so far are tried with more seeds, and the sampler learns the mean: the highest of
    many scores is often luck.
    """
    first = max(1, min(_AT_FIRST, tries // (2 * len(spaces))))
    studies = {niche: _Study(ranges, first, 1000 * seed + n) for n, (niche, ranges) in enumerate(spaces.items())}
    sizes = dict.fromkeys(spaces, first)
    means: dict[_Place, float] = {}
    while sizes:
        asked = [(niche, *studies[niche].ask()) for niche, size in sizes.items() for _ in range(size)]
        scores = yield [Try(point, niche.other) for niche, _, point in asked]
        bars = {niche: found.best[niche].score if niche in found.best else 0.0 for niche in sizes}
        seen = {(niche, key(point)): (point, score) for (niche, _, point), score in zip(asked, scores, strict=True)}
        again = [each for niche, bar in bars.items() for each in _promising(niche, bar, seen, means)]
        more = yield [Try(seen[each][0], each[0].other, other) for each in again for other in AGAIN]
        tries -= len(asked) + len(more)
        for number, each in enumerate(again):
            rest = more[number * len(AGAIN) :][: len(AGAIN)]
            point, score = seen[each]
            means[each] = fmean(one for one in (score, *rest) if one is not None)
            if each[0] not in found.best or means[each] > found.best[each[0]].score:
                found.best[each[0]] = Best(each[0].other, point, means[each])
        for (niche, trial, point), score in zip(asked, scores, strict=True):
            once = None if score is None else min(score, bars[niche])
            studies[niche].tell(trial, means.get((niche, key(point)), once))
        batches = min(_GO_ON, tries // (BATCH + len(AGAIN)))
        sizes = dict.fromkeys([niche for niche, _ in found.ranked[:batches]], BATCH)


def _promising(
    niche: Niche, bar: float, seen: Mapping[_Place, tuple[Point, Score]], means: Mapping[_Place, float]
) -> list[_Place]:
    """The points of a niche with the highest scores above its bar, without those whose mean is known."""
    above = [
        (score, -number, place)
        for number, (place, (_, score)) in enumerate(seen.items())
        if place[0] == niche and place not in means and score is not None and score > bar
    ]
    return [place for _, _, place in sorted(above, reverse=True)[:PROMISING]]


class _Study:
    """The points of a niche, the first `points` of them at random."""

    def __init__(self, ranges: Sequence[Dimension], points: int, seed: int) -> None:
        optuna = load_optuna()
        self._ranges = ranges
        self._distributions = {name: _ for each in ranges for name, _ in _distributions(each, optuna)}
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True, n_startup_trials=points)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._failed = optuna.trial.TrialState.FAIL

    def ask(self) -> tuple[optuna.Trial, Point]:
        trial = self._study.ask(self._distributions)
        return trial, {each.name: _value(each, trial.params) for each in self._ranges}

    def tell(self, trial: optuna.Trial, score: Score) -> None:
        if score is None:
            self._study.tell(trial, state=self._failed)
        else:
            self._study.tell(trial, score)


def _distributions(dimension: Dimension, optuna: Any) -> list[tuple[str, Any]]:  # noqa: ANN401 (a module)
    if isinstance(dimension, Choice):
        return [(dimension.name, optuna.distributions.CategoricalDistribution(dimension.values))]
    return [(dimension.name, optuna.distributions.FloatDistribution(0.0, 1.0))]


def _value(dimension: Dimension, params: Mapping[str, Any]) -> Value:
    value = params[dimension.name]
    if not isinstance(dimension, Range):
        return str(value)
    if dimension.optional:
        # Below the middle the ingredient is absent: one number, so that the sampler learns both at once.
        return None if value < 1 - _PRESENT else dimension.at((value - (1 - _PRESENT)) / _PRESENT)
    return dimension.at(value)
