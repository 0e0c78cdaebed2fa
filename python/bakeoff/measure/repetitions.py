"""Repetitions of one run with several seeds: mean and interval."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf, sqrt
from typing import Any, Self, TypedDict

from bakeoff.errors import MeasureError
from bakeoff.results.summary import Summary

# 97.5 % quantile of Student's t with 1, 2, … 30 degrees of freedom, then with as many as stated.
_T = (
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281,
    2.2010, 2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860,
    2.0796, 2.0739, 2.0687, 2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
)  # fmt: skip
_T_ABOVE = ((120, 1.9799), (60, 2.0003), (40, 2.0211), (30, 2.0423))

_NOT_MEASURED = ("format", "seed", "window_s", "rate_bps", "start_s")


class Interval(TypedDict):
    """A mean of `n` values and the half width of its 95 % confidence interval (None if n is 1)."""

    n: int
    mean: float
    ci95: float | None


def interval(values: Sequence[float]) -> Interval:
    """Mean and t s / sqrt(n), where s is the standard deviation with n - 1 and t Student's 97.5 % quantile.

    Between the degrees of freedom of the table the next lower ones are taken, which makes the interval slightly
    wider.
    """
    n = len(values)
    if not n:
        raise MeasureError("an interval needs at least one value")
    mean = sum(values) / n
    if n == 1:
        return {"n": 1, "mean": mean, "ci95": None}
    deviation = sqrt(sum((value - mean) ** 2 for value in values) / (n - 1))
    return {"n": n, "mean": mean, "ci95": _student(n - 1) * deviation / sqrt(n)}


def ends(found: Interval, limits: tuple[float, float] = (-inf, inf)) -> tuple[float, float] | None:
    """Both ends of the 95 % interval, cut to the values that are possible; None without an interval.

    Student's t knows no bounds: of shares near 0 or 1 its interval reaches beyond them.
    """
    if found["ci95"] is None:
        return None
    mean, half = found["mean"], found["ci95"]
    return min(mean, max(mean - half, limits[0])), max(mean, min(mean + half, limits[1]))


class Mean(float):
    """The mean of a number over those repetitions that have it, which says how many they are."""

    n: int
    """Repetitions that have the number."""
    of: int
    """All repetitions."""

    @classmethod
    def over(cls, values: Iterable[float | None]) -> Self | None:
        """The mean of the values that are there; None if none is."""
        every = list(values)
        known = [value for value in every if value is not None]
        if not known:
            return None
        made = cls(sum(known) / len(known))
        made.n, made.of = len(known), len(every)
        return made


def partly(value: object) -> str:
    """` (2 of 3)` of a mean that some repetitions have no number for; empty for everything else."""
    return f" ({value.n} of {value.of})" if isinstance(value, Mean) and value.n < value.of else ""


def repetitions(summaries: Sequence[Summary]) -> dict[str, Interval]:
    """The interval of every measured number in the summaries, by its dotted name (`flows.prague.srtt_s.mean`).

    A number that is missing from some of them has a smaller `n`.
    """
    values: dict[str, list[float]] = {}
    for summary in summaries:
        for name, value in _numbers(summary.to_json(), ""):
            values.setdefault(name, []).append(value)
    return {name: interval(numbers) for name, numbers in values.items()}


def _student(freedom: int) -> float:
    if freedom <= len(_T):
        return _T[freedom - 1]
    return next(t for least, t in _T_ABOVE if freedom >= least)


def _numbers(tree: Mapping[str, Any], prefix: str) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for key, value in tree.items():
        if key in _NOT_MEASURED:
            continue
        if isinstance(value, Mapping):
            found += _numbers(value, f"{prefix}{key}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found.append((prefix + key, float(value)))
    return found
