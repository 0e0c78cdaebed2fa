"""The order of labels: numbers by their size, whatever their unit's prefix, and the rest by name."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import cache
from typing import Final

from bakeoff.scenario import units

_PART: Final = re.compile(r"((?<![\w.])-)?(\d+(?:\.\d+)?(?:e[-+]?\d+)?)([a-z%/]*)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:e[-+]?[0-9]+)?)\s*([a-zA-Z%/]*)")


_SHOWN: Final[dict[str, tuple[Fraction | int, str]]] = {
    "s": (1000, "ms"), "bit/s": (Fraction(1, 10**6), "Mbit/s"), "B": (Fraction(1, 1000), "kB"),
    "packet": (1, "packets"), "1": (100, "%"), "1/s": (1, "1/s"),
}  # fmt: skip
"""How many of the unit that an axis has are one of a base unit."""


@cache
def _unit(word: str) -> tuple[float, str] | None:
    """How many of the unit that an axis has are one of a label's, in small letters."""
    found = units.unit_of("packet" if word == "p" else word)
    if found is None:
        return (1.0, "") if not word else None
    scale, unit = _SHOWN[found[1]]
    return float(found[0] * scale), unit


Key = tuple[tuple[int, float, str], ...]


def number(label: str) -> tuple[float, str] | None:
    """The number and the unit of a label: `(40.0, 'ms')` of `40ms`, `(1000.0, 'Mbit/s')` of `1Gbit`.

    None if it is no number, perhaps with a unit.
    """
    match = _NUMBER.fullmatch(label.strip())
    found = None if match is None else _unit(match[2].lower())
    return None if match is None or found is None else (float(match[1]) * found[0], found[1])


def by_value(label: str) -> Key:
    """A sort key: `5mbit` before `10.57mbit`, `100mbit` and `1gbit`; numbers within names too, `s2` before `s10`."""
    whole = number(label)
    if whole is not None:
        return ((0, whole[0], whole[1]),)
    found: list[tuple[int, float, str]] = []
    end = 0
    for match in _PART.finditer(label):
        if match.start() > end:
            found.append((1, 0.0, label[end : match.start()].lower()))
        scale, unit = _unit(match[3].lower()) or (1.0, match[3].lower())
        found.append((0, float((match[1] or "") + match[2]) * scale, unit))
        end = match.end()
    if end < len(label):
        found.append((1, 0.0, label[end:].lower()))
    return (*found, (2, 0.0, label))
