"""Measures of a campaign against a numeric axis of its matrix: lines with intervals."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bakeoff.errors import BakeoffError, PlotError
from bakeoff.plots import caption, colours
from bakeoff.plots.axes import Axis, axis_of
from bakeoff.plots.flow_styles import FlowStyles, Style, flow_styles
from bakeoff.plots.plotted_run import MOST_LINES, PlottedRun
from bakeoff.plots.points import Estimate, Matrix, Point, axis_words, order_of
from bakeoff.plots.style import plain, styled
from bakeoff.tables.label_order import number
from bakeoff.tables.run_labels import engine_of

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from bakeoff.plots.panels import Panel
    from bakeoff.plots.picture import Picture

MOST_PANELS: Final = 16
ALL: Final = "all"
"""In the place of the names of axes."""
_APART: Final = 3.0
"""Where panels reach so many times as far as others, each has an axis of its own."""

_APART_PT: Final = 3.0
_MARGIN: Final = 0.045
"""Room on either side of the first and the last value, as a share of what is between."""
_MOST_BANDS: Final = 4
"""Intervals of more lines in a panel are bars, because bands would hide each other."""

Key = tuple[str, ...]
"""What a line is of: the labels of some axes, and the flow, probe or queue."""
Dressed = tuple[str, str, Any]
"""Colour, marker and dash."""


def sweep(
    matrix: Matrix,
    measure: str | None = None,
    x: str | None = None,
    *,
    lines: Sequence[str] | None = None,
    panels: Sequence[str] | None = None,
) -> Picture:
    """A measure against a numeric axis: lines for flows or for the labels of other axes, bands for intervals.

    Bands are 95 % intervals over seeds, cut to what is possible. Where only some seeds have a number their mean is a
    hollow mark that says of how many it is, and where none has there is a cross at the top. `x` is by default the
    numeric axis with the most labels; `lines` and `panels` are the axes whose labels become lines and panels. Raises
    BakeoffError for an unknown measure or axis, without a numeric axis, and for more panels than anybody looks at.
    """
    name = measure or default_measure(matrix, "sweep")
    what = axis_of(name)
    x = _chosen_x(matrix, x)
    lined, faceted = _split(matrix, what, x, lines, panels)
    facets = facets_of(matrix, faceted)
    found = [(point, point.measured(what)) for point in matrix.points]
    if not any(several for _, several in found):
        raise PlotError(f"{matrix.title}: no run has the measure '{name}'")
    looked = flow_styles(result for point in matrix.points for result in point.results)
    series, dressed = _series(matrix, found, x, lined, faceted, looked=looked)
    with styled():
        return _draw(matrix, what, x, lined, faceted, facets=facets, series=series, dressed=dressed)


def _split(
    matrix: Matrix, what: Axis, x: str, lines: Sequence[str] | None, panels: Sequence[str] | None
) -> tuple[list[str], list[str]]:
    """The axes that are lines, and those that are panels."""
    rest = [axis for axis in matrix.axes if axis != x]
    for option, chosen in (("lines", lines), ("panels", panels)):
        for axis in chosen or ():
            if axis not in rest and axis != ALL:
                why = "is along x" if axis == x else "does not vary"
                raise PlotError(f"{option}: '{axis}' {why}; expected one of: {', '.join(rest) or 'nothing'}")
    if lines is not None and panels is not None and ALL not in (*lines, *panels):
        missing = [axis for axis in rest if axis not in lines and axis not in panels]
        if missing:
            raise PlotError(f"lines, panels: missing axis '{missing[0]}'")
    if lines is not None:
        lined = rest if ALL in lines else [axis for axis in rest if axis in lines]
    elif panels is not None:
        lined = [] if ALL in panels else [axis for axis in rest if axis not in panels]
    else:
        # One thing per run: the other axes are lines, as far as eyes can tell them apart; several: they are panels.
        lined = [] if "*" in what.path else list(rest)
        while lined and combinations(matrix, lined) > MOST_LINES:
            lined.pop(0)
    return lined, [axis for axis in rest if axis not in lined]


Series = dict[Key, dict[Key, dict[float, Estimate]]]
"""By panel and line the measure at each value of x."""


def _series(
    matrix: Matrix,
    found: Sequence[tuple[Point, Mapping[str, Estimate]]],
    x: str,
    lined: Sequence[str],
    faceted: Sequence[str],
    *,
    looked: FlowStyles,
) -> tuple[Series, dict[Key, Dressed]]:
    """What each line shows, and its look; lines and looks in the order of their labels."""
    series: Series = {}
    of: dict[Key, tuple[Point, str]] = {}
    for point, several in found:
        facet = tuple(point.axes.get(axis, "") for axis in faceted)
        at = number(point.axes[x])
        assert at is not None
        for entity, seen in several.items():
            key = (*(point.axes.get(axis, "") for axis in lined), entity)
            series.setdefault(facet, {}).setdefault(key, {})[at[0]] = seen
            of.setdefault(key, (point, entity))
    orders = [order_of(axis) for axis in lined]
    # Flows stand as the run has them, behind the labels of the axes.
    places = {key: i for i, key in enumerate(of)}
    ordered = sorted(of, key=lambda key: (*(by(label) for by, label in zip(orders, key, strict=False)), places[key]))
    dressed: dict[Key, Dressed] = {}
    for key in ordered:
        dressed[key] = _look(of[key][0], key, dressed, looked)
    for facet in series:
        series[facet] = {key: series[facet][key] for key in ordered if key in series[facet]}
    return series, dressed


def _draw(
    matrix: Matrix,
    what: Axis,
    x: str,
    lined: Sequence[str],
    faceted: Sequence[str],
    *,
    facets: Sequence[Key],
    series: Series,
    dressed: Mapping[Key, Dressed],
) -> Picture:
    from bakeoff.plots import panels

    made, axes = grid(matrix, facets, what)
    for one, facet in zip(axes, facets, strict=True):
        panel = panels.Panel(one, what.unit, "measure")
        made.panels.append(panel)
        one.set_title(facet_title(faceted, facet, len(facets)), fontsize=10, loc="left")
        drawn = series.get(facet, {})
        bands = len(drawn) <= _MOST_BANDS
        for i, (key, line) in enumerate(drawn.items()):
            _line(panel, line, dressed[key], shift_pt=None if bands else _APART_PT * (i - (len(drawn) - 1) / 2))
    unit = matrix.numeric(x)
    label = f"{axis_words(x)} [{unit}]" if unit else axis_words(x)
    _x_axis(axes, [at[0] for one in matrix.axes[x] if (at := number(one)) is not None], label)
    own = _share_alike(made)
    outer_labels(axes, what.text, every=own)
    for panel in made.panels:
        if what.limits[1] * 1.05 < float("inf") and what.limits == (0.0, what.limits[1]):
            panel.fixed = (0.0, 1.05 * what.limits[1]) if not own else None
    panels.finish(made)
    notes = "the panels' axes differ" if own else ""
    made.add_legend(_entries(series, dressed, matrix, lined, notes=notes))
    return made


def _share_alike(made: Picture) -> bool:
    """Give panels of like size the same limits; whether some are so unlike that they have others."""
    from bakeoff.plots import panels

    groups: list[list[Panel]] = []
    for panel in sorted((one for one in made.panels if one.extent), key=lambda one: one.extent[1] if one.extent else 0):
        assert panel.extent is not None
        least = groups[-1][0].extent if groups else None
        if least is None or panel.extent[1] > _APART * least[1]:
            groups.append([])
        groups[-1].append(panel)
    for index, group in enumerate(groups):
        for panel in group:
            panel.role = f"measure {index}"
    panels.share([made])
    return len(groups) > 1


def _line(panel: Panel, series: Mapping[float, Estimate], look: Dressed, *, shift_pt: float | None) -> None:
    """One line; its intervals are a band, or bars where many lines stand a little beside each other."""
    import numpy as np
    from matplotlib.transforms import ScaledTranslation

    colour, marker, dash = look
    at = sorted(series)
    whole = np.array([series[x].whole for x in at])
    nothing = float("nan")
    mean = np.array([found["mean"] if (found := series[x].found) else nothing for x in at])
    both = np.array([series[x].ends if series[x].whole else (nothing, nothing) for x in at])
    axes = panel.axes
    anchor: dict[str, Any] = {}
    if shift_pt is None:
        axes.fill_between(at, both[:, 0], both[:, 1], color=colour, alpha=0.2, linewidth=0, zorder=2)
    else:
        figure = axes.get_figure(root=True)
        assert figure is not None
        anchor["transform"] = axes.transData + ScaledTranslation(shift_pt / 72, 0, figure.dpi_scale_trans)
        axes.vlines(at, both[:, 0], both[:, 1], color=colour, alpha=0.6, linewidth=1.2, zorder=2, **anchor)
    axes.plot(at, np.where(whole, mean, nothing), color=colour, marker=marker, linestyle=dash, linewidth=1.8,
              markersize=6, markeredgecolor="white", markeredgewidth=0.5, zorder=3, **anchor)  # fmt: skip
    for x in at:
        seen = series[x]
        if seen.found is None:
            axes.plot([x], [0.97], marker="x", color=colour, markersize=8, markeredgewidth=1.8, linestyle="",
                      transform=axes.get_xaxis_transform(), zorder=4, clip_on=False)  # fmt: skip
        elif not seen.whole:
            n, value = seen.found["n"], seen.found["mean"]
            axes.plot([x], [value], marker=marker, color=colour, markerfacecolor="white", markersize=7,
                      markeredgewidth=1.4, linestyle="", zorder=4, **anchor)  # fmt: skip
            axes.annotate(f"{n}/{seen.of}", (x, value), (5, 4), textcoords="offset points", fontsize=8, color=colour)
    panel.saw(mean)
    panel.saw(both)


def _look(point: Point, key: Key, known: Mapping[Key, Dressed], looked: FlowStyles) -> Dressed:
    """The colour of the flow, or of the control that a label names; else one of the others."""
    entity = key[-1]
    run = point.results[0].run
    found: Style | None = None
    if entity in point.summaries[0].flows:
        found = looked.of(run, entity, point.control(entity))
    elif entity:
        control = point.control(entity)
        found = looked.of_control(run, control) if control in colours.CONTROLS else None
    else:
        control = next((name for word in key if (name := colours.control(word)) in looked.controls), "")
        found = looked.of_control(run, control) if control else None
    alike = list(known.values())
    if found is None:
        i = len(alike)
        found = colours.SERIES[i % len(colours.SERIES)], "os^DvP<>"[i % 8]
    same = sum(look[0] == found[0] for look in alike)
    marker = found[1] if same < len(colours.DASHES) else "os^DvP<>"[same % 8]
    return found[0], marker, colours.DASHES[same % len(colours.DASHES)]


def _entries(
    series: Series, dressed: Mapping[Key, Dressed], matrix: Matrix, lined: Sequence[str], *, notes: str
) -> list[Artist]:
    """A line for each look, and what the bands and marks are; an axis is named where its labels begin with a digit."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    entries: list[Artist] = []
    if len(dressed) > 1 or any(any(key) for key in dressed):
        named = [
            f"{axis_words(axis)} " if any(label[:1].isdigit() for label in matrix.axes[axis]) else "" for axis in lined
        ]
        for key, (colour, marker, dash) in dressed.items():
            text = ", ".join(f"{of}{part}" for of, part in zip([*named, ""], key, strict=True) if part)
            look = {"color": colour, "marker": marker, "linestyle": dash, "linewidth": 1.8}
            entries.append(Line2D([], [], label=plain(text) or "all", **look))
    every = [seen for lines in series.values() for line in lines.values() for seen in line.values()]
    seeds = sorted({seen.of for seen in every})
    if seeds == [1]:
        entries.append(Line2D([], [], linestyle="", label="one seed: no intervals"))
    else:
        several = f"{seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"
        label = f"95 % interval over {several} seeds"
        if any(len(lines) > _MOST_BANDS for lines in series.values()):
            entries.append(Line2D([], [], color="#555555", linestyle="", marker="|", markersize=9, label=label))
        else:
            entries.append(Patch(facecolor="#999999", alpha=0.3, label=label))
    grey = {"color": "#555555", "linestyle": ""}
    if any(seen.found is not None and not seen.whole for seen in every):
        label = "n/N: mean of n of N seeds; the others have none"
        entries.append(Line2D([], [], marker="o", markerfacecolor="white", label=label, **grey))  # type: ignore[arg-type]
    if any(seen.found is None for seen in every):
        label = "at the top: no seed has one"
        entries.append(Line2D([], [], marker="x", markeredgewidth=1.8, label=label, **grey))  # type: ignore[arg-type]
    return [*entries, *([Line2D([], [], linestyle="", label=notes)] if notes else [])]


