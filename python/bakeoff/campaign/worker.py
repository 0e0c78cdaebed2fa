"""One run of a campaign, from the resolved run to a whole results folder."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bakeoff import engines, files, results
from bakeoff.campaign import signals
from bakeoff.errors import BakeoffError, UserCodeError
from bakeoff.results import Kept, Provenance, RunRecord, layout

if TYPE_CHECKING:
    from bakeoff.scenario import Run

Status = Literal["ok", "failed", "skipped", "taken"]
Also = Callable[["results.Result"], Mapping[str, float | None]]
"""Numbers that are taken of each run besides its measures, by name; it has to be known to other processes by name."""


@dataclass(frozen=True)
class Done:
    """How one run ended. `wall_s` is the engine's time.

    `skipped`: a whole result of the same run was there already; `taken`: it came from a store.
    """

    key: str
    path: Path
    status: Status
    wall_s: float = 0.0
    error: str | None = None
    numbers: Mapping[str, float | None] = field(default_factory=dict)
    """What `Task.also` took; None where this run gives no such number."""


@dataclass(frozen=True)
class Task:
    """What all runs of a campaign have in common."""

    engine: str
    campaign: str
    """Its id."""
    provenance: Provenance
    kept: Kept = "all"
    """What is left of a run that ended well."""
    also: Also | None = None


def execute(run: Run, folder: Path, task: Task, order: int | None = None) -> Done:
    """Do one run, take its measures, and leave a whole results folder, which says the run's `order` in the campaign.

    What goes wrong inside the run is recorded in the folder (status `failed`) and returned. BakeoffError if the
    folder cannot be written: then there is none.
    """
    module = engines.get(task.engine)
    record = _record(run, task, order)
    numbers: dict[str, float | None] = {}
    with results.writing(folder) as partial:
        started = time.perf_counter()
        try:
            outcome = (module.execute if task.kept == "all" else module.outcome)(run, partial)
            record = record.model_copy(update={"wall_s": _since(started), "status": "ok", "effective": outcome.notes})
            record = record.model_copy(update={"digest": results.digest(outcome.parts)})
            result = results.Result(partial, record, parts=outcome.parts, counters=outcome.counters)
            _measure(result)
            if task.also is not None:
                numbers = dict(task.also(result))
                results.write_measured(partial, numbers)
        except (OSError, KeyboardInterrupt, SystemExit):
            raise
        # A fault in one run must not end the other runs. Panics of Rust (polars) are BaseExceptions.
        except BaseException as problem:
            signals.check()
            wall_s = record.wall_s or _since(started)
            record = record.model_copy(
                update={"wall_s": wall_s, "status": "failed", "digest": None, "error": _message(problem)}
            )
            numbers = {}
            # The run may have ended half-way in an engine whose guest still had the folder.
            log = partial / layout.TEARDOWN_LOG
            with open(log, "a", encoding="utf-8", opener=files.opener) as file:
                file.write(_log(problem))
        signals.check()
        results.seal(partial, record)
    return Done(run.key, folder, record.status, record.wall_s, record.error, numbers)


def failed(run: Run, folder: Path, task: Task, order: int | None, why: str) -> Done:
    """Leave a folder that says why a run failed whose worker cannot say it. BakeoffError if it cannot be written."""
    record = _record(run, task, order).model_copy(update={"error": why})
    with results.writing(folder) as partial:
        with open(partial / layout.TEARDOWN_LOG, "w", encoding="utf-8", opener=files.opener) as file:
            file.write(f"{why}\n")
        results.seal(partial, record)
    return Done(run.key, folder, "failed", error=why)


def _record(run: Run, task: Task, order: int | None) -> RunRecord:
    """What is known of a run before it is done: as one that failed."""
    # Who reads a record checks it; of ten thousand runs the check of what was just written down here costs as much as a
    # measure.
    return RunRecord.model_construct(
        run=run,
        engine=task.engine,
        versions=engines.get(task.engine).versions(),
        seed=run.seed,
        digest=None,
        status="failed",
        wall_s=0.0,
        error=None,
        campaign=task.campaign,
        order=order,
        provenance=task.provenance.model_copy(update={"date": datetime.now(UTC).replace(microsecond=0)}),
        kept=task.kept,
    )


def _since(started: float) -> float:
    return round(time.perf_counter() - started, 6)


def _measure(result: results.Result) -> None:
    from bakeoff.measure import summarise

    results.write_json(result.path / layout.SUMMARY, summarise(result).to_json())


def _message(problem: BaseException) -> str:
    """What a person reads: the words alone where they were written for one, the type too where they were not."""
    if isinstance(problem, BakeoffError | RuntimeError):
        return str(problem)
    return f"{type(problem).__name__}: {problem}"


def _log(problem: BaseException) -> str:
    """What the log keeps: the whole traceback, unless the message has the lines that matter."""
    if isinstance(problem, UserCodeError):
        return f"{problem}\n"
    return "".join(traceback.format_exception(problem))
