"""Checked expressions as trees, and what they come to."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isnan, nan
from statistics import fmean, median
from typing import Any, ClassVar, Final

from bakeoff.errors import MeasureError
from bakeoff.measure.rates import harm, harm_less, under_utilisation

TRUTH: Final = "true or false"
"""The unit of a comparison."""
TEXT: Final = "text"
LIST: Final = "list"
NOTHING: Final = "None"

Value = float | str | None


@dataclass(frozen=True)
class Constant:
    """What is written down: a number in its base unit, a text, or None."""

    value: Value
    unit: str | None
    """A base unit, `TEXT`, `NOTHING`; None for a number of which nothing says the unit."""
    text: str
    depth: ClassVar[int] = 0


@dataclass(frozen=True)
class Leaf:
    """What is looked up: a measure of a run, a column of a table."""

    key: Hashable
    unit: str | None
    bounds: tuple[float, float]
    """The least and the greatest value that it can have."""
    text: str
    labels: frozenset[str] = frozenset()
    """Texts among its values."""
    bare: bool = True
    """Whether a number beside it needs no unit."""
    depth: ClassVar[int] = 0


@dataclass(frozen=True)
class Apply:
    """An operator or a function on values; `name` is the operator's sign or the function's name."""

    name: str
    parts: tuple[Node, ...]
    unit: str | None
    text: str
    depth: int


Node = Constant | Leaf | Apply

ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
FUNCTIONS: Final[dict[str, tuple[Callable[[Sequence[float]], float], int, int]]] = {
    "min": (min, 1, 100),
    "max": (max, 1, 100),
    "mean": (fmean, 1, 100),
    "median": (median, 1, 100),
    "abs": (lambda values: abs(values[0]), 1, 1),
    "harm": (lambda values: harm(values[0], values[1]), 2, 2),
    "harm_less": (lambda values: harm_less(values[0], values[1]), 2, 2),
    "under_utilisation": (lambda values: under_utilisation(values[0], values[1]), 2, 2),
}
"""How each is computed, and how many arguments it takes."""
ARITHMETIC: Final[dict[str, Callable[[float, float], float]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda one, other: one / other if other else one * inf,
}
"""A division by 0 is infinite, and 0 / 0 no number."""


def natural(label: str) -> list[str | int]:
    """A sort key that puts 20ms before 160ms."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+)", label))]


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it."""
    yield node
    if isinstance(node, Apply):
        for part in node.parts:
            yield from walk(part)


def limits(node: Node) -> tuple[float, float]:
    """The least and the greatest value that a number can have, as far as its leaves say."""
    if isinstance(node, Leaf):
        return node.bounds
    if isinstance(node, Constant):
        return (node.value, node.value) if isinstance(node.value, float) else (-inf, inf)
    lows, highs = zip(*map(limits, node.parts), strict=True)
    if node.name in ("min", "max", "mean", "median"):
        return min(lows), max(highs)
    return (0.0 if node.name == "abs" or (node.name in "+*/" and min(lows) >= 0) else -inf), inf


def value_of(node: Node, values: Mapping[Any, Value | MeasureError]) -> Value:
    """The node's value in its base unit, with the values of leaves by their keys; comparisons give 1 or 0.

    MeasureError if a measure in it could not be taken, for 0 / 0, and for arithmetic with what has no number.
    """
    if isinstance(node, Leaf):
        value = values[node.key]
        if isinstance(value, MeasureError):
            raise value
        return value
    if isinstance(node, Constant):
        return node.value
    if node.name in ("and", "or"):
        return float((all if node.name == "and" else any)(value_of(part, values) for part in node.parts))
    found = [value_of(part, values) for part in node.parts]
    if node.name == "not":
        return float(not found[0])
    if node.name == "in":
        return float(None not in found and str(found[0]) in str(found[1]))
    return float(_holds(node.name, *found)) if node.name in ORDER else _number(node, found)


def _holds(sign: str, one: Value, other: Value) -> bool:
    """Texts are in natural order; what is missing, or a text beside a number, has no order."""
    if sign in ("==", "!="):
        return ORDER[sign](one, other)
    if isinstance(one, str) and isinstance(other, str):
        return ORDER[sign](natural(one), natural(other))
    return not isinstance(one, str | None) and not isinstance(other, str | None) and ORDER[sign](one, other)


def _number(node: Apply, found: Sequence[Value]) -> float:
    numbers = [value for value in found if isinstance(value, int | float)]
    if len(numbers) < len(found):
        result = nan
    elif node.name in FUNCTIONS:
        result = FUNCTIONS[node.name][0](numbers)
    else:
        result = ARITHMETIC[node.name](*numbers)
    if isnan(result):
        told = ", ".join(f"{value:g}" if isinstance(value, int | float) else str(value) for value in found)
        raise MeasureError(f"'{node.text}' has no value: {told}")
    return result