def default_kind(matrix: Matrix) -> str:
    """Lines where a numeric axis has five labels or more, a heat map where that makes too many panels, else bars."""
    from bakeoff.plots.heatmap import two_axes

    numeric = [axis for axis in matrix.axes if matrix.numeric(axis) is not None and len(matrix.axes[axis]) >= 5]
    if not numeric:
        return "bars"
    x = max(numeric, key=lambda axis: len(matrix.axes[axis]))
    if combinations(matrix, [axis for axis in matrix.axes if axis != x]) <= MOST_PANELS:
        return "sweep"
    two = two_axes(matrix, None, None)
    return "heatmap" if combinations(matrix, [a for a in matrix.axes if a not in two]) <= MOST_PANELS else "bars"


def default_measure(matrix: Matrix, kind: str) -> str:
    """What is shown where nothing is asked for: rates; in a heat map one number per run."""
    if kind == "sweep":
        return "goodput"
    several = any(len(point.results[0].run.flows) > 1 for point in matrix.points)
    return "jain" if several else "utilisation"


def grid(matrix: Matrix, facets: Sequence[Key], what: Axis, *, row_inch: float = 3.6) -> tuple[Picture, list[Axes]]:
    """A picture with a panel for each facet."""
    from bakeoff.plots.panels import columns_of
    from bakeoff.plots.picture import titled

    n = len(facets)
    columns = columns_of(n, 4 if n > 9 else 3)
    rows = -(-n // columns)
    mixed = caption.epochs(result for point in matrix.points for result in point.results)
    made = titled(
        plain(f"{matrix.title}: {what.label}"), _caption(matrix, what), mixed, height_inch=max(6.0, row_inch * rows),
        width_inch=12.0 if columns < 4 else 15.0,
    )  # fmt: skip
    places = list(made.subplots(rows, columns, squeeze=False).flat)
    made.leave_empty(places[n:])
    return made, places[:n]


def _caption(matrix: Matrix, what: Axis) -> list[str]:
    results = [result for point in matrix.points for result in point.results]
    plotted = [PlottedRun(result) for result in results]
    fixed = {axis: label for axis, label in matrix.points[0].axes.items() if axis not in matrix.axes}
    ran = sorted({caption.flows(one) for one in plotted[:50]})
    notes = [", ".join(f"{axis_words(axis)} {label}" for axis, label in fixed.items())] if fixed else []
    notes.append(f"{len(matrix.points)} points, {len(results)} runs, engine {engine_of(results[0])}")
    notes.append(f"flows: {ran[0]}" if len(ran) == 1 else f"flows, for example: {ran[0]}")
    start, end = plotted[0].window
    # An expression may have times of its own: goodput(1, begin="0s", end="60s").
    unless = ", where the measure names no other time" if what.expression else ""
    if what.path:
        notes.append(f"taken in the steady state, {start:.4g} s to {end:.4g} s{unless}")
    return [plain(text) for text in (*notes, *caption.averaged(plotted))]


def _chosen_x(matrix: Matrix, x: str | None) -> str:
    names = ", ".join(matrix.axes) or "none"
    if x is not None:
        if x not in matrix.axes:
            raise PlotError(f"{matrix.title}: unknown axis '{x}'; expected one of: {names}")
        if matrix.numeric(x) is None:
            raise PlotError(
                f"{matrix.title}: labels of '{x}' are not numbers of one unit; expected --kind heatmap or bars"
            )
        return x
    able = [axis for axis in matrix.axes if matrix.numeric(axis) is not None]
    if not able:
        raise PlotError(
            f"{matrix.title}: no axis with numeric labels; the axes are: {names}; expected --kind heatmap or bars"
        )
    return max(able, key=lambda axis: len(matrix.axes[axis]))


def facets_of(matrix: Matrix, axes: Sequence[str]) -> list[Key]:
    """The points of these axes, each of which has a panel, in their order."""
    there = {tuple(point.axes.get(axis, "") for axis in axes) for point in matrix.points}
    if len(there) > MOST_PANELS:
        raise too_many(len(there), axes)
    orders = [order_of(axis) for axis in axes]
    return sorted(there, key=lambda facet: [by(label) for by, label in zip(orders, facet, strict=True)])


def too_many(n: int, axes: Sequence[str]) -> BakeoffError:
    """That there would be too many panels."""
    return PlotError(
        f"{n} panels for {' and '.join(axis for axis in axes if axis)}"
        f"; expected at most {MOST_PANELS} in one picture: select runs with a pattern, such as 'suite/scenario/*pie*'"
    )


def combinations(matrix: Matrix, axes: Sequence[str]) -> int:
    """How many points these axes have."""
    return len({tuple(point.axes.get(axis, "") for axis in axes) for point in matrix.points})


def facet_title(axes: Sequence[str], facet: Key, panels: int) -> str:
    """What a panel is of."""
    text = ", ".join(f"{axis_words(axis)} {label}".strip() for axis, label in zip(axes, facet, strict=True) if label)
    return "\n".join(textwrap.wrap(plain(text), 70 if panels <= 4 else 34, break_on_hyphens=False))


def outer_labels(axes: Sequence[Axes], label: str, *, every: bool = False) -> None:
    """The measure beside the left column only: in every panel it would say nothing new."""
    lefts = min(one.get_subplotspec().colspan.start for one in axes)  # type: ignore[union-attr]
    for one in axes:
        if every or one.get_subplotspec().colspan.start == lefts:  # type: ignore[union-attr]
            one.set_ylabel("\n".join(textwrap.wrap(label, 30)))


def _x_axis(axes: Sequence[Axes], at: Sequence[float], label: str) -> None:
    """Ticks where runs are; logarithmic where they span more than a factor of eight."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    for one in axes:
        low, high = min(at), max(at)
        if low > 0 and high / low >= 8:
            one.set_xscale("log")
            room = (high / low) ** _MARGIN
            one.set_xlim(low / room, high * room)
        else:
            room = _MARGIN * (high - low) or 1.0
            one.set_xlim(low - room, high + room)
        ticks = at if len(at) <= 12 else at[:: -(-len(at) // 12)]
        one.xaxis.set_major_locator(FixedLocator(list(ticks)))
        one.xaxis.set_minor_locator(NullLocator())
        one.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.4g}"))
        one.set_xlabel(plain(label))
