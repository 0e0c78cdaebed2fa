"""All measures of one run: what stands in `summary.json`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from bakeoff.measure import phases as cut
from bakeoff.measure.applications import completion, video
from bakeoff.measure.bottleneck import bottleneck, leaves, payload_fraction
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
from bakeoff.measure.over_time import Rates, spike_of
from bakeoff.measure.rates import End, goodput_of, jain, ratio, steady_state_rate, utilisation, window_of
from bakeoff.measure.samples import MeasureError, Samples, Window
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
    Spike,
    SteadyState,
    Summary,
)
from bakeoff.scenario.timeline import Timeline

if TYPE_CHECKING:
    from bakeoff.results import Result

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
    resolved, counters = result.resolved, result.counters
    place = f"{resolved['suite']}/{resolved['scenario']}/{resolved['run']}"
    received = [counters.get("flows", {}).get(flow["name"], {}).get("received_bytes") for flow in resolved["flows"]]
    if not result.parts and (not received or any(each != 0 for each in received)):
        raise MeasureError(f"{place}: the run has no series")
    samples = Samples(result.parts)
    sampled = frozenset(samples.names("flow"))
    run = _Run(
        resolved, counters, samples, window_of(resolved), end, Rates(resolved, samples), sampled, Timeline(resolved)
    )
    flows = {flow["name"]: _flow(run, flow) for flow in resolved["flows"]}
    queues = {name: _queue(run, name) for name in counters.get("queues", {})}
    probes = {probe["name"]: _probe(run, probe) for probe in resolved["probes"]}
    places = run.tried("rated", lambda: stations(resolved, counters, samples, run.window, run.timeline)) or []
    shared = _shared(run, flows, places)
    changed = cut.changes(resolved, run.window)
    told = cut.phases(resolved, counters, samples, run.window, places, timeline=run.timeline)
    if changed and not told:
        run.missing.append(f"phases: {len(changed)} changes in the window; at most {cut.MOST - 1} are told apart")
    found = Summary(
        format=FORMAT,
        suite=resolved["suite"],
        scenario=resolved["scenario"],
        run=resolved["run"],
        seed=resolved["seed"],
        window_s=run.window,
        flows=flows,
        queues=queues,
        probes=probes,
        **shared,
        checks=[*checks(resolved, counters), *_capacities(run, places)],
        missing=run.missing,
        rated=[_rated(run, place) for place in places],
        changes=[f"at {at:g} s {what}" for at, what in changed],
        phases=told,
        pair=run.rates.pair(),
    )
    # Whole numbers where the form has fractions become such, as in what is read again.
    return msgspec.convert(msgspec.to_builtins(found), Summary)


def summary_of(result: Result) -> Summary:
    """The summary that lies beside a result; a new one if there is none, or one of an older format."""
    found = result.summary
    return found if found is not None and found.format == FORMAT else summarise(result)


@dataclass(frozen=True)
class _Run:
    """What every measure of a run is taken from, and which of them could not be taken."""

    resolved: Mapping[str, Any]
    counters: Mapping[str, Any]
    samples: Samples
    window: Window
    end: End
    rates: Rates
    sampled: frozenset[str]
    """The flows that have samples."""
    timeline: Timeline
    missing: list[str] = field(default_factory=list)
    _narrow: dict[str, Bottleneck] = field(default_factory=dict)

    def bottleneck(self, flow: Mapping[str, Any]) -> Bottleneck:
        """`bottleneck` of a flow in the window, which is looked for once."""
        if flow["name"] not in self._narrow:
            self._narrow[flow["name"]] = bottleneck(self.resolved, flow, self.window, self.timeline)
        return self._narrow[flow["name"]]

    def by_tool(self, flow: str, metric: str) -> bool:
        """Whether a program or a tool makes the flow and its output tells no such samples, which is no surprise."""
        tools = (self.resolved.get("tools") or {}).get("flows") is not None
        made = {each["name"] for each in self.resolved.get("programs", ()) if each.get("measures") == "flow"}
        return (tools or flow in made) and ("flow", flow, metric) not in self.samples

    def tried(self, name: str, measure: Callable[[], T]) -> T | None:
        """A measure that may not exist: None and a line that names what is missing, instead of an exception."""
        try:
            return measure()
        except MeasureError as error:
            self.missing.append(f"{name}: {error}")
            return None


def _flow(run: _Run, flow: Mapping[str, Any]) -> Flow:
    resolved, counters, samples, tried = run.resolved, run.counters, run.samples, run.tried
    name, kind = flow["name"], flow["source"]["kind"]
    at = f"flows.{name}"
    if name not in run.sampled:
        # One line, in the place of one for each measure of what was never there.
        run.missing.append(f"{at}: no samples, because its receiver never heard of it; it has no rate, RTT and marks")
        tried = replace(run, missing=[]).tried
    counted = counters.get("flows", {}).get(name, {})
    tcp = flow["transport"] == "tcp"
    # Many connections have neither one rate nor one round-trip time.
    single = tcp and not _is_short(flow)
    timed = single and not run.by_tool(name, "srtt")

    def delivery_rate() -> float:
        time, rate = samples.of("flow", name, "delivery_rate")
        return steady_state_rate(time, rate, window_of(resolved, end=run.end, last_s=float(time[-1])))

    def received() -> float:
        within = run.window
        if ("flow", name, "received") in samples:
            last_s = float(samples.of("flow", name, "received")[0][-1])
            within = window_of(resolved, end=run.end, last_s=last_s)
        return goodput_of(resolved, counters, samples, flow, within)

    def srtt() -> Distribution:
        return distribution(samples.of("flow", name, "srtt", run.window)[1])

    def spike() -> Spike:
        return spike_of(*samples.of("flow", name, "srtt", run.window), base_rtt(resolved, flow))

    told = tcp and _tells_packets(counters)
    by_ack = tcp and counted.get("ecn") == "accecn"
    marked = tried(f"{at}.mark_fraction", lambda: mark_fraction(resolved, counters, flow)) if by_ack or told else None
    narrow = run.tried(f"{at}.bottleneck", lambda: run.bottleneck(flow))
    return Flow(
        cc=counted.get("cc"),
        ecn=counted.get("ecn"),
        transport=flow["transport"],
        start_s=flow["start_s"],
        bottleneck=narrow.queue if narrow else None,
        steady_state=SteadyState(
            delivery_rate_bps=tried(f"{at}.steady_state.delivery_rate_bps", delivery_rate)
            if single and not run.by_tool(name, "delivery_rate")
            else None,
            goodput_bps=run.tried(f"{at}.steady_state.goodput_bps", received),
        ),
        srtt_s=tried(f"{at}.srtt_s", srtt) if timed else None,
        rtt_s=tried(f"{at}.rtt_s", lambda: histogram(counters, "flows", name, "rtt")) if told else None,
        retransmissions=tried(f"{at}.retransmissions", lambda: retransmissions(counters, name)) if tcp else None,
        mark_fraction=marked[0] if marked else None,
        mark_fraction_of=marked[1] if marked else None,
        spike=tried(f"{at}.spike", spike) if timed else None,
        starvation=run.rates.starvation(name, run.window),
        oscillations_per_s=run.rates.oscillations(name, run.window),
        seen_marks=counted.get("received_ce"),
        seen_ect1=counted.get("received_ect1"),
        echoed_marks=counted.get("delivered_ce") if tcp else None,
        fct=tried(f"{at}.fct", lambda: completion(samples, name, run.window)) if kind == "short" else None,
        video=tried(f"{at}.video", lambda: video(samples, name)) if kind == "video" else None,
        **({} if tcp else _datagrams(run, name)),
    )


def _tells_packets(counters: Mapping[str, Any]) -> bool:
    """Whether the engine tells of single packets and ACKs; a real kernel does not, and that is no surprise."""
    return "conservation" in counters


def _datagrams(run: _Run, name: str) -> dict[str, Any]:
    """What the datagrams of a UDP flow met, if the engine tells it of each, or a tool of all in an interval."""
    if told_by_tool(run.samples, name):
        return {
            "jitter_s": run.tried(f"flows.{name}.jitter_s", lambda: told_jitter(run.samples, name, run.window)),
            "loss": run.tried(f"flows.{name}.loss", lambda: told_loss(run.samples, name, run.window)),
        }
    if not any(("flow", name, metric) in run.samples for metric in ("delay", "delay_variation", "missing")):
        return {}
    at = f"flows.{name}"
    came = run.tried(f"{at}.delay_s", lambda: arrivals(run.samples, name, run.window))
    one_clock = shares_a_clock(run.samples, name)
    if came and not one_clock:
        run.missing.append(
            f"{at}.delay_s: its ends are two machines, whose clocks differ; jitter and loss need no clock"
        )
    return {
        "delay_s": distribution(came[1]) if came and one_clock else None,
        "jitter_s": jitter(*came) if came else None,
        "loss": run.tried(f"{at}.loss", lambda: lost_share(run.samples, "flow", name, run.window)),
    }


def _is_short(flow: Mapping[str, Any]) -> bool:
    return bool(flow["source"]["kind"] == "short")


def _queue(run: _Run, name: str) -> Queue:
    counters, samples = run.counters, run.samples
    counted = counters["queues"][name]

    def over_time() -> Distribution:
        return distribution(samples.of("queue", name, "sojourn", run.window)[1])

    # Only egress leaves are sampled, and no packet passes the ones beside the path: neither is a surprise.
    sampled = ("queue", name, "sojourn") in samples
    return Queue(
        qdisc=counted["qdisc"],
        sojourn_s=histogram(counters, "queues", name, "sojourn") if counted.get("sojourn", {}).get("n") else None,
        sojourn_mean_s=run.tried(f"queues.{name}.sojourn_mean_s", over_time) if sampled else None,
        sojourn_little_s=_by_littles_law(run, name),
        parts=_parts(run, name),
        marks=marks(counters, name),
        sce_marks=sce_marks(counters, name),
        drops=drops(counters, name),
        dropped=counted["drops"],
        flows={flow: msgspec.convert(part, FlowAtQueue) for flow, part in counted.get("flows", {}).items()},
    )


def _by_littles_law(run: _Run, name: str) -> Distribution | None:
    """None of a queue that is not sampled, or that nothing left in the window: neither is a surprise."""
    if ("queue", name, "backlog") in run.samples:
        with suppress(MeasureError):
            return little(run.samples, name, run.window)
    return None


def _parts(run: _Run, name: str) -> dict[str, Distribution] | None:
    """The delays within a queue; of a part that nothing passed in the window there are none, which is no surprise."""
    found = {}
    for part, metric in PARTS.items():
        if ("queue", name, metric) in run.samples:
            with suppress(MeasureError):
                found[part] = distribution(run.samples.of("queue", name, metric, run.window)[1])
    return found or None


def _probe(run: _Run, probe: Mapping[str, Any]) -> Probe:
    name = probe["name"]
    at = f"probes.{name}"
    rtt = run.tried(f"{at}.rtt_s", lambda: histogram(run.counters, "probes", name, "rtt"))
    # An answer counts when it comes, and its sample stands where the request was sent, which may be before the window.
    answered = run.tried(f"{at}.jitter_s", lambda: run.samples.of("probe", name, "rtt", run.window)) if rtt else None
    base = run.tried(f"{at}.induced_s", lambda: base_rtt(run.resolved, probe)) if answered else None
    return Probe(
        rtt_s=rtt,
        loss=run.tried(f"{at}.loss", lambda: _loss(run, name)),
        # Of a probe that had no answer in the window the line above tells so once.
        jitter_s=jitter(*answered) if answered else None,
        induced_s=distribution(answered[1] - base) if answered and base is not None else None,
        ipdv_s=run.tried(f"{at}.ipdv_s", lambda: distribution(ipdv(*answered, float(probe["every_s"]))))
        if answered
        else None,
        spike=spike_of(*answered, base) if answered and base is not None else None,
    )


def _loss(run: _Run, probe: str) -> float:
    """Without a count of what was sent, as of netperf's probes, a probe without losses is not told from one with."""
    if "sent" not in run.counters.get("probes", {}).get(probe, {}):
        raise MeasureError(f"it is not known how many requests probe '{probe}' sent")
    return lost_share(run.samples, "probe", probe, run.window)


