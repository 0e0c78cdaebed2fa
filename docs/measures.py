"""Write docs/measures.md from the catalogue of measures: `python docs/measures.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bakeoff.measure.catalogue import Measure
from bakeoff.measure.functions import CATALOGUE
from bakeoff.text.markdown import Markdown, code, pipes

PAGE: Final = Path(__file__).parent / "measures.md"
_OBJECTS: Final = {"flow": "Flows", "queue": "Queues", "probe": "Probes", "run": "Runs"}
_HEAD: Final = """# Measures

Every measure of bakeoff, with one name in all places: functions of [claims](claims.md), `--until`, `--adaptive`,
`plot --measure`, [compare](compare.md), references and `r.measure("jain")` in Python. `column` is its name in
[tables](tables.md) and conditions; in rows of runs it has the flow, queue or probe in front (`flow1_goodput_bps`).
All values are in base units and over the measurement window, unless the formula says otherwise.

`python docs/measures.py` writes this page from `bakeoff.measure.functions`.
"""
_VALIDATION: Final = """## Validation

`tests/measure/test_measure.py` and the tests beside it show the arithmetic of each formula.
`tests/measure/test_one_number.py` collects what every command shows of two runs, and asserts that equal names are equal
numbers.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for of, title in _OBJECTS.items():
        rows = [_row(each) for each in CATALOGUE.names.values() if each.of == of]
        parts.append(f"## {title}\n\n" + pipes(["measure", "unit", "column", "formula", "source"], [True] * 5, rows))
    aliases = [(alias, each.name) for each in CATALOGUE.names.values() for alias in each.aliases]
    rows = [[code(alias), code(name)] for alias, name in aliases]
    parts.append("## Former names\n\nThey still work, with a note.\n\n" + pipes(["former", "name"], [True] * 2, rows))
    return "\n".join([*parts, _VALIDATION])


def _row(each: Measure) -> list[str]:
    column = code(each.column) if each.at is not None and each.tabled else ""
    return [code(each.signature), each.unit, column, Markdown(each.formula), Markdown(each.source)]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
