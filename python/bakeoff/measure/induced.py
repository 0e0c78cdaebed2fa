"""Induced latency: what traffic adds to the round trip of an idle path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff.measure.samples import MeasureError

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array


def cdf(rtt: Array, base_s: float) -> tuple[Array, Array]:
    """Induced latencies [s] in order, and the share of samples that are at most as large, up to 1.

    Induced latency is RTT - base, where base is the round trip with empty queues (`base_rtt`). Raises MeasureError if
    there is no sample.
    """
    import numpy as np

    if not len(rtt):
        raise MeasureError("no round-trip times")
    return np.sort(rtt - base_s), np.arange(1, len(rtt) + 1) / len(rtt)


def reversed_cdf(rtt: Array, base_s: float) -> tuple[Array, Array]:
    """Induced latencies [s] in order, and the share of samples that are larger: 1 - `cdf`, which shows the tail."""
    latency, share = cdf(rtt, base_s)
    return latency, 1 - share


def share_above(rtt: Array, base_s: float, limit_s: float) -> float:
    """Share of samples, 0 to 1, whose induced latency is above the limit: the reversed CDF at one place; no unit."""
    if not len(rtt):
        raise MeasureError("no round-trip times")
    return float((rtt - base_s > limit_s).mean())
