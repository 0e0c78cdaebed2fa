"""Namespaces or machines, cables, bridges, addresses, routes and sysctls as commands."""

from __future__ import annotations

import re
from typing import Final

from bakeoff.engines.lab.plan import Command
from bakeoff.engines.lab.topology import Interface, Topology
from bakeoff.errors import RefusedError
from bakeoff.scenario import Run
from bakeoff.scenario.run import Node

BRIDGE: Final = "br0"
# A machine may have a br0 of its own.
BRIDGE_OF_A_MACHINE: Final = "bakeoff-br"
# What Linux takes by itself on a machine with 1 GB or more; a small guest would have less, and the window with it.
BUFFERS: Final = {
    "net.ipv4.tcp_rmem": "4096 131072 6291456",
    "net.ipv4.tcp_wmem": "4096 16384 4194304",
}
# A kernel has these once for all its namespaces, in the first one only.
_OF_THE_KERNEL: Final = (
    "net.core.default_qdisc", "net.core.dev_weight", "net.core.gro_normal_batch", "net.core.max_skb_frags",
    "net.core.netdev_budget", "net.core.netdev_budget_usecs", "net.core.netdev_max_backlog",
    "net.core.qdisc_max_burst", "net.ipv4.tcp_max_orphans", "net.ipv4.tcp_mem", "net.ipv4.udp_mem",
)  # fmt: skip
_SYSCTL: Final = re.compile(r"net(\.[A-Za-z0-9_-]+)+")
_OFFLOADS: Final = ("rx", "tx", "sg", "tso", "gso", "gro", "rxvlan", "txvlan")
# The kernel tells a bridge of a port's new carrier at most once a second.
_CARRIER_S: Final = 3


def sysctls(node: Node, place: str, netns: str | None) -> dict[str, str]:
    """What is set in a node, a namespace or a machine: the scenario's sysctls over the lab's own.

    Refused if one is not of the network.
    """
    for key in node.sysctls:
        if not _SYSCTL.fullmatch(key):
            raise RefusedError(f"{place}.sysctls: '{key}': not a sysctl of a network namespace; expected 'net.…'")
    own = {} if node.kind == "bridge" else dict(BUFFERS)
    if node.kind == "router":
        own["net.ipv4.ip_forward"] = "1"
    wanted = own | node.sysctls
    return {key: value for key, value in wanted.items() if netns is None or key not in _OF_THE_KERNEL}


def of_the_kernel(run: Run, topology: Topology, tcp_pages: int | None) -> dict[str, str]:
    """What is set once for all namespaces of the lab's own kernel; `tcp_pages`: the memory that its TCP may take.

    Without `tcp_pages` the kernel is this machine's, or there is one per node: then there is nothing of the kind.
    Refused if two nodes ask for unlike values, or if a node asks this machine's kernel for one.
    """
    # From the first of the three on windows stop growing, and nothing counts it: none of them may be reached.
    found = {} if tcp_pages is None else {"net.ipv4.tcp_mem": f"{tcp_pages} {tcp_pages} {tcp_pages}"}
    asked: dict[str, tuple[str, str]] = {}
    for index, node in enumerate(run.nodes):
        for key, value in node.sysctls.items():
            if key not in _OF_THE_KERNEL or topology.namespaces[node.name] is None:
                continue
            place = f"nodes[{index}].sysctls: '{key}'"
            if tcp_pages is None:
                raise RefusedError(
                    f"{place} applies to the whole machine; expected 'sysctl -w' before the run, or another engine"
                )
            other, before = asked.setdefault(key, (node.name, value))
            if before.split() != value.split():
                raise RefusedError(
                    f"{place} applies to all nodes, but '{other}' has {before!r} and '{node.name}' {value!r}; "
                    "expected one value"
                )
            found[key] = value
    return found


def namespaces(run: Run, topology: Topology) -> list[Command]:
    """A namespace for each node that is no machine, without IPv6, and its sysctls."""
    commands = []
    for index, node in enumerate(run.nodes):
        netns = topology.namespaces[node.name]
        if netns is not None:
            commands.append(Command(node.name, ("ip", "netns", "add", netns)))
        for off in _without_ipv6(topology, node.name):
            # -e: a kernel without IPv6 has no such key.
            commands.append(Command(node.name, ("sysctl", "-e", "-w", off), netns))
        for key, value in sysctls(node, f"nodes[{index}]", netns).items():
            commands.append(Command(node.name, ("sysctl", "-w", f"{key}={value}"), netns))
        if netns is not None:
            commands.append(Command(node.name, ("ip", "link", "set", "dev", "lo", "up"), netns))
    return commands


