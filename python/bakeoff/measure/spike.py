"""The largest excursion of a delay: how high it goes, and how long it lasts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from bakeoff.measure.samples import MeasureError

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array

OVER_S: Final = 0.01


class Spike(NamedTuple):
    """The highest excursion; all 0 if the delay never leaves the base."""

    height_s: float
    """Of its highest sample above the base."""
    duration_s: float
    begin_s: float


def spike(time: Array, delay: Array, base_s: float, over_s: float = OVER_S) -> Spike:
    """The highest of the stretches of samples in which delay > base + over without a break; seconds.

    Height: max(delay) - base inside of it. Duration: from its first sample to the first one behind it, or to the last
    sample of all. `time` [s] is in order; of two equally high ones the first counts. Source: the plots of
    sce-l4s-bakeoff, whose "spike of about 50 ms for about 5 s" is read so. Raises MeasureError if there is no sample.
    """
    import numpy as np

    if not len(time):
        raise MeasureError("no samples of a delay")
    highest = int(delay.argmax())
    if not delay[highest] > base_s + over_s:
        return Spike(0.0, 0.0, 0.0)
    below = np.flatnonzero(delay <= base_s + over_s)
    before, behind = below[below < highest], below[below > highest]
    first = int(before[-1]) + 1 if len(before) else 0
    end = int(behind[0]) if len(behind) else len(time) - 1
    return Spike(float(delay[highest]) - base_s, float(time[end] - time[first]), float(time[first]))
