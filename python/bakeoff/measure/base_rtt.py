"""The round-trip time of a path whose queues are empty, read from the resolved run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from bakeoff.measure.bottleneck import class_of, path
from bakeoff.measure.samples import MeasureError

_TIME = re.compile(r"([0-9.]+)(us|usecs?|ms|msecs?|s|secs?|)", re.IGNORECASE)
_SECONDS = {"": 1e-6, "u": 1e-6, "m": 1e-3, "s": 1.0}


def tc_time(word: str) -> float:
    """A time in tc's language in seconds: `10ms`, `1.5s`, a bare number of microseconds."""
    match = _TIME.fullmatch(word)
    if match is None:
        raise MeasureError(f"'{word}' is no time in tc's language, such as 10ms")
    return float(match[1]) * _SECONDS[match[2][:1].lower()]


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
    kind, *words = tree["qdisc"].split()
    own = next((tc_time(value) for key, value in pairwise(words) if key == "delay"), 0.0) if kind == "netem" else 0.0
    below = tree.get("child")
    if tree.get("classes"):
        taken = class_of(tree, flow)
        below = taken.get("child") if taken is not None else None
    return own + (_tree(below, flow) if below is not None else 0.0)
