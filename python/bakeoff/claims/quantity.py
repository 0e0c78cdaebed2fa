"""Numbers with units, as claims write them: `50ms`, `44.25 Mbit/s`, `20%`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite
from typing import Final, NamedTuple

UNITS: Final = {
    **{name: ("s", factor) for name, factor in (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0), ("min", 60.0))},
    **{
        prefix + unit: ("bit/s", factor)
        for prefix, factor in (("", 1.0), ("k", 1e3), ("m", 1e6), ("g", 1e9))
        for unit in ("bit", "bit/s")
    },
    "%": ("1", 0.01),
    "packets": ("packet", 1.0),
    "packet": ("packet", 1.0),
    "/s": ("1/s", 1.0),
}
"""Each unit's base unit, and how many of those it is."""
FORM: Final = "a number with a unit, such as '50ms', '10 Mbit/s' or '20%'"

_QUANTITY: Final = re.compile(r"\s*([-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]{1,2})?)\s*([A-Za-z/%]*)\s*")
_LONGEST: Final = 40


class Quantity(NamedTuple):
    """A number in its base unit; the unit is None where nothing says it."""

    value: float
    unit: str | None


def parse(text: str) -> Quantity:
    """`50ms` as 0.05 s. ValueError says what is wrong with the text."""
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        raise ValueError(f"'{text[:_LONGEST]}' is no quantity; expected {FORM}")
    number, word = match.groups()
    if not word:
        return Quantity(float(number), None)
    if word.lower() not in UNITS:
        raise ValueError(f"'{text}' has an unknown unit '{word}'; expected one of {', '.join(UNITS)}")
    unit, factor = UNITS[word.lower()]
    return Quantity(float(number) * factor, unit)


def formatted(value: float, unit: str | None) -> str:
    """A number in its base unit as people write it: three digits and a fitting prefix."""
    return several([value], unit)


def several(values: Sequence[float], unit: str | None, between: str = ", ") -> str:
    """Numbers of one base unit as people write them side by side: with one prefix, that of the largest."""
    known = [abs(value) for value in values if isfinite(value)]
    if len(known) < len(values):
        return between.join(
            several([value], unit) if isfinite(value) else _INFINITE.get(unit, "infinite") for value in values
        )
    factor, name = _prefix(max(known), unit)
    places = _places(max(known) * factor)
    return between.join(f"{value * factor:,.{places}f}" for value in values) + (f" {name}" if name else "")


def spread(mean: float, half: float, ends: tuple[float, float], unit: str | None) -> str:
    """A mean with half of its interval, `4.20 ± 0.30 s`; with both `ends` where one is cut: `0.95 [0.90, 1.00]`."""
    if ends[0] > mean - half or ends[1] < mean + half:
        factor, name = _prefix(max(map(abs, (mean, *ends))), unit)
        places = _places(abs(mean) * factor)
        low, high = (f"{end * factor:,.{places}f}" for end in ends)
        return f"{mean * factor:,.{places}f} [{low}, {high}]" + (f" {name}" if name else "")
    return several([mean, half], unit, " ± ")


_INFINITE: Final[dict[str | None, str]] = {"s": "never"}


def _prefix(largest: float, unit: str | None) -> tuple[float, str]:
    """By what a number is multiplied to be shown, and the unit that it then has."""
    match unit:
        case "s":
            return (1e3, "ms") if 0 < largest < 1 else (1.0, "s")
        case "bit/s":
            return (1e-6, "Mbit/s") if largest >= 1e6 else (1e-3, "kbit/s")
        case "packet":
            return 1.0, "packets"
        case "1/s":
            return 1.0, unit
    return 1.0, ""


def _places(largest: float) -> int:
    """Digits behind the point, so that three count."""
    return next((places for places, least in enumerate((100, 10, 0.1)) if largest >= least), 3) if largest else 0
