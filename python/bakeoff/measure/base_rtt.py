"""The round-trip time of a path whose queues are empty, read from the resolved run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from bakeoff import tc
from bakeoff.measure.bottleneck import class_of, link_between, path


def base_rtt(resolved: Mapping[str, Any], flow: Mapping[str, Any]) -> float:
    """Propagation there and back, in seconds: the delays of the links and of every netem on the way, as the run begins.

    The time to send a packet is not in it (0.24 ms for a full frame at 50 Mbit/s), nor what netem's jitter and slots
    add.
    """
    there = path(resolved, flow)
    hops = there + [(peer, node) for node, peer in reversed(there)]
    return sum(_link(resolved, hop) + _queues(resolved, hop, flow) for hop in hops)


def mean_base_rtt(resolved: Mapping[str, Any], flow: Mapping[str, Any]) -> float:
    """The mean of `base_rtt` over the steady state, in seconds: timed changes of links and root qdiscs count."""
    start, stop = map(float, resolved["window_s"])
    changes = [float(change["at_s"]) for change in resolved.get("changes", ())]
    edges = sorted({start, *(at for at in changes if start < at < stop), stop})
    total = 0.0
    for since, until in pairwise(edges):
        total += (until - since) * base_rtt_at(resolved, flow, since)
    return total / (stop - start)


def base_rtt_at(resolved: Mapping[str, Any], flow: Mapping[str, Any], at_s: float) -> float:
    """`base_rtt` as the timed changes have left it `at_s` seconds after the start of the run."""
    due = sorted(
        (change for change in resolved.get("changes", ()) if float(change["at_s"]) <= at_s),
        key=lambda change: float(change["at_s"]),
    )
    return base_rtt(_after(resolved, due) if due else resolved, flow)


def _after(resolved: Mapping[str, Any], changes: Iterable[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The run with the delays that these changes leave."""
    links = [dict(link) for link in resolved["links"]]
    interfaces = [dict(interface) for interface in resolved["interfaces"]]
    for change in changes:
        action, end = change["action"], (change["node"], change["peer"])
        if action["kind"] == "link" and action.get("delay_s") is not None:
            next(link for link in links if set(link["ends"]) == set(end))["delay_s"] = action["delay_s"]
        elif action.get("handle") == "":
            interface = next(i for i in interfaces if (i["node"], i["peer"]) == end)
            new = action["qdisc"]
            changed = action["kind"] == "qdisc-change"
            interface[action["side"]] = {**interface[action["side"]], "qdisc": new} if changed else new
    return {**resolved, "links": links, "interfaces": interfaces}


def _link(resolved: Mapping[str, Any], hop: tuple[str, str]) -> float:
    return float(link_between(resolved, *hop)["delay_s"])


def _queues(resolved: Mapping[str, Any], hop: tuple[str, str], flow: Mapping[str, Any]) -> float:
    """What leaves `node` for `peer` passes the egress there, and then the ingress of the other end."""
    node, peer = hop
    delay = 0.0
    for interface in resolved["interfaces"]:
        end = (interface["node"], interface["peer"])
        side = "egress" if end == hop else "ingress" if end == (peer, node) else None
        tree = interface.get(side) if side else None
        if tree is not None:
            delay += _tree(tree, flow)
    return delay


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
