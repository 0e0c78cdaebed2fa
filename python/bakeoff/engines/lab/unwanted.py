"""What Linux counts and no experiment should have: each of these makes numbers wrong that look like any others.

After a run every node's counters are read; one of these tables that moved fails the run, but for those of `NOTED`,
which are noted beside its numbers. `docs/lab.md` has the tables for people, and the counters that were left out with
the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from bakeoff.engines.lab import tc_show
from bakeoff.engines.lab.plan import Command
from bakeoff.errors import RunError
from bakeoff.results import layout

if TYPE_CHECKING:
    from bakeoff.engines.lab.plan import Plan
    from bakeoff.engines.lab.topology import Topology
    from bakeoff.scenario import Run

NETSTAT: Final = ("cat", "/proc/net/netstat", "/proc/net/snmp")
SOFTNET: Final = ("cat", "/proc/net/softnet_stat")
LINKS: Final = ("ip", "-s", "link", "show")
MEMORY: Final = ("cat", "/proc/vmstat")
NEIGHBOURS: Final = ("cat", "/proc/net/stat/arp_cache")

# Of a node, by the file's own line and name.
COUNTERS: Final = {
    "TcpExt TCPMemoryPressures": "TCP came to the limit of its memory (net.ipv4.tcp_mem): windows and buffers shrink",
    "TcpExt TCPAbortOnMemory": "a connection was ended for want of memory",
    "TcpExt TCPRcvQDrop": "a receiver had no room for the next packet in order and dropped it",
    "TcpExt TCPOFODrop": "a receiver had no room for a packet out of order and dropped it",
    "TcpExt PruneCalled": "a receiver's full buffer was collapsed",
    "TcpExt RcvPruned": "a receiver dropped SACKed data because its buffer was full",
    "TcpExt OfoPruned": "a receiver threw away packets out of order that it had acknowledged selectively",
    "TcpExt TCPBacklogDrop": "packets came faster than a socket's program let them in, and were dropped",
    "TcpExt PFMemallocDrop": "a packet was dropped because it used emergency memory",
    "TcpExt TCPWqueueTooBig": "a sender could not cut a packet to be sent again: its buffer was full",
    "TcpExt TCPZeroWindowDrop": "data came to a receiver whose window was closed",
    "TcpExt ListenOverflows": "a connection was refused: more waited to be accepted than the listener allows",
    "TcpExt ListenDrops": "a SYN or the ACK that ends a handshake was dropped by the listener",
    "TcpExt TCPReqQFullDrop": "a SYN was dropped: too many handshakes were under way",
    "TcpExt TCPReqQFullDoCookies": "a handshake fell back to SYN cookies: its options are lost",
    "TcpExt TCPTimeWaitOverflow": "an ended connection found no place among those in TIME-WAIT",
    "TcpExt IPReversePathFilter": "a packet was dropped by reverse-path filtering",
    "TcpExt LockDroppedIcmps": "an ICMP message for a busy socket was dropped",
    "Ip InDiscards": "IP dropped packets that were in order for want of memory",
    "Ip InAddrErrors": "a packet came to a host that it was not for and that does not forward",
    "Ip InHdrErrors": "a packet had a wrong header, or had lived for too many hops",
    "Ip OutNoRoutes": "there was no route for a packet",
    "IpExt InNoRoutes": "there was no route for a packet that was to be forwarded",
    "IpExt InTruncatedPkts": "a truncated packet",
    "Udp RcvbufErrors": "datagrams came faster than their receiver took them, and were dropped",
    "Udp MemErrors": "UDP came to the limit of its memory (net.ipv4.udp_mem)",
}
# Nothing was lost, but the window that the receiver advertised may have been what held the sender back.
NOTED: Final = ("TcpExt PruneCalled",)
# While a link is down, what has no route or no way out, is what the experiment asked for.
_OF_A_LINK_THAT_IS_DOWN: Final = (
    "Ip OutNoRoutes", "IpExt InNoRoutes", "RX dropped", "TX dropped", "TX errors", "TX carrier",
)  # fmt: skip
# How many are told in the message.
_TOLD: Final = 4
# Of a kernel.
_SOFTNET: Final = {
    "softnet dropped": "the kernel's input queue was full (net.core.netdev_max_backlog) and dropped packets"
}
_NEIGHBOURS: Final = {
    "unresolved_discards": "a packet was dropped because neighbour resolution failed",
    "table_fulls": "the table of neighbours was full",
}
_MEMORY: Final = {
    "pgscan_kswapd": "memory ran low: the kernel looked for pages to take back",
    "pgscan_direct": "memory ran out: a program had to wait for pages",
    "oom_kill": "memory ran out: the kernel ended a program",
}
# Of a device of the lab. On a machine's card other people's frames count as dropped too.
_DEVICE: Final = {
    "RX errors": "frames came in damaged",
    "RX dropped": "packets were dropped at ingress, where the run has no queue",
    "RX missed": "frames found no room in the card",
    "TX errors": "frames could not be sent",
    "TX dropped": "packets were dropped where they went out, by no queue of the run",
    "TX carrier": "frames were lost for want of a carrier",
}
_OF_A_CARD: Final = ("RX errors", "RX missed", "TX errors", "TX carrier")
# What a tunnel's device counts is the tunnel's affair: its replay check drops.
_DEVICE_LINE: Final = re.compile(r"\d+: ([^:@\s]+)(?:@\S+)?: <")
_TUNNEL: Final = re.compile(r"tun\d+")


def before(run: Run, net: Topology) -> list[Command]:
    """The commands that read the counters ahead of the run: on machines, which did other things before."""
    return [command for command in after(run, net) if command.netns is None]


def after(run: Run, net: Topology, *, own_kernel: bool = False) -> list[Command]:
    """The commands that read the counters behind the run; with `own_kernel` those of the kernel as a whole too."""
    commands = []
    for node in run.nodes:
        netns = net.namespaces[node.name]
        commands.append(Command(node.name, LINKS, netns))
        if node.kind != "bridge":
            commands.append(Command(node.name, NETSTAT, netns))
        if netns is None:
            commands.append(Command(node.name, SOFTNET))
    if own_kernel:
        commands += [Command(run.nodes[0].name, argv) for argv in (SOFTNET, NEIGHBOURS, MEMORY)]
    return commands


def check(run: Run, plan: Plan, setup_log: str, teardown_log: str) -> list[str]:
    """A note for each counter of `NOTED` that moved.

    RunError names the node, the counter and what it means, if one moved that no experiment should move.
    """
    moved = list(_moved(run, plan, tc_show.sections(setup_log), tc_show.sections(teardown_log)))
    found = [text for name, text in moved if name not in NOTED]
    if found:
        more = f"; and {len(found) - _TOLD} more in {layout.TEARDOWN_LOG}" if len(found) > _TOLD else ""
        raise RunError("unexpected kernel counters: " + "; ".join(found[:_TOLD]) + more)
    return [text for _, text in moved]


def _moved(run: Run, plan: Plan, earlier: dict[str, str], later: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Name of a counter that moved, and what is to be told of it."""
    went_down = any(change.action.kind == "link" and change.action.up is False for change in run.changes)
    for command in dict.fromkeys(plan.statistics):
        if command.argv not in READ:
            continue
        read, meanings = READ[command.argv]
        left_out = set(_OF_A_LINK_THAT_IS_DOWN) if went_down else set()
        if command.argv == LINKS and command.netns is None:
            left_out |= set(_DEVICE) - set(_OF_A_CARD)
        try:
            old, new = read(earlier.get(command.line(), "")), read(later.get(command.line(), ""))
        except ValueError as error:
            # A machine, or a kernel of somebody else, prints what it likes.
            raise RunError(f"{command.line()}: printed no counters: {error}") from None
        for key, count in new.items():
            name = key.rpartition(": ")[2]
            if name in meanings and name not in left_out and count > old.get(key, 0):
                yield name, f"{command.node}: {key} {count - old.get(key, 0)}: {meanings[name]}"


