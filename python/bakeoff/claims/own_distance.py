"""How far two campaigns are apart, beside how far the repetitions of one of them are from each other.

A kernel that is asked twice answers twice: other start times, ports and draws lead to other shares. A simulator that is
no farther from the kernel than the kernel from itself cannot be told from one more run of it. Both distances here are
between single runs, of equal seeds on the two sides and of unequal seeds on one side, so that they can be compared; the
means that `comparison` takes would be closer to each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from bakeoff.claims.comparison import Comparison, Difference, Side, distance, labels
from bakeoff.errors import ClaimError
from bakeoff.measure.delays import quantile

MEASURES: Final = ("goodput", "tcp_delay_mean", "marks")
ALL: Final = "all"


@dataclass(frozen=True)
class Spread:
    """|ln| over single runs."""

    n: int
    median: float
    p90: float


@dataclass(frozen=True)
class Group:
    """The runs with the same labels."""

    labels: tuple[str, ...]
    """Of the axes that were asked for; the last group is `all` of them together."""
    runs: int
    repeated: int
    """How many of them have several seeds in the second campaign."""
    every: Mapping[str, Spread]
    """By measure: ln(ours / theirs) of equal seeds, of all runs."""
    apart: Mapping[str, Spread]
    """The same over the runs that have several seeds in the second campaign; a measure is missing where none has."""
    own: Mapping[str, Spread]
    """By measure: ln(theirs / theirs) of every two seeds, over the same runs as `apart`."""


def groups(found: Comparison, ours: Side, theirs: Side, by: Sequence[str]) -> list[Group]:
    """The distances by the labels of the axes `by`, in order of first appearance, and of all together at the end.

    BakeoffError if the two have no seed in common, or if an axis does not exist.
    """
    members: dict[tuple[str, ...], list[Difference]] = {}
    for one, of in zip(found.differences, labels(found.differences, by), strict=True):
        if one.key.measure in MEASURES:
            members.setdefault(of, []).append(one)
    if not any(ours.values[one.key].keys() & theirs.values[one.key].keys() for one in found.differences):
        raise ClaimError(f"{ours.name} and {theirs.name} have no seeds in common; expected runs with equal seeds")
    made = [_group(of, some, ours, theirs) for of, some in members.items()]
    if len(made) > 1:
        every = [one for some in members.values() for one in some]
        made.append(_group((ALL, *("" for _ in by[1:])), every, ours, theirs))
    return made


def _group(of: tuple[str, ...], members: Sequence[Difference], ours: Side, theirs: Side) -> Group:
    every: dict[str, list[float]] = {}
    apart: dict[str, list[float]] = {}
    own: dict[str, list[float]] = {}
    repeated = set()
    for one in members:
        measure, mine, other = one.key.measure, ours.values[one.key], theirs.values[one.key]
        both = [abs(distance(measure, mine[seed], other[seed])) for seed in mine.keys() & other.keys()]
        every.setdefault(measure, []).extend(both)
        if len(other) > 1:
            apart.setdefault(measure, []).extend(both)
            pairs = combinations(other.values(), 2)
            own.setdefault(measure, []).extend(abs(distance(measure, a, b)) for a, b in pairs)
            repeated.add(one.key[:3])
    runs = {one.key[:3] for one in members}
    return Group(of, len(runs), len(repeated), _spreads(every), _spreads(apart), _spreads(own))


def _spreads(by_measure: Mapping[str, Iterable[float]]) -> dict[str, Spread]:
    found = {measure: [*values] for measure, values in by_measure.items()}
    return {
        measure: Spread(len(values), quantile(values, 0.5), quantile(values, 0.9))
        for measure, values in found.items()
        if values
    }
