"""Distributions: cumulative ones, their reverse, and boxes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from bakeoff.errors import MeasureError
from bakeoff.measure.delays import delay_over_time
from bakeoff.plots import caption
from bakeoff.plots.colours import DASHES, SERIES
from bakeoff.plots.plotted_run import Line, PlottedRun, bins, direction, lines, means
from bakeoff.plots.queues import queue_lines
from bakeoff.plots.style import plain
from bakeoff.scenario.run import Short
from bakeoff.tables import run_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bakeoff.measure.samples import Array
    from bakeoff.plots.panels import Panel
    from bakeoff.plots.picture import Picture
    from bakeoff.scenario.run import Probe

Part = tuple[Line, "Array"]
Box = tuple[str, str, "Array"]
"""The name below a box, its colour, and the values."""
_TOTAL: Final = "#555555"
_ORDER: Final = 5.0


def ping_cdf(several: Sequence[PlottedRun]) -> Picture:
    """The share of a probe's answers that took at most so long."""
    parts = [(line, rtt) for line, rtt, _, _ in _answers(several)]
    return _cumulative(several, parts, "round-trip time of a probe [ms]")


def queue_cdf(several: Sequence[PlottedRun]) -> Picture:
    """The share of the time in which the queue delayed packets by at most so much."""
    parts = []
    for plotted, name, line in queue_lines(several):
        with suppress(MeasureError):
            parts.append((line, delay_over_time(plotted.samples, name, plotted.window)[1] * 1e3))
    step = several[0].run.sample_interval_s * 1e3
    return _cumulative(several, parts, f"queue delay, means over {step:g} ms [ms]", what="queue delays")


def fct_cdf(several: Sequence[PlottedRun]) -> Picture:
    """The share of short flows that were complete after at most so long."""
    parts = []
    for line in lines(several, lambda plotted, flow: isinstance(flow.source, Short)):
        times = [t for plotted, flow in line.members for t in _completions(plotted, flow.name)]
        if times:
            parts.append((line, _array(times)))
    if not parts:
        raise MeasureError(f"{run_labels.title(several[0].result)}: no finished short flows, which fct_cdf needs")
    return _cumulative(several, parts, "flow completion time [s]", log=True)


def induced_latency_cdf(several: Sequence[PlottedRun]) -> Picture:
    """The share of a probe's answers that waited longer than so much beyond the empty path's round-trip time."""
    parts = []
    for line, rtt, plotted, probe in _answers(several):
        parts.append((line, rtt - plotted.base_rtt_s(probe) * 1e3))
    return _cumulative(several, parts, "induced latency: round-trip time above the empty path's [ms]", reverse=True)


def box_totals(several: Sequence[PlottedRun]) -> Picture:
    """Boxes over the samples of the steady state: rates of all flows and their sums, and round-trip times.

    Directions whose totals differ by more than five times have panels of their own.
    """
    from bakeoff.plots import panels
    from bakeoff.plots.picture import titled

    alone = len(several) == 1
    by_way: dict[str, list[Box]] = {}
    delays: list[Box] = []
    for plotted in several:
        of = f"{plain(plotted.label)}\n" if plotted.label else ""
        ways = list(dict.fromkeys(direction(plotted, flow) for flow in plotted.flows))
        for way in ways:
            name = "total" + (f" {way}" if len(ways) > 1 else "")
            added = _total(plotted, [f for f in plotted.flows if direction(plotted, f) == way])
            if len(added):
                by_way.setdefault(way, []).append((of + name, _TOTAL, added))
        for line in lines([replace(plotted, label="")]) if alone else ():
            goodput = _of(plotted, line, "goodput", 1e-6)
            if goodput is not None and len(plotted.flows) > 1:
                by_way.setdefault(direction(*line.members[0]), []).append((of + line.label, line.colour, goodput))
            srtt = _of(plotted, line, "srtt", 1e3)
            if srtt is not None:
                delays.append((f"{of}{line.label}\nTCP RTT", line.colour, srtt))
        for probe in plotted.run.probes:
            if ("probe", probe.name, "rtt") in plotted.samples:
                rtt = plotted.samples.of("probe", probe.name, "rtt", plotted.window)[1] * 1e3
                delays.append((f"{of}{plain(probe.name)}", panels.probe_colour(plotted, probe.name), rtt))
    both = [*_rate_panels(by_way), *([(delays, "round-trip time [ms]", "ms")] if delays else [])]
    if not both:
        raise MeasureError(f"{run_labels.title(several[0].result)}: no samples of flows or probes in the steady state")
    most = max(len(part[0]) for part in both)
    notes = [*caption.lines(several), _boxes_are(several), *caption.averaged(several)]
    made = titled(
        caption.title(several), notes, caption.failures(several), height_inch=4.2 * len(both),
        width_inch=max(12.0, 0.55 * most + 2),
    )  # fmt: skip
    for axes, (boxes, label, unit) in zip(made.subplots(len(both), 1, squeeze=False).flat, both, strict=True):
        panel = panels.Panel(axes, unit, label)
        made.panels.append(panel)
        axes.set_ylabel(label)
        axes.grid(visible=False, axis="x")
        _boxes(panel, boxes)
    return made


