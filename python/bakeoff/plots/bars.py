"""Bar charts over a matrix: who gets what, per queue and set of flows."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff.errors import PlotError
from bakeoff.measure import Mean, ends
from bakeoff.plots import caption, colours
from bakeoff.plots.flow_styles import UNKNOWN, FlowStyles, Style, flow_styles
from bakeoff.plots.plotted_run import PlottedRun, control_words, short_names, way_of
from bakeoff.plots.style import plain, save, styled
from bakeoff.references import Reference
from bakeoff.tables.control_connections import control_connections
from bakeoff.tables.label_order import by_value, number
from bakeoff.tables.rows import FlowRow, Row, choose_references, finished, qdisc_order, rows
from bakeoff.tables.run_labels import engine_of

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from bakeoff.plots.picture import Picture
    from bakeoff.results import Result

MOST_CHARTS: Final = 60
MOST_PANELS: Final = 16
_MOST_FLOWS: Final = 8
"""Of more flows in one run those with one control, direction and queue share a bar."""
_MOST_BARS: Final = 80
_MOST_GROUPS: Final = 16
_WAYS: Final = {"up": "↑", "down": "↓"}
_INCHES: Final = 0.26
"""Room that a bar needs."""
ALL: Final = "all"
"""In the place of the names of axes: every axis that makes neither a group nor a bar."""


@dataclass(frozen=True)
class Bar:
    """One bar: a flow, or the flows of one control that meet in one queue, in Mbit/s."""

    name: str
    look: Style
    control: str
    height: float
    low: float
    high: float
    reference: float | None = None
    shares: str | None = None
    """The queue that this long flow shares with others."""
    few: str = ""
    """`2/3`, where only some seeds have a rate, of which the bar is the mean."""
    late: tuple[float, float] | None = None
    """Median and 99th percentile of the delay of the queue, in ms."""


@dataclass(frozen=True)
class Chart:
    """What one panel shows."""

    title: str
    group_axis: str
    rows: list[Row]
    named_by: Sequence[str] = field(default_factory=list)
    """Axes whose labels name the bars, in the place of the flows' names."""


def bars(
    results: Iterable[Result],
    path: Path,
    *,
    reference: str | Sequence[Reference] | None = None,
    metric: str | None = None,
    suffix: str = ".svg",
) -> list[Path]:
    """Draw grouped bars into the folder `path`: a file per scenario and point of the axes that make no group or bar.

    Named as in l4s-tests scenario 1, `rttfair_cc_qdisc_50mbit_20ms_20ms.svg`. See `charts`. Raises BakeoffError as
    `charts` does, for an unknown suffix, and for a file that cannot be written.
    """
    made = charts(results, reference=reference, metric=metric)
    return [save(picture, path / f"{name}{suffix}") for name, picture in made.items()]


def charts(
    results: Iterable[Result],
    *,
    reference: str | Sequence[Reference] | None = None,
    metric: str | None = None,
    x: str | None = None,
    panels: Sequence[str] = (),
) -> dict[str, Picture]:
    """Grouped bars, by name: groups along x are qdiscs, in a group stand the runs, of each run a bar per flow.

    `x` is another axis for the groups. Without it, and without an axis `qdisc`, they are the labels of the last axis
    that says something else than which controls compete. `panels` are axes (or `all`) whose points become panels of
    one picture, where they make a picture each by default. Runs with one flow each are in one picture, with the delay
    of the queue. Error bars are 95 % intervals over seeds or, where flows of one control share a bar, from the least
    to the greatest of them; diamonds are the reference. `reference` and `metric` as in `tables.render`.

    Raises BakeoffError if there is no finished run, for an unknown reference, metric or axis, and for more charts than
    anybody looks at.
    """
    given = list(results)
    table = [row for row in rows(given, choose_references(given, reference), metric) if row.flows]
    if not table:
        raise PlotError("no flows in finished runs; expected --kind queue for runs without flows")
    parts: dict[str, dict[tuple[str, ...], Chart]] = {}
    for scenario in dict.fromkeys((row.suite, row.scenario) for row in table):
        part = [row for row in table if (row.suite, row.scenario) == scenario]
        for name, at, chart in _planned(part, x, panels):
            parts.setdefault(re.sub(r"[^\w.()+-]", "_", name), {})[at] = chart
    if len(parts) > MOST_CHARTS:
        raise PlotError(
            f"{len(parts)} bar charts of {len(table)} runs; expected at most {MOST_CHARTS}: select runs with a "
            "pattern, or use --kind sweep or heatmap"
        )
    many = max(map(len, parts.values()))
    if many > MOST_PANELS:
        raise PlotError(
            f"{many} panels in one picture of bars; expected at most {MOST_PANELS}: use --panels with fewer axes"
        )
    whole = finished(given)
    looked = flow_styles(whole)
    tools = {_name(one): [flow for flow, _ in control_connections(one)] for one in whole}
    made = {}
    for name, found in parts.items():
        named = {_of(row) for chart in found.values() for row in chart.rows}
        kept = [result for result in whole if _name(result) in named]
        notes = caption.averaged([PlottedRun(result) for result in kept])
        made[name] = _drawn(list(found.values()), looked, tools, notes, caption.epochs(kept))
    return made


