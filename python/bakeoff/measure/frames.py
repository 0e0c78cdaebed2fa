"""Which frames a queue sent, by length: what a shaper's charge for overhead and cells is added up over.

Engines count a queue's packets and bytes, and the simulator the packets of each flow and probe. Lengths follow from
these: a datagram and a probe have the length that the run says, a segment of TCP is a full frame or an empty one, in
the numbers that give the bytes, and what goes against the data is acknowledgements of one length.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from bakeoff.measure.bottleneck import end_of, path
from bakeoff.measure.framing import Frames

_ETHERNET: Final = 14
_UDP: Final = 42
"""Ethernet 14, IPv4 20, UDP 8 bytes."""
_EMPTY: Final = 66
"""Of a segment without data: Ethernet 14, IPv4 20, TCP 20, timestamps 12 bytes."""
_FULL: Final = 1514

Part = Mapping[str, Any]


def frames(resolved: Part, hop: str, queues: Iterable[Part]) -> Frames:
    """How many frames of each length [byte] the queues of a place sent, by their counts over the whole run."""
    found: dict[int, float] = {}
    for queue in queues:
        packets, size = float(queue.get("sent") or 0), float(queue.get("sent_bytes") or 0)
        of = {name: float(part["packets"]) for name, part in (queue.get("flows") or {}).items()}
        if of:
            _of_flows(found, resolved, hop, of, size)
        elif packets:
            _segments(found, packets, size, _FULL)
    return found


def _of_flows(found: dict[int, float], resolved: Part, hop: str, of: Mapping[str, float], size: float) -> None:
    node, peer, side = end_of(hop)
    ahead = (node, peer) if side == "egress" else (peer, node)
    data: dict[int, float] = {}
    ways: dict[tuple[str, str], list[tuple[str, str]]] = {}
    empty = 0.0
    for probe in resolved["probes"]:
        if packets := of.get(probe["name"], 0.0):
            _count(found, int(probe["size"]) + _ETHERNET, packets)
            size -= packets * (probe["size"] + _ETHERNET)
    for flow in resolved["flows"]:
        packets = of.get(flow["name"], 0.0)
        if not packets:
            continue
        if flow["transport"] == "udp" and "size" in flow["source"]:
            _count(found, int(flow["source"]["size"]) + _UDP, packets)
            size -= packets * (flow["source"]["size"] + _UDP)
            continue
        ends = flow["from"], flow["to"]
        if ends not in ways:
            ways[ends] = path(resolved, flow)
        if ahead in ways[ends]:
            full = _mtu(resolved, ways[ends]) + _ETHERNET
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


def _mtu(resolved: Part, way: Iterable[tuple[str, str]]) -> int:
    hops = {frozenset(hop) for hop in way}
    return min(int(link["mtu"]) for link in resolved["links"] if frozenset(link["ends"]) in hops)
