"""The language of claims' predicates: `goodput("prague") > 2 * goodput("cubic") and ping_p99() < "50ms"`.

It has numbers, texts with units, `+ - * /`, comparisons, `and`, `or`, `not`, parentheses, a few functions and the
measures, and nothing else. Everything is checked when a file is read; nothing is ever executed as Python.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from math import inf, isfinite, isnan
from statistics import fmean, median
from typing import Any, Final

from bakeoff.claims import quantity
from bakeoff.errors import ClaimError, MeasureError
from bakeoff.measure.catalogue import Measure, Parameter
from bakeoff.measure.functions import CATALOGUE
from bakeoff.measure.rates import harm, harm_less, under_utilisation

TRUTH: Final = "true or false"
"""The unit of a comparison."""
_LONGEST: Final = 2000
"""Characters of an expression."""
_DEEPEST: Final = 50

Argument = float | str | int


class ExpressionError(ClaimError):
    """What is wrong in an expression, in its own words."""


@dataclass(frozen=True)
class Call:
    """A measure of a run."""

    measure: str
    arguments: tuple[tuple[str, Argument], ...]
    of: str | None
    """The short name of the run; None where a claim is about each of its runs."""

    text: str = field(default="", compare=False)
    """As it was written."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Number:
    """A number in its base unit."""

    value: float
    unit: str | None


@dataclass(frozen=True)
class Apply:
    """An operator or a function on values; `name` is the operator's sign or the function's name."""

    name: str
    parts: tuple[Node, ...]
    unit: str | None
    text: str


@dataclass(frozen=True)
class Taken:
    """A measure's value."""

    call: Call
    unit: str

    @property
    def text(self) -> str:
        """As it was written."""
        return self.call.text


Node = Number | Taken | Apply
Values = Mapping[Call, float | MeasureError]

