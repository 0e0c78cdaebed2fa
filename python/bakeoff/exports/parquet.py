"""A run as Parquet: its samples and its measures, a file for each kind, that say in their schema what each column is.

Every column of numbers has the key `unit` in its metadata, and its name ends in the unit as well. The metadata of the
file has the key `bakeoff`: JSON with the run's key, seed, engine, versions, digest and provenance, and `units` by
column once more, for programs that show no metadata of columns. Columns with suite, scenario, run and seed come first,
so that the files of many runs are one table.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING

import msgspec

from bakeoff.exports import sheets

if TYPE_CHECKING:
    import polars as pl

    from bakeoff.exports.sheets import Sheet
    from bakeoff.results import Result


def suffixes(result: Result) -> list[str]:
    """`.series-flow.parquet`, `.summary-run.parquet` and their like."""
    return [f".{of}-{kind}.parquet" for of, kind in sheets.kinds(result)]


def files(result: Result) -> Iterator[tuple[str, bytes]]:
    """One file after the other; a value that does not exist is null."""
    for sheet in sheets.series(result):
        yield f".series-{sheet.kind}.parquet", _written(result, sheet, _of_the_run(result, sheet.frame))
    for sheet in sheets.summary(result):
        yield f".summary-{sheet.kind}.parquet", _written(result, sheet, sheet.frame)


def _of_the_run(result: Result, frame: pl.DataFrame) -> pl.DataFrame:
    import polars as pl

    names = [pl.lit(getattr(result.run, name)).alias(name) for name in ("suite", "scenario", "run")]
    return frame.select(*names, pl.lit(result.run.seed, pl.Int64).alias("seed"), pl.all())


def _written(result: Result, sheet: Sheet, frame: pl.DataFrame) -> bytes:
    import nanoarrow
    import polars as pl

    forms = {
        pl.String: nanoarrow.Type.LARGE_STRING,
        pl.Float64: nanoarrow.Type.DOUBLE,
        pl.Int64: nanoarrow.Type.INT64,
        pl.Boolean: nanoarrow.Type.BOOL,
        pl.Null: nanoarrow.Type.NULL,
    }
    schema = nanoarrow.Schema(
        nanoarrow.Type.STRUCT,
        fields={
            name: nanoarrow.Schema(forms[type(form)], metadata={"unit": sheet.units[name]})
            if name in sheet.units
            else forms[type(form)]
            for name, form in frame.schema.items()
        },
    )
    about = {"key": result.key, **result.record.about(), "units": sheet.units}
    buffer = io.BytesIO()
    frame.write_parquet(buffer, arrow_schema=schema, metadata={"bakeoff": msgspec.json.encode(about).decode()})
    return buffer.getvalue()
