"""Runs as pictures need them: their samples, and which lines stand for which flows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from bakeoff.errors import BakeoffError, MeasureError
from bakeoff.measure import Samples, bottleneck, summary_of
from bakeoff.measure import path as path_of
from bakeoff.measure.bottleneck import capacity
from bakeoff.measure.delays import base_rtt
from bakeoff.plots import colours
from bakeoff.plots.flow_styles import UNKNOWN, flow_styles
from bakeoff.plots.gaming import is_gamed
from bakeoff.plots.style import plain
from bakeoff.scenario.run import Bytes
from bakeoff.scenario.timeline import Timeline
from bakeoff.tables import run_labels
from bakeoff.tables.control_connections import control_connections

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array
    from bakeoff.results import Result
    from bakeoff.scenario.run import Flow, Run, Traffic

MOST_LINES = 8
"""More lines than this in one panel nobody tells apart: flows that are alike then share one."""
_MOST_OF_A_COLOUR = len(colours.DASHES)
_ENDS_WITH_ITS_FLOW = frozenset(
    {"delivery_rate", "goodput", "srtt", "min_rtt", "cwnd", "ssthresh", "pacing_rate", "inflight"}
)
"""Metrics that keep their last value after a flow has ended, or say 0."""
_MARKERS = "os^DvPX*"
_LONG_PREFIX = 4
_ENDS = re.compile(r"(\[[^\]]+\]|[^\[\]>:]+):(\d+)>(\[[^\]]+\]|[^\[\]>:]+):(\d+)( \(\d+\))?")
"""`10.0.0.1:32768>10.0.0.3:5201`, as flows of captures are called."""


@dataclass(frozen=True)
class PlottedRun:
    """One run in a picture; `label` says which one where there are several."""

    result: Result
    label: str = ""

    @cached_property
    def samples(self) -> Samples:
        """Its samples, those of a flow up to its end. MeasureError if it has none."""
        parts = self.result.parts
        if not parts:
            raise MeasureError(f"{run_labels.title(self.result)}: the run has no series")
        return Samples(
            {
                (kind, name, metric): _until(found, self._end_of[name])
                if kind == "flow" and metric in _ENDS_WITH_ITS_FLOW and name in self._end_of
                else found
                for (kind, name, metric), found in parts.items()
            }
        )

    @cached_property
    def _end_of(self) -> Mapping[str, float]:
        """When each flow ends [s], by its name."""
        return {flow.name: self._ends_s(flow) for flow in self.run.flows}

    def _ends_s(self, flow: Flow) -> float:
        """When a flow stops sending; of a transfer with an end when its last byte arrives."""
        received = self.result.parts.get(("flow", flow.name, "received"))
        if isinstance(flow.source, Bytes) and received is not None and len(received[1]):
            time, count = received
            complete = count >= flow.source.bytes
            if complete.any():
                return min(float(flow.stop_s), float(time[complete.argmax()]))
        return float(flow.stop_s)

    @property
    def run(self) -> Run:
        """What was asked for."""
        return self.result.run

    @property
    def end_s(self) -> float:
        """When it ended."""
        return self.run.duration_s

    @property
    def window(self) -> tuple[float, float]:
        """The steady state, in seconds."""
        start, end = self.run.window_s
        return float(start), float(end)

    @cached_property
    def flows(self) -> Sequence[Flow]:
        """Its flows as the resolved run has them, without the control connections of tools in a capture."""
        left_out = {name for name, _ in self.left_out}
        return [flow for flow in self.run.flows if flow.name not in left_out]

    @cached_property
    def left_out(self) -> Sequence[tuple[str, float]]:
        """Control connections of tools in a capture, and their payload in bytes."""
        return control_connections(self.result)

    @cached_property
    def names(self) -> Mapping[str, str]:
        """What its flows are called in pictures: of addresses with ports what tells them apart."""
        return short_names([flow.name for flow in self.flows])[0]

    @cached_property
    def between(self) -> str:
        """What the names of a recording's flows leave out, in words; empty if nothing."""
        return short_names([flow.name for flow in self.flows])[1]

    @cached_property
    def trace(self) -> Samples | None:
        """What congestion controls told after every ACK; None without a trace."""
        try:
            return Samples(self.result.trace_parts())
        except BakeoffError:
            return None

    def traced(self, name: str, metric: str) -> tuple[Array, Array] | None:
        """Times [s] and values of a flow's metric after every ACK; None without a trace of it."""
        part = ("flow", name, f"cc.{metric}")
        if self.trace is None or part not in self.trace:
            return None
        return _until(self.trace.of(*part), self._end_of[name])

    def every(self, name: str, metric: str) -> tuple[Array, Array] | None:
        """The same, from the samples where there is no trace."""
        traced = self.traced(name, metric)
        if traced is not None or ("flow", name, metric) not in self.samples:
            return traced
        return self.samples.of("flow", name, metric)

    def ran(self, flow: Flow) -> tuple[str | None, str | None]:
        """The congestion control and the feedback that a flow had, as the engine reported it."""
        if self.result.record.kept == "measures":
            flow_summary = summary_of(self.result).flows[flow.name]
            return flow_summary.cc if flow.transport == "tcp" else None, flow_summary.ecn
        counted = self.result.counters.flow(flow.name)
        return (counted.cc if flow.transport == "tcp" else None), counted.ecn

    def control(self, flow: Flow) -> str:
        """The congestion control that a flow ran, without its version."""
        cc, _ = self.ran(flow)
        return colours.control(cc or flow.cc, flow.transport)

    @cached_property
    def bottlenecks(self) -> dict[str, str | None]:
        """The queue that each flow fights for, by the flow's name; None if nothing on its path has a rate."""
        return {flow.name: self._bottleneck(flow) for flow in self.flows}

    def _bottleneck(self, flow: Flow) -> str | None:
        try:
            return bottleneck(self.run, flow, self.window, self._timeline).queue
        except MeasureError:
            return None

    def crosses(self, flow: Flow, queue: str | None) -> bool:
        """Whether a flow goes through the interface `queue`, which is a bottleneck of its run."""
        if queue is None:
            return self.bottlenecks[flow.name] is None
        # In a picture of several runs, another one may have its bottleneck where this one has none.
        return queue in self.bottlenecks.values() and tuple(queue.split(">")) in path_of(self.run, flow)

    def capacity(self, queue: str | None) -> tuple[list[float], list[float]] | None:
        """Edges [s] and rates [bit/s] of a bottleneck over the run, None if it has no known rate."""
        return self._capacities.get(queue)

    @cached_property
    def _capacities(self) -> dict[str | None, tuple[list[float], list[float]]]:
        """Of each bottleneck, by the way of the first flow that has it."""
        first: dict[str | None, Flow] = {}
        for flow in self.flows:
            first.setdefault(self.bottlenecks[flow.name], flow)
        found: dict[str | None, tuple[list[float], list[float]]] = {}
        for queue, flow in first.items():
            with suppress(MeasureError):
                edges, rates = capacity(self.run, flow, (0.0, self.end_s), self._timeline)
                if queue is not None and max(rates) < float("inf"):
                    found[queue] = edges, rates
        return found

    @cached_property
    def _timeline(self) -> Timeline:
        return Timeline(self.run)

    def base_rtt_s(self, flow_or_probe: Traffic) -> float:
        """The round-trip time of its path while all queues are empty."""
        return base_rtt(self.run, flow_or_probe)

    def rate_metric(self, flow: Flow, metric: str) -> str:
        """`metric`, or `goodput` for what has none: UDP, and many connections under one name."""
        return metric if ("flow", flow.name, metric) in self.samples else "goodput"


