"""Congestion signals: marks, drops, retransmissions, and how much of a flow was marked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bakeoff.measure.bottleneck import leaves, path
from bakeoff.measure.samples import MeasureError


def marks(counters: Mapping[str, Any], queue: str, flow: str | None = None) -> int:
    """CE marks that a queue set over the whole run, in packets; of one flow if it is named."""
    return int(_queue(counters, queue, flow)["marks"])


def sce_marks(counters: Mapping[str, Any], queue: str, flow: str | None = None) -> int:
    """SCE marks (ECT(0) turned into ECT(1)) that a queue set over the whole run, in packets; of a flow if it is named.

    0 of a queue that sets none. No CE mark is among them. Source: draft-morton-tsvwg-sce.
    """
    return int(_queue(counters, queue, flow).get("sce_marks", 0))


def drops(counters: Mapping[str, Any], queue: str, flow: str | None = None) -> int:
    """Packets that a queue dropped over the whole run, for whatever reason; of one flow if it is named."""
    dropped = _queue(counters, queue, flow)["drops"]
    return int(dropped if flow is not None else sum(dropped.values()))


def retransmissions(counters: Mapping[str, Any], flow: str) -> int:
    """Segments that a flow sent again over the whole run (`tcpi_total_retrans`), in packets."""
    if flow not in counters.get("flows", {}):
        raise MeasureError(f"counters: flows.{flow} is missing")
    counted = counters["flows"][flow]
    if "retransmits" not in counted:
        raise MeasureError(f"counters: flows.{flow}.retransmits is missing")
    return int(counted["retransmits"])


def resent_share(counters: Mapping[str, Any], flow: str) -> float:
    """Segments that a flow sent again over all that it sent in the whole run, from 0 to 1: `tcpi_total_retrans` /
    `tcpi_data_segs_out`."""
    again = retransmissions(counters, flow)
    sent = counters["flows"][flow].get("sent_packets")
    if not sent:
        raise MeasureError(f"flow '{flow}' sent nothing")
    return again / int(sent)


def mark_fraction(
    resolved: Mapping[str, Any], counters: Mapping[str, Any], flow: Mapping[str, Any]
) -> tuple[float, str]:
    """Share of a flow's packets that were CE-marked over the whole run, from 0 to 1, and where the number comes from.

    With AccECN (RFC 9768) it is delivered_ce / delivered. With RFC 3168 feedback `delivered_ce` counts every packet
    that an ACK with ECE covers, so there it is the marks that the queues on the path set, over the packets that the
    flow put through the queue that saw most of them; at most 1, since a queue that marks what comes in has marked some
    that still wait as the run ends.
    """
    name = flow["name"]
    counted = counters.get("flows", {}).get(name)
    if counted is None:
        raise MeasureError(f"counters: flows.{name} is missing")
    if counted.get("ecn") == "accecn":
        if not counted["delivered"]:
            raise MeasureError(f"flow '{name}' delivered nothing")
        return counted["delivered_ce"] / counted["delivered"], "delivered_ce / delivered"
    known = counters.get("queues", {})
    queues = [leaf for node, peer in path(resolved, flow) for leaf in leaves(f"{node}>{peer}", known)]
    seen = [counters["queues"][queue]["flows"].get(name, {"packets": 0, "marks": 0}) for queue in queues]
    packets = max((part["packets"] for part in seen), default=0)
    if not packets:
        raise MeasureError(f"no queue on the path of flow '{name}' counted its packets")
    return min(sum(part["marks"] for part in seen) / packets, 1.0), "marks / packets at the queues"


def _queue(counters: Mapping[str, Any], queue: str, flow: str | None) -> Mapping[str, Any]:
    found: Mapping[str, Any] | None = counters.get("queues", {}).get(queue)
    if found is None:
        raise MeasureError(f"counters: queues.{queue} is missing")
    if flow is None:
        return found
    part: Mapping[str, Any] = found["flows"].get(flow, {"packets": 0, "marks": 0, "drops": 0})
    return part
