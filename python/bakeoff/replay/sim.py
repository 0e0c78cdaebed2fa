"""Our side: the simulator's queue alone."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bakeoff.errors import ReplayError
from bakeoff.replay.arrivals import Arrivals
from bakeoff.replay.port import START_NS, Port, by_priority, document, flow_hash, flows

Departure = tuple[int, int, int]
"""Number of the packet, from 0; when it left, ns; its ECN field then."""


@dataclass(frozen=True)
class Replayed:
    """What one side did."""

    arrivals_ns: tuple[int, ...]
    """When each packet arrived. Of a kernel: since its boot; of the simulator alone: since the qdisc was made."""
    departures: tuple[Departure, ...]
    """In order; a packet that is not there was dropped."""
    show: str
    """Configuration in effect and statistics, in tc's words."""
    hashes: tuple[int, ...]
    """`skb->hash` of each flow."""
    late_ns: int = 0
    """How late the kernel's timer was taken to be, at most."""


def simulate(
    port: Port, arrivals: Arrivals, *, seed: int = 1, hz: int = 1000, like: Replayed | None = None
) -> Replayed:
    """Replay through our queue; with the times of arrival, the lateness of the timer and the flows' hashes of a
    kernel's replay `like`.

    BakeoffError if the simulator does not know the qdisc or a word of it.
    """
    from bakeoff import _sim

    times = like.arrivals_ns if like else tuple(START_NS + packet.ns for packet in arrivals.packets)
    by_bucket = like is not None and not by_priority(port)
    hashes = like.hashes if like and by_bucket else tuple(flow_hash(flow) for flow in range(flows(port, arrivals)))
    wanted = {
        "qdisc": document(port),
        "seed": seed,
        "hz": hz,
        "flows": len(hashes),
        "told_buckets": by_priority(port),
        "arrivals": [
            {"at": at, "bytes": p.bytes, "flow": p.flow, "hash": hashes[p.flow], "ecn": p.ecn}
            for at, p in zip(times, arrivals.packets, strict=True)
        ],
        "ticks": sorted({at for _, at, _ in like.departures}) if like else [],
    }
    try:
        answer = json.loads(_sim.qdisc_replay(json.dumps(wanted)))
    except ValueError as error:
        raise ReplayError(f"qdisc: {error}") from error
    if answer["left"]:
        raise ReplayError(f"{port.qdisc}: {answer['left']} packets never leave the simulated queue")
    departures = tuple((d["packet"], d["at"], d["ecn"]) for d in answer["departures"])
    return Replayed(times, departures, answer["show"], hashes, answer["late"])