def _netstat(text: str) -> dict[str, int]:
    """`TcpExt TCPRcvQDrop` -> its count, from lines of names followed by lines of numbers.

    Of `COUNTERS` alone: other numbers there are no counts, such as the -1 of `Tcp MaxConn`.
    """
    found: dict[str, int] = {}
    names: dict[str, list[str]] = {}
    for line in text.splitlines():
        part, _, rest = line.partition(": ")
        if part in names:
            if len(names[part]) != len(rest.split()):
                raise ValueError(f"'{part}' has {len(names[part])} names and {len(rest.split())} numbers")
            found |= {
                f"{part} {name}": tc_show.count(value)
                for name, value in zip(names.pop(part), rest.split(), strict=True)
                if f"{part} {name}" in COUNTERS
            }
        else:
            names[part] = rest.split()
    return found


def _links(text: str) -> dict[str, int]:
    """`mid.srv: RX dropped` -> its count, from `ip -s link show`."""
    found: dict[str, int] = {}
    device = ""
    titles: list[str] = []
    for line in text.splitlines():
        words = line.split()
        if begins := _DEVICE_LINE.match(line):
            device = begins[1]
        elif words and words[0] in ("RX:", "TX:"):
            titles = [f"{words[0][:2]} {word}" for word in words[1:]]
        elif titles:
            if not _TUNNEL.fullmatch(device):
                found |= {f"{device}: {title}": tc_show.count(word) for title, word in zip(titles, words, strict=False)}
            titles = []
    return found


def _softnet(text: str) -> dict[str, int]:
    """The second column, in hexadecimal digits, of all processors."""
    rows = [line.split() for line in text.splitlines() if line]
    return {"softnet dropped": sum(tc_show.count("".join(row[1:2]), 16) for row in rows)}


def _vmstat(text: str) -> dict[str, int]:
    """`pgscan_kswapd` -> its count."""
    pairs = (line.split() for line in text.splitlines())
    return {pair[0]: tc_show.count(pair[1]) for pair in pairs if len(pair) == 2}


def _neighbours(text: str) -> dict[str, int]:
    """Name of a column -> the sum of its rows, one per processor, in hexadecimal digits."""
    names, *rows = [line.split() for line in text.splitlines() if line] or [[]]
    return {
        name: sum(tc_show.count("".join(row[index : index + 1]), 16) for row in rows)
        for index, name in enumerate(names)
    }


# Command -> how its output is read, and which of its counters no experiment should have.
READ: Final[dict[tuple[str, ...], tuple[Callable[[str], dict[str, int]], dict[str, str]]]] = {
    NETSTAT: (_netstat, COUNTERS),
    LINKS: (_links, _DEVICE),
    SOFTNET: (_softnet, _SOFTNET),
    MEMORY: (_vmstat, _MEMORY),
    NEIGHBOURS: (_neighbours, _NEIGHBOURS),
}
