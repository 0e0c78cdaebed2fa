"""Read complete results folders."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar

import msgspec

from bakeoff import files
from bakeoff.errors import BakeoffError, HalfWrittenError, ResultsError
from bakeoff.results import layout
from bakeoff.results.metadata import CampaignRecord, Record, RunRecord

if TYPE_CHECKING:
    import polars as pl

    from bakeoff.results.counters import Counters
    from bakeoff.results.series import Parts
    from bakeoff.results.summary import Summary
    from bakeoff.scenario.run import Run

_LARGEST = 256 << 20
"""Bytes of a JSON file of a results folder. A million short flows take about 30 MB."""

_OF_A_RUN = frozenset((layout.RUN, layout.SERIES, layout.COUNTERS))
"""A folder that holds one of these files holds a run, or what is left of one."""

R = TypeVar("R", bound=Record)


class Result:
    """One run, read from its folder: `record` is run.json; all other files are read on first access."""

    def __init__(
        self,
        path: Path,
        record: RunRecord,
        *,
        parts: Parts | None = None,
        counters: Counters | None = None,
    ) -> None:
        """`parts` and `counters` may be passed by a writer that still has them in memory."""
        self.path = path
        self.record = record
        if parts is not None:
            self.parts = parts
        if counters is not None:
            self.counters = counters

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read one results folder. BakeoffError names the missing part if it is incomplete or not a results folder."""
        path = Path(path)
        return cls(path, _whole(path))

    @property
    def run(self) -> Run:
        """The resolved run (docs/resolved-run.md)."""
        return self.record.run

    @property
    def key(self) -> str:
        """suite/scenario/run, with ~seedN for a repetition."""
        return self.run.key

    @property
    def ok(self) -> bool:
        """Whether the run ended well and has samples."""
        return self.record.status == "ok"

    @cached_property
    def counters(self) -> Counters:
        """What the engine counted (counters.json), nothing if the run failed. BakeoffError names a wrong key."""
        from bakeoff.results.counters import Counters

        if not self.ok:
            return Counters()
        return Counters.of(self.all_counters(), f"{self.path}: {layout.COUNTERS}")

    def all_counters(self) -> dict[str, object]:
        """Every number of counters.json, with those that no measure reads, as plain JSON values."""
        self._need_all("counters")
        return _read(self.path / layout.COUNTERS)

    @cached_property
    def summary(self) -> Summary | None:
        """The measures as the folder has them, None if it has none; read when first asked for.

        BakeoffError names what is wrong if the file is no summary of a format that can be read.
        """
        from bakeoff.results.summary import Summary

        path = f"{self.path}/{layout.SUMMARY}"
        try:
            text = files.read(path, _LARGEST)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise ResultsError(f"{path}: cannot be read: {error.strerror}") from error
        summary = Summary.from_json(text, path)
        names = (
            [flow.name for flow in self.run.flows],
            [probe.name for probe in self.run.probes],
        )
        if (wrong := summary.unlike(*names)) is not None:
            raise ResultsError(f"{path}: {wrong}; expected the file of this run")
        return summary

    @cached_property
    def series(self) -> pl.DataFrame:
        """The samples: time (s), kind, name, metric, value."""
        import polars as pl

        from bakeoff.results.series import read_series, table

        if "parts" in self.__dict__:
            return table(self.parts).cast({pl.Enum: pl.String})
        return read_series(self._need_series())

    def series_batches(self) -> Iterator[pl.DataFrame]:
        """The rows of `series` in several tables, for which less memory is needed."""
        from bakeoff.results.series import batches

        return batches(self._need_series())

    @cached_property
    def parts(self) -> Parts:
        """The samples by kind, name and metric: times (s) and values of each series."""
        return self._parts_of(None)

    def parts_of(self, metrics: Collection[str]) -> Parts:
        """Likewise, of these metrics only: of a file that is read the others are left aside at once."""
        if "parts" in self.__dict__:
            return {key: columns for key, columns in self.parts.items() if key[2] in metrics}
        return self._parts_of(metrics)

    def _parts_of(self, metrics: Collection[str] | None) -> Parts:
        from bakeoff.results.series import read_parts

        return read_parts(self._need_series(), metrics)

    def _need_series(self) -> Path:
        """The file of the samples. BakeoffError if the run has none."""
        if not self.ok:
            raise ResultsError(f"{self.path}: no series, the run failed: {self.record.error}")
        self._need_all("series")
        return self.path / layout.SERIES

    @cached_property
    def trace(self) -> pl.DataFrame:
        """Internals of the congestion controls after every ACK, in the columns of `series`.

        BakeoffError if the run did not record any.
        """
        from bakeoff.results.series import read_series

        return read_series(self._need_trace())

    def trace_parts(self, metrics: Collection[str] | None = None) -> Parts:
        """The rows of `trace`, or of these metrics only, by kind, name and metric. BakeoffError likewise."""
        from bakeoff.results.series import read_parts

        return read_parts(self._need_trace(), metrics)

    def _need_trace(self) -> Path:
        if not (self.path / layout.TRACE).exists():
            raise ResultsError(f"{self.path}: no trace; expected a run with --trace cc (in Python: trace=['cc'])")
        return self.path / layout.TRACE

    def _need_all(self, what: str) -> None:
        if self.record.kept != "all":
            raise ResultsError(
                f"{self.path}: has no {what}: only measures were kept; expected 'bakeoff sweep … --keep series', or "
                "'bakeoff reproduce' of this run"
            )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key} {self.record.status} at {self.path}>"


