"""series.parquet: how samples are stored, and the digest of what they say."""

from __future__ import annotations

import hashlib
import io
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff import files
from bakeoff.errors import BakeoffError
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
_LATEST = 1e9
"""Seconds: no run is longer."""
_LARGEST = 1e30
"""Nothing that is counted or measured is larger."""


def write_series(path: Path, series: pl.DataFrame) -> None:
    """Write the samples (columns of docs/results-folder.md) as zstd Parquet; equal frames give equal bytes.

    Words may be strings or an enumeration, and are read as strings either way.
    """
    # Through memory: a full disk is then Python's OSError with its errno, whatever the library makes of it. A fixed
    # group size and one chunk keep the bytes the same for any number of threads.
    buffer = io.BytesIO()
    series.rechunk().write_parquet(
        buffer, compression="zstd", row_group_size=_ROWS_PER_GROUP, metadata={_ARROW_SCHEMA: _with_strings(series)}
    )
    with open(path, "wb", opener=files.opener) as file:
        file.write(buffer.getvalue())


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

    try:
        # Through a file object: polars takes no path that is not UTF-8.
        with files.opened(path) as file:
            # Polars gives the memory that the file asks for, and the system takes the process for it.
            wrong = parquet.check(file, path, _ALWAYS, _TIMES)
            if wrong is not None:
                raise BakeoffError(wrong)
            series = pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise BakeoffError(f"{path}: cannot be read as Parquet: {error}") from error
    if tuple(series.columns) != COLUMNS:
        raise BakeoffError(f"{path}: has the columns {', '.join(series.columns)}; expected {', '.join(COLUMNS)}")
    for column, form in series.schema.items():
        if form != (pl.Float64 if column in ("time", "value") else pl.String):
            raise BakeoffError(
                f"{path}: the column {column} holds {form}; expected numbers in time and value, else words"
            )
    _need_samples(path, series)
    return series


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
        raise BakeoffError(
            f"{path}: holds {_said(row)} = {row['value']} at {row['time']} s; "
            "expected a finite number at a time of the run"
        )
    # Time goes back where the next series begins: only there are names compared.
    backwards = (series["time"].diff() < 0).arg_true()
    here, before = series[backwards], series[backwards - 1]
    for row, earlier in zip(here.iter_rows(named=True), before.iter_rows(named=True), strict=True):
        if all(row[word] == earlier[word] for word in _KEY):
            raise BakeoffError(
                f"{path}: holds {_said(row)} at {row['time']} s after {earlier['time']} s; "
                "expected samples in order of time"
            )


def _said(row: dict[str, object]) -> str:
    return " ".join(repr(row[word])[:80] for word in _KEY)


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
    """The same samples as one table, in which one series follows the other: so they compress and are read best.

    The words are an enumeration of those that occur, which is written in less than half the time of strings.
    """
    import numpy as np
    import polars as pl

    lengths = np.array([len(time) for time, _ in series.values()], dtype=np.int64)
    number = np.repeat(np.arange(len(lengths), dtype=np.uint32), lengths)
    words = zip(*series, strict=True) if series else ((), (), ())
    time, value = (
        np.concatenate([columns[at] for columns in series.values()]) if series else np.empty(0) for at in (0, 1)
    )
    return pl.DataFrame(
        {
            "time": time,
            **{
                column: pl.Series(column, names, dtype=pl.Enum(list(dict.fromkeys(names)))).gather(number)
                for column, names in zip(_KEY, words, strict=True)
            },
            "value": value,
        }
    )


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
