"""Which rows of a table are shown, and in which order: a small language of comparisons over column names.

`qdisc == "pie" and jain < 0.9`, `queue_delay_p99_s > "20ms"`, `"codel" in qdisc`, `not (n == 1 or drops > 0)`. It has
column names, numbers, texts, lists, `and`, `or`, `not`, `==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not in` and
parentheses, and nothing else: a word is looked up in the row, never executed.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from bakeoff.errors import BakeoffError

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


def natural(label: str) -> list[str | int]:
    """A sort key that puts 20ms before 160ms."""
    return [int(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+)", label))]


def select(records: Sequence[Record], condition: str) -> list[int]:
    """The places of the records for which the condition holds.

    A comparison with a number that a row does not have is false. BakeoffError names what is no condition, and a column
    that no row has.
    """
    try:
        tree = ast.parse(condition.strip(), mode="eval")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise BakeoffError(f"--where: '{condition}' cannot be read; {_FORM}") from None
    _check(tree.body, condition, records, 0)
    return [i for i, record in enumerate(records) if _truth(tree.body, record, condition)]


def order(records: Sequence[Record], columns: str) -> list[int]:
    """The places of the records in the order of one or several columns; `-jain` begins with the largest.

    What a row does not have stands last. BakeoffError for a column that no row has.
    """
    places = list(range(len(records)))
    for word in reversed([word.strip() for word in columns.split(",")]):
        name = resolve(word.removeprefix("-"), records, "--sort")
        values = [lookup(record, name) for record in records]
        known = [i for i in places if values[i] is not None]
        known.sort(key=lambda i: _key(values[i]), reverse=word.startswith("-"))
        places = known + [i for i in places if values[i] is None]
    return places


def resolve(name: str, records: Iterable[Record], option: str) -> str:
    """The name if some row has such a column, axis or flow's column (see `lookup`); else BakeoffError."""
    several = list(records)
    if any(_find(record, name) is not None for record in several):
        return name
    known = list(dict.fromkeys(key.removeprefix("axis_") for record in several for key in record))
    near = get_close_matches(name, known, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    raise BakeoffError(f"{option}: no column '{name}'{hint}; there are: {', '.join(known)}")


def lookup(record: Record, name: str) -> Value:
    """The value of a column, an axis (`qdisc` for `axis_qdisc`) or a flow's column (`prague_goodput_bps`)."""
    found = _find(record, name)
    return None if found is None else record[found]


def _find(record: Record, name: str) -> str | None:
    for key in (name, f"axis_{name}"):
        if key in record:
            return key
    for key, flow in record.items():
        if isinstance(flow, str) and key.endswith("_name") and name.startswith(f"{flow}_"):
            own = key.removesuffix("name") + name.removeprefix(f"{flow}_")
            if own in record:
                return own
    return None


def _key(value: Value) -> tuple[int, Any]:
    return (0, value) if isinstance(value, int | float) else (1, natural(str(value)))


def _check(node: ast.expr, condition: str, records: Sequence[Record], depth: int) -> None:
    """That the tree holds nothing but the language, before any of it is used."""
    if depth > _DEEPEST:
        raise BakeoffError(f"--where: '{condition[:60]}…' is nested too deeply")
    match node:
        case ast.BoolOp():
            parts = node.values
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            parts = [node.operand]
        case ast.Compare():
            parts = [node.left, *node.comparators]
        case ast.List() | ast.Tuple():
            parts = node.elts
        case ast.Name():
            resolve(node.id, records, "--where")
            return
        case ast.Constant(value=str() | int() | float() | None):
            return
        case _:
            raise BakeoffError(f"--where: '{ast.unparse(node)}' in '{condition}' is not understood; {_FORM}")
    for part in parts:
        _check(part, condition, records, depth + 1)


def _truth(node: ast.expr, record: Record, condition: str) -> bool:
    match node:
        case ast.BoolOp(op=ast.And()):
            return all(_truth(part, record, condition) for part in node.values)
        case ast.BoolOp():
            return any(_truth(part, record, condition) for part in node.values)
        case ast.UnaryOp(op=ast.Not()):
            return not _truth(node.operand, record, condition)
        case ast.Compare():
            sides = [node.left, *node.comparators]
            return all(
                _holds(op, left, right, record) for op, left, right in zip(node.ops, sides, sides[1:], strict=False)
            )
        case ast.Name():
            return bool(lookup(record, node.id))
        case _:
            raise BakeoffError(f"--where: '{ast.unparse(node)}' in '{condition}' is no comparison; {_FORM}")


def _holds(op: ast.cmpop, left: ast.expr, right: ast.expr, record: Record) -> bool:
    one, other = _value(left, record), _value(right, record)
    if isinstance(op, ast.In | ast.NotIn):
        if isinstance(other, list):
            inside = any(_same(one, part) for part in other)
        else:
            inside = one is not None and other is not None and str(one) in str(other)
        return inside == isinstance(op, ast.In)
    if one is None or other is None:
        return isinstance(op, ast.Eq | ast.NotEq) and _ORDER[type(op)](one, other)
    one, other = _alike(one, other)
    return _ORDER[type(op)](one, other)


def _same(one: Any, other: Any) -> bool:  # noqa: ANN401 values of a row
    if one is None or other is None:
        return one is other
    one, other = _alike(one, other)
    return bool(one == other)


def _alike(one: Any, other: Any) -> tuple[Any, Any]:  # noqa: ANN401 values of a row
    """Both as numbers if both can be (`"20ms"` beside a number of seconds), else as texts in natural order."""
    numbers = [_number(side) for side in (one, other)]
    if None not in numbers and (not isinstance(one, str) or not isinstance(other, str)):
        return numbers[0], numbers[1]
    if isinstance(one, str) and isinstance(other, str):
        return (one, other) if one == other else (natural(one), natural(other))
    return natural(str(one)), natural(str(other))


def _number(value: Any) -> float | None:  # noqa: ANN401 values of a row
    """A number as it is; a text as a number, a rate in bit/s or a time in seconds."""
    if not isinstance(value, str):
        return float(value)
    from bakeoff import tc

    try:
        return float(value.removesuffix("%")) / (100 if value.endswith("%") else 1)
    except ValueError:
        pass
    for read in (tc.time, tc.rate):
        try:
            return read(value.replace(" ", ""))
        except BakeoffError:
            continue
    return None


def _value(node: ast.expr, record: Record) -> Any:  # noqa: ANN401 values of a row
    match node:
        case ast.Name():
            return lookup(record, node.id)
        case ast.List() | ast.Tuple():
            return [_value(part, record) for part in node.elts]
        case ast.UnaryOp(op=ast.USub()):
            number = _value(node.operand, record)
            return -number if isinstance(number, int | float) else None
        case ast.Constant():
            return node.value
        case _:
            raise BakeoffError(f"--where: '{ast.unparse(node)}' is no value; {_FORM}")
