"""Workers that are processes of this machine. Each is a pool of one, so that a process that dies takes no other run."""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff.campaign import signals, worker
from bakeoff.campaign.parallel import Pending, WorkerLostError
from bakeoff.campaign.worker import Done

if TYPE_CHECKING:
    from bakeoff.scenario import Run


_SHORT_S: Final = 0.25
"""A run that takes less is short: to wait for the next one is then a good part of a process's time."""


class _Slot:
    """One process, which is started with its first run and does its runs in the order in which it gets them."""

    def __init__(self) -> None:
        # Not fork: polars and numpy have threads, and a forked child of a threaded process may hang.
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), signals.prepare_worker)
        self.process: BaseProcess | None = None
        self.given: list[Pending] = []
        """Runs whose results nobody has taken yet: the first is under way or has ended, others come after it."""

    def submit(self, run: Run, folder: Path, task: worker.Task, order: int) -> Future[Done]:
        before = set(multiprocessing.active_children())
        with signals.starting_workers():
            future = self._pool.submit(worker.execute, run, folder, task, order)
        if self.process is None:
            self.process = next(iter(set(multiprocessing.active_children()) - before), None)
        self.given.append(future)
        return future

    def close(self) -> None:
        self._pool.shutdown(wait=False)


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
        self._slots: list[_Slot] = []
        self._slot_of: dict[Pending, _Slot] = {}
        signals.start_tracker()

    def free(self, run: Run, *, ahead: bool) -> bool:
        """See `Workers`."""
        given = len(self._slot_of)
        if given < self._jobs:
            return True
        return ahead and given < 2 * self._jobs and self._short and self._estimate_s(run) < _SHORT_S

    def begin(self, run: Run, folder: Path, task: worker.Task, order: int) -> Future[Done]:
        """See `Workers`."""
        slot = min(self._slots, key=lambda slot: len(slot.given), default=None)
        if slot is None or (slot.given and len(self._slots) < self._jobs):
            slot = self._added()
        try:
            future = slot.submit(run, folder, task, order)
        except BrokenProcessPool:  # it has died, and nobody has asked yet for what became of its runs
            self._slots.remove(slot)
            slot = self._added()
            future = slot.submit(run, folder, task, order)
        self._slot_of[future] = slot
        return future

    def _added(self) -> _Slot:
        slot = _Slot()
        self._slots.append(slot)
        return slot

    def result(self, future: Pending) -> Done:
        """See `Workers`."""
        slot = self._slot_of.pop(future)
        try:
            done: Done = future.result()
        except BrokenProcessPool:
            slot.close()
            if slot in self._slots:
                self._slots.remove(slot)
            # The others had not begun.
            raise WorkerLostError(_ended(slot.process), attempts=int(future is slot.given[0])) from None
        except BaseException:
            slot.given.remove(future)
            raise
        slot.given.remove(future)
        self._short = done.wall_s < _SHORT_S
        return done

    def kill(self, future: Pending) -> None:
        """See `Workers`."""
        slot = self._slot_of.get(future)
        if slot is not None and slot.process is not None:
            slot.process.kill()

    def check(self) -> None:
        """See `Workers`: a process can always be started."""

    def close(self) -> None:
        """See `Workers`."""
        for slot in self._slots:
            slot.close()
        for slot in self._slots:
            if slot.process is not None:
                slot.process.join()


def _exit_code(process: BaseProcess) -> int | None:
    """Once it has ended; None if that takes longer than a second.

    The pool's own thread may wait for the same process. What the thread that comes second is told is nothing, until
    the first has noted the code.
    """
    for _ in range(100):
        process.join(0.01)
        if (code := process.exitcode) is not None:
            return code
        time.sleep(0.01)
    return None


def _ended(process: BaseProcess | None) -> str:
    code = None if process is None else _exit_code(process)
    if code is None:
        return "a worker process ended"
    try:
        return (
            f"a worker process was ended by {signal.Signals(-code).name}" if code < 0 else f"a worker ended with {code}"
        )
    except ValueError:
        return f"a worker process ended with {code}"
