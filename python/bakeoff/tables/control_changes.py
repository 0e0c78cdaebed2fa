"""What changed between two campaigns that differ in one congestion control, as a table and as records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bakeoff.claims import changes
from bakeoff.tables.distances import written
from bakeoff.tables.rows import finite
from bakeoff.text import markup
from bakeoff.text.columns import Column
from bakeoff.text.markup import Block, Format

if TYPE_CHECKING:
    from bakeoff.claims.comparison import Comparison
    from bakeoff.claims.other_control import Changed, Controls

_SHOWN = 40


def render(comparison: Comparison, controls: Controls, several: Sequence[Changed], form: Format) -> str:
    """A line for each number that is not the same; a terminal has the first 40. `csv` and `json` have all numbers.

    The comparison's warning is in all but `csv` and `terminal`: the command line tells it on standard error.
    """
    warnings = [comparison.warning] if comparison.warning else []
    if form == "csv":
        return markup.as_csv([record(one) for one in several])
    if form == "json":
        document = {
            "ours": comparison.ours,
            "theirs": comparison.theirs,
            "controls": controls._asdict(),
            "changes": [record(one) for one in several],
            "notes": list(comparison.notes),
            "warnings": warnings,
        }
        return json.dumps(document, indent=2, allow_nan=False) + "\n"
    other = [one for one in several if one.change.word != "same"]
    shown = other[:_SHOWN] if form == "terminal" else other
    counts = ", ".join(f"{n} {word}" for word, n in changes.counts([one.change.word for one in several]).items())
    columns = [
        Column("change", [one.change.word for one in shown], text=True),
        Column("run", [one.key.run for one in shown], text=True),
        Column("flow", [one.key.flow for one in shown], text=True),
        Column("measure", [one.key.measure for one in shown], text=True),
        Column("ours", [written(one.key.measure, one.change.ours, unit=True) for one in shown], keep=2),
        Column("theirs", [written(one.key.measure, one.change.theirs, unit=True) for one in shown], keep=2),
        Column("in words", [one.change.words for one in shown], text=True),
    ]
    more = [f"and {len(other) - len(shown)} more; format csv has all"] if len(other) > len(shown) else []
    title = f"{controls.ours} ({comparison.ours}) beside {controls.theirs} ({comparison.theirs}): {counts}"
    block = Block(title, columns, [*more, changes.METHOD])
    return markup.written(form, [block], comparison.notes, warnings)


def record(one: Changed) -> dict[str, Any]:
    """A change as flat names and plain values in base units; infinite ones are null."""
    suite, scenario, run, flow, measure = one.key
    found = one.change
    low, high = found.interval or (None, None)
    return {
        "suite": suite,
        "scenario": scenario,
        "run": run,
        "flow": flow,
        "measure": measure,
        "unit": found.unit,
        "ours": finite(found.ours),
        "theirs": finite(found.theirs),
        "pairs": found.pairs,
        "difference": finite(found.difference),
        "interval_low": low,
        "interval_high": high,
        "relative": found.relative,
        "p": found.p,
        "p_corrected": found.corrected,
        "word": found.word,
        "words": found.words,
        **{f"axis_{axis}": label for axis, label in one.axes.items()},
    }
