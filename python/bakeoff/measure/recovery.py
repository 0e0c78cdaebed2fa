"""How long a delay takes to settle after a step."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final

from bakeoff.measure.samples import MeasureError

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array

WITHIN_S: Final = 0.01


def recovery(time: Array, delay: Array, after_s: float, base_s: float, within_s: float = WITHIN_S) -> float:
    """Seconds from the step at `after_s` until the delay is at most base + within, and stays so to the last sample.

    0 if it never leaves; infinite if the last sample is still above. `time` [s] is in order, `delay` [s] is a flow's
    RTT or a probe's. It is the settling time of control theory, of one side. Raises MeasureError if no sample follows
    the step.
    """
    import numpy as np

    behind = time >= after_s
    times, values = time[behind], delay[behind]
    if not len(times):
        raise MeasureError(f"no samples of a delay after {after_s:g} s")
    above = np.flatnonzero(values > base_s + within_s)
    if not len(above):
        return 0.0
    last = int(above[-1])
    return inf if last + 1 == len(times) else float(times[last + 1]) - after_s
