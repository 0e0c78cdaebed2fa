"""The advice as text, plain where it is piped."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from bakeoff.advice import sentences
from bakeoff.advice.quantities import groups, head
from bakeoff.text import columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from bakeoff.advice.household import Advice, Variant
    from bakeoff.scenario.access_line import Asked

WIDTH: Final = 110
_LEAST: Final = 30
_HEAD: Final = 12
"""Letters of a choice in a line above its column."""
_GAP: Final = 2
_LEAST_MEASURE: Final = 24
"""Letters that a measure's name has in a line, at least."""


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


def _title(drawing: Console, text: str) -> None:
    drawing.print("\n".join(textwrap.wrap(text, drawing.width)), style="bold", markup=False, highlight=False)
    drawing.print()


def _wrapped(drawing: Console, text: str, *, bullet: bool = False) -> None:
    first, rest = ("- ", "  ") if bullet else ("", "")
    lines = textwrap.wrap(text, drawing.width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    drawing.print("\n".join(lines), markup=False, highlight=False, soft_wrap=True)


def _table(drawing: Console, advice: Advice, variant: Variant) -> None:
    """A row per measure and a column per choice; where these have no room, the choices one below the other."""
    names: list[str] = []
    texts: list[list[str]] = [[] for _ in variant.choices]
    for group in groups(advice, variant):
        names += [group.name, *(f"  {row.head}" for row in group.rows)]
        for i, of in enumerate(texts):
            of += ["", *(f"{row.cells[i].text} !" if row.cells[i].bad else row.cells[i].text for row in group.rows)]
    heads = ["\n".join(textwrap.wrap(head(choice), _HEAD, break_on_hyphens=False)) for choice in variant.choices]
    made = [columns.Column("", names, text=True)]
    made += [columns.Column(name, of, soft=True) for name, of in zip(heads, texts, strict=True)]
    if _LEAST_MEASURE + len(texts) * (_HEAD + _GAP) <= drawing.width:
        _lines(drawing, made)
        return
    for choice, of in zip(variant.choices, texts, strict=True):
        drawing.print("\n".join(columns.fold(head(choice), drawing.width)), style="bold", markup=False)
        _lines(drawing, [made[0], columns.Column("", of)])
        drawing.print()


def _lines(drawing: Console, made: Sequence[columns.Column]) -> None:
    lines, _ = columns.fitted(made, drawing.width)
    for line in lines:
        line.highlight_regex(r"\S+( [±\[][^!]*)? !", "red")
        drawing.print(line, soft_wrap=True, highlight=False)
