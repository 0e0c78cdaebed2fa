"""Numbers with units, as expressions have them: `50ms`, `44.25 Mbit/s`, `20%`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite
from typing import Final, NamedTuple

from bakeoff.scenario import units

UNITS: Final = {
    "s": "ns, us, ms, s, min", "bit/s": "bit, kbit, mbit, gbit", "1": "%", "packet": "packets", "1/s": "/s",
    "B": "B, kB, MB",
}  # fmt: skip
"""The base units, each with the units that texts may have."""
KINDS: Final = {
    "s": "a time", "bit/s": "a rate", "B": "a size", "1": "a share", "packet": "a number of packets",
    "1/s": "a frequency", "": "a number without a unit", "text": "a string", "None": "None",
}  # fmt: skip
FORM: Final = "a number with a unit, such as '50ms', '10 Mbit/s' or '20%'"

_WORD: Final = re.compile(r"[A-Za-zµ%/]+(?=\s*$)")
_LONGEST: Final = 40


class Quantity(NamedTuple):
    """A number in its base unit; the unit is None where nothing says it."""

    value: float
    unit: str | None


def parse(text: str) -> Quantity:
    """`50ms` as 0.05 s. ValueError says what is wrong with the text."""
    found = units.si(text) if len(text) <= _LONGEST else None
    if found is not None and found[1] in ("", *UNITS):
        return Quantity(found[0], found[1] or None)
    word = _WORD.search(text[:_LONGEST])
    if word is not None and units.si(text[: word.start()]) is not None:
        raise ValueError(f"'{text}' has an unknown unit '{word[0]}'; expected one of {', '.join(UNITS.values())}")
    raise ValueError(f"'{text[:_LONGEST]}': invalid quantity; expected {FORM}")


def example(unit: str | None) -> str:
    """A quantity of a base unit as a message shows what was expected."""
    known = {"s": ' such as "20ms"', "bit/s": ' such as "50mbit"', "B": ' such as "10kB"', "1": ' such as 0.9 or "90%"'}
    return KINDS[unit or ""] + known.get(unit or "", "")


def with_unit(number: float, unit: str | None) -> str:
    """A number that was written without its unit, with the one that was probably meant."""
    match unit:
        case "s":
            return f"{number:g}ms" if abs(number) >= 1 else f"{1000 * number:g}ms"
        case "bit/s":
            return f"{number:g}mbit" if abs(number) < 1e4 else units.written(number, "bit/s")
    return f"{number:g}{'B' if unit == 'B' else '%'}"


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
