"""The round-trip time of a path whose queues are empty, read from the resolved run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bakeoff import tc
from bakeoff.measure.bottleneck import class_of, path


def base_rtt(resolved: Mapping[str, Any], flow: Mapping[str, Any]) -> float:
    """Propagation there and back, in seconds: the delays of the links and of every netem on the way, as the run begins.

    The time to send a packet is not in it (0.24 ms for a full frame at 50 Mbit/s), nor what netem's jitter and slots
    add.
    """
    there = path(resolved, flow)
    hops = there + [(peer, node) for node, peer in reversed(there)]
    return sum(_link(resolved, hop) + _queues(resolved, hop, flow) for hop in hops)


def _link(resolved: Mapping[str, Any], hop: tuple[str, str]) -> float:
    return float(next(link for link in resolved["links"] if set(link["ends"]) == set(hop))["delay_s"])


def _queues(resolved: Mapping[str, Any], hop: tuple[str, str], flow: Mapping[str, Any]) -> float:
    """What leaves `node` for `peer` passes the egress there, and then the ingress of the other end."""
    node, peer = hop
    delay = 0.0
    for interface in resolved["interfaces"]:
        end = (interface["node"], interface["peer"])
        side = "egress" if end == (node, peer) else "ingress" if end == (peer, node) else None
        tree = interface.get(side) if side else None
        if tree is not None:
            delay += _tree(tree, flow)
    return delay


def _tree(tree: Mapping[str, Any], flow: Mapping[str, Any]) -> float:
    delay = tc.value(tree["qdisc"], "delay") if tc.kind(tree["qdisc"]) == "netem" else None
    own = 0.0 if delay is None else tc.time(delay, bare="ns")
    below = tree.get("child")
    if tree.get("classes"):
        taken = class_of(tree, flow)
        below = taken.get("child") if taken is not None else None
    return own + (_tree(below, flow) if below is not None else 0.0)
