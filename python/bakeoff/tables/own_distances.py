"""Two campaigns' distances beside those of one of them from itself, group by group."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from bakeoff.claims.comparison import Comparison
from bakeoff.claims.own_distance import MEASURES, Group, Spread
from bakeoff.tables.rows import finite
from bakeoff.text import markup
from bakeoff.text.columns import Column, number
from bakeoff.text.markup import Block, Format


def render(comparison: Comparison, groups: Sequence[Group], by: Sequence[str], form: Format) -> str:
    """A line for each group: how many runs, and for each measure median and 90th percentile of the distances.

    `csv` and `json` have a record for each group and measure. The comparison's warning is in all but `csv` and
    `terminal`: the command line tells it on standard error.
    """
    records = [_record(group, by, measure) for group in groups for measure in MEASURES if measure in group.every]
    warnings = [comparison.warning] if comparison.warning else []
    if form == "csv":
        return markup.as_csv(records)
    if form == "json":
        sides = {"ours": comparison.ours, "theirs": comparison.theirs}
        document = {**sides, "groups": records, "notes": [*comparison.notes], "warnings": warnings}
        return json.dumps(document, indent=2, allow_nan=False) + "\n"
    return markup.written(form, [_block(comparison, groups, by)], comparison.notes, warnings)


def _block(comparison: Comparison, groups: Sequence[Group], by: Sequence[str]) -> Block:
    columns = [Column(axis, [group.labels[i] for group in groups], text=True) for i, axis in enumerate(by)]
    columns.append(Column("runs", [str(group.runs) for group in groups]))
    columns.append(Column("with\nseeds", [str(group.repeated) for group in groups], keep=3))
    for measure in MEASURES:
        main = 2 if measure == "marks" else 9
        for head, side, keep in (("all", "every", 1), ("apart", "apart", main), ("own", "own", main)):
            cells = [_cell(getattr(group, side).get(measure)) for group in groups]
            columns.append(Column(f"{measure}\n{head}", cells, keep=keep))
    says = f"median/90th percentile of |ln|. all: {comparison.ours} to {comparison.theirs}, equal seeds of all runs. "
    says += f"apart: the same of the runs with several seeds. own: every two seeds of {comparison.theirs}."
    columns = [column for column in columns if any(column.cells)]
    return Block(f"{comparison.ours}, {comparison.theirs}", columns, [says])


def _cell(spread: Spread | None) -> str:
    return "" if spread is None else f"{number(spread.median, '.3f')}/{number(spread.p90, '.3f')}"


def _record(group: Group, by: Sequence[str], measure: str) -> dict[str, Any]:
    named = {f"axis_{axis}": label for axis, label in zip(by, group.labels, strict=True)}
    record: dict[str, Any] = {**named, "runs": group.runs, "with_seeds": group.repeated, "measure": measure}
    for side, spreads in {"all": group.every, "apart": group.apart, "own": group.own}.items():
        spread = spreads.get(measure)
        record[f"{side}_n"] = None if spread is None else spread.n
        record[f"{side}_median"] = None if spread is None else finite(spread.median)
        record[f"{side}_p90"] = None if spread is None else finite(spread.p90)
    return record
