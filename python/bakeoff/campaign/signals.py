"""How a campaign is ended from outside: Ctrl-C, SIGTERM (a batch system, `kill`), SIGHUP (the terminal is closed)."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import connection, resource_tracker
from types import FrameType, ModuleType
from typing import Final, NoReturn

from bakeoff.errors import CampaignError

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AT_ONCE: Final = (signal.SIGTERM, signal.SIGHUP)
_UNHANDLED: Final = dict.fromkeys(_AT_ONCE, signal.SIG_DFL) | {signal.SIGINT: signal.default_int_handler}
"""What Python does with each unless somebody says otherwise."""


_THREADS: Final = 16
"""The libraries start 11 in a worker, and 13 in a process with two cores."""
_arrived: Final[list[int]] = []
"""The signals that `unwinding` has raised in the block that lasts."""


@contextmanager
def unwinding() -> Iterator[None]:
    """Let SIGTERM and SIGHUP unwind the block, as Ctrl-C does, instead of ending this process where it stands.

    They arrive as SystemExit with the status that a shell shows for them (143, 129). Who has a handler of his own, or
    ignores them (nohup), keeps that. `check` raises again what code of a user caught meanwhile, Ctrl-C too.
    """

    def unwind(number: int, _: FrameType | None) -> NoReturn:
        _arrived.append(number)
        leave(_arrived)

    before = {number: signal.getsignal(number) for number in SIGNALS}
    ours = [number for number in SIGNALS if _main_thread() and before[number] is _UNHANDLED[number]]
    for number in ours:
        signal.signal(number, unwind)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])
        if ours:
            _arrived.clear()


def check() -> None:
    """End as a signal asked for whose exception did not get through `unwinding`; nothing without one.

    Congestion controls in Python, finalizers and callbacks of libraries may catch every exception.
    """
    if _arrived:
        leave(_arrived)


@contextmanager
def collected() -> Iterator[list[int]]:
    """Gather these signals in a list: as exceptions they could come anywhere inside of the pool, and leave it waiting.

    Ctrl-C asks twice: the first lets what is under way end. SIGTERM and SIGHUP count as two.
    """
    interrupts: list[int] = []

    def note(number: int, _: FrameType | None) -> None:
        interrupts.extend([number] * (2 if number in _AT_ONCE else 1))

    before = {number: signal.getsignal(number) for number in SIGNALS}
    # Only the main thread gets signals; and who ignores them (nohup) is to go on doing so.
    ours = [number for number, handler in before.items() if _main_thread() and callable(handler)]
    for number in ours:
        signal.signal(number, note)
    try:
        yield interrupts
    finally:
        for number in ours:
            signal.signal(number, before[number])


def leave(interrupts: list[int]) -> NoReturn:
    """End as the first of these signals asks for."""
    if interrupts[0] == signal.SIGINT:
        raise KeyboardInterrupt
    sys.exit(128 + interrupts[0])


@contextmanager
def starting_workers() -> Iterator[None]:
    """What holds while worker processes are started.

    These signals are held back; the parent gets them when the block ends. Workers inherit that: one of them would end a
    worker with a traceback in the time until `prepare_worker`.

    The user's script is hidden from the workers, which do not need it: they would run it again if it does not keep them
    out with `if __name__ == "__main__":`.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def start_tracker() -> None:
    """Start multiprocessing's tracker of resources; before a pool, which would start one that a SIGHUP ends.

    It clears the mask of signals as it starts, so that it has to be there before `starting_workers`, too.
    """
    if not _main_thread():
        return
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which it inherits
    try:
        resource_tracker.ensure_running()
    finally:
        signal.signal(signal.SIGHUP, before)


def prepare_worker() -> None:
    """Make a fresh process a worker: deaf to these signals (the parent has them), one thread, gone with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in _AT_ONCE:
        # Not SIG_IGN, which programs that the worker starts would inherit, as they would the mask.
        signal.signal(number, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _AT_ONCE)
    for variable in ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    threading.Thread(target=_end_with_parent, daemon=True).start()


def check_threads() -> None:
    """BakeoffError unless this process may start the threads of the libraries that runs need.

    polars starts some when it is used first, and panics or waits for ever if it gets too few.
    """
    go = threading.Event()
    started = []
    try:
        for _ in range(_THREADS):
            started.append(threading.Thread(target=go.wait, daemon=True))
            started[-1].start()
    except (RuntimeError, MemoryError):
        started.pop()
        raise CampaignError(
            f"limit of {len(started)} threads per process; expected {_THREADS} or more: use fewer --jobs, or raise the "
            "limit of processes (ulimit -u, pids.max of the container) or memory"
        ) from None
    finally:
        go.set()
        for thread in started:
            thread.join()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)


def _main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
