"""All measures of one run: what stands in `summary.json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from bakeoff.errors import MeasureError
from bakeoff.measure import phases as cut
from bakeoff.measure.applications import completion, video
from bakeoff.measure.bottleneck import bottleneck, bottlenecks, leaves, payload_fraction
from bakeoff.measure.checks import checks
from bakeoff.measure.delays import (
    PARTS,
    arrivals,
    base_rtt,
    distribution,
    histogram,
    ipdv,
    jitter,
    little,
    lost_share,
    shares_a_clock,
    told_by_tool,
    told_jitter,
    told_loss,
)
from bakeoff.measure.marks import drops, mark_fraction, marks, retransmissions, sce_marks
from bakeoff.measure.over_time import Rates, spike
from bakeoff.measure.rates import End, goodput_of, steady_state_rate, utilisation, window_of
from bakeoff.measure.samples import Samples, Window
from bakeoff.measure.sharing import ends, of_the_only, queues, sharing
from bakeoff.measure.stations import Station, stations
from bakeoff.results.summary import (
    FORMAT,
    Bottleneck,
    Check,
    Distribution,
    Flow,
    FlowAtQueue,
    Probe,
    Queue,
    RatedQueue,
    Sharing,
    Spike,
    SteadyState,
    Summary,
)
from bakeoff.scenario.run import Bulk, ConstantRate, Periodic, Short
from bakeoff.scenario.timeline import Timeline

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.results.counters import Counters
    from bakeoff.scenario.run import Flow as RunFlow
    from bakeoff.scenario.run import Probe as RunProbe
    from bakeoff.scenario.run import Run

T = TypeVar("T")


def summarise(result: Result, *, end: End = "text") -> Summary:
    """Every measure of a run.

    Marks, drops and retransmissions are those of the whole run; everything else is taken in the steady-state window
    (`end`: see `window_of`; it moves the rates only), and per phase of it where something changes inside. Short flows
    are left out of Jain's index and the ratio, as the suites define them, and so are UDP flows, which send what they
    are told to. A measure that cannot be computed is None, and `missing` says why: "flows.cubic.srtt_s: no 'srtt'
    samples of flow 'cubic' between 18 s and 58 s". A flow that gets nothing through, or starts as the run
    ends, is a result: see `goodput_of`. Raises MeasureError if there are no series, unless all flows are of that kind.
    """
    run, counters = result.run, result.counters
    place = run.name
    received = [counters.flow(flow.name).received_bytes for flow in run.flows]
    if not result.parts and (not received or any(each != 0 for each in received)):
        raise MeasureError(f"{place}: the run has no series")
    samples = Samples(result.parts)
    sampled = frozenset(samples.names("flow"))
    window, timeline = window_of(run), Timeline(run)
    narrows = bottlenecks(run, window, timeline)
    at = {flow.name: narrows[flow.name].queue if flow.name in narrows else None for flow in run.flows}
    rates = Rates(run, samples, queues(at, ends(run)))
    given = _Inputs(run, counters, samples, window, end, rates, sampled, timeline, _narrow=narrows)
    flows = {flow.name: _flow(given, flow) for flow in run.flows}
    counted = {name: _queue(given, name) for name in counters.queues}
    probes = {probe.name: _probe(given, probe) for probe in run.probes}
    places = given.tried("rated", lambda: stations(run, counters, samples, given.window, given.timeline)) or []
    first = run.flows[0] if run.flows else None
    narrow = given.tried("bottleneck", lambda: given.bottleneck(first)) if first else None
    shared = _sharing(given, flows)
    changed = cut.changes(run, given.window)
    phases = cut.phases(run, counters, samples, given.window, places, timeline=given.timeline)
    if changed and not phases:
        given.missing.append(f"phases: {len(changed)} changes in the window; expected at most {cut.MOST - 1}")
    found = Summary(
        format=FORMAT,
        suite=run.suite,
        scenario=run.scenario,
        run=run.run,
        seed=run.seed,
        window_s=given.window,
        flows=flows,
        queues=counted,
        probes=probes,
        bottleneck=narrow,
        utilisation=given.tried("utilisation", lambda: _used(given, flows, places, narrow)) if first else None,
        shared=shared,
        **of_the_only(shared),
        checks=[*checks(run, counters), *_capacities(given, places)],
        missing=given.missing,
        rated=[_rated(given, station) for station in places],
        changes=[f"at {at:g} s {what}" for at, what in changed],
        phases=phases,
        pair=given.rates.pair(),
    )
    # Whole numbers where the form has fractions become such, as in what is read again.
    return msgspec.convert(msgspec.to_builtins(found), Summary)


def summary_of(result: Result) -> Summary:
    """The summary that lies beside a result; a new one if there is none, or one of an older format."""
    found = result.summary
    if found is None or found.format < _UPGRADED:
        return summarise(result)
    return found if found.format == FORMAT else _upgraded(found, result)


_UPGRADED: Final = 4
"""The oldest format that has all of today's numbers but `shared` and `starvation`."""


