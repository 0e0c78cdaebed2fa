"""What the summary tells of how rates and delays go on in time: sharing, starving, swinging, spikes and recovery.

The formulas stand in `convergence`, `starvation`, `oscillation`, `spike` and `recovery`, each with parameters that
claims may set; here they have their defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import isinf
from typing import TYPE_CHECKING, Any, Final

from bakeoff.measure.convergence import convergence, meeting
from bakeoff.measure.oscillation import oscillations
from bakeoff.measure.samples import MeasureError, Samples, Window
from bakeoff.measure.smoothed import smoothed
from bakeoff.measure.spike import spike
from bakeoff.measure.starvation import starvation
from bakeoff.results.summary import Pair, Spike

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array

_MOST: Final = 64
"""Of more long flows the summary does not tell who starves: each is held against all others."""


def long_flows(resolved: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The long flows of TCP, which take what they can get."""
    return [flow for flow in resolved["flows"] if flow["transport"] == "tcp" and flow["source"]["kind"] == "bulk"]


class Rates:
    """The smoothed rates of a run's long flows, each computed once: (times [s], rates [bit/s]) by the flow's name."""

    def __init__(self, resolved: Mapping[str, Any], samples: Samples) -> None:
        self._flows = long_flows(resolved)
        self._of: dict[str, tuple[Array, Array]] = {}
        for flow in self._flows:
            try:
                received = samples.of("flow", flow["name"], "received")
                self._of[flow["name"]] = smoothed(*received, float(flow["start_s"]))
            except MeasureError:
                continue  # a flow that starts as the run ends

    def starvation(self, name: str, window: Window) -> float | None:
        """`starvation` of a flow beside others; None if it is alone, if there are very many, or without samples."""
        if name not in self._of or not 2 <= len(self._of) <= _MOST:
            return None
        others = [rate for other, rate in self._of.items() if other != name]
        return _known(lambda: starvation(self._of[name], others, window))

    def oscillations(self, name: str, window: Window) -> float | None:
        """`oscillations` of a flow; None without samples."""
        return _known(lambda: oscillations(*self._of[name], window)) if name in self._of else None

    def pair(self) -> Pair | None:
        """How two long flows come to share; None of fewer, more, or of two that are never there together."""
        if len(self._flows) != 2 or len(self._of) != 2:
            return None
        first, later = sorted(self._flows, key=lambda flow: float(flow["start_s"]))
        one, two, start = self._of[first["name"]], self._of[later["name"]], float(later["start_s"])
        try:
            converged, met = convergence(one, two, start), meeting(one, two, start)
        except MeasureError:
            return None
        return Pair(
            flows=(first["name"], later["name"]),
            convergence_s=None if isinf(converged) else converged,
            meet_s=None if isinf(met) else met,
        )


def spike_of(time: Array, delay: Array, base_s: float) -> Spike:
    """`spike` as a record."""
    return Spike(**spike(time, delay, base_s)._asdict())


def _known(measure: Callable[[], float]) -> float | None:
    try:
        return measure()
    except MeasureError:
        return None
