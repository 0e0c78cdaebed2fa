"""The measures that claims may name: one line each, with the unit, what it is, and how it is read from a run.

The formulas stand in `bakeoff.measure`; here is only which samples go into them. docs/claims.md shows the same table.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, ParamSpec

from bakeoff.claims.measured_run import MeasuredRun, delayed_of, flow_of, flows_of, pair_of, probe_of
from bakeoff.measure import MeasureError, marks, retransmissions, sce_marks
from bakeoff.measure import drops as drops_of
from bakeoff.measure.bottleneck import bottleneck
from bakeoff.measure.delays import PARTS, base_rtt, distribution, induced_latency_above, ipdv, little
from bakeoff.measure.marks import resent_share
from bakeoff.measure.over_time import (
    BELOW,
    HOLD_S,
    OVER_S,
    RATIO,
    SMOOTH_S,
    WITHIN_S,
    Excursion,
    convergence,
    long_flows,
    meeting,
    oscillations,
    recovery,
    spike,
    starvation,
)
from bakeoff.measure.rates import goodput_of, steady_state_rate
from bakeoff.measure.rates import jain as jain_of
from bakeoff.measure.stations import stations

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array
    from bakeoff.results.summary import CompletionTimes, Distribution, Video
    from bakeoff.scenario.run import Run, Traffic

P = ParamSpec("P")

Kind = Literal["flow", "flows", "probe", "queue", "delayed", "s", "1"]
"""What an argument is: the name of a flow, a pattern of several, a probe, a queue, a flow or a probe, a time, a number.
"""
Value = float | str | int | None

_KINDS: Final[dict[str, Kind]] = {
    "flow": "flow", "flows": "flows", "probe": "probe", "queue": "queue", "name": "delayed",
    "begin": "s", "end": "s", "smooth": "s", "hold": "s", "base": "s", "over": "s", "after": "s", "within": "s",
    "above": "s", "ratio": "1", "below": "1",
}  # fmt: skip
"""By the parameter's name."""


@dataclass(frozen=True)
class Parameter:
    """An argument of a measure."""

    name: str
    kind: Kind
    required: bool
    default: Value
    positional: bool


@dataclass(frozen=True)
class Measure:
    """A measure of one run."""

    name: str
    unit: str
    what: str
    take: Callable[..., float]
    """Called with the run and the arguments by their names; MeasureError if it cannot be taken."""
    metrics: tuple[str, ...]
    """Metrics of the series that it may need."""

    @property
    def range(self) -> tuple[float, float]:
        """The least and the most that it can be."""
        return _RANGES.get(self.name, (-inf if self.name in _SIGNED else 0.0, inf))

    @property
    def parameters(self) -> list[Parameter]:
        """In order, without the run."""
        found = list(inspect.signature(self.take).parameters.values())[1:]
        empty = inspect.Parameter.empty
        return [
            Parameter(
                each.name,
                _KINDS[each.name],
                required=each.default is empty,
                default=None if each.default is empty else each.default,
                positional=each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD,
            )
            for each in found
        ]

    @property
    def signature(self) -> str:
        """As it is written: `goodput(flow, begin=, end=)`."""
        words = []
        for each in self.parameters:
            default = "" if each.default is None else f"{each.default:g}" if each.kind in ("s", "1") else each.default
            optional = f"{each.name}={default}{each.kind if each.kind == 's' and default else ''}"
            words.append(each.name if each.required else f"[{each.name}]" if each.positional else optional)
        return f"{self.name}({', '.join(words)})"


_SHARES: Final = (
    "jain", "share", "utilisation", "ping_delay_above", "mark_fraction", "resent_share", "starvation", "udp_loss",
)  # fmt: skip
_RANGES: Final = {**dict.fromkeys(_SHARES, (0.0, 1.0)), "ratio": (1.0, inf)}
_SIGNED: Final = tuple(f"{delay}_{of}" for delay in ("tcp_delay", "ping_delay") for of in ("mean", "p50", "p99", "max"))
"""Differences of two times."""

