"""A queue's delay by Little's law, from its backlog and what left it: it needs nothing that a qdisc tells of delays.

W = L / λ (Little, A Proof for the Queuing Formula L = λW, Operations Research 9, 1961): over a time in which the queue
neither fills nor drains for good, packets wait on average the mean backlog over the rate at which they leave, whatever
the order in which they leave. Both are in bytes here, so that a packet weighs as much as it has bytes.

The backlog is known at the samples, and taken as a straight line between them. What a queue drops from its head counts
in the backlog while it waits and never among what leaves: the delay is too high by about the share of such packets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff.measure.delays import distribution
from bakeoff.measure.samples import MeasureError, Samples, Window

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array
    from bakeoff.results.summary import Distribution


def little_over_time(samples: Samples, queue: str, window: Window | None = None) -> tuple[Array, Array]:
    """The end [s] of each interval between two samples in which something left, and the delay there [s].

    ((b0 + b1) / 2) (t1 - t0) / (s1 - s0), where b is the backlog [byte] and s what left until then [byte]. Raises
    MeasureError if the queue was not sampled, or if nothing left.
    """
    return _delays(queue, *_intervals(samples, queue, window))


def little(samples: Samples, queue: str, window: Window) -> Distribution:
    """The delay of a queue in the window [s], by Little's law.

    `mean` is that of all bytes which left: the integral of the backlog over what left between the first and the last
    sample in the window. `p50`, `p99` and `max` are those of the means over each interval (see `little_over_time`),
    and `n` is the number of these. Raises MeasureError if the queue was not sampled, or if nothing left.
    """
    from msgspec.structs import replace

    times, standing, left = _intervals(samples, queue, window)
    spread = distribution(_delays(queue, times, standing, left)[1])
    return replace(spread, mean=float(standing.sum() / left.sum()))


def delay_over_time(samples: Samples, queue: str, window: Window | None = None) -> tuple[Array, Array]:
    """Times [s] and a queue's delays [s]: those that were told, or else those by Little's law.

    Raises MeasureError if there are neither.
    """
    if ("queue", queue, "sojourn") in samples:
        return samples.of("queue", queue, "sojourn", window)
    return little_over_time(samples, queue, window)


def _delays(queue: str, times: Array, standing: Array, left: Array) -> tuple[Array, Array]:
    passed = left > 0
    if not passed.any():
        raise MeasureError(f"nothing left queue '{queue}'")
    return times[passed], standing[passed] / left[passed]


def _intervals(samples: Samples, queue: str, window: Window | None) -> tuple[Array, Array, Array]:
    """Of each interval its end [s], the integral of the backlog [byte s], and what left [byte].

    An interval in which the counter began again, as that of a replaced qdisc does, is left out.
    """
    import numpy as np

    time, backlog = samples.of("queue", queue, "backlog", window)
    sent_at, sent = samples.of("queue", queue, "sent", window)
    if not np.array_equal(time, sent_at):
        time, of_backlog, of_sent = np.intersect1d(time, sent_at, assume_unique=True, return_indices=True)
        backlog, sent = backlog[of_backlog], sent[of_sent]
    lasted, left = time[1:] - time[:-1], sent[1:] - sent[:-1]
    between = (backlog[1:] + backlog[:-1]) / 2
    known = left >= 0
    return time[1:][known], (between * lasted)[known], left[known]
