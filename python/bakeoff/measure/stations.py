"""Every place with a rate: the queues that packets wait in, their capacity, and the share of it that was used.

A shaper's charge for overhead and cells is added up over the lengths of the frames that a queue sent. Engines count a
queue's packets and bytes, and the simulator the packets of each flow and probe. Lengths follow from these: a datagram
and a probe have the length that the run says, a segment of TCP is a full frame or an empty one, in the numbers that
give the bytes, and what goes against the data is acknowledgements of one length.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from bakeoff.errors import MeasureError
from bakeoff.measure.bottleneck import end_of, path, rates
from bakeoff.measure.framing import Frames
from bakeoff.measure.samples import Samples, Window
from bakeoff.scenario.headers import ETHERNET, UDP_FRAME
from bakeoff.scenario.run import ConstantRate, Periodic
from bakeoff.scenario.timeline import Timeline

if TYPE_CHECKING:
    from bakeoff.measure.bottleneck import Hop
    from bakeoff.results.counters import Counters, Queue
    from bakeoff.scenario.run import Flow, Run


_EMPTY: Final = 66
"""Of a segment without data: Ethernet 14, IPv4 20, TCP 20, timestamps 12 bytes."""
_FULL: Final = 1514


def frames(run: Run, hop: str, queues: Iterable[Queue]) -> Frames:
    """How many frames of each length [byte] the queues of a place sent, by their counts over the whole run."""
    found: dict[int, float] = {}
    for queue in queues:
        packets, size = float(queue.sent or 0), float(queue.sent_bytes or 0)
        of = {name: float(part.packets) for name, part in queue.flows.items()}
        if of:
            _of_flows(found, run, hop, of, size)
        elif packets:
            _segments(found, packets, size, _FULL)
    return found


def _of_flows(found: dict[int, float], run: Run, hop: str, of: Mapping[str, float], size: float) -> None:
    node, peer, side = end_of(hop)
    ahead = (node, peer) if side == "egress" else (peer, node)
    data: dict[int, float] = {}
    ways: dict[tuple[str, str], list[tuple[str, str]]] = {}
    empty = 0.0
    for probe in run.probes:
        if packets := of.get(probe.name, 0.0):
            _count(found, probe.size + ETHERNET, packets)
            size -= packets * (probe.size + ETHERNET)
    for flow in run.flows:
        packets = of.get(flow.name, 0.0)
        if not packets:
            continue
        if flow.transport == "udp" and isinstance(flow.source, ConstantRate | Periodic):
            _count(found, flow.source.size + UDP_FRAME, packets)
            size -= packets * (flow.source.size + UDP_FRAME)
            continue
        ends = flow.from_, flow.to
        if ends not in ways:
            ways[ends] = path(run, flow)
        if ahead in ways[ends]:
            full = _mtu(run, ways[ends]) + ETHERNET
            data[full] = data.get(full, 0.0) + packets
        else:
            empty += packets
    if data:
        _count(found, _EMPTY, empty)
        size -= empty * _EMPTY
        for full, packets in data.items():
            _segments(found, packets, size * packets / sum(data.values()), full)
    elif empty:
        mean = max(size / empty, _EMPTY)
        _count(found, int(mean), empty * (1 - mean % 1))
        _count(found, int(mean) + 1, empty * (mean % 1))


def _segments(found: dict[int, float], packets: float, size: float, full: int) -> None:
    """Full frames and empty segments that are so many packets, or buffers of several segments, and so many bytes."""
    if size >= packets * full:
        _count(found, full, size / full)
        return
    whole = max(0.0, (size - packets * _EMPTY) / (full - _EMPTY))
    _count(found, full, whole)
    _count(found, _EMPTY, packets - whole)


def _count(found: dict[int, float], length: int, packets: float) -> None:
    if packets > 0:
        found[length] = found.get(length, 0.0) + packets


def _mtu(run: Run, way: Iterable[tuple[str, str]]) -> int:
    hops = {frozenset(hop) for hop in way}
    return min(link.mtu for link in run.links if frozenset(link.ends) in hops)


_LONG, _SHORT = 1514, 66
"""Bytes of a full and of an empty segment: what a shaper charges for these as they are, it charges so for all."""
_STRADDLING_BITS = 3 * 8 * 1514
"""Of a short window on a slow line one frame is more than a thousandth: at 100 kbit/s it takes 0.12 s."""


@dataclass
class Station:
    """A queue with a rate, or all queues of a hop that has several."""

    queue: str
    """`mid>srv`, or `mid>srv/1` for what class 1 holds there."""
    hop: str
    """The interface: `mid>srv` for what leaves there, `srv<mid` for what arrives."""
    pieces: list[tuple[float, float, float]]
    """(from [s], to [s], rate [bit/s]), over the window."""
    leaves: list[str]
    """Under which names its queues are counted."""
    capacity: list[tuple[float, float, float]]
    """As `pieces`, with the rate that its frames have: without what is charged for overhead and cells."""
    flows: list[str] = field(default_factory=list)
    """Whose data passes it, in the run's order."""

    def mean_rate(self, window: Window) -> float:
        """Its rate in bit/s, averaged over a part of the window."""
        return _bits(self.pieces, window) / (window[1] - window[0])

    def sampled(self, samples: Samples) -> bool:
        """Whether it is known what left it: not of ingress queues, nor of devices without a queue of their own."""
        return bool(self.leaves) and all(("queue", leaf, "sent") in samples for leaf in self.leaves)

    def utilisation(self, samples: Samples, window: Window) -> float:
        """Share of the rate that was used, from 0 to 1; no unit.

        8 (b(t1) - b(t0)) over the integral of the rate from t0 to t1, where b is the cumulative `sent` [byte] of the
        queues (whole frames) and t0, t1 are the first and the last sample in the window. It counts everything that
        left: data, ACKs, probes, retransmissions, headers. The rate is that which these frames have where the shaper
        charges other lengths, by the lengths of the whole run (`frames`). A shaper that stood idle may send its bucket
        at once, and a packet may straddle an edge: an excess of less than 0.1 %, or of three full frames where that is
        more, is nothing else, and shown as 1; where other lengths are charged, of less than 0.5 %, because the lengths
        in the window may be others than in the whole run. Raises MeasureError if a queue was not sampled or has no
        rate.
        """
        sent = 0.0
        edges: list[Window] = []
        for leaf in self.leaves:
            time, count = samples.of("queue", leaf, "sent", window)
            if len(time) < 2:
                raise MeasureError(f"fewer than two 'sent' samples of queue '{leaf}'")
            edges.append((float(time[0]), float(time[-1])))
            sent += 8 * float(count[-1] - count[0])
        could = _bits(self.capacity, edges[0])
        if not could > 0:
            raise MeasureError(f"queue '{self.queue}' has no rate")
        slack = 1.001 if self.capacity == self.pieces else 1.005
        no_more = sent < max(slack * could, could + _STRADDLING_BITS)
        return min(sent / could, 1.0) if no_more else sent / could


