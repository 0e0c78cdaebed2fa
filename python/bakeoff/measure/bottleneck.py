"""Which queue a flow fights for, read from the resolved run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from bakeoff import tc
from bakeoff.errors import MeasureError
from bakeoff.measure.framing import Frames, payload_share
from bakeoff.measure.samples import Window
from bakeoff.results.summary import Bottleneck
from bakeoff.scenario.headers import ETHERNET, UDP_FRAME
from bakeoff.scenario.run import Flow
from bakeoff.scenario.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bakeoff.scenario.run import Class, Qdisc, Run, Traffic

Hop = tuple[str, str]

_HTB_LEVELS = 8
"""Of classes, of which one may be below another (TC_HTB_MAXDEPTH)."""


def path(run: Run, flow: Traffic) -> list[Hop]:
    """The hops (node, next node) from a flow's sender to its receiver, by the fewest links."""
    neighbours: dict[str, list[str]] = {}
    for link in run.links:
        one, other = link.ends
        neighbours.setdefault(one, []).append(other)
        neighbours.setdefault(other, []).append(one)
    came_from: dict[str, str] = {flow.from_: flow.from_}
    waiting = deque([flow.from_])
    while waiting and flow.to not in came_from:
        here = waiting.popleft()
        for there in neighbours.get(here, ()):
            if there not in came_from:
                came_from[there] = here
                waiting.append(there)
    if flow.to not in came_from:
        raise MeasureError(f"flow '{flow.name}': no path from '{flow.from_}' to '{flow.to}'")
    hops: list[Hop] = []
    node = flow.to
    while node != flow.from_:
        hops.append((came_from[node], node))
        node = came_from[node]
    return hops[::-1]


def payload_fraction(run: Run, flow: Flow, payload: float) -> float:
    """`payload` [B] over what the bottleneck counts for it; no unit.

    That is for a full segment of TCP the path MTU and 14 bytes of Ethernet, for a datagram 42 bytes of headers more.
    """
    if flow.transport == "udp":
        return payload / (payload + UDP_FRAME)
    hops = {frozenset(hop) for hop in path(run, flow)}
    mtu = min(link.mtu for link in run.links if frozenset(link.ends) in hops)
    return payload / (mtu + ETHERNET)


def bottleneck(run: Run, flow: Traffic, window: Window, timeline: Timeline | None = None) -> Bottleneck:
    """The place on the flow's way with the lowest mean rate in the window, the first of equals.

    A place is the egress of a hop (`mid>srv`) or the ingress at its other end (`srv<mid`); its rate is that of `rates`.
    Raises MeasureError if nothing on the path has a rate.
    """
    timeline = timeline or Timeline(run)
    found: Bottleneck | None = None
    for hop in _places(run, flow):
        pieces = rates(run, hop, window, traffic=flow, timeline=timeline)
        mean = sum(rate * (stop - start) for start, stop, rate in pieces) / (window[1] - window[0])
        if mean != float("inf") and (found is None or mean < found.rate_bps):
            found = Bottleneck(queue=hop, rate_bps=mean)
    if found is None:
        raise MeasureError(f"flow '{flow.name}': no rate on its path")
    return found


def bottlenecks(run: Run, window: Window, timeline: Timeline | None = None) -> dict[str, Bottleneck]:
    """`bottleneck` of every flow by name, without those on whose path nothing has a rate."""
    timeline = timeline or Timeline(run)
    found = {}
    for flow in run.flows:
        with suppress(MeasureError):
            found[flow.name] = bottleneck(run, flow, window, timeline)
    return found


def capacity(
    run: Run, flow: Traffic, window: Window, timeline: Timeline | None = None
) -> tuple[list[float], list[float]]:
    """Edges [s] over the window, and between them the lowest rate [bit/s] on the flow's way; infinite without a rate.

    The place of that rate may be another one after a change.
    """
    timeline = timeline or Timeline(run)
    places = [rates(run, hop, window, traffic=flow, timeline=timeline) for hop in _places(run, flow)]
    edges = sorted({edge for pieces in places for start, stop, _ in pieces for edge in (start, stop)})
    lowest = [float("inf")] * (len(edges) - 1)
    for pieces in places:
        at = 0
        for _, stop, rate in pieces:
            while at < len(lowest) and edges[at] < stop:
                lowest[at] = min(lowest[at], rate)
                at += 1
    return edges, lowest


def _places(run: Run, flow: Traffic) -> list[str]:
    """The egress and the ingress of each hop of a flow's way."""
    return [queue for node, peer in path(run, flow) for queue in (f"{node}>{peer}", f"{peer}<{node}")]


