"""How much memory a run's TCP can take on real Linux: what its sockets may hold, in queues and on the way.

Linux bounds the memory of all TCP sockets together (`net.ipv4.tcp_mem`, by default a sixteenth of the machine's). From
its first number on no send buffer and no receive window grows any more, from the second on they shrink, from the third
on packets are dropped. Nothing of it is an experiment's, and the first leaves no trace in any counter: so it has to lie
where no socket can come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bakeoff import tc
from bakeoff.engines.lab.nodes import BUFFERS

if TYPE_CHECKING:
    from bakeoff.scenario import Run
    from bakeoff.scenario.run import Flow, Node

PAGE: Final = 4096
# A packet of 1448 bytes of payload occupies 2304: a buffer of 2 KiB and its descriptor (`truesize`).
_OVERHEAD: Final = 1.6
# What lies in the network is held as well by its sender, whose buffer is twice the window, and the window after the
# last round of slow start twice what fits; and by a receiver that waits for what was lost, in twice as much.
_COPIES: Final = 6
# Per flow, however short the way: what is written before the first ACK, the receiver's first window.
_LEAST: Final = 1 << 20
# Of a qdisc that does not say it: the largest default there is, that of fq_codel.
_LIMIT_PACKETS: Final = 10_240


def buffers(run: Run) -> int:
    """Bytes that the buffers of all TCP sockets of a run may grow to together, as the kernel counts them."""
    nodes = {node.name: node for node in run.nodes}
    return sum(_socket_buffers(flow, nodes) for flow in run.flows if flow.transport == "tcp")


def held(run: Run) -> int:
    """Bytes that all TCP sockets of a run will hold at once at most: what their buffers may grow to, or what the
    network can keep of theirs, if that is less.
    """
    network = _in_network(run)
    most = buffers(run)
    if network is None:
        return most
    flows = sum(flow.transport == "tcp" for flow in run.flows)
    return min(most, round(network * _OVERHEAD * _COPIES) + _LEAST * flows)


def _socket_buffers(flow: Flow, nodes: dict[str, Node]) -> int:
    largest = _largest(nodes[flow.from_], "net.ipv4.tcp_wmem") + _largest(nodes[flow.to], "net.ipv4.tcp_rmem")
    if flow.source.kind == "short":
        # Of as many connections as there are objects, each holds its object twice at most.
        return round(sum(min(2 * _OVERHEAD * size, largest) + _LEAST for _, size in flow.source.objects))
    return largest


def _largest(node: Node, key: str) -> int:
    """The third number of tcp_rmem or tcp_wmem."""
    words = node.sysctls.get(key, BUFFERS[key]).split()
    return int(words[-1]) if words and words[-1].isdigit() else 0


def _in_network(run: Run) -> int | None:
    """Bytes on all wires and in all queues when they are full; None where nothing has a rate."""
    qdiscs, classes = _words(run)
    rates = [
        tc.rate(word)
        for text in (*qdiscs, *classes)
        for key in ("rate", "ceil", "bandwidth")
        if (word := tc.value(text, key)) is not None and word != "unlimited"
    ]
    rates += [link.rate_bps for link in run.links if link.rate_bps]
    if not rates:
        return None
    delays = [2 * link.delay_s for link in run.links]
    delays += [tc.time(word, bare="ns") for text in qdiscs if (word := tc.value(text, "delay")) is not None]
    packet = max((link.mtu for link in run.links), default=1500) + 14
    return round(max(rates) / 8 * sum(delays)) + sum(_limit(text, packet) for text in qdiscs)


def _words(run: Run) -> tuple[list[str], list[str]]:
    """The words of every qdisc and of every class that stands in the run or comes to stand there."""
    qdiscs: list[str] = []
    classes: list[str] = []
    trees = [(tree, end.tx_queue_len) for end in run.interfaces for tree in (end.egress, end.ingress)]
    for change in run.changes:
        action = change.action
        if action.kind == "class-change":
            classes.append(action.class_)
        elif action.kind == "qdisc-change":
            qdiscs.append(action.qdisc)
        elif action.kind == "qdisc-replace":
            trees.append((action.qdisc, 0))
    while trees:
        tree, tx_queue_len = trees.pop()
        if tree is None:
            continue
        if not tree.classes:
            qdiscs.append(tree.qdisc)
        classes += [cls.class_ for cls in tree.classes]
        # What htb makes by itself.
        qdiscs += [f"pfifo limit {tx_queue_len}" for cls in tree.classes if cls.child is None]
        trees += [(child, tx_queue_len) for child in (tree.child, *(cls.child for cls in tree.classes))]
    return qdiscs, classes


def _limit(words: str, packet: int) -> int:
    """Bytes of a queue that is full. What a delay keeps back is counted by rate and time instead."""
    if tc.value(words, "delay") is not None:
        return 0
    limit = tc.value(words, "limit") or tc.value(words, "memlimit")
    if limit is None:
        return _LIMIT_PACKETS * packet
    kind = tc.kinds().get(tc.kernel_kind(words))
    return round(tc.size(limit)) * (1 if kind is not None and kind.limit_in_bytes else packet)
