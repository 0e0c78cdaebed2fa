"""What a run measured as plain tables, for CSV and Parquet: its samples, and its measures.

The samples of a kind stand side by side: a row for each name and time, and a column for each metric, whose name ends in
its unit. The measures are the rows of `bakeoff table --rows`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bakeoff.results import layout
from bakeoff.results.series_units import UNITS, unit_in, with_unit

if TYPE_CHECKING:
    import polars as pl

    from bakeoff.results import Result

SERIES: Final = ("flow", "probe", "queue", "cc")
"""Kinds of samples: `cc` are the internals of congestion controls (trace.parquet)."""
SUMMARY: Final = {"run": "runs", "flow": "flows", "probe": "probes", "queue": "queues", "phase": "phases"}
"""Kinds of measures, and what `bakeoff table --rows` calls them."""
_WORDS: Final = frozenset(
    ["bottleneck", "cc", "changes", "compared", "ecn", "flow", "flows", "from", "name", "notes", "of", "probe",
     "protocol", "qdisc", "queue", "reference", "source", "to", "transport"]
)  # fmt: skip
"""What the names of measures end in that are words and no numbers."""


@dataclass(frozen=True)
class Sheet:
    """A table, and what its numbers are."""

    kind: str
    frame: pl.DataFrame
    units: dict[str, str]
    """Of the columns that have one."""


def kinds(result: Result) -> Iterator[tuple[str, str]]:
    """(`series` or `summary`, kind) of every sheet that the run may have, without reading its samples."""
    has = {"flow": bool(result.run.flows), "probe": bool(result.run.probes)}
    for kind in SERIES:
        if has.get(kind, True) and (kind != "cc" or (result.path / layout.TRACE).exists()):
            yield "series", kind
    for kind in SUMMARY:
        if has.get(kind, True):
            yield "summary", kind


def series(result: Result) -> Iterator[Sheet]:
    """The samples, a sheet for each kind that has some."""
    import polars as pl

    for kind in SERIES[:-1]:
        if not (found := result.series.filter(pl.col("kind") == kind)).is_empty():
            yield _side_by_side(kind, found, UNITS[kind])
    if (result.path / layout.TRACE).exists():
        yield _side_by_side("cc", result.trace, UNITS["flow"])


def summary(result: Result) -> Iterator[Sheet]:
    """The measures, a sheet for each kind of which the run has some."""
    import polars as pl

    from bakeoff.tables.records import records
    from bakeoff.tables.rows import rows

    table = rows([result], [], None)
    for kind, named in SUMMARY.items():
        found: list[dict[str, Any]] = [record for _, record in records(table, named)]
        if not found:
            continue
        frame = pl.DataFrame(found, infer_schema_length=None)
        # What no row has is of the form that it has elsewhere, so that the files of several runs go together.
        empty = [name for name, form in frame.schema.items() if form == pl.Null]
        frame = frame.with_columns(
            pl.col(name).cast(pl.String if name.rpartition("_")[2] in _WORDS else pl.Float64) for name in empty
        )
        at = frame.columns.index("run") + 1 if "run" in frame.columns else 0
        frame.insert_column(at, pl.Series("seed", [result.run.seed] * frame.height, dtype=pl.Int64))
        yield Sheet(kind, frame, {name: unit for name in frame.columns if (unit := unit_in(name))})


def _side_by_side(kind: str, samples: pl.DataFrame, units: dict[str, str]) -> Sheet:
    import polars as pl

    # Two datagrams may be sent at one time: the first, the second … of a time make a row each.
    counted = samples.with_columns(pl.int_range(pl.len()).over("name", "metric", "time").alias("nth"))
    wide = counted.pivot(on="metric", index=["name", "time", "nth"], values="value", aggregate_function="first")
    first = pl.Series(samples["name"].unique(maintain_order=True))
    wide = wide.sort(pl.col("name").replace_strict(first, range(len(first)), return_dtype=pl.Int64), "time", "nth")
    metrics = sorted(wide.columns[3:], key=lambda metric: [*units].index(metric) if metric in units else len(units))
    known = {metric: units.get(metric) for metric in metrics}
    frame = wide.select(
        pl.col("time").alias("time_s"), "name", *(pl.col(name).alias(with_unit(name, known[name])) for name in metrics)
    )
    units_of = {with_unit(name, unit): unit for name, unit in known.items() if unit is not None}
    return Sheet(kind, frame, {"time_s": "s", **units_of})
