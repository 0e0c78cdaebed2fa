"""Reading results folders: whole ones only."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from bakeoff.errors import BakeoffError
from bakeoff.results import layout

if TYPE_CHECKING:
    import polars as pl

    from bakeoff.results.summary import Summary


@dataclass(frozen=True, repr=False)
class Result:
    """One run as its folder tells it.

    `meta` is run.json without the resolved run, `resolved` the resolved run (docs/resolved-run.md), `counters` what the

    """

    path: Path
    meta: dict[str, Any]
    resolved: dict[str, Any]
    counters: dict[str, Any]

    @classmethod
    def read(cls, path: Path | str) -> Self:
        """Read one results folder. BakeoffError names what is missing if it is half-written or no results folder."""
        path = Path(path)
        run = _whole(path)
        resolved = run.pop("resolved")
        ok = run["status"] == "ok"
        counters = _read_json(path / layout.COUNTERS) if ok else {}
        return cls(path=path, meta=run, resolved=resolved, counters=counters)

    @property
    def key(self) -> str:
        """suite/scenario/run, with ~seedN for a repetition."""
        return run_key(self.resolved)

    @property
    def ok(self) -> bool:
        """Whether the run ended well and has samples."""
        return bool(self.meta["status"] == "ok")

    @cached_property
    def summary(self) -> Summary | None:
        """The measures as the folder has them, None if it has none; read when first asked for.

        BakeoffError names what is wrong if the file is no summary of a format that can be read.
        """
        from bakeoff.results.summary import Summary

        path = self.path / layout.SUMMARY
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BakeoffError(f"{path}: cannot be read: {error.strerror}") from error
        return Summary.from_json(text, str(path))

    @cached_property
    def series(self) -> pl.DataFrame:
        """The samples: time (s), kind, name, metric, value; read when first asked for."""
        from bakeoff.results.series import read_series

        if not self.ok:
            raise BakeoffError(f"{self.path}: the run failed and has no series: {self.meta['error']}")
        return read_series(self.path / layout.SERIES)

    @cached_property
    def trace(self) -> pl.DataFrame:
        """Internals of the congestion controls after every ACK, in the columns of `series`; read when first asked for.

        BakeoffError if the run did not record any.
        """
        from bakeoff.results.series import read_series

        if not (self.path / layout.TRACE).exists():
            raise BakeoffError(f"{self.path}: has no trace; make the run with --trace cc (in Python: trace=['cc'])")
        return read_series(self.path / layout.TRACE)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.key} {self.meta['status']} at {self.path}>"


def run_key(resolved: dict[str, Any]) -> str:
    """suite/scenario/run of a resolved run, with ~seedN for repetitions after the first: its place below a campaign."""
    repetition = f"~seed{resolved['seed']}" if resolved["seed"] != 1 else ""
    return f"{resolved['suite']}/{resolved['scenario']}/{resolved['run'].replace('/', '_')}{repetition}"


@dataclass(frozen=True)
class Survey:
    """What lies below a folder: whole runs in order of path, and half-written ones with what is wrong with them."""

    runs: list[Path]
    half_written: list[tuple[Path, str]]

    def complaint(self) -> str | None:
        """One line on the half-written folders for the user, or None if there are none."""
        if not self.half_written:
            return None
        path, reason = self.half_written[0]
        more = f" and {len(self.half_written) - 1} more" if len(self.half_written) > 1 else ""
        return f"left out as half-written: {path} ({reason}){more}; 'bakeoff run … --resume' makes them anew"


def read(path: Path | str) -> Result:
    """Read one results folder; see `Result.read`."""
    return Result.read(path)


def scan(root: Path | str) -> list[Path]:
    """The whole runs at or below `root`, in order of path. Half-written folders are left out: see `survey`."""
    return survey(root).runs


def survey(root: Path | str) -> Survey:
    """Find the runs at or below `root`, whole and half-written ones. BakeoffError if there is no such folder."""
    root = Path(root)
    if not root.is_dir():
        raise BakeoffError(f"{root}: no such results folder")
    runs: list[Path] = []
    half_written: list[tuple[Path, str]] = []
    for parent, folders, files in os.walk(root):
        path = Path(parent)
        if layout.is_partial(path.name):
            half_written.append((path, "its writing was never ended"))
            folders.clear()
        elif layout.RUN in files or layout.SERIES in files or layout.COUNTERS in files:
            folders.clear()
            try:
                _whole(path)
            except BakeoffError as error:
                half_written.append((path, str(error).removeprefix(f"{path}: half-written: ")))
            else:
                runs.append(path)
    return Survey(sorted(runs), sorted(half_written))


def read_all(paths: Iterable[Path]) -> list[Result]:
    """Read several results folders."""
    return [Result.read(path) for path in paths]


def _whole(path: Path) -> dict[str, Any]:
    """run.json of a whole results folder; BakeoffError says what keeps it from being one."""
    if not path.is_dir():
        raise BakeoffError(f"{path}: no such results folder")
    if layout.is_partial(path.name) and not (path / layout.RUN).exists():
        raise BakeoffError(f"{path}: half-written: its writing was never ended")
    run = _read_json(path / layout.RUN)
    missing = [key for key in layout.RUN_KEYS if key not in run]
    if missing:
        raise BakeoffError(f"{path}: half-written: {layout.RUN} has no {', '.join(missing)}")
    if run["format"] != layout.FORMAT:
        raise BakeoffError(
            f"{path}: {layout.RUN} is of format {run['format']!r}; this version reads format {layout.FORMAT}"
        )
    if run["status"] not in layout.STATUSES:
        raise BakeoffError(
            f"{path}: {layout.RUN}: status is {run['status']!r}; expected {' or '.join(layout.STATUSES)}"
        )
    if run["status"] == "ok":
        if not _is_whole_parquet(path / layout.SERIES):
            raise BakeoffError(f"{path}: half-written: {layout.SERIES} is missing or cut off")
        _read_json(path / layout.COUNTERS)
    return run


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise BakeoffError(f"{path.parent}: half-written: {path.name} is missing") from None
    except OSError as error:
        raise BakeoffError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise BakeoffError(f"{path.parent}: half-written: {path.name} is no JSON: {error}") from error
    if not isinstance(content, dict):
        raise BakeoffError(f"{path.parent}: half-written: {path.name} holds no JSON object")
    return content


def _is_whole_parquet(path: Path) -> bool:
    """A Parquet file begins and ends with its magic, of four bytes each: what was cut off has no end."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
            file.seek(-4, os.SEEK_END)
            return start == file.read(4) == b"PAR1" and file.tell() >= 8
    except OSError:
        return False
