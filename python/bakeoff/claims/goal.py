"""`jain ±2%`: how well the mean of an expression over seeds has to be known, in the language of claims."""

from __future__ import annotations

import re
from functools import partial
from math import floor, log10
from typing import TYPE_CHECKING, Final

from bakeoff.campaign.until import Goal, Repetitions
from bakeoff.claims.evaluate import check_number, number_of, numbers
from bakeoff.errors import UsageError
from bakeoff.expressions import quantity
from bakeoff.measure import ends

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bakeoff.campaign.worker import Also
    from bakeoff.measure import Interval
    from bakeoff.scenario import Run

_FORM: Final = re.compile(r"(.+?)\s*(?:±|\+/?-)\s*(.+)", re.DOTALL)


def goal_of(text: str, place: str = "--until") -> Goal:
    """What `jain ±2%` or `goodput("prague") ±0.5mbit` asks for. BakeoffError says what is wrong in it."""
    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"{place}: '{text}'; expected a measure, ± and the half-width of the interval, such as 'jain ±2%'"
        )
    number, width = match.groups()
    expression = number_of(number)
    try:
        value, unit = quantity.parse(width)
    except ValueError as error:
        raise UsageError(f"{place}: {error}") from None
    relative = width.strip().endswith("%")
    if not value > 0:
        raise UsageError(f"{place}: '{width}'; expected more than 0")
    if not relative and unit is None and expression.unit in ("s", "bit/s"):
        meant = f"{width.strip()}{'ms' if expression.unit == 's' else 'mbit'}"
        raise UsageError(
            f"{place}: '{width}' has no unit; expected {expression.unit}, for "
            f"example '{number} ±{meant}', or a width in %"
        )
    if not relative and None not in (unit, expression.unit) and unit != expression.unit:
        raise UsageError(f"{place}: unit of '{width}' does not match {number}; expected {expression.unit} or %")
    low, high = expression.limits
    if not relative and value > high - low:
        raise UsageError(
            f"{place}: '{width}': wider than the range of {number}, {low:g} to {high:g}; expected "
            f"for example '{number} ±2%'"
        )
    return Goal(number, value, relative)


def repetitions(runs: Sequence[Run], goal: Goal, least: int, place: str = "--until") -> Repetitions:
    """The seeds to do of each run until the goal is reached; `runs` are made with all seeds that there may be.

    BakeoffError if the goal names a flow or a probe that no run has.
    """
    check_number(goal.number, (run for run in runs if run.seed == runs[0].seed), place)
    return Repetitions(runs, goal, least)


def also(goal: Goal) -> Also:
    """What takes the goal's number of each run."""
    return partial(numbers, texts=(goal.number,))


def written(found: Interval, goal: Goal) -> str:
    """The mean with its interval and unit, and the interval's share of the mean for a goal in percent."""
    expression = number_of(goal.number)
    unit, mean, half = expression.unit, found["mean"], found["ci95"]
    both = ends(found, expression.limits)
    if half is None or both is None:
        return quantity.formatted(mean, unit)
    share = f" ({100 * half / abs(mean):.2g} %)" if goal.relative and mean else ""
    if unit in (None, "1"):
        places = 3 if half <= 0 else min(6, max(0, 1 - floor(log10(half))))
        cut = both[0] > mean - half or both[1] < mean + half
        around = f"[{both[0]:.{places}f}, {both[1]:.{places}f}]" if cut else f"± {half:.{places}f}"
        return f"{mean:.{places}f} {around}{share}"
    return quantity.spread(mean, half, both, unit) + share