def rates(
    run: Run,
    hop: str,
    window: Window,
    *,
    traffic: Traffic | None = None,
    class_id: str | None = None,
    frame: int | Frames | None = None,
    timeline: Timeline | None = None,
) -> list[tuple[float, float, float]]:
    """(from [s], to [s], rate [bit/s]) of a place over the window, cut where the rate changes; infinite without a rate.

    The rate is the lower one of the link's (for egress) and the shaper's: of htb the lowest `ceil` (else `rate`) from
    the class that takes `traffic` (or has the `class_id`) up to the root, but never less than its own `rate`, tbf's and
    netem's `rate`, or the `bandwidth` of a qdisc that shapes by itself. Without either it is that of all classes
    together. Timed changes count from when they are made; a `timeline` of the run saves applying them again. With
    `frame` it is the rate that frames of this length [byte], or of several, have: what a shaper charges for overhead
    and cells is taken off.
    """
    node, peer, side = end_of(hop)
    found: list[tuple[float, float, float]] = []
    for start, stop, state in (timeline or Timeline(run)).pieces((node, peer), window):
        link, tree = (state.rate_bps, state.egress) if side == "egress" else (float("inf"), state.ingress)
        rate = min(link, float("inf") if tree is None else _shaper(tree, traffic or class_id, frame))
        if found and found[-1][2] == rate:
            found[-1] = (found[-1][0], stop, rate)
        else:
            found.append((start, stop, rate))
    return found


def end_of(hop: str) -> tuple[str, str, str]:
    """`mid>srv` as (`mid`, `srv`, `egress`), and `mid<cli` as (`mid`, `cli`, `ingress`)."""
    node, sign, peer = hop.partition(">") if ">" in hop else hop.partition("<")
    return node, peer, "egress" if sign == ">" else "ingress"


def leaves(hop: str, names: Iterable[str]) -> list[str]:
    """Those of the queues' names under which a hop's queues are counted: itself, or one per class (`mid>srv/1`)."""
    return [name for name in names if name == hop or name.startswith(hop + "/")]


def _shaper(tree: Qdisc, of: Traffic | str | None, frame: int | Frames | None) -> float:
    if tc.kind(tree.qdisc) == "htb":
        return _htb(tree, of, frame)
    word = tc.limiting_word(tree.qdisc)
    rate = tc.value(tree.qdisc, word) if word is not None else None
    return float("inf") if rate is None or rate == "unlimited" else tc.rate(rate) * _share(tree.qdisc, frame)


def _share(line: str, frame: int | Frames | None) -> float:
    return 1.0 if frame is None else payload_share(line, frame)


def _htb(tree: Qdisc, of: Traffic | str | None, frame: int | Frames | None) -> float:
    """What a class may send at most: `ceil` up to the root, but never less than its own `rate`, which htb does not ask
    the classes above for. All of them together: the roots' ceils, or the rates below them if these are more.
    """
    classes = {class_.id: class_ for class_ in tree.classes}
    _shallow(classes)

    def words(class_: Class) -> tuple[float, float]:
        given = class_.class_
        rate, share = tc.value(given, "rate") or "1000gbit", _share(given, frame)
        return tc.rate(rate) * share, tc.rate(tc.value(given, "ceil") or rate) * share

    def assured(class_: Class) -> float:
        below = [child for child in classes.values() if child.parent == class_.id]
        return sum(assured(child) for child in below) if below else words(class_)[0]

    if of is None:
        roots = [class_ for class_ in classes.values() if not class_.parent]
        return sum(max(words(root)[1], assured(root)) for root in roots)
    taken = classes.get(of) if isinstance(of, str) else class_of(tree, of)
    lowest, own = float("inf"), 0.0 if taken is None else words(taken)[0]
    while taken is not None:
        lowest = min(lowest, words(taken)[1])
        taken = classes.get(taken.parent or "")
    return max(lowest, own)


def _shallow(classes: Mapping[str, Class]) -> None:
    """MeasureError if a class lies below itself, or deeper than htb has levels."""
    for id_, class_ in classes.items():
        above = class_
        for _ in range(_HTB_LEVELS):
            over = classes.get(above.parent or "")
            if over is None:
                break
            above = over
        else:
            raise MeasureError(f"class '{id_}': a cycle, or more than {_HTB_LEVELS - 1} ancestors")


def class_of(tree: Qdisc, flow: Traffic) -> Class | None:
    """The class whose filter names the flow or probe (by name, DSCP or protocol), else the default class.

    A filter on what differs from packet to packet (the ECN field, a SYN) names nobody.
    """
    proto = flow.transport if isinstance(flow, Flow) else flow.proto
    for class_ in tree.classes:
        for want in class_.filters:
            per_packet = want.ecn is not None or want.syn is not None
            named = want.flow in (None, flow.name) and want.dscp in (None, flow.dscp) and want.proto in (None, proto)
            if named and not per_packet:
                return class_
    default = tc.value(tree.qdisc, "default")
    return next((c for c in tree.classes if default is not None and _same_id(c.id, default)), None)


def _same_id(one: str, other: str) -> bool:
    try:
        return int(one, 16) == int(other.removeprefix("0x"), 16)
    except ValueError:
        raise MeasureError(f"class '{one}' or '{other}': expected hexadecimal digits, as in tc") from None
