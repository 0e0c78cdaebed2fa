"""Workers that are processes of this machine. Each is a pool of one, so that a process that dies takes no other run."""

from __future__ import annotations

import multiprocessing
import signal
import time
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff.campaign import ending, worker
from bakeoff.campaign.parallel import LostError, Pending
from bakeoff.campaign.worker import Done

if TYPE_CHECKING:
    from bakeoff.scenario import Run


class _Slot:
    """One process, which is started with the first run."""

    def __init__(self) -> None:
        # Not fork: polars and numpy have threads, and a forked child of a threaded process may hang.
        self._pool = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), ending.prepare_worker)
        self.process: BaseProcess | None = None

    def submit(self, run: Run, folder: Path, task: worker.Task, order: int) -> Future[Done]:
        before = set(multiprocessing.active_children())
        with ending.starting_workers():
            future = self._pool.submit(worker.execute, run, folder, task, order)
        if self.process is None:
            self.process = next(iter(set(multiprocessing.active_children()) - before), None)
        return future

    def close(self) -> None:
        self._pool.shutdown(wait=False)


class Processes:
    """Up to `jobs` worker processes; see `parallel.Workers`."""

    def __init__(self, jobs: int) -> None:
        self._jobs = jobs
        self._idle: list[_Slot] = []
        self._busy: dict[Pending, _Slot] = {}
        ending.start_tracker()

    def free(self) -> bool:
        """See `Workers`."""
        return len(self._busy) < self._jobs

    def begin(self, run: Run, folder: Path, task: worker.Task, order: int) -> Future[Done]:
        """See `Workers`."""
        slot = self._idle.pop() if self._idle else _Slot()
        try:
            future = slot.submit(run, folder, task, order)
        except BrokenProcessPool:  # it died while it had nothing to do
            slot = _Slot()
            future = slot.submit(run, folder, task, order)
        self._busy[future] = slot
        return future

    def result(self, future: Pending) -> Done:
        """See `Workers`."""
        slot = self._busy.pop(future)
        try:
            done: Done = future.result()
        except BrokenProcessPool:
            slot.close()
            raise LostError(_ended(slot.process)) from None
        except BaseException:
            self._idle.append(slot)
            raise
        self._idle.append(slot)
        return done

    def kill(self, future: Pending) -> None:
        """See `Workers`."""
        slot = self._busy.get(future)
        if slot is not None and slot.process is not None:
            slot.process.kill()

    def check(self) -> None:
        """See `Workers`: a process can always be started."""

    def close(self) -> None:
        """See `Workers`."""
        slots = [*self._idle, *self._busy.values()]
        for slot in slots:
            slot.close()
        for slot in slots:
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
