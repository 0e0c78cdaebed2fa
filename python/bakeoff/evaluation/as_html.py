"""The report of an evaluation as one page of HTML, with a picture for each of the worst findings."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, NamedTuple

from bakeoff.claims import changes
from bakeoff.errors import BakeoffError
from bakeoff.evaluation import as_text
from bakeoff.evaluation.assess import JUDGEMENT
from bakeoff.results import Result
from bakeoff.text.templates import environment

if TYPE_CHECKING:
    from bakeoff.evaluation.assess import Assessed, Evaluation


class Line(NamedTuple):
    """A line of the table."""

    clause: str
    head: str
    says: str
    verdict: str
    word: str
    """The verdict as a class of CSS has it."""
    measure: str
    cc: str
    baseline: str
    why: str
    alone: bool
    """Whether the case has no baseline."""


class Found(NamedTuple):
    """One of the worst findings."""

    line: Line
    expected: str
    """The predicate that does not hold; empty for a control that failed."""
    command: str
    png: str | None
    """The picture of the first run in base64; None if it left no samples."""


class Change(NamedTuple):
    """A line of what changed from the baseline."""

    word: str
    line: Line
    words: str


def page(evaluation: Evaluation) -> str:
    """The whole page. Texts that come from files are shown as they are written, HTML in them too."""
    lines = [_line(each) for each in evaluation.cases]
    changed = [Change(each.word, _line(each.assessed), each.words) for each in evaluation.changes]
    return (
        environment("bakeoff.evaluation")
        .get_template("evaluation.html.j2")
        .render(
            title=f"Evaluation of {evaluation.asked.subject}",
            counts=as_text.counts(evaluation),
            subject=as_text.heads(evaluation)[0],
            baseline=as_text.heads(evaluation)[1],
            lines=[line for line in lines if line.verdict != JUDGEMENT],
            judged=[line for line in lines if line.verdict == JUDGEMENT],
            worst=[
                Found(_line(each), as_text.expected(each), as_text.command(evaluation, each), _png(each))
                for each in evaluation.worst
            ],
            versions=as_text.change_counts(evaluation) if evaluation.asked.versions else "",
            method=changes.METHOD,
            changes=[each for each in changed if each.word not in ("undecided", "same")],
            undecided=[each for each in changed if each.word == "undecided"],
            cost=as_text.cost(evaluation),
            about_numbers=as_text.about_numbers(evaluation),
        )
    )


def _line(each: Assessed) -> Line:
    word = each.verdict.word
    return Line(
        as_text.clause(each), as_text.head(each), each.case.says, word, re.sub(r"\W+", "-", word),
        as_text.measure(each), as_text.number(each.cc), as_text.number(each.baseline), each.verdict.why or "",
        bool(each.case.variables),
    )  # fmt: skip


def _png(each: Assessed) -> str | None:
    from bakeoff.plots import draw

    if each.path is None:
        return None
    try:
        result = Result.read(each.path)
        made = draw.figure(result, draw.default_kind([result]))
    except BakeoffError:
        return None
    return base64.b64encode(made._repr_png_()).decode()
