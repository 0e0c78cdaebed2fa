"""How often a flow's rate swings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff.measure.samples import MeasureError, Window

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array


def oscillations(time: Array, rate: Array, window: Window) -> float:
    """Crossings of the rate's own mean, per second.

    n / (t1 - t0), where n counts the samples at which the smoothed rate (`smoothed`) lies on the other side of its mean
    over the window than the sample before, and t0, t1 are the first and the last sample in the closed window. A sine of
    period P has 2 / P. Source: the zero-crossing rate of signal processing. Raises MeasureError for fewer than two
    samples.
    """
    import numpy as np

    inside = (time >= window[0]) & (time <= window[1])
    times, values = time[inside], rate[inside]
    if len(times) < 2:
        raise MeasureError(f"fewer than two samples of a rate between {window[0]:g} s and {window[1]:g} s")
    above = values > values.mean()
    return float(np.count_nonzero(above[1:] != above[:-1]) / (times[-1] - times[0]))
