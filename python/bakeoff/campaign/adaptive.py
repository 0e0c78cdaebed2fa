"""A sweep that spends its runs where the outcome changes fastest.

The ranges span a cube whose edges are 0 and 1, on the scale that each range has. It begins with an even grid. Then the
points that are there are joined to triangles (Delaunay; in one dimension to intervals, in three to tetrahedra), and the
longest edge of a triangle is halved by a new point, that triangle first for which

    area x (largest difference between its corners / largest difference of all points + 0.05)

is largest. The first factor keeps triangles from becoming ever smaller at a step, the term 0.05 has those looked into
that seem flat. A round chooses eight points, so that processes have something to do side by side, and the same points
are chosen for any number of them. Within a round the halves of a triangle count with the mean in the middle.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import factorial
from typing import TYPE_CHECKING, Any, Final

from bakeoff.errors import CampaignError
from bakeoff.scenario.settings import label

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bakeoff.campaign.sweep_schedule import Outcome
    from bakeoff.scenario.sweep_points import Parameter, Point

    Array = npt.NDArray[np.float64]

ROUND: Final = 8
"""Points that are chosen at a time."""
MOST_RANGES: Final = 3
_FLAT: Final = 0.05
_BEGIN: Final = 6
"""The grid that it begins with has about the budget's sixth."""
_LEAST: Final = 3
"""Values of each range in that grid."""

_HALVINGS: Final = 64
"""Of a round, for each point that it looks for; beyond them it takes what it has found."""

Place = tuple[float, ...]


class Adaptive:
    """Chooses points of ranges by what came out at others; see `campaign.sweep.Chooser`."""

    waits = True

    def __init__(self, ranges: Sequence[Parameter], expected: int) -> None:
        """`expected` points will be done in all, as far as is known. BakeoffError for too many ranges or too few."""
        if len(ranges) > MOST_RANGES:
            raise CampaignError(
                f"--adaptive: {len(ranges)} ranges; expected at most {MOST_RANGES}, or --sample for more"
            )
        self._ranges = [each for each in ranges if each.range is not None]
        least = _LEAST ** len(ranges)
        if expected < least:
            raise CampaignError(
                f"--adaptive: the initial grid has {least} points, but the budget allows {expected}; expected "
                "a larger --budget"
            )
        side = max(_LEAST, round((expected / _BEGIN) ** (1 / len(ranges))))
        self._places: list[Place] = []
        self._known: set[tuple[str, ...]] = set()
        self._room = expected
        steps = [step / (side - 1) for step in range(side)]
        self._begin = self._take(product(steps, repeat=len(ranges)))

    def first(self) -> Sequence[Point]:
        """See `Chooser`."""
        return self._begin

    def room(self, points: int | None) -> int:
        """See `Chooser`."""
        if points is not None:
            self._room = max(points, len(self._places))
        return self._room

    def next(self, outcomes: Mapping[int, Outcome]) -> Sequence[Point]:
        """See `Chooser`."""
        room = min(ROUND, self._room - len(self._places))
        if room <= 0:
            return []
        return self._take(self._halves(outcomes), room)

    def _take(self, places: Iterable[Place], most: int | None = None) -> list[Point]:
        """The points at these places, without those whose values are there already."""
        taken: list[Point] = []
        for place in places:
            if most is not None and len(taken) == most:
                break
            point = {
                each.key: each.range.at(share)
                for each, share in zip(self._ranges, place, strict=True)
                if each.range is not None
            }
            names = tuple(map(label, point.values()))
            if names not in self._known:
                self._known.add(names)
                self._places.append(tuple(place))
                taken.append(point)
        return taken

    def _halves(self, outcomes: Mapping[int, Outcome]) -> Iterator[Place]:
        """Where cells are halved, the cell that gains most first.

        What a new point will give is not known yet: its cell's halves count with the mean of the edge's two ends, so
        that a steep cell is halved several times in a round.
        """
        import numpy as np

        at = np.array(self._places)
        width = max((len(each) for each in outcomes.values()), default=0)
        values = np.full((len(at), width), np.nan)
        for number, outcome in outcomes.items():
            values[number] = [np.nan if value is None else value for value in outcome]
        spans = np.array([_span(column) for column in values.T])
        waiting: list[tuple[float, int, Array, Array]] = []
        count = 0
        for cell in _cells(at):
            heapq.heappush(waiting, (-_gain(at[cell], values[cell], spans), count, at[cell], values[cell]))
            count += 1
        # Halves of halves have an end, too: whole numbers run out.
        for _ in range(_HALVINGS * ROUND + count):
            _, _, corners, outcome_there = heapq.heappop(waiting)
            i, j = _longest(corners)
            middle, value = (corners[i] + corners[j]) / 2, (outcome_there[i] + outcome_there[j]) / 2
            yield tuple(middle.tolist())
            for end in (i, j):
                half, values_there = corners.copy(), outcome_there.copy()
                half[end], values_there[end] = middle, value
                heapq.heappush(waiting, (-_gain(half, values_there, spans), count, half, values_there))
                count += 1


def _gain(corners: Array, values: Array, spans: Array) -> float:
    """How much there is to learn in a cell: its size times how much changes there.

    Of several runs at a point the one that changes most counts, and what has no number is left out.
    """
    shares = [_span(column) / span for column, span in zip(values.T, spans, strict=True) if span > 0]
    return _volume(corners) * (max(shares, default=0.0) + _FLAT)


def _longest(corners: Array) -> tuple[int, int]:
    """The ends of the longest edge of a cell; the first of equal ones."""
    edges = [(i, j) for i in range(len(corners)) for j in range(i)]
    return max(edges, key=lambda edge: float(((corners[edge[0]] - corners[edge[1]]) ** 2).sum()))


def _span(values: Array) -> float:
    import numpy as np

    known = values[np.isfinite(values)]
    return float(known.max() - known.min()) if len(known) > 1 else 0.0


def _cells(at: Array) -> list[Any]:
    """The corners of each cell, as numbers of points."""
    import numpy as np

    if at.shape[1] == 1:
        order = np.argsort(at[:, 0])
        return [order[n : n + 2] for n in range(len(order) - 1)]
    from scipy.spatial import Delaunay  # type: ignore[import-untyped]

    return list(Delaunay(at).simplices)


def _volume(corners: Array) -> float:
    import numpy as np

    return abs(float(np.linalg.det(corners[1:] - corners[0]))) / factorial(len(corners) - 1)
