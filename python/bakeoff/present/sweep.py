"""Measures of a campaign against the axes of its matrix: lines with intervals, and heat maps."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from bakeoff.errors import BakeoffError
from bakeoff.measure import interval, summary_of
from bakeoff.present import caption, colours, contours
from bakeoff.present.measures import Measure, measure_of, values
from bakeoff.present.order import by_value, number
from bakeoff.present.rows import finished
from bakeoff.present.shown import MOST_LINES, Shown
from bakeoff.present.style import plain, styled
from bakeoff.present.words import engine_of
from bakeoff.results import measured

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from bakeoff.measure import Interval
    from bakeoff.present.panels import Picture
    from bakeoff.results import Result
    from bakeoff.results.summary import Summary

MOST_PANELS: Final = 16


@dataclass(frozen=True)
class Point:
    """The repetitions of one run."""

    axes: Mapping[str, str]
    results: tuple[Result, ...]

    def intervals(self, measure: Measure) -> dict[str, Interval]:
        """The measure over the seeds, by flow, probe or queue; of many flows by control, as their mean."""
        collected: dict[str, list[float]] = {}
        if measure.expression:
            known = [number for result in self.results if (number := _taken(result, measure.path)) is not None]
            return {"": interval([number * measure.scale for number in known])} if known else {}
        for summary in self.summaries:
            found = values(summary, measure)
            if measure.path.startswith("flows.") and len(found) > MOST_LINES:
                shares: dict[str, list[float]] = {}
                for name, value in found.items():
                    shares.setdefault(f"mean over all {self.control(name)} flows", []).append(value)
                found = {name: sum(several) / len(several) for name, several in shares.items()}
            for name, value in found.items():
                collected.setdefault(name, []).append(value)
        return {name: interval(several) for name, several in collected.items()}

    @cached_property
    def summaries(self) -> list[Summary]:
        """The measures of each repetition."""
        return [summary_of(result) for result in self.results]

    def control(self, flow: str) -> str:
        """What a flow ran; the name itself if it is no flow."""
        known = self.summaries[0].flows.get(flow)
        if known is None:
            match = re.fullmatch(r"mean over all (.+) flows", flow)
            return match[1] if match else flow
        return colours.control(known.cc, known.transport)


def _taken(result: Result, text: str) -> float | None:
    """What a run gives for an expression: as it was taken when the run ended, or taken now."""
    from bakeoff.claims.evaluate import numbers

    kept = measured(result)
    return kept[text] if text in kept else numbers(result, (text,))[text]


@dataclass(frozen=True)
class Matrix:
    """The runs of one scenario and engine, by their points."""

    title: str
    points: list[Point]
    axes: dict[str, list[str]] = field(default_factory=dict)
    """The axes along which something varies, with their labels in order."""
    failed: Sequence[Mapping[str, str]] = field(default_factory=list)
    """Points of which no run ended well."""

    def numeric(self, axis: str) -> str | None:
        """The unit of an axis whose labels are all numbers of one unit; None of others."""
        found = [number(label) for label in self.axes[axis]]
        units = {one[1] for one in found if one is not None}
        return units.pop() if None not in found and len(units) == 1 else None


def matrices(results: Iterable[Result]) -> list[Matrix]:
    """The matrices of results: one for each scenario and engine of which a run is finished."""
    groups: dict[tuple[str, str, str], dict[tuple[tuple[str, str], ...], list[Result]]] = {}
    every = list(results)
    for result in finished(every):
        groups.setdefault(_of(result), {}).setdefault(_point(result), []).append(result)
    failed: dict[tuple[str, str, str], dict[tuple[tuple[str, str], ...], None]] = {}
    for result in every:
        if not result.ok and _point(result) not in groups.get(_of(result), {}):
            failed.setdefault(_of(result), {})[_point(result)] = None
    made = []
    for (suite, scenario, engine), points in groups.items():
        labels: dict[str, dict[str, None]] = {}
        for point in points:
            for axis, label in point:
                labels.setdefault(axis, {})[label] = None
        varied = {axis: sorted(several, key=by_value) for axis, several in labels.items() if len(several) > 1}
        several_engines = len({key[2] for key in groups if key[:2] == (suite, scenario)}) > 1
        title = f"{suite}/{scenario}" + (f" on {engine}" if several_engines else "")
        lost = [dict(point) for point in failed.get((suite, scenario, engine), {})]
        made.append(Matrix(title, [Point(dict(p), tuple(r)) for p, r in points.items()], varied, lost))
    if not made:
        raise BakeoffError("no finished run to draw")
    return made


def _of(result: Result) -> tuple[str, str, str]:
    return result.resolved["suite"], result.resolved["scenario"], engine_of(result)


def _point(result: Result) -> tuple[tuple[str, str], ...]:
    at = result.resolved
    return tuple(dict(at.get("point") or {"run": at["run"]}).items())


def sweep(matrix: Matrix, measure: str | None = None, x: str | None = None) -> Picture:
    """A measure against a numeric axis: lines for flows or for the labels of other axes, bands for intervals.

    Bands are 95 % intervals over seeds. `x` is by default the numeric axis with the most labels. Raises BakeoffError
    for an unknown measure or axis, without a numeric axis, and for more panels than anybody looks at.
    """
    from bakeoff.present import panels

    name = measure or default_measure(matrix, "sweep")
    what = measure_of(name)
    x = _chosen_x(matrix, x)
    unit = matrix.numeric(x)
    rest = [axis for axis in matrix.axes if axis != x]
    # One thing per run: the other axes are lines, as far as eyes can tell them apart; several: they are panels.
    lined = [] if "*" in what.path else list(rest)
    while lined and _combinations(matrix, lined) > MOST_LINES:
        lined.pop(0)
    faceted = [axis for axis in rest if axis not in lined]
    facets = _facets(matrix, faceted)
    found = [(point, point.intervals(what)) for point in matrix.points]
    if not any(several for _, several in found):
        raise BakeoffError(f"{matrix.title}: no run has the measure '{name}'")
    with styled():
        made, axes = _grid(matrix, facets, what)
        looks: dict[tuple[str, ...], tuple[str, str, str]] = {}
        panel_of = {}
        for one, facet in zip(axes, facets, strict=True):
            panel = panels.Panel(one, what.unit, "measure")
            made.panels.append(panel)
            panel_of[facet] = panel
            one.set_title(_facet_title(faceted, facet, len(facets)), fontsize=10, loc="left")
            lines: dict[tuple[str, ...], dict[float, Interval]] = {}
            for point, several in found:
                if tuple(point.axes.get(axis, "") for axis in faceted) != facet:
                    continue
                at = number(point.axes[x])
                assert at is not None
                for entity, share in several.items():
                    key = (*(point.axes.get(axis, "") for axis in lined), entity)
                    lines.setdefault(key, {})[at[0]] = share
                    looks.setdefault(key, _look(matrix, point, lined, key, looks))
            for key, series in sorted(lines.items(), key=lambda pair: list(looks).index(pair[0])):
                _line(panel, series, looks[key])
        _x_axis(
            axes,
            [at[0] for label in matrix.axes[x] if (at := number(label)) is not None],
            f"{x} [{unit}]" if unit else x,
        )
        _outer_labels(made, axes, what.text)
        panels.share([made])
        for panel in made.panels:
            panel.fixed = (0.0, 1.05) if what.limits[1] == 1 else None
        panels.finish(made)
        panels.legend(made, _entries(looks, matrix, lined))
    return made


def heatmap(matrix: Matrix, measure: str | None = None, x: str | None = None, y: str | None = None) -> Picture:
    """A measure over two axes, as means over seeds; one map per point of the other axes.

    Axes of four numbers or more are drawn as numbers, logarithmic where they are spread so, with lines of equal value
    and a sign where a run failed. Others have a cell for each pair of labels, with its number. By default x and y are
    the axes with the most labels. Raises BakeoffError as `sweep` does.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    from bakeoff.present import panels

    name = measure or default_measure(matrix, "heatmap")
    what = measure_of(name)
    x, y = _two_axes(matrix, x, y)
    faceted = [axis for axis in matrix.axes if axis not in (x, y)]
    points = _facets(matrix, faceted)
    found = [(point, point.intervals(what)) for point in matrix.points]
    entities = list(dict.fromkeys(entity for _, several in found for entity in several))
    if not entities:
        raise BakeoffError(f"{matrix.title}: no run has the measure '{name}'")
    facets = [(*facet, entity) for facet in points for entity in entities]
    if len(facets) > MOST_PANELS:
        raise _too_many(len(facets), [*faceted, "flow"])
    numbers = [share["mean"] for _, several in found for share in several.values()]
    low, high = min(numbers), 1.0 if what.limits[1] == 1 else max(numbers)
    # Differences that nobody would call one have no colours of their own.
    if 0 <= low < 0.3 * high or high - low < 0.01 * abs(high):
        low = min(low, 0.0)
    norm = Normalize(min(low, 0.5) if what.limits[1] == 1 else low, high if high > low else low + 1.0)
    numeric = all(matrix.numeric(axis) is not None and len(matrix.axes[axis]) >= contours.LEAST for axis in (x, y))
    with styled():
        tall = 4.6 if numeric else max(3.0, 0.42 * min(len(matrix.axes[y]), 24) + 1.4)
        made, axes = _grid(matrix, facets, what, row_inch=tall)
        fields = []
        for one, facet in zip(axes, facets, strict=True):
            cells = {
                (point.axes[x], point.axes[y]): several[facet[-1]]["mean"]
                for point, several in found
                if tuple(point.axes.get(axis, "") for axis in faceted) == facet[:-1] and facet[-1] in several
            }
            if numeric:
                fields.append(_field(matrix, cells, facet[:-1], faceted, (x, y)))
                contours.draw(one, fields[-1], norm)
            else:
                contours.cells(one, cells, matrix.axes[x], matrix.axes[y], norm=norm)
            one.set_title(_facet_title([*faceted, ""], facet, len(facets)), fontsize=10, loc="left")
            for axis, label in ((x, one.set_xlabel), (y, one.set_ylabel)):
                unit = matrix.numeric(axis) if numeric else None
                label(plain(f"{axis} [{unit}]" if unit else axis))
        bar = made.colorbar(
            ScalarMappable(norm, "cividis"), ax=list(axes), label=f"{what.text}, mean over seeds", pad=0.015
        )
        bar.outline.set_visible(False)
        if numeric:
            panels.legend(made, contours.entries(fields))
    return made


