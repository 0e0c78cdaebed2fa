"""A line's colour on a light and on a dark ground."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Final

_DARK: Final = (0x14 / 255, 0x17 / 255, 0x1A / 255)
"""`--ground` of style.css."""
_CONTRAST: Final = 4.5
_STEPS: Final = 20
_BLACK: Final = 0.2


@cache
def light_and_dark(colour: str) -> tuple[str, str]:
    """The colour for a light ground, which is the same as in pictures, and for a dark one, as hexadecimal digits.

    The second is the same, or as much paler as lets it stand out: a contrast of 4.5, as WCAG 2.2 defines it from the
    relative luminances of both: (L1 + 0.05) / (L2 + 0.05). What is nearly black there is nearly white.
    """
    from bakeoff.plots.mpl import to_rgb

    given = to_rgb(colour)
    black = max(given) < _BLACK
    base = [1 - part for part in given] if black else given
    for step in range(_STEPS + 1):
        mixed = [part + (1 - part) * step / _STEPS for part in base]
        if contrast(mixed, _DARK) >= _CONTRAST:
            break
    return _hex(given), _hex(mixed)


def contrast(one: Sequence[float], other: Sequence[float]) -> float:
    """The contrast of two colours (red, green and blue from 0 to 1), from 1 to 21."""
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(rgb: Sequence[float]) -> float:
    linear = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in rgb)
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def _hex(rgb: Sequence[float]) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in rgb)
