"""Columns of text, as a terminal or Markdown shows them."""

from __future__ import annotations

import io
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

WIDE = 100_000
"""As good as no bound."""

_DISTANCE = "ln"
"""The head of the columns that have colours."""


@dataclass(frozen=True)
class Column:
    """A column as people see it."""

    head: str
    """Up to two lines."""
    cells: Sequence[str]
    keep: int = 9
    """The lowest goes first when a table is too wide; 9 always stays."""
    text: bool = False
    """Set flush left."""


def console(width: int | None = None, colour: bool | None = None) -> tuple[Console, io.StringIO]:
    """What draws into the buffer beside it; width and colour are by default those of standard output.

    COLUMNS of the environment is the width if it is set; what is piped has none.
    """
    from rich.console import Console

    colour = sys.stdout.isatty() if colour is None else colour
    if width is None:
        known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
        width = shutil.get_terminal_size((100, 24)).columns if known else WIDE
    out = io.StringIO()
    drawing = Console(
        file=out, width=width, force_terminal=colour, color_system="standard" if colour else None, highlight=False
    )
    return drawing, out


def text_of(out: io.StringIO) -> str:
    """What was drawn, without trailing spaces, in characters that standard output has."""
    text = "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n") + "\n"
    if (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf"):
        return text
    for letter, plain in (("±", "+-"), ("─", "-"), ("×", "x"), ("≥", ">=")):
        text = text.replace(letter, plain)
    return text.encode("ascii", "replace").decode("ascii")


def rich_table(columns: Sequence[Column]) -> Table:
    """The columns side by side; a column `ln` has colours by distance."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    for column in columns:
        drawn.add_column(
            column.head, justify="left" if column.text else "right", no_wrap=column.keep < 9, header_style="bold"
        )
    for cells in zip(*(column.cells for column in columns), strict=True):
        drawn.add_row(*(Text(cell, _style(column.head, cell)) for column, cell in zip(columns, cells, strict=True)))
    return drawn


def widths(columns: Sequence[Column]) -> list[int]:
    """How many cells of a terminal each column takes."""
    from rich.cells import cell_len

    return [max(map(cell_len, {*column.head.split("\n"), *column.cells})) for column in columns]


def grid(columns: Sequence[Column]) -> Iterator[Text]:
    """The same lines as those of `rich_table` where no cell has to be folded: ten thousand rows are made at once."""
    from rich.cells import cell_len
    from rich.text import Text

    sizes = widths(columns)

    def line(cells: Sequence[str], styles: Mapping[int, str]) -> Text:
        # One text per line and not one per cell: rich takes longer over each than everything before it did.
        gaps = [
            " " * (size - (len(cell) if cell.isascii() else cell_len(cell)))
            for cell, size in zip(cells, sizes, strict=True)
        ]
        parts = [cell + gap if flush else gap + cell for cell, gap, flush in zip(cells, gaps, left, strict=True)]
        made = Text("  ".join(parts))
        for i, style in styles.items():
            start = sum(len(part) + 2 for part in parts[:i])
            made.stylize(style, start, start + len(parts[i]))
        return made

    left = [column.text for column in columns]
    coloured = [i for i, column in enumerate(columns) if column.head == _DISTANCE]
    heads = [column.head.split("\n") for column in columns]
    deep = max(map(len, heads))
    bold = dict.fromkeys(range(len(columns)), "bold")
    for i in range(deep):
        own = [i - (deep - len(head)) for head in heads]  # short headings stand at the bottom
        yield line([head[k] if k >= 0 else "" for head, k in zip(heads, own, strict=True)], bold)
    yield Text("─" * (sum(sizes) + 2 * (len(columns) - 1)))
    for cells in zip(*(column.cells for column in columns), strict=True):
        yield line(cells, {i: style for i in coloured if (style := _style(_DISTANCE, cells[i]))})


def pipes(heads: Sequence[str], left: Sequence[bool], cells: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; `left`: which columns are set flush left."""
    lines = [heads, ["---" if flush else "---:" for flush in left], *cells]
    cooked = ([escaped(cell) for cell in line] if i != 1 else line for i, line in enumerate(lines))
    return "".join("| " + " | ".join(line) + " |\n" for line in cooked)


def escaped(cell: str) -> str:
    """A text as Markdown has it in a table or a paragraph: no bars that end a cell, no HTML."""
    return clean(cell).replace("|", "\\|").replace("<", "&lt;")


def clean(text: str, keep: str = "") -> str:
    """A text as it may be shown: control characters, such as a terminal obeys, as escapes that say what they are."""
    return "".join(
        letter if letter in keep or (letter.isprintable() and letter not in "\u2028\u2029") else ascii(letter)[1:-1]
        for letter in text
    )


def number(value: float | None, form: str) -> str:
    """A number in a format, without the sign of a zero; empty for None."""
    if value is None:
        return ""
    text = format(value, form)
    return text.replace("-", "+") if not text.strip("+-0.%") else text


def _style(head: str, cell: str) -> str:
    if head != _DISTANCE or not cell:
        return ""
    distance = abs(float(cell))
    return "green" if distance < 0.1 else "red" if distance > 0.25 else "yellow"