MEASURES: Final[dict[str, Measure]] = {}
"""By name."""


def _add(name: str, unit: str, what: str, take: Callable[..., float], *metrics: str) -> None:
    MEASURES[name] = Measure(name, unit, what, take, metrics)


def _measure(unit: str, what: str, *metrics: str) -> Callable[[Callable[P, float]], Callable[P, float]]:
    def add(take: Callable[P, float]) -> Callable[P, float]:
        _add(take.__name__.lstrip("_"), unit, what, take, *metrics)
        return take

    return add


def _known(value: float | None, what: str) -> float:
    if value is None:
        raise MeasureError(f"{what} could not be taken")
    return float(value)


def _goodput_of(run: MeasuredRun, name: str, begin: float | None, end: float | None) -> float:
    if begin is None and end is None:
        return _known(run.summary.flows[name].steady_state.goodput_bps, f"the goodput of flow '{name}'")
    flow = flow_of(run.document, name)
    return goodput_of(run.document, run.counters, run.samples, flow, run.window(begin, end))


# Rates.


@_measure("bit/s", "payload that reached the receiving socket, per second", "received")
def _goodput(run: MeasuredRun, flow: str | int, *, begin: float | None = None, end: float | None = None) -> float:
    return _goodput_of(run, flow_of(run.document, flow).name, begin, end)


@_measure("bit/s", "mean of `tcpi_delivery_rate`, samples of zero left out", "delivery_rate")
def _delivery_rate(run: MeasuredRun, flow: str | int, *, begin: float | None = None, end: float | None = None) -> float:
    name = flow_of(run.document, flow).name
    if begin is None and end is None:
        return _known(run.of_flow(name).steady_state.delivery_rate_bps, f"the delivery rate of flow '{name}'")
    return steady_state_rate(*run.samples.of("flow", name, "delivery_rate"), run.window(begin, end))


@_measure("bit/s", "sum of the goodputs of all flows, or of those of a name or pattern", "received")
def _total_goodput(
    run: MeasuredRun, flows: str | None = None, *, begin: float | None = None, end: float | None = None
) -> float:
    return sum(_goodput_of(run, flow.name, begin, end) for flow in flows_of(run.document, flows))


@_measure("1", "the flow's part of the sum of all flows' goodputs", "received")
def _share(run: MeasuredRun, flow: str | int, *, begin: float | None = None, end: float | None = None) -> float:
    total = _total_goodput(run, begin=begin, end=end)
    if not total:
        raise MeasureError("no flow got anything")
    return _goodput(run, flow, begin=begin, end=end) / total


@_measure("1", "Jain's index of the goodputs of the long TCP flows: 1 if all are equal", "received")
def _jain(run: MeasuredRun, *, begin: float | None = None, end: float | None = None) -> float:
    return jain_of([_goodput_of(run, flow.name, begin, end) for flow in long_flows(run.document)])


@_measure("1", "the largest to the smallest goodput of the long TCP flows, at least 1", "received")
def _ratio(run: MeasuredRun, *, begin: float | None = None, end: float | None = None) -> float:
    rates = [_goodput_of(run, flow.name, begin, end) for flow in long_flows(run.document)]
    if len(rates) < 2:
        raise MeasureError(f"{run.document.run} has {len(rates)} long flows of TCP; expected two or more")
    return max(rates) / min(rates) if min(rates) else inf


