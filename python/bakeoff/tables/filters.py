"""Which rows of a table are shown, and in which order: a small language of comparisons over column names.

`qdisc == "pie" and jain < 0.9`, `queue_delay_p99_s > "20ms"`, `"codel" in qdisc`, `not (n == 1 or drops > 0)`. It has
column names, numbers, texts, lists, `and`, `or`, `not`, `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not in` and
parentheses, and nothing else: a word is looked up in the row, never executed. A number for a column with a unit has a
unit, too, and lies within the column's possible values.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from itertools import pairwise
from math import isfinite
from typing import Any, Final

from bakeoff.errors import BakeoffError, TableError
from bakeoff.tables import column_units
from bakeoff.tables.column_units import Kind, Unit

Value = str | int | float | None
Record = Mapping[str, Value]

_ORDER: Final[dict[type[ast.cmpop], Callable[[Any, Any], bool]]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FORM: Final = """expected comparisons of columns, such as 'qdisc == "pie" and jain < 0.9'"""
_DEEPEST: Final = 50
_LONGEST: Final = 2000
"""Characters of a condition."""
_LISTED: Final = 12
"""Names that a message lists; of more it names the near ones."""
_PLACEHOLDER: Final = re.compile(r"_column(\d+)_")
_DOTTED: Final = r"[^\W\d]\w*(?:\.\w+|\[\w+\])+"
_TEXT: Final = r"""'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*\""""


def natural(label: str) -> list[str | int]:
    """A sort key that puts 20ms before 160ms."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+)", label))]


def select(records: Sequence[Record], condition: str) -> list[int]:
    """The places of the records for which the condition holds.

    A comparison with a number that a row does not have is false. BakeoffError names what is no condition, a column that
    no row has, a number without the column's unit, and one that no row can have.
    """
    return _Condition(records, condition).places()


def order(records: Sequence[Record], columns: str) -> list[int]:
    """The places of the records in the order of one or several columns; `-jain` begins with the largest.

    What a row does not have stands last. BakeoffError for a column that no row has.
    """
    places = list(range(len(records)))
    for word in reversed([word.strip() for word in columns.split(",")]):
        name = resolve(word.removeprefix("-"), records, "--sort")
        kind = _kind(name, records)
        values = [lookup(record, name) for record in records]
        known = [i for i in places if values[i] is not None]
        known.sort(key=lambda i: _key(values[i], kind), reverse=word.startswith("-"))
        places = known + [i for i in places if values[i] is None]
    return places


def resolve(name: str, records: Iterable[Record], option: str) -> str:
    """The name if some row has such a column, axis or flow's column (see `lookup`); else BakeoffError."""
    several = list(records)
    if any(_find(record, name) is not None for record in several):
        return name
    known = list(dict.fromkeys(key.removeprefix("axis_") for record in several for key in record))
    near = get_close_matches(name[:60], known, n=3)
    near += [each for each in known if name in each and each not in near][: 3 - len(near)]
    if near:
        hint = f"; did you mean {', '.join(map(repr, near))}? --columns '?' lists all"
    elif len(known) <= _LISTED:
        hint = f"; there are: {', '.join(known)}"
    else:
        hint = "; expected one of those that --columns '?' lists"
    raise TableError(f"{option}: no column '{name[:60]}'{hint}")


def lookup(record: Record, name: str) -> Value:
    """The value of a column, an axis (`qdisc` for `axis_qdisc`) or a flow's column (`prague_goodput_bps`)."""
    found = _find(record, name)
    return None if found is None else record[found]


def _find(record: Record, name: str) -> str | None:
    for key in (name, f"axis_{name}"):
        if key in record:
            return key
    for key in _numbered(tuple(record)):
        flow = record[key]
        if isinstance(flow, str) and name.startswith(f"{flow}_"):
            own = key.removesuffix("name") + name.removeprefix(f"{flow}_")
            if own in record:
                return own
    return None


@lru_cache(maxsize=256)  # thousands of rows have the same columns
def _numbered(keys: tuple[str, ...]) -> tuple[str, ...]:
    """The columns with the names of numbered flows, queues and probes: `flow1_name`."""
    return tuple(key for key in keys if key.endswith("_name"))


def _kind(name: str, records: Sequence[Record]) -> Kind:
    keys = [_find(record, name) for record in records]
    key = next(key for key in keys if key is not None)
    values = [record[key] for record, key in zip(records, keys, strict=True) if key is not None]
    return column_units.of_column(key, values)


