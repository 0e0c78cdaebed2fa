"""series.parquet: storage and digest of samples."""

from __future__ import annotations

import hashlib
import io
import mmap
import struct
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff import files
from bakeoff.errors import ResultsError
from bakeoff.results import parquet

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import polars as pl

    Array = npt.NDArray[np.float64]
    Parts = Mapping[tuple[str, str, str], tuple[Array, Array]]
    """Times [s] and values of each series, by kind, name and metric; a series without samples is not there."""

COLUMNS = ("time", "kind", "name", "metric", "value")
_KEY = ("kind", "name", "metric")
_ARROW_SCHEMA = "ARROW:schema"
_ROWS_PER_GROUP = 1 << 18
_ALWAYS = 1 << 32
"""Bytes that any file may unfold to: ten thousand flows that are sampled for ten seconds take nearly half of it."""
_TIMES = 100
"""Times its own size that a file may unfold to; ours do about 30."""
_BYTES_OF_A_SAMPLE = 24
"""Its time, its value, and what is computed of it."""
_SPARE = 128 << 20
"""Bytes for the row group that is being read."""
_BY_POLARS = 640 << 20
"""Likewise, with what polars asks the system for when it is imported and first used."""
_LATEST = 1e9
"""Seconds: no run is longer."""
_LARGEST = 1e30
"""Nothing that is counted or measured is larger."""


def write_series(path: Path, series: pl.DataFrame) -> None:
    """Write the samples (columns of docs/results-folder.md) as zstd Parquet; equal frames give equal bytes.

    Words may be strings or an enumeration, and are read as strings either way.
    """
    # A fixed group size and one chunk keep the bytes the same for any number of threads.
    with _whole_file(path) as buffer:
        series.rechunk().write_parquet(
            buffer, compression="zstd", row_group_size=_ROWS_PER_GROUP, metadata={_ARROW_SCHEMA: _with_strings(series)}
        )


def write_parts(path: Path, series: Parts) -> None:
    """Write what `write_series` writes of `table(series)`, one row group after the other, without that table."""
    from polars.io.plugins import register_io_source

    first = next(_groups(series))
    scanned = register_io_source(lambda *_: _groups(series), schema=first.schema, is_pure=True)
    with _whole_file(path) as buffer:
        scanned.sink_parquet(
            buffer, compression="zstd", row_group_size=_ROWS_PER_GROUP, metadata={_ARROW_SCHEMA: _with_strings(first)}
        )


@contextmanager
def _whole_file(path: Path) -> Iterator[io.BytesIO]:
    """A buffer whose bytes become the file. A full disk is then Python's OSError with its errno."""
    buffer = io.BytesIO()
    yield buffer
    with open(path, "wb", opener=files.opener) as file:
        file.write(buffer.getbuffer())


def _with_strings(series: pl.DataFrame) -> str:
    """What the metadata of a file says of its columns, if all words are strings.

    Parquet itself knows no enumeration. Readers that are told of one refuse to put files of different words together.
    """
    import polars as pl

    buffer = io.BytesIO()
    series.clear().cast({pl.Enum: pl.String}).write_parquet(buffer)
    buffer.seek(0)
    return pl.read_parquet_metadata(buffer)[_ARROW_SCHEMA]


def read_series(path: Path) -> pl.DataFrame:
    """Read series.parquet. BakeoffError if it is no Parquet file, lacks a column or holds what is no sample."""
    import polars as pl

    return pl.concat(list(batches(path)), rechunk=True)


def read_parts(path: Path, metrics: Collection[str] | None = None) -> Parts:
    """The samples of series.parquet, or of these metrics only, in a quarter of the memory of the table.

    BakeoffError as of `read_series`, and where a series is not in order of time.
    """
    _need_memory(path)
    import polars as pl

    pieces: dict[tuple[str, str, str], list[tuple[Array, Array]]] = {}
    for batch in batches(path):
        wanted = batch if metrics is None else batch.filter(pl.col("metric").is_in(list(metrics)))
        for key, piece in parts(wanted).items():
            pieces.setdefault(key, []).append(piece)
    found = {}
    # Each piece is dropped when it is joined, so that the samples are there once.
    for key in list(pieces):
        found[key] = _joined(pieces.pop(key))
        _need_order(path, key, found[key][0])
    return found


