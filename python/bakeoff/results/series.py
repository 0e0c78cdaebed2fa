"""series.parquet: how samples are stored, and the digest of what they say."""

from __future__ import annotations

import hashlib
import io
import struct
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff import files
from bakeoff.errors import BakeoffError
from bakeoff.results import parquet

if TYPE_CHECKING:
    import polars as pl

COLUMNS = ("time", "kind", "name", "metric", "value")
_KEY = ("kind", "name", "metric")
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
    """Write the samples (columns of docs/results-folder.md) as zstd Parquet; equal frames give equal bytes."""
    buffer = io.BytesIO()
    # Through memory: a full disk is then Python's OSError with its errno, whatever the library makes of it. A fixed
    # group size and one chunk keep the bytes the same for any number of threads.
    series.rechunk().write_parquet(buffer, compression="zstd", row_group_size=_ROWS_PER_GROUP)
    with open(path, "wb", opener=files.opener) as file:
        file.write(buffer.getvalue())


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


def digest(series: pl.DataFrame) -> str:
    """SHA-256 (hex) of what the samples say, independent of file format and of the order of the series in it.

    For each (kind, name, metric) in lexical order: the three words, each ended by a zero byte, the number of rows as a
    little-endian u64, all times, then all values, as little-endian f64 in order of rows.
    """
    import numpy as np

    sha = hashlib.sha256()
    pieces = _pieces(series)
    if len({key for key, _, _ in pieces}) < len(pieces):
        # sort and not group_by: the order of rows inside a series is part of what is said.
        series = series.sort(_KEY, maintain_order=True)
        pieces = _pieces(series)
    numbers = [series[column].to_numpy().astype(np.dtype("<f8")) for column in ("time", "value")]
    # The order of UTF-8 and that of code points are the same.
    for key, start, length in sorted(pieces):
        sha.update("".join(f"{word}\0" for word in key).encode())
        sha.update(struct.pack("<Q", length))
        for column in numbers:
            sha.update(column[start : start + length].tobytes())
    return sha.hexdigest()


def _pieces(series: pl.DataFrame) -> list[tuple[tuple[str, ...], int, int]]:
    """Where the words change: kind, name and metric, the first row and how many there are."""
    import polars as pl

    if series.is_empty():
        return []
    words = pl.col(_KEY)
    changes = series.select(pl.any_horizontal(words != words.shift()).fill_null(value=True)).to_series().arg_true()
    starts = changes.to_list()
    ends = [*starts[1:], series.height]
    keys = series[changes].select(_KEY).rows()
    return [(key, start, end - start) for key, start, end in zip(keys, starts, ends, strict=True)]
