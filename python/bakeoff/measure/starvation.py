"""How much of the time a flow got next to nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from bakeoff.measure.samples import MeasureError, Window

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array

BELOW: Final = 0.1


def starvation(
    flow: tuple[Array, Array],
    others: Sequence[tuple[Array, Array]],
    window: Window,
    below: float = BELOW,
) -> float:
    """Share of the time, 0 to 1, in which the flow's smoothed rate is less than `below` of its fair share; no unit.

    The fair share at a time is what all flows together get then, over the number of flows that are there: a flow is
    there between its first and its last sample. `flow` and `others` are smoothed rates (`smoothed`). It is the share of
    the flow's samples inside the closed window. Source: none; l4s-tests and sce-l4s-bakeoff call "starved" what the eye
    sees so, and a tenth is the usual bound. Raises MeasureError if the flow has no sample in the window.
    """
    import numpy as np

    inside = (flow[0] >= window[0]) & (flow[0] <= window[1])
    times, own = flow[0][inside], flow[1][inside]
    if not len(times):
        raise MeasureError(f"no samples of the flow's rate between {window[0]:g} s and {window[1]:g} s")
    total, there = own.copy(), np.ones(len(times))
    for time, rate in others:
        present = (times >= time[0]) & (times <= time[-1])
        total += np.where(present, np.interp(times, time, rate), 0.0)
        there += present
    return float((own < below * total / there).mean())
