"""The datagrams of a UDP flow by intervals: from what an engine tells of each, or what a tool told of all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bakeoff.errors import MeasureError
from bakeoff.measure.delays import arrivals, jitter_over_time, told_by_tool
from bakeoff.measure.samples import Samples

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array

IntervalCounts = tuple[int, int, float | None]
"""Datagrams that were sent in an interval, how many of them were lost, and the jitter [s] at its end."""


def lost(samples: Samples, flow: str) -> int | None:
    """Datagrams lost in the whole run; None if nothing tells of losses."""
    if ("flow", flow, "datagrams_lost") in samples:
        return round(float(samples.of("flow", flow, "datagrams_lost")[1][-1]))
    return len(samples.of("flow", flow, "missing")[0]) if ("flow", flow, "missing") in samples else None


def of_intervals(samples: Samples, flow: str, ends_s: Sequence[float]) -> list[IntervalCounts] | None:
    """What is told of the intervals that end at these times, of which the first begins with the flow.

    None if it is not told of each.
    """
    if told_by_tool(samples, flow):
        return _by_tool(samples, flow, ends_s)
    try:
        sent, took = arrivals(samples, flow)
    except MeasureError:
        return None
    if not ends_s:
        return []
    gone = samples.of("flow", flow, "missing")[0] if ("flow", flow, "missing") in samples else sent[:0]
    came, missed = _between(sent, ends_s), _between(gone, ends_s)
    time, estimate = jitter_over_time(sent, took)
    at = time.searchsorted(ends_s, "right").tolist()
    found = [float(estimate[number - 1]) if number else None for number in at]
    return [(one + two, two, jitter) for one, two, jitter in zip(came, missed, found, strict=True)]


def _between(times: Array, ends_s: Sequence[float]) -> list[int]:
    """How many of the times, in order, lie after the end before and not after this one; the last one has the rest."""
    import numpy as np

    return np.diff(times.searchsorted([*ends_s[:-1], np.inf], "right"), prepend=0).tolist()  # type: ignore[no-any-return]


def _by_tool(samples: Samples, flow: str, ends_s: Sequence[float]) -> list[IntervalCounts] | None:
    counts = []
    for metric in ("datagrams", "datagrams_lost", "jitter"):
        try:
            times, values = samples.of("flow", flow, metric)
        except MeasureError:
            return None
        known = dict(zip((round(time, 6) for time in times.tolist()), values.tolist(), strict=True))
        if any(round(end, 6) not in known for end in ends_s):
            return None
        counts.append([known[round(end, 6)] for end in ends_s])
    due, missed, jitter = counts
    steps = ([0.0, *values[:-1]] for values in (due, missed))
    packets, gone = (
        [round(now - before) for now, before in zip(of, step, strict=True)]
        for of, step in zip((due, missed), steps, strict=True)
    )
    return list(zip(packets, gone, jitter, strict=True))
