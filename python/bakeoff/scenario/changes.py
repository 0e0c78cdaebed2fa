"""Timed changes: at a bottleneck of the short form, or at any interface by name."""

from collections.abc import Mapping

from bakeoff import tc
from bakeoff.scenario import units
from bakeoff.scenario.dumbbell import (
    class_words,
    lanes,
    middle,
    netem,
    one_way,
    sides,
    tree,
)
from bakeoff.scenario.error import DocumentError, did_you_mean
from bakeoff.scenario.language import ChangeSpec, Document
from bakeoff.scenario.network import Lane, QdiscTree
from bakeoff.scenario.run import (
    Action,
    Change,
    ClassChange,
    Interface,
    LinkChange,
    Qdisc,
    QdiscChange,
    QdiscReplace,
)

End = tuple[str, str]

ACTIONS = ("rate", "rtt", "change", "replace", "set_class", "link")


def resolve_changes(
    doc: Document, scheduled: Mapping[int, str], interfaces: list[Interface], known: set[End]
) -> list[Change]:
    """All changes in order of time. A change sees the bottleneck as the changes before it left it.

    `scheduled` has the places of those that stand for schedules.
    """
    if not doc.changes:
        return []
    standing = {end: lane for node_lanes in _lanes_by_node(doc).values() for end, lane in node_lanes}
    order = sorted(range(len(doc.changes)), key=lambda index: doc.changes[index].at)
    done = []
    for index in order:
        spec = doc.changes[index]
        place = scheduled.get(index, f"changes[{index}]")
        if spec.at > doc.duration:
            raise DocumentError(
                place if index in scheduled else f"{place}.at",
                f"{spec.at:g} s is after the end of the run at {doc.duration:g} s",
            )
        asked = [
            key for key in ("rate", "rtt", "change", "replace", "set_class", "link") if getattr(spec, key) is not None
        ]
        if len(asked) != 1:
            raise DocumentError(
                place,
                f"has {' and '.join(asked) or 'no action'}; expected one of {', '.join(ACTIONS)}",
            )
        if spec.interface is not None:
            actions = [_at_interface(spec, asked[0], known, place)]
        elif spec.rtt is not None:
            actions = _new_rtt(doc, spec, interfaces, place)
        else:
            actions = _at_bottleneck(doc, spec, asked[0], standing, place)
        done += [Change(at_s=spec.at, node=end[0], peer=end[1], action=action) for end, action in actions]
    return done


def for_a_while(
    doc: Document, spec: ChangeSpec, interfaces: list[Interface], place: str
) -> tuple[list[tuple[End, Action]], list[tuple[End, Action]]]:
    """What sets the rate or the round-trip time of `spec`, and what sets it back to that of the document."""
    if spec.rtt is not None:
        own = spec.model_copy(update={"rtt": doc.network.rtt})
        return _new_rtt(doc, spec, interfaces, place), _new_rtt(doc, own, interfaces, place)
    standing = {end: lane for node_lanes in _lanes_by_node(doc).values() for end, lane in node_lanes}
    begin = _at_bottleneck(doc, spec, "rate", dict(standing), place)
    back = []
    for end, _ in begin:
        as_before = spec.model_copy(update={"rate": _rate(standing[end], place)})
        back.append((end, _change_lane(as_before, standing[end], place)[0]))
    return begin, back


def _rate(lane: Lane, place: str) -> int:
    """The rate that a lane is shaped to."""
    if lane.rate is not None:
        return lane.rate
    words = lane.shape or lane.qdisc or ""
    rate = tc.value(words, "rate" if lane.shape is not None else "bandwidth")
    if rate is None:
        raise DocumentError(place, f"'{words}' has no rate to go back to; expected a bottleneck with 'rate'")
    try:
        return units.parse_rate(rate)
    except ValueError as error:
        raise DocumentError(place, f"'{words}': {error}") from None


def _lanes_by_node(doc: Document) -> dict[str, list[tuple[End, Lane]]]:
    by_node = {}
    for bottleneck in doc.network.bottleneck:
        node = middle(doc, bottleneck.at, "network.bottleneck")
        pairs = zip(sides(doc, node), lanes(bottleneck), strict=True)
        by_node[node] = [(end, lane) for end, lane in pairs if lane is not None]
    return by_node


def _at_interface(spec: ChangeSpec, asked: str, known: set[End], place: str) -> tuple[End, Action]:
    node, peer = str(spec.interface).split(">")
    if (node, peer) not in known:
        names = sorted(f"{a}>{b}" for a, b in known)
        raise DocumentError(
            f"{place}.interface", f"'{spec.interface}': unknown interface{did_you_mean(str(spec.interface), names)}"
        )
    if spec.change is not None:
        return (node, peer), QdiscChange(side=spec.side, handle=spec.handle, qdisc=spec.change)
    if isinstance(spec.replace, QdiscTree):
        return (node, peer), QdiscReplace(side=spec.side, handle=spec.handle, qdisc=spec.replace.resolved())
    if spec.set_class is not None:
        return (node, peer), ClassChange(side=spec.side, id=spec.set_class.id, class_=spec.set_class.words)
    if spec.link is not None:
        link = spec.link
        return (node, peer), LinkChange(rate_bps=link.rate, delay_s=link.delay, loss=link.loss, up=link.up)
    raise DocumentError(
        place,
        f"'{asked}' is only valid at a bottleneck; expected one of change, replace, set_class, link at an interface",
    )


