"""The objects of short flows: drawn once, by the expansion, so that every engine and every variant has the same."""

from __future__ import annotations

import hashlib
from math import exp, log, log1p
from statistics import NormalDist
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bakeoff.scenario.language import ShortSource

_Z95: Final = NormalDist().inv_cdf(0.95)


def objects(seed: int, name: str, source: ShortSource) -> list[tuple[float, int]]:
    """(seconds after the flow's start, payload bytes) of each object, from (seed, flow name) and nothing else.

    Gaps are exponential with the given mean, the first one too: a Poisson process. Sizes are lognormal with mu the mean
    of the logarithms of P5 and P95 and sigma half their difference over 1.645, in whole bytes, at least 1 (ccafct;
    antler's `fct`). Object n has draws of its own, so a larger count adds objects and changes none.
    """
    low, high = log(source.size_p5), log(source.size_p95)
    mu, sigma = (low + high) / 2, (high - low) / 2 / _Z95
    found: list[tuple[float, int]] = []
    ns = 0
    for number in range(source.count):
        gap, size = _uniforms(seed, name, number)
        ns += max(1, round(-log1p(-gap) * source.mean_gap * 1e9))
        found.append((ns / 1e9, max(1, round(exp(mu + sigma * NormalDist().inv_cdf(size))))))
    return found


def _uniforms(seed: int, name: str, number: int) -> tuple[float, float]:
    """Two draws inside (0, 1)."""
    digest = hashlib.sha256(f"{seed}/{name}/object/{number}".encode()).digest()
    first, second = (int.from_bytes(digest[at : at + 8], "big") >> 11 for at in (0, 8))
    return (first + 0.5) / 2**53, (second + 0.5) / 2**53
