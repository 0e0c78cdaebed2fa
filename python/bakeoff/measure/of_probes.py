"""The measures of probes in the catalogue."""

from __future__ import annotations

from bakeoff.measure.catalogue import ANY_SIGN, SHARE
from bakeoff.measure.delays import base_rtt, distribution, induced_latency_above, ipdv
from bakeoff.measure.measured_run import MeasuredRun, probe_of
from bakeoff.measure.of_flows import RFC3550
from bakeoff.measure.registration import Edge, Take, family, measure, statistic, stored


def _rtt(of: str, *, induced: bool = False) -> Take:
    def take(run: MeasuredRun, probe: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
        part = probe_of(run.document, probe)
        found = run.summary.probes[part.name].rtt_s
        if begin is not None or end is not None:
            found = distribution(run.samples.of("probe", part.name, "rtt", run.window(begin, end))[1])
        return statistic(found, of, part.name) - (base_rtt(run.document, part) if induced else 0.0)

    return take


family(
    "mean p50 p99 max", "ping", "probe", "probe RTT", "the probe's RTT", _rtt, at="rtt_s", stem="rtt",
    needs=("rtt",), aliases={"mean": ("ping",)},
)  # fmt: skip
family(
    "mean p50 p99 max", "ping_delay", "probe", "probe RTT less the base RTT", "the probe's RTT minus the base RTT",
    lambda of: _rtt(of, induced=True), needs=("rtt",), bounds=ANY_SIGN,
)  # fmt: skip


@measure(
    "ping_delay_above", "probe", "1", "share of the probe's RTTs above a limit",
    "share of the probe's samples whose induced latency is above `above`", needs=("rtt",), bounds=SHARE, percent=True,
)  # fmt: skip
def _ping_delay_above(
    run: MeasuredRun, above: float, probe: str | None = None, *, begin: Edge = None, end: Edge = None
) -> float:
    part = probe_of(run.document, probe)
    rtts = run.samples.of("probe", part.name, "rtt", run.window(begin, end))[1]
    return induced_latency_above(rtts, base_rtt(run.document, part), above)


stored(
    "ping_jitter", "probe", "s", "probe jitter", "mean interarrival jitter of the round trips", "jitter_s",
    source=RFC3550, stem="jitter",
)  # fmt: skip
stored(
    "ping_loss", "probe", "1", "probes lost", "share of the requests without a reply", "loss",
    stem="loss", bounds=SHARE, percent=True,
)  # fmt: skip
family(
    "mean p50 p99", "induced", "probe", "induced latency",
    "the induced latency: the samples of the RTT minus the base RTT",
    at="induced_s", bounds=ANY_SIGN,
)  # fmt: skip


def _ipdv(of: str) -> Take:
    def take(run: MeasuredRun, probe: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
        part = probe_of(run.document, probe)
        sent, rtt = run.samples.of("probe", part.name, "rtt", run.window(begin, end))
        return float(getattr(distribution(ipdv(sent, rtt, part.every_s)), of))

    return take


family(
    "mean p50 p99 max", "ipdv", "probe", "IPDV",
    "|RTT - previous RTT| of replies to successive requests", _ipdv, at="ipdv_s",
    source="RFC 3393", needs=("rtt",),
)  # fmt: skip
stored(
    "ping_spike_height", "probe", "s", "height of the highest spike of the probe's RTT",
    "height above the base RTT of the highest RTT excursion", "spike.height_s", stem="spike_height",
)  # fmt: skip
stored(
    "ping_spike_duration", "probe", "s", "duration of this spike",
    "time for which this excursion stays 10 ms above the base RTT",
    "spike.duration_s", stem="spike_duration",
)  # fmt: skip