def _field(
    matrix: Matrix,
    cells: Mapping[tuple[str, str], float],
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
    values = {place(labels): value for labels, value in cells.items()}
    return contours.Field(values, failed - set(values))


def default_kind(matrix: Matrix) -> str:
    """Lines where a numeric axis has five labels or more, a heat map where that makes too many panels, else bars."""
    numeric = [axis for axis in matrix.axes if matrix.numeric(axis) is not None and len(matrix.axes[axis]) >= 5]
    if not numeric:
        return "bars"
    x = max(numeric, key=lambda axis: len(matrix.axes[axis]))
    if _combinations(matrix, [axis for axis in matrix.axes if axis != x]) <= MOST_PANELS:
        return "sweep"
    two = _two_axes(matrix, None, None)
    return "heatmap" if _combinations(matrix, [a for a in matrix.axes if a not in two]) <= MOST_PANELS else "bars"


def default_measure(matrix: Matrix, kind: str) -> str:
    """What is shown where nothing is asked for: rates; in a heat map one number per run."""
    if kind == "sweep":
        return "goodput"
    several = any(len(point.results[0].resolved["flows"]) > 1 for point in matrix.points)
    return "jain" if several else "utilisation"


def _line(panel: Any, series: Mapping[float, Interval], look: tuple[str, str, str]) -> None:  # noqa: ANN401
    import numpy as np

    colour, marker, dash = look
    at = sorted(series)
    mean = np.array([series[x]["mean"] for x in at])
    half = np.array([series[x]["ci95"] or 0.0 for x in at])
    panel.axes.fill_between(at, mean - half, mean + half, color=colour, alpha=0.2, linewidth=0, zorder=2)
    panel.axes.plot(at, mean, color=colour, marker=marker, linestyle=dash, linewidth=1.8, markersize=6,
                    markeredgecolor="white", markeredgewidth=0.5, zorder=3)  # fmt: skip
    panel.saw(np.maximum(mean - half, 0.0))
    panel.saw(mean + half)


def _look(
    matrix: Matrix, point: Point, lined: Sequence[str], key: tuple[str, ...], known: Mapping[tuple[str, ...], Any]
) -> tuple[str, str, Any]:
    """The colour of the control where the line is a flow, or where its label names one; else one of the others."""
    words = [*key[:-1], key[-1]]
    control = (
        point.control(key[-1]) if key[-1] else next((w for w in words if colours.control(w) in colours.CONTROLS), "")
    )
    control = colours.control(control) if control else ""
    alike = list(known.values())
    if control in colours.CONTROLS or (key[-1] and point.summaries[0].flows.get(key[-1])):
        colour, marker = colours.looks([control])[control]
    else:
        i = len(alike)
        colour, marker = colours.SERIES[i % len(colours.SERIES)], "os^DvP<>"[i % 8]
    same = sum(look[0] == colour for look in alike)
    return colour, marker, colours.DASHES[same % len(colours.DASHES)]


def _entries(
    looks: Mapping[tuple[str, ...], tuple[str, str, Any]], matrix: Matrix, lined: Sequence[str]
) -> list[Artist]:
    """A line for each look, and what the bands are; an axis is named where its labels begin with a digit."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: list[Artist] = []
    if len(looks) > 1 or any(any(key) for key in looks):
        named = [f"{axis} " if any(label[:1].isdigit() for label in matrix.axes[axis]) else "" for axis in lined]
        entries += [
            Line2D([], [], color=colour, marker=marker, linestyle=dash, linewidth=1.8,
                   label=plain(", ".join(f"{of}{part}" for of, part in zip([*named, ""], key, strict=True) if part))
                   or "all")
            for key, (colour, marker, dash) in looks.items()
        ]  # fmt: skip
    seeds = sorted({len(point.results) for point in matrix.points})
    if seeds == [1]:
        entries.append(Line2D([], [], linestyle="", label="one seed: no intervals"))
    else:
        several = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
        entries.append(Patch(facecolor="#999999", alpha=0.3, label=f"95 % interval over {several} seeds"))
    return entries


def _grid(
    matrix: Matrix, facets: Sequence[tuple[str, ...]], what: Measure, *, row_inch: float = 3.6
) -> tuple[Picture, list[Axes]]:
    from bakeoff.present import panels

    n = len(facets)
    columns = 1 if n == 1 else 2 if n <= 4 else 4 if n > 9 else 3
    rows = -(-n // columns)
    mixed = caption.epochs(result for point in matrix.points for result in point.results)
    made = panels.titled(
        plain(f"{matrix.title}: {what.label}"), _caption(matrix, what), mixed, height_inch=max(6.0, row_inch * rows),
        width_inch=12.0 if columns < 4 else 15.0,
    )  # fmt: skip
    grid = made.subplots(rows, columns, squeeze=False)
    for spare in list(grid.flat)[n:]:
        spare.remove()
    return made, list(grid.flat)[:n]


def _caption(matrix: Matrix, what: Measure) -> list[str]:
    results = [result for point in matrix.points for result in point.results]
    shown = [Shown(result) for result in results]
    fixed = {axis: label for axis, label in matrix.points[0].axes.items() if axis not in matrix.axes}
    ran = sorted({caption.flows(one) for one in shown[:50]})
    said = [", ".join(f"{axis} {label}" for axis, label in fixed.items())] if fixed else []
    said.append(f"{len(matrix.points)} points, {len(results)} runs, engine {engine_of(results[0])}")
    said.append(f"flows: {ran[0]}" if len(ran) == 1 else f"flows, for example: {ran[0]}")
    start, end = shown[0].window
    # An expression may have times of its own: goodput(1, begin="0s", end="60s").
    unless = ", where the measure names no other time" if what.expression else ""
    said.append(f"taken in the steady state, {start:.4g} s to {end:.4g} s{unless}")
    return caption.fitted([*said, *caption.averaged(shown)])


def _chosen_x(matrix: Matrix, x: str | None) -> str:
    names = ", ".join(matrix.axes) or "none"
    if x is not None:
        if x not in matrix.axes:
            raise BakeoffError(f"{matrix.title}: nothing varies along '{x}'; the axes are: {names}")
        if matrix.numeric(x) is None:
            raise BakeoffError(
                f"{matrix.title}: the labels of '{x}' are no numbers of one unit; draw a heatmap or bars"
            )
        return x
    able = [axis for axis in matrix.axes if matrix.numeric(axis) is not None]
    if not able:
        raise BakeoffError(
            f"{matrix.title}: no axis has numbers for labels; the axes are: {names}; draw a heatmap or bars"
        )
    return max(able, key=lambda axis: len(matrix.axes[axis]))


def _two_axes(matrix: Matrix, x: str | None, y: str | None) -> tuple[str, str]:
    for axis in (x, y):
        if axis is not None and axis not in matrix.axes:
            names = ", ".join(matrix.axes) or "none"
            raise BakeoffError(f"{matrix.title}: nothing varies along '{axis}'; the axes are: {names}")
    if x is not None and x == y:
        raise BakeoffError(f"x and y: both are '{x}'; a heat map has two axes")
    by_size = sorted(matrix.axes, key=lambda axis: (matrix.numeric(axis) is None, -len(matrix.axes[axis])))
    free = [axis for axis in by_size if axis not in (x, y)]
    chosen = [axis if axis is not None else (free.pop(0) if free else None) for axis in (x, y)]
    if chosen[0] is None or chosen[1] is None:
        raise BakeoffError(
            f"{matrix.title}: a heat map has two axes; what varies is: {', '.join(matrix.axes) or 'nothing'}"
        )
    return chosen[0], chosen[1]


def _facets(matrix: Matrix, axes: Sequence[str]) -> list[tuple[str, ...]]:
    there = {tuple(point.axes.get(axis, "") for axis in axes) for point in matrix.points}
    if len(there) > MOST_PANELS:
        raise _too_many(len(there), axes)
    return sorted(there, key=lambda facet: [by_value(label) for label in facet])


def _too_many(n: int, axes: Sequence[str]) -> BakeoffError:
    return BakeoffError(
        f"{n} panels for {' and '.join(axis for axis in axes if axis)}; at most {MOST_PANELS} in one picture: choose "
        "runs with a pattern, such as 'suite/scenario/*pie*'"
    )


def _combinations(matrix: Matrix, axes: Sequence[str]) -> int:
    return len({tuple(point.axes.get(axis, "") for axis in axes) for point in matrix.points})


def _facet_title(axes: Sequence[str], facet: Sequence[str], panels: int) -> str:
    words = ", ".join(f"{axis} {label}".strip() for axis, label in zip(axes, facet, strict=True) if label)
    return "\n".join(textwrap.wrap(plain(words), 70 if panels <= 4 else 34, break_on_hyphens=False))


def _outer_labels(made: Picture, axes: Sequence[Axes], label: str) -> None:
    """The measure beside the left column only: in every panel it would say nothing new."""
    lefts = min(one.get_subplotspec().colspan.start for one in axes)  # type: ignore[union-attr]
    for one in axes:
        if one.get_subplotspec().colspan.start == lefts:  # type: ignore[union-attr]
            one.set_ylabel("\n".join(textwrap.wrap(label, 30)))


def _x_axis(axes: Sequence[Axes], at: Sequence[float], label: str) -> None:
    """Ticks where runs are; logarithmic where they span more than a factor of eight."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    for one in axes:
        if min(at) > 0 and max(at) / min(at) >= 8:
            one.set_xscale("log")
        ticks = at if len(at) <= 12 else at[:: -(-len(at) // 12)]
        one.xaxis.set_major_locator(FixedLocator(list(ticks)))
        one.xaxis.set_minor_locator(NullLocator())
        one.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        one.set_xlabel(plain(label))