def _rated(run: _Run, place: Station) -> RatedQueue:
    used = None
    if place.sampled(run.samples):
        used = run.tried(f"rated.{place.queue}", lambda: place.utilisation(run.samples, run.window))
    return RatedQueue(
        queue=place.queue,
        hop=place.hop,
        queues=place.leaves,
        rate_bps=place.mean_rate(run.window),
        utilisation=used,
        flows=place.flows,
    )


def _capacities(run: _Run, places: Sequence[Station]) -> list[Check]:
    """No queue lets more through than its rate allows: if one did, the rate was not what it was said to be."""
    found = []
    for place in places:
        try:
            used = place.utilisation(run.samples, run.window) if place.sampled(run.samples) else 0.0
        except MeasureError:
            continue  # `_rated` says why
        if used > 1:
            rate = f"at most {place.mean_rate(run.window) / 1e6:g} Mbit/s"
            sent = f"{used * place.mean_rate(run.window) / 1e6:g} Mbit/s"
            found.append(Check(check="capacity", flow=place.queue, requested=rate, effective=sent, ok=False))
    return found


def _shared(run: _Run, flows: Mapping[str, Flow], places: Sequence[Station]) -> dict[str, Any]:
    """What is one number for the flows that meet in one bottleneck."""
    resolved, counters, tried = run.resolved, run.counters, run.tried
    if not resolved["flows"]:
        return dict.fromkeys(("bottleneck", "jain", "ratio", "jain_goodput", "ratio_goodput", "utilisation"))
    first = resolved["flows"][0]
    narrow = tried("bottleneck", lambda: run.bottleneck(first))
    queue = narrow.queue if narrow else None
    together = [flow for flow in resolved["flows"] if flows[flow["name"]].bottleneck == queue]
    steady = [flows[flow["name"]].steady_state for flow in together]
    long = [flow["transport"] == "tcp" and not _is_short(flow) for flow in together]
    # A flow with no rate to show would make the rest look fair: then there is no index.
    rates = [part.delivery_rate_bps for part, one in zip(steady, long, strict=True) if one]
    goodputs = [part.goodput_bps for part in steady]
    shares = [share for share, one in zip(goodputs, long, strict=True) if one]

    def used() -> float:
        if narrow is None:
            raise MeasureError("the path has no bottleneck")
        place = next((place for place in places if place.queue == narrow.queue), None)
        if place is not None and place.sampled(run.samples):
            return place.utilisation(run.samples, run.window)
        parts = [
            (rate, payload_fraction(resolved, flow, _payload(counters, flow)))
            for rate, flow in zip(_all(goodputs, "goodput"), together, strict=True)
        ]
        return utilisation(parts, narrow.rate_bps)

    several = len(shares) > 1
    told = not any(run.by_tool(flow["name"], "delivery_rate") for flow, one in zip(together, long, strict=True) if one)
    return {
        "bottleneck": narrow,
        "jain": tried("jain", lambda: jain(_all(rates, "delivery rate"))) if several and told else None,
        "ratio": tried("ratio", lambda: ratio(_all(rates, "delivery rate"))) if several and told else None,
        "jain_goodput": tried("jain_goodput", lambda: jain(_all(shares, "goodput"))) if several else None,
        "ratio_goodput": tried("ratio_goodput", lambda: ratio(_all(shares, "goodput"))) if several else None,
        "utilisation": tried("utilisation", used),
    }


