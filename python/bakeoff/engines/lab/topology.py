"""Names, addresses and routes: what a run's graph is on real Linux.

Every node is a network namespace and every link a veth pair; or every node is a machine and every link a cable between
two of their devices. Bridges join links to one IPv4 segment,
10.9.N.0/24; hosts and routers have an address on each segment that they touch. Addresses follow from the order of the
document alone.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from bakeoff.errors import RefusedError
from bakeoff.scenario import Run

# IFNAMSIZ of linux/if.h is 16, with the end of the string.
LONGEST_NAME: Final = 15
_NODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_LONGEST_NODE: Final = 64
_SEGMENTS: Final = 256
_HOSTS: Final = 254

End = tuple[str, str]


@dataclass(frozen=True)
class Interface:
    """One end of a cable."""

    node: str
    peer: str
    netns: str | None
    """None: the node is a machine."""
    dev: str
    """At most 15 characters: `mid.srv`, or `eN` where that would be longer; a machine's own name for it."""
    ifb: str
    """The device for its ingress queue: `ifb.srv`, or `ifbN`."""
    mtu: int
    address: str | None
    """IPv4, None on a bridge's port."""
    mac: str | None


@dataclass(frozen=True)
class Device:
    """A network device of a machine: its name there, and its MAC address (None if not known)."""

    name: str
    mac: str | None = None


Machines = Mapping[str, Mapping[str, Device]]
"""node -> peer -> the device that leads there."""


@dataclass(frozen=True)
class Topology:
    """The network of one run."""

    kinds: dict[str, str]
    """node -> `host`, `bridge` or `router`."""
    namespaces: dict[str, str | None]
    """node -> namespace; None: the node is a machine."""
    interfaces: dict[End, Interface]
    segments: tuple[tuple[End, ...], ...]
    """The ends with an address in each segment."""

    def address(self, node: str) -> str:
        """A host's address: that of its first link. Refused if it has none."""
        for interface in self.of(node):
            if interface.address is not None:
                return interface.address
        raise RefusedError(f"node '{node}' has no address; expected a host with a link")

    def of(self, node: str) -> list[Interface]:
        """A node's interfaces, in the order of the links."""
        return [interface for (at, _), interface in self.interfaces.items() if at == node]

    def neighbours(self, interface: Interface) -> Iterator[Interface]:
        """Who else has an address on the interface's segment."""
        end = (interface.node, interface.peer)
        for segment in self.segments:
            if end in segment:
                yield from (self.interfaces[other] for other in segment if other != end)

    def routes(self, node: str) -> list[tuple[int, Interface, str]]:
        """(number of a segment that is not the node's own, interface, address of the next router), by fewest hops.

        Only routers forward.
        """
        touches = {number: {end[0] for end in segment} for number, segment in enumerate(self.segments)}
        via: dict[int, tuple[Interface, str] | None] = {
            number: None for number, nodes in touches.items() if node in nodes
        }
        waiting = deque(via)
        while waiting:
            number = waiting.popleft()
            for router in sorted(name for name in touches[number] - {node} if self.kinds[name] == "router"):
                for further in (n for n, nodes in touches.items() if router in nodes and n not in via):
                    via[further] = via[number] or self._via(node, router, number)
                    waiting.append(further)
        return [(number, *first) for number, first in sorted(via.items()) if first is not None]

    def reaches(self, node: str, other: str) -> bool:
        """Whether packets from `node` find their way to the address of `other`."""
        [target] = [n for n, segment in enumerate(self.segments) for e in segment if self._is(e, self.address(other))]
        own = {number for number, segment in enumerate(self.segments) if node in {end[0] for end in segment}}
        return target in own.union(number for number, _, _ in self.routes(node))

    def _is(self, end: End, address: str) -> bool:
        return self.interfaces[end].address == address

    def _via(self, node: str, router: str, number: int) -> tuple[Interface, str]:
        ends = {end[0]: self.interfaces[end] for end in self.segments[number]}
        return ends[node], str(ends[router].address)