@_measure("1", "share of the rate that was used, at the first flow's bottleneck or the queue that is named", "sent")
def _utilisation(
    run: MeasuredRun, queue: str | None = None, *, begin: float | None = None, end: float | None = None
) -> float:
    whole = begin is None and end is None
    if whole and queue is None:
        return _known(run.summary.utilisation, "the utilisation")
    if whole:
        place = run.rated(queue)
        return _known(place.utilisation, f"the utilisation of '{place.queue}'")
    window = run.window(begin, end)
    wanted = run.rated(queue).queue if queue else bottleneck(run.document, run.document.flows[0], window).queue
    places = stations(run.document, run.counters, run.samples, window)
    found = next((place for place in places if place.queue == wanted and place.sampled(run.samples)), None)
    if found is None:
        raise MeasureError(f"no 'sent' samples of the queue '{wanted}'")
    return found.utilisation(run.samples, window)


# Delays.


def _delay(
    run: MeasuredRun,
    name: str | int | None,
    begin: float | None,
    end: float | None,
    *,
    of: str,
    induced: bool,
    probe: bool,
) -> float:
    """A number of the distribution of RTTs, less the base RTT if `induced`."""
    part: Traffic
    if probe:
        part = probe_of(run.document, name if isinstance(name, str) else None)
        found = run.summary.probes[part.name].rtt_s
    else:
        part = flow_of(run.document, name or "")
        found = run.summary.flows[part.name].srtt_s
    if begin is not None or end is not None:
        kind, metric = ("probe", "rtt") if probe else ("flow", "srtt")
        found = distribution(run.samples.of(kind, part.name, metric, run.window(begin, end))[1])
    if found is None:
        raise MeasureError(f"no round-trip times of '{part.name}'")
    return float(getattr(found, of)) - (base_rtt(run.document, part) if induced else 0.0)


def _flow_delay(of: str, *, induced: bool) -> Callable[..., float]:
    def take(run: MeasuredRun, flow: str | int, *, begin: float | None = None, end: float | None = None) -> float:
        return _delay(run, flow, begin, end, of=of, induced=induced, probe=False)

    return take


def _probe_delay(of: str, *, induced: bool) -> Callable[..., float]:
    def take(
        run: MeasuredRun, probe: str | None = None, *, begin: float | None = None, end: float | None = None
    ) -> float:
        return _delay(run, probe, begin, end, of=of, induced=induced, probe=True)

    return take


def _part_of(queue: str | None) -> tuple[str | None, str | None]:
    """`L` and `C` are those of the bottleneck, `QUEUE/L` those of another queue."""
    whole, _, part = (queue or "").rpartition("/")
    return (whole or None, part) if part in PARTS else (queue, None)


def _queue_delay(of: str) -> Callable[..., float]:
    def take(
        run: MeasuredRun, queue: str | None = None, *, begin: float | None = None, end: float | None = None
    ) -> float:
        whole, part = _part_of(queue)
        name = run.queue(whole)
        counted = run.of_queue(name)
        found: Distribution | None = (counted.parts or {}).get(part) if part else counted.as_time_passes_s
        if begin is not None or end is not None:
            metric = PARTS[part] if part else "sojourn"
            window = run.window(begin, end)
            if part is None and ("queue", name, metric) not in run.samples:
                found = little(run.samples, name, window)
            else:
                found = distribution(run.samples.of("queue", name, metric, window)[1])
        if found is None:
            raise MeasureError(
                f"no delays of queue '{queue or name}'; queues on the egress side have them, dualpi2's as L and C too"
            )
        return float(getattr(found, of))

    return take


_STATISTICS: Final = {"mean": "mean", "p50": "median", "p99": "99th percentile", "max": "maximum"}
_FAMILIES: Final[dict[str, tuple[str, Callable[[str], Callable[..., float]], tuple[str, ...]]]] = {
    "rtt": ("TCP's smoothed RTT", partial(_flow_delay, induced=False), ("srtt",)),
    "tcp_delay": ("TCP's smoothed RTT less the path's base RTT", partial(_flow_delay, induced=True), ("srtt",)),
    "ping": ("the probe's RTT", partial(_probe_delay, induced=False), ("rtt",)),
    "ping_delay": (
        "the probe's RTT less the base RTT (induced latency)",
        partial(_probe_delay, induced=True),
        ("rtt",),
    ),
    "queue": (
        "the delay in the bottleneck's queue, over time",
        _queue_delay,
        ("sojourn", "backlog", "sent", *PARTS.values()),
    ),
}
for _name, (_what, _make, _metrics) in _FAMILIES.items():
    for _of, _said in _STATISTICS.items():
        _add(f"{_name}_{_of}", "s", f"{_said} of {_what}", _make(_of), *_metrics)


