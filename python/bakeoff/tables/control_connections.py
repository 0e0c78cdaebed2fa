"""The control connections of tools in a recording: they are no transfers, and no share is counted for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bakeoff.results import Result

_MOST_BYTES: Final = 65536.0
_MOST_SHARE: Final = 0.01
"""A connection of a capture that carries less, and less than this share of the largest, is a tool's own."""


def control_connections(result: Result) -> Sequence[tuple[str, float]]:
    """TCP flows of a capture that carry next to nothing beside others, and their payload in bytes.

    iperf3 and netperf have a connection for their own messages: it is neither a transfer nor starved.
    """
    if result.record.engine != "capture":
        return []
    carried = {
        flow.name: float(result.counters.flow(flow.name).received_bytes or 0)
        for flow in result.run.flows
        if flow.transport == "tcp"
    }
    most = max(carried.values(), default=0.0)
    return [(name, size) for name, size in carried.items() if size < min(_MOST_BYTES, _MOST_SHARE * most)]
