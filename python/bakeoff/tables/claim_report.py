"""Claims and their verdicts, for people, for programs and for the documentation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import isfinite
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

from bakeoff.claims.verdict import (
    ARITHMETIC,
    CANNOT,
    FAILED,
    HOLDS,
    NOT,
    SHOWN,
    UNDECIDED,
    WOULD_EXPLAIN,
    cause_state,
)
from bakeoff.expressions import quantity
from bakeoff.text.columns import WIDE, Column, fitted, terminal_width
from bakeoff.text.markdown import Markdown, code, joined, pipes

if TYPE_CHECKING:
    from bakeoff.claims.claim import Cause, Size
    from bakeoff.claims.verdict import Decided, Ours, Outcome, Verdict

_WIDTH: Final = 110
_HEADS: Final = (HOLDS, ARITHMETIC, NOT, UNDECIDED, FAILED, CANNOT)
"""The column of `ARITHMETIC` is left out where it is empty."""


def text(several: Sequence[Decided], *, quiet: bool = False) -> str:
    """A paragraph for each claim, and a table of how many claims of each document have which verdict."""
    paragraphs = [] if quiet else [_paragraph(each) for each in several]
    return "\n".join([*paragraphs, _totals(several)])


def _paragraph(each: Decided) -> str:
    claim, outcome = each.claim, each.outcome
    lines = [f"{claim.name}  ({claim.where})", _fill(claim.says, 2)]
    if claim.statement is None:
        lines.append(f"  {outcome.direction}")
        return "\n".join(lines) + "\n"
    lines += _predicates(outcome, claim.statement.size)
    if claim.contradicts:
        lines.append(f"  contradicts {', '.join(claim.contradicts)}")
    if claim.cause is not None:
        needless = " (the claim holds: no cause is needed)" if outcome.holds else ""
        lines.append(f"  cause      {_state(claim.cause, each.cause)}{needless}")
        lines.append(_fill(claim.cause.says, 13))
        if each.cause is not None and claim.cause.statement is not None:
            lines += ["  " + line for line in _predicates(each.cause, claim.cause.statement.size)]
        lines += [_fill(f"tried: {one}", 13) for one in claim.cause.tried]
    return "\n".join(lines) + "\n"


def _predicates(outcome: Outcome, size: Size | None) -> list[str]:
    lines = []
    if outcome.direction is not None:
        measured = ", ".join(f"{text} {value(ours)}" for text, ours in outcome.sides)
        line = f"  direction  {_phrase(outcome.direction)}{measured and '  ' + measured}"
        lines.append(_fill(line, 32, 0))
    if outcome.size is not None and size is not None:
        ours = f"ours {value(outcome.ours)}" if outcome.ours else ""
        lines.append(f"  size       {_phrase(outcome.size)}  {_published(size)}{ours and '; ' + ours}")
    return lines


def _phrase(verdict: Verdict) -> str:
    return f"{verdict!s:<17}"


def _published(size: Size) -> str:
    return f"published {size.text} (accepted {quantity.several([size.low, size.high], size.unit, ' to ')})"


def value(ours: Ours) -> str:
    """What was measured, as people read it: mean and interval of one run, median and range of several."""
    low, high = ours.range
    mean = quantity.formatted(ours.mean, ours.unit)
    span = quantity.several([low, high], ours.unit, " to ")
    if len(ours.values) > 1:
        return f"{mean} ({span} in {len(ours.values)} runs)"
    if low == high or high - low <= 1e-9 * abs(high):  # infinite ones have no difference
        return mean
    if ours.ci95 is None or ours.interval is None:
        return f"{mean} ({span})"
    return quantity.spread(ours.mean, ours.ci95, ours.interval, ours.unit)


def _totals(several: Sequence[Decided]) -> str:
    heads, rows = counted(verdicts(several))
    columns = [Column(head.replace(" ", "\n"), [row[at] for row in rows], text=not at) for at, head in enumerate(heads)]
    lines, _ = fitted(columns, terminal_width() or WIDE)
    return "\n".join(line.plain.rstrip() for line in lines) + "\n"


def _fill(text: str, indent: int, first: int | None = None) -> str:
    """The text in lines that a terminal has room for."""
    width = min(_WIDTH, terminal_width() or _WIDTH)
    start = " " * (indent if first is None else first)
    return fill(
        text,
        max(width, indent + 20),
        initial_indent=start,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


@dataclass(frozen=True)
class ClaimRow:
    """A claim and what came out, in words."""

    name: str
    document: str
    where: str
    says: str
    word: str
    """One verdict for the claim, the worse of direction and size."""
    direction: str | None
    compared: tuple[str, ...]
    """What the direction compares, with our numbers."""
    size: str | None
    published: str | None
    ours: str | None
    seeds: int
    cause: str | None
    """Why a claim does not hold, with what the test of that gave; None of one that holds or has no cause."""
    tried: tuple[str, ...]
    contradicts: tuple[str, ...]


def claim_row(each: Decided, *, untested: bool = False) -> ClaimRow:
    """A claim in words. `untested`: the cause has a test whose runs are not there."""
    claim, outcome = each.claim, each.outcome
    size = claim.statement.size if claim.statement else None
    cause = None
    if claim.cause is not None and not outcome.holds:
        state = "Its test needs runs that are not here." if untested else _state_sentence(claim.cause, each.cause)
        cause = " ".join(part for part in (state, claim.cause.says, cause_test(each)) if part)
    return ClaimRow(
        claim.name,
        claim.document,
        claim.where,
        claim.says,
        each.word,
        None if outcome.direction is None else str(outcome.direction),
        tuple(f"{text}: {value(ours)}" for text, ours in outcome.sides),
        None if outcome.size is None else str(outcome.size),
        None if size is None else _published(size).removeprefix("published "),
        None if outcome.ours is None else value(outcome.ours),
        outcome.seeds,
        cause,
        claim.cause.tried if claim.cause is not None and not outcome.holds else (),
        tuple(claim.contradicts),
    )


def counted(verdicts: Iterable[tuple[str, str]]) -> tuple[list[str], list[list[str]]]:
    """Heads and rows: how many claims of each document have which verdict, of pairs of a document and a verdict."""
    counts: dict[str, Counter[str]] = {}
    for document, word in verdicts:
        counts.setdefault(document, Counter())[word] += 1
    total = sum(counts.values(), Counter[str]())
    heads = [word for word in _HEADS if word != ARITHMETIC or total[word]]
    rows = [[name, str(found.total()), *(str(found[word]) for word in heads)] for name, found in sorted(counts.items())]
    if len(rows) > 1:
        rows.append(["all", str(total.total()), *(str(total[word]) for word in heads)])
    return ["document", "claims", *heads], rows


def as_json(several: Sequence[Decided], differ: Sequence[str], engine: str) -> dict[str, Any]:
    """Everything, in base units; what is infinite is null."""
    return {
        "engine": engine,
        "differences": list(differ),
        "claims": [
            {
                "claim": each.claim.name,
                "says": each.claim.says,
                "where": each.claim.where,
                "needs": each.claim.needs,
                "contradicts": list(each.claim.contradicts),
                "arithmetic": each.claim.arithmetic,
                "holds_for": each.claim.statement.holds if each.claim.statement else None,
                **_outcome(each.outcome, each.claim.statement.size if each.claim.statement else None),
                "cause": _cause(each),
            }
            for each in several
        ],
    }


def _outcome(outcome: Outcome, size: Size | None) -> dict[str, Any]:
    def verdict(part: Verdict | None) -> dict[str, Any] | None:
        return None if part is None else {"verdict": part.word, "why": part.why}

    return {
        "runs": outcome.runs,
        "seeds": outcome.seeds,
        "direction": verdict(outcome.direction),
        "compared": {text: _numbers(ours) for text, ours in outcome.sides},
        "size": verdict(outcome.size),
        "published": None if size is None else {"text": size.text, "from": size.published[0], "to": size.published[1]},
        "accepted": None if size is None else {"from": size.low, "to": size.high, "tolerance": size.tolerance},
        "ours": None if outcome.ours is None else _numbers(outcome.ours),
    }


def _numbers(ours: Ours) -> dict[str, Any]:
    def finite(value: float | None) -> float | None:
        return value if value is not None and isfinite(value) else None

    return {
        "unit": ours.unit,
        "mean": finite(ours.mean),
        "ci95": finite(ours.ci95),
        "values": [[finite(value) for value in seeds] for seeds in ours.values],
    }


def _cause(each: Decided) -> dict[str, Any] | None:
    cause = each.claim.cause
    if cause is None:
        return None
    tested = None if each.cause is None else _outcome(each.cause, cause.statement.size if cause.statement else None)
    return {
        "kind": cause.kind,
        "says": cause.says,
        "source": cause.source,
        "verdict": cause_state(cause, each.cause),
        "tried": list(cause.tried),
        "test": tested,
    }


def verdicts(several: Iterable[Decided]) -> list[tuple[str, str]]:
    """The document of each claim, and the word that it is counted under."""
    return [(each.claim.document, each.counted) for each in several]


def counts(verdicts: Iterable[tuple[str, str]]) -> str:
    """`counted` as a table in Markdown."""
    heads, rows = counted(verdicts)
    return pipes(heads, [at == 0 for at in range(len(heads))], rows)


def _state(cause: Cause, outcome: Outcome | None) -> str:
    """`set-up, shown`, or just `open`."""
    state = cause_state(cause, outcome)
    return state if state.startswith(cause.kind) else f"{cause.kind}, {state}"


def _state_sentence(cause: Cause, outcome: Outcome | None) -> str:
    """The same as a sentence."""
    if cause.kind == "open":
        return "The cause is open."
    state = cause_state(cause, outcome)
    if state == WOULD_EXPLAIN:
        return f"The {cause.kind} would explain it; no source says that the document had it."
    return f"The cause lies in the {cause.kind}, {'as its test shows' if state == SHOWN else f'but it is {state}'}."


def cause_test(each: Decided, *, markdown: bool = False) -> str:
    """What the test of a claim's cause measured; empty if there is none. In Markdown expressions are code."""
    statement = each.claim.cause.statement if each.claim.cause is not None else None
    if each.cause is None or statement is None:
        return ""
    if each.cause.ours is not None and statement.size is not None:
        return f"The test gives {value(each.cause.ours)}; {_published(statement.size)}."
    sides = [(code(text) if markdown else text, value(ours)) for text, ours in each.cause.sides]
    if markdown:
        measured = joined((joined(side) for side in sides), ", ")
        return Markdown(f"The test gives {measured}.") if sides else ""
    return f"The test gives {', '.join(map(' '.join, sides))}." if sides else ""