def _need_memory(path: Path) -> None:
    """BakeoffError if the system does not give what the samples take: polars would end the process.

    A file with a wrong footer is none of its business: `batches` refuses it.
    """
    try:
        with files.opened(path) as file:
            rows = sum(parquet.groups(file)) if parquet.check(file, path, _ALWAYS, _TIMES) is None else 0
    except (OSError, parquet.NoParquetError):
        return
    needed = rows * _BYTES_OF_A_SAMPLE + (_BY_POLARS if "polars" not in sys.modules else _SPARE)
    try:
        # Nothing of it is touched, so that it costs nothing.
        mmap.mmap(-1, needed).close()
    except OSError as error:
        raise ResultsError(f"{path}: needs {needed >> 20:,} MB of memory for its samples: {error.strerror}") from error


def _joined(pieces: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    import numpy as np

    time, value = ([piece[at] for piece in pieces] for at in (0, 1))
    return (time[0], value[0]) if len(pieces) == 1 else (np.concatenate(time), np.concatenate(value))


def _need_order(path: Path, key: tuple[str, str, str], time: Array) -> None:
    import numpy as np

    backwards = np.flatnonzero(np.diff(time) < 0)
    if len(backwards):
        at = int(backwards[0])
        raise ResultsError(
            f"{path}: holds {_name_of(key)} at {time[at + 1]} s after {time[at]} s; expected samples in order of time"
        )


def batches(path: Path) -> Iterator[pl.DataFrame]:
    """The rows of series.parquet in tables of whole row groups; there is at least one table.

    BakeoffError as of `read_series`.
    """
    import polars as pl

    try:
        # Through a file object: polars takes no path that is not UTF-8.
        with files.opened(path) as file:
            # Polars gives the memory that the file asks for, and the system takes the process for it.
            wrong = parquet.check(file, path, _ALWAYS, _TIMES)
            if wrong is not None:
                raise ResultsError(wrong)
            table, first = pl.scan_parquet(file), 0
            _need_columns(path, table.collect_schema())
            for rows in _together(parquet.groups(file)):
                batch = table.slice(first, rows).collect()
                if batch.height != rows:
                    raise ResultsError(f"{path}: holds {first + batch.height} rows, fewer than its footer states")
                _need_samples(path, batch)
                yield batch
                first += rows
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ResultsError(f"{path}: cannot be read as Parquet: {error}") from error


def _together(groups: Iterable[int]) -> Iterator[int]:
    """The rows of row groups, of which small ones are read together."""
    rows = 0
    for group in groups:
        if rows and rows + group > _ROWS_PER_GROUP:
            yield rows
            rows = 0
        rows += group
    yield rows


def _need_columns(path: Path, schema: pl.Schema) -> None:
    import polars as pl

    if tuple(schema) != COLUMNS:
        raise ResultsError(f"{path}: columns {', '.join(schema)}; expected {', '.join(COLUMNS)}")
    for column, form in schema.items():
        if form != (pl.Float64 if column in ("time", "value") else pl.String):
            raise ResultsError(
                f"{path}: the column {column} holds {form}; expected numbers in time and value, else strings"
            )


def _need_samples(path: Path, series: pl.DataFrame) -> None:
    """BakeoffError names the first row that no run can have measured, or that is out of order."""
    import polars as pl

    time, value = pl.col("time"), pl.col("value")
    # A number that is none is not between others, and what is missing is false here.
    possible = time.is_between(-_LATEST, 2 * _LATEST) & (value.abs() <= _LARGEST) & value.is_finite()
    named = pl.all_horizontal(pl.col(_KEY).is_not_null())
    good = series.select((possible & named).fill_null(value=False).alias("good"))["good"]
    if not good.all():
        row = series.row(good.arg_min() or 0, named=True)
        raise ResultsError(
            f"{path}: holds {_name_of(_key_of(row))} = {row['value']} at {row['time']} s; "
            "expected a finite number at a time of the run"
        )
    # Time goes back where the next series begins: only there are names compared.
    backwards = (series["time"].diff() < 0).arg_true()
    here, before = series[backwards], series[backwards - 1]
    for row, earlier in zip(here.iter_rows(named=True), before.iter_rows(named=True), strict=True):
        if all(row[word] == earlier[word] for word in _KEY):
            raise ResultsError(
                f"{path}: holds {_name_of(_key_of(row))} at {row['time']} s after {earlier['time']} s; "
                "expected samples in order of time"
            )


def _key_of(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(row[word] for word in _KEY)


def _name_of(key: tuple[object, ...]) -> str:
    return " ".join(repr(word)[:80] for word in key)


def parts(series: pl.DataFrame) -> Parts:
    """The samples of a table, which are in the columns of docs/results-folder.md, one series after the other.

    A series keeps the order of its rows, and the series stand in the order of their first rows.
    """
    # One aggregation and two flat arrays: a frame per series takes ten times as long.
    grouped = series.group_by(_KEY, maintain_order=True).agg("time", "value")
    times, values = (grouped[column].explode(empty_as_null=False).to_numpy() for column in ("time", "value"))
    found: dict[tuple[str, str, str], tuple[Array, Array]] = {}
    end = 0
    for kind, name, metric, length in zip(
        grouped["kind"], grouped["name"], grouped["metric"], grouped["time"].list.len(), strict=True
    ):
        start, end = end, end + length
        found[str(kind), str(name), str(metric)] = times[start:end], values[start:end]
    return found


def table(series: Parts) -> pl.DataFrame:
    """The same samples as one table, in which one series follows the other: so they compress and are read best."""
    import polars as pl

    return pl.concat(list(_groups(series)), rechunk=True)


def _groups(series: Parts) -> Iterator[pl.DataFrame]:
    """The rows of `table`, as many at a time as a row group has; at least one table.

    The words are an enumeration of those that occur, which is written in less than half the time of strings.
    """
    import polars as pl

    columns = list(zip(*series, strict=True)) if series else [(), (), ()]
    names = [pl.Series(word, dtype=pl.Enum(list(dict.fromkeys(word)))) for word in columns]
    rows: list[tuple[int, Array, Array]] = []
    room = _ROWS_PER_GROUP
    for number, (time, value) in enumerate(series.values()):
        start = 0
        while start < len(time):
            end = min(start + room, len(time))
            rows.append((number, time[start:end], value[start:end]))
            room, start = room - (end - start), end
            if not room:
                yield _group(names, rows)
                rows, room = [], _ROWS_PER_GROUP
    if rows or not any(len(time) for time, _ in series.values()):
        yield _group(names, rows)


def _group(names: list[pl.Series], rows: list[tuple[int, Array, Array]]) -> pl.DataFrame:
    import numpy as np
    import polars as pl

    number = np.repeat(np.array([row[0] for row in rows], dtype=np.uint32), [len(row[1]) for row in rows])
    time, value = (np.concatenate([row[at] for row in rows]) if rows else np.empty(0) for at in (1, 2))
    columns = {column: of.gather(number) for column, of in zip(_KEY, names, strict=True)}
    return pl.DataFrame({"time": time, **columns, "value": value})


def digest(series: Parts) -> str:
    """SHA-256 (hex) of what the samples say, independent of file format and of the order of the series.

    For each (kind, name, metric) in lexical order: the three words, each ended by a zero byte, the number of rows as a
    little-endian u64, all times, then all values, as little-endian f64 in order of rows.
    """
    import numpy as np

    sha = hashlib.sha256()
    # The order of UTF-8 and that of code points are the same.
    for key in sorted(series):
        sha.update("".join(f"{word}\0" for word in key).encode())
        sha.update(struct.pack("<Q", len(series[key][0])))
        for column in series[key]:
            sha.update(np.ascontiguousarray(column, "<f8").data)
    return sha.hexdigest()
