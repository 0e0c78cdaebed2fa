"""The entries of the catalogue of measures: names, units and texts, and which samples each is taken from.

The formulas are in the other modules of `bakeoff.measure`. An entry with `at` is read from summary.json; where a claim
asks for another window, its function takes it from the samples by the same formula.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Final, ParamSpec

from bakeoff.errors import MeasureError
from bakeoff.measure.bottleneck import bottleneck
from bakeoff.measure.catalogue import ANY_SIGN, FROM_ONE, SHARE, Catalogue, Kind, Measure, Of, Unit
from bakeoff.measure.delays import (
    PARTS,
    base_rtt,
    distribution,
    induced_latency_above,
    ipdv,
    little,
    mean_base_rtt,
)
from bakeoff.measure.marks import drops as drops_of
from bakeoff.measure.marks import marks as marks_of
from bakeoff.measure.marks import resent_share
from bakeoff.measure.marks import sce_marks as sce_marks_of
from bakeoff.measure.measured_run import MeasuredRun, delayed_of, flow_of, flows_of, pair_of, probe_of
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
    from bakeoff.results.summary import Distribution
    from bakeoff.scenario.run import Run

P = ParamSpec("P")

Edge = float | None
"""Of the window in seconds; None: as the run has it."""

CATALOGUE: Final = Catalogue()
"""Every measure of bakeoff."""

_JAIN: Final = "Jain, Chiu, Hawe: DEC-TR-301, 1984"
_RFC3550: Final = "RFC 3550, section 6.4.1"


def _measure(
    name: str,
    of: Of,
    unit: Unit,
    label: str,
    formula: str,
    **more: Any,  # noqa: ANN401 (the other fields of Measure)
) -> Callable[[Callable[P, float]], Callable[P, float]]:
    def add(take: Callable[P, float]) -> Callable[P, float]:
        CATALOGUE.add(Measure(name, of, unit, label, formula, take, **more))
        return take

    return add


def _stored(  # noqa: PLR0917 (a line of a table)
    name: str,
    of: Of,
    unit: Unit,
    label: str,
    formula: str,
    at: str,
    **more: Any,  # noqa: ANN401
) -> None:
    """A measure that summary.json holds, and that has no other window."""

    def known(record: object, whose: str) -> float:
        return _known(CATALOGUE[name].read(record), f"{name} of {whose}")

    def of_flow(run: MeasuredRun, flow: str | int) -> float:
        return known(run.of_flow(flow), f"flow '{flow}'")

    def of_queue(run: MeasuredRun, queue: str | None = None) -> float:
        return known(run.of_queue(queue), f"queue '{run.queue(queue)}'")

    def of_probe(run: MeasuredRun, probe: str | None = None) -> float:
        return known(run.of_probe(probe), f"probe '{probe or 'ping'}'")

    def of_run(run: MeasuredRun) -> float:
        return known(run.summary, "the run")

    takes: dict[Of, Callable[..., float]] = {"flow": of_flow, "queue": of_queue, "probe": of_probe, "run": of_run}
    CATALOGUE.add(Measure(name, of, unit, label, formula, takes[of], at=at, **more))


def _known(value: float | None, what: str) -> float:
    if value is None:
        raise MeasureError(f"{what} could not be taken")
    return float(value)


_STATISTICS: Final = {
    "mean": "mean", "p50": "median", "p95": "95th percentile", "p99": "99th percentile", "max": "maximum",
    "geometric_mean": "geometric mean",
}  # fmt: skip


def _statistics(*names: str) -> Iterator[tuple[str, str]]:
    return ((name, _STATISTICS[name]) for name in names)


# Rates of flows.


def _goodput_of(run: MeasuredRun, name: str, begin: float | None, end: float | None) -> float:
    if begin is None and end is None:
        return _known(run.summary.flows[name].steady_state.goodput_bps, f"the goodput of flow '{name}'")
    flow = flow_of(run.document, name)
    return goodput_of(run.document, run.counters, run.samples, flow, run.window(begin, end))


@_measure(
    "goodput", "flow", "bit/s", "goodput", "payload that reached the receiving socket, per second",
    source="RFC 2647, section 3.17", needs=("received",), at="steady_state.goodput_bps",
)  # fmt: skip
def _goodput(run: MeasuredRun, flow: str | int, *, begin: Edge = None, end: Edge = None) -> float:
    return _goodput_of(run, flow_of(run.document, flow).name, begin, end)


@_measure(
    "delivery_rate", "flow", "bit/s", "delivery rate", "mean of `tcpi_delivery_rate`, samples of zero left out",
    source="l4s-tests, steady_state.go", needs=("delivery_rate",), at="steady_state.delivery_rate_bps",
)  # fmt: skip
def _delivery_rate(run: MeasuredRun, flow: str | int, *, begin: Edge = None, end: Edge = None) -> float:
    name = flow_of(run.document, flow).name
    if begin is None and end is None:
        return _known(run.of_flow(name).steady_state.delivery_rate_bps, f"the delivery rate of flow '{name}'")
    return steady_state_rate(*run.samples.of("flow", name, "delivery_rate"), run.window(begin, end))


@_measure(
    "share", "flow", "1", "share of the goodput",
    "the flow's part of the goodput of all flows with the same bottleneck",
    needs=("received",), bounds=SHARE, percent=True, decimals=0,
)  # fmt: skip
def _share(run: MeasuredRun, flow: str | int, *, begin: Edge = None, end: Edge = None) -> float:
    name = flow_of(run.document, flow).name
    queue = run.summary.flows[name].bottleneck
    beside = [other for other, part in run.summary.flows.items() if part.bottleneck == queue]
    total = sum(_goodput_of(run, other, begin, end) for other in beside)
    if not total:
        raise MeasureError("no flow got anything")
    return _goodput_of(run, name, begin, end) / total


# Round-trip times and delays of flows.


def _flow_rtt(of: str, *, induced: bool) -> Callable[..., float]:
    def take(run: MeasuredRun, flow: str | int, *, begin: Edge = None, end: Edge = None) -> float:
        part = flow_of(run.document, flow)
        found = run.summary.flows[part.name].srtt_s
        if begin is not None or end is not None:
            found = distribution(run.samples.of("flow", part.name, "srtt", run.window(begin, end))[1])
        if not induced:
            return _statistic(found, of, part.name)
        return _statistic(found, of, part.name) - mean_base_rtt(run.document, part, window=run.window(begin, end))

    return take


def _statistic(found: Distribution | None, of: str, name: str) -> float:
    if found is None:
        raise MeasureError(f"no round-trip times of '{name}'")
    return float(getattr(found, of))


for _of, _said in _statistics("mean", "p50", "p99", "max"):
    CATALOGUE.add(
        Measure(
            f"srtt_{_of}", "flow", "s", f"TCP RTT, {_said}", f"{_said} of TCP's smoothed RTT",
            _flow_rtt(_of, induced=False), source="RFC 6298 (`tcpi_rtt`)", needs=("srtt",), at=f"srtt_s.{_of}",
            tabled=_of != "max",
            aliases=(f"rtt_{_of}", *{"mean": ("tcp_rtt",), "p99": ("tcp_rtt_p99",)}.get(_of, ())),
        )
    )  # fmt: skip
for _of, _said in _statistics("mean", "p50", "p99", "max"):
    CATALOGUE.add(
        Measure(
            f"tcp_delay_{_of}", "flow", "s", f"TCP RTT less the base RTT, {_said}",
            f"{_said} of TCP's smoothed RTT less the mean base RTT of the path in the window",
            _flow_rtt(_of, induced=True),
            needs=("srtt",), bounds=ANY_SIGN,
        )
    )  # fmt: skip
for _of, _said in _statistics("mean", "p50", "p99", "max"):
    _stored(
        f"ack_rtt_{_of}", "flow", "s", f"RTT of ACKs, {_said}", f"{_said} of the RTT samples of all ACKs",
        f"rtt_s.{_of}", stem=f"rtt_{_of}", tabled=_of != "max",
    )  # fmt: skip
for _of, _said in _statistics("mean", "p50", "p99", "max"):
    _stored(
        f"udp_delay_{_of}", "flow", "s", f"one-way delay, {_said}",
        f"{_said} of the one-way delay of a UDP flow's datagrams", f"delay_s.{_of}", stem=f"delay_{_of}",
        tabled=_of != "max",
    )  # fmt: skip
_stored(
    "udp_jitter", "flow", "s", "jitter", "mean interarrival jitter of a UDP flow's datagrams", "jitter_s",
    source=_RFC3550, stem="jitter",
)  # fmt: skip
_stored(
    "udp_loss", "flow", "1", "loss", "share of a UDP flow's datagrams that never arrived", "loss",
    stem="loss", bounds=SHARE, percent=True,
)  # fmt: skip


# Signals.


def _counted(key: str) -> Callable[..., float]:
    def take(run: MeasuredRun, flow: str | int) -> float:
        name = flow_of(run.document, flow).name
        return _known(getattr(run.counters.flow(name), key), f"counters: flows.{name}.{key}")

    return take


_stored(
    "retransmissions", "flow", "packet", "retransmissions", "segments that the flow sent again, over the whole run",
    "retransmissions",
)  # fmt: skip


@_measure(
    "resent_share", "flow", "1", "share of segments sent again",
    "share of the segments sent that the flow had sent before, over the whole run", bounds=SHARE, percent=True,
)  # fmt: skip
def _resent_share(run: MeasuredRun, flow: str | int) -> float:
    return resent_share(run.counters, flow_of(run.document, flow).name)


_stored(
    "mark_fraction", "flow", "1", "share of packets marked",
    "share of the flow's packets that were CE-marked, over the whole run", "mark_fraction",
    bounds=SHARE, percent=True,
)  # fmt: skip
for _name, _key, _label, _formula in (
    ("seen_marks", "received_ce", "CE marks received", "segments of data or datagrams that arrived with CE"),
    ("seen_ect1", "received_ect1", "ECT(1) received", "segments of data or datagrams that arrived as ECT(1)"),
    ("echoed_marks", "delivered_ce", "CE marks echoed", "CE marks that the receiver echoed"),
):
    CATALOGUE.add(
        Measure(
            _name, "flow", "packet", _label, f"{_formula} (`tcpi_{_key}`), over the whole run", _counted(_key), at=_name
        )
    )  # fmt: skip


# Rates and delays of flows over time.


@_measure(
    "starvation", "flow", "1", "starvation",
    "share of the time in which the flow gets less than `below` of its fair share",
    needs=("received",), at="starvation", bounds=SHARE, percent=True,
)  # fmt: skip
def _starvation(
    run: MeasuredRun,
    flow: str | int,
    *,
    below: float = BELOW,
    smooth: float = SMOOTH_S,
    begin: Edge = None,
    end: Edge = None,
) -> float:
    own = flow_of(run.document, flow)
    others = [run.rate(each, smooth) for each in long_flows(run.document) if each is not own]
    return starvation(run.rate(own, smooth), others, run.window(begin, end), below)


@_measure("starved_time", "flow", "s", "starved time", "that share of the window, as a time", needs=("received",))
def _starved_time(
    run: MeasuredRun,
    flow: str | int,
    *,
    below: float = BELOW,
    smooth: float = SMOOTH_S,
    begin: Edge = None,
    end: Edge = None,
) -> float:
    start, stop = run.window(begin, end)
    return _starvation(run, flow, below=below, smooth=smooth, begin=begin, end=end) * (stop - start)


@_measure(
    "oscillations", "flow", "1/s", "oscillations of the rate",
    "how often per second the flow's smoothed rate crosses its own mean", needs=("received",), at="oscillations_per_s",
)  # fmt: skip
def _oscillations(
    run: MeasuredRun,
    flow: str | int,
    *,
    smooth: float = SMOOTH_S,
    begin: Edge = None,
    end: Edge = None,
) -> float:
    return oscillations(*run.rate(flow_of(run.document, flow), smooth), run.window(begin, end))


def _spike_of(
    run: MeasuredRun, name: str, base: float | None, over: float, *, begin: float | None, end: float | None
) -> Excursion:
    time, delay, own = run.delays(name, run.window(begin, end))
    return spike(time, delay, own if base is None else base, over)


@_measure(
    "spike_height", "flow", "s", "height of the highest RTT spike",
    "height over the base RTT of the highest excursion of a flow's or probe's RTT",
    needs=("srtt", "rtt"), at="spike.height_s",
)  # fmt: skip
def _spike_height(
    run: MeasuredRun,
    name: str,
    *,
    base: float | None = None,
    over: float = OVER_S,
    begin: Edge = None,
    end: Edge = None,
) -> float:
    return _spike_of(run, name, base, over, begin=begin, end=end).height_s


@_measure(
    "spike_duration", "flow", "s", "duration of the highest RTT spike",
    "how long this excursion stays above base + over", needs=("srtt", "rtt"), at="spike.duration_s",
)  # fmt: skip
def _spike_duration(
    run: MeasuredRun,
    name: str,
    *,
    base: float | None = None,
    over: float = OVER_S,
    begin: Edge = None,
    end: Edge = None,
) -> float:
    return _spike_of(run, name, base, over, begin=begin, end=end).duration_s


@_measure(
    "recovery", "flow", "s", "recovery of the RTT",
    "from a step until the RTT is at most base + within and stays so; never: infinite", needs=("srtt", "rtt"),
)  # fmt: skip
def _recovery(
    run: MeasuredRun,
    name: str,
    after: float,
    *,
    within: float = WITHIN_S,
    base: float | None = None,
    end: Edge = None,
) -> float:
    time, delay, own = run.delays(name, run.whole(after, end))
    return recovery(time, delay, after, own if base is None else base, within)


def _cwnd(of: str) -> Callable[..., float]:
    def take(run: MeasuredRun, flow: str | int, *, begin: Edge = None, end: Edge = None) -> float:
        name = flow_of(run.document, flow).name
        values: Array = run.samples.of("flow", name, "cwnd", run.window(begin, end))[1]
        return float(getattr(values, of)())

    return take


for _of, _said in (("min", "smallest"), ("max", "largest"), ("mean", "mean")):
    CATALOGUE.add(
        Measure(
            f"{_of}_cwnd", "flow", "packet", f"{_said} cwnd", f"{_said} congestion window of the flow's samples",
            _cwnd(_of), needs=("cwnd",),
        )
    )  # fmt: skip


# What applications see.

for _of, _said in _statistics("geometric_mean", "p50", "p95", "p99", "mean", "max"):
    _stored(
        f"fct_{_of}", "flow", "s", f"flow completion time, {_said}",
        f"{_said} of the completion times of a `short` flow's objects", f"fct.fct_s.{_of}",
        tabled=_of not in ("mean", "max"), aliases=("fct",) if _of == "p50" else (),
    )  # fmt: skip
_stored(
    "unfinished", "flow", "1", "unfinished objects",
    "objects of a `short` flow that began in the window and had not ended with the run", "fct.unfinished",
)  # fmt: skip
_stored(
    "video_rate", "flow", "bit/s", "video rate", "mean rate of a video's segments", "video.mean_rate_bps",
    stem="video_mean_rate",
)  # fmt: skip
_stored(
    "startup", "flow", "s", "startup", "from opening a video until it plays", "video.startup_s", stem="video_startup",
    seconds=True, may_never=True,
)  # fmt: skip
_stored(
    "stalls", "flow", "1", "stalls", "how often a video's playing stopped, over the whole run", "video.stalls",
    stem="video_stalls",
)  # fmt: skip
_stored(
    "stalled", "flow", "s", "stalled time", "how long a video stopped in all", "video.stalled_s", stem="video_stalled",
    seconds=True,
)  # fmt: skip
_stored(
    "switches", "flow", "1", "rate switches", "how often a video changed its rate", "video.switches",
    stem="video_switches",
)  # fmt: skip


# Queues: the bottleneck's, unless one is named.


def _rated(run: MeasuredRun, queue: str | None) -> float:
    return run.rated(queue).rate_bps


CATALOGUE.add(
    Measure("rate", "queue", "bit/s", "rate", "the queue's rate, averaged over the window", _rated, at="rate_bps")
)


@_measure(
    "utilisation", "queue", "1", "utilisation",
    "share of the rate that was used, at the first flow's bottleneck or the queue that is named",
    needs=("sent",), at="utilisation", bounds=SHARE, percent=True, decimals=1,
)  # fmt: skip
def _utilisation(run: MeasuredRun, queue: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
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


def _part_of(queue: str | None) -> tuple[str | None, str | None]:
    """`L` and `C` are those of the bottleneck, `QUEUE/L` those of another queue."""
    whole, _, part = (queue or "").rpartition("/")
    return (whole or None, part) if part in PARTS else (queue, None)


def _over_time(of: str) -> Callable[..., float]:
    def take(run: MeasuredRun, queue: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
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


for _of, _said in _statistics("mean", "p50", "p99", "max"):
    _stored(
        f"queue_delay_{_of}", "queue", "s", f"queue delay, {_said}",
        f"{_said} of the queue's delay: of each packet where the engine has it, else over time", f"delay_s.{_of}",
        stem=f"delay_{_of}", tabled=_of != "max", aliases=("queue_delay",) if _of == "p50" else (),
    )  # fmt: skip
for _of, _said in _statistics("mean", "p50", "p99", "max"):
    CATALOGUE.add(
        Measure(
            f"queue_delay_over_time_{_of}", "queue", "s", f"queue delay over time, {_said}",
            f"{_said} of the delay in the queue over time, on every engine", _over_time(_of),
            needs=("sojourn", "backlog", "sent", *PARTS.values()), aliases=(f"queue_{_of}",),
        )
    )  # fmt: skip
for _prefix, _at, _label, _formula in (
    ("little_delay", "sojourn_little_s", "queue delay by Little's law", "delay by Little's law, backlog / departures"),
    ("l_delay", "parts.L", "delay in the L queue", "delay in the L queue of dualpi2"),
    ("c_delay", "parts.C", "delay in the C queue", "delay in the C queue of dualpi2"),
):
    for _of, _said in _statistics("mean", "p50", "p99"):
        _stored(
            f"{_prefix}_{_of}", "queue", "s", f"{_label}, {_said}", f"{_said} of the {_formula}", f"{_at}.{_of}",
            aliases=(f"queue_delay_{_prefix[0]}",) if _of == "mean" and _prefix != "little_delay" else (),
        )  # fmt: skip


def _count(count: Callable[..., float]) -> Callable[..., float]:
    def take(run: MeasuredRun, flow: str | int | None = None, *, queue: str | None = None) -> float:
        name = None if flow is None else flow_of(run.document, flow).name
        return float(count(run.counters, run.queue(queue), name))

    return take


for _name, _label, _count_of, _formula in (
    ("marks", "CE marks", marks_of, "CE marks of the bottleneck over the whole run; of one flow's packets if named"),
    ("sce_marks", "SCE marks", sce_marks_of, "SCE marks, likewise"),
    ("drops", "drops", drops_of, "drops, likewise"),
):
    CATALOGUE.add(Measure(_name, "queue", "packet", _label, _formula, _count(_count_of), at=_name))


# Probes.


def _ping(of: str, *, induced: bool) -> Callable[..., float]:
    def take(run: MeasuredRun, probe: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
        part = probe_of(run.document, probe)
        found = run.summary.probes[part.name].rtt_s
        if begin is not None or end is not None:
            found = distribution(run.samples.of("probe", part.name, "rtt", run.window(begin, end))[1])
        return _statistic(found, of, part.name) - (base_rtt(run.document, part) if induced else 0.0)

    return take


for _of, _said in _statistics("mean", "p50", "p99", "max"):
    CATALOGUE.add(
        Measure(
            f"ping_{_of}", "probe", "s", f"probe RTT, {_said}", f"{_said} of the probe's RTT",
            _ping(_of, induced=False), needs=("rtt",), at=f"rtt_s.{_of}", stem=f"rtt_{_of}", tabled=_of != "max",
            aliases=("ping",) if _of == "mean" else (),
        )
    )  # fmt: skip
for _of, _said in _statistics("mean", "p50", "p99", "max"):
    CATALOGUE.add(
        Measure(
            f"ping_delay_{_of}", "probe", "s", f"probe RTT less the base RTT, {_said}",
            f"{_said} of the probe's RTT less the base RTT", _ping(_of, induced=True), needs=("rtt",),
            bounds=ANY_SIGN,
        )
    )  # fmt: skip


@_measure(
    "ping_delay_above", "probe", "1", "share of the probe's RTTs above a limit",
    "share of the probe's samples whose induced latency is above a limit", needs=("rtt",), bounds=SHARE, percent=True,
)  # fmt: skip
def _ping_delay_above(
    run: MeasuredRun, above: float, probe: str | None = None, *, begin: Edge = None, end: Edge = None
) -> float:
    part = probe_of(run.document, probe)
    rtts = run.samples.of("probe", part.name, "rtt", run.window(begin, end))[1]
    return induced_latency_above(rtts, base_rtt(run.document, part), above)


_stored("ping_jitter", "probe", "s", "probe jitter", "mean interarrival jitter of a probe's answers", "jitter_s",
        source=_RFC3550, stem="jitter")  # fmt: skip
_stored("ping_loss", "probe", "1", "probes lost", "share of the probe's requests without an answer", "loss",
        stem="loss", bounds=SHARE, percent=True)  # fmt: skip
for _of, _said in _statistics("mean", "p50", "p99"):
    _stored(
        f"induced_{_of}", "probe", "s", f"induced latency, {_said}",
        f"{_said} of the samples of the probe's RTT less the base RTT", f"induced_s.{_of}", bounds=ANY_SIGN,
    )  # fmt: skip


def _ipdv_of(of: str) -> Callable[..., float]:
    def take(run: MeasuredRun, probe: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
        part = probe_of(run.document, probe)
        sent, rtt = run.samples.of("probe", part.name, "rtt", run.window(begin, end))
        return float(getattr(distribution(ipdv(sent, rtt, part.every_s)), of))

    return take


for _of, _said in _statistics("mean", "p50", "p99", "max"):
    CATALOGUE.add(
        Measure(
            f"ipdv_{_of}", "probe", "s", f"IPDV, {_said}", f"{_said} of |RTT - RTT before| of the probe's answers",
            _ipdv_of(_of), source="RFC 3393", needs=("rtt",), at=f"ipdv_s.{_of}", tabled=_of != "max",
        )
    )  # fmt: skip
_stored("ping_spike_height", "probe", "s", "height of the highest spike of the probe's RTT",
        "height over the base RTT of the highest excursion of the probe's RTT", "spike.height_s",
        stem="spike_height")  # fmt: skip
_stored("ping_spike_duration", "probe", "s", "duration of this spike", "how long this excursion stays above it",
        "spike.duration_s", stem="spike_duration")  # fmt: skip


# Runs, and the flows that share a queue.


@_measure(
    "total_goodput", "run", "bit/s", "total goodput", "sum of the goodputs of all flows, or of a name or pattern",
    needs=("received",),
)  # fmt: skip
def _total_goodput(run: MeasuredRun, flows: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
    return sum(_goodput_of(run, flow.name, begin, end) for flow in flows_of(run.document, flows))


@_measure(
    "jain", "run", "1", "Jain's index",
    "Jain's index of the goodputs of the long TCP flows that share a queue: 1 if all are equal",
    source=_JAIN, needs=("received",), at="jain", bounds=SHARE,
)  # fmt: skip
def _jain(run: MeasuredRun, queue: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
    return jain_of([_goodput_of(run, flow, begin, end) for flow in run.sharing(queue).flows])


@_measure(
    "ratio", "run", "1", "ratio of the goodputs",
    "the largest to the smallest goodput of the long TCP flows that share a queue, at least 1",
    needs=("received",), at="ratio", bounds=FROM_ONE,
)  # fmt: skip
def _ratio(run: MeasuredRun, queue: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
    rates = [_goodput_of(run, flow, begin, end) for flow in run.sharing(queue).flows]
    return max(rates) / min(rates) if min(rates) else inf


def _delivery_rates(of: str) -> Callable[..., float]:
    def take(run: MeasuredRun, queue: str | None = None) -> float:
        return _known(getattr(run.sharing(queue), of), of)

    return take


CATALOGUE.add(
    Measure(
        "jain_delivery_rate", "run", "1", "Jain's index of the delivery rates",
        "Jain's index of the delivery rates of the long TCP flows that share a queue",
        _delivery_rates("jain_delivery_rate"), source=_JAIN, at="jain_delivery_rate", bounds=SHARE,
    )
)  # fmt: skip
CATALOGUE.add(
    Measure(
        "ratio_delivery_rate", "run", "1", "ratio of the delivery rates",
        "the largest to the smallest delivery rate of the long TCP flows that share a queue, at least 1",
        _delivery_rates("ratio_delivery_rate"), source="l4s-tests, steady_state.go", at="ratio_delivery_rate",
        bounds=FROM_ONE,
    )
)  # fmt: skip


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


@_measure(
    "convergence", "run", "s", "convergence",
    "from the later flow's start until both rates stay within a ratio; never: infinite",
    needs=("received",), at="pair.convergence_s", seconds=True, may_never=True,
)  # fmt: skip
def _convergence(
    run: MeasuredRun,
    *,
    smooth: float = SMOOTH_S,
    ratio: float = RATIO,
    hold: float = HOLD_S,
    begin: Edge = None,
    end: Edge = None,
) -> float:
    one, two, start = _pair(run, smooth, begin, end)
    return convergence(one, two, start, ratio, hold)


@_measure(
    "meet", "run", "s", "meeting of the rates",
    "from the later flow's start until its rate first reaches the other's; never: infinite",
    needs=("received",), at="pair.meet_s", seconds=True, may_never=True,
)  # fmt: skip
def _meet(run: MeasuredRun, *, smooth: float = SMOOTH_S, begin: Edge = None, end: Edge = None) -> float:
    return meeting(*_pair(run, smooth, begin, end))


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
