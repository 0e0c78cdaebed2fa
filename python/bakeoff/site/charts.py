"""The charts on the page of a run: which there are, which lines they have, and what they say in words.

A chart says the same as the picture of docs/gallery.md with these series: lines and colours come from
`bakeoff.plots.plotted_run`, intervals of means from `plotted.bins`, measures from the run's summary.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from bakeoff.errors import MeasureError
from bakeoff.measure.delays import delay_over_time
from bakeoff.measure.functions import CATALOGUE
from bakeoff.plots import colours
from bakeoff.plots.plotted_run import Line, PlottedRun, bins, lines, means
from bakeoff.plots.queues import queue_lines
from bakeoff.plots.style import plain

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array
    from bakeoff.results.summary import Summary
    from bakeoff.scenario.run import Flow

    Series = tuple[Array, Array]

_MOST_POINTS: Final = 100_000
"""A line of more samples than this, as a trace has, is drawn by the least and the greatest of each interval."""
_MOST_OF_CHART: Final = 400_000
"""Likewise, of all lines of a chart."""
_MOST_LINES: Final = 64
"""Of flows, or of probes, in a chart."""
_WIDTH: Final = 2.0
"""Of a line, in pixels."""
_MOST_MEMBERS: Final = 64
"""Of a group of more flows than this the busiest have lines of their own, beside the line of all."""
_NAMED: Final = 4
"""Of more lines than these the sentence about a chart names the lowest and the highest."""
_CAPACITY: Final = "#8a8a8a"


@dataclass(frozen=True)
class Trace:
    """One line of a chart."""

    label: str
    of: str
    """What it stands for; lines of one flow in several charts have the same."""
    colour: str
    dash: tuple[float, ...]
    style: str
    """`samples` (thin, with thick means), `line`, `steps` (held until the next), `points`, or `thin` (dotted)."""
    series: Series
    """Times [s] and values in the chart's unit."""
    means: Series | None = None
    """Middles [s] of intervals and the means in them, where single samples are noise."""
    mean: float | None = None
    """In the steady state, in the chart's unit."""
    extent: tuple[float, float] | None = None
    """The least and the greatest sample in the steady state."""
    members: tuple[Series, ...] = ()
    """Of a line that stands for several flows: each of them, as means over the same intervals."""


@dataclass(frozen=True)
class Chart:
    """One chart: lines over time in one unit."""

    id: str
    title: str
    unit: str
    traces: list[Trace]
    says: str = ""
    """What it shows, in a sentence or two."""
    top: float | None = None
    """Where the axis ends until somebody zooms, if a line goes far beyond the others."""
    notes: list[str] = field(default_factory=list)


def charts(plotted: PlottedRun, summary: Summary) -> list[Chart]:
    """The charts of a run, in the order of the page; none if it has no samples."""
    every = lines([plotted])
    drawn = _busiest(every, summary)
    of_flows = [
        _rates(plotted, summary, drawn, "goodput"),
        _rates(plotted, summary, drawn, "delivery_rate"),
        _round_trips(plotted, summary, drawn),
        _datagrams(plotted, summary, drawn),
        *_windows(plotted, drawn),
        _retransmissions(plotted, drawn),
        *_applications(plotted, summary, drawn),
    ]
    if len(every) > len(drawn):
        note = f"Of {len(every):,} lines of flows it has the {len(drawn)} with the highest goodput."
        of_flows = [chart and replace(chart, notes=[*chart.notes, note]) for chart in of_flows]
    made = [*of_flows[:4], *_queues(plotted, summary), *of_flows[4:]]
    return [_described(_thin(chart), plotted.window) for chart in made if chart is not None and chart.traces]


