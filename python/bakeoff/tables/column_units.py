"""The unit of a column and the values that it can have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf

from bakeoff.expressions.nodes import TEXT
from bakeoff.measure.catalogue import SHARE
from bakeoff.results.series_units import unit_in
from bakeoff.scenario import units
from bakeoff.tables.cells import form_of, limits


@dataclass(frozen=True)
class Kind:
    """What the values of a column are; `unit` is `TEXT`, a base unit, or empty for plain numbers."""

    unit: str
    bounds: tuple[float, float] = (-inf, inf)
    labels: frozenset[str] = frozenset()
    """Texts among the values, as they are written."""
    bare: bool = True
    """Whether a number beside it needs no unit."""


def of_column(key: str, values: Sequence[object]) -> Kind:
    """The kind of a column by its name, or of an axis by its labels."""
    if key.startswith("axis_"):
        return _of_labels([str(value) for value in values if value is not None])
    texts = frozenset(value for value in values if isinstance(value, str))
    if texts:
        return Kind(TEXT, labels=texts)
    bounds = limits(key)
    unit = "1" if form_of(key).unit == "%" or bounds == SHARE else (unit_in(key) or "").replace("byte", "B")
    return Kind(unit, bounds, bare=unit not in ("s", "bit/s"))


def _of_labels(labels: Iterable[str]) -> Kind:
    known = frozenset(labels)
    found = [each for label in known if (each := units.si(label)) is not None]
    named = {unit for value, unit in found if unit or value}  # 0 needs no unit
    if not found or len(named) > 1:
        return Kind(TEXT, labels=known)
    unit = named.pop() if named else ""
    return Kind(unit, labels=known, bare=unit not in ("s", "bit/s", "B", "1"))
