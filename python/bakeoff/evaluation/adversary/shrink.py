"""The shortest scenario that is as bad: without what is not needed, and with round numbers."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from statistics import fmean
from typing import Final

from bakeoff.evaluation.adversary.search import Best, Score, Tries, Try
from bakeoff.evaluation.adversary.space import Choice, Dimension, Point, ingredients

SEEDS: Final = (1, 2, 3)
_ENOUGH: Final = 0.9
"""The share of the first score that a simpler scenario must keep."""


def shrink(best: Best, ranges: Sequence[Dimension], *, alone: bool, seeds: Sequence[int] = SEEDS) -> Tries:
    """Make `best` simpler for as long as its mean score stays at 90 % of what it was.

    First the competitor is dropped, if the measure can do without (`alone`), and then ingredients, as many as
    possible. Then the queue and the numbers become simpler, one by one. `best` is valid at any time.
    """
    least = _ENOUGH * best.score

    def first(points: Sequence[Point]) -> Generator[list[Try], list[Score], list[bool]]:
        """Which of these points are bad enough with the first seed."""
        scores = yield [Try(point, best.other, seeds[0]) for point in points]
        return [score is not None and score >= least for score in scores]

    def taken(point: Point, other: str | None) -> Generator[list[Try], list[Score], bool]:
        """Take this point if it is bad enough on average."""
        scores = yield [Try(point, other, seed) for seed in seeds]
        known = [score for score in scores if score is not None]
        if len(known) < len(seeds) or fmean(known) < least:
            return False
        best.point, best.other, best.score = point, other, fmean(known)
        return True

    if alone and best.other is not None:
        yield from taken(best.point, None)
    while names := ingredients(best.point, ranges):
        fits = yield from first([{**best.point, name: None} for name in names])
        able = [name for name, fit in zip(names, fits, strict=True) if fit]
        # All together, or else the first that can go: the others are then looked at again.
        attempts = [able, *([name] for name in able if len(able) > 1)] if able else []
        for each in attempts:
            if (yield from taken({**best.point, **dict.fromkeys(each, None)}, best.other)):
                break
        else:
            break
    # Choices first: what a number has to be depends on them.
    for dimension in sorted(ranges, key=lambda each: not isinstance(each, Choice)):
        points: list[Point] = [
            {**best.point, dimension.name: value} for value in dimension.simpler(best.point.get(dimension.name))
        ]
        fits = yield from first(points)
        for point, fit in zip(points, fits, strict=True):
            if fit and (yield from taken(point, best.other)):
                break
    best.shrunk = True