_SIGNS: Final[dict[type[ast.AST], str]] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip
_ORDER: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_FUNCTIONS: Final[dict[str, tuple[Callable[[Sequence[float]], float], int, int]]] = {
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


@dataclass(frozen=True)
class Expression:
    """A checked expression."""

    text: str
    root: Node

    @property
    def unit(self) -> str | None:
        """`true or false`, a base unit, or None for a number of which nothing says the unit."""
        return self.root.unit

    @property
    def calls(self) -> list[Call]:
        """Every measure in it, each once."""
        return list(dict.fromkeys(node.call for node in _walk(self.root) if isinstance(node, Taken)))

    @property
    def sides(self) -> list[tuple[str, Node]]:
        """What its comparisons compare, numbers that are written down aside: the words and the value."""
        found = {}
        for node in _walk(self.root):
            if isinstance(node, Apply) and node.name in _ORDER:
                found.update({part.text: part for part in node.parts if not isinstance(part, Number)})
        return list(found.items())

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest value that it can have, as far as its measures say."""
        return _limits(self.root)

    def truth(self, values: Values) -> bool:
        """Whether it holds. MeasureError if a measure in it could not be taken."""
        return bool(value_of(self.root, values))

    def number(self, values: Values) -> float:
        """Its value in the base unit. MeasureError if a measure in it could not be taken, or for 0 / 0."""
        return value_of(self.root, values)


def parse(text: str, runs: Sequence[str]) -> Expression:
    """A checked expression; `runs` are the short names that `of` may have, none where a claim is about each run.

    ExpressionError says what is wrong with it, and what was expected.
    """
    if len(text) > _LONGEST:
        raise ExpressionError(f"has {len(text):,} characters; expected at most {_LONGEST:,}")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise ExpressionError(
            f"'{_short(text)}' cannot be read; expected for example 'goodput(1) > 2 * goodput(2)'"
        ) from None
    return Expression(" ".join(text.split()), _Reader(tuple(runs)).read(tree.body, 0))


def _limits(node: Node) -> tuple[float, float]:
    if isinstance(node, Number):
        return node.value, node.value
    if isinstance(node, Taken):
        return CATALOGUE[node.call.measure].bounds
    lows, highs = zip(*map(_limits, node.parts), strict=True)
    if node.name in ("min", "max", "mean", "median"):
        return min(lows), max(highs)
    return (0.0 if node.name == "abs" or (node.name in "+*/" and min(lows) >= 0) else -inf), inf


def value_of(node: Node, values: Values) -> float:  # noqa: PLR0911 (a table of nodes)
    """The node's value; comparisons give 1 or 0. MeasureError as for `Expression.number`."""
    if isinstance(node, Number):
        return node.value
    if isinstance(node, Taken):
        value = values[node.call]
        if isinstance(value, MeasureError):
            raise value
        return value
    if node.name == "and":
        return float(all(value_of(part, values) for part in node.parts))
    if node.name == "or":
        return float(any(value_of(part, values) for part in node.parts))
    found = [value_of(part, values) for part in node.parts]
    if node.name == "not":
        return float(not found[0])
    if node.name in _ORDER:
        return float(_ORDER[node.name](*found))
    result = _FUNCTIONS[node.name][0](found) if node.name in _FUNCTIONS else _arithmetic(node.name, found)
    if isnan(result):
        raise MeasureError(f"'{node.text}' has no value: {', '.join(f'{value:g}' for value in found)}")
    return result


def _arithmetic(sign: str, found: Sequence[float]) -> float:
    if sign == "negative":
        return -found[0]
    one, other = found
    match sign:
        case "+":
            return one + other
        case "-":
            return one - other
        case "*":
            return one * other
    if other:
        return one / other
    return float("nan") if not one or isnan(one) else float("inf") if one > 0 else float("-inf")


def _walk(node: Node) -> Iterator[Node]:
    yield node
    if isinstance(node, Apply):
        for part in node.parts:
            yield from _walk(part)


@dataclass(frozen=True)
class _Reader:
    runs: tuple[str, ...]

    def read(self, node: ast.expr, depth: int) -> Node:  # noqa: PLR0911 (a table of nodes)
        """The checked form of a node. ExpressionError for all that is not the language."""
        if depth > _DEEPEST:
            raise ExpressionError(f"is nested too deeply; expected at most {_DEEPEST} levels")
        below = depth + 1
        match node:
            case ast.Constant(value=bool()):
                raise ExpressionError(f"'{node.value!r}' is no word of the language; expected a comparison")
            case ast.Constant(value=int() | float() as value):
                return self._number(value, node)
            case ast.Constant(value=str() as text):
                return self._quantity(text)
            case ast.BoolOp():
                parts = [self._truth(part, below) for part in node.values]
                return Apply("and" if isinstance(node.op, ast.And) else "or", tuple(parts), TRUTH, _whole(node))
            case ast.UnaryOp(op=ast.Not()):
                return Apply("not", (self._truth(node.operand, below),), TRUTH, _whole(node))
            case ast.UnaryOp(op=ast.USub()):
                part = self._value(node.operand, below)
                if isinstance(part, Number):
                    return Number(-part.value, part.unit)
                return Apply("negative", (part,), part.unit, _whole(node))
            case ast.BinOp() if type(node.op) in _SIGNS:
                return self._binary(node, below)
            case ast.Compare() if all(type(op) in _SIGNS for op in node.ops):
                return self._comparison(node, below)
            case ast.Call(func=ast.Name(id=name)):
                return self._call(name, node, below)
        raise ExpressionError(f"'{_words(node)}' is no part of the language; {_expected()}")

    def _value(self, node: ast.expr, depth: int) -> Node:
        found = self.read(node, depth)
        if found.unit == TRUTH:
            raise ExpressionError(f"'{_words(node)}' is true or false; expected a number")
        return found

    def _truth(self, node: ast.expr, depth: int) -> Node:
        found = self.read(node, depth)
        if found.unit != TRUTH:
            raise ExpressionError(f"'{_words(node)}' is a number; expected a comparison")
        return found

    def _number(self, value: float, node: ast.expr) -> Number:
        try:
            number = float(value)
        except OverflowError:
            number = float("inf")
        if not isfinite(number):
            raise ExpressionError(f"'{_words(node)}' is too large a number; expected at most 1e308")
        return Number(number, None)

    def _quantity(self, text: str) -> Number:
        try:
            return Number(*quantity.parse(text))
        except ValueError as error:
            raise ExpressionError(str(error)) from None

    def _binary(self, node: ast.BinOp, depth: int) -> Apply:
        sign = _SIGNS[type(node.op)]
        one, other = self._value(node.left, depth), self._value(node.right, depth)
        if sign in "+-":
            unit = _alike([one, other], node)
        elif sign == "*":
            unit = _product(one.unit, other.unit)
        else:
            unit = "1" if one.unit == other.unit and one.unit else one.unit if other.unit in (None, "1") else None
        return Apply(sign, (one, other), unit, _whole(node))

    def _comparison(self, node: ast.Compare, depth: int) -> Apply:
        sides = [self._value(side, depth) for side in (node.left, *node.comparators)]
        _alike(sides, node)
        _check_range(sides, node)
        pairs = [
            Apply(_SIGNS[type(op)], (one, other), TRUTH, _whole(node))
            for op, one, other in zip(node.ops, sides, sides[1:], strict=False)
        ]
        return pairs[0] if len(pairs) == 1 else Apply("and", tuple(pairs), TRUTH, _words(node))

    def _call(self, name: str, node: ast.Call, depth: int) -> Node:
        if name == "under_utilisation":
            return self._under_utilisation(node)
        if name in _FUNCTIONS:
            return self._function(name, node, depth)
        measure = CATALOGUE.get(name)
        if measure is None:
            near = get_close_matches(name, [*CATALOGUE.names, *_FUNCTIONS], n=1)
            raise ExpressionError(
                f"unknown measure '{name}'{f'; did you mean {near[0]!r}?' if near else ''}; {_expected()}"
            )
        arguments, of = self._arguments(measure, node)
        return Taken(Call(measure.name, arguments, of, _whole(node)), measure.unit)

    def _function(self, name: str, node: ast.Call, depth: int) -> Apply:
        _, least, most = _FUNCTIONS[name]
        if node.keywords or not least <= len(node.args) <= most:
            many = f"{least}" if least == most else f"{least} or more"
            raise ExpressionError(f"'{_words(node)}': expected {many} values for {name}, and no names")
        parts = [self._value(part, depth) for part in node.args]
        unit = _alike(parts, node)
        return Apply(name, tuple(parts), "1" if name.startswith("harm") else unit, _whole(node))

    def _under_utilisation(self, node: ast.Call) -> Apply:
        """`under_utilisation(of=, baseline=)`: the goodput of the one less that of the other."""
        named = {word.arg: word.value for word in node.keywords}
        if set(named) != {"of", "baseline"} or len(node.args) > 1 or len(node.keywords) != 2:
            raise ExpressionError(
                f'\'{_words(node)}\': expected under_utilisation(of="RUN", baseline="RUN"), with a name or pattern of '
                "flows before them if not all are meant"
            )
        pattern = (("flows", self._text(node.args[0], "flows")),) if node.args else ()
        with_, without = (
            Taken(Call("total_goodput", pattern, self._run(named[key], node), _whole(node)), "bit/s")
            for key in ("of", "baseline")
        )
        return Apply("under_utilisation", (with_, without), "bit/s", _whole(node))

    def _arguments(self, measure: Measure, node: ast.Call) -> tuple[tuple[tuple[str, Argument], ...], str | None]:
        parameters = {each.name: each for each in measure.parameters}
        places = [each for each in measure.parameters if each.positional]
        form = f"expected {measure.signature}"
        if len(node.args) > len(places):
            raise ExpressionError(f"'{_words(node)}' has {len(node.args)} values without a name; {form}")
        given = {place.name: value for place, value in zip(places, node.args, strict=False)}
        of = None
        for word in node.keywords:
            if word.arg == "of":
                of = self._run(word.value, node)
            elif word.arg is None or word.arg not in parameters or word.arg in given:
                raise ExpressionError(f"'{_words(node)}': unexpected '{word.arg}'; {form}")
            else:
                given[word.arg] = word.value
        lacking = [each.name for each in measure.parameters if each.required and each.name not in given]
        if lacking:
            raise ExpressionError(f"'{_words(node)}' lacks '{lacking[0]}'; {form}")
        if of is None and self.runs:
            raise ExpressionError(
                f"'{_words(node)}' lacks 'of', which says the run; expected one of {', '.join(self.runs)}"
            )
        read = tuple((name, self._argument(parameters[name], value)) for name, value in sorted(given.items()))
        return read, of

    def _argument(self, parameter: Parameter, node: ast.expr) -> Argument:
        match parameter.kind:
            case "flow" if isinstance(node, ast.Constant) and type(node.value) is int:
                return node.value
            case "flow" | "flows" | "probe" | "queue" | "delayed":
                return self._text(node, parameter.name)
        found = self._value(node, 0)
        if not isinstance(found, Number):
            raise ExpressionError(
                f"'{_words(node)}': {parameter.name} is measured; expected a number that is written down"
            )
        if found.unit not in (None, parameter.kind):
            form = "a time such as '20s'" if parameter.kind == "s" else "a number"
            raise ExpressionError(f"{parameter.name}: '{_words(node)}'; expected {form}")
        return found.value

    def _text(self, node: ast.expr, name: str) -> str:
        if not isinstance(node, ast.Constant) or not isinstance(node.value, str) or not node.value:
            raise ExpressionError(f"{name}: '{_words(node)}'; expected a name in quotation marks")
        return node.value

    def _run(self, node: ast.expr, call: ast.Call) -> str:
        name = self._text(node, "of")
        if not self.runs:
            raise ExpressionError(
                f"'{_words(call)}' names a run, '{name}'; expected none, or 'runs' as a mapping of short names to runs"
            )
        if name not in self.runs:
            raise ExpressionError(f"'{_words(call)}': unknown run '{name}'; expected one of {', '.join(self.runs)}")
        return name


def _alike(parts: Sequence[Node], node: ast.expr) -> str | None:
    """The one unit of all parts, None if none is known. ExpressionError if there are two."""
    units = list(dict.fromkeys(part.unit for part in parts if part.unit is not None))
    if len(units) > 1:
        named = ", ".join("no unit" if unit == "1" else unit for unit in units)
        raise ExpressionError(f"'{_words(node)}' puts unlike units together: {named}; expected one unit")
    return units[0] if units else None


def _check_range(sides: Sequence[Node], node: ast.expr) -> None:
    """ExpressionError for a measure beside a number that it cannot have: `jain() < 60`."""
    for one, other in (*pairwise(sides), *pairwise(reversed(sides))):
        if not isinstance(one, Taken) or not isinstance(other, Number):
            continue
        low, high = CATALOGUE[one.call.measure].bounds
        if not low <= other.value <= high:
            bounds = f"is from {low:g} to {high:g}" if isfinite(high) else f"is at least {low:g}"
            percent = f', such as "{other.value:g}%"' if high < other.value <= 100 else ""
            raise ExpressionError(
                f"'{_words(node)}': {one.call.measure} {bounds}; expected a number that it can be{percent}"
            )


def _product(one: str | None, other: str | None) -> str | None:
    if one in (None, "1"):
        return other if other is not None else one
    return one if other in (None, "1") else None


def _words(node: ast.AST) -> str:
    """The node as a message quotes it."""
    return _short(_whole(node))


def _whole(node: ast.AST) -> str:
    try:
        return _quoted(ast.unparse(node))
    except RecursionError:
        return "…"


def _quoted(text: str) -> str:
    """With texts in the quotation marks that claims have, where none of them has such a mark inside."""
    return text if '"' in text else text.replace("'", '"')


def _short(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def _expected() -> str:
    return "expected numbers, texts with units, measures, + - * /, comparisons, and, or, not"