def _until(series: tuple[Array, Array], end_s: float) -> tuple[Array, Array]:
    """The samples of a series up to a time."""
    time, value = series
    last = time.searchsorted(end_s + 1e-9, "right")
    return time[:last], value[:last]


@dataclass(frozen=True)
class Line:
    """One line of a panel: a flow or several that are alike, a probe, or a queue."""

    label: str
    colour: str
    marker: str
    members: tuple[tuple[PlottedRun, Flow], ...] = ()
    """The flows that it stands for."""
    dash: Any = "-"
    key: tuple[Any, ...] = field(default=(), compare=False)
    end: str = field(default="", compare=False)
    """What stands at its end, where other lines of its run have the same congestion control."""


def bottlenecks(several: Sequence[PlottedRun]) -> list[str | None]:
    """The bottlenecks of the flows, in the order in which the first flow comes through them; others follow."""
    found = dict.fromkeys(queue for plotted in several for queue in plotted.bottlenecks.values())
    ways = (
        path_of(plotted.result.run, plotted.result.run.named(flow.name))
        for plotted in several
        for flow in plotted.flows
    )
    way = [f"{node}>{peer}" for node, peer in next(ways, [])]
    return sorted(found, key=lambda queue: way.index(queue) if queue in way else len(way))


def direction(plotted: PlottedRun, flow: Flow) -> str:
    """`up` for what goes the way of the first flow, `down` for what comes back, by the ends of the path."""
    return way_of(plotted.result.run, flow.name)


