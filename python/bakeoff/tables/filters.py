"""Which rows of a table are shown, and in which order.

A condition is an expression (`bakeoff.expressions`) over columns: `qdisc == "pie" and jain < 0.9`,
`queue_delay_p99_s > 20ms`, `"codel" in qdisc`, `not (n == 1 or drops > 0)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, Final

from bakeoff.errors import MeasureError, TableError
from bakeoff.expressions.grammar import ExpressionError, Grammar
from bakeoff.expressions.nodes import NOTHING, TEXT, TRUTH, Apply, Constant, Leaf, Node, natural, value_of, walk
from bakeoff.scenario import units
from bakeoff.tables import column_units
from bakeoff.tables.column_units import Kind

Value = str | int | float | None
Record = Mapping[str, Value]

_LISTED: Final = 12
"""Names that a message lists; of more it names the near ones."""


def select(records: Sequence[Record], condition: str) -> list[int]:
    """The places of the records for which the condition holds.

    A comparison with a number that a row does not have is false, and a row that lacks a number in a sum or a function
    is left out. BakeoffError names what is no condition, a column that no row has, a number without the column's unit,
    and one that no row can have.
    """
    try:
        read = _Condition(records, condition)
        root = read.truth(read.read())
    except ExpressionError as error:
        raise TableError(f"--where: {error}") from None
    if not any(isinstance(node, Leaf) for node in walk(root)):
        raise TableError(f"--where: '{condition}' contains no column; {read.expected}")
    rows = zip(*read.columns.values(), strict=True)
    return [place for place, row in enumerate(rows) if _holds(root, dict(zip(read.columns, row, strict=True)))]


def _holds(root: Node, row: Record) -> bool:
    try:
        return bool(value_of(root, row))
    except MeasureError:
        return False


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
        hint = f"; expected one of: {', '.join(known)}"
    else:
        hint = "; expected one of those that --columns '?' lists"
    if option == "--where":
        hint += f', or a text in quotes, "{name[:60]}"'
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
    found = value if kind.unit == TEXT else _number(value)
    return (1, natural(str(found))) if isinstance(found, str) else (0, found)


def _number(value: Value) -> Value:
    """A label as the number that it says, in its base unit; others stay."""
    return _si(value) if isinstance(value, str) else value


@lru_cache(maxsize=4096)
def _si(label: str) -> float | str:
    found = units.si(label)
    return label if found is None else found[0]


class _Condition(Grammar):
    """A condition over columns, with their values in all rows."""

    expected = """expected comparisons of columns, such as 'qdisc == "pie" and jain < 0.9'"""

    def __init__(self, records: Sequence[Record], condition: str) -> None:
        super().__init__(condition, {name for name in _names(records) if not name.isidentifier()})
        self._records = records
        self.columns: dict[str, list[Value]] = {}
        """By the keys of leaves."""

    def name(self, word: str) -> Node:
        if word == "None":
            return Constant(None, NOTHING, word)
        resolve(word, self._records, "--where")
        kind = _kind(word, self._records)
        values = [lookup(record, word) for record in self._records]
        self.columns[word] = values if kind.unit == TEXT else [_number(value) for value in values]
        return Leaf(word, kind.unit, kind.bounds, word, kind.labels, kind.bare)

    def part(self, one: Node, other: Node, words: str) -> Node:
        if not isinstance(other, Leaf) or not (isinstance(one, Leaf) or one.unit == TEXT):
            raise ExpressionError(
                f"'{words}'; expected a string in a column, such as '\"codel\" in qdisc', or a column in a list"
            )
        return Apply("in", (self._as_text(one), self._as_text(other)), TRUTH, words, 1)

    def truth(self, node: Node) -> Node:
        if node.unit != TRUTH and not isinstance(node, Leaf):
            raise ExpressionError(f"'{node.text}' is not a comparison; {self.expected}")
        return node

    def _as_text(self, node: Node) -> Node:
        """A column with its labels as they are written."""
        if not isinstance(node, Leaf):
            return node
        key = f"{node.text} as text"
        self.columns[key] = [lookup(record, node.text) for record in self._records]
        return Leaf(key, TEXT, node.bounds, node.text)


def _names(records: Sequence[Record]) -> Iterable[str]:
    """All names that `lookup` knows: columns, and those of a numbered flow, queue or probe by its name."""
    flows = {(key, record[key]) for record in records for key in _numbered(tuple(record))}
    keys = dict.fromkeys(key for shape in {tuple(record) for record in records} for key in shape)
    yield from (key.removeprefix("axis_") for key in keys)
    for number, name in flows:
        prefix = number.removesuffix("name")
        yield from (f"{name}_{key.removeprefix(prefix)}" for key in keys if key.startswith(prefix))
