"""The numbers of the advice in the units of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from bakeoff.present.columns import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bakeoff.advice import Advice, Choice, Variant
    from bakeoff.advice.numbers import Measure

_SCALES: Final = {"ms": 1e3, "s": 1.0, "%": 100.0, "Mbit/s": 1e-6, "×": 1.0}
_IN_SECONDS: Final = ("page_p50_s", "page_p95_s", "video_stalled_s")


class Cell(NamedTuple):
    """A number as it is shown."""

    text: str
    """`16.0 ±0.1`, `≥10.2`; empty if there is none."""
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
    """One number with the half width of its interval."""
    known = choice.interval(measure.key)
    if known is None:
        return Cell("")
    number = choice.means[measure.key]
    by = scale(measure)
    text = ("≥" if number.at_least else "") + figure(known["mean"] * by)
    around = figure((known["ci95"] or 0.0) * by, like=known["mean"] * by)
    return Cell(text if not float(around) else f"{text} ±{around}", bad=measure in choice.missed)


def figure(value: float, *, like: float | None = None) -> str:
    """Three digits of a number, or as many decimals as `like` has."""
    size = abs(value if like is None else like)
    if value == 0:
        return "0"
    decimals = 0 if size >= 99.95 else 1 if size >= 9.995 else 2 if size >= 0.00995 else 3
    return f"{value:.{decimals}f}"


def head(choice: Choice) -> str:
    """`a queue for each flow (fq_codel)`."""
    return clean(choice.words.head if choice.words.head == choice.label else f"{choice.words.head} ({choice.label})")


def named(choices: Sequence[Choice], label: str) -> str:
    """The same of one among several."""
    return head(next(choice for choice in choices if choice.label == label))
