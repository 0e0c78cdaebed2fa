"""Delays: of queues, of TCP's round trips, of probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bakeoff.measure.samples import MeasureError, Samples, Window
from bakeoff.results.summary import Distribution

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array


def quantile(values: Sequence[float], q: float) -> float:
    """The q-quantile, 0 to 1, interpolated linearly between order statistics (Hyndman and Fan's type 7)."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    if at == low or ordered[low] == ordered[high]:
        return ordered[low]
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def distribution(values: Array) -> Distribution:
    """`n`, `mean`, `p50`, `p99` and `max` of samples taken at equal intervals; the unit is that of the samples.

    Every interval weighs the same, so of `sojourn` (a mean per interval) this is the delay as time passes, while
    the histogram in the counters is the delay as packets meet it.
    """
    if not len(values):
        raise MeasureError("no samples")
    ordered = sorted(values.tolist())
    return Distribution(
        n=len(ordered),
        mean=float(values.mean()),
        p50=quantile(ordered, 0.5),
        p99=quantile(ordered, 0.99),
        max=ordered[-1],
    )


def histogram(counters: Mapping[str, Any], kind: str, name: str, key: str) -> Distribution:
    """What an engine measured per event inside the window: `n`, `mean`, `min`, `max`, `p5` to `p999`, in seconds.

    `kind`, `name`, `key`: `queues`, `mid>srv`, `sojourn` (every packet's queue delay), `flows`, …, `rtt` (every
    ACK's RTT sample), `probes`, …, `rtt` (every answer). Raises MeasureError if there was no event.
    """
    found = counters.get(kind, {}).get(name, {}).get(key, {"n": 0})
    if not found["n"]:
        raise MeasureError(f"counters: {kind}.{name}.{key} has no samples")
    return Distribution.model_validate({field.removesuffix("_s"): value for field, value in found.items()})


def probe_loss(samples: Samples, name: str, window: Window) -> float:
    """Share of a probe's requests sent inside the window that were never answered, from 0 to 1; no unit."""
    counts = {}
    for metric in ("rtt", "lost"):
        try:
            counts[metric] = len(samples.of("probe", name, metric, window)[0])
        except MeasureError:
            counts[metric] = 0
    if not sum(counts.values()):
        raise MeasureError(f"no requests of probe '{name}' between {window[0]:g} s and {window[1]:g} s")
    return counts["lost"] / sum(counts.values())
