"""Write docs/measures.md from the catalogue of measures: `python docs/measures.py`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Final

from bakeoff.measure.catalogue import Measure
from bakeoff.measure.functions import CATALOGUE
from bakeoff.measure.registration import STATISTICS
from bakeoff.text.markdown import Markdown, code

PAGE: Final = Path(__file__).parent / "measures.md"
_OBJECTS: Final = {"flow": "Flows", "queue": "Queues", "probe": "Probes", "run": "Runs"}
_HEAD: Final = """# Measures

A [measure](glossary.md#bakeoff) is a number computed from one run. It has the same name in [claims](claims.md),
`--until`, `--adaptive`, `plot --measure`, [compare](compare.md), the references and Python (`r.measure("jain")`).

The unit is in brackets. The column is the name in [tables](tables.md) and conditions; rows of runs prefix the object
(`flow1_goodput_bps`).
Values are in base units, by default over the measurement window. `[queue]` is optional: the default
is the first flow's bottleneck. `begin=` and `end=` (seconds) set another window. `_p50` is the median.

This page is generated from `bakeoff.measure.functions` by `python docs/measures.py`.
"""
_STATISTIC: Final = re.compile(rf"_({'|'.join(sorted(STATISTICS, key=len, reverse=True))})$")


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for of, title in _OBJECTS.items():
        named = [each for each in CATALOGUE.names.values() if each.of == of]
        lines = "".join(_line(list(family)) for _, family in groupby(named, _family))
        parts.append(f"## {title}\n\n{lines}")
    former = [f"- {_codes(each.aliases)}: now {code(each.name)}\n" for each in CATALOGUE.names.values() if each.aliases]
    parts.append("## Former names\n\nValid, with a warning.\n\n" + "".join(former))
    return "\n".join(parts)


def _family(each: Measure) -> tuple[str, str, str]:
    """Measures that differ only in their statistic have one line."""
    return _STATISTIC.sub("", each.name), each.unit, _definition(each)


def _definition(each: Measure) -> str:
    found = _STATISTIC.search(each.name)
    return each.formula.removeprefix(f"{STATISTICS[found[1]]} of " if found else "")


def _line(family: list[Measure]) -> str:
    first = family[0]
    names = ", ".join([code(first.signature), *(code(each.name) for each in family[1:])])
    columns = _codes(each.column for each in family if each.at is not None and each.tabled)
    formula = _definition(first) if len(family) > 1 else first.formula
    column = f", column {columns}" if columns else ""
    return f"- {names} [{first.unit}]{column}: {formula}" + (f" ({first.source})\n" if first.source else "\n")


def _codes(names: Iterable[str]) -> Markdown:
    return Markdown(", ".join(map(code, names)))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
