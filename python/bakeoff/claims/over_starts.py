"""A predicate over the starts (seeds) of a run: it holds, does not hold, or is undecided.

`every` and `any` count starts. `typical` is about the mean over starts: a comparison is judged by the 95 % interval
(Student's t) of the margin between its sides, paired by seed, and a published number by the interval of what was
measured. `and`, `or` and `not` are Kleene's. Without an interval all starts have to agree: of `==`, of an infinite
value, and of a single start.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import TYPE_CHECKING, Final

from bakeoff.claims.expression import Expression
from bakeoff.expressions import quantity
from bakeoff.expressions.nodes import ORDER, Apply, Constant, Node, limits, value_of, walk
from bakeoff.measure import ends, interval

if TYPE_CHECKING:
    from bakeoff.claims.claim import Size, Starts
    from bakeoff.claims.expression import Values

_ORDER: Final = ("<", "<=", ">", ">=")


@dataclass(frozen=True)
class Judged:
    """True, false, or None for undecided; and the reason where one start or interval does not show it."""

    truth: bool | None
    why: str | None = None


def direction(expression: Expression, several: Sequence[Values], holds: Starts) -> Judged:
    """A comparison; `several` has the values of one start each. MeasureError if a measure could not be taken."""
    if holds == "typical":
        return _judged(expression.root, several)
    return _counted([expression.truth(values) for values in several], holds)


def size(size: Size, several: Sequence[Values], holds: Starts) -> Judged:
    """Whether what `size` measures is in its range. MeasureError as for `direction`."""
    numbers = [size.of.number(values) for values in several]
    inside = [size.holds(number) for number in numbers]
    if holds != "typical":
        return _counted(inside, holds)
    found = _interval(numbers, size.of.limits)
    if found is None:
        return _agreed(inside)
    low, high = found
    if size.holds(low) and size.holds(high):
        return Judged(True)
    if high < size.low or low > size.high:
        return Judged(False)
    beyond = [limit for limit in (size.low, size.high) if low <= limit <= high]
    limit = quantity.several(beyond, size.unit, " and ")
    return Judged(None, f"interval {quantity.several(found, size.unit, ' to ')} contains the limit {limit}")


def _counted(truths: Sequence[bool], holds: Starts) -> Judged:
    right = sum(truths)
    told = f"true in {right} of {len(truths)} starts"
    if right == len(truths):
        return Judged(True)
    return Judged(holds == "any" and right > 0, told)


def _agreed(truths: Sequence[bool]) -> Judged:
    """Without an interval: what all starts agree on."""
    if all(truths) or not any(truths):
        return Judged(truths[0])
    return Judged(None, f"true in {sum(truths)} of {len(truths)} starts")


def _judged(node: Node, several: Sequence[Values]) -> Judged:
    if not isinstance(node, Apply) or not any(part.name in _ORDER for part in walk(node) if isinstance(part, Apply)):
        return _agreed([bool(value_of(node, values)) for values in several])
    if node.name == "not":
        part = _judged(node.parts[0], several)
        return Judged(None if part.truth is None else not part.truth, part.why)
    if node.name in ("and", "or"):
        return _joined((_judged(part, several) for part in node.parts), decisive=node.name == "or")
    return _compared(node, several)


def _joined(parts: Iterable[Judged], *, decisive: bool) -> Judged:
    """`or` if one true part decides, else `and`, which one false part decides."""
    undecided = None
    for part in parts:
        if part.truth is decisive:
            return Judged(decisive)
        if part.truth is None:
            undecided = undecided or part
    return undecided or Judged(not decisive)


def _compared(node: Apply, several: Sequence[Values]) -> Judged:
    sides = [[_number(part, values) for values in several] for part in node.parts]
    constant = next((part for part in node.parts if isinstance(part, Constant)), None)
    if constant is not None:
        at = node.parts.index(constant)
        measured, limit = node.parts[1 - at], sides[at][0]
        found = _interval(sides[1 - at], limits(measured))
        unit = measured.unit
        told = f"the limit {quantity.formatted(limit, unit)}"
    else:
        at, limit, unit, told = 1, 0.0, node.parts[0].unit or node.parts[1].unit, "0"
        found = _interval([one - other for one, other in zip(*sides, strict=True)], (-inf, inf))
    if found is None:
        return _agreed([bool(value_of(node, values)) for values in several])
    truths = {ORDER[node.name](*((limit, end) if at == 0 else (end, limit))) for end in found}
    if len(truths) == 1:
        return Judged(truths.pop())
    what = "interval" if constant is not None else "interval of the difference"
    return Judged(None, f"{what} {quantity.several(found, unit, ' to ')} contains {told}")


def _number(node: Node, values: Values) -> float:
    return float(value_of(node, values) or 0.0)


def _interval(numbers: Sequence[float], possible: tuple[float, float]) -> tuple[float, float] | None:
    """The ends of the mean's 95 % interval, cut to what is possible; None if no number scatters or one is infinite."""
    if len(numbers) < 2 or not all(map(isfinite, numbers)) or min(numbers) == max(numbers):
        return None
    return ends(interval(numbers), possible)
