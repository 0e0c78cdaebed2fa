"""One run's results as claims see them: flows, probes and queues by their names, windows in seconds."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from bakeoff.errors import MeasureError
from bakeoff.measure import Samples, summary_of
from bakeoff.measure.bottleneck import bottlenecks
from bakeoff.measure.delays import base_rtt
from bakeoff.measure.over_time import long_flows, smoothed
from bakeoff.measure.rates import window_of
from bakeoff.measure.sharing import ends, queue_of, queues

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array, Window
    from bakeoff.results import Result
    from bakeoff.results.counters import Counters
    from bakeoff.results.summary import Flow as FlowSummary
    from bakeoff.results.summary import Probe as ProbeSummary
    from bakeoff.results.summary import Queue, RatedQueue, Sharing, Summary
    from bakeoff.scenario.run import Flow, Probe, Run, Traffic


class MeasuredRun:
    """A result, of which each part is read when it is first asked for, and of the series only some metrics."""

    def __init__(self, result: Result, metrics: Collection[str] = ()) -> None:
        self.result = result
        self.document = result.run
        self._metrics = metrics
        self._traced: dict[str, Samples] = {}

    @cached_property
    def summary(self) -> Summary:
        """The measures that were taken when the run ended."""
        return summary_of(self.result)

    @property
    def counters(self) -> Counters:
        """What the engine counted over the whole run."""
        return self.result.counters

    @cached_property
    def samples(self) -> Samples:
        """The series of the metrics that are needed."""
        return Samples(self.result.parts_of(self._metrics))

    @cached_property
    def has_trace(self) -> bool:
        """Whether the run was recorded with `--trace cc`."""
        return "cc" in self.document.trace

    def traced(self, metric: str) -> Samples:
        """The rows of one metric of the trace. BakeoffError if the run has no trace."""
        if metric not in self._traced:
            self._traced[metric] = Samples(self.result.trace_parts([metric]))
        return self._traced[metric]

    def window(self, begin: float | None, end: float | None) -> Window:
        """The steady-state window, with its edges replaced by those that are given; seconds."""
        start, stop = window_of(self.document)
        return (start if begin is None else begin, stop if end is None else end)

    def whole(self, begin: float | None, end: float | None) -> Window:
        """The whole run, likewise."""
        return (0.0 if begin is None else begin, self.document.duration_s if end is None else end)

    def of_flow(self, flow: str | int) -> FlowSummary:
        """The flow's measures."""
        return self.summary.flows[flow_of(self.document, flow).name]

    def of_probe(self, probe: str | None) -> ProbeSummary:
        """The probe's measures."""
        return self.summary.probes[probe_of(self.document, probe).name]

    def of_queue(self, queue: str | None) -> Queue:
        """The queue's measures."""
        return self.summary.queues[self.queue(queue)]

    def queue(self, queue: str | None) -> str:
        """The name of the queue that a name or a pattern means; without one, that of the bottleneck."""
        known = list(self.summary.queues)
        if queue is None:
            narrow = self.summary.bottleneck
            known = [name for name in known if narrow and (name == narrow.queue or name.startswith(narrow.queue + "/"))]
            known = [name for name in known if not name.endswith("/root")] or known
        return _only(known, queue, "queue", self.result.key)

    def rated(self, queue: str | None) -> RatedQueue:
        """The queue with a rate that a name or a pattern means."""
        known = self.summary.rated
        name = _only([station.queue for station in known], queue, "queue with a rate", self.result.key)
        return next(station for station in known if station.queue == name)

    def sharing(self, queue: str | None) -> Sharing:
        """The long flows that share the queue of a name or a pattern; the only shared one without one."""
        known = self.summary.shared
        if not known:
            raise MeasureError(f"{self.result.key}: no two long TCP flows share a queue")
        return known[_only(list(known), queue, "queue that long flows share", self.result.key)]

    def beside(self, flow: Flow) -> list[Flow]:
        """The other flows that share a flow's queue: `bakeoff.measure.sharing.queues`."""
        at = self._queue_of
        return [each for each in self.document.flows if each is not flow and at[each.name] == at[flow.name]]

    @cached_property
    def _queue_of(self) -> dict[str, str]:
        return queue_of(self.summary.flows, self.document)

    def delays(self, name: str | None, window: Window) -> tuple[Array, Array, float]:
        """Times [s], RTTs [s] and the base RTT [s] of a flow (its smoothed RTT) or a probe."""
        part, kind = delayed_of(self.document, name)
        metric = "srtt" if kind == "flow" else "rtt"
        return *self.samples.of(kind, part.name, metric, window), base_rtt(self.document, part)

    def rate(self, flow: Flow, smooth: float) -> tuple[Array, Array]:
        """Times [s] and smoothed payload rates [bit/s]."""
        return smoothed(*self.samples.of("flow", flow.name, "received"), flow.start_s, smooth)