def topology(run: Run, prefix: str = "", machines: Machines | None = None) -> Topology:
    """The network of a run. Refused names what cannot be.

    Nodes are namespaces called `prefix` and the node's name, or the `machines`.
    """
    kinds: dict[str, str] = {}
    for index, node in enumerate(run.nodes):
        if not _NODE.fullmatch(node.name) or len(node.name) > _LONGEST_NODE:
            raise RefusedError(
                f"nodes[{index}].name: {node.name!r}: invalid name of a namespace; expected letters, digits, '_', '.' "
                f"and '-', starting with a letter or digit, at most {_LONGEST_NODE} characters"
            )
        kinds[node.name] = node.kind
    segments = _segments(run, kinds)
    addresses = {end: (s, h) for s, segment in enumerate(segments) for h, end in enumerate(segment, start=1)}
    interfaces: dict[End, Interface] = {}
    for link in run.links:
        for here, peer in (link.ends, link.ends[::-1]):
            number = len(interfaces)
            address = addresses.get((here, peer))
            device = _device(machines, here, peer) if machines is not None else None
            mac = f"02:00:0a:09:{address[0]:02x}:{address[1]:02x}" if address else None
            interfaces[here, peer] = Interface(
                node=here,
                peer=peer,
                netns=prefix + here if device is None else None,
                dev=_short(f"{here}.{peer}", f"e{number}") if device is None else device.name,
                ifb=_short(f"ifb.{peer}", f"ifb{number}"),
                mtu=link.mtu,
                address=f"10.9.{address[0]}.{address[1]}" if address else None,
                mac=mac if device is None else device.mac,
            )
    namespaces = {name: prefix + name if machines is None else None for name in kinds}
    return Topology(kinds, namespaces, interfaces, segments)


def _device(machines: Machines, node: str, peer: str) -> Device:
    if node not in machines:
        raise RefusedError(f"node '{node}' is not in the inventory; expected one of: {', '.join(machines)}")
    if peer not in machines[node]:
        known = ", ".join(machines[node]) or "nothing"
        raise RefusedError(f"node '{node}': no interface to '{peer}' in the inventory; expected one of: {known}")
    return machines[node][peer]


def _short(name: str, numbered: str) -> str:
    # The numbered names have no dot, so they are never one of the others.
    return name if len(name) <= LONGEST_NAME else numbered


def _segments(run: Run, kinds: dict[str, str]) -> tuple[tuple[End, ...], ...]:
    """The ends with an address, grouped by what bridges join, in the order of the links."""
    joined = {name: name for name in kinds}

    def root(name: str) -> str:
        while joined[name] != name:
            name = joined[name]
        return name

    # A link that has no bridge at either end is a segment of its own.
    ends: dict[str, list[End]] = {}
    seen: set[frozenset[str]] = set()
    for index, link in enumerate(run.links):
        for end in link.ends:
            if end not in kinds:
                raise RefusedError(f"links[{index}].ends: '{end}': unknown node; expected one of {', '.join(kinds)}")
        if len(set(link.ends)) < 2 or frozenset(link.ends) in seen:
            raise RefusedError(
                f"links[{index}].ends: {link.ends[0]}-{link.ends[1]}; expected one link between two nodes"
            )
        seen.add(frozenset(link.ends))
        bridges = [end for end in link.ends if kinds[end] == "bridge"]
        if len(bridges) == 2:
            one, other = map(root, bridges)
            if one == other:
                raise RefusedError(f"links[{index}].ends: {link.ends[0]}-{link.ends[1]} closes a loop of bridges")
            joined[other] = one
    for index, link in enumerate(run.links):
        bridge = next((end for end in link.ends if kinds[end] == "bridge"), None)
        group = f"link {index}" if bridge is None else root(bridge)
        ends.setdefault(group, []).extend(
            (node, peer) for node, peer in (link.ends, link.ends[::-1]) if kinds[node] != "bridge"
        )
    segments = tuple(tuple(group) for group in ends.values() if group)
    for segment in segments:
        if len({end[0] for end in segment}) < len(segment):
            twice = next(end[0] for end in segment if [e[0] for e in segment].count(end[0]) > 1)
            raise RefusedError(f"links: '{twice}' has two links to the same bridges; expected no loop")
    if len(segments) > _SEGMENTS or any(len(segment) > _HOSTS for segment in segments):
        raise RefusedError(f"links: more than {_SEGMENTS} segments, or more than {_HOSTS} hosts on one")
    return segments
