"""A number as people read it in one cell of a table: its unit, its digits, its asterisk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bakeoff.present.columns import clean, number

if TYPE_CHECKING:
    from bakeoff.present.rows import Row
    from bakeoff.present.where import Value

_SECONDS: Final = ("window_from_s", "window_to_s", "from_s", "to_s", "start_s", "stop_s")
_SHARES: Final = {"utilisation": ".1%", "loss": ".2%", "share": ".0%", "mark_fraction": ".2%"}


def shown(name: str, value: Value) -> str:
    """A value as people read it: rates in Mbit/s, times in ms (moments in s), shares in per cent."""
    if value is None:
        return ""
    if isinstance(value, str):
        return clean(value)
    unit = unit_of(name)
    share = next((form for word, form in _SHARES.items() if name == word or name.endswith(f"_{word}")), None)
    if unit == "Mbit/s":
        text = number(value / 1e6, ".2f")
    elif unit == "ms":
        text = number(value * 1e3, ".1f" if abs(value) >= 1e-4 or not value else ".3f")
    elif share is not None:
        text = number(value, share)
    else:
        text = f"{value:.0f}" if unit != "s" and value == round(value) else f"{value:.4g}"
    return text


def starred(row: Row, cell: str) -> str:
    """A cell whose number averages over what changes in the window has an asterisk."""
    return f"{cell}*" if cell and row.changes else cell


def unit_of(name: str) -> str:
    """The unit that people see of a number of this name: Mbit/s, ms or s; empty if it has none."""
    if name.endswith("_bps"):
        return "Mbit/s"
    if name in _SECONDS or name.endswith(("startup_s", "stalled_s")):
        return "s"
    return "ms" if name.endswith("_s") else ""


def mbit(bps: float | None) -> str:
    """A rate in Mbit/s."""
    return number(None if bps is None else bps / 1e6, ".2f")


def milli(seconds: float | None) -> str:
    """A time in ms."""
    return "-" if seconds is None else f"{seconds * 1e3:.1f}"
