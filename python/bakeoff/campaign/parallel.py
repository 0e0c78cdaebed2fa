"""Runs at a time, wherever they are done: begun as workers are free, done again if a worker is lost, killed if late."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from bakeoff.campaign import signals, worker
from bakeoff.campaign.run_queue import Waiting
from bakeoff.campaign.worker import Done
from bakeoff.errors import CampaignError

if TYPE_CHECKING:
    from collections import deque

    from bakeoff.scenario import Run

_PATIENCE_S: Final = 0.1
"""How long a Ctrl-C may wait to be seen."""
OVERDUE: Final = "took longer than"
"""How the reason begins why a run failed that was ended by its time limit."""
_ATTEMPTS: Final = 3
"""So often a run may lose its worker before it counts as failed."""


class WorkerLostError(CampaignError):
    """The worker that had the run is gone; the message says how it ended."""

    def __init__(self, how: str, attempts: int = 1) -> None:
        super().__init__(how)
        self.attempts = attempts
        """Workers that the run has lost while they were at it; 0 if it had not begun."""


class Pending(Protocol):
    """A run that is under way; each kind of worker has its own."""

    def done(self) -> bool:
        """Whether it has ended."""


class Workers(Protocol):
    """Where runs are done."""

    def free(self, run: Run, *, ahead: bool) -> bool:
        """Whether this run can begin, or with `ahead` wait for a worker that is busy."""

    def begin(self, run: Run, folder: Path, task: worker.Task, order: int) -> Pending:
        """Have `worker.execute` do the run."""

    def wait(self, timeout_s: float) -> Pending | None:
        """A run that has ended and was not given before; None if none ends in this time."""

    def result(self, future: Any) -> Done:  # noqa: ANN401 (of this kind of worker)
        """How the run ended; WorkerLostError if its worker did. The worker is free again."""

    def kill(self, future: Any) -> None:  # noqa: ANN401
        """End the run at once, with its worker."""

    def check(self) -> None:
        """BakeoffError if no worker can be had any more."""

    def close(self) -> None:
        """Let all workers end that have nothing to do."""


@dataclass
class _Begun:
    waiting: Waiting
    at_s: float
    late: bool = False


@dataclass
class Parallel:
    """The runs that are under way, and how they are begun and ended."""

    waiting: deque[Waiting]
    task: worker.Task
    workers: Workers
    begins: Callable[[Run], None]
    timeout_s: float | None = None
    """A run that takes longer is killed, and fails alone."""
    ahead: bool = True
    """Whether a worker may be given its next run before it has ended one."""
    _under_way: dict[Pending, _Begun] = field(default_factory=dict)
    _lost: dict[Path, int] = field(default_factory=dict)
    """How often each run has lost its worker while it was at it; only runs whose worker was lost are here."""
    _in_a_row: int = 0
    """Workers that were lost since a run ended."""

    def do(self, on_interrupt: Callable[[], None] | None = None) -> Generator[Done, None, None]:
        """Do the runs, each in a worker, as they end. Who closes this waits for those under way.

        A run whose worker is lost waits again, and counts as failed the third time. BakeoffError if worker after worker
        is lost and no run ends.
        """
        with signals.collected() as interrupts:
            try:
                while (self.waiting or self._under_way) and not interrupts:
                    self._begin_all()
                    future = self._next()
                    if future is None:
                        self.workers.check()
                    elif (done := self._how(future)) is not None:
                        # No worker waits while somebody looks at what came out, unless a failure may end it all.
                        if done.status == "ok" and not interrupts:
                            self._begin_all()
                        yield done
            finally:
                if len(interrupts) == 1 and on_interrupt is not None:
                    on_interrupt()
                while not all(future.done() for future in self._under_way):
                    if len(interrupts) > 1:
                        for future in self._under_way:
                            self.workers.kill(future)
                    self._next()
                self.workers.close()
        if interrupts:
            signals.leave(interrupts)

    def _begin_all(self) -> None:
        while self.waiting and self.workers.free(self.waiting[0][1], ahead=self.ahead):
            self._begin_next()

    def _begin_next(self) -> None:
        folder, run, order = self.waiting.popleft()
        future = self.workers.begin(run, folder, self.task, order)
        self._under_way[future] = _Begun((folder, run, order), time.monotonic())
        # Whoever only waited for a worker that was lost has been told of already.
        if self._lost.get(folder) != 0:
            self.begins(run)

    def _next(self) -> Pending | None:
        """The next that ends in a moment, if there is one. What is late is killed."""
        if self.timeout_s is not None:
            now_s = time.monotonic()
            for future, begun in self._under_way.items():
                if not begun.late and now_s - begun.at_s > self.timeout_s:
                    begun.late = True
                    self.workers.kill(future)
        return self.workers.wait(_PATIENCE_S)

    def _how(self, future: Pending) -> Done | None:
        """How a run ended; None if it waits again."""
        begun = self._under_way.pop(future)
        folder, run, order = begun.waiting
        try:
            done = self.workers.result(future)
        except WorkerLostError as error:
            if begun.late:
                why = f"{OVERDUE} {self.timeout_s:g} s and was ended"
                return worker.failed(run, folder, self.task, order, why)
            self._lost[folder] = self._lost.get(folder, 0) + error.attempts
            self._in_a_row += min(1, error.attempts)
            if self._in_a_row >= _ATTEMPTS * (_ATTEMPTS + len(self._under_way)):
                raise CampaignError(
                    f"lost several workers in a row ({error}): out of memory (try fewer --jobs), or killed; "
                    "finished runs were kept, --resume continues"
                ) from error
            if self._lost[folder] < _ATTEMPTS:
                self.waiting.appendleft(begun.waiting)
                return None
            why = f"its worker was lost {self._lost[folder]} times ({error}): out of memory, or killed"
            return worker.failed(run, folder, self.task, order, why)
        self._in_a_row = 0
        return done
