"""What happens to a packet that arrives: the policer of its link, rewriting, and the detour through an ifb where there
is an ingress queue.

tc runs both ahead of the ifb, the document has the queue first. The difference shows only where the queue's filters
look at what is rewritten: there the class is chosen first, and travels as the packet's priority.
"""

from __future__ import annotations

from collections.abc import Sequence

from bakeoff.engines.lab import match
from bakeoff.engines.lab.tree import INGRESS_HANDLE
from bakeoff.errors import RefusedError
from bakeoff.scenario.run import Interface, Mangle, Policer, Qdisc

_CWR_ECE = "0xc0"
# AccECN's third bit (RFC 9768) is the last one of the byte before the flags.
_AE = "0x01"


def hook(
    dev: str,
    ifb: str,
    wanted: Interface,
    flows: dict[str, list[str]],
    place: str,
    *,
    policer: Policer | None,
    clear: Sequence[str] = (),
) -> list[list[str]]:
    """The commands at the ingress of `dev`; `ifb` has the queue, if there is one. `policer`: of what arrives there.

    `clear`: the words of a filter for all packets, ahead of the others.
    """
    queue, rules = wanted.ingress, wanted.mangle
    if queue is None and not rules and policer is None and not clear:
        return []
    commands = [["tc", "qdisc", "add", "dev", dev, "handle", "ffff:", "ingress"]]
    filters = [] if policer is None else [_policing(policer)]
    # A packet that is marked down may be one that the queue's filters look for.
    filters += _classification(queue, flows, place) if queue is not None and rules else []
    filters += [_rewriting(rule, flows, f"{place}.mangle[{i}]") for i, rule in enumerate(rules)]
    # ARP has a place of its own in the order of filters: a number has one protocol.
    first = 2 if clear else 1
    commands += [_filter(dev, 1, "all", list(clear))] if clear else []
    commands += [_filter(dev, prio, "ip", ["u32", *words]) for prio, words in enumerate(filters, start=first)]
    if queue is not None:
        redirect = ["u32", "match", "u32", "0", "0", "action", "mirred", "egress", "redirect", "dev", ifb]
        commands.append(_filter(dev, first + len(filters), "all", redirect))
    return commands


def _filter(dev: str, prio: int, protocol: str, words: list[str]) -> list[str]:
    on = ["dev", dev, "parent", "ffff:", "protocol", protocol, "prio", str(prio)]
    return ["tc", "filter", "add", *on, *words]


def _policing(policer: Policer) -> list[str]:
    # Here a packet has lost its Ethernet header, which counts in the simulator, and on the wire.
    words = ["rate", f"{policer.rate_bps}bit", "burst", f"{policer.burst}b", "overhead", "14"]
    every = ["match", "u32", "0", "0", "action", "police", *words, "conform-exceed"]
    if policer.exceed == "drop":
        return [*every, "drop/continue"]
    dsfield = f"0x{policer.exceed.dscp << 2:02x}"
    munge = ["pedit", "munge", "ip", "dsfield", "set", dsfield, "retain", "0xfc", "pipe"]
    return [*every, "pipe/continue", "action", *munge, "action", "csum", "ip4h", "continue"]


def _classification(queue: Qdisc, flows: dict[str, list[str]], place: str) -> list[list[str]]:
    """In reverse, each overriding the one before, so that the first filter of the document has the last word."""
    if _filters_below(queue):
        raise RefusedError(
            f"{place}.ingress: filters below the root would match after 'mangle'; expected filters at the root only, "
            "or no 'mangle'"
        )
    chosen = []
    for index, cls in enumerate(queue.classes):
        for number, wanted in enumerate(cls.filters):
            what = match.words(wanted, flows, f"{place}.ingress.classes[{index}].filters[{number}]")
            chosen.append([*what, "action", "skbedit", "priority", f"{INGRESS_HANDLE:x}:{cls.id}", "continue"])
    return chosen[::-1]


def _filters_below(tree: Qdisc) -> bool:
    children = [child for child in (tree.child, *(cls.child for cls in tree.classes)) if child is not None]
    return any(_filters_below(child) or any(cls.filters for cls in child.classes) for child in children)


def _rewriting(rule: Mangle, flows: dict[str, list[str]], place: str) -> list[str]:
    mask = (0xFC if rule.set_dscp is not None else 0) | (0x03 if rule.set_ecn is not None else 0)
    value = (rule.set_dscp or 0) << 2 | (match.ECN[rule.set_ecn] if rule.set_ecn is not None else 0)
    tcp = rule.match.proto == "tcp" or rule.match.syn is not None
    munge: list[str] = []
    if mask:
        munge += ["munge", "ip", "dsfield", "set", f"0x{value:02x}", "retain", f"0x{mask:02x}"]
    if rule.clear_syn_ecn:
        if rule.match.syn is not True:
            raise RefusedError(f"{place}.clear_syn_ecn: expected 'syn: true' in 'match'")
        flags = match.TCP_FLAGS_AT
        munge += ["munge", "offset", str(flags - 1), "u8", "set", "0x00", "retain", _AE]
        munge += ["munge", "offset", str(flags), "u8", "set", "0x00", "retain", _CWR_ECE]
    if not munge:
        raise RefusedError(f"{place}: no action; expected set_dscp, set_ecn or clear_syn_ecn")
    checksums = ["ip4h", "and", "tcp"] if tcp and rule.clear_syn_ecn else ["ip4h"]
    # The next rule sees what this one made of the packet.
    return [
        *match.words(rule.match, flows, f"{place}.match"), "action", "pedit", *munge, "pipe",
        "action", "csum", *checksums, "continue",
    ]  # fmt: skip