@_measure("1", "share of the probe's samples whose induced latency is above a limit", "rtt")
def _ping_delay_above(
    run: MeasuredRun, above: float, probe: str | None = None, *, begin: float | None = None, end: float | None = None
) -> float:
    part = probe_of(run.document, probe)
    rtts = run.samples.of("probe", part.name, "rtt", run.window(begin, end))[1]
    return induced_latency_above(rtts, base_rtt(run.document, part), above)


def _ipdv_of(of: str) -> Callable[..., float]:
    def take(
        run: MeasuredRun, probe: str | None = None, *, begin: float | None = None, end: float | None = None
    ) -> float:
        part = probe_of(run.document, probe)
        sent, rtt = run.samples.of("probe", part.name, "rtt", run.window(begin, end))
        return float(getattr(distribution(ipdv(sent, rtt, part.every_s)), of))

    return take


for _of in ("mean", "p50", "max"):
    _add(f"ipdv_{_of}", "s", f"{_STATISTICS[_of]} of |RTT - RTT before| of the probe's answers", _ipdv_of(_of), "rtt")


def _spike_of(
    run: MeasuredRun, name: str, base: float | None, over: float, *, begin: float | None, end: float | None
) -> Excursion:
    time, delay, own = run.delays(name, run.window(begin, end))
    return spike(time, delay, own if base is None else base, over)


@_measure("s", "height over the base RTT of the highest excursion of a flow's or probe's RTT", "srtt", "rtt")
def _spike_height(
    run: MeasuredRun,
    name: str,
    *,
    base: float | None = None,
    over: float = OVER_S,
    begin: float | None = None,
    end: float | None = None,
) -> float:
    return _spike_of(run, name, base, over, begin=begin, end=end).height_s


@_measure("s", "how long this excursion stays above base + over", "srtt", "rtt")
def _spike_duration(
    run: MeasuredRun,
    name: str,
    *,
    base: float | None = None,
    over: float = OVER_S,
    begin: float | None = None,
    end: float | None = None,
) -> float:
    return _spike_of(run, name, base, over, begin=begin, end=end).duration_s


@_measure("s", "from a step until the RTT is at most base + within and stays so; never: infinite", "srtt", "rtt")
def _recovery(
    run: MeasuredRun,
    name: str,
    after: float,
    *,
    within: float = WITHIN_S,
    base: float | None = None,
    end: float | None = None,
) -> float:
    time, delay, own = run.delays(name, run.whole(after, end))
    return recovery(time, delay, after, own if base is None else base, within)


# Signals.


def _queues_of_bottleneck(run: MeasuredRun, queue: str | None) -> list[str]:
    return [run.queue(queue)]


@_measure("packets", "CE marks of the bottleneck over the whole run; of one flow's packets if it is named")
def _marks(run: MeasuredRun, flow: str | int | None = None, *, queue: str | None = None) -> float:
    name = None if flow is None else flow_of(run.document, flow).name
    return sum(marks(run.counters, each, name) for each in _queues_of_bottleneck(run, queue))


@_measure("packets", "SCE marks, likewise")
def _sce_marks(run: MeasuredRun, flow: str | int | None = None, *, queue: str | None = None) -> float:
    name = None if flow is None else flow_of(run.document, flow).name
    return sum(sce_marks(run.counters, each, name) for each in _queues_of_bottleneck(run, queue))


