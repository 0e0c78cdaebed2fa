"""Congestion signals: marks, drops, retransmissions, and how much of a flow was marked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff.errors import MeasureError
from bakeoff.measure.bottleneck import leaves, path
from bakeoff.results.counters import FlowAtQueue

if TYPE_CHECKING:
    from bakeoff.results.counters import Counters, Queue
    from bakeoff.scenario.run import Flow, Run

_NOT_THERE = FlowAtQueue(packets=0, marks=0, drops=0)


def marks(counters: Counters, queue: str, flow: str | None = None) -> int:
    """CE marks that a queue set over the whole run, in packets; of one flow if it is named."""
    return (_queue(counters, queue) if flow is None else _at_queue(counters, queue, flow)).marks


def sce_marks(counters: Counters, queue: str, flow: str | None = None) -> int:
    """SCE marks (ECT(0) turned into ECT(1)) that a queue set over the whole run, in packets; of a flow if it is named.

    0 of a queue that sets none. No CE mark is among them. Source: draft-morton-tsvwg-sce.
    """
    return (_queue(counters, queue) if flow is None else _at_queue(counters, queue, flow)).sce_marks


def drops(counters: Counters, queue: str, flow: str | None = None) -> int:
    """Packets that a queue dropped over the whole run, for whatever reason; of one flow if it is named."""
    if flow is not None:
        return _at_queue(counters, queue, flow).drops
    return sum(_queue(counters, queue).drops.values())


def retransmissions(counters: Counters, flow: str) -> int:
    """Segments that a flow sent again over the whole run (`tcpi_total_retrans`), in packets."""
    if flow not in counters.flows:
        raise MeasureError(f"counters: flows.{flow} is missing")
    again = counters.flows[flow].retransmits
    if again is None:
        raise MeasureError(f"counters: flows.{flow}.retransmits is missing")
    return again


def resent_share(counters: Counters, flow: str) -> float:
    """Segments that a flow sent again over all that it sent in the whole run, from 0 to 1: `tcpi_total_retrans` /
    `tcpi_data_segs_out`."""
    again = retransmissions(counters, flow)
    sent = counters.flows[flow].sent_packets
    if not sent:
        raise MeasureError(f"flow '{flow}' sent nothing")
    return again / sent


def mark_fraction(run: Run, counters: Counters, flow: Flow) -> tuple[float, str]:
    """Share of a flow's packets that were CE-marked over the whole run, from 0 to 1, and where the number comes from.

    With AccECN (RFC 9768) it is delivered_ce / delivered. With RFC 3168 feedback `delivered_ce` counts every packet
    that an ACK with ECE covers, so there it is the marks that the queues on the path set, over the packets that the
    flow put through the queue that saw most of them; at most 1, since a queue that marks what comes in has marked some
    that still wait as the run ends.
    """
    name = flow.name
    counted = counters.flows.get(name)
    if counted is None:
        raise MeasureError(f"counters: flows.{name} is missing")
    if counted.ecn == "accecn":
        if not counted.delivered:
            raise MeasureError(f"flow '{name}' delivered nothing")
        return (counted.delivered_ce or 0) / counted.delivered, "delivered_ce / delivered"
    known = counters.queues
    queues = [leaf for node, peer in path(run, flow) for leaf in leaves(f"{node}>{peer}", known)]
    seen = [_at_queue(counters, queue, name) for queue in queues]
    packets = max((part.packets for part in seen), default=0)
    if not packets:
        raise MeasureError(f"no packet counters of queues on the path of flow '{name}'")
    return min(sum(part.marks for part in seen) / packets, 1.0), "marks / packets at the queues"


def _queue(counters: Counters, name: str) -> Queue:
    found = counters.queues.get(name)
    if found is None:
        raise MeasureError(f"counters: queues.{name} is missing")
    return found


def _at_queue(counters: Counters, queue: str, flow: str) -> FlowAtQueue:
    """A flow's part of a queue's counters. MeasureError for a queue that does not count by flow, as a real one."""
    found = _queue(counters, queue).flows
    if not found and counters.conservation is None:
        raise MeasureError(f"counters: queues.{queue}.flows is missing; only the simulator counts by flow")
    return found.get(flow, _NOT_THERE)
