"""What was recorded elsewhere, and how it becomes a run's folder."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bakeoff import results
from bakeoff.campaign.campaign_record import provenance
from bakeoff.errors import RecordingError
from bakeoff.results import RunRecord, layout, sample_rows
from bakeoff.results.series import parts

if TYPE_CHECKING:
    import polars as pl

    from bakeoff.scenario.run import Run

UNKNOWN: Final = "unknown"
"""Of what a recording does not tell and a run has to name."""

_LONGEST: Final = 200
"""Bytes of a part of a run's name, which becomes the name of a folder."""


@dataclass
class Recording:
    """A recorded run. What the file does not tell is absent, from the samples and from the counters alike."""

    record: RunRecord
    series: pl.DataFrame
    """In the columns of docs/results-folder.md."""
    counters: dict[str, Any]
    """In the form of counters.json."""
    names_its_run: bool = False
    """Whether the file itself tells which run of which suite it is."""
    counts_from_start: bool = True
    """Whether counters of a flow are 0 at its `start_s`; else their first sample says when counting began."""
    warnings: tuple[str, ...] = ()
    """What is wrong with the file; also in the record's `effective`."""

    def with_warnings(self, more: Sequence[str]) -> Recording:
        """The recording with more that is wrong with its file."""
        record = self.record.model_copy(update={"effective": (*self.record.effective, *more)})
        return replace(self, record=record, warnings=(*self.warnings, *more))


def recorded(
    run: Run,
    *,
    engine: str,
    versions: dict[str, str],
    date: datetime | None,
    host: str | None,
    note: str | None,
    effective: Sequence[str],
) -> RunRecord:
    """What is known of a run that somebody recorded.

    `engine` is the program that did, `date` when, and `host` where; `effective` is what a reader of its numbers has to
    know.
    """
    known = {"date": date, "host": host}
    return RunRecord(
        run=run,
        engine=engine,
        versions=versions,
        seed=run.seed,
        digest=None,
        status="ok",
        wall_s=0.0,
        error=None,
        effective=tuple(effective),
        provenance=provenance(note).model_copy(
            update={key: value for key, value in known.items() if value is not None}
        ),
    )


def counted(recording: Recording) -> pl.DataFrame:
    """The samples, with those of counters that a recording does not have and its measures need."""
    run = recording.record.run
    starts = {flow.name: flow.start_s for flow in run.flows}
    return sample_rows.counted(recording.series, starts, run.window_s, from_zero=recording.counts_from_start)


def write(recording: Recording, root: Path, campaign: str, order: int) -> Path:
    """Leave a whole results folder of a recording in the campaign's folder `root`, and return its path.

    BakeoffError if its samples do not make a run, and then there is none.
    """
    from bakeoff.measure import summarise

    if recording.series.is_empty():
        raise RecordingError("no samples")
    series = recording.series if recording.names_its_run else counted(recording)
    record = recording.record.model_copy(
        update={"digest": results.digest(parts(series)), "campaign": campaign, "order": order, "status": "ok"}
    )
    folder = results.below(root, _key(record))
    with results.writing(folder) as partial:
        results.write_series(partial / layout.SERIES, series)
        results.write_json(partial / layout.COUNTERS, recording.counters)
        # From the files, as everybody reads them: what their forms do not allow is said now and not later.
        result = results.Result(partial, record)
        results.write_json(partial / layout.SUMMARY, summarise(result).to_json())
        results.seal(partial, record)
    return folder


def _key(record: RunRecord) -> str:
    """The key as a path of three parts. BakeoffError if it leads elsewhere: the names may be a stranger's."""
    key = record.run.key
    parts = key.split("/")
    if len(parts) != 3 or any(
        part in ("", ".", "..") or "\0" in part or len(part.encode()) > _LONGEST for part in parts
    ):
        raise RecordingError(f"the run's name {key!r} is not a valid folder name; expected suite/scenario/run")
    return key