@dataclass(frozen=True)
class Survey:
    """The contents of a folder, each list in order of path."""

    results: list[Result]
    """The whole runs."""
    half_written: list[tuple[Path, str]]
    """Folders that a crash left behind or somebody took something from, with what is wrong."""
    unreadable: list[tuple[Path, str]] = field(default_factory=list)
    """Folders and files that the system, or this version, does not read, with the reason."""

    @property
    def runs(self) -> list[Path]:
        """Where the whole runs lie."""
        return [result.path for result in self.results]

    def complaints(self) -> list[str]:
        """For the user: a line on the half-written folders and one on what cannot be read, if there are any."""
        lines = []
        if self.half_written:
            lines.append(
                f"skipped incomplete runs: {_first(self.half_written)}; do them again with 'bakeoff run … --resume'"
            )
        if self.unreadable:
            lines.append(f"skipped unreadable runs: {_first(self.unreadable)}")
        return lines


def _first(several: list[tuple[Path, str]]) -> str:
    path, reason = several[0]
    return f"{path} ({reason})" + (f" and {len(several) - 1} more" if len(several) > 1 else "")


def read(path: Path | str) -> Result:
    """Read one results folder; see `Result.read`."""
    return Result.read(path)


def scan(root: Path | str) -> list[Path]:
    """The complete runs at or below `root`, in order of path; for incomplete ones, see `survey`."""
    return survey(root).runs


def survey(root: Path | str, tell: Callable[[int], None] | None = None) -> Survey:
    """Find the runs at or below `root`. BakeoffError if there is no such folder or it cannot be read.

    `tell` is called with the number of complete runs after each one.
    """
    root = Path(root)
    if not root.is_dir():
        raise ResultsError(f"{root}: no such results folder")
    whole: list[Result] = []
    half_written: list[tuple[Path, str]] = []
    unreadable: list[tuple[Path, str]] = []
    for path, is_run in folders(root, unreadable):
        if not is_run:
            half_written.append((path, "its writing was never ended"))
            continue
        try:
            whole.append(Result(path, _whole(path)))
            if tell is not None:
                tell(len(whole))
        except HalfWrittenError as error:
            half_written.append((path, error.problem))
        except BakeoffError as error:
            unreadable.append((path, error.problem))
    if unreadable and unreadable[0][0] == root:
        raise ResultsError(f"{root}: {unreadable[0][1]}")
    return Survey(whole, half_written, unreadable)


