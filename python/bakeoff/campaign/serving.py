"""What a worker process does: runs from a pipe, one after the other, until the pipe ends.

Little is imported before the first run, so that a process that gets too little memory or too few threads can say so.
"""

from __future__ import annotations

import pickle
import traceback
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from bakeoff.campaign import signals
from bakeoff.errors import BakeoffError


def serve(pipe: Connection) -> None:
    """Do each run that comes, and give back its `Done`, or what was raised instead."""
    problem = _prepared()
    while True:
        try:
            given = pipe.recv()
        except EOFError:
            return
        except (ImportError, MemoryError, OSError) as error:
            problem, given = problem or _cannot(error), None
        _send(pipe, problem or _answer(given))


def _answer(given: Any) -> object:  # noqa: ANN401 (the arguments of worker.execute)
    try:
        from bakeoff.campaign import worker

        return worker.execute(*given)
    except BaseException as error:  # the parent raises it, and ends the campaign
        return error


def _prepared() -> BakeoffError | None:
    """Make this process a worker; what keeps it from being one."""
    try:
        signals.prepare_worker()
        signals.check_threads()
    except (RuntimeError, MemoryError) as error:
        return _cannot(error)
    except BakeoffError as error:
        return error
    return None


def _cannot(error: BaseException) -> BakeoffError:
    return BakeoffError(
        f"cannot prepare a worker process: {error}; use fewer --jobs, or raise the limit of processes (ulimit -u, "
        "pids.max of the container) or memory"
    )


def _send(pipe: Connection, answer: object) -> None:
    if isinstance(answer, BaseException):
        try:
            if not isinstance(answer, BakeoffError | OSError):
                answer.add_note("".join(traceback.format_exception(answer)))
            pickle.loads(pickle.dumps(answer))  # noqa: S301 (its own)
        except Exception:  # some exceptions, such as Rust's panics, cannot be sent
            answer = RuntimeError(f"{type(answer).__name__}: {answer}")
    with suppress(BrokenPipeError):  # the parent is gone
        pipe.send(answer)