def _busiest(drawn: Sequence[Line], summary: Summary) -> list[Line]:
    """The lines with the highest goodput, in their order; of many flows with one line the busiest come first."""

    def goodput(flow: Flow) -> float:
        return summary.flows[flow.name].steady_state.goodput_bps or 0.0

    found = []
    for line in drawn:
        members = line.members
        if len(members) > _MOST_MEMBERS:
            members = tuple(sorted(members, key=lambda member: -goodput(member[1])))
        found.append(replace(line, members=members))
    if len(found) <= _MOST_LINES:
        return found
    most = sorted(found, key=lambda line: -sum(goodput(flow) for _, flow in line.members))[:_MOST_LINES]
    kept = {id(line) for line in most}
    return [line for line in found if id(line) in kept]


def _thin(chart: Chart) -> Chart:
    """The chart with fewer points on each line if it has many lines."""
    most = min(_MOST_POINTS, _MOST_OF_CHART // max(len(chart.traces), 1))
    return replace(chart, traces=[replace(one, series=_thinned(*one.series, most)) for one in chart.traces])


def _described(chart: Chart, window: tuple[float, float]) -> Chart:
    """The chart with its sentence."""
    known = [(trace.label, trace.mean) for trace in chart.traces if trace.mean is not None and trace.style != "thin"]
    when = f"In the steady state, {window[0]:.4g} s to {window[1]:.4g} s"
    if not known:
        text = f"{when}, there are no samples."
    elif len(known) <= _NAMED:
        text = (
            f"{when}, the mean is "
            + ", ".join(f"{with_unit(value, chart.unit)} for {name}" for name, value in known)
            + "."
        )
    else:
        low, high = min(known, key=lambda one: one[1]), max(known, key=lambda one: one[1])
        text = (
            f"{when}, the means of {len(known)} lines lie between {with_unit(low[1], chart.unit)} ({low[0]}) and "
            f"{with_unit(high[1], chart.unit)} ({high[0]})."
        )
    return replace(chart, says=" ".join([text, *chart.notes]))


def with_unit(value: float, unit: str) -> str:
    """A number with its unit, with three or four digits that say something."""
    text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    return f"{text} {unit}" if unit != "1" else text


def _trace(
    plotted: PlottedRun,
    line: Line,
    parts: Sequence[Series],
    *,
    of: str,
    mean: float | None,
    style: str = "samples",
    label: str | None = None,
) -> Trace:
    """A line for one flow, probe or queue; several that are alike are the means over them in each interval."""
    edges, width = bins([plotted])
    middles = edges[:-1] + width / 2
    import numpy as np

    inside = None
    averaged: Series | None = None
    members: tuple[Series, ...] = ()
    if len(parts) == 1:
        time, value = parts[0]
        if style == "samples":
            averaged = _known(middles, means(time, value, edges))
    else:
        rows = [means(time, value, edges) for time, value in parts]
        stack = np.ma.masked_invalid(np.vstack(rows))
        time, value = _known(middles, np.ma.filled(stack.mean(axis=0), np.nan))
        members = tuple(_known(middles, row) for row in rows[:_MOST_MEMBERS])
        style = "line"
    start, end = plotted.window
    within = value[(time >= start) & (time <= end)]
    if len(within):
        inside = (float(within.min()), float(within.max()))
        mean = float(within.mean()) if mean is None else mean
    return Trace(
        label or line.label, of, line.colour, _dash(line.dash), style, _thinned(time, value, _MOST_POINTS), averaged,
        mean if inside else None, inside, members,
    )  # fmt: skip


def _dash(dash: Any) -> tuple[float, ...]:  # noqa: ANN401 (as matplotlib has dashes)
    """Lengths in pixels; matplotlib's are in widths of the line."""
    return () if dash == "-" else tuple(_WIDTH * part for part in dash[1])


def _known(time: Array, value: Array) -> Series:
    import numpy as np

    there = np.isfinite(value)
    return time[there], value[there]


def _thinned(time: Array, value: Array, most: int) -> Series:
    """The least and the greatest sample of each of many equal numbers of samples, in order of time."""
    import numpy as np

    if len(time) <= most:
        return time, value
    size = -(-len(time) // (most // 2))
    starts = np.arange(0, len(time), size)
    ends = np.minimum(starts + size, len(time))
    chosen = [
        at
        for start, end in zip(starts, ends, strict=True)
        for at in sorted({start + int(value[start:end].argmin()), start + int(value[start:end].argmax())})
    ]
    return time[chosen], value[chosen]


def _average(values: Iterable[float | None], scale: float) -> float | None:
    """The mean of measures over the flows of a line, None if one is missing."""
    several = list(values)
    known = [value for value in several if value is not None]
    return sum(known) * scale / len(known) if several and len(known) == len(several) else None


def _key(line: Line) -> str:
    return "flow " + line.label


def _rates(plotted: PlottedRun, summary: Summary, drawn: Sequence[Line], metric: str) -> Chart | None:
    measure = CATALOGUE[metric]
    traces = []
    for line in drawn:
        members = [flow.name for _, flow in line.members if ("flow", flow.name, metric) in plotted.samples]
        if not members:
            continue
        parts = [_scaled(plotted.samples.of("flow", name, metric), 1e-6) for name in members]
        mean = _average((measure.read(summary.flows[name]) for name in members), measure.display[0])
        traces.append(_trace(plotted, line, parts, of=_key(line), mean=mean))
    if not traces:
        return None
    title = measure.label.capitalize()
    highest = max(float(trace.series[1].max()) for trace in traces if len(trace.series[1]))
    for queue in dict.fromkeys(plotted.bottlenecks.values()):
        steps = plotted.capacity(queue)
        # A line far above all that flows reach would press them to the bottom.
        if steps is None or min(steps[1]) / 1e6 > 3 * highest:
            continue
        traces.append(_capacity(f"capacity of {plain(str(queue))}", steps))
    # What reaches an application comes in bursts after a loss: samples of it go far beyond the rate of any link.
    steady = [float(part[1].max()) for one in traces for part in [one.means or one.series] if len(part[1])]
    return _cut(Chart(metric.replace("_", "-"), title, "Mbit/s", traces), 1.1 * max(steady))


def _cut(chart: Chart, top: float) -> Chart:
    """The chart with an axis that ends at `top` and says so, if samples go far beyond it."""
    highest = max((float(one.series[1].max()) for one in chart.traces if len(one.series[1])), default=0.0)
    if not 0 < 1.2 * top < highest:
        return chart
    limit, most = with_unit(top, chart.unit), with_unit(highest, chart.unit)
    note = f"The axis of the whole run is cut at {limit}; samples go up to {most}."
    return replace(chart, top=top, notes=[*chart.notes, note])


def _capacity(label: str, steps: tuple[list[float], list[float]]) -> Trace:
    import numpy as np

    edges, rates = steps
    values = np.array([*rates, rates[-1]]) / 1e6
    return Trace(label, label, _CAPACITY, (), "steps", (np.array(edges), values))


def _scaled(series: Series, scale: float) -> Series:
    return series[0], series[1] * scale


def _round_trips(plotted: PlottedRun, summary: Summary, drawn: Sequence[Line]) -> Chart | None:
    traces = []
    for line in drawn:
        members = [flow.name for _, flow in line.members if ("flow", flow.name, "srtt") in plotted.samples]
        if members:
            parts = [_scaled(plotted.samples.of("flow", name, "srtt"), 1e3) for name in members]
            spreads = [summary.flows[name].srtt_s for name in members]
            mean = _average((spread.mean if spread else None for spread in spreads), 1e3)
            traces.append(_trace(plotted, line, parts, of=_key(line), mean=mean))
    asked = colours.asked_colours(plotted.run)
    answered = [
        (i, probe) for i, probe in enumerate(plotted.run.probes) if ("probe", probe.name, "rtt") in plotted.samples
    ]
    for i, probe in answered[:_MOST_LINES]:
        name = probe.name
        dash = colours.DASHES[i % len(colours.DASHES)]
        look = Line(plain(f"probe {name}"), asked.get(name, colours.PROBE), "", dash=dash)
        spread = summary.probes[name].rtt_s
        parts = [_scaled(plotted.samples.of("probe", name, "rtt"), 1e3)]
        mean = spread.mean * 1e3 if spread else None
        traces.append(_trace(plotted, look, parts, of=f"probe {name}", mean=mean))
    left = f"Of {len(answered):,} probes it has the first {_MOST_LINES}." if len(answered) > _MOST_LINES else ""
    title = "Round-trip times of flows (smoothed) and probes"
    return Chart("round-trip-time", title, "ms", traces, notes=[left] if left else [])


def _datagrams(plotted: PlottedRun, summary: Summary, drawn: Sequence[Line]) -> Chart:
    """One-way delays; on machines whose clocks differ how much longer than the quickest datagram."""
    traces = []
    for line in drawn:
        for metric, more in (("delay", ""), ("delay_variation", ", above the quickest")):
            members = [flow.name for _, flow in line.members if ("flow", flow.name, metric) in plotted.samples]
            if members:
                parts = [_scaled(plotted.samples.of("flow", name, metric), 1e3) for name in members]
                spreads = [summary.flows[name].delay_s for name in members]
                mean = _average((spread.mean if spread else None for spread in spreads), 1e3)
                traces.append(_trace(plotted, line, parts, of=_key(line), mean=mean, label=line.label + more))
    return Chart("one-way-delay", "One-way delay of datagrams", "ms", traces)


def _queues(plotted: PlottedRun, summary: Summary) -> list[Chart]:
    try:
        queues = queue_lines([plotted])
    except MeasureError:
        return []
    return [
        Chart("queue-delay", "Queue delay (sojourn time)", "ms", _queue_delays(plotted, summary, queues)),
        _queue_lengths(plotted, queues),
        Chart("marks", "CE marks", "packets/s", _counted(plotted, queues, "marks")),
        Chart("sce-marks", "SCE marks", "packets/s", _counted(plotted, queues, "sce_marks")),
        Chart("drops", "Drops", "packets/s", _counted(plotted, queues, "drops")),
    ]


Queues = Sequence[tuple[PlottedRun, str, Line]]


def _queue_delays(plotted: PlottedRun, summary: Summary, queues: Queues) -> list[Trace]:
    traces = []
    for _, name, line in queues:
        known = summary.queues.get(name)
        for metric, part in (("sojourn", ""), ("sojourn_l", "L"), ("sojourn_c", "C")):
            try:
                found = (
                    delay_over_time(plotted.samples, name) if not part else plotted.samples.of("queue", name, metric)
                )
            except MeasureError:
                continue
            if part:
                spread = (known.parts or {}).get(part) if known else None
            else:
                spread = known.as_time_passes_s if known else None
            look = line if not part else _part_of(line, part)
            mean = spread.mean * 1e3 if spread else None
            traces.append(_trace(plotted, look, [_scaled(found, 1e3)], of=f"queue {look.label}", mean=mean))
    return traces


def _part_of(line: Line, part: str) -> Line:
    """The look of the L or the C queue within a queue: low latency as Prague has it, classic as CUBIC."""
    colour = colours.CONTROLS["prague" if part == "L" else "cubic"][0]
    return replace(line, label=f"{line.label}, its {part} queue", colour=colour, dash=colours.DASHES[1 + (part == "C")])


def _queue_lengths(plotted: PlottedRun, queues: Queues) -> Chart:
    # Bytes say little more than packets; where there are no packets they are all there is.
    packets = any(("queue", name, "qlen") in plotted.samples for _, name, _ in queues)
    metric, unit, scale = ("qlen", "packets", 1.0) if packets else ("backlog", "kB", 1e-3)
    traces = [
        _trace(
            plotted, line, [_scaled(plotted.samples.of("queue", name, metric), scale)], of=f"queue {name}", mean=None
        )
        for _, name, line in queues
        if ("queue", name, metric) in plotted.samples
    ]
    return Chart("queue-length", "Queue length", unit, traces)


def _counted(plotted: PlottedRun, queues: Queues, metric: str) -> list[Trace]:
    """How fast counters of the queues grow; nothing where none of them ever does."""
    traces = []
    for _, name, line in queues:
        if ("queue", name, metric) in plotted.samples:
            grown = _per_second(plotted.samples.of("queue", name, metric))
            traces.append(_trace(plotted, line, [grown], of=f"queue {name}", mean=None))
    return traces if any(trace.series[1].any() for trace in traces) else []


def _per_second(counter: Series) -> Series:
    """How much a counter grew in each interval between samples, per second; one that began again counts from zero."""
    import numpy as np

    time, count = np.concatenate([[0.0], counter[0]]), np.concatenate([[0.0], counter[1]])
    lasted, grown = np.diff(time), np.diff(count)
    real = lasted > 0
    return time[1:][real], np.where(grown < 0, count[1:], grown)[real] / lasted[real]


def _windows(plotted: PlottedRun, drawn: Sequence[Line]) -> list[Chart]:
    windows, inner = [], []
    top = 0.0
    for line in drawn:
        names = [flow.name for _, flow in line.members if flow.transport == "tcp"]
        found = [one for name in names if (one := plotted.every(name, "cwnd")) is not None]
        if not found:
            continue
        windows.append(_trace(plotted, line, found, of=_key(line), mean=None, style="line"))
        top = max(top, *(float(value.max()) for _, value in found))
        if len(line.members) > 1:
            continue
        threshold = plotted.every(names[0], "ssthresh")
        if threshold is not None:
            label = f"ssthresh of {line.label}"
            windows.append(_trace(plotted, line, [threshold], of=label, mean=None, style="thin", label=label))
        alpha = plotted.every(names[0], "alpha")
        if alpha is not None:
            inner.append(_trace(plotted, line, [alpha], of=_key(line), mean=None, style="line"))
    notes = ["It has the window after every ACK."] if plotted.trace is not None and windows else []
    title = "Congestion window and slow start threshold (ssthresh)"
    return [
        # Thresholds before the first loss may be huge.
        _cut(Chart("cwnd", title, "packets", windows, notes=notes), 1.5 * top),
        Chart("alpha", "Alpha, the average share of marks", "1", inner),
    ]


def _retransmissions(plotted: PlottedRun, drawn: Sequence[Line]) -> Chart:
    traces = []
    for line in drawn:
        members = [flow.name for _, flow in line.members if ("flow", flow.name, "retrans") in plotted.samples]
        if members:
            parts = [_per_second(plotted.samples.of("flow", name, "retrans")) for name in members]
            traces.append(_trace(plotted, line, parts, of=_key(line), mean=None))
    ever = any(trace.series[1].any() for trace in traces)
    return Chart("retransmissions", "Retransmissions", "packets/s", traces if ever else [])


_VIDEO: Final = (
    ("segment_rate", "video-rate", "Rate of the video's segments", "Mbit/s", 1e-6, "steps"),
    ("buffer", "video-buffer", "Video that the player holds", "s", 1.0, "line"),
)


def _applications(plotted: PlottedRun, summary: Summary, drawn: Sequence[Line]) -> list[Chart]:
    """Completion times of objects, and what a player sees."""
    objects = []
    made: dict[str, list[Trace]] = {chart: [] for _, chart, *_ in _VIDEO}
    for line in drawn:
        for _, flow in line.members:
            name = flow.name
            if ("flow", name, "fct") in plotted.samples:
                found = _scaled(plotted.samples.of("flow", name, "fct"), 1e3)
                spread = summary.flows[name].fct
                mean = spread.fct_s.mean * 1e3 if spread and spread.fct_s else None
                objects.append(_trace(plotted, line, [found], of=_key(line), mean=mean, style="points"))
            for metric, chart, _, _, scale, style in _VIDEO:
                if ("flow", name, metric) in plotted.samples:
                    found = _scaled(plotted.samples.of("flow", name, metric), scale)
                    made[chart].append(_trace(plotted, line, [found], of=_key(line), mean=None, style=style))
    return [
        Chart("completion", "Completion times of objects, by when each was due", "ms", objects),
        *(Chart(chart, title, unit, made[chart]) for _, chart, title, unit, *_ in _VIDEO),
    ]
