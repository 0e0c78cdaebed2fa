"""How long two flows take to share a bottleneck."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from bakeoff.measure.samples import MeasureError

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array

RATIO: Final = 1.5
HOLD_S: Final = 5.0


def convergence(
    one: tuple[Array, Array],
    other: tuple[Array, Array],
    start_s: float,
    ratio: float = RATIO,
    hold_s: float = HOLD_S,
) -> float:
    """Seconds from `start_s`, when the later flow starts, until the flows share evenly; infinite if they never do.

    min { t - start : max(x, y) <= ratio * min(x, y) at every sample from t to t + hold }, where x and y are the
    smoothed rates (`smoothed`) as (times [s], rates [bit/s]). The samples have to reach t + hold. Source: none is
    exact; sce-l4s-bakeoff reads the same off its plots by eye, where both rates have met and stay together.
    """
    import numpy as np

    times, x, y = _together(one, other, start_s)
    even = (np.maximum(x, y) <= ratio * np.minimum(x, y)) & (np.minimum(x, y) > 0)
    # Where each stretch of even samples begins that has no uneven one before its end.
    uneven = np.flatnonzero(~even)
    begins = np.concatenate([[0], uneven + 1])
    ends = np.concatenate([uneven - 1, [len(times) - 1]])
    for first, last in zip(begins.tolist(), ends.tolist(), strict=True):
        if first <= last and times[last] - times[first] >= hold_s - 1e-9:
            return max(float(times[first]) - start_s, 0.0)
    return inf


def meeting(one: tuple[Array, Array], other: tuple[Array, Array], start_s: float) -> float:
    """Seconds from `start_s`, when the later flow starts, until the smoothed rates first cross; infinite if never.

    min { t - start : later(t) >= earlier(t) }, with `one` the flow that was there and `other` the later one, as in
    `convergence`. Source: sce-l4s-bakeoff, "until both rates meet".
    """
    times, x, y = _together(one, other, start_s)
    met = (y >= x).nonzero()[0]
    return max(float(times[met[0]]) - start_s, 0.0) if len(met) else inf


def _together(one: tuple[Array, Array], other: tuple[Array, Array], start_s: float) -> tuple[Array, Array, Array]:
    """Both rates at the times of the second one's samples, from `start_s` on and while both last."""
    import numpy as np

    times, y = other
    inside = (times >= max(start_s, float(one[0][0]))) & (times <= float(one[0][-1]))
    if not inside.any():
        raise MeasureError(f"the two flows have no samples in common after {start_s:g} s")
    return times[inside], np.interp(times[inside], *one), y[inside]
