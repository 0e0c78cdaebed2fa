"""The short form of a network: a path with delays and bottlenecks, laid out as what stands on each interface.

The layout is that of the published test beds: delay by netem on an ifb at the ingress of both sides of one node, half
of the RTT each way; the bottleneck at the egress of both sides, so that ACKs pass the same shaper; DSCP rewriting in
between.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

from bakeoff import tc
from bakeoff.scenario import units
from bakeoff.scenario.error import DocumentError, did_you_mean, quoted
from bakeoff.scenario.language import Document, FlowSpec
from bakeoff.scenario.mangling import mangling
from bakeoff.scenario.network import Bottleneck, Lane, MangleRule
from bakeoff.scenario.run import Class, Mangle, Match, Qdisc

FLOW_VERBS = {
    "bleached": "bleach_ecn",
    "ect1": "dscp_to_ect1",
    "not-negotiated": "dscp_to_notect",
    "not-negotiated-ect1": "dscp_to_notect_ect1",
}

UNBINDING = "rate 2gbps ceil 2gbps"
"""The class of a per-flow delay: in tc 2 GB/s, so that it never shapes. l4s-tests has a parent of this rate and
leaves that borrow from it; the flat list needs no parent."""

End = tuple[str, str]
"""An interface: (node, peer)."""


class Placed(NamedTuple):
    """A flow, or one of its copies, and its place in the file: `flows[3]`."""

    place: str
    flow: FlowSpec


@dataclass(slots=True)
class Ends:
    """What stands on interfaces, by (node, peer)."""

    egress: dict[End, Qdisc] = field(default_factory=dict)
    ingress: dict[End, Qdisc] = field(default_factory=dict)
    mangle: dict[End, list[Mangle]] = field(default_factory=dict)
    tx_queue_len: dict[End, int] = field(default_factory=dict)
    named: dict[End, str] = field(default_factory=dict)
    """Where in the file an interface was named first."""

    def name(self, end: End, place: str) -> None:
        """Remember that `place` means this interface, which the network may lack."""
        self.named.setdefault(end, place)

    def put(self, side: str, end: End, qdisc: Qdisc, place: str) -> None:
        """Install a root qdisc; DocumentError if there is one already."""
        queues = self.egress if side == "egress" else self.ingress
        if end in queues:
            raise DocumentError(place, f"the {side} of {end[0]}>{end[1]} already has a qdisc, '{queues[end].qdisc}'")
        queues[end] = qdisc


def middle(doc: Document, named: str | None, place: str, *, key: str = "at") -> str:
    """The node of the path that `named` means; the only one between the hosts if None.

    DocumentError at `place`, whose `key` would say which node, if there is no such one, or none to choose.
    """
    path = doc.network.path
    if path is None:
        raise DocumentError(place, "needs 'network.path'; expected for example 'path: [cli, mid, srv]'")
    between = path[1:-1]
    if not between:
        raise DocumentError(
            place,
            f"needs a node between the hosts of 'network.path', which is {quoted(path)}; "
            "expected for example 'path: [cli, mid, srv]'",
        )
    if named is None:
        if len(between) == 1:
            return between[0]
        raise DocumentError(place, f"ambiguous node; expected '{key}' with one of {', '.join(between)}")
    if named not in between:
        raise DocumentError(
            f"{place}.{key}" if "." not in key else key,
            f"'{named}' is not between the hosts of 'network.path'{did_you_mean(named, between)}",
        )
    return named


def sides(doc: Document, node: str) -> tuple[End, End]:
    """The interfaces of `node` towards (the end, the start) of the path: egress for up and for down."""
    path = doc.network.path or []
    index = path.index(node)
    return (node, path[index + 1]), (node, path[index - 1])


def lanes(bottleneck: Bottleneck) -> tuple[Lane | None, Lane | None]:
    """What is installed (up, down)."""

    def lane(own: Lane | None, direction: str) -> Lane | None:
        if bottleneck.direction not in ("both", direction):
            return None
        own = own or Lane()
        shaped = own.shape is not None or own.rate is not None
        return Lane.model_construct(
            shape=own.shape if shaped else bottleneck.shape,
            rate=own.rate if shaped else bottleneck.rate,
            qdisc=own.qdisc or bottleneck.qdisc,
        )

    return lane(bottleneck.up, "up"), lane(bottleneck.down, "down")


def tree(lane: Lane, place: str) -> Qdisc:
    """The root qdisc of one direction of a bottleneck."""
    if lane.shape is not None and lane.rate is not None:
        raise DocumentError(place, "has 'shape' and 'rate'; expected one of them")
    if lane.qdisc is None and lane.shape is None and lane.rate is None:
        raise DocumentError(place, "has no rate, shape or qdisc; expected for example {rate: 50mbit, qdisc: fq_codel}")
    if lane.rate is not None:
        if tc.shapes_itself(lane.qdisc):
            return Qdisc(qdisc=tc.with_bandwidth(lane.qdisc or "", units.format_rate(lane.rate)))
        return shaped(f"htb rate {units.format_rate(lane.rate)}", lane.qdisc, place)
    if lane.shape is not None:
        return shaped(lane.shape, lane.qdisc, place)
    return Qdisc(qdisc=lane.qdisc or "")


def shaped(shape: str, qdisc: str | None, place: str) -> Qdisc:
    """A shaper with `qdisc` below it; htb gets one class, as the test beds have it, where `ceil` is the rate."""
    child = Qdisc(qdisc=qdisc) if qdisc else None
    if not tc.kind(shape):
        raise DocumentError(place, "shape: empty; expected for example 'htb rate 50mbit'")
    if tc.kind(shape) != "htb":
        return Qdisc(qdisc=shape, child=child)
    return Qdisc(qdisc="htb default 1", classes=[Class(id="1", class_=class_words(shape, place), child=child)])


def class_words(shape: str, place: str) -> str:
    """The words of the class in `htb rate 50mbit`, with its `ceil`; DocumentError without a rate that has a unit."""
    words = shape.split()[1:]
    rate = tc.value(shape, "rate")
    if rate is None:
        raise DocumentError(
            place, f"shape: '{' '.join(shape.split())}' has no rate; expected for example 'htb rate 50mbit'"
        )
    if not rate.lower().endswith("bps"):
        try:
            units.parse_rate(rate)
        except ValueError as error:
            raise DocumentError(place, f"shape: {error}") from None
    return " ".join(words if "ceil" in words else [*words, "ceil", rate])


def one_way(doc: Document, rtt_s: float) -> tuple[float, float]:
    """Delay (up, down): half of the RTT each way unless `delay` says otherwise."""
    delay = doc.network.delay
    return (rtt_s / 2 if delay.up is None else delay.up, rtt_s / 2 if delay.down is None else delay.down)


def netem(doc: Document, delay_s: float) -> Qdisc:
    """One netem of the delay node."""
    delay = doc.network.delay
    words = ["netem delay", units.format_time(delay_s), delay.jitter, f"limit {delay.limit}", delay.extra]
    child = Qdisc(qdisc=delay.child) if delay.child else None
    return Qdisc(qdisc=" ".join(word for word in words if word), child=child)


def put_delay(doc: Document, flows: list[Placed], ends: Ends) -> None:
    """netem on both ingress ifbs of the delay node; with per-flow RTTs, a class of an unbinding htb per flow.

    Unmatched traffic takes the path's `rtt` or else the first flow's.
    """
    own = [(place, flow.rtt, flow.dscp) for place, flow in flows if flow.rtt is not None]
    net = doc.network
    if net.rtt is None and not own and net.delay.up is None and net.delay.down is None:
        if net.delay.model_fields_set:
            raise DocumentError("network.delay", "missing; expected 'network.rtt', or an 'rtt' for each flow")
        return
    written = "network.rtt" if net.rtt is not None else f"{own[0][0]}.rtt" if own else "network.delay"
    node = middle(doc, net.delay.at, written, key="network.delay.at")
    ahead, back = sides(doc, node)
    if not own:
        up, down = one_way(doc, net.rtt or 0.0)
        ends.put("ingress", back, netem(doc, up), "network.rtt")
        ends.put("ingress", ahead, netem(doc, down), "network.rtt")
        return
    for place, rtt, dscp in own:
        rivals = [flow for _, flow in flows if flow.dscp == dscp and flow.rtt != rtt]
        if rivals:
            raise DocumentError(
                f"{place}.rtt",
                f"selected by DSCP, but '{rivals[0].name}' has the same DSCP {dscp} and another rtt; expected "
                "unique 'dscp'",
            )
    wanted = list(dict.fromkeys((rtt, dscp) for _, rtt, dscp in own))
    for end, way in ((back, 0), (ahead, 1)):
        classes = [
            Class(
                id=f"{0x10 + number:x}",
                class_=UNBINDING,
                filters=[Match(dscp=dscp)],
                child=netem(doc, one_way(doc, rtt)[way]),
            )
            for number, (rtt, dscp) in enumerate(wanted)
        ]
        default = classes[0].id
        if net.rtt is not None:
            default = "1"
            rest = netem(doc, one_way(doc, net.rtt)[way])
            classes.append(Class(id="1", class_=UNBINDING, child=rest))
        ends.put("ingress", end, Qdisc(qdisc=f"htb default {default}", classes=classes), "network.delay")


def put_bottlenecks(doc: Document, ends: Ends) -> None:
    """The bottlenecks at the egress of their nodes."""
    for index, bottleneck in enumerate(doc.network.bottleneck):
        place = f"network.bottleneck[{index}]" if len(doc.network.bottleneck) > 1 else "network.bottleneck"
        node = middle(doc, bottleneck.at, place)
        both = zip(sides(doc, node), lanes(bottleneck), ("up", "down"), strict=True)
        for end, lane, direction in both:
            if lane is not None:
                own = getattr(bottleneck, direction) is not None
                ends.put("egress", end, tree(lane, f"{place}.{direction}" if own else place), place)


def put_mangling(doc: Document, flows: list[Placed], ends: Ends) -> None:
    """Rewriting rules of the network, then those that the flows' `ecn` asks for."""
    for index, rule in enumerate(doc.network.mangle):
        place = f"network.mangle[{index}]"
        ends.name((rule.at, rule.from_), place)
        ends.mangle.setdefault((rule.at, rule.from_), []).extend(mangling(rule, place))
    path = doc.network.path or []
    for written, flow in flows:
        if flow.ecn == "on":
            continue
        place = f"{written}.ecn"
        alike = [other.name for _, other in flows if other.dscp == flow.dscp and other.ecn != flow.ecn]
        if flow.dscp == 0 or alike:
            whose = f"which '{alike[0]}' has too" if alike else "the default of everything"
            raise DocumentError(
                place,
                f"'{flow.ecn}' is selected by DSCP, but the flow has {flow.dscp}, {whose}; expected a unique 'dscp'",
            )
        at = doc.network.bottleneck[0].at if doc.network.bottleneck else None
        node = middle(doc, at, place, key="network.bottleneck.at")
        reverse = flow.direction == "down" or (path and flow.from_ == path[-1])
        end = sides(doc, node)[0 if reverse else 1]
        rules = mangling(MangleRule.model_construct(rule=FLOW_VERBS[flow.ecn], dscp=flow.dscp), place)
        standing = ends.mangle.setdefault(end, [])
        standing.extend(rule for rule in rules if rule not in standing)
