"""The report of an evaluation as text and as records."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any, Final

from bakeoff.claims import changes, verdict
from bakeoff.evaluation.assess import JUDGEMENT, NOT_APPLICABLE
from bakeoff.evaluation.seats import BASELINES
from bakeoff.expressions import quantity
from bakeoff.text.columns import Column
from bakeoff.text.markup import Block, terminal

if TYPE_CHECKING:
    from bakeoff.claims.verdict import Ours
    from bakeoff.evaluation.assess import Assessed, Evaluation
    from bakeoff.evaluation.versions import Changed


_OF_SEVERAL: Final = {
    verdict.HOLDS: "hold", verdict.NOT: "do not hold", NOT_APPLICABLE: "do not apply", JUDGEMENT: "need judgement",
}  # fmt: skip
"""Verdicts after a number of cases."""


def text(evaluation: Evaluation, *, width: int | None = None, colour: bool | None = None) -> str:
    """The report: counts, a line for each case that applies, the worst findings, cost and versions."""
    tested = [each for each in evaluation.cases if each.verdict.word not in (JUDGEMENT, NOT_APPLICABLE)]
    other = dict.fromkeys(clause(each) for each in evaluation.cases if each.verdict.word == NOT_APPLICABLE)
    judged = [each for each in evaluation.cases if each.verdict.word == JUDGEMENT]
    blocks = []
    if tested:
        columns = [
            Column("clause", [clause(each) for each in tested], text=True),
            Column("case", [head(each) for each in tested], text=True),
            Column("verdict", [each.verdict.word for each in tested], text=True),
            Column(heads(evaluation)[0], [number(each.cc) for each in tested], soft=True),
            Column(heads(evaluation)[1], [number(each.baseline) for each in tested], soft=True),
            Column("measure", [measure(each) for each in tested], text=True, keep=2),
            Column("reason", [each.verdict.why or "" for each in tested], text=True, keep=1),
        ]
        columns = [column for column in columns if any(column.cells)]
        notes = [about_numbers(evaluation)]
        blocks.append(Block(counts(evaluation), columns, notes))
    else:
        blocks.append(Block(counts(evaluation), []))
    if other:
        blocks.append(Block("Does not apply", [], [", ".join(other)]))
    if evaluation.asked.versions:
        blocks.append(_changes(evaluation))
    if evaluation.worst:
        blocks.append(
            Block("Worst findings", [], [line for each in evaluation.worst for line in _finding(evaluation, each)])
        )
    if judged:
        columns = [
            Column("clause", [clause(each) for each in judged], text=True),
            Column("question for the reviewer", [each.case.question or "" for each in judged], text=True),
        ]
        blocks.append(Block("Needs judgement", columns))
    blocks.append(Block("Cost and versions", [], cost(evaluation)))
    return terminal(blocks, (), width, colour, hint="a wider terminal or --format csv shows them")


def counts(evaluation: Evaluation) -> str:
    """The first line: how many cases have which verdict."""
    words = ", ".join(
        f"{count} {word if count == 1 else _OF_SEVERAL.get(word, word)}" for word, count in evaluation.counts.items()
    )
    return f"{evaluation.asked.subject}: {words or 'no cases'}"


def heads(evaluation: Evaluation) -> tuple[str, str]:
    """What is evaluated and the baseline as heads of columns: of classes in files their names, if these differ."""
    whole = evaluation.asked.subject, evaluation.asked.baseline
    one, other = (re.sub(r"^\S*\.py:", "", name) for name in whole)
    return whole if one == other else (one, other)


def clause(each: Assessed) -> str:
    """The document and its section."""
    return f"{each.case.source} {each.case.clause}"


def head(each: Assessed) -> str:
    """The name of the case, with the competitor."""
    name = each.case.name.partition("/")[2]
    return name if each.other is None else f"{name} ({each.other})"


def measure(each: Assessed) -> str:
    """What the numbers are."""
    return each.case.test.shows if each.case.test is not None else ""


def number(ours: Ours | None) -> str:
    """The mean with its interval."""
    if ours is None:
        return ""
    if ours.ci95 is None or ours.interval is None:
        return quantity.formatted(ours.mean, ours.unit)
    return quantity.spread(ours.mean, ours.ci95, ours.interval, ours.unit)


def command(evaluation: Evaluation, each: Assessed) -> str:
    """The command that repeats the case."""
    asked = evaluation.asked
    words = [
        "bakeoff",
        "evaluate",
        *(["--qdisc", asked.qdisc] if asked.qdisc else [asked.cc]),
        "--case",
        each.case.name,
    ]
    if each.other is not None:
        words += ["--against", each.other]
    if asked.versions or asked.baseline != BASELINES[asked.of]:
        words += ["--baseline", asked.baseline]
    words += ["--seeds", str(asked.seeds)]
    if evaluation.engine != "sim":
        words += ["--engine", evaluation.engine]
    return shlex.join(words)


def change_counts(evaluation: Evaluation) -> str:
    """How many cases are better, worse or undecided, in words."""
    found = changes.counts([each.word for each in evaluation.changes])
    told = ", ".join(f"{count} {word}" for word, count in found.items())
    return f"Changed from {evaluation.asked.baseline}: {told or 'no case was measured with both'}"


def _changes(evaluation: Evaluation) -> Block:
    """What changed; what is the same is only counted."""
    shown = [each for each in evaluation.changes if each.word != "same"]
    columns = [
        Column("change", [each.word for each in shown], text=True),
        Column("clause", [clause(each.assessed) for each in shown], text=True, keep=1),
        Column("case", [head(each.assessed) for each in shown], text=True),
        Column("measure", [measure(each.assessed) for each in shown], text=True),
        Column("in words", [each.words for each in shown], text=True),
    ]
    return Block(change_counts(evaluation), columns if shown else [], [changes.METHOD])


def cost(evaluation: Evaluation) -> list[str]:
    """Runs, time and versions, a line each."""
    seeds = "1 seed" if evaluation.asked.seeds == 1 else f"{evaluation.asked.seeds} seeds"
    time = f"{evaluation.runs} runs in {evaluation.wall_s:.0f} s, {seeds}"
    return [
        f"{time}, engine {evaluation.engine}",
        ", ".join(f"{name} {value}" for name, value in evaluation.versions.items()),
    ]


def numbers(evaluation: Evaluation, each: Assessed) -> str:
    """What was found in a case: both numbers, or why there are none."""
    if each.crashed or each.cc is None:
        return each.verdict.why or "not measured"
    ours = number(each.cc)
    if each.case.variables:
        return ours
    return f"{ours}, {evaluation.asked.baseline} {number(each.baseline) or 'not measured'}"


def about_numbers(evaluation: Evaluation) -> str:
    """What the numbers of the table are."""
    if evaluation.asked.seeds == 1:
        return "Numbers are those of one seed, without an interval."
    return "Numbers are means with the 95 % interval over seeds."


def expected(each: Assessed) -> str:
    """The predicate that does not hold; empty for a control that failed."""
    wanted = each.case.test.direction.direction if each.case.test is not None and not each.crashed else None
    return "" if wanted is None else wanted.text


def _finding(evaluation: Evaluation, each: Assessed) -> list[str]:
    lines = [f"- {clause(each)} {head(each)}: {each.case.says}", f"  {measure(each)}: {numbers(evaluation, each)}"]
    lines += [f"  expected: {expected(each)}"] if expected(each) else []
    return [*lines, f"  {command(evaluation, each)}"]


def record(evaluation: Evaluation) -> dict[str, Any]:
    """The report as plain data, numbers in base units."""
    asked = evaluation.asked
    return {
        "of": asked.of,
        asked.of: asked.subject,
        "baseline": asked.baseline,
        "against": list(asked.against),
        "engine": evaluation.engine,
        "seeds": asked.seeds,
        "quick": asked.quick,
        "counts": evaluation.counts,
        "cases": [_case(evaluation, each) for each in evaluation.cases],
        "changes": [_change(each) for each in evaluation.changes],
        "worst": [
            {"case": each.case.name, "other": each.other, "command": command(evaluation, each)}
            for each in evaluation.worst
        ],
        "runs": evaluation.runs,
        "wall_s": evaluation.wall_s,
        "versions": dict(evaluation.versions),
        "results": str(evaluation.root),
    }


def _case(evaluation: Evaluation, each: Assessed) -> dict[str, Any]:
    test = each.case.test
    return {
        "case": each.case.name,
        "other": each.other,
        "clause": clause(each),
        "says": each.case.says,
        "verdict": each.verdict.word,
        "reason": each.verdict.why,
        "limit": each.case.limit if test is not None else None,
        "direction": test.direction.direction.text if test is not None and test.direction.direction else None,
        "measure": test.number.text if test is not None else None,
        "unit": each.cc.unit if each.cc else None,
        evaluation.asked.of: _number(each.cc),
        "baseline": _number(each.baseline),
        "crashed": each.crashed,
        "command": command(evaluation, each) if test is not None else None,
    }


def _change(each: Changed) -> dict[str, Any]:
    found = each.change
    return {
        "case": each.assessed.case.name,
        "other": each.assessed.other,
        "word": each.word,
        "words": each.sentence,
        "difference": None if found is None else _finite(found.difference),
        "interval": None if found is None else found.interval,
        "unit": None if found is None else found.unit,
        "relative": None if found is None else found.relative,
        "p": None if found is None else found.p,
        "p_corrected": None if found is None else found.corrected,
    }


def _number(ours: Ours | None) -> dict[str, Any] | None:
    if ours is None:
        return None
    [values] = ours.values
    return {"values": [_finite(value) for value in values], "mean": _finite(ours.mean), "interval": ours.interval}


def _finite(value: float) -> float | str:
    """Infinity is no number in JSON."""
    from math import isfinite

    return value if isfinite(value) else "infinite" if value > 0 else "-infinite"
