"""Blocks of a table as text: for a terminal, in Markdown, LaTeX and HTML."""

from __future__ import annotations

import csv
import html
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

from bakeoff.text.columns import Column, clean, console, fitted, text_of
from bakeoff.text.markdown import escaped, paragraph, pipes

Format = Literal["terminal", "markdown", "csv", "json", "latex", "html"]


@dataclass(frozen=True)
class Block:
    """A title, a table below it, and what there is to say about it."""

    title: str
    columns: Sequence[Column]
    captions: Sequence[str] = field(default_factory=tuple)
    level: int = 1
    """1 for a table of its own, 2 for a part of the one above."""


def written(
    form: Format,
    blocks: Sequence[Block],
    remarks: Sequence[str],
    warnings: Sequence[str] = (),
    *,
    width: int | None = None,
    colour: bool | None = None,
) -> str:
    """The blocks in one of the formats for people, with warnings below each table.

    The reader of a terminal has the warnings on standard error.
    """
    if form == "terminal":
        return terminal(blocks, remarks, width, colour)
    warned = [replace(one, captions=[*one.captions, *warnings]) if one.level == 1 else one for one in blocks]
    return {"markdown": markdown, "latex": latex, "html": html_page}[form](warned, remarks)


def as_csv(records: Sequence[Mapping[str, object]]) -> str:
    """The records with a column for each name that one of them has."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for one in records for name in one)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def terminal(
    blocks: Sequence[Block],
    remarks: Sequence[str],
    width: int | None,
    colour: bool | None,
    hint: str = "a wider terminal, --columns or --format csv shows them",
) -> str:
    """For people at a terminal. Texts are folded; columns that have no room are left out, and named below.

    `hint` says where they are.
    """
    drawing, out = console(width, colour)
    width = drawing.width
    for block in blocks:
        drawing.print(clean(block.title), style="bold" if block.level == 1 else "bold dim", markup=False)
        lines, left = fitted(block.columns, width) if block.columns else ([], [])
        if lines:
            drawing.print(*lines, sep="\n", soft_wrap=True)
        if left:
            names = ", ".join(dict.fromkeys(" ".join(column.head.split()) for column in left))
            drawing.print(f"no room for: {names}; {hint}", style="yellow", markup=False)
        for caption in block.captions:
            # Indented lines have commands, which a folded line would cut when copied.
            drawing.print(clean(caption), style="dim", markup=False, soft_wrap=caption.startswith("  "))
        drawing.print()
    for remark in remarks:
        drawing.print(clean(remark), style="yellow", markup=False)
    return text_of(out)


def markdown(blocks: Sequence[Block], remarks: Sequence[str]) -> str:
    """With tables of pipes."""
    parts = []
    for block in blocks:
        cells = zip(*(column.cells for column in block.columns), strict=True)
        heads = [column.head.replace("\n", " ") for column in block.columns]
        title = f"### {escaped(block.title)}\n\n" if block.level == 1 else f"{paragraph(block.title)}:\n\n"
        parts.append(title + pipes(heads, [column.text for column in block.columns], cells))
        if block.captions:
            parts.append("\n\n".join(map(paragraph, block.captions)) + "\n")
    if remarks:
        parts.append("".join(f"- {paragraph(remark)}\n" for remark in remarks))
    return "\n".join(parts)


def latex(blocks: Sequence[Block], remarks: Sequence[str]) -> str:
    r"""A `table` with `booktabs` and a `\label` per block; put `\usepackage{booktabs}` into the preamble."""
    parts = []
    labels: set[str] = set()
    for block in blocks:
        label = slug = "tab:" + (
            re.sub(r"[^a-z0-9]+", "-", block.title.partition(",")[0].lower()).strip("-") or "table"
        )
        while label in labels:
            label = f"{slug}-{sum(one.startswith(slug) for one in labels) + 1}"
        labels.add(label)
        lines = [r"\begin{table}", r"\centering", rf"\caption{{{tex(_sentences(block))}}}"]
        lines.append(rf"\label{{{label}}}")
        if len(block.columns) > _MANY_COLUMNS:
            lines.append(r"\footnotesize\setlength{\tabcolsep}{3pt}")
        lines += [
            rf"\begin{{tabular}}{{{''.join('l' if column.text else 'r' for column in block.columns)}}}",
            r"\toprule",
        ]
        deep = max(column.head.count("\n") for column in block.columns) + 1
        heads = [[*column.head.split("\n"), *[""] * deep][:deep] for column in block.columns]
        for line in zip(*heads, strict=True):
            if any(line):
                lines.append(tex_row(line))
        lines.append(r"\midrule")
        lines += [tex_row(cells) for cells in zip(*(column.cells for column in block.columns), strict=True)]
        lines += [r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]
        parts.append("\n".join(lines))
    parts += [f"% {clean(remark)}\n" for remark in remarks]
    return "\n".join(parts)


def html_page(blocks: Sequence[Block], remarks: Sequence[str]) -> str:
    """A page that needs nothing else; all texts are escaped."""
    parts = ['<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>bakeoff table</title>\n', _STYLE]
    for block in blocks:
        parts.append(f"<h{block.level + 1}>{_html(block.title)}</h{block.level + 1}>\n<table>\n<thead><tr>")
        for column in block.columns:
            parts.append(f"<th{_side(column)}>{_html(column.head, keep=chr(10)).replace(chr(10), '<br>')}</th>")
        parts.append("</tr></thead>\n<tbody>\n")
        for cells in zip(*(column.cells for column in block.columns), strict=True):
            line = "".join(
                f"<td{_side(column)}>{_html(cell)}</td>" for column, cell in zip(block.columns, cells, strict=True)
            )
            parts.append(f"<tr>{line}</tr>\n")
        parts.append("</tbody>\n</table>\n")
        parts += [f"<p>{_html(caption)}</p>\n" for caption in block.captions]
    if remarks:
        parts.append("<ul>\n" + "".join(f"<li>{_html(remark)}</li>\n" for remark in remarks) + "</ul>\n")
    return "".join(parts) + "</html>\n"


_MANY_COLUMNS: Final = 8
"""A LaTeX table with more has smaller letters and narrower gaps."""
_STYLE: Final = (
    "<style>body{font:14px/1.4 sans-serif;margin:2em}table{border-collapse:collapse}th,td{padding:.15em .6em;"
    "text-align:right;font-variant-numeric:tabular-nums}th{border-bottom:1px solid}.text{text-align:left}</style>\n"
)
_LATEX: Final = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "%": r"\%", "_": r"\_",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "±": r"$\pm$", "×": r"$\times$", "|": r"\textbar{}", "[": "{[}", "]": "{]}", '"': r"{\char34}",
    "`": r"\textasciigrave{}",
}  # fmt: skip


def _sentences(block: Block) -> str:
    return ". ".join([block.title, *block.captions])


def tex(text: str) -> str:
    r"""The text as LaTeX shows it; a bracket in the first cell of a row would be an argument of the `\\` before."""
    return "".join(_LATEX.get(letter, letter) for letter in clean(text)).replace("--", "-{}-")


def tex_row(cells: Sequence[str]) -> str:
    """The cells as a row of a LaTeX table."""
    return " & ".join(map(tex, cells)) + r" \\"


def _side(column: Column) -> str:
    return ' class="text"' if column.text else ""


def _html(text: str, keep: str = "") -> str:
    return html.escape(clean(text, keep))
