"""The advice as text, plain where it is piped."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from bakeoff.present import columns
from bakeoff.present.advice import sentences
from bakeoff.present.advice.cells import groups, head

if TYPE_CHECKING:
    from rich.console import Console

    from bakeoff.advice import Advice
    from bakeoff.advice.advice import Variant
    from bakeoff.scenario.advice import Asked

WIDTH: Final = 110
_LEAST: Final = 60
_HEAD: Final = 34
_GAP: Final = 2
_LEAST_CELL: Final = 9


def text(asked: Asked, advice: Advice, *, width: int | None = None, colour: bool | None = None) -> str:
    """The whole page. It is as wide as the terminal, at most 110 columns; what is piped has 110 and no colours."""
    drawing, out = columns.console(width, colour)
    drawing.width = max(min(drawing.width, WIDTH), _LEAST)
    _title(drawing, sentences.title(asked))
    for paragraph in sentences.recommendation(advice):
        _wrapped(drawing, paragraph)
        drawing.print()
    for number, variant in enumerate(advice.variants):
        what = f"What each choice gives, {sentences.variant(variant)}" if variant.label else "What each choice gives"
        _title(drawing, what if number == 0 else f"The same, {sentences.variant(variant)}")
        _table(drawing, advice, variant)
        drawing.print()
    drawing.print("'!' marks what misses a need. Numbers are means; ± is half of the 95 % interval.", style="dim")
    drawing.print()
    for title, lines in (
        ("How the recommendation comes about", sentences.rule(advice)),
        ("What was assumed", sentences.assumptions(asked, advice)),
        ("What the queues are, in the words of tc", [f"{name}: {tc}" for name, tc in sentences.choices(advice)]),
    ):
        _title(drawing, title)
        for line in lines:
            _wrapped(drawing, line, bullet=True)
        drawing.print()
    if found := sentences.commands(advice):
        _title(drawing, "Commands that set the queues up; UP and DOWN are the interfaces that send up and down")
        for choice, lines in found:
            _wrapped(drawing, head(choice), bullet=True)
            for line in lines:  # whole, to be copied
                drawing.print(f"  {line}", markup=False, highlight=False, soft_wrap=True)
        drawing.print()
    return columns.text_of(out)


def _title(drawing: Console, words: str) -> None:
    drawing.print("\n".join(textwrap.wrap(words, drawing.width)), style="bold", markup=False, highlight=False)
    drawing.print()


def _wrapped(drawing: Console, words: str, *, bullet: bool = False) -> None:
    first, rest = ("- ", "  ") if bullet else ("", "")
    lines = textwrap.wrap(words, drawing.width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    drawing.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _table(drawing: Console, advice: Advice, variant: Variant) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), show_edge=False)
    room = (drawing.width - _HEAD) // max(len(variant.choices), 1) - _GAP
    drawn.add_column("", width=_HEAD - _GAP)
    for choice in variant.choices:
        drawn.add_column(
            Text(head(choice)), justify="right", header_style="bold", width=max(room, _LEAST_CELL), overflow="fold"
        )
    for group in groups(advice, variant):
        drawn.add_row(Text(group.name, style="bold"), *([""] * len(variant.choices)))
        for row in group.rows:
            cells = [Text(f"{cell.text} !" if cell.bad else cell.text, "red" if cell.bad else "") for cell in row.cells]
            drawn.add_row(Text(f"  {row.head}"), *cells)
    drawing.print(drawn)
