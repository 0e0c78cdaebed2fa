"""Tables that would make a page too long: their first rows on the page, and all of them as CSV beside it."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROWS: Final = 500
"""Of a table on a page."""
NAMES: Final = 5000
"""Rows of the table of all measures, which is closed until a reader opens it."""
LETTERS: Final = 2000
"""Of a cell."""
FOLDER: Final = "tables"

Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class Whole:
    """The file that holds a whole table."""

    shown: int
    rows: int
    place: str
    """Relative to the page's folder."""


def cut(
    heads: Sequence[str], rows: Rows, folder: Path, name: str, most: int = ROWS
) -> tuple[list[list[str]], Whole | None]:
    """The rows that the page shows, and the file with all of them if these are not all, or not whole."""
    short = [[_short(cell) for cell in row] for row in rows[:most]]
    if len(rows) <= most and short == [list(row) for row in rows]:
        return short, None
    return short, Whole(len(short), len(rows), _write([heads, *rows], folder, name))


def cut_lines(lines: Sequence[str], most: int, source: str) -> list[str]:
    """The first of several lines, and how many more there are in the file `where`."""
    more = [f"and {len(lines) - most:,} more, in {source}"] if len(lines) > most else []
    return [*(_short(line) for line in lines[:most]), *more]


def _short(text: str) -> str:
    return text if len(text) <= LETTERS else text[: LETTERS - 1] + "…"


def _write(lines: Iterable[Sequence[str]], folder: Path, name: str) -> str:
    """The place of a new file below `folder`. The same table gives the same bytes."""
    target = folder / FOLDER
    target.mkdir(exist_ok=True)
    path = f"{FOLDER}/{name}.csv.gz"
    with (
        (folder / path).open("xb") as file,
        gzip.GzipFile("", "wb", 6, file, mtime=0) as packed,
        io.TextIOWrapper(packed, "utf-8", newline="") as text,
    ):
        csv.writer(text, lineterminator="\n").writerows(lines)
    return path
