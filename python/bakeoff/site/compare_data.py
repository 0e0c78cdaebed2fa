"""What the page that compares two runs knows of each: one small script per run, loaded when somebody asks for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from bakeoff.measure import summary_of
from bakeoff.measure.functions import CATALOGUE
from bakeoff.tables import run_labels
from bakeoff.tables.cells import form_of, with_interval
from bakeoff.tables.records import interval_of, records, without_unit
from bakeoff.text.columns import clean

if TYPE_CHECKING:
    from bakeoff.site.site_contents import Page
    from bakeoff.tables.records import Record
    from bakeoff.tables.rows import Row

FILE: Final = "measures.js"
"""In the folder of a run's page."""

_KINDS: Final = {"flows": "flow", "queues": "queue", "probes": "probe"}
_OF_THE_RUN: Final = (
    *(measure.column for measure in CATALOGUE.of("run")), "converged", "met", "utilisation", "queue_delay_p50_s",
    "queue_delay_p99_s", "probe_rtt_mean_s", "marks", "sce_marks", "drops",
)  # fmt: skip
_MOST: Final = 500
"""Flows, queues or probes whose measures a page that compares gets."""
_NO_MEASURES: Final = ("n", "window_from_s", "window_to_s", "start_s", "stop_s")


def script(page: Page) -> str:
    """A call that hands the run's measures over, by the run's id."""
    return f"bakeoff.measures({json.dumps(document(page), ensure_ascii=False, separators=(',', ':'))});\n"


def document(page: Page) -> dict[str, Any]:
    """A run's measures as plain JSON values, means over its repetitions with 95 % intervals."""
    result = page.result
    made = result.record.provenance
    document: dict[str, Any] = {
        "id": page.id,
        "run": clean(run_labels.title(result)),
        "title": clean(str(result.run.title or "")),
        "engine": clean(run_labels.engine_of(result)),
        "epoch": made.model_epoch if made else None,
        "point": {clean(axis): clean(label) for axis, label in result.run.point.items()},
        "n": page.row.n if page.row else 0,
        "error": None if result.record.error is None else clean(result.record.error),
        "effect": [],
        "groups": [],
    }
    if page.row is not None:
        groups, left = _groups(page.row)
        document["effect"] = [clean(line) for line in run_labels.in_effect(result, summary_of(result))] + left
        document["groups"] = groups
    return document


def _groups(row: Row) -> tuple[list[dict[str, Any]], list[str]]:
    """The run's own numbers, then those of each flow, queue and probe; and a line for each kind that has too many."""
    [(_, whole)] = records([row], "runs")
    groups = [{"kind": "run", "name": "", "rows": _rows({name: whole.get(name) for name in _OF_THE_RUN})}]
    left = []
    for kind, column in _KINDS.items():
        known = records([row], kind)
        for _, record in known[:_MOST]:
            groups.append({"kind": column, "name": clean(str(record[column])), "rows": _rows(record)})
        if len(known) > _MOST:
            left.append(f"measures of the first {_MOST} of {len(known):,} {kind}")
    return groups, left


def _rows(record: Record) -> list[list[Any]]:
    """Name as in docs/tables.md, unit, value, and what the page writes for it; what has no number is left out."""
    rows: list[list[Any]] = []
    for name, value in record.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or name in _NO_MEASURES:
            continue
        if "_ci95" in name or name.endswith("_n"):
            continue
        half = record.get(interval_of(name))
        form = form_of(name)
        text = with_interval(name, value, half if isinstance(half, int | float) else None)
        unit = "" if form.unit == "%" else form.unit
        rows.append([without_unit(name).replace("_", " "), unit, value * form.scale, text])
    return rows
