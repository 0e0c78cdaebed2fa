"""What a plan asks of a kernel besides congestion controls, found out by trying in a namespace of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from bakeoff.engines.kernel.check import qdiscs

if TYPE_CHECKING:
    from bakeoff.engines.lab.plan import Plan

Tried = Callable[[str, tuple[str, ...]], str]
"""(node, command) -> what the command says in a new network namespace there."""

# type of a device -> symbol of the kernel's configuration
_DEVICES: Final = {
    "bridge": "BRIDGE", "gre": "NET_IPGRE", "ifb": "IFB", "ipip": "NET_IPIP", "veth": "VETH", "vxlan": "VXLAN",
    "wireguard": "WIREGUARD",
}  # fmt: skip
_ACTIONS: Final = {
    "mirred": ("mirred", "egress", "redirect", "dev", "lo"),
    "police": ("police", "rate", "1mbit", "burst", "10k", "conform-exceed", "drop"),
    "pedit": ("pedit", "munge", "ip", "dsfield", "set", "0"),
    "csum": ("csum", "ip4h"),
    "skbedit": ("skbedit", "priority", "1:1"),
}
_BPF: Final = (
    "tc qdisc add dev lo handle ffff: ingress && "
    "tc filter add dev lo parent ffff: protocol all bpf bytecode '1,6 0 0 0'"
)


def lacking(plan: Plan, tried: Tried) -> Iterator[tuple[str, str]]:
    """(place, what and which module) of each qdisc, device and action that the plan asks for and a kernel has not."""
    for command in plan.setup:
        words = command.argv
        if words[:3] in (("tc", "qdisc", "add"), ("tc", "qdisc", "replace")) and "ingress" not in words:
            kind = words[words.index("handle") + 2]
            options = qdiscs().get(kind, "").split()
            error = tried(command.node, ("tc", "qdisc", "add", "dev", "lo", "root", "handle", "1:", kind, *options))
            if "qdisc kind is unknown" in error or "Unknown qdisc" in error:
                yield command.line(), f"has no {kind}: module sch_{kind} (CONFIG_NET_SCH_{kind.upper()})"
        for kind, symbol in _DEVICES.items():
            if words[:3] == ("ip", "link", "add") and kind in words:
                error = tried(command.node, ("ip", "link", "add", "probe0", "type", kind))
                if "Unknown device type" in error:
                    yield command.line(), f"has no {kind} devices: module {kind} (CONFIG_{symbol})"
        if words[:2] == ("tc", "filter") and "bpf" in words:
            error = tried(command.node, ("sh", "-c", _BPF))
            if "classifier not found" in error:
                yield command.line(), "has no classifier bpf: module cls_bpf (CONFIG_NET_CLS_BPF)"
        for action, options_of in _ACTIONS.items():
            if words[:2] == ("tc", "filter") and action in words:
                error = tried(command.node, ("tc", "actions", "add", "action", *options_of))
                if "Failed to load TC action module" in error:
                    symbol = f"CONFIG_NET_ACT_{action.upper()}"
                    yield command.line(), f"has no action {action}: module act_{action} ({symbol})"
