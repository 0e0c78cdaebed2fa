"""A flow's rate as time passes, smoothed: what convergence, starvation and oscillation are read from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bakeoff.measure.samples import MeasureError

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array

SMOOTH_S: Final = 1.0
"""Seconds over which a rate is averaged where nothing else is said."""


def smoothed(time: Array, received: Array, start_s: float, smooth_s: float = SMOOTH_S) -> tuple[Array, Array]:
    """Times [s] of the samples, and the mean payload rate [bit/s] over `smooth_s` seconds around each.

    8 (r(b) - r(a)) / (b - a) with a = t - smooth/2 and b = t + smooth/2, where r is the cumulative `received` [byte],
    taken as linear between samples and as 0 at the flow's start. a and b are cut off at the flow's start and at its
    last sample. Both lie around t, so that smoothing does not make anything later. Raises MeasureError for fewer than
    two samples, or for no time to average over.
    """
    import numpy as np

    after = time > start_s
    times, counts = time[after], received[after]
    if len(times) < 2 or smooth_s <= 0:
        raise MeasureError(f"fewer than two 'received' samples after {start_s:g} s to smooth over {smooth_s:g} s")
    known, total = np.concatenate([[start_s], times]), np.concatenate([[0.0], counts])
    low = np.maximum(times - smooth_s / 2, start_s)
    high = np.minimum(times + smooth_s / 2, times[-1])
    got = np.interp(high, known, total) - np.interp(low, known, total)
    return times, 8 * got / (high - low)
