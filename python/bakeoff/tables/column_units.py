"""The unit of a column and the values that it can have, and quantities as a condition writes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf, isfinite
from typing import Final, Literal

from bakeoff.measure.catalogue import SHARE
from bakeoff.results.units import unit_in
from bakeoff.scenario import units
from bakeoff.tables.cells import form_of, limits

Unit = Literal["s", "bit/s", "B", "1", "%", "1/s", ""]
"""`1` is a share, `%` a label in per cent, `` a plain number."""

KINDS: Final[dict[str, str]] = {
    "s": "a time", "bit/s": "a rate", "B": "a size", "1": "a share", "%": "a percentage", "1/s": "a frequency",
    "": "a number without a unit",
}  # fmt: skip

_UNITS: Final[dict[str, Unit]] = {
    "s": "s",
    "bit/s": "bit/s",
    "B": "B",
    "1": "%",
    "%": "%",
    "1/s": "1/s",
    "packet": "",
    "": "",
}


@dataclass(frozen=True)
class Kind:
    """What the values of a column are; `unit` is None for texts."""

    unit: Unit | None
    low: float = -inf
    high: float = inf
    labels: frozenset[str] = frozenset()
    """Texts among the values, as they are written."""


def read(text: str) -> tuple[float, Unit] | None:
    """`20ms` as (0.02, "s"), `10 Mbit/s`, `5%` as (0.05, "%"), `64` as (64.0, ""); None if it is no quantity."""
    found = units.si(text)
    return None if found is None or not isfinite(found[0]) else (found[0], _UNITS[found[1]])


def of_column(key: str, values: Sequence[object]) -> Kind:
    """The kind of a column by its name, or of an axis by its labels."""
    if key.startswith("axis_"):
        return _of_labels([str(value) for value in values if value is not None])
    texts = frozenset(value for value in values if isinstance(value, str))
    if texts:
        return Kind(None, labels=texts)
    low, high = limits(key)
    unit = "1" if form_of(key).unit == "%" or (low, high) == SHARE else _UNITS.get(unit_in(key) or "", "")
    return Kind(unit, low, high)


def _of_labels(labels: Iterable[str]) -> Kind:
    known = frozenset(labels)
    found = [each for label in known if (each := read(label)) is not None]
    named = {unit for value, unit in found if unit or value}  # 0 needs no unit
    if not found or len(named) > 1:
        return Kind(None, labels=known)
    return Kind(named.pop() if named else "", labels=known)


def with_unit(number: float, unit: Unit) -> str:
    """A number that was written without its unit, with the one that was probably meant."""
    match unit:
        case "s":
            return f"{number:g}ms" if abs(number) >= 1 else f"{1000 * number:g}ms"
        case "bit/s":
            return f"{number:g}mbit" if abs(number) < 1e4 else units.written(number, "bit/s")
        case "B":
            return f"{number:g}B"
        case "1" | "%":
            return f"{number:g}%"
        case _:
            return f"{number:g}"