def way_of(run: Run, flow: str) -> str:
    """The same of a resolved run and the name of a flow."""
    there = path_of(run, run.flows[0])
    back = {(peer, node) for node, peer in there}
    return "down" if back & set(path_of(run, run.named(flow))) else "up"


def short_names(names: Sequence[str]) -> tuple[dict[str, str], str]:
    """The names without what all of them share, if all are addresses with ports; and what was left out, in words."""
    found = {name: match for name in names if (match := _ENDS.fullmatch(name))}
    if len(found) < len(names) or not names:
        return {name: name for name in names}, ""
    hosts = sorted({match[side] for match in found.values() for side in (1, 3)})
    if len(hosts) == 2:
        ports = {name: f"{match[2]} > {match[4]}{match[5] or ''}" for name, match in found.items()}
        if len(set(ports.values())) == len(names):
            return ports, f"names are ports, between {hosts[0]} and {hosts[1]}"
    alike = next((i for i, letters in enumerate(zip(*hosts, strict=False)) if len(set(letters)) > 1), 0)
    shared = hosts[0][:alike]
    shared = shared[: max(shared.rfind("."), shared.rfind(":")) + 1]
    if len(shared) < _LONG_PREFIX:
        return {name: name.replace(">", " > ") for name in names}, ""
    cut = len(shared) - 1
    short = {name: f"{match[1][cut:]}:{match[2]} > {match[3][cut:]}:{match[4]}{match[5] or ''}"
             for name, match in found.items()}  # fmt: skip
    return short, f"addresses begin with {shared.strip('[')[:-1]}"


def lines(
    several: Sequence[PlottedRun],
    only: Callable[[PlottedRun, Flow], bool] | None = None,
    *,
    together: bool = False,
) -> list[Line]:
    """The lines that stand for all flows of some runs, or for those that `only` chooses.

    A line for each flow, as long as eyes can tell them apart; else one for all that are alike: control, feedback,
    direction, source, round-trip time and start, or, if that still makes too many, control and direction. Colour and
    marker say the congestion control. Several flows with one control have shades of its colour, names at their ends
    and dashes; in a picture of several runs the dash says which run. `together`: one line for each control and
    direction.
    """
    flows = [(plotted, flow) for plotted in several for flow in plotted.flows if only is None or only(plotted, flow)]
    for key in (_same_control, _same_direction) if together else (_alone, _alike, _same_control, _same_direction):
        made = _grouped(flows, key)
        most = max(Counter(map(_told_apart, made)).values(), default=0)
        if len(made) <= MOST_LINES and most <= _MOST_OF_A_COLOUR:
            break
    return _dashed(made, several)


Key = Callable[["PlottedRun", "Flow"], tuple[Any, ...]]


def _grouped(flows: Sequence[tuple[PlottedRun, Flow]], key: Key) -> list[Line]:
    groups: dict[tuple[Any, ...], list[tuple[PlottedRun, Flow]]] = {}
    for plotted, flow in flows:
        asked = colours.asked_colours(plotted.run).get(flow.name)
        groups.setdefault((plotted.label, asked, *key(plotted, flow)), []).append((plotted, flow))
    looked = flow_styles({id(plotted): plotted.result for plotted, _ in flows}.values())
    made = []
    for (label, _, *rest), members in groups.items():
        plotted, flow = members[0]
        colour, marker = looked.of(plotted.run, flow.name, plotted.control(flow))
        name = _label([(s, f) for s, f in members])
        made.append(
            Line(
                label=f"{plain(label)}: {name}" if label else name,
                colour=colour,
                marker=marker,
                members=tuple(members),
                key=tuple(rest),
            )
        )
    return made


def _told_apart(line: Line) -> tuple[int, str, str]:
    """Run, colour and direction: lines that have these in common differ by shade and dash."""
    plotted, flow = line.members[0]
    return id(plotted), line.colour, direction(plotted, flow)