def _upgraded(found: Summary, result: Result) -> Summary:
    """A summary of format 4, which had one index for the flows at the first flow's bottleneck, or of 5.

    Both held each long flow against all others, which is `starvation` only where all share one queue. Elsewhere it is
    None if the run has no samples to take it from.
    """
    long = {name for name, flow in found.flows.items() if flow.transport == "tcp" and flow.fct is None}
    shared = sharing(found.flows, ends(result.run), long, [])
    flows = found.flows
    one_queue = any(set(each.flows) == long for each in shared.values())
    if not one_queue and any(flow.starvation is not None for flow in flows.values()):
        if result.record.kept == "all":
            return summarise(result)
        flows = {name: msgspec.structs.replace(flow, starvation=None) for name, flow in flows.items()}
    return msgspec.structs.replace(found, format=FORMAT, flows=flows, shared=shared, **of_the_only(shared))


@dataclass(frozen=True)
class _Inputs:
    """What every measure of a run is taken from, and which of them could not be taken."""

    run: Run
    counters: Counters
    samples: Samples
    window: Window
    end: End
    rates: Rates
    sampled: frozenset[str]
    """The flows that have samples."""
    timeline: Timeline
    missing: list[str] = field(default_factory=list)
    _narrow: dict[str, Bottleneck] = field(default_factory=dict)

    def bottleneck(self, flow: RunFlow) -> Bottleneck:
        """`bottleneck` of a flow in the window, which is looked for once."""
        if flow.name not in self._narrow:
            self._narrow[flow.name] = bottleneck(self.run, flow, self.window, self.timeline)
        return self._narrow[flow.name]

    def by_tool(self, flow: str, metric: str) -> bool:
        """Whether a program or a tool makes the flow and its output tells no such samples, which is no surprise."""
        tools = self.run.tools is not None and self.run.tools.flows is not None
        return (tools or flow in self.run.by_programs("flow")) and ("flow", flow, metric) not in self.samples

    def tried(self, name: str, measure: Callable[[], T]) -> T | None:
        """A measure that may not exist: None and a line that names what is missing, instead of an exception."""
        try:
            return measure()
        except MeasureError as error:
            self.missing.append(f"{name}: {error}")
            return None


def _flow(given: _Inputs, flow: RunFlow) -> Flow:
    run, counters, samples, tried = given.run, given.counters, given.samples, given.tried
    name, kind = flow.name, flow.source.kind
    at = f"flows.{name}"
    if name not in given.sampled:
        # One line, in the place of one for each measure of what was never there.
        given.missing.append(f"{at}: no samples: no packet arrived; no rate, RTT and marks")
        tried = replace(given, missing=[]).tried
    counted = counters.flow(name)
    tcp = flow.transport == "tcp"
    # Many connections have neither one rate nor one round-trip time.
    single = tcp and not _is_short(flow)
    timed = single and not given.by_tool(name, "srtt")

    def delivery_rate() -> float:
        time, rate = samples.of("flow", name, "delivery_rate")
        return steady_state_rate(time, rate, window_of(run, end=given.end, last_s=float(time[-1])))

    def received() -> float:
        within = given.window
        if ("flow", name, "received") in samples:
            last_s = float(samples.of("flow", name, "received")[0][-1])
            within = window_of(run, end=given.end, last_s=last_s)
        return goodput_of(run, counters, samples, flow, within)

    def srtt() -> Distribution:
        return distribution(samples.of("flow", name, "srtt", given.window)[1])

    def highest() -> Spike:
        return spike(*samples.of("flow", name, "srtt", given.window), base_rtt(run, flow))

    counts_packets = tcp and _tells_packets(counters)
    by_ack = tcp and counted.ecn == "accecn"
    marked = (
        tried(f"{at}.mark_fraction", lambda: mark_fraction(run, counters, flow)) if by_ack or counts_packets else None
    )
    narrow = given.tried(f"{at}.bottleneck", lambda: given.bottleneck(flow))
    return Flow(
        cc=counted.cc,
        ecn=counted.ecn,
        transport=flow.transport,
        start_s=flow.start_s,
        bottleneck=narrow.queue if narrow else None,
        steady_state=SteadyState(
            delivery_rate_bps=tried(f"{at}.steady_state.delivery_rate_bps", delivery_rate)
            if single and not given.by_tool(name, "delivery_rate")
            else None,
            goodput_bps=given.tried(f"{at}.steady_state.goodput_bps", received),
        ),
        srtt_s=tried(f"{at}.srtt_s", srtt) if timed else None,
        rtt_s=tried(f"{at}.rtt_s", lambda: histogram(counted.rtt, f"flows.{name}.rtt")) if counts_packets else None,
        retransmissions=tried(f"{at}.retransmissions", lambda: retransmissions(counters, name)) if tcp else None,
        mark_fraction=marked[0] if marked else None,
        mark_fraction_of=marked[1] if marked else None,
        spike=tried(f"{at}.spike", highest) if timed else None,
        starvation=given.rates.starvation(name, given.window),
        oscillations_per_s=given.rates.oscillations(name, given.window),
        seen_marks=counted.received_ce,
        seen_ect1=counted.received_ect1,
        echoed_marks=counted.delivered_ce if tcp else None,
        fct=tried(f"{at}.fct", lambda: completion(samples, name, given.window)) if kind == "short" else None,
        video=tried(f"{at}.video", lambda: video(samples, name)) if kind == "video" else None,
        **({} if tcp else _datagrams(given, name)),
    )


