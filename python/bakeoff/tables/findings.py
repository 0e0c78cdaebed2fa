"""docs/findings.md and docs/findings.csv: what became of each claim, for the documentation of a checkout."""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from bakeoff import files
from bakeoff.claims.expected import Known, Recorded, kind, words
from bakeoff.claims.today import SUFFIX
from bakeoff.claims.verdict import CANNOT, FAILED, HOLDS, NOT, UNDECIDED, worse
from bakeoff.errors import TableError
from bakeoff.tables import claim_report
from bakeoff.text.markdown import code, escaped, joined, pipes

if TYPE_CHECKING:
    from bakeoff.claims.verdict import Decided

_BLOCK: Final = "<!-- claims: bakeoff verify writes this -->\n{}<!-- end -->"
_MARKED: Final = re.compile(r"<!-- claims: bakeoff verify writes this -->\n.*?<!-- end -->", re.DOTALL)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z0-9'])")
_NO_VERDICT: Final = Recorded("", "")
_ANY: Final[Mapping[str, Sequence[str]]] = MappingProxyType({})
_SHORT: Final = 60
"""Letters of an expression that the page still shows; the CSV has the others."""


@dataclass(frozen=True)
class Finding:
    """A claim and what came out on one engine, in words."""

    document: str
    claim: str
    where: str
    statement: str
    published: str
    """Empty for a claim without a number."""
    ours: tuple[tuple[str, str], ...]
    """Expression and value of what was measured; no expression beside a published number."""
    verdict: Recorded
    counted: str
    """The word that tables count the claim under."""
    elsewhere: Mapping[str, Recorded]
    """Recorded verdicts of other engines, and of every engine with today's algorithms (`sim-today`)."""
    versions: Sequence[str]
    """The versions that its runs name."""
    cause: str
    """`measure, shown`, or why the claim cannot be run; empty if it holds."""
    says: str
    """The cause in sentences."""
    test: str
    """What the test of the cause gives."""
    tried: tuple[str, ...]


def findings(
    several: Iterable[Decided], known: Known, engine: str, versions: Mapping[str, Sequence[str]] = _ANY
) -> list[Finding]:
    """One finding per claim. `known` has the verdicts under other labels than `engine`, `versions` those that claims
    name."""
    labels = sorted({label for _, label in known} - {kind(engine)})
    found = []
    for each in several:
        named = versions.get(each.claim.name, ())
        rows = {label: row for label in labels if (row := known.get((each.claim.name, label))) is not None}
        rows[kind(engine)] = words(each)
        # Without a version a claim is one of today.
        of = {label: label if named else label.removesuffix(SUFFIX) for label in labels}
        elsewhere = {label: rows[at] for label, at in of.items() if at in rows}
        found.append(_finding(each, elsewhere, named))
    return found


def _finding(each: Decided, elsewhere: Mapping[str, Recorded], versions: Sequence[str]) -> Finding:
    claim, outcome = each.claim, each.outcome
    cause = None if outcome.holds else claim.cause
    sides = [("", outcome.ours)] if outcome.ours else outcome.sides
    location, says, published, why = (claim_report.part(each, name) for name in ("where", "says", "published", "cause"))
    return Finding(
        document=claim.document,
        claim=claim.name.partition("/")[2],
        where=location,
        statement=says,
        published=published,
        ours=tuple((text, claim_report.value(ours)) for text, ours in sides),
        verdict=words(each),
        counted=each.counted,
        elsewhere=elsewhere,
        versions=versions,
        cause=why,
        says=cause.says if cause else "",
        test=claim_report.cause_test(each) if cause else "",
        tried=cause.tried if cause else (),
    )


def csv_text(several: Sequence[Finding]) -> str:
    """All findings, one line each.

    Verdicts of other engines have columns ENGINE_direction and ENGINE_size, those of today ENGINE_today_direction.
    """
    engines = sorted({engine for each in several for engine in each.elsewhere})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([
        "document", "claim", "where", "statement", "published", "ours", "versions", "direction", "size",
        *(f"{engine.replace('-', '_')}_{part}" for engine in engines for part in Recorded._fields),
        "cause", "explanation", "test", "tried",
    ])  # fmt: skip
    for each in several:
        ours = "; ".join(" ".join(filter(None, side)) for side in each.ours)
        elsewhere = [word for engine in engines for word in each.elsewhere.get(engine, Recorded("", ""))]
        writer.writerow([
            each.document, each.claim, each.where, each.statement, each.published, ours, " ".join(each.versions),
            *each.verdict, *elsewhere, each.cause, each.says, each.test, " ".join(each.tried),
        ])  # fmt: skip
    return text.getvalue()


def markdown(several: Sequence[Finding], engine: str) -> str:
    """Counts, agreement with other engines, and an entry for each claim that does not hold or is undecided."""
    today = kind(engine) + SUFFIX
    counted = [(each.document, each.counted, _word(each.elsewhere.get(today, _NO_VERDICT))) for each in several]
    parts = [counts(counted), *_agreement(several, engine)]
    for document in dict.fromkeys(each.document for each in several):
        own = [each for each in several if each.document == document and _word(each.verdict) in (NOT, UNDECIDED)]
        if own:
            parts.append(f"### {document}\n\n" + "".join(_entry(each, engine) for each in own))
    return "\n".join(parts)