def _dashed(made: Sequence[Line], several: Sequence[PlottedRun]) -> list[Line]:
    """Shades by the ordinal among lines of the same run and colour, and dashes; of several runs dashes by run.

    Lines that come the other way begin with the first shade again, and have other markers.
    """
    alike = Counter((id(line.members[0][0]), line.colour) for line in made)
    same_way = Counter(map(_told_apart, made))
    seen: Counter[tuple[int, str]] = Counter()
    seen_same_way: Counter[tuple[int, str, str]] = Counter()
    found = []
    for line in made:
        plotted, _ = line.members[0]
        run, way = several.index(plotted), _told_apart(line)
        nth, nth_same_way = seen[way[:2]], seen_same_way[way]
        ordinal = nth_same_way if same_way[way] > 1 else nth
        seen[way[:2]] += 1
        seen_same_way[way] += 1
        others = [marker for marker in _MARKERS if marker != line.marker]
        found.append(
            replace(
                line,
                colour=colours.shade(line.colour, nth_same_way),
                dash=colours.DASHES[(run if len(several) > 1 else ordinal) % len(colours.DASHES)],
                marker=line.marker if nth == 0 else others[(nth - 1) % len(others)],
                end=_end(line) if alike[way[:2]] > 1 and same_way[way] > 1 else "",
            )
        )
    return found


def _end(line: Line) -> str:
    """The name at the end of a line that stands for one flow."""
    plotted, flow = line.members[0]
    if len(line.members) > 1:
        return ""
    return plain(plotted.names[flow.name]) + (", gamed" if is_gamed(plotted.run, flow) else "")


def _label(members: Sequence[tuple[PlottedRun, Flow]]) -> str:
    plotted, flow = members[0]
    if len(members) == 1:
        cc = plotted.control(flow)
        name = plain(plotted.names[flow.name])
        said = [] if cc in flow.name else [control_words(cc)]
        if is_gamed(plotted.run, flow):
            said.append("gamed: ECT(1) forced on it")
        return f"{name} ({', '.join(said)})" if said else name
    controls = sorted({control_words(s.control(f)) for s, f in members})
    of = controls[0] if len(controls) == 1 else f"{len(controls)} controls"
    ways = {direction(s, f) for s, f in members}
    both = len({direction(plotted, f) for f in plotted.flows}) > 1 and len(ways) == 1
    return f"{of}{f', {ways.pop()}' if both else ''}: {len(members)} flows"


def control_words(control: str) -> str:
    """A congestion control as a legend has it."""
    return {"udp": "UDP", UNKNOWN: "TCP"}.get(control, control)


def _alone(plotted: PlottedRun, flow: Flow) -> tuple[Any, ...]:
    return (flow.name,)


def _alike(plotted: PlottedRun, flow: Flow) -> tuple[Any, ...]:
    start = round(float(flow.start_s))
    rtt = round(plotted.base_rtt_s(flow), 3)
    return (*_same_control(plotted, flow), *plotted.ran(flow), flow.source.kind, rtt, start)


def _same_control(plotted: PlottedRun, flow: Flow) -> tuple[Any, ...]:
    return plotted.control(flow), direction(plotted, flow), plotted.bottlenecks[flow.name]


def _same_direction(plotted: PlottedRun, flow: Flow) -> tuple[Any, ...]:
    return (direction(plotted, flow),)


def bins(plotted: Sequence[PlottedRun]) -> tuple[Array, float]:
    """Edges [s] of the intervals that thick lines are means over, and their width: 1 s for runs of 20 s to 300 s."""
    import numpy as np

    end = max(one.end_s for one in plotted)
    steps = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if end < 20 else (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
    width = next((width for width in steps if end / width <= (40 if end < 20 else 300)), end / 300)
    width = max(width, *(float(one.run.sample_interval_s) for one in plotted))
    return np.arange(0.0, end + width * 0.999, width), width


def means(time: Array, value: Array, edges: Array) -> Array:
    """The mean in each bin, NaN where there is no sample. A sample stands for the interval that ends with it."""
    import numpy as np

    n, width = len(edges) - 1, edges[1] - edges[0]
    at = np.clip(np.ceil(time / width - 1e-9).astype(int) - 1, 0, n - 1)
    counts = np.bincount(at, minlength=n)
    sums = np.bincount(at, weights=value, minlength=n)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