def stations(
    run: Run,
    counters: Counters,
    samples: Samples,
    window: Window,
    timeline: Timeline | None = None,
) -> list[Station]:
    """The stations on the ways of all flows and probes, there and back; first those that data passes.

    They are in the flows' order. A hop whose classes lead to several queues gives one station per queue and one for all
    of them together.
    """
    counted = counters.queues
    sampled = {name: counted.get(name) for name in samples.names("queue")}
    found: dict[str, Station] = {}
    timeline = timeline or Timeline(run)
    ways = [(flow, path(run, flow)) for flow in run.flows]
    back = [_back(there) for flow, there in ways if flow.transport == "tcp"]
    probed = [path(run, probe) for probe in run.probes]
    hops = [hop for way in [*(there for _, there in ways), *back, *probed, *map(_back, probed)] for hop in way]
    for node, peer in dict.fromkeys(hops):
        for hop in (f"{node}>{peer}", f"{peer}<{node}"):
            for station in _at(run, hop, window, sampled, timeline):
                found.setdefault(station.queue, station)
    for flow, there in ways:
        for station in found.values():
            node, peer, side = end_of(station.hop)
            if ((node, peer) if side == "egress" else (peer, node)) in there and _passes(flow, station, counted):
                station.flows.append(flow.name)
    return sorted(found.values(), key=lambda station: not station.flows)


def _back(there: list[Hop]) -> list[Hop]:
    return [(peer, node) for node, peer in reversed(there)]


def _passes(flow: Flow, station: Station, counted: Mapping[str, Queue]) -> bool:
    """Whether one of the station's queues counted the flow's packets; without such counts, whether it may have."""
    counts = [counted[leaf].flows for leaf in station.leaves if leaf in counted and counted[leaf].flows]
    return not counts or any(part[flow.name].packets for part in counts if flow.name in part)


def _at(
    run: Run, hop: str, window: Window, counts: Mapping[str, Queue | None], timeline: Timeline
) -> Iterator[Station]:
    """The stations of one side of a hop: each class's, and that of all of them; `counts` are of all sampled queues."""

    def station(queue: str, leaves: list[str], class_id: str | None = None) -> Station | None:
        own = rates(run, hop, window, class_id=class_id, timeline=timeline)
        if not _finite(own):
            return None
        charged = partial(rates, run, hop, window, class_id=class_id, timeline=timeline)
        if charged(frame=_LONG) == charged(frame=_SHORT) == own:
            return Station(queue, hop, own, leaves, own)
        sent = frames(run, hop, [known for leaf in leaves if (known := counts[leaf]) is not None])
        return Station(queue, hop, own, leaves, charged(frame=sent) if sent else own)

    inside = [name for name in counts if name == hop or name.startswith(hop + "/")]
    several = [(leaf, [leaf], leaf.removeprefix(hop + "/").partition("/")[0]) for leaf in inside]
    made = [station(*each) for each in several] if len(inside) > 1 else []
    yield from (each for each in (*made, station(hop, inside)) if each is not None)


def _bits(pieces: list[tuple[float, float, float]], window: Window) -> float:
    """What the pieces could have sent in a part of the window."""
    return sum(rate * max(0.0, min(stop, window[1]) - max(start, window[0])) for start, stop, rate in pieces)


def _finite(pieces: list[tuple[float, float, float]]) -> bool:
    return all(rate != float("inf") for _, _, rate in pieces)
