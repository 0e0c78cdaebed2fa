"""A run as CSV: its samples and its measures, a file for each kind, with the unit in the name of each column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bakeoff.exports import sheets

if TYPE_CHECKING:
    from bakeoff.results import Result


def suffixes(result: Result) -> list[str]:
    """`.series-flow.csv`, `.summary-run.csv` and their like."""
    return [f".{of}-{kind}.csv" for of, kind in sheets.kinds(result)]


def files(result: Result) -> Iterator[tuple[str, bytes]]:
    """One file after the other; a value that does not exist is an empty cell."""
    for of, found in (("series", sheets.series(result)), ("summary", sheets.summary(result))):
        for sheet in found:
            yield f".{of}-{sheet.kind}.csv", sheet.frame.write_csv().encode()
