"""A measure over two axes of a campaign's matrix, as means over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bakeoff.errors import PlotError
from bakeoff.plots import contours
from bakeoff.plots.against_axis import MOST_PANELS, default_measure, facet_title, facets_of, grid, too_many
from bakeoff.plots.axes import axis_of, in_other_unit
from bakeoff.plots.points import Estimate, Matrix, Point, axis_words
from bakeoff.plots.style import plain, styled
from bakeoff.tables.label_order import number

if TYPE_CHECKING:
    from bakeoff.plots.picture import Picture


def heatmap(matrix: Matrix, measure: str | None = None, x: str | None = None, y: str | None = None) -> Picture:
    """A measure over two axes, as means over seeds; one map per point of the other axes.

    Axes of four numbers or more are drawn as numbers, logarithmic where they are spread so, with lines of equal value
    and a sign where a run failed, and where not all seeds have a number. Others have a cell for each pair of labels,
    with its number. By default x and y are the axes with the most labels. Raises BakeoffError as `sweep` does.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    name = measure or default_measure(matrix, "heatmap")
    what = axis_of(name)
    x, y = two_axes(matrix, x, y)
    faceted = [axis for axis in matrix.axes if axis not in (x, y)]
    points = facets_of(matrix, faceted)
    found = [(point, point.measured(what)) for point in matrix.points]
    entities = list(dict.fromkeys(entity for _, several in found for entity in several))
    if not entities:
        raise PlotError(f"{matrix.title}: no run has the measure '{name}'")
    facets = [(*facet, entity) for facet in points for entity in entities]
    if len(facets) > MOST_PANELS:
        raise too_many(len(facets), [*faceted, "flow"])
    numbers = _means(found)
    if (other := in_other_unit(what, max(numbers, default=1.0))) is not None:
        what = other
        found = [(point, point.measured(what)) for point in matrix.points]
        numbers = _means(found)
    bounded = what.limits[1] == 1
    low, high = min(numbers, default=0.0), 1.0 if bounded else max(numbers, default=1.0)
    # Differences that nobody would call one have no colours of their own.
    if 0 <= low < 0.3 * high or high - low < 0.01 * abs(high):
        low = min(low, 0.0)
    norm = Normalize(min(low, 0.5) if bounded else low, high if high > low else low + 1.0)
    numeric = all(matrix.numeric(axis) is not None and len(matrix.axes[axis]) >= contours.LEAST for axis in (x, y))
    with styled():
        tall = 4.6 if numeric else max(3.0, 0.42 * min(len(matrix.axes[y]), 24) + 1.4)
        made, axes = grid(matrix, facets, what, row_inch=tall)
        fields = []
        for one, facet in zip(axes, facets, strict=True):
            cells = {
                (point.axes[x], point.axes[y]): several[facet[-1]]
                for point, several in found
                if tuple(point.axes.get(axis, "") for axis in faceted) == facet[:-1] and facet[-1] in several
            }
            if numeric:
                fields.append(_field(matrix, cells, facet[:-1], faceted, (x, y)))
                contours.draw(one, fields[-1], norm)
            else:
                contours.cells(one, cells, matrix.axes[x], matrix.axes[y], norm=norm)
            one.set_title(facet_title([*faceted, ""], facet, len(facets)), fontsize=10, loc="left")
            for axis, label in ((x, one.set_xlabel), (y, one.set_ylabel)):
                unit = matrix.numeric(axis) if numeric else None
                label(plain(f"{axis_words(axis)} [{unit}]" if unit else axis_words(axis)))
        bar = made.colorbar(
            ScalarMappable(norm, "cividis"), ax=list(axes), label=f"{what.text}, mean over seeds", pad=0.015
        )
        bar.outline.set_visible(False)
        made.add_legend(contours.entries(fields))
    return made


def _means(found: Sequence[tuple[Point, Mapping[str, Estimate]]]) -> list[float]:
    return [seen.found["mean"] for _, several in found for seen in several.values() if seen.found is not None]


def _field(
    matrix: Matrix,
    cells: Mapping[tuple[str, str], Estimate],
    facet: Sequence[str],
    faceted: Sequence[str],
    axes: tuple[str, str],
) -> contours.Field:
    """What one panel shows, by numbers in place of labels."""

    def place(labels: Sequence[str]) -> tuple[float, float]:
        x, y = (number(label) for label in labels)
        assert x is not None
        assert y is not None
        return x[0], y[0]

    lost = [at for at in matrix.failed if tuple(at.get(axis, "") for axis in faceted) == tuple(facet)]
    failed = frozenset(place([at[axis] for axis in axes]) for at in lost if all(number(at[axis]) for axis in axes))
    values = {place(labels): seen.found["mean"] for labels, seen in cells.items() if seen.found is not None}
    partly = frozenset(place(labels) for labels, seen in cells.items() if seen.found is not None and not seen.whole)
    none = frozenset(place(labels) for labels, seen in cells.items() if seen.found is None)
    return contours.Field(values, failed - set(values) - none, partly, none)


def two_axes(matrix: Matrix, x: str | None, y: str | None) -> tuple[str, str]:
    """The axes that were asked for, or those with the most labels."""
    for axis in (x, y):
        if axis is not None and axis not in matrix.axes:
            names = ", ".join(matrix.axes) or "none"
            raise PlotError(f"{matrix.title}: unknown axis '{axis}'; expected one of: {names}")
    if x is not None and x == y:
        raise PlotError(f"x and y: both are '{x}'; expected two different axes")
    by_size = sorted(matrix.axes, key=lambda axis: (matrix.numeric(axis) is None, -len(matrix.axes[axis])))
    free = [axis for axis in by_size if axis not in (x, y)]
    chosen = [axis if axis is not None else (free.pop(0) if free else None) for axis in (x, y)]
    if chosen[0] is None or chosen[1] is None:
        raise PlotError(f"{matrix.title}: a heatmap needs two axes; the axes are: {', '.join(matrix.axes) or 'none'}")
    return chosen[0], chosen[1]