def _explained(each: Decided, cause: Cause) -> Markdown:
    """What was found, what the test of it measured, and what was tried."""
    tried = f"What was tried: {' '.join(cause.tried)}" if cause.tried else ""
    parts = [_state_sentence(cause, each.cause), cause.says, cause_test(each, markdown=True), tried]
    return joined(part for part in parts if part)


def part(each: Decided, name: str) -> str:  # noqa: PLR0911 (a table of parts)
    """One of what tables have of a claim: claim, where, says, published, ours, verdict, cause; empty if it has none.

    `explained` is the cause in whole sentences, with what its test measured.
    """
    claim, outcome = each.claim, each.outcome
    size = claim.statement.size if claim.statement else None
    match name:
        case "claim":
            return claim.name.partition("/")[2]
        case "where":
            return claim.where
        case "says":
            return claim.says
        case "published":
            return f"{size.text} (± {size.tolerance})" if size else ""
        case "ours" if outcome.ours:
            return value(outcome.ours)
        case "ours":
            return joined((joined((code(text), value(ours))) for text, ours in outcome.sides), "; ")
        case "verdict":
            return each.word
        case "cause" if claim.cause is not None and not outcome.holds:
            return _state(claim.cause, each.cause).partition(" (")[0]
        case "explained" if claim.cause is not None and not outcome.holds:
            return _explained(each, claim.cause)
    why = next((found.why for found in (outcome.direction, outcome.size) if found is not None and found.why), None)
    return why or ""
