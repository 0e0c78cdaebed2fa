"""The measures of flows in the catalogue."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from bakeoff.errors import MeasureError
from bakeoff.measure.catalogue import ANY_SIGN, SHARE
from bakeoff.measure.delays import base_rtt, distribution, mean_base_rtt
from bakeoff.measure.marks import resent_share
from bakeoff.measure.measured_run import MeasuredRun, flow_of
from bakeoff.measure.over_time import (
    BELOW,
    OVER_S,
    REACHED,
    SMOOTH_S,
    WITHIN_S,
    long_flows,
    oscillations,
    overshoot,
    recovery,
    rise,
    spike,
    spike_after,
    starvation,
)
from bakeoff.measure.rates import goodput_of, is_there, steady_state_rate
from bakeoff.measure.registration import Edge, Take, family, known, measure, statistic, stored

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array
    from bakeoff.results.summary import RatedQueue
    from bakeoff.scenario.run import Flow

RFC3550 = "RFC 3550, section 6.4.1"

# Rates.


@measure(
    "goodput", "flow", "bit/s", "goodput",
    "payload that reached the receiving socket per second, between the samples of the window",
    source="RFC 2647, section 3.17", needs=("received",), at="steady_state.goodput_bps",
)  # fmt: skip
def goodput(run: MeasuredRun, flow: str | int, *, begin: Edge = None, end: Edge = None) -> float:
    """In bit/s."""
    part = flow_of(run.document, flow)
    if begin is None and end is None:
        return known(run.summary.flows[part.name].steady_state.goodput_bps, f"the goodput of flow '{part.name}'")
    return goodput_of(run.document, run.counters, run.samples, part, run.window(begin, end))


@measure(
    "delivery_rate", "flow", "bit/s", "delivery rate",
    "mean of the non-zero samples of `tcpi_delivery_rate`; none for UDP and `short` flows",
    source="l4s-tests", needs=("delivery_rate",), at="steady_state.delivery_rate_bps",
)  # fmt: skip
def _delivery_rate(run: MeasuredRun, flow: str | int, *, begin: Edge = None, end: Edge = None) -> float:
    name = flow_of(run.document, flow).name
    if begin is None and end is None:
        return known(run.of_flow(name).steady_state.delivery_rate_bps, f"the delivery rate of flow '{name}'")
    return steady_state_rate(*run.samples.of("flow", name, "delivery_rate"), run.window(begin, end))


@measure(
    "share", "flow", "1", "share of the goodput",
    "goodput over the goodputs of all flows at its queue in the window",
    needs=("received",), bounds=SHARE, percent=True, decimals=0,
)  # fmt: skip
def _share(run: MeasuredRun, flow: str | int, *, begin: Edge = None, end: Edge = None) -> float:
    own_flow, window = flow_of(run.document, flow), run.window(begin, end)
    others = [each for each in run.beside(own_flow) if is_there(run.document, each, window)]
    own = float(goodput(run, own_flow.name, begin=begin, end=end))
    total = own + sum(float(goodput(run, each.name, begin=begin, end=end)) for each in others)
    if not total:
        raise MeasureError("no flow received data")
    return own / total


# Round-trip times and delays.


def _rtt(of: str, *, induced: bool = False) -> Take:
    def take(run: MeasuredRun, flow: str | int, *, begin: Edge = None, end: Edge = None) -> float:
        part = flow_of(run.document, flow)
        found = run.summary.flows[part.name].srtt_s
        if begin is not None or end is not None:
            found = distribution(run.samples.of("flow", part.name, "srtt", run.window(begin, end))[1])
        base = mean_base_rtt(run.document, part, window=run.window(begin, end)) if induced else 0.0
        return statistic(found, of, part.name) - base

    return take


family(
    "mean p50 p99 max", "srtt", "flow", "TCP RTT", "TCP's smoothed RTT", _rtt, at="srtt_s",
    source="`tcpi_rtt`, RFC 6298", needs=("srtt",),
    aliases={"mean": ("rtt_mean", "tcp_rtt"), "p50": ("rtt_p50",), "p99": ("rtt_p99", "tcp_rtt_p99"),
             "max": ("rtt_max",)},
)  # fmt: skip
family(
    "mean p50 p99 max", "tcp_delay", "flow", "TCP RTT less the base RTT",
    "TCP's smoothed RTT minus the mean base RTT of the path in the window", lambda of: _rtt(of, induced=True),
    needs=("srtt",), bounds=ANY_SIGN,
)  # fmt: skip
family(
    "mean p50 p99 max", "ack_rtt", "flow", "RTT of ACKs",
    "the RTT samples of all ACKs in the window (simulator)", at="rtt_s", stem="rtt",
)  # fmt: skip
family(
    "mean p50 p99 max", "udp_delay", "flow", "one-way delay", "the one-way delay of a UDP flow's datagrams",
    at="delay_s", stem="delay",
)  # fmt: skip
stored(
    "udp_jitter", "flow", "s", "jitter", "mean interarrival jitter of a UDP flow", "jitter_s",
    source=RFC3550, stem="jitter",
)  # fmt: skip
stored(
    "udp_loss", "flow", "1", "loss", "share of a UDP flow's datagrams that never arrived", "loss",
    stem="loss", bounds=SHARE, percent=True,
)  # fmt: skip


# Signals.


def _counted(key: str) -> Take:
    def take(run: MeasuredRun, flow: str | int) -> float:
        name = flow_of(run.document, flow).name
        return known(getattr(run.counters.flow(name), key), f"counters: flows.{name}.{key}")

    return take


stored(
    "retransmissions", "flow", "packet", "retransmissions", "retransmitted segments, over the whole run",
    "retransmissions",
)  # fmt: skip


@measure(
    "resent_share", "flow", "1", "share of segments sent again",
    "retransmitted segments over all segments sent, over the whole run", bounds=SHARE, percent=True,
)  # fmt: skip
def _resent_share(run: MeasuredRun, flow: str | int) -> float:
    return resent_share(run.counters, flow_of(run.document, flow).name)


stored(
    "mark_fraction", "flow", "1", "share of packets marked",
    "share of the flow's packets marked CE, over the whole run: `delivered_ce` / `delivered` with AccECN, else marks "
    "over packets at the queues", "mark_fraction",
    bounds=SHARE, percent=True,
)  # fmt: skip
for _name, _key, _label, _formula in (
    ("seen_marks", "received_ce", "CE marks received", "data segments or datagrams that arrived with CE"),
    (
        "seen_ect1",
        "received_ect1",
        "ECT(1) received",
        "data segments or datagrams that arrived as ECT(1), on Linux with AccECN only",
    ),
    (
        "echoed_marks",
        "delivered_ce",
        "CE marks echoed",
        "CE marks that the receiver echoed; with RFC 3168 feedback the segments that ACKs with ECE acknowledged",
    ),
):
    _text = f"{_formula} (`tcpi_{_key}`), over the whole run"
    measure(_name, "flow", "packet", _label, _text, at=_name)(_counted(_key))


# Rates and delays over time.


def _starvation(*, as_time: bool) -> Take:
    def take(
        run: MeasuredRun,
        flow: str | int,
        *,
        below: float = BELOW,
        smooth: float = SMOOTH_S,
        begin: Edge = None,
        end: Edge = None,
    ) -> float:
        own = flow_of(run.document, flow)
        names = {each.name for each in run.beside(own)}
        others = []
        for each in long_flows(run.document):
            if each.name in names:
                with suppress(MeasureError):  # a flow that starts as the run ends
                    others.append(run.rate(each, smooth))
        if not others:
            raise MeasureError(f"flow '{own.name}' shares its queue with no other long flow of TCP")
        start, stop = run.window(begin, end)
        share = starvation(run.rate(own, smooth), others, (start, stop), below)
        return share * (stop - start) if as_time else share

    return take


measure(
    "starvation", "flow", "1", "starvation",
    "share of the window with a smoothed rate below `below` times the fair share, the mean of the long flows at its "
    "queue at that time",
    needs=("received",), at="starvation", bounds=SHARE, percent=True,
)(_starvation(as_time=False))  # fmt: skip
measure(
    "starved_time", "flow", "s", "starved time", "`starvation` times the length of the window", needs=("received",),
)(_starvation(as_time=True))  # fmt: skip


@measure(
    "oscillations", "flow", "1/s", "oscillations of the rate",
    "crossings of the smoothed rate with its own mean, per second", needs=("received",), at="oscillations_per_s",
)  # fmt: skip
def _oscillations(
    run: MeasuredRun, flow: str | int, *, smooth: float = SMOOTH_S, begin: Edge = None, end: Edge = None
) -> float:
    return oscillations(*run.rate(flow_of(run.document, flow), smooth), run.window(begin, end))


def _spike(of: str) -> Take:
    def take(
        run: MeasuredRun,
        name: str,
        *,
        base: float | None = None,
        over: float | None = None,
        after: float | None = None,
        begin: Edge = None,
        end: Edge = None,
    ) -> float:
        time, delay, own = run.delays(name, run.window(begin, end))
        if after is not None:
            return float(getattr(spike_after(time, delay, after, base, over), of))
        return float(getattr(spike(time, delay, own if base is None else base, OVER_S if over is None else over), of))

    return take


measure(
    "spike_height", "flow", "s", "height of the highest RTT spike",
    "height above the base RTT (with `after=`, the mean RTT before) of the highest RTT excursion of a flow or probe; 0 "
    "without one",
    needs=("srtt", "rtt"), at="spike.height_s",
)(_spike("height_s"))  # fmt: skip
measure(
    "spike_duration", "flow", "s", "duration of the highest RTT spike",
    "time for which this excursion stays above base + over (10 ms; with `after=` 5 ms or 10 % of the height)",
    needs=("srtt", "rtt"), at="spike.duration_s",
)(_spike("duration_s"))  # fmt: skip


@measure(
    "recovery", "flow", "s", "recovery of the RTT",
    "time from `after` until the RTT stays at most base + within; infinite if it never does", needs=("srtt", "rtt"),
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


@measure(
    "rise", "flow", "s", "time to the fair share",
    "time from the flow's start until its goodput over the following `smooth` (two base RTTs) stays for `hold` (ten) "
    "at `ratio` of its fair share or above, which is the bottleneck's rate over the number of long flows there; "
    "infinite if it never does",
    needs=("received",), seconds=True, may_never=True,
)  # fmt: skip
def _rise(
    run: MeasuredRun,
    flow: str | int,
    *,
    ratio: float = REACHED,
    smooth: float | None = None,
    hold: float | None = None,
    begin: Edge = None,
    end: Edge = None,
) -> float:
    own = flow_of(run.document, flow)
    beside = {each.name for each in run.beside(own)}
    share = _narrow(run, own).rate_bps / (1 + sum(each.name in beside for each in long_flows(run.document)))
    counted = run.samples.of("flow", own.name, "received", run.whole(None, end))
    rtt = base_rtt(run.document, own)
    over, held = 2 * rtt if smooth is None else smooth, 10 * rtt if hold is None else hold
    return rise(counted, own.start_s if begin is None else begin, ratio * share, over, held)


@measure(
    "overshoot", "flow", "packet", "overshoot of slow start",
    "drops at the flow's bottleneck, of all flows, from its start until a base RTT after the end of its slow start, "
    "the first sample with an `ssthresh`",
    needs=("ssthresh", "drops"),
)  # fmt: skip
def _overshoot(run: MeasuredRun, flow: str | int) -> float:
    own = flow_of(run.document, flow)
    queues = _narrow(run, own).queues
    if len(queues) != 1:
        raise MeasureError(f"flow '{own.name}' has {len(queues)} queues at its bottleneck; expected 1")
    drops = run.samples.of("queue", queues[0], "drops")
    try:
        ssthresh = run.samples.of("flow", own.name, "ssthresh")
    except MeasureError:
        ssthresh = drops[0][:0], drops[1][:0]
    return overshoot(ssthresh, drops, own.start_s, base_rtt(run.document, own))


def _narrow(run: MeasuredRun, flow: Flow) -> RatedQueue:
    """The flow's bottleneck. MeasureError if it has none, as on machines without a rate."""
    where = run.of_flow(flow.name).bottleneck
    found = [each for each in run.summary.rated if where in (each.queue, each.hop) and flow.name in each.flows]
    if not found:
        raise MeasureError(f"flow '{flow.name}' has no bottleneck with a rate")
    return found[0]