def flow_of(run: Run, flow: str | int) -> Flow:
    """The one flow that a name, a pattern or a place (1 is the first) means. MeasureError says which there are."""
    flows = run.flows
    if isinstance(flow, int):
        if not 1 <= flow <= len(flows):
            raise MeasureError(f"no flow {flow}; expected at most {len(flows)}")
        return flows[flow - 1]
    name = _only([each.name for each in flows], flow, "flow", run.run)
    return next(each for each in flows if each.name == name)


def flows_of(run: Run, pattern: str | None) -> list[Flow]:
    """All flows that a name or pattern means; all there are without one. MeasureError if there are none."""
    names = [each.name for each in run.flows]
    chosen = names if pattern is None else _meant(names, pattern)
    if not chosen:
        raise MeasureError(f"no flow '{pattern}' in {run.run}; expected one of: {', '.join(names) or 'none'}")
    return [each for each in run.flows if each.name in chosen]


def probe_of(run: Run, probe: str | None) -> Probe:
    """The one probe that a name or a pattern means; the only one, or `ping`, without one."""
    names = [each.name for each in run.probes]
    if not names:
        raise MeasureError(f"no probe in {run.run}; expected 'probes: [{{name: ping, type: icmp, every: 50ms}}]'")
    name = _only(names, "ping" if probe is None and len(names) > 1 else probe, "probe", run.run)
    return next(each for each in run.probes if each.name == name)


def delayed_of(run: Run, name: str | int | None) -> tuple[Traffic, Literal["flow", "probe"]]:
    """The flow or the probe of this name, and which of the two it is."""
    if isinstance(name, str) and _meant([each.name for each in run.probes], name):
        return probe_of(run, name), "probe"
    if name is None:
        raise MeasureError("unknown flow or probe")
    return flow_of(run, name), "flow"


def pair_of(run: Run) -> tuple[Flow, Flow]:
    """The two long flows, first the one that starts first. MeasureError if there are not two, in one queue."""
    found = sorted(long_flows(run), key=lambda flow: flow.start_s)
    if len(found) != 2:
        raise MeasureError(f"{run.run} has {len(found)} long flows of TCP; expected two")
    narrows = bottlenecks(run, window_of(run))
    at = queues({name: narrows[name].queue if name in narrows else None for name in ends(run)}, ends(run))
    if at[found[0].name] != at[found[1].name]:
        raise MeasureError(f"{run.run}: its two long flows of TCP share no queue")
    return found[0], found[1]


def _only(names: Sequence[str], wanted: str | None, what: str, run: str) -> str:
    chosen = list(names) if wanted is None else _meant(names, wanted)
    if len(chosen) != 1:
        text = f"no {what} '{wanted}'" if not chosen else f"{len(chosen)} {what}s"
        if chosen and wanted is not None:
            text += f" of the name '{wanted}'"
        raise MeasureError(f"{text} in {run}; expected one of: {', '.join(names) or 'none'}")
    return chosen[0]


def _meant(names: Sequence[str], wanted: str) -> list[str]:
    """The name itself; else those of a pattern with * or ?; else those with a number behind it, as in `cubic-1`."""
    if wanted in names:
        return [wanted]
    if "*" in wanted or "?" in wanted:
        return [name for name in names if fnmatchcase(name, wanted)]
    return [name for name in names if re.fullmatch(re.escape(wanted) + r"-\d+", name)]
