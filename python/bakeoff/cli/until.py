"""`run --until 'jain ±2%'`: what it means, and what is said at the end."""

from __future__ import annotations

import re
from functools import partial
from math import floor, inf, log10
from typing import TYPE_CHECKING, Any

import typer

from bakeoff.errors import UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from bakeoff.campaign import Done
    from bakeoff.campaign.until import Goal, Repetitions
    from bakeoff.campaign.worker import Also
    from bakeoff.claims.expression import Expression
    from bakeoff.measure import Interval
    from bakeoff.scenario import Run

_FORM = re.compile(r"(.+?)\s*(?:±|\+/?-)\s*(.+)", re.DOTALL)


def goal_of(text: str) -> Goal:
    """What `jain ±2%` or `goodput("prague") ±0.5mbit` asks for. BakeoffError says what is wrong in it."""
    from bakeoff.campaign.until import Goal
    from bakeoff.claims import quantity
    from bakeoff.claims.evaluate import number_of

    match = _FORM.fullmatch(text.strip())
    if match is None:
        raise UsageError(
            f"--until: '{text}'; expected a measure, ± and half of the interval's width, such as 'jain ±2%'"
        )
    number, width = match.groups()
    expression = number_of(number)
    try:
        value, unit = quantity.parse(width)
    except ValueError as error:
        raise UsageError(f"--until: {error}") from None
    relative = width.strip().endswith("%")
    if not value > 0:
        raise UsageError(f"--until: '{width}'; expected more than 0")
    if not relative and unit is None and expression.unit in ("s", "bit/s"):
        meant = f"{width.strip()}{'ms' if expression.unit == 's' else 'mbit'}"
        raise UsageError(
            f"--until: '{width}' has no unit, and {number} is in {expression.unit}; expected for "
            f"example '{number} ±{meant}', or a width in %"
        )
    if not relative and None not in (unit, expression.unit) and unit != expression.unit:
        raise UsageError(
            f"--until: {number} is in {expression.unit}, and '{width}' is not; expected such a width, or %"
        )
    low, high = _range(expression)
    if not relative and value > high - low:
        raise UsageError(
            f"--until: '{width}': {number} is from {low:g} to {high:g}, so that every interval is narrower; expected "
            f"for example '{number} ±2%'"
        )
    return Goal(number, value, relative)


def _range(expression: Expression) -> tuple[float, float]:
    """The least and the most that a number can be which is one measure."""
    from bakeoff.claims.expression import Taken
    from bakeoff.measure.functions import CATALOGUE

    root = expression.root
    return CATALOGUE[root.call.measure].bounds if isinstance(root, Taken) else (-inf, inf)


class Until:
    """Repetitions that end when a number is known well enough; without a text, as many as the seeds say."""

    def __init__(self, text: str | None, seeds: int | None, max_seeds: int, *, last_failed: bool) -> None:
        """BakeoffError says what is wrong in the text."""
        if text is not None and last_failed:
            raise UsageError("--until and --last-failed both say which seeds are done; expected one of them")
        self._goal = goal_of(text) if text is not None else None
        self._least = seeds or 0
        self._repetitions: Repetitions | None = None
        self.most = seeds if text is None else max(max_seeds, self._least)
        """Seeds that there may be of each run; None where the scenario says it."""

    def begin(self, runs: list[Run]) -> list[Run]:
        """Those of the runs, made with all seeds that there may be, that are done in any case.

        BakeoffError if the text names a flow or a probe that none of them has.
        """
        if self._goal is None:
            return runs
        from bakeoff.campaign.until import Repetitions
        from bakeoff.claims.evaluate import check_number

        check_number(self._goal.number, (run for run in runs if run.seed == 1), "--until")
        self._repetitions = Repetitions(runs, self._goal, self._least)
        return self._repetitions.first()

    @property
    def also(self) -> Also | None:
        """What takes the number of each run."""
        if self._goal is None:
            return None
        from bakeoff.claims.evaluate import numbers

        return partial(numbers, texts=(self._goal.number,))

    @property
    def more(self) -> Callable[[Done, int], list[Run]] | None:
        """What asks for further seeds."""
        return self._repetitions.more if self._repetitions is not None else None

    def as_json(self) -> dict[str, Any]:
        """How many seeds each run took and what came out, in base units; nothing without a text."""
        if self._goal is None or self._repetitions is None:
            return {}
        rows = [
            {
                "run": each.name,
                "seeds": each.ended,
                "lost": each.lost,
                "mean": each.found and each.found["mean"],
                "ci95": each.found and each.found["ci95"],
                "reached": each.reached,
            }
            for each in self._repetitions.all
        ]
        return {"until": {"measure": self._goal.number, "method": _method(), "runs": rows}}

    def tell(self) -> None:
        """Say the same for people, and which runs did not get there."""
        if self._goal is None or self._repetitions is None:
            return
        several = self._repetitions.all
        typer.echo(f"{self._goal.number}: {_method()}")
        width = max(len(each.name) for each in several)
        for each in several:
            said = "no number" if each.found is None else _shown(each.found, self._goal)
            lost = f", {each.lost} without a number" if each.lost else ""
            end = "" if each.reached else ": not narrow enough"
            typer.echo(printable(f"  {each.name:<{width}}  {each.ended:>3} seeds  {said}{lost}{end}"))
        missed = sum(not each.reached for each in several)
        if missed:
            typer.echo(f"{missed} of {len(several)} runs did not get there; --resume with a larger --max-seeds goes on")


def _method() -> str:
    from bakeoff.campaign.until import METHOD

    return METHOD


def _shown(found: Interval, goal: Goal) -> str:
    from bakeoff.claims import quantity
    from bakeoff.claims.evaluate import number_of
    from bakeoff.measure import ends

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
