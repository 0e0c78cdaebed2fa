"""What a sweep varies, as `--over` has it, and the points that it is made of: a grid, or a sample of ranges.

network.rtt=1ms,20ms,100ms       the values of a list
network.rtt=lin:1ms..200ms:12    twelve values at equal distances
network.rtt=log:1ms..200ms:12    twelve values, each the same number of times the one before
network.rtt=log:1ms..200ms       a range, from which --sample or the adaptive mode takes its values
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, log, prod
from random import Random
from typing import Any, Final, Literal

from bakeoff.errors import ScenarioError
from bakeoff.scenario import bounds, units
from bakeoff.scenario.error import quoted
from bakeoff.scenario.settings import label
from bakeoff.scenario.yaml_file import parse_value

_RANGE: Final = re.compile(r"(lin|log):(.+?)\.\.(.+?)(?::([0-9]+))?")
_FORM: Final = "expected a list such as 5mbit,20mbit or a range such as log:1ms..200ms:12"
_SEED: Final = 1
"""Of the samples: a sweep that is asked for twice has the same points."""
_DIGITS: Final = 9
"""Of a number of values or points; Python reads no more than 4300."""
_DISTINCT: Final = 4
"""Digits that count in a value of a range."""

Point = Mapping[str, Any]
"""The value of each parameter, by its key."""


@dataclass(frozen=True)
class Range:
    """All values from `low` to `high`, which are of one SI unit."""

    scale: Literal["lin", "log"]
    low: float
    high: float
    unit: str
    whole: bool
    """Whether only whole numbers are meant: a count, whose ends are written without a point."""

    def at(self, share: float) -> object:
        """The value so far from the low end (0) to the high end (1), as the scenario has it."""
        if share <= 0 or share >= 1:
            number = self.low if share <= 0 else self.high
        elif self.scale == "log":
            number = exp(log(self.low) + share * (log(self.high) - log(self.low)))
        else:
            number = self.low + share * (self.high - self.low)
        if self.unit:
            return units.written(number, self.unit)
        return round(number) if self.whole else float(f"{number:.{_DISTINCT}g}")


@dataclass(frozen=True)
class Parameter:
    """One `--over`: what it varies, and either values or a range."""

    key: str
    """As `--set` names it, or an axis of the scenario."""
    values: tuple[Any, ...]
    """None of a range that does not say how many."""
    range: Range | None = None

    @property
    def ordered(self) -> bool:
        """Whether its values are numbers of one unit, so that one lies between two others."""
        found = {known[1] if (known := units.si(value)) else None for value in self.values}
        return len(found) == 1 and None not in found


def parse_over(words: Sequence[str]) -> list[Parameter]:
    """The parameters of `--over`. BakeoffError names the one that is wrong, and what was expected."""
    found: dict[str, Parameter] = {}
    for word in words:
        key, equals, text = (part.strip() for part in word.partition("="))
        if not equals or not key or not text:
            raise ScenarioError(f"--over: '{word}'; expected KEY=VALUES, such as network.rtt=log:1ms..200ms:12")
        if key in found:
            raise ScenarioError(f"--over: duplicate parameter '{key}'; expected each parameter once")
        found[key] = _parameter(key, text)
    if not found:
        raise ScenarioError("missing option --over; expected for example --over network.rtt=log:1ms..200ms:12")
    return list(found.values())


def _parameter(key: str, text: str) -> Parameter:
    place = f"--over {key}"
    if re.match(r"(lin|log):", text):
        match = _RANGE.fullmatch(text)
        if match is None:
            raise ScenarioError(f"{place}: '{text}': invalid range; expected for example log:1ms..200ms:12")
        scale, low, high, count = match.groups()
        found = _range(place, "log" if scale == "log" else "lin", low, high)
        return Parameter(key, () if count is None else _steps(place, found, count), found)
    values = (
        parse_value(text, place) if text.startswith("[") else [parse_value(each, place) for each in text.split(",")]
    )
    if not isinstance(values, list) or not values or any(value is None or value == "" for value in values):
        raise ScenarioError(f"{place}: '{text}' contains an empty value; {_FORM}")
    names = [label(value) for value in values]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ScenarioError(f"{place}: duplicate value {quoted(twice)}; expected unique values")
    return Parameter(key, tuple(values))


def _range(place: str, scale: Literal["lin", "log"], low: str, high: str) -> Range:
    ends = []
    for text in (low, high):
        found = units.si(text)
        if found is None:
            raise ScenarioError(f"{place}: '{text}': invalid number; {_FORM}")
        ends.append(found)
    (first, unit), (end, other) = ends
    if unit != other:
        raise ScenarioError(f"{place}: '{low}' and '{high}' have different units; expected the same unit")
    if first >= end:
        raise ScenarioError(f"{place}: '{low}' is not below '{high}'; expected the lower end first")
    if scale == "log" and first <= 0:
        raise ScenarioError(f"{place}: a logarithmic range from '{low}'; expected more than 0, or lin:")
    return Range(scale, first, end, unit, not unit and "." not in low and "." not in high)


def _steps(place: str, found: Range, digits: str) -> tuple[Any, ...]:
    count = _count(digits)
    if count is None or count < 2:
        raise ScenarioError(f"{place}: {digits[:20]} values; expected 2 or more, and at most {bounds.MOST_RUNS:,}")
    values = tuple(dict.fromkeys(found.at(step / (count - 1)) for step in range(count)))
    if len(values) < count:
        raise ScenarioError(
            f"{place}: {count} values are not distinct in {_DISTINCT} digits; expected at most {len(values)}"
        )
    return values


def _count(digits: str) -> int | None:
    """A number of values or points; None for one that is no number, 0, or above the bound of runs."""
    if not digits.isdecimal() or len(digits) > _DIGITS:
        return None
    return int(digits) if 1 <= int(digits) <= bounds.MOST_RUNS else None


def grid(parameters: Sequence[Parameter], *, yes: bool = False) -> list[Point]:
    """Every combination of the values, the coarse grid before the fine one: whoever stops early has an even part.

    First stand the ends of every ordered list, then what halves the distances, and so on; points of one stage are
    shuffled, always in the same way. BakeoffError for a range that does not say how many values it has, and, unless
    `yes`, for very many points.
    """
    for each in parameters:
        if not each.values:
            raise ScenarioError(
                f"--over {each.key}: missing number of values; expected for example log:1ms..200ms:12, or --sample or "
                "--adaptive"
            )
    many = bounds.too_many_runs(prod(len(each.values) for each in parameters))
    if many is not None and not yes:
        raise ScenarioError(f"--over: {many}")
    stages = [_stages(len(each.values)) if each.ordered else [0] * len(each.values) for each in parameters]
    order = {at: max(map(_stage, zip(stages, at, strict=True))) for at in product(*(range(len(s)) for s in stages))}
    chance = Random(_SEED)  # noqa: S311 (no secret)
    shuffled = sorted(order, key=lambda at: (order[at], chance.random()))
    return [{each.key: each.values[i] for each, i in zip(parameters, at, strict=True)} for at in shuffled]


def _stage(of: tuple[list[int], int]) -> int:
    stages, at = of
    return stages[at]


def _stages(count: int) -> list[int]:
    """At which halving each of so many values in a row is reached; the ends at none."""
    stages = [0] * count
    left = [(0, count - 1, 1)]
    while left:
        low, high, stage = left.pop()
        if high - low < 2:
            continue
        middle = (low + high) // 2
        stages[middle] = stage
        left += [(low, middle, stage + 1), (middle, high, stage + 1)]
    return stages


def sample(parameters: Sequence[Parameter], how: str, *, yes: bool = False) -> list[Point]:
    """`lhs:200` points of a Latin hypercube, or `sobol:256` of a Sobol sequence, over the ranges.

    Values of lists are combined with each point, so that they can be compared there. The points are always the same.
    BakeoffError for another word, without a range, for a range that says how many values it has, and, unless `yes`, for
    very many points.
    """
    method, _, text = how.partition(":")
    count = _count(text)
    if method not in ("lhs", "sobol") or count is None:
        raise ScenarioError(
            f"--sample: '{how[:60]}'; expected lhs:N or sobol:N, such as lhs:200, and N at most {bounds.MOST_RUNS:,}"
        )
    if method == "sobol" and count & (count - 1):
        raise ScenarioError(
            f"--sample: '{how}'; expected a power of two for a Sobol sequence, such as sobol:{1 << count.bit_length()}"
        )
    ranges = free(parameters, f"--sample {how}")
    from scipy.stats import qmc  # type: ignore[import-untyped]  # takes a second to import

    draws = qmc.LatinHypercube(len(ranges), seed=_SEED) if method == "lhs" else qmc.Sobol(len(ranges), seed=_SEED)
    lists = [each for each in parameters if each not in ranges]
    many = bounds.too_many_runs(count * prod(len(each.values) for each in lists))
    if many is not None and not yes:
        raise ScenarioError(f"--sample: {many}")
    found: dict[tuple[str, ...], Point] = {}
    for shares in draws.random(count):
        for values in product(*(each.values for each in lists)):
            at = dict(zip((each.key for each in lists), values, strict=True))
            at |= {each.key: each.range.at(float(s)) for each, s in zip(ranges, shares, strict=True) if each.range}
            point = {each.key: at[each.key] for each in parameters}
            found.setdefault(tuple(map(label, point.values())), point)  # whole numbers may meet
    return list(found.values())


def free(parameters: Sequence[Parameter], who: str) -> list[Parameter]:
    """The ranges whose values `who` chooses. BakeoffError if there is none, or one says how many values it has."""
    ranges = [each for each in parameters if each.range is not None]
    if not ranges:
        raise ScenarioError(f"{who}: missing range; expected for example --over network.rtt=log:1ms..200ms")
    for each in ranges:
        if each.values:
            raise ScenarioError(
                f"{who}: chooses the values of '{each.key}'; expected the range without ':{len(each.values)}'"
            )
    return ranges