def _without_ipv6(topology: Topology, node: str) -> list[str]:
    if topology.namespaces[node] is not None:
        return [f"net.ipv6.conf.{which}.disable_ipv6=1" for which in ("all", "default")]
    # A machine is reached by its other devices. With slashes: a device's name may have a dot.
    return [f"net/ipv6/conf/{device.dev}/disable_ipv6=1" for device in topology.of(node)]


def cables(run: Run, topology: Topology, *, ethtool: bool) -> list[Command]:
    """veth pairs, their offloads and bridges; devices are still down. Between machines there are cables already."""
    commands = []
    for link in run.links:
        one, other = (topology.interfaces[end] for end in (link.ends, link.ends[::-1]))
        if one.netns is None:
            for end in (one, other):
                commands.append(Command(end.node, ("ip", "link", "set", "dev", end.dev, "mtu", str(end.mtu))))
            continue
        argv = ("ip", "link", "add", *_device(one), "type", "veth", "peer", *_device(other))
        commands.append(Command(one.node, argv))
    for node in run.nodes:
        devices = topology.of(node.name)
        netns = topology.namespaces[node.name]
        for device in devices if not node.offloads else []:
            commands.append(Command(node.name, _offloads_off(device.dev, ethtool=ethtool), netns))
        if node.kind == "bridge":
            words = ("type", "bridge", "stp_state", "0", "mcast_snooping", "0")
            bridge = _bridge(topology, node.name)
            commands.append(Command(node.name, ("ip", "link", "add", bridge, *words), netns))
            for device in devices:
                commands.append(Command(node.name, ("ip", "link", "set", "dev", device.dev, "master", bridge), netns))
    return commands


def addresses(run: Run, topology: Topology) -> list[Command]:
    """Devices up, addresses, permanent neighbours, routes."""
    commands = []
    for node in run.nodes:
        netns = topology.namespaces[node.name]
        bridge = [_bridge(topology, node.name)] if node.kind == "bridge" else []
        up = [device.dev for device in topology.of(node.name)] + bridge
        for device in topology.of(node.name):
            if device.address is not None:
                argv = ("ip", "addr", "add", f"{device.address}/24", "dev", device.dev)
                commands.append(Command(node.name, argv, netns))
        commands += [Command(node.name, ("ip", "link", "set", "dev", dev, "up"), netns) for dev in up]
        for device in topology.of(node.name):
            commands += reachable(topology, device)
    # Nothing may be lost for want of a carrier once traffic starts.
    commands.append(Command(run.nodes[0].name, ("sleep", str(_CARRIER_S))))
    return commands


def reachable(topology: Topology, device: Interface) -> list[Command]:
    """Neighbours and routes of a device: what the kernel forgets when it goes down."""
    if device.address is None:
        return []
    commands = []
    for other in topology.neighbours(device):
        if other.mac is None:
            continue
        words = (str(other.address), "lladdr", str(other.mac), "dev", device.dev, "nud", "permanent")
        commands.append(Command(device.node, ("ip", "neigh", "replace", *words), device.netns))
    for number, out, via in topology.routes(device.node):
        if out.dev == device.dev:
            argv = ("ip", "route", "replace", f"10.9.{number}.0/24", "via", via, "dev", device.dev)
            commands.append(Command(device.node, argv, device.netns))
    return commands


def _bridge(topology: Topology, node: str) -> str:
    return BRIDGE if topology.namespaces[node] is not None else BRIDGE_OF_A_MACHINE


def _device(end: Interface) -> list[str]:
    mac = ["address", end.mac] if end.mac is not None else []
    return ["name", end.dev, "netns", str(end.netns), "mtu", str(end.mtu), *mac]


def _offloads_off(dev: str, *, ethtool: bool) -> tuple[str, ...]:
    if ethtool:
        return ("ethtool", "-K", dev, *(word for name in _OFFLOADS for word in (name, "off")))
    return ("ip", "link", "set", "dev", dev, "gso_max_segs", "1")