def _cwnd(of: str) -> Take:
    def take(run: MeasuredRun, flow: str | int, *, begin: Edge = None, end: Edge = None) -> float:
        name = flow_of(run.document, flow).name
        values: Array = run.samples.of("flow", name, "cwnd", run.window(begin, end))[1]
        return float(getattr(values, of)())

    return take


for _of, _said in (("min", "smallest"), ("max", "largest"), ("mean", "mean")):
    _text = f"{_said} sample of the congestion window"
    measure(f"{_of}_cwnd", "flow", "packet", f"{_said} cwnd", _text, needs=("cwnd",))(_cwnd(_of))


# What applications see.

family(
    "geometric_mean p50 p95 p99 mean max", "fct", "flow", "flow completion time",
    "the completion times of a `short` flow's objects, from the SYN until the sender learns that all was received",
    at="fct.fct_s", untabled=("mean", "max"),
    aliases={"p50": ("fct",)},
)  # fmt: skip
stored(
    "unfinished", "flow", "1", "unfinished objects",
    "objects of a `short` flow started in the window and unfinished",
    "fct.unfinished",
)  # fmt: skip
stored(
    "video_rate", "flow", "bit/s", "video rate",
    "mean rate of the video segments, over the whole run", "video.mean_rate_bps",
    stem="video_mean_rate",
)  # fmt: skip
stored(
    "startup", "flow", "s", "startup", "time from opening a video to playback", "video.startup_s", stem="video_startup",
    seconds=True, may_never=True,
)  # fmt: skip
stored(
    "stalls", "flow", "1", "stalls", "interruptions of playback, over the whole run", "video.stalls",
    stem="video_stalls",
)  # fmt: skip
stored(
    "stalled", "flow", "s", "stalled time",
    "total time of these interruptions", "video.stalled_s", stem="video_stalled",
    seconds=True,
)  # fmt: skip
stored(
    "switches", "flow", "1", "rate switches", "changes of the segment rate", "video.switches",
    stem="video_switches",
)  # fmt: skip