def _rate_panels(by_way: Mapping[str, list[Box]]) -> list[tuple[list[Box], str, str]]:
    """What one panel shows, or each of one direction where one would be a line along the foot of the other's."""
    highest = [max(float(values.mean()) for _, _, values in boxes) for boxes in by_way.values()]
    if len(highest) > 1 and max(highest) > _ORDER * min(highest):
        return [(boxes, f"{way}load: goodput [Mbit/s]", "Mbit/s") for way, boxes in by_way.items()]
    every = [box for boxes in by_way.values() for box in boxes]
    # Totals first.
    every.sort(key=lambda box: box[1] != _TOTAL)
    return [(every, "goodput [Mbit/s]", "Mbit/s")] if every else []


def _boxes_are(several: Sequence[PlottedRun]) -> str:
    step = several[0].run.sample_interval_s * 1e3
    _, width = bins(several)
    return (
        f"box: quartiles and median in the steady state of rates over {width:g} s and of delays every {step:g} ms; "
        "whiskers: 1st and 99th percentile; cross: mean"
    )


def _boxes(panel: Panel, boxes: Sequence[Box]) -> None:
    import numpy as np

    axes, stats = panel.axes, []
    for _, _, values in boxes:
        low, q1, median, q3, high = np.percentile(values, [1, 25, 50, 75, 99])
        stats.append({"whislo": low, "q1": q1, "med": median, "q3": q3, "whishi": high, "mean": values.mean()})
        panel.saw(np.array([low, high, values.mean()]))
    drawn = axes.bxp(stats, showfliers=False, showmeans=True, patch_artist=True, widths=0.55,
                     meanprops={"marker": "x", "markeredgecolor": "black", "markersize": 6},
                     medianprops={"color": "black", "linewidth": 1.4})  # fmt: skip
    for patch, (_, colour, _) in zip(drawn["boxes"], boxes, strict=True):
        patch.set(facecolor=colour, alpha=0.55, edgecolor="black")
    longest = max(len(part) for name, _, _ in boxes for part in name.split("\n"))
    upright = longest * len(boxes) > 120
    axes.set_xticks(range(1, len(boxes) + 1), [name for name, _, _ in boxes], rotation=90 if upright else 0,
                    fontsize=9.5)  # fmt: skip
    axes.tick_params(axis="x", length=0)


def _cumulative(
    several: Sequence[PlottedRun], parts: Sequence[Part], label: str, *, what: str = "samples", log: bool = False,
    reverse: bool = False,
) -> Picture:  # fmt: skip
    from matplotlib.ticker import FuncFormatter

    from bakeoff.plots import panels

    if not parts:
        raise MeasureError(f"{run_labels.title(several[0].result)}: no {what} to draw in the steady state")
    made = panels.picture(several, 1, notes=caption.averaged(several))
    [axes] = made.axes
    most = 1
    for line, values in parts:
        ordered, share = steps(values, reverse=reverse)
        most = max(most, len(values))
        axes.plot(ordered, share, color=line.colour, linestyle=line.dash, linewidth=1.8, drawstyle="steps-post",
                  **panels.spaced(ordered, line.marker))  # fmt: skip
    axes.set_xlabel(label)
    if log:
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.grid(visible=True, which="minor", axis="x", linewidth=0.3)
    elif reverse:
        axes.set_xlim(left=min(0.0, *(float(values.min()) for _, values in parts)))
    else:
        _cut_tail(axes, [values for _, values in parts], label.rpartition("[")[2].rstrip("]"))
    if reverse:
        axes.set_yscale("log")
        axes.set_ylim(0.7 / most, 1.15)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:g} %"))
        axes.set_ylabel("share of answers above")
    else:
        axes.set_ylim(0, 1.02)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:g} %"))
        axes.set_ylabel("cumulative share")
    entries = [panels.line_entry(replace(line, label=f"{line.label}, n = {len(values)}")) for line, values in parts]
    made.add_legend(entries)
    return made


