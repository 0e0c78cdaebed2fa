"""A measure over two axes of a campaign's matrix, as means over seeds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bakeoff.errors import PlotError
from bakeoff.plots import contours
from bakeoff.plots.against_axis import MOST_PANELS, default_measure, facet_title, facets_of, grid, too_many
from bakeoff.plots.axes import axis_of, in_other_unit, of_one_call
from bakeoff.plots.points import Estimate, Matrix, Point, axis_words
from bakeoff.plots.style import plain, styled
from bakeoff.tables.label_order import number

if TYPE_CHECKING:
    from matplotlib.colors import Normalize

    from bakeoff.plots.picture import Picture

_BETWEEN: Final = re.compile(r",(?![^()]*\))")
"""Commas that separate measures, not those of their arguments."""
_WIDE: Final = 100.0
"""From this ratio of the largest number to the least on, colours are logarithmic."""


def heatmap(matrix: Matrix, measure: str | None = None, x: str | None = None, y: str | None = None) -> Picture:
    """A measure over two axes, as means over seeds; one map per point of the other axes.

    Axes of four numbers or more are drawn as numbers, logarithmic where they are spread so, with lines of equal value
    and a sign where a run failed, and where not all seeds have a number. Others have a cell for each pair of labels,
    with its number. By default x and y are the axes with the most labels. Several measures, with commas between them,
    have a panel each (`_several`). Raises BakeoffError as `sweep` does.
    """
    names = _BETWEEN.split(measure or "")
    if len(names) > 1:
        return _several(matrix, [each.strip() for each in names], *two_axes(matrix, x, y))
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


def _several(matrix: Matrix, names: Sequence[str], x: str, y: str) -> Picture:
    """A panel of cells for each measure, with colours of its own: logarithmic where its numbers span a factor of 100.

    BakeoffError for a measure of several flows, if a third axis varies, and for more cells than have numbers.
    """
    third = [axis for axis in matrix.axes if axis not in (x, y)]
    if third:
        raise PlotError(f"{matrix.title}: several measures: '{third[0]}' varies too; expected two axes, as by -k")
    whats = [of_one_call(name) for name in names]
    columns, rows = matrix.axes[x], matrix.axes[y]
    if len(columns) * len(rows) > contours.MOST_NUMBERS:
        raise PlotError(
            f"{matrix.title}: several measures: {len(columns)} x {len(rows)} points; expected at most "
            f"{contours.MOST_NUMBERS}, as by -k"
        )
    with styled():
        together = replace(whats[0], label=", ".join(what.label for what in whats), path="")
        tall = max(3.0, 0.25 * min(len(rows), 60) + 2.2)
        made, axes = grid(matrix, [(name,) for name in names], together, row_inch=tall)
        for one, name, what in zip(axes, names, whats, strict=True):
            cells = {}
            for point in matrix.points:
                several = list(point.measured(what).values())
                if len(several) > 1:
                    raise PlotError(f"{matrix.title}: '{name}': several values per run; expected one, as '{name}(1)'")
                if several:
                    cells[point.axes[x], point.axes[y]] = several[0]
            norm = _norm([seen.found["mean"] for seen in cells.values() if seen.found is not None])
            contours.cells(one, cells, columns, rows, norm=norm, narrow=True)
            one.set_title(plain(what.text), fontsize=10, loc="left")
            one.set_xlabel(plain(axis_words(x)))
            if one is axes[0]:
                one.set_ylabel(plain(axis_words(y)))
            else:
                one.tick_params(labelleft=False)
    return made


def _norm(numbers: Sequence[float]) -> Normalize:
    """From 0, or logarithmic: from the least number above 0, at which the colours of 0 end."""
    from matplotlib.colors import LogNorm, Normalize, SymLogNorm

    above = [number for number in numbers if number > 0]
    if not above or max(above) < _WIDE * min(above):
        return Normalize(min([0.0, *numbers]), max([*numbers, 0.0]) or 1.0)
    if len(above) == len(numbers):
        return LogNorm(min(above), max(above))
    return SymLogNorm(min(above), vmin=0.0, vmax=max(above), linscale=0.3)


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