def _tells_packets(counters: Counters) -> bool:
    """Whether the engine tells of single packets and ACKs; a real kernel does not, and that is no surprise."""
    return counters.conservation is not None


def _datagrams(given: _Inputs, name: str) -> dict[str, Any]:
    """What the datagrams of a UDP flow met, if the engine tells it of each, or a tool of all in an interval."""
    if told_by_tool(given.samples, name):
        return {
            "jitter_s": given.tried(f"flows.{name}.jitter_s", lambda: told_jitter(given.samples, name, given.window)),
            "loss": given.tried(f"flows.{name}.loss", lambda: told_loss(given.samples, name, given.window)),
        }
    if not any(("flow", name, metric) in given.samples for metric in ("delay", "delay_variation", "missing")):
        return {}
    at = f"flows.{name}"
    came = given.tried(f"{at}.delay_s", lambda: arrivals(given.samples, name, given.window))
    one_clock = shares_a_clock(given.samples, name)
    if came and not one_clock:
        given.missing.append(
            f"{at}.delay_s: its ends are two machines, whose clocks differ; jitter and loss need no clock"
        )
    return {
        "delay_s": distribution(came[1]) if came and one_clock else None,
        "jitter_s": jitter(*came) if came else None,
        "loss": given.tried(f"{at}.loss", lambda: lost_share(given.samples, "flow", name, given.window)),
    }


def _is_short(flow: RunFlow) -> bool:
    return isinstance(flow.source, Short)


def _queue(given: _Inputs, name: str) -> Queue:
    counters, samples = given.counters, given.samples
    counted = counters.queues[name]

    def over_time() -> Distribution:
        return distribution(samples.of("queue", name, "sojourn", given.window)[1])

    # Only egress leaves are sampled, and no packet passes the ones beside the path: neither is a surprise.
    sampled = ("queue", name, "sojourn") in samples
    return Queue(
        qdisc=counted.qdisc,
        sojourn_s=histogram(counted.sojourn, f"queues.{name}.sojourn") if counted.sojourn.n else None,
        sojourn_mean_s=given.tried(f"queues.{name}.sojourn_mean_s", over_time) if sampled else None,
        sojourn_little_s=_by_littles_law(given, name),
        parts=_parts(given, name),
        marks=marks(counters, name),
        sce_marks=sce_marks(counters, name),
        drops=drops(counters, name),
        dropped=counted.drops,
        flows={flow: FlowAtQueue(**msgspec.structs.asdict(part)) for flow, part in counted.flows.items()},
    )


def _by_littles_law(given: _Inputs, name: str) -> Distribution | None:
    """None of a queue that is not sampled, or that nothing left in the window: neither is a surprise."""
    if ("queue", name, "backlog") in given.samples:
        with suppress(MeasureError):
            return little(given.samples, name, given.window)
    return None


def _parts(given: _Inputs, name: str) -> dict[str, Distribution] | None:
    """The delays within a queue; of a part that nothing passed in the window there are none, which is no surprise."""
    found = {}
    for part, metric in PARTS.items():
        if ("queue", name, metric) in given.samples:
            with suppress(MeasureError):
                found[part] = distribution(given.samples.of("queue", name, metric, given.window)[1])
    return found or None


