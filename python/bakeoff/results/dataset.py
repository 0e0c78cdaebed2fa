"""The runs of a campaign as one table: a Parquet data set with a row for each run, which other programs read at once.

    sweep/suite=local/scenario=two/engine=sim/part-0.parquet
    sweep/schema.json

docs/sweeps.md has the columns. The data set is made from the results folder and from nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from bakeoff import files
from bakeoff.errors import BakeoffError
from bakeoff.results import layout
from bakeoff.results.write import take_place, write_json
from bakeoff.scenario import units

if TYPE_CHECKING:
    import polars as pl

FOLDER: Final = "sweep"
"""Where it lies in a campaign's folder."""
SCHEMA: Final = "schema.json"
MOST_FLOWS: Final = 64
"""Of a run with more of them the data set has no columns for single flows, and none for probes and queues either."""

_LARGEST: Final = 256 << 20
_ROWS_PER_FILE: Final = 100_000
_PARTITIONS: Final = ("suite", "scenario", "engine")
_OF_A_RUN: Final = {
    "run": "name of the run, without its seed",
    "seed": "",
    "status": "ok or failed",
    "error": "why the run failed",
    "digest": "of the samples",
    "wall_s": "time that the engine took",
}
_NOT_MEASURED: Final = ("format", "suite", "scenario", "run", "seed", "window_s", "start_s")


class _Resolved(msgspec.Struct):
    suite: str
    scenario: str
    run: str
    seed: int
    flows: list[msgspec.Raw]
    point: dict[str, str]


class _Record(msgspec.Struct):
    resolved: _Resolved
    engine: str
    digest: str | None
    status: str
    wall_s: float
    error: str | None


@dataclass(frozen=True)
class _Row:
    record: _Record
    numbers: dict[str, float | int]


_records: Final = msgspec.json.Decoder(_Record)
_numbers: Final = msgspec.json.Decoder(dict[str, Any])


def write(root: Path, runs: Iterable[Path]) -> tuple[Path, int]:
    """Write the data set of the runs in these folders into the campaign's folder `root`; where it lies, and its rows.

    One that is there is replaced. BakeoffError if a file cannot be read or written.
    """
    folder = root / FOLDER
    partial = folder.with_name(layout.partial_name(FOLDER, os.getpid()))
    try:
        rows = [_row(path) for path in runs]
        columns, about = _columns(rows)
        partial.mkdir(parents=True)
        for place, frame in _parts(rows, columns):
            (partial / place).parent.mkdir(parents=True, exist_ok=True)
            frame.write_parquet(partial / place, compression="zstd")
        write_json(partial / SCHEMA, {"rows": len(rows), "partitions": list(_PARTITIONS), "columns": about})
        take_place(partial, folder)
    except OSError as error:
        raise BakeoffError(f"{folder}: cannot be written: {error.strerror or error}") from error
    finally:
        files.discard(partial)
    return folder, len(rows)


def _row(path: Path) -> _Row:
    try:
        record = _records.decode(files.read(path / layout.RUN, _LARGEST))
        numbers: dict[str, float | int] = {}
        if record.status == "ok":
            summary = _numbers.decode(files.read(path / layout.SUMMARY, _LARGEST))
            if len(record.resolved.flows) > MOST_FLOWS:
                summary = {key: value for key, value in summary.items() if not isinstance(value, dict)}
            _walk(summary, "", numbers)
            named = path / layout.MEASURED
            if named.exists():
                taken = _numbers.decode(files.read(named, _LARGEST))
                numbers |= {name: float(value) for name, value in taken.items() if value is not None}
    except (OSError, ValueError) as error:
        raise BakeoffError(f"{path}: cannot be read: {error}") from error
    return _Row(record, numbers)


def _walk(tree: Mapping[str, Any], prefix: str, found: dict[str, float | int]) -> None:
    for key, value in tree.items():
        # What a decoder gave is of these types and of none that are derived from them; a truth value is no number here.
        kind = type(value)
        if kind is dict:
            _walk(value, f"{prefix}{key}.", found)
        elif (kind is float or kind is int) and key not in _NOT_MEASURED:
            found[prefix + key] = value


def _columns(rows: Sequence[_Row]) -> tuple[dict[str, pl.Series], dict[str, dict[str, str]]]:
    """Every column but the partitions, and what schema.json says of it."""
    import polars as pl

    made: dict[str, pl.Series] = {}
    about: dict[str, dict[str, str]] = {}
    forms = {"seed": pl.Int64, "wall_s": pl.Float64}
    for name, what in _OF_A_RUN.items():
        of = [getattr(row.record.resolved if name in ("run", "seed") else row.record, name) for row in rows]
        made[name] = pl.Series(name, of, dtype=forms.get(name, pl.String))
        about[name] = {"kind": "run", "unit": "s" if name == "wall_s" else "", "what": what}
    for axis in dict.fromkeys(axis for row in rows for axis in row.record.resolved.point):
        labels = [row.record.resolved.point.get(axis) for row in rows]
        known = [None if label is None else units.si(label) for label in labels]
        of_one = {each[1] for each in known if each is not None}
        numeric = len(of_one) == 1 and all(each is not None for each, label in zip(known, labels, strict=True) if label)
        if numeric:
            made[axis] = pl.Series(axis, [each and each[0] for each in known], dtype=pl.Float64)
        else:
            made[axis] = pl.Series(axis, labels, dtype=pl.String)
        about[axis] = {"kind": "parameter", "unit": of_one.pop() if numeric else "text"}
    numbers = [row.numbers for row in rows]
    for name in dict.fromkeys(chain.from_iterable(numbers)):
        several = [of.get(name) for of in numbers]
        whole = {int, type(None)}.issuperset(map(type, several))
        column = name if name not in made else f"{name} (measure)"
        made[column] = pl.Series(column, several, dtype=pl.Int64 if whole else pl.Float64, strict=False)
        about[column] = {"kind": "measure", "unit": _unit(name)}
    return made, about


def _unit(name: str) -> str:
    for part in reversed(name.split(".")):
        unit = "s" if part.endswith("_s") and not part.endswith("per_s") else "bit/s" if part.endswith("_bps") else ""
        if unit:
            return unit
    return ""


def _parts(rows: Sequence[_Row], columns: Mapping[str, pl.Series]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Each file of the data set, with its place."""
    import polars as pl

    frame = pl.DataFrame(list(columns.values()))
    places: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        at = row.record.resolved
        words = zip(_PARTITIONS, (at.suite, at.scenario, row.record.engine), strict=True)
        places.setdefault("/".join(f"{name}={_escaped(word)}" for name, word in words), []).append(index)
    for place, indices in places.items():
        part = frame[indices]
        for number, start in enumerate(range(0, len(part), _ROWS_PER_FILE)):
            yield f"{place}/part-{number}.parquet", part.slice(start, _ROWS_PER_FILE)


def _escaped(word: str) -> str:
    """As Hive writes the value of a partition: what has a meaning in a path as %XX."""
    return "".join(c if c.isalnum() or c in "-_.@+," else "".join(f"%{b:02X}" for b in c.encode()) for c in word)
