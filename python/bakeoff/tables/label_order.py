"""The order of labels: numbers by their size, whatever their unit's prefix, and the rest by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Final

_PART: Final = re.compile(r"((?<![\w.])-)?(\d+(?:\.\d+)?(?:e[-+]?\d+)?)([a-z%/]*)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"(-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:e[-+]?[0-9]+)?)\s*([a-zA-Z%/]*)")


@cache
def _units() -> Mapping[str, tuple[float, str]]:
    """By the unit that a scenario writes, in small letters, how many it is of the one that an axis has."""
    from bakeoff.scenario import units

    return {
        **{unit: (float(seconds * 1000), "ms") for unit, seconds in units.TIMES.items()},
        **{unit: (bps / 1e6, "Mbit/s") for unit, bps in units.RATES.items()},
        **{f"{unit}/s": (bps / 1e6, "Mbit/s") for unit, bps in units.RATES.items()},
        **{unit: (size / 1e3, "kB") for unit, size in units.SIZES.items()},
        "p": (1.0, "packets"), "%": (1.0, "%"), "": (1.0, ""),
    }  # fmt: skip


Key = tuple[tuple[int, float, str], ...]


def number(label: str) -> tuple[float, str] | None:
    """The number and the unit of a label: `(40.0, 'ms')` of `40ms`, `(1000.0, 'Mbit/s')` of `1Gbit`.

    None if it is no number, perhaps with a unit.
    """
    match = _NUMBER.fullmatch(label.strip())
    if match is None or match[2].lower() not in _units():
        return None
    scale, unit = _units()[match[2].lower()]
    return float(match[1]) * scale, unit


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
        scale, unit = _units().get(match[3].lower(), (1.0, match[3].lower()))
        found.append((0, float((match[1] or "") + match[2]) * scale, unit))
        end = match.end()
    if end < len(label):
        found.append((1, 0.0, label[end:].lower()))
    return (*found, (2, 0.0, label))
