"""The search: a sampler of optuna for each competitor, in batches of a fixed size.

What is tried depends on the seed and on the scores of earlier batches alone, not on how many runs there are at a time.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

from bakeoff.errors import UsageError
from bakeoff.evaluation.adversary.space import Choice, Dimension, Niche, Point, Range, Value, key

if TYPE_CHECKING:
    import optuna

BATCH: Final = 8
"""Points of a niche that are tried at a time."""
AGAIN: Final = (2, 3)
"""Seeds with which the best points are tried again."""
CANDIDATES: Final = 3
"""At most so many points of a niche."""
_AT_FIRST: Final = 2 * BATCH
"""Points of every niche, at random; the rest goes to those that are best."""
_GO_ON: Final = 5
"""Niches that each further batch is for."""
_CONFIRMED: Final = 8
"""Niches whose best points are tried again."""
_PART: Final = 6
"""At most one point of so many is tried again."""
_PRESENT: Final = 0.5
"""How often an ingredient is there, in the beginning."""

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


def search(spaces: Mapping[Niche, Sequence[Dimension]], points: int, found: Found, *, seed: int = 1) -> Tries:
    """Look at about `points` points for the highest score of each niche; `found` has them at any time.

    First every niche gets some points at random, then the best niches get batches that their samplers choose. The best
    points are tried with more seeds, because the highest of many scores is often luck.
    """
    niches = min(_CONFIRMED, len(spaces))
    again = max(1, min(CANDIDATES, points // (_PART * niches)))
    points -= again * niches * len(AGAIN)
    first = max(1, min(_AT_FIRST, points // len(spaces)))
    studies = {niche: _Study(ranges, first, 1000 * seed + n) for n, (niche, ranges) in enumerate(spaces.items())}

    def batch(sizes: Mapping[Niche, int]) -> Tries:
        asked = [(niche, *studies[niche].ask()) for niche, size in sizes.items() for _ in range(size)]
        scores = yield [Try(point, niche.other) for niche, _, point in asked]
        for (niche, trial, point), score in zip(asked, scores, strict=True):
            studies[niche].tell(trial, point, score)
            if score is not None and (niche not in found.best or score > found.best[niche].score):
                found.best[niche] = Best(niche.other, point, score)

    yield from batch(dict.fromkeys(spaces, first))
    left = points - first * len(spaces)
    while left > 0 and found.best:
        several = [niche for niche, _ in found.ranked[:_GO_ON]]
        sizes = {niche: min(BATCH, max(0, left - BATCH * n)) for n, niche in enumerate(several)}
        left -= sum(sizes.values())
        yield from batch(sizes)
    candidates = [
        (niche, point, score) for niche, _ in found.ranked[:niches] for point, score in studies[niche].highest[:again]
    ]
    scores = yield [Try(point, niche.other, again) for niche, point, _ in candidates for again in AGAIN]
    mean: dict[Niche, Best] = {}
    for number, (niche, point, score) in enumerate(candidates):
        rest = scores[number * len(AGAIN) :][: len(AGAIN)]
        average = fmean([score, *(each for each in rest if each is not None)])
        if niche not in mean or average > mean[niche].score:
            mean[niche] = Best(niche.other, point, average)
    found.best.update(mean)


class _Study:
    """The points of a niche, the first `points` of them at random."""

    def __init__(self, ranges: Sequence[Dimension], points: int, seed: int) -> None:
        optuna = load_optuna()
        self._ranges = ranges
        self._scores: dict[Any, tuple[Point, float]] = {}
        self._distributions = {name: _ for each in ranges for name, _ in _distributions(each, optuna)}
        sampler = optuna.samplers.TPESampler(seed=seed, multivariate=True, constant_liar=True, n_startup_trials=points)
        self._study = optuna.create_study(direction="maximize", sampler=sampler)
        self._failed = optuna.trial.TrialState.FAIL

    def ask(self) -> tuple[optuna.Trial, Point]:
        trial = self._study.ask(self._distributions)
        return trial, {each.name: _value(each, trial.params) for each in self._ranges}

    def tell(self, trial: optuna.Trial, point: Point, score: Score) -> None:
        if score is None:
            self._study.tell(trial, state=self._failed)
            return
        self._study.tell(trial, score)
        self._scores.setdefault(key(point), (point, score))

    @property
    def highest(self) -> list[tuple[Point, float]]:
        """The points with their scores, the highest first."""
        return sorted(self._scores.values(), key=lambda each: -each[1])


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
