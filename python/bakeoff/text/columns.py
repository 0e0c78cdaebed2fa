"""Columns of text, as a terminal shows them."""

from __future__ import annotations

import io
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDE = 100_000
"""As good as no bound."""

ALWAYS = 9
"""`Column.keep` of what is shown in any case."""

_GAP = 2
_LEAST = 16
"""Texts are folded to no fewer cells of a terminal than this."""
_LEAST_SOFT = 9
_MOST_LINES = 3
"""A text that takes more lines is left out before others are."""

_DISTANCE = "ln"
"""The head of the columns that have colours."""


@dataclass(frozen=True)
class Column:
    """A column as people see it."""

    head: str
    """Up to two lines."""
    cells: Sequence[str]
    keep: int = ALWAYS
    """The lowest goes first when a table is too wide; 9 always stays."""
    text: bool = False
    """Set flush left, and folded where there is no room."""
    whole: bool = False
    """Never folded: a path that a reader copies."""
    soft: bool = False
    """Folded though set flush right: a number with its interval."""

    @property
    def least(self) -> int | None:
        """The fewest cells of a terminal that it is folded to; None if it is not."""
        return None if self.whole or not (self.text or self.soft) else _LEAST if self.text else _LEAST_SOFT


def terminal_width() -> int | None:
    """How many cells a line of standard output has; None in a pipe or a file, which has no bound.

    COLUMNS of the environment is the width if it is set.
    """
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return shutil.get_terminal_size((100, 24)).columns
    return None


def console(width: int | None = None, colour: bool | None = None) -> tuple[Console, io.StringIO]:
    """What draws into the buffer beside it; width and colour are by default those of standard output."""
    from rich.console import Console

    colour = sys.stdout.isatty() if colour is None else colour
    if width is None:
        width = terminal_width() or WIDE
    out = io.StringIO()
    drawing = Console(
        file=out,
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        highlight=False,
        markup=False,
        emoji=False,
    )
    return drawing, out


