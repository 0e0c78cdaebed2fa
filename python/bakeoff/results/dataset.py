"""The runs of a campaign as one table: a Parquet data set with a row for each run, which other programs read at once.

    sweep/suite=local/scenario=two/engine=sim/part-0.parquet
    sweep/schema.json

docs/sweeps.md has the columns. The data set is made from the results folder and from nothing else.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, get_args, get_origin

import msgspec

from bakeoff import files
from bakeoff.errors import ResultsError
from bakeoff.results import layout
from bakeoff.results.read import Result
from bakeoff.results.series_units import unit_in
from bakeoff.results.summary import OF_GOODPUT, Record, Summary
from bakeoff.results.write import take_place, write_json
from bakeoff.scenario import units

if TYPE_CHECKING:
    import polars as pl

    from bakeoff.results.metadata import RunRecord

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


class _Row(NamedTuple):
    """What the data set tells of a run besides its measures."""

    suite: str
    scenario: str
    run: str
    seed: int
    point: dict[str, str]
    engine: str
    status: str
    error: str | None
    digest: str | None
    wall_s: float

    @classmethod
    def of(cls, record: RunRecord) -> Self:
        run = record.run
        about = record.engine, record.status, record.error, record.digest, record.wall_s
        return cls(run.suite, run.scenario, run.run, run.seed, run.point, *about)


_Numbers = dict[str, list[float | int | None]]
"""A column for each measure, with a place for each run; None where a run has no such number."""

_objects: Final = msgspec.json.Decoder(dict[str, Any])


def write(root: Path, runs: Iterable[Path]) -> tuple[Path, int]:
    """Write the data set of the runs in these folders into the campaign's folder `root`; where it lies, and its rows.

    One that is there is replaced. BakeoffError if a file cannot be read or written.
    """
    folder = root / FOLDER
    partial = folder.with_name(layout.partial_name(FOLDER, os.getpid()))
    try:
        records, numbers = _read(runs)
        columns, about = _columns(records, numbers)
        partial.mkdir(parents=True)
        for partition, frame in _parts(records, columns):
            (partial / partition).parent.mkdir(parents=True, exist_ok=True)
            frame.write_parquet(partial / partition, compression="zstd")
        write_json(partial / SCHEMA, {"rows": len(records), "partitions": list(_PARTITIONS), "columns": about})
        take_place(partial, folder)
    except OSError as error:
        raise ResultsError(f"{folder}: cannot be written: {error.strerror or error}") from error
    finally:
        files.discard(partial)
    return folder, len(records)


def _read(runs: Iterable[Path]) -> tuple[list[_Row], _Numbers]:
    """What is known of each run, and the measures of all."""
    records: list[_Row] = []
    numbers: _Numbers = {}
    for row, path in enumerate(runs):
        try:
            record = Result.read(path).record
            if record.status == "ok":
                summary = _objects.decode(files.read(path / layout.SUMMARY, _LARGEST))
                if len(record.run.flows) > MOST_FLOWS:
                    summary = {key: value for key, value in summary.items() if not isinstance(value, dict)}
                if summary.get("format", 1) < OF_GOODPUT:
                    for name in ("jain", "ratio"):
                        summary[f"{name}_delivery_rate"] = summary.pop(name, None)
                        summary[name] = summary.pop(f"{name}_goodput", None)
                _add(summary, "", numbers, row)
                named = path / layout.MEASURED
                if named.exists():
                    taken = _objects.decode(files.read(named, _LARGEST))
                    for name, value in taken.items():
                        _put(numbers, name, row, None if value is None else float(value))
        except (OSError, ValueError, RecursionError) as error:
            raise ResultsError(f"{path}: cannot be read: {error}") from error
        records.append(_Row.of(record))
    for column in numbers.values():
        column.extend([None] * (len(records) - len(column)))
    return records, numbers


def _add(tree: Mapping[str, Any], prefix: str, numbers: _Numbers, row: int) -> None:
    """Every number of a summary, or of a part of it, into its column."""
    for key, value in tree.items():
        # What a decoder gave is of these types and of none that are derived from them; a truth value is no number here.
        kind = type(value)
        if kind is dict:
            _add(value, f"{prefix}{key}.", numbers, row)
        elif (kind is float or kind is int or (value is None and key in _number_keys())) and key not in _NOT_MEASURED:
            _put(numbers, prefix + key, row, value)


@cache
def _number_keys() -> frozenset[str]:
    """The keys of summary.json whose value is a number or, where a run could not give one, null."""
    found: set[str] = set()
    seen: set[type] = set()

    def walk(form: Any) -> None:  # noqa: ANN401 (any type)
        if isinstance(form, type) and issubclass(form, Record) and form not in seen:
            seen.add(form)
            for field in msgspec.structs.fields(form):
                parts = get_args(field.type) or (field.type,)
                if {int, float}.intersection(parts) and not any(get_origin(part) for part in parts):
                    found.add(field.encode_name)
                walk(field.type)
        for part in get_args(form):
            walk(part)

    walk(Summary)
    return frozenset(found)


def _put(numbers: _Numbers, name: str, row: int, value: float | int | None) -> None:
    """One number into its column, which ends there; a number that stands there already goes.

    Of None there is the column, and what stands there stays.
    """
    column = numbers.setdefault(name, [])
    if value is None:
        return
    if len(column) != row:
        del column[row:]
        column.extend([None] * (row - len(column)))
    column.append(value)


def _columns(records: Sequence[_Row], numbers: _Numbers) -> tuple[dict[str, pl.Series], dict[str, dict[str, str]]]:
    """Every column but the partitions, and what schema.json says of it."""
    import polars as pl

    made: dict[str, pl.Series] = {}
    about: dict[str, dict[str, str]] = {}
    forms = {"seed": pl.Int64, "wall_s": pl.Float64}
    for name, what in _OF_A_RUN.items():
        of = [getattr(record, name) for record in records]
        made[name] = pl.Series(name, of, dtype=forms.get(name, pl.String))
        about[name] = {"kind": "run", "unit": "s" if name == "wall_s" else "", "what": what}
    for axis in dict.fromkeys(axis for record in records for axis in record.point):
        labels = [record.point.get(axis) for record in records]
        known = [None if label is None else units.si(label) for label in labels]
        of_one = {each[1] for each in known if each is not None}
        numeric = len(of_one) == 1 and all(each is not None for each, label in zip(known, labels, strict=True) if label)
        if numeric:
            made[axis] = pl.Series(axis, [each and each[0] for each in known], dtype=pl.Float64)
        else:
            made[axis] = pl.Series(axis, labels, dtype=pl.String)
        about[axis] = {"kind": "parameter", "unit": of_one.pop() if numeric else "text"}
    for name, several in numbers.items():
        kinds = set(map(type, several))
        whole = int in kinds and float not in kinds
        column = name if name not in made else f"{name} (measure)"
        made[column] = pl.Series(column, several, dtype=pl.Int64 if whole else pl.Float64, strict=False)
        about[column] = {"kind": "measure", "unit": unit_in(name) or ""}
    return made, about


def _parts(records: Sequence[_Row], columns: Mapping[str, pl.Series]) -> Iterator[tuple[str, pl.DataFrame]]:
    """Each file of the data set, with its place."""
    import polars as pl

    frame = pl.DataFrame(list(columns.values()))
    places: dict[str, list[int]] = {}
    for index, record in enumerate(records):
        values = zip(_PARTITIONS, (record.suite, record.scenario, record.engine), strict=True)
        places.setdefault("/".join(f"{name}={_escaped(word)}" for name, word in values), []).append(index)
    for partition, indices in places.items():
        part = frame[indices]
        for number, start in enumerate(range(0, len(part), _ROWS_PER_FILE)):
            yield f"{partition}/part-{number}.parquet", part.slice(start, _ROWS_PER_FILE)


def _escaped(word: str) -> str:
    """As Hive writes the value of a partition: what has a meaning in a path as %XX."""
    return "".join(c if c.isalnum() or c in "-_.@+," else "".join(f"%{b:02X}" for b in c.encode()) for c in word)
