"""A number as people read it in one cell of a table: its unit, its digits, its interval, its asterisk."""

from __future__ import annotations

from math import floor, inf, isfinite, log10
from typing import TYPE_CHECKING, Final, NamedTuple

from bakeoff.measure import Interval, ends, partly
from bakeoff.measure.catalogue import ANY_SIGN, DISPLAY, FROM_ZERO, Measure
from bakeoff.measure.functions import CATALOGUE
from bakeoff.results.series_units import unit_in
from bakeoff.text.columns import clean, number

if TYPE_CHECKING:
    from bakeoff.tables.filters import Value
    from bakeoff.tables.rows import Row

_IN_SECONDS: Final = ("window_from_s", "window_to_s", "from_s", "to_s", "start_s", "stop_s")
"""Moments of a run."""
_DECIMALS: Final = {"Mbit/s": 2, "ms": 1, "%": 2}
"""By the unit of the cell; other numbers have as many as they need."""
_ANY_SIGN: Final = ("log_ratio",)


class Form(NamedTuple):
    """How people see a number."""

    scale: float
    """What it is multiplied with."""
    unit: str
    """The unit that it then has; `%` of a share, and empty if it has none."""
    decimals: int | None
    """None: as many as the number needs."""

    def digits(self, value: float, like: float | None = None) -> str:
        """The number in the base unit as digits in this one, without the unit; with the decimals that `like` has."""
        scaled, model = (one * self.scale for one in (value, value if like is None else like))
        if self.decimals is None:
            return f"{scaled:.0f}" if scaled == round(scaled) else f"{scaled:.4g}"
        return number(scaled, f".{decimals(model, self.decimals)}f")


def form_of(name: str) -> Form:
    """How people see a number of this column, or place of summary.json: rates in Mbit/s, times in ms, shares in %.

    Moments, and what takes seconds, are in s.
    """
    found = _measure(name)
    if found is not None:
        scale, unit = found.display
        return Form(scale, unit, _DECIMALS.get(unit) if found.decimals is None else found.decimals)
    if name in _IN_SECONDS:
        return Form(1.0, "s", None)
    unit = unit_in(name) or ""
    scale, unit = DISPLAY.get(unit, (1.0, unit))
    return Form(scale, unit, _DECIMALS.get(unit))


def limits(name: str) -> tuple[float, float]:
    """The least and the greatest value of a column, or of a place of summary.json, in the base unit."""
    found = _measure(name)
    if found is not None:
        return found.bounds
    return ANY_SIGN if name.endswith(_ANY_SIGN) else FROM_ZERO


def _measure(name: str) -> Measure | None:
    return CATALOGUE.of_path(name) if "." in name else CATALOGUE.of_column(name)


def decimals(value: float, least: int) -> int:
    """So many decimals, or as many as it takes to show two digits of a number: 0.0012 and never 0.00."""
    tiny = value and isfinite(value) and abs(value) < 0.95 * 10.0**-least
    return 1 - floor(log10(abs(value))) if tiny else least


def formatted(name: str, value: Value) -> str:
    """A value as people read it beside a heading that says the unit; a share has its sign of per cent."""
    if value is None:
        return ""
    if isinstance(value, str):
        return clean(value)
    form = form_of(name)
    return form.digits(value) + ("%" if form.unit == "%" else "") + partly(value)


def with_interval(name: str, mean: float, half: float | None, most: float = inf) -> str:
    """A mean with half of its interval, `5.54%±2.10%`; with both ends where one is cut, `6.30% [0.00%, 16.40%]`.

    `most` is what it cannot exceed besides what its name says: the rate of a link.
    """
    few = partly(mean)
    text = formatted(name, float(mean))
    if half is None:
        return text + few
    form = form_of(name)
    sign = "%" if form.unit == "%" else ""
    least, top = limits(name)
    low, high = ends({"n": 2, "mean": mean, "ci95": half}, (least, min(top, most))) or (mean, mean)
    width = form.digits(half, mean)
    if (low > mean - half or high < mean + half) and float(width):
        return f"{text} [{form.digits(low, mean)}{sign}, {form.digits(high, mean)}{sign}]{few}"
    return f"{text}±{width}{sign}{few}"


def mean_text(mean: float | None, form: str) -> str:
    """A mean in a format, and over how many repetitions it is if not over all."""
    return number(mean, form) + partly(mean)


def rate(found: Interval | None, of: int, most: float = inf) -> str:
    """A rate in Mbit/s with half of its interval over `of` repetitions, at most that of the link."""
    if found is None:
        return ""
    few = f" ({found['n']} of {of})" if found["n"] < of else ""
    return with_interval("rate_bps", found["mean"], found["ci95"], most) + few


def in_si(name: str, found: Interval, of: int) -> str:
    """A mean in its base unit, with its interval and over how many of the repetitions it is if not over all."""
    few = f" ({found['n']} of {of})" if found["n"] < of else ""
    half, both = found["ci95"], ends(found, limits(name))
    if half is None or both is None:
        return f"{found['mean']:.6g}{few}" if few else ""
    cut = both[0] > found["mean"] - half or both[1] < found["mean"] + half
    return f"{found['mean']:.6g} " + (f"[{both[0]:.3g}, {both[1]:.3g}]" if cut else f"± {half:.2g}") + few


def starred(row: Row, cell: str) -> str:
    """A cell whose number averages over what changes in the window has an asterisk."""
    return f"{cell}*" if cell and row.changes else cell


def mbit(bps: float | None) -> str:
    """A rate in Mbit/s."""
    return formatted("rate_bps", bps)


def milli(seconds: float | None) -> str:
    """A time in ms."""
    return formatted("time_s", seconds) or "-"


def percent(parts: list[float]) -> list[str]:
    """Parts of a whole in whole per cent that add up to what they are together: 47.5 and 52.5 are 48 and 52.

    Each is rounded down, and those that lose most get what is missing (the method of the largest remainder). What
    rounds to nothing and is not nothing is `<1%`.
    """
    scaled = [100 * part for part in parts]
    floors = [floor(value + 1e-9) for value in scaled]
    missing = round(sum(scaled)) - sum(floors)
    order = sorted(range(len(parts)), key=lambda i: floors[i] - scaled[i])
    for i in order[: max(missing, 0)]:
        floors[i] += 1
    return ["<1%" if part > 0 and not whole else f"{whole}%" for part, whole in zip(parts, floors, strict=True)]
