"""Workers that are processes of this machine: each takes runs from a pipe, so that one that dies takes no other run.

No thread is started here. A pool of `concurrent.futures` has two for each process, and waits for ever if the system
lets one of them not start.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bakeoff.campaign import serving, signals, worker
from bakeoff.campaign.parallel import Pending, WorkerLostError
from bakeoff.campaign.worker import Done
from bakeoff.errors import CampaignError

if TYPE_CHECKING:
    from bakeoff.scenario import Run


_SHORT_S: Final = 0.25
"""A run that takes less is short: to wait for the next one is then a good part of a process's time."""


@dataclass(eq=False)
class _Given:
    """A run that a process has; see `Pending`."""

    process: _Process
    outcome: Done | BaseException | None = None

    def done(self) -> bool:
        """Whether it has ended."""
        return self.outcome is not None


class _Process:
    """One process, which does its runs in the order in which it gets them. OSError if the system starts none."""

    def __init__(self) -> None:
        # Not fork: polars and numpy have threads, and a forked child of a threaded process may hang.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        try:
            self._process: BaseProcess = context.Process(target=serving.serve, args=(theirs,))
            with signals.starting_workers():
                self._process.start()
        except BaseException:
            self._pipe.close()
            raise
        finally:
            theirs.close()
        self.given: deque[_Given] = deque()
        """Runs that have not ended: the first is under way, others come after it."""
        self.alive = True

    @property
    def ends(self) -> tuple[Any, int]:
        """What can be read when a run, or the process, has ended."""
        return self._pipe, self._process.sentinel

    def give(self, run: Run, folder: Path, task: worker.Task, order: int) -> _Given:
        """Have it do a run."""
        given = _Given(self)
        self.given.append(given)
        try:
            self._pipe.send((run, folder, task, order))
        except OSError:  # it has died: `ended` says so of all its runs
            self._process.join()
        return given

    def ended(self) -> list[_Given]:
        """The runs that have ended since this was asked; all that it had if the process has ended."""
        found = []
        try:
            while self.given and self._pipe.poll():
                self.given[0].outcome = self._pipe.recv()
                found.append(self.given.popleft())
        except (EOFError, OSError):
            self._process.join()
        if self._process.exitcode is not None and not found:
            self.alive = False
            self._pipe.close()
            for number, given in enumerate(self.given):
                # Those behind the first had not begun.
                given.outcome = WorkerLostError(_ended(self._process.exitcode), attempts=int(number == 0))
                found.append(given)
            self.given.clear()
        return found

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def close(self) -> None:
        """Let it end when it has done what it has."""
        if self.alive:
            self._pipe.close()
            self._process.join()


class Processes:
    """Up to `jobs` worker processes; see `parallel.Workers`.

    Only short runs wait for a process that is busy. A long one could hold up the end of a campaign whose other
    processes have nothing left to do. `estimate_s` says how long a run will take.
    """

    def __init__(self, jobs: int, estimate_s: Callable[[Run], float]) -> None:
        self._jobs = jobs
        self._estimate_s = estimate_s
        self._short = False
        """Whether the last run that ended was short."""
        self._processes: list[_Process] = []
        self._given: set[_Given] = set()
        """Runs whose results were not taken yet."""
        self._ended: deque[_Given] = deque()
        with _starting():
            signals.start_tracker()

    def free(self, run: Run, *, ahead: bool) -> bool:
        """See `Workers`."""
        given = len(self._given)
        if given < self._jobs:
            return True
        return ahead and given < 2 * self._jobs and self._short and self._estimate_s(run) < _SHORT_S

    def begin(self, run: Run, folder: Path, task: worker.Task, order: int) -> Pending:
        """See `Workers`. BakeoffError if a process is needed and the system starts none."""
        taken = [each.process for each in self._given]
        process = min(self._processes, key=taken.count, default=None)
        if process is None or (process in taken and len(self._processes) < self._jobs):
            with _starting():
                process = _Process()
            self._processes.append(process)
        given = process.give(run, folder, task, order)
        self._given.add(given)
        return given

    def wait(self, timeout_s: float) -> Pending | None:
        """See `Workers`."""
        if not self._ended:
            self._listen(timeout_s)
        return self._ended.popleft() if self._ended else None

    def _listen(self, timeout_s: float | None) -> None:
        """Note the runs that have ended, and wait for one so long if there is none."""
        connection.wait([end for process in self._processes for end in process.ends], timeout_s)
        for process in self._processes:
            self._ended.extend(process.ended())
        self._processes = [process for process in self._processes if process.alive]

    def result(self, future: _Given) -> Done:
        """See `Workers`. It waits for a run that has not ended."""
        while not future.done():
            self._listen(None)
        self._given.discard(future)
        if isinstance(future.outcome, Done):
            self._short = future.outcome.wall_s < _SHORT_S
            return future.outcome
        assert future.outcome is not None
        raise future.outcome

    def kill(self, future: _Given) -> None:
        """See `Workers`."""
        if not future.done():
            future.process.kill()

    def check(self) -> None:
        """See `Workers`: whether a process can be started is known when one is."""

    def close(self) -> None:
        """See `Workers`."""
        for process in self._processes:
            process.close()


@contextmanager
def _starting() -> Iterator[None]:
    """Name the limit if the system starts no process."""
    try:
        yield
    except OSError as error:
        raise CampaignError(
            f"cannot start a worker process: {error.strerror or error}; use fewer --jobs, or raise the limit of "
            "processes (ulimit -u, pids.max of the container) or memory"
        ) from None


def _ended(code: int) -> str:
    try:
        return (
            f"a worker process was ended by {signal.Signals(-code).name}" if code < 0 else f"a worker ended with {code}"
        )
    except ValueError:
        return f"a worker process ended with {code}"
