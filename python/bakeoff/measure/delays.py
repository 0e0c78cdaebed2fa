"""Delays: of queues, of TCP's round trips, of probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from bakeoff.measure.samples import MeasureError, Samples, Window
from bakeoff.results.summary import Distribution

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array

PARTS: Final[Mapping[str, str]] = {"L": "sojourn_l", "C": "sojourn_c"}
"""The queues within dualpi2, each with the metric of its delay."""


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
    return msgspec.convert({field.removesuffix("_s"): value for field, value in found.items()}, Distribution)


def arrivals(samples: Samples, flow: str, window: Window | None = None) -> tuple[Array, Array]:
    """When each datagram of a UDP flow that came was sent [s], and how long it was on its way [s].

    Where its two ends read different clocks, how much longer than the quickest one of the run (RFC 5481's packet delay
    variation). Raises MeasureError if none came that was sent in the window, if one is given.
    """
    return samples.of("flow", flow, _of_datagrams(samples, flow), window)


def shares_a_clock(samples: Samples, flow: str) -> bool:
    """Whether one-way delays of a UDP flow are known."""
    return _of_datagrams(samples, flow) == "delay"


def _of_datagrams(samples: Samples, flow: str) -> str:
    return "delay_variation" if ("flow", flow, "delay_variation") in samples else "delay"


def lost_share(samples: Samples, kind: Literal["probe", "flow"], name: str, window: Window) -> float:
    """Share of a probe's requests, or a UDP flow's datagrams, sent inside the window that got lost; 0 to 1, no unit.

    A request is lost that was never answered, a datagram that never arrived; what may still be on its way as the run
    ends counts for neither side.
    """
    came, lost = ("rtt", "lost") if kind == "probe" else (_of_datagrams(samples, name), "missing")
    counts = {}
    for metric in (came, lost):
        try:
            counts[metric] = len(samples.of(kind, name, metric, window)[0])
        except MeasureError:
            counts[metric] = 0
    if not sum(counts.values()):
        what = f"requests of probe '{name}'" if kind == "probe" else f"datagrams of flow '{name}'"
        raise MeasureError(f"no {what} between {window[0]:g} s and {window[1]:g} s")
    return counts[lost] / sum(counts.values())


def told_by_tool(samples: Samples, flow: str) -> bool:
    """Whether a tool told jitter and loss of a UDP flow per interval, and nothing of each datagram."""
    return ("flow", flow, "jitter") in samples


def told_jitter(samples: Samples, flow: str, window: Window) -> float:
    """Mean over the window of the jitter that the receiver's tool told at the end of each interval, in seconds."""
    return float(samples.of("flow", flow, "jitter", window)[1].mean())


def told_loss(samples: Samples, flow: str, window: Window) -> float:
    """Share of the datagrams that the tool missed between its first and its last report in the window; 0 to 1, no unit.

    Raises MeasureError if there is no time between them, or no datagram.
    """
    due, lost = (samples.of("flow", flow, metric, window)[1] for metric in ("datagrams", "datagrams_lost"))
    if due[-1] == due[0]:
        raise MeasureError(f"no datagrams of flow '{flow}' between two reports in {window[0]:g} s to {window[1]:g} s")
    return float((lost[-1] - lost[0]) / (due[-1] - due[0]))


def jitter(sent: Array, took: Array) -> float | None:
    """Mean of the interarrival jitter, in seconds; None for fewer than two arrivals.

    `sent`: when each packet left [s]; `took`: how long it was on its way [s], one way or there and back. In order of
    arrival J moves by (|D| - J) / 16, where D is the difference of the two last times on the way; the mean is over the
    values of J after each arrival but the first. An offset between the clocks of the two ends cancels out. Source: RFC
    3550 section 6.4.1.
    """
    estimates = jitter_over_time(sent, took)[1]
    return float(estimates.mean()) if len(estimates) else None


def jitter_over_time(sent: Array, took: Array) -> tuple[Array, Array]:
    """When each packet but the first arrived [s], and the interarrival jitter J [s] as it was then; see `jitter`."""
    import numpy as np

    order = (sent + took).argsort(kind="stable")
    estimate, found = 0.0, []
    for before, after in pairwise(took[order].tolist()):
        estimate += (abs(after - before) - estimate) / 16
        found.append(estimate)
    return (sent + took)[order][1:], np.array(found)
