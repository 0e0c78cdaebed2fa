"""The shortest scenario that is as bad: without what is not needed, and with round numbers."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from statistics import fmean
from typing import Final

from bakeoff.evaluation.adversary.search import Best, Score, Tries, Try
from bakeoff.evaluation.adversary.space import Choice, Dimension, Point, Value, ingredients

SEEDS: Final = (1, 2, 3)
_ENOUGH: Final = 0.9
"""The share of the first score that a simpler scenario must keep."""


def shrink(best: Best, ranges: Sequence[Dimension], *, alone: bool, seeds: Sequence[int] = SEEDS) -> Tries:
    """Make `best` simpler for as long as its mean score stays at 90 % of what it was.

    First the competitor is dropped, if the measure can do without (`alone`), and then ingredients, as many as
    possible. Then the queue and the numbers become simpler, one by one. `best` is valid at any time.
    """
    least = _ENOUGH * best.score

    def means(several: Sequence[tuple[Point, str | None]]) -> Generator[list[Try], list[Score], list[float]]:
        scores = yield [Try(point, other, seed) for point, other in several for seed in seeds]
        rows = [scores[number * len(seeds) :][: len(seeds)] for number in range(len(several))]
        return [fmean(float("-inf") if score is None else score for score in row) for row in rows]

    if alone and best.other is not None:
        [score] = yield from means([(best.point, None)])
        if score >= least:
            best.other, best.score = None, score
    while names := ingredients(best.point, ranges):
        scores = yield from means([({**best.point, name: None}, best.other) for name in names])
        able = {name: score for name, score in zip(names, scores, strict=True) if score >= least}
        if not able:
            break
        every = {**best.point, **dict.fromkeys(able, None)}
        [score] = yield from means([(every, best.other)])
        if score >= least:
            best.point, best.score = every, score
        else:
            name = max(able, key=lambda each: able[each])
            best.point, best.score = {**best.point, name: None}, able[name]
    # Choices first: what a number has to be depends on them.
    for dimension in sorted(ranges, key=lambda each: not isinstance(each, Choice)):
        values: list[Value] = dimension.simpler(best.point[dimension.name])
        scores = yield from means([({**best.point, dimension.name: value}, best.other) for value in values])
        for value, score in zip(values, scores, strict=True):
            if score >= least:
                best.point, best.score = {**best.point, dimension.name: value}, score
                break
    best.shrunk = True
