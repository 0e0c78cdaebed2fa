"""Texts as Markdown shows them (CommonMark, with GitHub's tables): everything that writes Markdown escapes here.

Parentheses stay: without brackets ahead of them they mean nothing, and `\\(` begins a formula in some programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from bakeoff.text.columns import clean

_SPECIAL: Final = re.compile(r"[\\`*\[\]~|$]|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
"""What may be an escape, code, emphasis, a link, a formula, the end of a cell, or the name of a letter. An underscore
between letters is none of these.
"""
_BEGINNING: Final = re.compile(r"[#>+=-]|\d+[.)](?=\s|$)")
"""What makes a heading, a quotation, a list or a line of a paragraph's first letters."""


class Markdown(str):
    """A text that is Markdown already, and no longer in need of escapes."""

    __slots__ = ()


def escaped(text: str) -> str:
    """The text as it stands; `Markdown` stays as it is."""
    if isinstance(text, Markdown):
        return text
    return _SPECIAL.sub(r"\\\g<0>", clean(text)).replace("<", "&lt;")


def paragraph(text: str) -> str:
    """The text as the beginning of a paragraph or of an entry of a list."""
    made = escaped(text).lstrip()
    found = None if isinstance(text, Markdown) else _BEGINNING.match(made)
    return made if found is None else f"{made[: found.end() - 1]}\\{made[found.end() - 1 :]}"


def code(text: str) -> Markdown:
    """The text as code."""
    cleaned = clean(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", cleaned)), default=0))
    room = " " if cleaned.startswith("`") or cleaned.endswith("`") else ""
    return Markdown(f"{fence}{room}{cleaned}{room}{fence}")


def joined(parts: Iterable[str], between: str = " ") -> Markdown:
    """Several texts as one, of which some may be Markdown."""
    return Markdown(between.join(map(escaped, parts)))


def label(text: str) -> str:
    """The text between the brackets of a link or a picture."""
    return escaped(" ".join(text.split()))


_CODE: Final = re.compile(r"((`+)(?!`).*?(?<!`)\2(?!`))", re.DOTALL)


def pipes(heads: Sequence[str], left: Sequence[bool], cells: Iterable[Sequence[str]]) -> str:
    """A table; `left`: which columns are set flush left."""
    rules = ["---" if flush else "---:" for flush in left]
    lines = [[_cell(head) for head in heads], rules, *([_cell(cell) for cell in row] for row in cells)]
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def _cell(text: str) -> str:
    if not isinstance(text, Markdown):
        return escaped(text)
    # Within code, too, a bar ends a cell unless it is escaped; a backslash before it is one of the code.
    parts = _CODE.split(text)
    parts[::3] = [re.sub(r"(?<!\\)\|", r"\\|", part) for part in parts[::3]]
    parts[1::3] = [part.replace("|", "\\|") for part in parts[1::3]]
    del parts[2::3]
    return "".join(parts)