def text_of(out: io.StringIO) -> str:
    """What was drawn, without trailing spaces, in characters that standard output has."""
    return plain("\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip("\n") + "\n")


def plain(text: str) -> str:
    """The text in characters that standard output has."""
    if (getattr(sys.stdout, "encoding", None) or "utf-8").lower().startswith("utf"):
        return text
    for letter, ascii_ in (("±", "+-"), ("─", "-"), ("×", "x"), ("≥", ">=")):
        text = text.replace(letter, ascii_)
    return text.encode("ascii", "replace").decode("ascii")


def widths(columns: Sequence[Column]) -> list[int]:
    """How many cells of a terminal each column takes."""
    return [max(map(_cells, {*column.head.split("\n"), *column.cells})) for column in columns]


def fitted(columns: Sequence[Column], width: int) -> tuple[list[Text], list[Column]]:
    """The lines of a table that is at most so wide, and the columns that had no room.

    Texts are folded where that is enough; else the columns that matter least go, and where not even those that always
    stay have room side by side, each row is a list of its cells.
    """
    kept = list(columns)
    left: list[Column] = []
    of = dict(zip(map(id, columns), widths(columns), strict=True))
    while True:
        weakest = min((column.keep for column in kept), default=ALWAYS)
        natural = [of[id(column)] for column in kept]
        sizes = _folded(kept, natural, width)
        if sizes is not None and (
            weakest == ALWAYS or all(size * _MOST_LINES >= all_ for size, all_ in zip(sizes, natural, strict=True))
        ):
            return list(_grid(kept, sizes, whole=sizes == natural)), left
        if weakest == ALWAYS:
            return list(_listed(kept, width)), left
        left += [column for column in kept if column.keep == weakest]
        kept = [column for column in kept if column.keep != weakest]


def _folded(columns: Sequence[Column], natural: Sequence[int], width: int) -> list[int] | None:
    """The width of each column, so that all have room; None if not even folded texts have."""
    sizes = list(natural)
    room = width - _GAP * (len(columns) - 1)
    least = {i: column.least for i, column in enumerate(columns) if column.least is not None}
    while sum(sizes) > room:
        able = [i for i, bound in least.items() if sizes[i] > bound]
        if not able:
            return None
        widest = max(able, key=lambda i: sizes[i])
        next_ = max((sizes[i] for i in able if sizes[i] < sizes[widest]), default=least[widest])
        sizes[widest] -= max(1, min(sum(sizes) - room, sizes[widest] - max(next_, least[widest])))
    return sizes


def _grid(columns: Sequence[Column], sizes: Sequence[int], *, whole: bool) -> Iterator[Text]:
    """The columns side by side; ten thousand rows are made at once. `whole`: no cell has to be folded."""
    from rich.text import Text

    left = [column.text for column in columns]
    coloured = [i for i, column in enumerate(columns) if column.head == _DISTANCE]

    def line(cells: Sequence[str], styles: Mapping[int, str]) -> Text:
        # One text per line and not one per cell: rich takes longer over each than everything before it did.
        gaps = [
            " " * (size - (len(cell) if cell.isascii() else _cells(cell)))
            for cell, size in zip(cells, sizes, strict=True)
        ]
        parts = [cell + gap if flush else gap + cell for cell, gap, flush in zip(cells, gaps, left, strict=True)]
        made = Text((" " * _GAP).join(parts))
        for i, style in styles.items():
            start = sum(len(part) + _GAP for part in parts[:i])
            made.stylize(style, start, start + len(parts[i]))
        return made

    heads = [column.head.split("\n") for column in columns]
    heads = [[part for line in head for part in fold(line, size)] for head, size in zip(heads, sizes, strict=True)]
    deep = max(map(len, heads))
    if any(column.head for column in columns):
        bold = dict.fromkeys(range(len(columns)), "bold")
        for i in range(deep):
            own = [i - (deep - len(head)) for head in heads]  # short headings stand at the bottom
            yield line([head[k] if k >= 0 else "" for head, k in zip(heads, own, strict=True)], bold)
        yield Text("─" * (sum(sizes) + _GAP * (len(columns) - 1)))
    for cells in zip(*(column.cells for column in columns), strict=True):
        styles = {i: style for i in coloured if (style := _style(_DISTANCE, cells[i]))}
        if whole:
            yield line(cells, styles)
            continue
        parts = [fold(cell, size) for cell, size in zip(cells, sizes, strict=True)]
        for k in range(max(map(len, parts))):
            yield line([part[k] if k < len(part) else "" for part in parts], styles if not k else {})


def _listed(columns: Sequence[Column], width: int) -> Iterator[Text]:
    """Each row as lines of a heading and its cell."""
    from rich.text import Text

    heads = [" ".join(column.head.split()) for column in columns]
    indent = min(max(map(_cells, heads), default=0), width // 2)
    for n, cells in enumerate(zip(*(column.cells for column in columns), strict=True)):
        if n:
            yield Text("")
        for head, cell in zip(heads, cells, strict=True):
            if not cell:
                continue
            folded = fold(head, indent) if head else [""]
            rest = fold(cell, max(width - indent - _GAP, 1))
            for k in range(max(len(folded), len(rest))):
                name = folded[k] if k < len(folded) else ""
                text = Text(name + " " * (indent - _cells(name) + _GAP) + (rest[k] if k < len(rest) else ""))
                text.stylize("bold", 0, len(name))
                yield text


def fold(text: str, size: int) -> list[str]:
    """The text in lines of at most so many cells of a terminal, between words, and not inside of `[0.9, 1.0]`."""
    from rich.cells import chop_cells

    if _cells(text) <= size:
        return [text]
    lines: list[str] = []
    indent = " " * min(len(text) - len(text.lstrip()) + 2, size // 2) if text[:1] == " " else ""
    line = ""
    for word in re.split(r"(?<=[\s/>,;-])(?![^\[\]]*\])", text):
        if line and _cells(line) + _cells(word.rstrip()) > size:
            lines.append(line.rstrip())
            line = indent
        line += word
        if _cells(line.rstrip()) > size:
            *full, line = chop_cells(line, size)
            lines += full
    return [*lines, line.rstrip()] if line.strip() or not lines else lines


def _cells(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


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
