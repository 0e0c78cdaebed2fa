"""`run --until 'jain ±2%'`: what it means, and what is said at the end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from bakeoff.errors import UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Callable

    from bakeoff.campaign import Done
    from bakeoff.campaign.until import Goal, Repetitions
    from bakeoff.campaign.worker import Also
    from bakeoff.scenario import Run


class Until:
    """Repetitions that end when a number is known well enough; without a text, as many as the seeds say."""

    def __init__(self, text: str | None, seeds: int | None, max_seeds: int, *, last_failed: bool) -> None:
        """BakeoffError says what is wrong in the text."""
        if text is not None and last_failed:
            raise UsageError("--until and --last-failed both say which seeds are done; expected one of them")
        self._goal = _goal(text) if text is not None else None
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
        from bakeoff.claims.goal import repetitions

        self._repetitions = repetitions(runs, self._goal, self._least)
        return self._repetitions.first()

    @property
    def also(self) -> Also | None:
        """What takes the number of each run."""
        if self._goal is None:
            return None
        from bakeoff.claims.goal import also

        return also(self._goal)

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
        from bakeoff.claims.goal import written

        several = self._repetitions.all
        typer.echo(f"{self._goal.number}: {_method()}")
        width = max(len(each.name) for each in several)
        for each in several:
            said = "no number" if each.found is None else written(each.found, self._goal)
            lost = f", {each.lost} without a number" if each.lost else ""
            end = "" if each.reached else ": not narrow enough"
            typer.echo(printable(f"  {each.name:<{width}}  {each.ended:>3} seeds  {said}{lost}{end}"))
        missed = sum(not each.reached for each in several)
        if missed:
            typer.echo(f"{missed} of {len(several)} runs did not get there; --resume with a larger --max-seeds goes on")


def _goal(text: str) -> Goal:
    from bakeoff.claims.goal import goal_of

    return goal_of(text)


def _method() -> str:
    from bakeoff.campaign.until import METHOD

    return METHOD