@_measure("packets", "drops, likewise")
def _drops(run: MeasuredRun, flow: str | int | None = None, *, queue: str | None = None) -> float:
    name = None if flow is None else flow_of(run.document, flow).name
    return sum(drops_of(run.counters, each, name) for each in _queues_of_bottleneck(run, queue))


@_measure("packets", "segments of data or datagrams that arrived with CE (`tcpi_received_ce`), over the whole run")
def _seen_marks(run: MeasuredRun, flow: str | int) -> float:
    return _counted(run, flow, "received_ce")


@_measure("packets", "likewise as ECT(1), which are SCE marks if the flow sends ECT(0); told by the simulator alone")
def _seen_ect1(run: MeasuredRun, flow: str | int) -> float:
    return _counted(run, flow, "received_ect1")


@_measure("packets", "CE marks that the receiver echoed (`tcpi_delivered_ce`), over the whole run")
def _echoed_marks(run: MeasuredRun, flow: str | int) -> float:
    return _counted(run, flow, "delivered_ce")


def _counted(run: MeasuredRun, flow: str | int, key: str) -> float:
    name = flow_of(run.document, flow).name
    return _known(getattr(run.counters.flow(name), key), f"counters: flows.{name}.{key}")


@_measure("1", "share of the flow's packets that were CE-marked, over the whole run")
def _mark_fraction(run: MeasuredRun, flow: str | int) -> float:
    return _known(run.of_flow(flow).mark_fraction, "the share of marked packets")


@_measure("packets", "segments that the flow sent again, over the whole run")
def _retransmissions(run: MeasuredRun, flow: str | int) -> float:
    return retransmissions(run.counters, flow_of(run.document, flow).name)


@_measure("1", "share of the segments that the flow sent which it had sent before, over the whole run")
def _resent_share(run: MeasuredRun, flow: str | int) -> float:
    return resent_share(run.counters, flow_of(run.document, flow).name)


# Over time.


def _pair(
    run: MeasuredRun, smooth: float, begin: float | None, end: float | None
) -> tuple[tuple[Array, Array], tuple[Array, Array], float]:
    """Both flows' smoothed rates, cut at `end`, and the time from which is counted."""
    first, later = pair_of(run.document)
    one, two = run.rate(first, smooth), run.rate(later, smooth)
    if end is not None:
        one, two = ((time[time <= end], rate[time <= end]) for time, rate in (one, two))
    if not len(one[0]) or not len(two[0]):
        raise MeasureError(f"the two flows have no samples before {end:g} s")
    return one, two, later.start_s if begin is None else begin


@_measure("s", "from the later flow's start until both rates stay within a ratio; never: infinite", "received")
def _convergence(
    run: MeasuredRun,
    *,
    smooth: float = SMOOTH_S,
    ratio: float = RATIO,
    hold: float = HOLD_S,
    begin: float | None = None,
    end: float | None = None,
) -> float:
    one, two, start = _pair(run, smooth, begin, end)
    return convergence(one, two, start, ratio, hold)


@_measure("s", "from the later flow's start until its rate first reaches the other's; never: infinite", "received")
def _meet(run: MeasuredRun, *, smooth: float = SMOOTH_S, begin: float | None = None, end: float | None = None) -> float:
    return meeting(*_pair(run, smooth, begin, end))


@_measure("1", "share of the time in which the flow gets less than `below` of its fair share", "received")
def _starvation(
    run: MeasuredRun,
    flow: str | int,
    *,
    below: float = BELOW,
    smooth: float = SMOOTH_S,
    begin: float | None = None,
    end: float | None = None,
) -> float:
    own = flow_of(run.document, flow)
    others = [run.rate(each, smooth) for each in long_flows(run.document) if each is not own]
    return starvation(run.rate(own, smooth), others, run.window(begin, end), below)