def _cut_tail(axes: Axes, several: Sequence[Array], unit: str) -> None:
    """End the axis where the longest-tailed line is at 99.5 %, if that makes the rest visible, and say so."""
    import numpy as np

    end = max(float(np.quantile(values, 0.995)) for values in several)
    low, high = min(float(values.min()) for values in several), max(float(values.max()) for values in several)
    if high - low > 1.5 * (end - low) > 0:
        axes.set_xlim(low - 0.03 * (end - low), end + 0.03 * (end - low))
        axes.set_title(
            f"the axis is cut: data go up to {high:.4g} {unit}", loc="right", fontsize=9, color="#b00000", pad=3
        )


def steps(values: Array, *, reverse: bool = False) -> tuple[Array, Array]:
    """The ordered values and the share of all that are at most each; in reverse the share that is above it.

    Of n values the i-th in order, counted from 1, has i / n at or below it, and 1 - (i - 1) / n at or above it: the
    greatest has 1 / n, so that it is seen on a logarithmic axis.
    """
    import numpy as np

    ordered = np.sort(values)
    n = len(ordered)
    return (ordered, 1 - np.arange(n) / n) if reverse else (ordered, np.arange(1, n + 1) / n)


def _answers(several: Sequence[PlottedRun]) -> list[tuple[Line, Array, PlottedRun, Probe]]:
    """Each probe's round-trip times in the steady state [ms]."""
    from bakeoff.plots import panels

    found: list[tuple[Line, Array, PlottedRun, Probe]] = []
    names = {probe.name for plotted in several for probe in plotted.run.probes}
    for plotted in several:
        for probe in plotted.run.probes:
            name = probe.name
            if ("probe", name, "rtt") not in plotted.samples:
                continue
            try:
                rtt = plotted.samples.of("probe", name, "rtt", plotted.window)[1]
            except MeasureError:
                continue
            at = len(found)
            asked = panels.probe_colour(plotted, name)
            colour = asked if asked != SERIES[0] else SERIES[at % len(SERIES)]
            label = (
                plotted.label if plotted.label and len(names) == 1 else f"{plotted.label}: {name}".removeprefix(": ")
            )
            label = plain(label) + _lost(plotted, name, len(rtt))
            look = Line(label, colour, "os^DvP<>"[at % 8], dash=DASHES[at // len(SERIES) % len(DASHES)])
            found.append((look, rtt * 1e3, plotted, probe))
    if not found:
        raise MeasureError(f"{run_labels.title(several[0].result)}: no answered probes in the steady state")
    return found


def _lost(plotted: PlottedRun, name: str, answered: int) -> str:
    if ("probe", name, "lost") not in plotted.samples:
        return ""
    time, _ = plotted.samples.of("probe", name, "lost")
    lost = int(((time >= plotted.window[0]) & (time <= plotted.window[1])).sum())
    return f", {100 * lost / (lost + answered):.2g} % lost" if lost else ""


def _completions(plotted: PlottedRun, name: str) -> list[float]:
    if ("flow", name, "fct") not in plotted.samples:
        return []
    time, fct = plotted.samples.of("flow", name, "fct")
    start, end = plotted.window
    return [float(took) for at, took in zip(time, fct, strict=True) if start <= at <= end]


def _total(plotted: PlottedRun, flows: Sequence[Any]) -> Array:
    """Sums of goodputs in the steady state [Mbit/s]."""
    from bakeoff.plots.time_series import total

    return _over_bins(plotted, *total(plotted, flows))


def _over_bins(plotted: PlottedRun, time: Array, rate: Array) -> Array:
    """Means of what lies in the steady state: in 50 ms a receiver can get more than the line carries, after a loss."""
    import numpy as np

    edges, width = bins([plotted])
    found = means(time, rate, edges)
    inside = (edges[:-1] >= plotted.window[0] - width / 2) & (edges[1:] <= plotted.window[1] + width / 2)
    kept: Array = found[inside & ~np.isnan(found)]
    return kept


def _of(plotted: PlottedRun, line: Line, metric: str, scale: float) -> Array | None:
    """The samples of all flows of a line in the steady state."""
    import numpy as np

    def read(name: str) -> Array:
        if metric == "goodput":
            return _over_bins(plotted, *plotted.samples.of("flow", name, metric))
        return plotted.samples.of("flow", name, metric, plotted.window)[1]

    names = [flow.name for _, flow in line.members if ("flow", flow.name, metric) in plotted.samples]
    found = []
    for name in names:
        try:
            found.append(read(name))
        except MeasureError:
            continue
    return np.concatenate(found) * scale if found else None


def _array(values: Sequence[float]) -> Array:
    import numpy as np

    return np.array(values, dtype=float)
