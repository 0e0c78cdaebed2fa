"""The round-trip time of a path whose queues are empty, read from the resolved run."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from bakeoff import tc
from bakeoff.measure.bottleneck import Hop, class_of, path
from bakeoff.scenario.timeline import Timeline


def base_rtt(resolved: Mapping[str, Any], flow: Mapping[str, Any]) -> float:
    """Propagation there and back, in seconds: the delays of the links and of every netem on the way, as the run begins.

    The time to send a packet is not in it (0.24 ms for a full frame at 50 Mbit/s), nor what netem's jitter and slots
    add.
    """
    return base_rtt_at({**resolved, "changes": ()}, flow, 0)


def mean_base_rtt(resolved: Mapping[str, Any], flow: Mapping[str, Any], timeline: Timeline | None = None) -> float:
    """The mean of `base_rtt` over the steady state, in seconds: timed changes of links and qdiscs count."""
    start, stop = map(float, resolved["window_s"])
    timeline, hops = timeline or Timeline(resolved), _round(resolved, flow)
    total = 0.0
    for since, until in pairwise(timeline.times([end for hop in hops for end in (hop, hop[::-1])], (start, stop))):
        total += (until - since) * _delay(timeline, hops, flow, since)
    return total / (stop - start)


def base_rtt_at(
    resolved: Mapping[str, Any], flow: Mapping[str, Any], at_s: float, timeline: Timeline | None = None
) -> float:
    """`base_rtt` as the timed changes have left it `at_s` seconds after the start of the run."""
    return _delay(timeline or Timeline(resolved), _round(resolved, flow), flow, at_s)


def _round(resolved: Mapping[str, Any], flow: Mapping[str, Any]) -> list[Hop]:
    """The hops to the receiver and back."""
    there = path(resolved, flow)
    return there + [(peer, node) for node, peer in reversed(there)]


def _delay(timeline: Timeline, hops: list[Hop], flow: Mapping[str, Any], at_s: float) -> float:
    """What leaves `node` for `peer` passes the egress there, the link, and then the ingress of the other end."""
    total = 0.0
    for node, peer in hops:
        here, there = timeline.at((node, peer), at_s), timeline.at((peer, node), at_s)
        queues = sum(_tree(tree, flow) for tree in (here.egress, there.ingress) if tree is not None)
        total += here.delay_s + queues
    return total


def _tree(tree: Mapping[str, Any], flow: Mapping[str, Any]) -> float:
    below = tree.get("child")
    if tree.get("classes"):
        taken = class_of(tree, flow)
        below = taken.get("child") if taken is not None else None
    return _netem(tree["qdisc"]) + (_tree(below, flow) if below is not None else 0.0)


@lru_cache(maxsize=256)  # thousands of runs have the same few
def _netem(qdisc: str) -> float:
    """The delay of a netem, in seconds; 0 of other qdiscs."""
    delay = tc.value(qdisc, "delay") if tc.kind(qdisc) == "netem" else None
    return 0.0 if delay is None else tc.time(delay, bare="ns")