def _at_bottleneck(
    doc: Document, spec: ChangeSpec, asked: str, standing: dict[End, Lane], place: str
) -> list[tuple[End, Action]]:
    by_node = _lanes_by_node(doc)
    if asked in ("set_class", "link"):
        raise DocumentError(place, f"'{asked}' needs 'interface'; expected for example 'interface: mid>srv'")
    if not by_node:
        raise DocumentError(place, f"'{asked}' needs a bottleneck; expected 'network.bottleneck'")
    if spec.node is None and len(by_node) != 1:
        raise DocumentError(place, f"ambiguous bottleneck; expected 'node' with one of {', '.join(by_node)}")
    node = next(iter(by_node)) if spec.node is None else spec.node
    if node not in by_node:
        raise DocumentError(f"{place}.node", f"'{node}': unknown bottleneck{did_you_mean(node, list(by_node))}")
    ends = sides(doc, node)
    wanted = {"both": ends, "up": ends[:1], "down": ends[1:]}[spec.direction]
    actions: list[tuple[End, Action]] = []
    for end in wanted:
        if end in standing:
            action, standing[end] = _change_lane(spec, standing[end], place)
            actions.append((end, action))
    if not actions:
        raise DocumentError(f"{place}.direction", f"no bottleneck at '{node}' in the direction '{spec.direction}'")
    return actions


def _change_lane(spec: ChangeSpec, lane: Lane, place: str) -> tuple[Action, Lane]:
    below = lane.shape is not None or (lane.rate is not None and not tc.shapes_itself(lane.qdisc))
    handle = "1" if below else ""
    if spec.rate is not None:
        return _new_rate(spec.rate, lane, below=below, place=place)
    if spec.change is not None:
        return QdiscChange(side="egress", handle=handle, qdisc=spec.change), lane.model_copy(
            update={"qdisc": spec.change}
        )
    if isinstance(spec.replace, Lane):
        return QdiscReplace(side="egress", handle="", qdisc=tree(spec.replace, f"{place}.replace")), spec.replace
    if not isinstance(spec.replace, QdiscTree):
        raise DocumentError(place, "missing action")
    line = spec.replace.qdisc
    return (
        QdiscReplace(side="egress", handle=handle, qdisc=spec.replace.resolved()),
        lane.model_copy(update={"qdisc": line}),
    )


def _new_rate(rate_bps: int, lane: Lane, *, below: bool, place: str) -> tuple[Action, Lane]:
    if below:
        shape = f"htb rate {units.format_rate(rate_bps)}"
        if lane.shape is not None:
            kind = tc.kind(lane.shape)
            if kind != "htb":
                raise DocumentError(
                    place, f"'rate' cannot change '{kind}'; expected 'interface' and 'change' with the whole line"
                )
            shape = lane.shape
            for word in ("rate", "ceil"):
                shape = tc.with_value(shape, word, units.format_rate(rate_bps))
        changed = lane.model_copy(update={"shape": shape, "rate": None})
        return ClassChange(side="egress", id="1", class_=class_words(shape, place)), changed
    if not tc.shapes_itself(lane.qdisc):
        raise DocumentError(place, f"'{lane.qdisc}' has no shaper; expected a bottleneck with 'rate' or 'shape'")
    line = tc.with_bandwidth(lane.qdisc or "", units.format_rate(rate_bps))
    return QdiscChange(side="egress", handle="", qdisc=line), lane.model_copy(update={"qdisc": line, "rate": None})


def _new_rtt(doc: Document, spec: ChangeSpec, interfaces: list[Interface], place: str) -> list[tuple[End, Action]]:
    if spec.node is None:
        node = middle(doc, doc.network.delay.at, place, key="network.delay.at")
    else:
        node = middle(doc, spec.node, place, key="node")
    ahead, back = sides(doc, node)
    delays = one_way(doc, spec.rtt or 0.0)
    actions: list[tuple[End, Action]] = []
    for end, delay_s, direction in ((back, delays[0], "up"), (ahead, delays[1], "down")):
        if spec.direction not in ("both", direction):
            continue
        ingress: Qdisc | None = next((i.ingress for i in interfaces if (i.node, i.peer) == end), None)
        if ingress is None or tc.kind(ingress.qdisc) != "netem":
            raise DocumentError(
                f"{place}.rtt",
                f"'{node}' has no single netem; expected 'interface', 'side: ingress', 'handle' and 'change'",
            )
        actions.append((end, QdiscChange(side="ingress", handle="", qdisc=netem(doc, delay_s).qdisc)))
    return actions
