"""How far two trials of one measurement are apart, from their standard deviation alone."""

from __future__ import annotations

from collections.abc import Iterable
from math import erf
from typing import NamedTuple


class Noise(NamedTuple):
    """Quantiles of |ln(one trial / another)|; no unit."""

    median: float
    p90: float


def noise_of(relative_sds: Iterable[float]) -> Noise | None:
    """Two trials of a measurement that is drawn from these at random; None of none.

    `relative_sds` are standard deviations over means. The logarithm of a trial is taken as normal with this deviation
    s, so that the difference of two is normal with sqrt(2) s, and |ln| is below q with the probability erf(q / (2 s)).
    """
    sds = [*relative_sds]
    return Noise(_quantile(sds, 0.5), _quantile(sds, 0.9)) if sds else None


def _quantile(sds: list[float], share: float) -> float:
    low, high = 0.0, 8 * max(sds)
    for _ in range(60):
        middle = (low + high) / 2
        below = sum(erf(middle / (2 * s)) if s else 1.0 for s in sds) / len(sds)
        low, high = (low, middle) if below >= share else (middle, high)
    return high