@_measure("s", "that share of the window, as a time", "received")
def _starved_time(
    run: MeasuredRun,
    flow: str | int,
    *,
    below: float = BELOW,
    smooth: float = SMOOTH_S,
    begin: float | None = None,
    end: float | None = None,
) -> float:
    start, stop = run.window(begin, end)
    return _starvation(run, flow, below=below, smooth=smooth, begin=begin, end=end) * (stop - start)


@_measure("1/s", "how often per second the flow's smoothed rate crosses its own mean", "received")
def _oscillations(
    run: MeasuredRun,
    flow: str | int,
    *,
    smooth: float = SMOOTH_S,
    begin: float | None = None,
    end: float | None = None,
) -> float:
    return oscillations(*run.rate(flow_of(run.document, flow), smooth), run.window(begin, end))


def _cwnd(of: str) -> Callable[..., float]:
    def take(run: MeasuredRun, flow: str | int, *, begin: float | None = None, end: float | None = None) -> float:
        name = flow_of(run.document, flow).name
        values: Array = run.samples.of("flow", name, "cwnd", run.window(begin, end))[1]
        return float(getattr(values, of)())

    return take


for _of, _said in (("min", "smallest"), ("max", "largest"), ("mean", "mean")):
    _add(f"{_of}_cwnd", "packets", f"{_said} congestion window of the flow's samples", _cwnd(_of), "cwnd")


# Applications.


def _completion(of: str) -> Callable[..., float]:
    def take(run: MeasuredRun, flow: str | int) -> float:
        found = run.of_flow(flow).fct
        times: CompletionTimes | None = found.fct_s if found else None
        if times is None:
            raise MeasureError(f"flow '{flow}' has no objects that ended in the window")
        return float(getattr(times, of))

    return take


for _of, _said in (("p50", "median"), ("p95", "95th percentile"), ("geometric_mean", "geometric mean")):
    _add(f"fct_{_of}", "s", f"{_said} of the completion times of a `short` flow's objects", _completion(_of))


def _of_video(of: str) -> Callable[..., float]:
    def take(run: MeasuredRun, flow: str | int) -> float:
        found: Video | None = run.of_flow(flow).video
        if found is None:
            raise MeasureError(f"flow '{flow}' is no video")
        return float(getattr(found, of))

    return take


_add("stalls", "1", "how often a video's playing stood still, over the whole run", _of_video("stalls"))
_add("stalled", "s", "how long it stood still in all", _of_video("stalled_s"))
_add("switches", "1", "how often a video changed its rate", _of_video("switches"))
_add("video_rate", "bit/s", "mean rate of a video's segments", _of_video("mean_rate_bps"))


@_measure("1", "share of a UDP flow's datagrams that never arrived")
def _udp_loss(run: MeasuredRun, flow: str | int) -> float:
    return _known(run.of_flow(flow).loss, "the loss")


@_measure("s", "mean interarrival jitter (RFC 3550) of a UDP flow's datagrams")
def _udp_jitter(run: MeasuredRun, flow: str | int) -> float:
    return _known(run.of_flow(flow).jitter_s, "the jitter")


@_measure("s", "99th percentile of the one-way delay of a UDP flow's datagrams")
def _udp_delay_p99(run: MeasuredRun, flow: str | int) -> float:
    found = run.of_flow(flow).delay_s
    return _known(found.p99 if found else None, "the one-way delay")


def check_names(measure: Measure, arguments: dict[str, Any], run: Run) -> None:
    """MeasureError if an argument names a flow or a probe that the run does not have, before anything is run."""
    looks: dict[Kind, Callable[[Any], object]] = {
        "flow": partial(flow_of, run),
        "flows": partial(flows_of, run),
        "delayed": partial(delayed_of, run),
    }
    for parameter in measure.parameters:
        value = arguments.get(parameter.name, parameter.default)
        if parameter.kind in looks and value is not None:
            looks[parameter.kind](value)
        elif parameter.kind == "probe":
            probe_of(run, value)
    if measure.name in ("convergence", "meet"):
        pair_of(run)