def _key(value: Value, kind: Kind) -> tuple[int, Any]:
    number = _number(value) if kind.unit is not None else None
    return (1, natural(str(value))) if number is None else (0, number)


@lru_cache(maxsize=4096)
def _quantity(text: str) -> float | None:
    found = column_units.read(text)
    return None if found is None else found[0]


def _number(value: Value) -> float | None:
    return _quantity(value) if isinstance(value, str) else value


class _Condition:
    """A condition that was checked, over the rows that it was checked for."""

    def __init__(self, records: Sequence[Record], condition: str) -> None:
        self._records = records
        self._condition = condition if len(condition) <= 200 else f"{condition[:200]}…"
        self._columns: list[str] = []
        self._kinds: dict[str, Kind] = {}
        if len(condition) > _LONGEST:
            raise TableError(f"--where: has {len(condition):,} characters; expected at most {_LONGEST:,}")
        try:
            tree = ast.parse(self._with_placeholders(condition.strip()), mode="eval")
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise TableError(f"--where: '{self._condition}' cannot be read; {_hint(condition) or _FORM}") from None
        self._tree = tree.body
        self._check(self._tree, 0)

    def places(self) -> list[int]:
        """Of the records for which it holds."""
        return [i for i, record in enumerate(self._records) if self._truth(self._tree, record)]

    def _with_placeholders(self, condition: str) -> str:
        """The condition with a Python name for each column whose own name is none: `network.rtt`, `cubic-1_cc`."""
        odd = {name for name in _names(self._records) if not name.isidentifier()}
        known = "|".join(rf"(?<!\w){re.escape(name)}(?!\w)" for name in sorted(odd, key=len, reverse=True))
        form = "|".join(part for part in (rf"(?P<text>{_TEXT})", known, rf"(?<!\w){_DOTTED}") if part)

        def replaced(match: re.Match[str]) -> str:
            if match["text"] is not None:
                return match[0]
            self._columns.append(match[0])
            return f"_column{len(self._columns) - 1}_"

        return re.sub(form, replaced, condition)

    def _name(self, node: ast.Name) -> str:
        match = _PLACEHOLDER.fullmatch(node.id)
        return self._columns[int(match[1])] if match and int(match[1]) < len(self._columns) else node.id

    def _words(self, node: ast.AST) -> str:
        def own(match: re.Match[str]) -> str:
            return self._columns[int(match[1])] if int(match[1]) < len(self._columns) else match[0]

        try:
            text = _PLACEHOLDER.sub(own, ast.unparse(node))
        except (RecursionError, ValueError):  # a number of more digits than Python writes
            return "…"
        return text if len(text) <= 80 else f"{text[:77]}..."

    def _kind_of(self, name: str) -> Kind:
        if name not in self._kinds:
            resolve(name, self._records, "--where")
            self._kinds[name] = _kind(name, self._records)
        return self._kinds[name]

    def _check(self, node: ast.expr, depth: int) -> None:
        """That the tree holds nothing but the language, before any of it is used."""
        if depth > _DEEPEST:
            raise TableError(f"--where: '{self._condition[:60]}…' is nested too deeply")
        match node:
            case ast.BoolOp():
                for part in node.values:
                    self._check(part, depth + 1)
            case ast.UnaryOp(op=ast.Not()):
                self._check(node.operand, depth + 1)
            case ast.Compare():
                for op, left, right in _pairs(node):
                    self._compared(op, left, right, node)
            case ast.Name():
                self._kind_of(self._name(node))
            case ast.Constant(value=str() | int() | float() | None) | ast.List() | ast.Tuple():
                raise TableError(f"--where: '{self._words(node)}' in '{self._condition}' is no comparison; {_FORM}")
            case _:
                raise self._strange(node)

    def _strange(self, node: ast.AST) -> BakeoffError:
        return TableError(f"--where: '{self._words(node)}' in '{self._condition}' is not understood; {_FORM}")

    def _compared(self, op: ast.cmpop, left: ast.expr, right: ast.expr, whole: ast.Compare) -> None:
        """That both sides can be compared: of one unit, and a number that the column can have."""
        if isinstance(op, ast.In | ast.NotIn):
            self._contained(left, right, whole)
            return
        if type(op) not in _ORDER:
            raise self._strange(whole)
        self._quoted(left, right)
        for side in (left, right):
            self._is_value(side)
        columns = [side for side in (left, right) if isinstance(side, ast.Name)]
        match columns:
            case []:
                raise TableError(f"--where: '{self._words(whole)}' compares no column; {_FORM}")
            case [column]:
                self._beside(column, right if column is left else left, op, whole)
            case _:
                one, other = (self._kind_of(self._name(column)) for column in columns)
                if not _alike(one, other):
                    said = " and ".join(
                        _described(self._name(c), k) for c, k in zip(columns, (one, other), strict=True)
                    )
                    raise TableError(f"--where: '{self._words(whole)}': {said}; expected columns of one unit")

    def _quoted(self, left: ast.expr, right: ast.expr) -> None:
        """That no text lacks its quotes: `qdisc == pie`."""
        if not isinstance(left, ast.Name) or not isinstance(right, ast.Name):
            return
        name, word = self._name(left), self._name(right)
        lacking = all(_find(record, word) is None for record in self._records)
        if lacking and self._kind_of(name).labels:
            raise TableError(f"--where: no column '{word}'; expected {name} beside a text in quotes, \"{word}\"")

    def _contained(self, left: ast.expr, right: ast.expr, whole: ast.Compare) -> None:
        self._is_value(left)
        if isinstance(right, ast.List | ast.Tuple):
            for part in right.elts:
                self._is_value(part)
                if isinstance(left, ast.Name) and not isinstance(part, ast.Name):
                    self._beside(left, part, ast.Eq(), whole)
            return
        self._is_value(right)
        texts = (isinstance(side, ast.Name) or isinstance(_constant(side), str) for side in (left, right))
        if not all(texts) or not isinstance(right, ast.Name):
            raise TableError(
                f"--where: '{self._words(whole)}'; expected a text in a column, such as '\"codel\" in qdisc', or a "
                "column in a list"
            )

    def _is_value(self, node: ast.expr) -> None:
        match node:
            case ast.Name():
                self._kind_of(self._name(node))
            case ast.Constant(value=bool()):
                raise self._strange(node)
            case ast.Constant(value=str() | int() | float() | None):
                pass
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
                pass
            case _:
                raise self._strange(node)
        number = _constant(node)
        if isinstance(number, int | float) and not _is_finite(number):
            raise TableError(f"--where: '{self._words(node)}' is too large a number; expected at most 1e308")

    def _beside(self, column: ast.Name, node: ast.expr, op: ast.cmpop, whole: ast.Compare) -> None:
        """That the value is one that the column can have."""
        name, value = self._name(column), _constant(node)
        kind = self._kind_of(name)
        place = f"--where: '{self._words(whole)}'"
        if value is None:
            if not isinstance(op, ast.Eq | ast.NotEq):
                raise TableError(f"{place}; expected == None or != None")
            return
        if isinstance(value, str) and (kind.unit is None or value in kind.labels):
            return
        if kind.unit is None:
            raise TableError(f'{place}: {name} is a text; expected a text in quotes, such as "{value:g}"')
        found = column_units.read(value) if isinstance(value, str) else (float(value), "")
        if found is None:
            raise TableError(f"{place}: {_described(name, kind)}; expected {_example(kind.unit)}")
        number, unit = found
        if unit == "" and number and kind.unit in ("s", "bit/s", "B", "%"):
            raise TableError(
                f"{place}: {_described(name, kind)}, and '{value}' has no unit; expected for example "
                f'"{column_units.with_unit(number, kind.unit)}"'
            )
        if unit != kind.unit and number and (unit, kind.unit) not in (("", "1"), ("%", "1"), ("", "1/s")):
            raise TableError(
                f"{place}: {_described(name, kind)}, and '{value}' is {column_units.KINDS[unit]}; expected "
                f"{_example(kind.unit)}"
            )
        if not kind.low <= number <= kind.high:
            raise TableError(
                f"{place}: {name} {_bounds(kind)}; expected a value that it can have{_meant(kind, number)}"
            )

    def _truth(self, node: ast.expr, record: Record) -> bool:
        match node:
            case ast.BoolOp(op=ast.And()):
                return all(self._truth(part, record) for part in node.values)
            case ast.BoolOp():
                return any(self._truth(part, record) for part in node.values)
            case ast.UnaryOp():
                return not self._truth(node.operand, record)
            case ast.Compare():
                return all(self._holds(op, left, right, record) for op, left, right in _pairs(node))
            case ast.Name():
                return bool(lookup(record, self._name(node)))
        raise AssertionError(f"{node} was checked")

    def _holds(self, op: ast.cmpop, left: ast.expr, right: ast.expr, record: Record) -> bool:
        one = self._value(left, record)
        if isinstance(op, ast.In | ast.NotIn):
            if isinstance(right, ast.List | ast.Tuple):
                has_unit = self._has_unit(left, *right.elts)
                inside = any(_same(one, self._value(part, record), has_unit) for part in right.elts)
            else:
                other = self._value(right, record)
                inside = one is not None and other is not None and str(one) in str(other)
            return inside == isinstance(op, ast.In)
        other = self._value(right, record)
        if one is None or other is None:
            return isinstance(op, ast.Eq | ast.NotEq) and _ORDER[type(op)](one, other)
        if isinstance(op, ast.Eq | ast.NotEq):
            return _same(one, other, self._has_unit(left, right)) == isinstance(op, ast.Eq)
        return _ordered(op, one, other, self._has_unit(left, right))

    def _has_unit(self, *sides: ast.expr) -> bool:
        """Whether one of the sides is a column of numbers, so that texts such as `20ms` are quantities."""
        return any(isinstance(each, ast.Name) and self._kind_of(self._name(each)).unit is not None for each in sides)

    def _value(self, node: ast.expr, record: Record) -> Value:
        return lookup(record, self._name(node)) if isinstance(node, ast.Name) else _constant(node)