def folders(root: Path, unreadable: list[tuple[Path, str]]) -> Iterator[tuple[Path, bool]]:
    """The folders of runs, complete (True) or not (False), in order of path.

    Errors of the system go to `unreadable`. Links are not followed.
    """

    def refused(error: OSError) -> None:
        unreadable.append((Path(error.filename or root), f"cannot be read: {error.strerror or error}"))

    for here, below, names in os.walk(root, onerror=refused):
        path = Path(here)
        is_run = not _OF_A_RUN.isdisjoint(names)
        if layout.is_partial(path.name) or is_run:
            yield path, not layout.is_partial(path.name)
            below.clear()
        below.sort()


def read_campaign(root: Path) -> CampaignRecord | None:
    """campaign.json of the folder `root`, or None if it has none, as older campaigns. BakeoffError if it is broken."""
    path = root / layout.CAMPAIGN
    if not path.exists():
        return None
    return _record(path, CampaignRecord)


def _whole(path: Path) -> RunRecord:
    """run.json of a complete results folder. BakeoffError names the missing part."""
    try:
        run = _record(path / layout.RUN, RunRecord)
    except BakeoffError:
        if not path.is_dir():
            raise ResultsError("no such results folder", place=f"{path}") from None
        if layout.is_partial(path.name) and not (path / layout.RUN).exists():
            raise _half_written(path, "its writing was never ended") from None
        raise
    if run.status == "ok" and run.kept == "measures":
        if not (path / layout.SUMMARY).exists():
            raise _half_written(path, f"{layout.SUMMARY} is missing")
    elif run.status == "ok":
        if not _is_whole_parquet(path / layout.SERIES):
            raise _half_written(path, f"{layout.SERIES} is missing or cut off")
        if not (path / layout.COUNTERS).exists():
            raise _half_written(path, f"{layout.COUNTERS} is missing")
    return run


def _half_written(folder: Path | str, lack: str) -> HalfWrittenError:
    return HalfWrittenError(lack, place=f"{folder}: half-written")


def _read(path: Path) -> dict[str, object]:
    """The object that a JSON file of a results folder holds; BakeoffError if it holds none."""
    return _object(_text(path), path)


def _text(path: Path) -> bytes:
    try:
        return files.read(path, _LARGEST)
    except FileNotFoundError:
        raise _half_written(path.parent, f"{path.name} is missing") from None
    except OSError as error:
        raise ResultsError(f"{path.name} cannot be read: {error.strerror}", place=f"{path.parent}") from error


def _object(text: bytes, path: Path) -> dict[str, object]:
    try:
        content = msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise _half_written(path.parent, f"{path.name} is invalid JSON: {error}") from None
    if not isinstance(content, dict):
        raise ResultsError(f"{path.name} is not a JSON object", place=f"{path.parent}")
    return content


def _record(path: Path, form: type[R]) -> R:
    """The record that a file holds; BakeoffError names the first key that is wrong, or the format."""
    folder, name = f"{path.parent}", path.name
    text = _text(path)
    try:
        return form.from_json(text, name)
    except ResultsError as error:
        written = _object(text, path).get("format", layout.FORMAT)
        if written != layout.FORMAT:
            raise ResultsError(
                f"{name} is of format {written!r}; this version reads format {layout.FORMAT}", place=folder
            ) from None
        raise error.at(folder) from None


def _is_whole_parquet(path: Path) -> bool:
    """Whether the file starts and ends with Parquet's magic of four bytes; a truncated one does not."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        end = os.fstat(file).st_size - 4
        return end >= 4 and os.pread(file, 4, 0) == os.pread(file, 4, end) == b"PAR1"
    except OSError:
        return False
    finally:
        os.close(file)