def _planned(part: Sequence[Row], x: str | None, wanted: Sequence[str]) -> Iterable[tuple[str, tuple[str, ...], Chart]]:
    """Of the rows of a scenario: the picture that each belongs to, its panel there, and the panel."""
    axes = list(dict.fromkeys(axis for row in part for axis in row.axes))
    for axis in [*([x] if x is not None else []), *(axis for axis in wanted if axis != ALL)]:
        if axis not in axes:
            names = ", ".join(axes) or "none"
            raise PlotError(
                f"bars: '{axis}' is not an axis of {part[0].suite}/{part[0].scenario}; expected one of: {names}"
            )
    varied = [axis for axis in axes if len({row.axes.get(axis) for row in part}) > 1]
    free = [axis for axis in axes if not _names_flows(axis, part)]
    few = [a for a in free if a in varied and len({row.axes.get(a) for row in part}) <= _MOST_GROUPS]
    group = x if x is not None else next((axis for axis in ["qdisc", "queue", *reversed(free)] if axis in few), "")
    apart = [axis for axis in free if axis not in (group, "qdisc")]
    alone = all(len(row.flows) == 1 for row in part) and len(part) <= _MOST_BARS and not wanted
    # A run of one flow is one bar: all of them stand side by side, and say which they are.
    named_by = [axis for axis in varied if axis != group] if alone else []
    in_panels = [axis for axis in apart if axis in wanted or ALL in wanted]
    if "qdisc" in varied and group != "qdisc" and not alone:
        apart, in_panels = [*apart, "qdisc"], [*in_panels, *(["qdisc"] if "qdisc" in wanted or ALL in wanted else [])]
    engines = len({row.engine for row in part}) > 1
    found: dict[tuple[str, tuple[str, ...]], Chart] = {}
    for row in part:
        files = [] if alone else [row.axes.get(axis, "") for axis in apart if axis not in in_panels]
        name = "_".join([re.sub(r"^s\d+-", "", row.scenario), "cc_qdisc", *files, *([row.engine] if engines else [])])
        at = tuple(row.axes.get(axis, "") for axis in in_panels if axis in varied)
        title = ", ".join(f"{axis} {row.axes.get(axis, '')}" for axis in in_panels if axis in varied)
        chart = found.setdefault((name, at), Chart(title, group, [], named_by))
        chart.rows.append(row)
    for (name, at), chart in sorted(found.items(), key=lambda one: [by_value(label) for label in one[0][1]]):
        yield name, at, chart


Of = tuple[str, str, str, str]
"""Suite, scenario, run and engine."""


def _of(row: Row) -> Of:
    return row.suite, row.scenario, row.run, row.engine


def _name(result: Result) -> Of:
    """What tells the row of a result from others."""
    at = result.run
    return at.suite, at.scenario, at.run, engine_of(result)


def _names_flows(axis: str, table: Sequence[Row]) -> bool:
    """Whether an axis says nothing but which congestion controls compete."""
    for row in table:
        known = {_control(flow) for flow in row.flows} | {flow.name for flow in row.flows} | {"vs"}
        label = row.axes.get(axis, "")
        if colours.control(label) not in known and not set(re.split(r"[-/, ]+", label)) <= known:
            return False
    return True


