"""One run of a campaign, from the resolved run to a whole results folder."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
import traceback
from dataclasses import dataclass
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bakeoff import engines, results
from bakeoff.errors import BakeoffError, UserCodeError
from bakeoff.results import layout

if TYPE_CHECKING:
    from bakeoff.scenario import Run

Status = Literal["ok", "failed", "skipped"]


@dataclass(frozen=True)
class Done:
    """How one run ended. `skipped`: a whole result of the same run was there already. `wall_s` is the engine's time."""

    key: str
    path: Path
    status: Status
    wall_s: float = 0.0
    error: str | None = None


def execute(run: Run, folder: Path, engine: str) -> Done:
    """Do one run, take its measures, and leave a whole results folder.

    What goes wrong inside the run is recorded in the folder (status `failed`) and returned. BakeoffError if the
    folder cannot be written: then there is none.
    """
    module = engines.get(engine)
    resolved = json.loads(run.to_json())
    versions = module.versions()
    error: str | None = None
    with results.writing(folder) as partial:
        started = time.perf_counter()
        wall_s = 0.0
        try:
            notes = module.execute(run, partial) or []
            wall_s = time.perf_counter() - started
            results.seal(partial, resolved=resolved, engine=engine, versions=versions, wall_s=wall_s, effective=notes)
            _measure(partial)
        except OSError:
            raise
        except Exception as problem:  # a fault in one run must not end the other runs
            wall_s = wall_s or time.perf_counter() - started
            error = _message(problem)
            with (partial / layout.TEARDOWN_LOG).open("a", encoding="utf-8") as log:
                log.write(_log(problem))
            results.seal(partial, resolved=resolved, engine=engine, versions=versions, wall_s=wall_s, error=error)
    return Done(run.key, folder, "ok" if error is None else "failed", wall_s, error)


def _measure(folder: Path) -> None:
    from bakeoff.measure import summarise

    results.write_json(folder / layout.SUMMARY, summarise(results.read(folder)).to_json())


def _message(problem: Exception) -> str:
    """What a person reads: the words alone where they were written for one, the type too where they were not."""
    if isinstance(problem, BakeoffError | RuntimeError):
        return str(problem)
    return f"{type(problem).__name__}: {problem}"


def _log(problem: Exception) -> str:
    """What the log keeps: the whole traceback, unless the message has the lines that matter."""
    if isinstance(problem, UserCodeError):
        return f"{problem}\n"
    return "".join(traceback.format_exception(problem))


def prepare_process() -> None:
    """Make a fresh process a worker: deaf to Ctrl-C (the parent's to handle), one thread, gone with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for variable in ("POLARS_MAX_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)
