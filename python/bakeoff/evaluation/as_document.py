"""The report of an evaluation in all formats: Markdown and LaTeX are made here, with one content."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from bakeoff.claims import changes
from bakeoff.evaluation import as_text
from bakeoff.evaluation.assess import JUDGEMENT, NOT_APPLICABLE
from bakeoff.text import markup
from bakeoff.text.columns import clean
from bakeoff.text.markdown import code, escaped, joined, paragraph, pipes

if TYPE_CHECKING:
    from bakeoff.claims.verdict import Ours
    from bakeoff.evaluation.assess import Assessed, Evaluation
    from bakeoff.text.markup import Format


FILE: Final = "evaluation.json"
"""The report in the results folder."""


class Table(NamedTuple):
    """A table of the report; texts are not escaped yet."""

    title: str
    heads: list[str]
    left: list[bool]
    """Which columns are flush left."""
    rows: list[list[str]]
    notes: list[str]


def written(evaluation: Evaluation, form: Format) -> str:
    """The report in a format; `csv` has a line per case, `json` everything."""
    if form == "terminal":
        return as_text.text(evaluation)
    if form == "json":
        return json.dumps(as_text.record(evaluation), indent=2, allow_nan=False) + "\n"
    if form == "csv":
        return markup.as_csv([_flat(each, evaluation.asked.of) for each in evaluation.cases])
    if form == "html":
        from bakeoff.evaluation.as_html import page

        return page(evaluation)
    return (markdown if form == "markdown" else latex)(evaluation)


def _tables(evaluation: Evaluation) -> list[Table]:
    asked = evaluation.asked
    tested = [each for each in evaluation.cases if each.verdict.word not in (JUDGEMENT, NOT_APPLICABLE)]
    other = dict.fromkeys(as_text.clause(each) for each in evaluation.cases if each.verdict.word == NOT_APPLICABLE)
    found = []
    if tested:
        rows = [
            [as_text.clause(each), as_text.head(each), str(each.verdict), as_text.number(each.cc),
             as_text.number(each.baseline), as_text.measure(each)]
            for each in tested
        ]  # fmt: skip
        heads = ["clause", "case", "verdict", *as_text.heads(evaluation), "measure"]
        notes = [as_text.about_numbers(evaluation)]
        notes += [f"Does not apply: {', '.join(other)}."] if other else []
        found.append(Table("Clauses", heads, [True, True, True, False, False, True], rows, notes))
    if asked.versions:
        rows = [
            [each.word, as_text.clause(each.assessed), as_text.head(each.assessed), as_text.measure(each.assessed),
             each.words]
            for each in evaluation.changes if each.word != "same"
        ]  # fmt: skip
        heads = ["change", "clause", "case", "measure", "in words"]
        found.append(Table(as_text.change_counts(evaluation), heads, [True] * 5, rows, [changes.METHOD]))
    return found


def _judged(evaluation: Evaluation) -> list[tuple[str, str]]:
    """Clause and question of what no run answers."""
    several = [each for each in evaluation.cases if each.verdict.word == JUDGEMENT]
    return [(as_text.clause(each), each.case.question or "") for each in several]


def _flat(each: Assessed, subject: str) -> dict[str, object]:
    return {
        "case": each.case.name,
        "other": each.other or "",
        "clause": as_text.clause(each),
        "verdict": each.verdict.word,
        "reason": each.verdict.why or "",
        "measure": as_text.measure(each),
        "unit": (each.cc.unit if each.cc else None) or "",
        **_ends(subject, each.cc),
        **_ends("baseline", each.baseline),
    }


def _ends(name: str, ours: Ours | None) -> dict[str, object]:
    low, high = (ours and ours.interval) or ("", "")
    return {name: "" if ours is None else ours.mean, f"{name}_low": low, f"{name}_high": high}


def markdown(evaluation: Evaluation) -> str:
    """The report in Markdown."""
    parts = [f"# Evaluation of {escaped(evaluation.asked.subject)}", f"**{escaped(as_text.counts(evaluation))}**"]
    for table in _tables(evaluation):
        parts += [f"## {escaped(table.title)}"]
        parts += [pipes(table.heads, table.left, table.rows).rstrip("\n")] if table.rows else []
        parts += map(paragraph, table.notes)
    if evaluation.worst:
        parts.append("## Worst findings")
        for each in evaluation.worst:
            parts.append(f"### {escaped(f'{as_text.clause(each)}: {each.case.says}')}")
            told = joined([as_text.head(each), code(as_text.measure(each))], ", ")
            parts.append(f"{told}: {escaped(as_text.numbers(evaluation, each))}")
            parts += [f"Expected: {code(wanted)}"] if (wanted := as_text.expected(each)) else []
            parts.append(f"```\n{clean(as_text.command(evaluation, each))}\n```")
    if judged := _judged(evaluation):
        lines = [f"- {escaped(clause)}: {escaped(question)}" for clause, question in judged]
        parts += ["## Needs judgement", "\n".join(lines)]
    parts += ["## Cost and versions", *map(paragraph, as_text.cost(evaluation))]
    return "\n\n".join(parts) + "\n"


_WIDTHS = {"Clauses": (0.13, 0.15, 0.16, 0.14, 0.14, 0.16)}
_CHANGES = (0.09, 0.14, 0.18, 0.24, 0.25)
"""The columns as shares of a line; what lies between them takes the rest."""


def latex(evaluation: Evaluation) -> str:
    r"""The report as sections of an appendix; the preamble needs \usepackage{booktabs,longtable,array}."""
    tex = markup.tex
    parts = [
        r"% The preamble needs \usepackage{booktabs,longtable,array}.",
        rf"\section{{Evaluation of {tex(evaluation.asked.subject)}}}",
        rf"\textbf{{{tex(as_text.counts(evaluation))}}}",
    ]
    for table in _tables(evaluation):
        parts += [rf"\subsection{{{tex(table.title)}}}"]
        parts += [_longtable(table, _WIDTHS.get(table.title, _CHANGES))] if table.rows else []
        parts += map(tex, table.notes)
    if evaluation.worst:
        items = [
            rf"\item {tex(f'{as_text.clause(each)}: {each.case.says}')}\\ {tex(as_text.head(each))}, "
            rf"{tex(as_text.measure(each))}: {tex(as_text.numbers(evaluation, each))}\\ "
            rf"{_expected(each)}"
            rf"\texttt{{{tex(as_text.command(evaluation, each))}}}"
            for each in evaluation.worst
        ]
        parts += [r"\subsection{Worst findings}", _list("enumerate", items)]
    if judged := _judged(evaluation):
        items = [rf"\item {tex(clause)}: {tex(question)}" for clause, question in judged]
        parts += [r"\subsection{Needs judgement}", _list("itemize", items)]
    parts += [r"\subsection{Cost and versions}", *map(tex, as_text.cost(evaluation))]
    return "\n\n".join(parts) + "\n"


def _expected(each: Assessed) -> str:
    wanted = as_text.expected(each)
    return rf"expected: \texttt{{{markup.tex(wanted)}}}\\ " if wanted else ""


def _list(kind: str, items: Sequence[str]) -> str:
    return "\n".join([rf"\begin{{{kind}}}\raggedright", *items, rf"\end{{{kind}}}"])


def _longtable(table: Table, widths: Sequence[float]) -> str:
    columns = "".join(
        rf">{{\{'raggedright' if left else 'raggedleft'}\arraybackslash}}p{{{width}\linewidth}}"
        for left, width in zip(table.left, widths, strict=True)
    )
    return "\n".join([
        rf"{{\footnotesize\setlength{{\tabcolsep}}{{3pt}}\begin{{longtable}}{{{columns}}}",
        r"\toprule",
        markup.tex_row(table.heads),
        r"\midrule\endhead",
        *map(markup.tex_row, table.rows),
        r"\bottomrule",
        r"\end{longtable}}",
    ])  # fmt: skip