def counts(verdicts: Sequence[tuple[str, str, str]]) -> str:
    """A table of how many claims of each document have which verdict, of triples: document, verdict, and that of today.

    How many hold today stands in the last column, if any verdict of today is known.
    """
    heads, rows = claim_report.counted((document, word) for document, word, _ in verdicts)
    if any(today for _, _, today in verdicts):
        hold = Counter(document for document, _, today in verdicts if today == HOLDS)
        hold["all"] = hold.total()
        heads, rows = [*heads, "holds today"], [[*row, str(hold[row[0]])] for row in rows]
    return pipes(heads, [at == 0 for at in range(len(heads))], rows)


def _word(verdict: Recorded) -> str:
    """The worse of direction and size; empty if there is no verdict."""
    return worse(filter(None, verdict)) if any(verdict) else ""


def _agreement(several: Sequence[Finding], engine: str) -> list[str]:
    """A table for each other engine with recorded verdicts: of how many claims both decide, and how many agree.

    One line for the versions that claims name, and one for those of today.
    """
    own = kind(engine)
    tables = []
    for other in sorted({label.removesuffix(SUFFIX) for each in several for label in each.elsewhere} - {own}):
        rows = []
        for says, ours, theirs in (
            ("as claims name them", own, other),
            ("today's", own + SUFFIX, other + SUFFIX),
        ):
            by = [{**each.elsewhere, own: each.verdict} for each in several]
            pairs = [(each[ours], each[theirs]) for each in by if ours in each and theirs in each]
            both = [(one, two) for one, two in pairs if not {CANNOT, FAILED} & {*one, *two}]
            if pairs:
                rows.append([says, str(len(both)), str(sum(one == two for one, two in both))])
        heads = ["algorithms", f"claims that `{own}` and `{other}` decide", "equal verdicts"]
        tables.append(pipes(heads, [True, False, False], rows))
    return tables


def _entry(each: Finding, engine: str) -> str:
    """An entry of a list: statement, verdict, numbers and cause, one sentence each."""
    numbers = []
    if each.published:
        numbers.append(f"published {escaped(each.published)}")
    if each.ours:
        sides = [joined((code(text), value) if 0 < len(text) <= _SHORT else (value,)) for text, value in each.ours]
        numbers.append(f"ours {'; '.join(sides)}")
    verdict = _phrase(each.verdict)
    parts = [f"*{verdict}*{': ' if numbers else ''}{', '.join(numbers)}."]
    others = {label.capitalize(): of for label, of in each.elsewhere.items() if not label.endswith(SUFFIX)}
    if (now := each.elsewhere.get(kind(engine) + SUFFIX)) is not None:
        others["Today"] = now
    parts += [f"{says}: {_phrase(of).lower()}." for says, of in others.items()
              if of != each.verdict and CANNOT not in of]  # fmt: skip
    if each.says:
        parts.append(f"*Cause* ({each.cause.removesuffix(', shown')}): {escaped(_first(each.says))}")
    return f"- **{escaped(each.claim)}**: {escaped(each.statement)} {' '.join(parts)}\n"


def _phrase(verdict: Recorded) -> str:
    """`Does not hold`, or `Size does not hold` if only that does not."""
    if not verdict.size or verdict.size == verdict.direction or not verdict.direction:
        return _word(verdict).capitalize()
    if verdict.direction == HOLDS:
        return f"Size {verdict.size}"
    return f"Direction {verdict.direction}, size {verdict.size}"


def _first(text: str) -> str:
    """The first sentence."""
    return _SENTENCE.split(text, maxsplit=1)[0]


def write_docs(
    several: Sequence[Decided], known: Known, engine: str, top: Path, versions: Mapping[str, Sequence[str]] = _ANY
) -> list[Path]:
    """Write docs/findings.csv and, between its markers, docs/findings.md below `top`; the files' paths.

    BakeoffError for a page without markers; then nothing is written.
    """
    return write(findings(several, known, engine, versions), engine, top)


def write(several: Sequence[Finding], engine: str, top: Path) -> list[Path]:
    """`write_docs` of findings."""
    page = top / "docs" / "findings.md"
    try:
        before = page.read_text(encoding="utf-8")
    except OSError as error:
        raise TableError(f"{page}: cannot be read: {error.strerror}; expected a checkout of bakeoff") from None
    marked = _MARKED.search(before)
    if marked is None:
        raise TableError(f"{page}: missing lines '{_BLOCK.partition('{')[0].strip()}' and '<!-- end -->'")
    start, end = marked.span()
    after = before[:start] + _BLOCK.format(markdown(several, engine)) + before[end:]
    found = {top / "docs" / "findings.csv": csv_text(several).encode(), page: after.encode()}
    files.write_all(found)
    return list(found)