def _payload(counters: Mapping[str, Any], flow: Mapping[str, Any]) -> float:
    """Payload of a full segment [B]: the MSS less the options that come and go, such as AccECN's (RFC 9768, 3.2.3).

    Linux's `snd_mss` does not know these, so a bulk flow's is the mean of what was delivered.
    """
    counted = counters.get("flows", {}).get(flow["name"], {})
    if flow["transport"] == "udp":
        return float(flow["source"]["size"])
    mss = counted.get("mss")
    if mss is None:
        raise MeasureError(f"counters: flows.{flow['name']}.mss is missing")
    delivered, received = counted.get("delivered"), counted.get("received_bytes")
    if flow["source"]["kind"] == "bulk" and delivered and received:
        return min(float(mss), float(received) / float(delivered))
    return float(mss)


def _all(rates: list[float | None], what: str) -> list[float]:
    known = [rate for rate in rates if rate is not None]
    if len(known) < len(rates):
        raise MeasureError(f"a flow has no {what}")
    return known


def bottleneck_queues(summary: Summary) -> list[Queue]:
    """The bottleneck's queues in a summary, one per class; none if the path has no bottleneck."""
    narrow = summary.bottleneck
    return [] if narrow is None else [summary.queues[name] for name in leaves(narrow.queue, summary.queues)]