def _drawn(
    found: Sequence[Chart],
    looked: FlowStyles,
    tools: Mapping[Of, Collection[str]],
    notes: Sequence[str],
    mixed: Sequence[str],
) -> Picture:
    """A picture with a panel for each chart; `tools`: flows of a run that are not drawn."""
    from bakeoff.plots import panels
    from bakeoff.plots.picture import titled

    table = [row for chart in found for row in chart.rows]
    many = any(len(row.flows) > _MOST_FLOWS for row in table) or any(
        sum(len(row.flows) for row in chart.rows) > _MOST_BARS for chart in found
    )
    stacks = {
        id(row): _bars_of(row, looked, chart.named_by, tools.get(_of(row), ()), together=many)
        for chart in found
        for row in chart.rows
    }
    widest = max(sum(len(stacks[id(row)]) for row in chart.rows) for chart in found) * _INCHES + 2
    columns = panels.columns_of(len(found), max(1, min(4 if len(found) > 9 else 3, int(16 // widest))))
    lines = -(-len(found) // columns)
    late = any(bar.late for stack in stacks.values() for bar in stack)
    first = table[0]
    same = {axis: label for axis, label in first.axes.items() if len({row.axes.get(axis) for row in table}) == 1}
    title = f"{first.suite}/{first.scenario}  " + ", ".join(f"{axis} {label}" for axis, label in same.items())
    failed = sum(any(note.startswith("check ") for note in row.notes) for row in table)
    flat = [bar for stack in stacks.values() for bar in stack]
    with styled():
        made = titled(
            plain(title),
            [*_ran(table), *notes],
            [*mixed, *([f"self-checks failed in {failed} runs"] if failed else [])],
            height_inch=(6.2 if len(found) == 1 else 3.4 * lines) * (1.5 if late else 1.0),
            width_inch=max(12.0, widest * columns),
        )
        grid = made.subplots(lines * (2 if late else 1), columns, squeeze=False)
        made.leave_empty([] if late else list(grid.flat)[len(found) :])
        delivered = any(flow.rates_bps["delivery_rate"] for row in table for flow in row.flows)
        rate = "delivery rate" if first.metric == "delivery_rate" and delivered else "goodput"
        for i, chart in enumerate(found):
            axes = grid.flat[i]
            panel = panels.Panel(axes, "Mbit/s", f"rate {chart.rows[0].rate_bps}")
            panel.room = 0.14
            made.panels.append(panel)
            _panel(made, panel, chart, stacks, columns)
            if i % columns == 0:
                axes.set_ylabel(f"{rate} [Mbit/s]" if lines > 1 else f"{rate} in the steady state [Mbit/s]")
        if late:
            _delays(made, grid.flat[1], found[0], stacks)
        panels.share([made])
        panels.finish(made)
        made.add_legend(_entries(table, flat, together=many))
    return made


def _ordered(chart: Chart) -> tuple[list[Row], list[str]]:
    """The rows of a panel, and its groups, in their order."""
    table = sorted(chart.rows, key=_matrix_order)
    groups = list(dict.fromkeys(row.axes.get(chart.group_axis, "") for row in table))
    if all(number(label) is not None for label in groups):
        groups.sort(key=by_value)
    elif any(row.order is None for row in table):
        groups.sort(key=qdisc_order)
    if chart.named_by:
        table.sort(key=lambda row: [by_value(row.axes.get(axis, "")) for axis in chart.named_by])
    return table, groups


def _places(chart: Chart, stacks: Mapping[int, list[Bar]]) -> tuple[list[tuple[float, Row]], dict[str, float], float]:
    """Where the bars of each run begin, the middles of the groups, and where the last bar ends."""
    table, groups = _ordered(chart)
    left, begins, middles = 0.0, [], {}
    for group in groups:
        edge = left
        for row in (row for row in table if row.axes.get(chart.group_axis, "") == group):
            begins.append((left, row))
            left += len(stacks[id(row)]) + (0.0 if chart.named_by else 0.6)
        gap = 0.0 if chart.named_by else 0.6
        middles[group] = (edge + left - gap - 1.0) / 2
        left += 1.0
    return begins, middles, left


def _panel(made: Picture, panel: object, chart: Chart, stacks: Mapping[int, list[Bar]], columns: int) -> None:
    from bakeoff.plots.panels import Panel

    assert isinstance(panel, Panel)
    axes = panel.axes
    axes.grid(visible=False, axis="x")
    begins, middles, end = _places(chart, stacks)
    ticks: dict[float, str] = {}
    for left, row in begins:
        stack = stacks[id(row)]
        for i, bar in enumerate(stack):
            _bar(axes, left + i, bar)
            ticks[left + i] = bar.name
            panel.values.append((0.0, max(bar.high, bar.reference or 0.0)))
        for queue in row.summaries[0].shared:
            share = [i for i, bar in enumerate(stack) if bar.shares == queue]
            jain = Mean.over(getattr(summary.shared.get(queue), "jain", None) for summary in row.summaries)
            if jain is not None and len(share) > 1:
                axes.text(left + (share[0] + share[-1]) / 2, 0.985, f"{jain:.2f}", ha="center", va="top", fontsize=8,
                          color="#666666", transform=axes.get_xaxis_transform())  # fmt: skip
    _x_axis(made, axes, ticks, middles, end=end, columns=columns)
    if chart.title:
        axes.set_title(plain(chart.title), fontsize=10, loc="left", pad=20 if len(middles) > 1 else 6)


def _x_axis(
    made: Picture, axes: Axes, ticks: Mapping[float, str], middles: Mapping[str, float], *, end: float, columns: int
) -> None:
    """The bars' names below them and the groups' above, with lines between groups."""
    axes.set_xlim(-1.0, end - 1.0)
    room = 0.86 * made.get_figwidth() / columns / max(end, 1.0)
    upright = max(len(name) for name in ticks.values()) * 0.085 > room
    axes.set_xticks(list(ticks), [plain(name) for name in ticks.values()], rotation=90 if upright else 0, fontsize=9)
    axes.tick_params(axis="x", length=0)
    places = sorted(middles.values())
    letters = int(9.5 * made.get_figwidth() / columns / max(len(middles), 1))
    for name, middle in middles.items():
        text = "\n".join(textwrap.wrap(plain(name), max(letters, 6), break_on_hyphens=False))
        axes.text(middle, 1.01, text, transform=axes.get_xaxis_transform(), ha="center", va="bottom",
                  fontsize=11 if columns == 1 else 9)  # fmt: skip
    edges = sorted(ticks)
    for one, other in pairwise(places):
        before = max(edge for edge in edges if edge <= (one + other) / 2 + 1e-9)
        after = min(edge for edge in edges if edge > before)
        axes.axvline((before + after) / 2, color="#bbbbbb", linewidth=0.8)


def _delays(made: Picture, axes: Axes, chart: Chart, stacks: Mapping[int, list[Bar]]) -> None:
    """Below the rates: the delay of the queue, its median as a bar, up to its 99th percentile as a line."""
    from bakeoff.plots import panels

    panel = panels.Panel(axes, "ms", "queue delay")
    made.panels.append(panel)
    axes.grid(visible=False, axis="x")
    begins, middles, end = _places(chart, stacks)
    ticks = {}
    for left, row in begins:
        for i, bar in enumerate(stacks[id(row)]):
            ticks[left + i] = bar.name
            if bar.late is not None:
                median, high = bar.late
                axes.bar(left + i, median, 0.86, color=bar.look[0], edgecolor="white", linewidth=0.6)
                axes.plot([left + i] * 2, [median, high], color="black", linewidth=1.2)
                axes.plot(left + i, high, "_", color="black", markersize=8)
                panel.values.append((0.0, high))
    _x_axis(made, axes, ticks, middles, end=end, columns=1)
    axes.set_ylabel("queue delay, median and\n99th percentile [ms]")


def _bars_of(
    row: Row, looked: FlowStyles, named_by: Sequence[str], left_out: Collection[str], *, together: bool
) -> list[Bar]:
    """A bar for each flow, or for all flows of one control, direction and queue."""
    flows = {flow.name: flow for flow in row.document.flows}
    queue = {name: flow.bottleneck for name, flow in row.summaries[0].flows.items()}
    shared = {flow: queue for queue, each in row.summaries[0].shared.items() for flow in each.flows}
    way = {name: way_of(row.document, name) for name in flows}
    kept = [flow for flow in row.flows if flow.name not in left_out]
    names = short_names([flow.name for flow in kept])[0]
    # Flows that meet in a queue stand beside each other, those of the first flow's first.
    order = list(dict.fromkeys((way[flow.name], queue[flow.name]) for flow in kept))
    kept.sort(key=lambda flow: order.index((way[flow.name], queue[flow.name])))
    both = len({way[flow.name] for flow in kept}) > 1
    late = (row.queue_delay_p50_s, row.queue_delay_p99_s)
    found: list[Bar] = []
    alike: dict[tuple[str, str, str | None], list[Bar]] = {}
    for flow in kept:
        share = flow.rate_bps(row.metric)
        mean = share["mean"] if share else 0.0
        low, high = (ends(share, (0.0, row.capacity_bps(flow.name))) if share else None) or (mean, mean)
        control = _control(flow)
        mark = f"{_WAYS[way[flow.name]]} " if both else ""
        bar = Bar(
            ", ".join(row.axes.get(axis, "") for axis in named_by) or mark + names[flow.name],
            looked.of(row.document, flow.name, control),
            control,
            mean / 1e6,
            low / 1e6,
            high / 1e6,
            flow.reference.value / 1e6 if flow.reference is not None else None,
            shared.get(flow.name),
            f"{share['n']}/{row.n}" if share and share["n"] < row.n else "",
            (1e3 * late[0], 1e3 * late[1]) if named_by and late[0] is not None and late[1] is not None else None,
        )
        found.append(bar)
        alike.setdefault((control, way[flow.name], queue[flow.name]), []).append(bar)
    if not together:
        return found
    made = []
    for (control, to, _), several in alike.items():
        heights = [bar.height for bar in several]
        mark = f"{_WAYS[to]} " if both else ""
        name = (
            several[0].name
            if len(several) == 1
            else f"{mark}{control_words(control)} \N{MULTIPLICATION SIGN}{len(several)}"
        )
        mean = sum(heights) / len(heights)
        name = several[0].name if len(several) == 1 else name
        made.append(Bar(name, several[0].look, control, mean, min(heights), max(heights), shares=several[0].shares))
    return made


def _bar(axes: Axes, x: float, bar: Bar) -> None:
    axes.bar(x, bar.height, 0.86, color=bar.look[0], edgecolor="white", linewidth=0.6)
    if bar.high > bar.low:
        axes.errorbar(x, bar.height, yerr=[[bar.height - bar.low], [bar.high - bar.height]], color="black", capsize=3,
                      linewidth=1.2)  # fmt: skip
    if bar.few:
        axes.annotate(bar.few, (x, bar.high), (0, 3), textcoords="offset points", ha="center", fontsize=8)
    if bar.reference is not None:
        axes.plot(x, bar.reference, "D", color="black", markerfacecolor="white", markersize=6, zorder=4)


def _ran(table: Sequence[Row]) -> list[str]:
    """For every congestion control what ran: version and negotiated ECN."""
    from bakeoff.tables.run_labels import ecn_words

    ran = {
        "UDP"
        if flow.transport == "udp"
        else f"{'TCP' if flow.cc in (None, UNKNOWN) else flow.cc}, {ecn_words(flow.ecn)}"
        for row in table
        for flow in row.flows
    }
    return [plain(f"ran: {'; '.join(sorted(ran))}; engine {', '.join(sorted({row.engine for row in table}))}")]


def _entries(table: Sequence[Row], drawn: Sequence[Bar], *, together: bool) -> list[Artist]:
    """The legend: what each colour is, and what else is drawn."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    by_control: dict[str, dict[str, str]] = {}
    for bar in drawn:
        by_control.setdefault(bar.control, {}).setdefault(bar.look[0], bar.name)
    handles: list[Artist] = []
    for control, seen in by_control.items():
        # A scenario may give the flows of one control colours of their own.
        named = {colour: control_words(control) if len(seen) == 1 else name for colour, name in seen.items()}
        sorted_ = sorted(named.items(), key=lambda one: by_value(one[1]))
        handles += [Patch(facecolor=colour, label=plain(label)) for colour, label in sorted_]
    names = sorted({row.reference for row in table if row.reference and any(flow.reference for flow in row.flows)})
    if names:
        label = f"published: {', '.join(names)}"
        handles.append(Line2D([], [], marker="D", color="black", markerfacecolor="white", linestyle="", label=label))
    seeds = {row.n for row in table} - {1}
    if together:
        handles.append(Line2D([], [], marker="_", markersize=12, color="black", label="least to greatest of the flows"))
    elif seeds:
        label = f"95 % interval over {'/'.join(str(n) for n in sorted(seeds))} seeds"
        handles.append(Line2D([], [], marker="_", markersize=12, color="black", label=label))
    if any(bar.few for bar in drawn):
        handles.append(Line2D([], [], linestyle="", label="n/N: mean of n of N seeds; the others have no rate"))
    if any(bar.name[:1] in _WAYS.values() for bar in drawn):
        handles.append(Line2D([], [], linestyle="", label="↑ up, ↓ down"))
    if sum(bar.shares is not None for bar in drawn) > 1:
        handles.append(Line2D([], [], linestyle="", label="small figures: Jain's index of the bars below"))
    return handles


def _control(flow: FlowRow) -> str:
    return colours.control(flow.cc or UNKNOWN, flow.transport)


def _matrix_order(row: Row) -> tuple[bool, int, list[str], str]:
    """As the scenario's matrix has the runs; by controls where the results do not say it."""
    return row.order is None, row.order or 0, [_control(flow) for flow in row.flows], row.run
