"""Which queue a flow fights for, read from the resolved run."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from bakeoff.measure.samples import MeasureError, Window
from bakeoff.results.summary import Bottleneck

Hop = tuple[str, str]

_ETHERNET = 14
"""Bytes of an Ethernet header: what a qdisc's rate is counted in (skb->len on egress) beyond the IP packet."""

_SHAPER_WORD = {"tbf": "rate", "netem": "rate"} | dict.fromkeys(
    ("cake", "cnq_cobalt", "cnq_codel_af", "cobalt", "deltic_boroshne", "lfq_cobalt", "twin_codel_af"), "bandwidth"
)
_UNIT = re.compile(r"([0-9.]+(?:e[0-9]+)?)([kmgt]?)(i?)(bit|bps|)", re.IGNORECASE)


def tc_rate(word: str) -> float:
    """A rate in tc's language in bit/s: `50mbit`, `1gbps` (bytes per second), `3Mibit`, a bare number of bit/s."""
    match = _UNIT.fullmatch(word)
    if match is None:
        raise MeasureError(f"'{word}' is no rate in tc's language, such as 50mbit")
    number, prefix, binary, unit = match.groups()
    power = "kmgt".index(prefix.lower()) + 1 if prefix else 0
    scale = float(1024 if binary else 1000) ** power
    return float(number) * scale * (8 if unit.lower() == "bps" else 1)


def path(resolved: Mapping[str, Any], flow: Mapping[str, Any]) -> list[Hop]:
    """The hops (node, next node) from a flow's sender to its receiver, by the fewest links."""
    neighbours: dict[str, list[str]] = {}
    for link in resolved["links"]:
        one, other = link["ends"]
        neighbours.setdefault(one, []).append(other)
        neighbours.setdefault(other, []).append(one)
    came_from: dict[str, str] = {flow["from"]: flow["from"]}
    waiting = deque([flow["from"]])
    while waiting and flow["to"] not in came_from:
        here = waiting.popleft()
        for there in neighbours.get(here, ()):
            if there not in came_from:
                came_from[there] = here
                waiting.append(there)
    if flow["to"] not in came_from:
        raise MeasureError(f"flow '{flow['name']}': no path from '{flow['from']}' to '{flow['to']}'")
    hops: list[Hop] = []
    node = flow["to"]
    while node != flow["from"]:
        hops.append((came_from[node], node))
        node = came_from[node]
    return hops[::-1]


def payload_fraction(resolved: Mapping[str, Any], flow: Mapping[str, Any], payload: float) -> float:
    """`payload` [B] over what the bottleneck counts for a full segment: path MTU + 14 bytes of Ethernet; no unit."""
    hops = {frozenset(hop) for hop in path(resolved, flow)}
    mtu = min(int(link["mtu"]) for link in resolved["links"] if frozenset(link["ends"]) in hops)
    return payload / (mtu + _ETHERNET)


def bottleneck(resolved: Mapping[str, Any], flow: Mapping[str, Any], window: Window) -> Bottleneck:
    """The hop with the lowest mean rate in the window, the first of equals.

    A hop's rate is the lower one of its link's and its shaper's: the `ceil` (else `rate`) of the htb class that
    takes the flow, tbf's and netem's `rate`, or the `bandwidth` of a qdisc that shapes by itself. Timed changes
    count from when they are made. Raises MeasureError if nothing on the path has a rate.
    """
    found: Bottleneck | None = None
    for node, peer in path(resolved, flow):
        changes = [c for c in resolved.get("changes", ()) if (c["node"], c["peer"]) == (node, peer)]
        inside = [float(c["at_s"]) for c in changes if window[0] < c["at_s"] < window[1]]
        edges = sorted({window[0], *inside, window[1]})
        rates = [_rate_at(resolved, (node, peer), flow, changes, start) for start in edges[:-1]]
        mean = sum(rate * (b - a) for rate, (a, b) in zip(rates, pairwise(edges), strict=True)) / (
            window[1] - window[0]
        )
        if mean != float("inf") and (found is None or mean < found.rate_bps):
            found = Bottleneck(queue=f"{node}>{peer}", rate_bps=mean)
    if found is None:
        raise MeasureError(f"flow '{flow['name']}': nothing on its path has a rate")
    return found


def leaves(hop: str, names: Iterable[str]) -> list[str]:
    """Those of the queues' names under which a hop's queues are counted: itself, or one per class (`mid>srv/1`)."""
    return [name for name in names if name == hop or name.startswith(hop + "/")]


def _rate_at(
    resolved: Mapping[str, Any], hop: Hop, flow: Mapping[str, Any], changes: list[Mapping[str, Any]], at_s: float
) -> float:
    link = next(link for link in resolved["links"] if set(link["ends"]) == set(hop))
    link_rate = link["rate_bps"]
    tree: Mapping[str, Any] | None = next(
        (i.get("egress") for i in resolved.get("interfaces", ()) if (i["node"], i["peer"]) == hop), None
    )
    words: dict[str, str] = {}
    for change in sorted(changes, key=lambda c: float(c["at_s"])):
        action = change["action"]
        if change["at_s"] > at_s:
            break
        if action["kind"] == "link" and action.get("rate_bps") is not None:
            link_rate = action["rate_bps"]
        elif action.get("side") == "egress" and action["kind"] == "class-change":
            words[action["id"]] = action["class"]
        elif action.get("side") == "egress" and action.get("handle") == "":
            new = action["qdisc"]
            tree = new if action["kind"] == "qdisc-replace" else {**(tree or {}), "qdisc": new}
    shaped = float("inf") if tree is None else _shaper(tree, flow, words)
    return min(shaped, float("inf") if link_rate is None else float(link_rate))


def _shaper(tree: Mapping[str, Any], flow: Mapping[str, Any], changed: Mapping[str, str]) -> float:
    kind, *words = tree["qdisc"].split()
    if kind == "htb":
        class_ = class_of(tree, flow)
        if class_ is None:
            return float("inf")
        words = changed.get(class_["id"], class_["class"]).split()
        return tc_rate(_after("ceil", words) or _after("rate", words) or "1000gbit")
    rate = _after(_SHAPER_WORD.get(kind.partition("@")[0], ""), words)
    return float("inf") if rate is None or rate == "unlimited" else tc_rate(rate)


def class_of(tree: Mapping[str, Any], flow: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The class whose filter names the flow (by name or DSCP), else the default class."""
    for class_ in tree.get("classes", ()):
        for want in class_.get("filters", ()):
            if want.get("flow", flow["name"]) == flow["name"] and want.get("dscp", flow["dscp"]) == flow["dscp"]:
                return class_  # type: ignore[no-any-return]
    default = _after("default", tree["qdisc"].split())
    return next((c for c in tree.get("classes", ()) if default is not None and _same_id(c["id"], default)), None)


def _same_id(one: str, other: str) -> bool:
    return int(one, 16) == int(other.removeprefix("0x"), 16)


def _after(word: str, words: list[str]) -> str | None:
    return next((value for key, value in pairwise(words) if key == word), None)
