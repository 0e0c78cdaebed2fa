"""Samples as rows, and counters of intervals, as iperf3, netperf and Flent write them.

The first sample of such a counter is that of the first interval's end. Rates and shares are differences of two
samples, so that the first interval counts only if the counter has a 0 at its begin.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from bakeoff.results.series import parts

if TYPE_CHECKING:
    import polars as pl

Row = tuple[float, str, str, str, float]
"""time, kind, name, metric, value."""

COUNTERS: Final = frozenset({"received", "retrans", "delivered", "delivered_ce", "datagrams", "datagrams_lost"})
"""Metrics of flows that count from the flow's start."""


def frame(rows: Iterable[Row]) -> pl.DataFrame:
    """The samples as a frame, each series in order of time."""
    return ordered(_table(rows))


def ordered(series: pl.DataFrame) -> pl.DataFrame:
    """The frame with one series after the other, each in order of time."""
    return series.sort(["kind", "name", "metric", "time"], maintain_order=True)


def counted(
    series: pl.DataFrame, starts: Mapping[str, float], window_s: Sequence[float], *, from_zero: bool = True
) -> pl.DataFrame:
    """`series` with the samples of counters that measures need at the start of a flow and at the ends of the window.

    Each counter has a 0 at the start of its flow, by the flow's name in `starts`, unless it has a sample by then or
    `from_zero` is false. `received` has a value at either end of the window, linear between samples. Flows that are
    not in `starts` stay as they are.
    """
    import numpy as np
    import polars as pl

    more: list[Row] = []
    for (kind, name, metric), (times, values) in parts(series).items():
        if kind != "flow" or metric not in COUNTERS or name not in starts:
            continue
        zero = from_zero and times[0] > starts[name]
        time, value = (np.insert(times, 0, starts[name]), np.insert(values, 0, 0.0)) if zero else (times, values)
        edges = [edge for edge in window_s if time[0] < edge < time[-1] and edge not in time]
        found = [(starts[name], 0.0)] if zero else []
        found += [(edge, float(np.interp(edge, time, value))) for edge in edges if metric == "received"]
        more += [(when, kind, name, metric, count) for when, count in found]
    return ordered(pl.concat([_table(more), series])) if more else series


def lengths(ends: Sequence[tuple[float, float | None]], step_s: float) -> Iterator[float]:
    """The length of each interval, of intervals with an end and perhaps a length, in order of time.

    Without a length an interval begins at the end before. The first one is then as long as the second, or `step_s`
    if it is alone, and begins at 0 at the earliest.
    """
    first = ends[1][0] - ends[0][0] if len(ends) > 1 else step_s
    before = None
    for end, length in ends:
        since = min(first, max(end, 0.0)) if before is None else end - before
        yield max(since if length is None else length, 0.0)
        before = end


def _table(rows: Iterable[Row]) -> pl.DataFrame:
    import polars as pl

    schema = {"time": pl.Float64, "kind": pl.String, "name": pl.String, "metric": pl.String, "value": pl.Float64}
    return pl.DataFrame(list(rows), schema=schema, orient="row")
