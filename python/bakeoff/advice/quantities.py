"""The numbers of the advice in the units of its rows."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Final, NamedTuple

from bakeoff.measure import ends
from bakeoff.tables.cells import decimals
from bakeoff.text.columns import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bakeoff.advice.household import Advice, Choice, Variant
    from bakeoff.advice.numbers import Measure
    from bakeoff.measure import Interval

_SCALES: Final = {"ms": 1e3, "s": 1.0, "%": 100.0, "Mbit/s": 1e-6, "×": 1.0}
_IN_SECONDS: Final = ("page_p50_s", "page_p95_s", "video_stalled_s")


class Cell(NamedTuple):
    """A number as it is shown."""

    text: str
    """`16.0 ±0.1`, `7.8 [0, 20.6]`, `≥10.2`; empty if there is none."""
    bad: bool = False
    """It misses what is needed."""


class Row(NamedTuple):
    """A measure of all choices."""

    measure: Measure
    head: str
    """`arrives within (99 of 100 packets) [ms]`."""
    cells: tuple[Cell, ...]


class Group(NamedTuple):
    """What concerns one use of the line."""

    name: str
    rows: tuple[Row, ...]


def unit(measure: Measure) -> str:
    """The unit in which people read the measure."""
    if measure.unit == "s":
        return "s" if measure.key in _IN_SECONDS else "ms"
    return {"1": "%", "bit/s": "Mbit/s", "n": "×"}[measure.unit]


def scale(measure: Measure) -> float:
    """What a number is multiplied with to be in that unit."""
    return _SCALES[unit(measure)]


def groups(advice: Advice, variant: Variant) -> list[Group]:
    """The table: a row per measure, a cell per choice."""
    found: dict[str, list[Row]] = {}
    for measure in advice.measures:
        cells = tuple(cell(choice, measure) for choice in variant.choices)
        found.setdefault(measure.group, []).append(Row(measure, f"{measure.words} [{unit(measure)}]", cells))
    return [Group(name, tuple(rows)) for name, rows in found.items()]


def cell(choice: Choice, measure: Measure) -> Cell:
    """One number with its interval."""
    known = choice.interval(measure.key)
    if known is None:
        return Cell("")
    text = ("≥" if choice.means[measure.key].at_least else "") + figure(known["mean"] * scale(measure))
    return Cell(text + around(measure, known) + few(choice, known), bad=measure in choice.missed)


def few(choice: Choice, known: Interval) -> str:
    """` (2 of 5)`, where the others of the repetitions have no such number; empty if all have."""
    return f" ({known['n']} of {len(choice.each)})" if known["n"] < len(choice.each) else ""


def around(measure: Measure, known: Interval) -> str:
    """The interval behind a mean: ` ±2.1`, or both ends where one is cut to what is possible, ` [0, 20.6]`."""
    by, both = scale(measure), ends(known, limits(measure))
    if known["ci95"] is None or both is None:
        return ""
    mean, half = known["mean"], figure(known["ci95"] * by, like=known["mean"] * by)
    if not float(half):
        return ""
    if both[0] > mean - known["ci95"] or both[1] < mean + known["ci95"]:
        low, high = (figure(end * by, like=mean * by) for end in both)
        return f" [{low}, {high}]"
    return f" ±{half}"


def limits(measure: Measure) -> tuple[float, float]:
    """What is possible: no share above all, and nothing below zero."""
    return 0.0, 1.0 if measure.unit == "1" else inf


def figure(value: float, *, like: float | None = None) -> str:
    """Three digits of a number, or as many decimals as `like` has."""
    size = abs(value if like is None else like)
    if value == 0:
        return "0"
    usual = 0 if size >= 99.95 else 1 if size >= 9.995 else 2 if size >= 0.00995 else 3
    return f"{value:.{decimals(size, usual)}f}"


def head(choice: Choice) -> str:
    """`a queue for each flow (fq_codel)`."""
    return clean(choice.words.head if choice.words.head == choice.label else f"{choice.words.head} ({choice.label})")


def named(choices: Sequence[Choice], label: str) -> str:
    """The same of one among several."""
    return head(next(choice for choice in choices if choice.label == label))
