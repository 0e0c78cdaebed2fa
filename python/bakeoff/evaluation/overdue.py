"""Runs in small numbers, so that a control that never returns ends an evaluation after a few of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from bakeoff.campaign.parallel import OVERDUE

if TYPE_CHECKING:
    from bakeoff.campaign import Done
    from bakeoff.scenario import Run

More = Callable[["Done", int], Sequence["Run"]]
"""Which runs are to be done besides once one has ended, and so many wait."""
MOST: Final = 3
"""Runs that may take longer than their time limit before no other begins."""


class Unhurried:
    """The runs of an evaluation, as `campaign.run` asks for them."""

    def __init__(self, runs: Sequence[Run], jobs: int) -> None:
        self._left = deque(runs)
        self._ahead = 2 * jobs
        self._overdue: list[str] = []
        self.first = self._next(self._ahead)
        """Those that it begins with."""

    def more(self, done: Done, waiting: int) -> list[Run]:
        """Further runs after one has ended, while `waiting` have not begun."""
        if done.error is not None and done.error.startswith(OVERDUE):
            self._overdue.append(done.error)
        return [] if len(self._overdue) >= MOST else self._next(self._ahead - waiting)

    @property
    def left(self) -> dict[str, str]:
        """Why runs did not begin, by their keys."""
        why = f"not run, after {len(self._overdue)} others: {self._overdue[0]}" if self._overdue else ""
        return {run.key: why for run in self._left}

    def _next(self, count: int) -> list[Run]:
        return [self._left.popleft() for _ in range(min(max(count, 0), len(self._left)))]