def _names(records: Sequence[Record]) -> Iterable[str]:
    """All names that `lookup` knows: columns, and those of a numbered flow, queue or probe by its name."""
    flows = {(key, record[key]) for record in records for key in _numbered(tuple(record))}
    keys = dict.fromkeys(key for shape in {tuple(record) for record in records} for key in shape)
    yield from (key.removeprefix("axis_") for key in keys)
    for number, name in flows:
        prefix = number.removesuffix("name")
        yield from (f"{name}_{key.removeprefix(prefix)}" for key in keys if key.startswith(prefix))


def _pairs(node: ast.Compare) -> Iterable[tuple[ast.cmpop, ast.expr, ast.expr]]:
    return (
        (op, left, right) for op, (left, right) in zip(node.ops, pairwise([node.left, *node.comparators]), strict=True)
    )


def _constant(node: ast.expr) -> Value:
    match node:
        case ast.Constant(value=str() | int() | float() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
    return None


def _is_finite(number: float) -> bool:
    try:
        return isfinite(number)
    except OverflowError:
        return False


def _alike(one: Kind, other: Kind) -> bool:
    shares = {"1", "%"}
    return one.unit == other.unit or {one.unit, other.unit} == shares


def _described(name: str, kind: Kind) -> str:
    return f"{name} is {'a text' if kind.unit is None else column_units.KINDS[kind.unit]}"


def _example(unit: Unit) -> str:
    known = {"s": '"20ms"', "bit/s": '"50mbit"', "B": '"10kB"', "1": '0.9 or "90%"', "%": '"1%"', "1/s": "2", "": "64"}
    return f"{column_units.KINDS[unit]} such as {known[unit]}"


def _bounds(kind: Kind) -> str:
    if isfinite(kind.high):
        return f"is from {kind.low:g} to {kind.high:g}"
    return f"is at least {kind.low:g}"


def _meant(kind: Kind, number: float) -> str:
    return f', such as "{column_units.with_unit(number, "%")}"' if kind.high < number <= 100 else ""


def _hint(condition: str) -> str:
    """What makes a condition unreadable, where that is a usual mistake."""
    bare = re.sub(_TEXT, "", condition)
    if found := re.search(r"(?<![\w.])\d+(?:\.\d+)?\s?(?:[a-zA-Zµ]+(?:/s)?|%)(?!\w)", bare):
        return f'expected quotes around a quantity: "{found[0]}"'
    if re.search(r"(?<![<>=!])=(?!=)", bare):
        return "expected '==' for equal"
    if found := re.search(r"&&?|\|\|?|!(?!=)|<>", bare):
        return f"expected 'and', 'or', 'not', '!='; there is no '{found[0]}'"
    return ""


def _same(one: Value, other: Value, quantities: bool) -> bool:
    if one is None or other is None or one == other:
        return one == other
    return quantities and None not in (numbers := (_number(one), _number(other))) and numbers[0] == numbers[1]


def _ordered(op: ast.cmpop, one: Value, other: Value, quantities: bool) -> bool:
    """By number if both are quantities, in natural order if both are texts; a text and a number have no order."""
    numbers = (_number(one), _number(other)) if quantities else (None, None)
    if None not in numbers:
        return _ORDER[type(op)](*numbers)
    if isinstance(one, str) and isinstance(other, str):
        return _ORDER[type(op)](natural(one), natural(other))
    return False
