"""A small line chart made of characters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of the dots of a braille character from the top, left and right column (Unicode, block 2800)."""


@dataclass(frozen=True)
class Cell:
    """One character of a chart."""

    text: str
    line: int | None
    """Which line it belongs to (the one with most dots in it), None if it is empty."""


def chart(
    lines: Sequence[tuple[Array, Array]],
    *,
    span: tuple[float, float],
    top: float,
    width: int = 60,
    height: int = 8,
    braille: bool = True,
) -> list[list[Cell]]:
    """Rows of cells, the topmost first, that show (time, value) lines over `span` and from 0 to `top`.

    In braille a cell has 2 x 4 dots and lines are told apart by colour; else a cell holds the line's number,
    counted from 1, or `#` where several meet. Each column of dots shows the mean of the samples that fall into it.
    """
    across, down = (2, 4) if braille else (1, 1)
    columns, levels = width * across, height * down
    dots = [_dots(line, span, top, columns, levels) for line in lines]
    return [[_cell(dots, left * across, row * down, braille=braille) for left in range(width)] for row in range(height)]


def _dots(
    line: tuple[Array, Array], span: tuple[float, float], top: float, columns: int, levels: int
) -> set[tuple[int, int]]:
    """The dots (column, row from the top) of one line, with what lies between neighbouring columns filled in."""
    import numpy as np

    time, value = line
    column = np.floor((time - span[0]) / (span[1] - span[0]) * columns)
    # A sample at the very end belongs to the last column.
    column = np.where(time == span[1], columns - 1, column).astype(int)
    found: set[tuple[int, int]] = set()
    before: tuple[int, int] | None = None
    for at in range(columns):
        here = value[column == at]
        if not len(here):
            before = None
            continue
        level = levels - 1 - min(levels - 1, max(0, int(float(here.mean()) / top * levels)))
        start = level if before is None else before[1] + (level > before[1]) - (level < before[1])
        found |= {(at, row) for row in range(min(start, level), max(start, level) + 1)}
        before = at, level
    return found


def _cell(dots: Sequence[set[tuple[int, int]]], left: int, above: int, *, braille: bool) -> Cell:
    if not braille:
        here = [i for i, line in enumerate(dots) if (left, above) in line]
        return Cell("#" if len(here) > 1 else str(here[0] + 1) if here else " ", here[0] if here else None)
    bits, counts = 0, []
    for line in dots:
        inside = [(x, y) for y in range(4) for x in range(2) if (left + x, above + y) in line]
        bits |= sum({_DOTS[y][x] for x, y in inside})
        counts.append(len(inside))
    return Cell(chr(0x2800 + bits), counts.index(max(counts))) if bits else Cell(" ", None)