def _probe(given: _Inputs, probe: RunProbe) -> Probe:
    name = probe.name
    at = f"probes.{name}"
    rtt = given.tried(f"{at}.rtt_s", lambda: histogram(given.counters.probe(name).rtt, f"probes.{name}.rtt"))
    # An answer counts when it comes, and its sample stands where the request was sent, which may be before the window.
    answered = (
        given.tried(f"{at}.jitter_s", lambda: given.samples.of("probe", name, "rtt", given.window)) if rtt else None
    )
    base = given.tried(f"{at}.induced_s", lambda: base_rtt(given.run, probe)) if answered else None
    return Probe(
        rtt_s=rtt,
        loss=given.tried(f"{at}.loss", lambda: _loss(given, name)),
        # Of a probe that had no answer in the window the line above tells so once.
        jitter_s=jitter(*answered) if answered else None,
        induced_s=distribution(answered[1] - base) if answered and base is not None else None,
        ipdv_s=given.tried(f"{at}.ipdv_s", lambda: distribution(ipdv(*answered, probe.every_s))) if answered else None,
        spike=spike(*answered, base) if answered and base is not None else None,
    )


def _loss(given: _Inputs, probe: str) -> float:
    """Without a count of what was sent, as of netperf's probes, a probe without losses is not told from one with."""
    if given.counters.probe(probe).sent is None:
        raise MeasureError(f"unknown number of requests of probe '{probe}'")
    return lost_share(given.samples, "probe", probe, given.window)


def _rated(given: _Inputs, station: Station) -> RatedQueue:
    used = None
    if station.sampled(given.samples):
        used = given.tried(f"rated.{station.queue}", lambda: station.utilisation(given.samples, given.window))
    return RatedQueue(
        queue=station.queue,
        hop=station.hop,
        queues=station.leaves,
        rate_bps=station.mean_rate(given.window),
        utilisation=used,
        flows=station.flows,
    )


def _capacities(given: _Inputs, places: Sequence[Station]) -> list[Check]:
    """No queue lets more through than its rate allows: if one did, the rate was not what it was said to be."""
    found = []
    for station in places:
        try:
            used = station.utilisation(given.samples, given.window) if station.sampled(given.samples) else 0.0
        except MeasureError:
            continue  # `_rated` says why
        if used > 1:
            rate = f"at most {station.mean_rate(given.window) / 1e6:g} Mbit/s"
            sent = f"{used * station.mean_rate(given.window) / 1e6:g} Mbit/s"
            found.append(Check(check="capacity", flow=station.queue, requested=rate, effective=sent, ok=False))
    return found


def _used(given: _Inputs, flows: Mapping[str, Flow], places: Sequence[Station], narrow: Bottleneck | None) -> float:
    """The utilisation of the first flow's bottleneck."""
    if narrow is None:
        raise MeasureError("the path has no bottleneck")
    station = next((station for station in places if station.queue == narrow.queue), None)
    if station is not None and station.sampled(given.samples):
        return station.utilisation(given.samples, given.window)
    parts = []
    for flow in given.run.flows:
        found = flows[flow.name]
        if found.bottleneck == narrow.queue:
            goodput = found.steady_state.goodput_bps
            if goodput is None:
                raise MeasureError("a flow has no goodput")
            parts.append((goodput, payload_fraction(given.run, flow, _payload(given.counters, flow))))
    return utilisation(parts, narrow.rate_bps)


def _sharing(given: _Inputs, flows: Mapping[str, Flow]) -> dict[str, Sharing]:
    long = {flow.name for flow in given.run.flows if flow.transport == "tcp" and not _is_short(flow)}
    complete = not any(given.by_tool(name, "delivery_rate") for name in long)
    return sharing(flows, ends(given.run), long, given.missing, delivery_rates=complete)


def _payload(counters: Counters, flow: RunFlow) -> float:
    """Payload of a full segment [B]: the MSS less the options that come and go, such as AccECN's (RFC 9768, 3.2.3).

    Linux's `snd_mss` does not know these, so a bulk flow's is the mean of what was delivered.
    """
    counted = counters.flow(flow.name)
    if flow.transport == "udp" and isinstance(flow.source, ConstantRate | Periodic):
        return float(flow.source.size)
    mss = counted.mss
    if mss is None:
        raise MeasureError(f"counters: flows.{flow.name}.mss is missing")
    delivered, received = counted.delivered, counted.received_bytes
    if isinstance(flow.source, Bulk) and delivered and received:
        return min(float(mss), received / delivered)
    return float(mss)


def bottleneck_queues(summary: Summary) -> list[Queue]:
    """The bottleneck's queues in a summary, one per class; none if the path has no bottleneck."""
    narrow = summary.bottleneck
    return [] if narrow is None else [summary.queues[name] for name in leaves(narrow.queue, summary.queues)]
