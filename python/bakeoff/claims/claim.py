"""What a file of claims says: the documents' statements, each with its runs and predicates.

docs/claims.md explains the form. Everything is checked when a file is read; nothing is run here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, ValidationError

from bakeoff.claims.expression import Expression, parse
from bakeoff.errors import ClaimError
from bakeoff.expressions import quantity
from bakeoff.expressions.grammar import ExpressionError
from bakeoff.expressions.nodes import TRUTH
from bakeoff.scenario import catalog
from bakeoff.scenario.error import did_you_mean, quoted
from bakeoff.scenario.explain import explain
from bakeoff.scenario.network import Model
from bakeoff.scenario.yaml_file import read_yaml

_WORD: Final = r"^[a-z0-9][a-z0-9._-]*$"
_UNITS_TO_WRITE: Final = ("s", "bit/s", "1/s")


def _as_text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


Word = Annotated[str, Field(pattern=_WORD, max_length=120)]
Text = Annotated[str, Field(min_length=1), BeforeValidator(_as_text)]
Name = Annotated[str, Field(min_length=1, max_length=300)]
Predicate = Annotated[str, Field(min_length=1)]
Number = int | float | str
Starts = Literal["every", "typical", "any"]
"""For which starts (seeds) of a run a predicate is said to hold."""


class DocumentHead(Model):
    """The document that the statements stand in."""

    name: Word
    """As the file is called, without .yaml; claims are called NAME/ID."""
    title: Text
    authors: Text | None = None
    date: Text | None = None


class Where(Model):
    """Where in the document."""

    section: Text
    item: Text | None = None
    figure: Text | None = None


class RunText(Model):
    """A run that is varied."""

    run: Name
    set: dict[str, Any] = Field(default_factory=dict)
    """Values of the scenario that are replaced, as --set does."""


Runs = Name | list[Name] | dict[Word, Name | RunText]


class SizeText(Model):
    """A number that was published, and how near ours has to be."""

    of: Predicate | Number
    """What is measured, as an expression."""
    published: Number | Annotated[list[Number], Field(min_length=2, max_length=2)]
    tolerance: Number
    because: Text
    """How the tolerance was derived."""


class CauseText(Model):
    """Why a claim does not hold, as far as it was found out."""

    kind: Literal["set-up", "version", "measure", "engine", "open"]
    says: Text
    source: Text | None = None
    """Where a document or source says that the published runs had this; without it a cause only would explain."""
    holds: Starts | None = None
    """As in the claim, which it is by default."""
    runs: Runs | None = None
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    direction: Predicate | None = None
    size: SizeText | None = None
    set: dict[str, Any] | None = None
    """Values of the scenario that are replaced in all runs, as --set does."""
    engine: Name | None = None
    """What does the runs."""
    tried: Text | list[Text] | None = None


class MutationText(Model):
    """A change under which the claim does not hold any more: what its runs can tell apart."""

    runs: Runs | None = None
    """Instead of the claim's; of a mapping only the named ones are replaced."""
    set: dict[str, Any] | None = None
    """Values of the scenario that are replaced in all runs, as --set does."""


class ClaimText(Model):
    """One statement."""

    id: Word
    says: Text
    where: Where
    holds: Starts = "typical"
    """Whether it is about every start, the mean over starts, or at least one start."""
    arithmetic: bool = False
    """Whether it follows from numbers alone. Without a measure it has no runs."""
    runs: Runs | None = None
    set: dict[str, Any] | None = None
    """Values of the scenario that are replaced in all runs, as --set does."""
    share: Annotated[float, Field(gt=0, le=1)] | None = None
    """For several runs: of how many the predicate has to hold; of all by default."""
    direction: Predicate | None = None
    size: SizeText | None = None
    contradicts: list[Name] = Field(default_factory=list)
    needs: Text | None = None
    """What would be needed to run it, where nothing here can."""
    cause: CauseText | None = None
    mutation: MutationText | None = None


class File(Model):
    """A file of claims."""

    document: DocumentHead
    claims: list[ClaimText]


@dataclass(frozen=True)
class Size:
    """A published number and the range around it, in base units."""

    of: Expression
    published: tuple[float, float]
    """Twice the same, or the range that was published."""
    low: float
    high: float
    unit: str | None
    text: str
    """As it was published."""
    tolerance: str
    because: str

    def holds(self, value: float) -> bool:
        """Whether the value lies inside, with the edges."""
        # 20 ms + 10 % is a little off in binary fractions.
        slack = 1e-9 * max(abs(self.low), abs(self.high))
        return self.low - slack <= value <= self.high + slack


@dataclass(frozen=True, eq=False)
class Wanted:
    """A run, or a pattern of runs."""

    short: str | None
    pattern: str
    set: dict[str, Any]
    """What is varied in it."""


@dataclass(frozen=True, eq=False)
class Statement:
    """What can be decided by runs."""

    place: str
    """File and place inside, for messages."""
    runs: tuple[Wanted, ...]
    """Single runs with short names, which are looked at together; or patterns of runs, each looked at by itself.

    None of arithmetic without a measure.
    """
    share: float
    direction: Expression | None
    size: Size | None
    engine: str | None
    holds: Starts = "typical"

    @property
    def each(self) -> bool:
        """Whether the predicates are about each run, and not about all of them together."""
        return bool(self.runs) and self.runs[0].short is None


@dataclass(frozen=True)
class Cause:
    """Why a claim does not hold."""

    kind: str
    says: str
    statement: Statement | None
    """What has to hold for the cause to be shown; None of an open question."""
    tried: tuple[str, ...]
    source: str | None = None
    """Where the document or another source says that the published runs had this."""


@dataclass(frozen=True)
class Claim:
    """One statement of a document."""

    name: str
    """DOCUMENT/ID."""
    document: str
    says: str
    where: str
    statement: Statement | None
    contradicts: tuple[str, ...]
    needs: str | None
    cause: Cause | None
    arithmetic: bool = False
    """Whether it follows from numbers alone."""
    mutation: Statement | None = None
    """The same statement with another set-up, under which it must not hold."""


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of files of claims, for editors."""
    schema = File.model_json_schema()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:bakeoff:claims:1",
        **schema,
        "title": "bakeoff claims",
    }


def folder() -> Path:
    """Where the catalog's claims lie."""
    return catalog.root() / "claims"


def load(path: Path | None = None) -> list[Claim]:
    """Every claim of every file of a folder (default: the catalog's), in order of file and place.

    BakeoffError names the file, the place inside, what is wrong there and what was expected.
    """
    path = folder() if path is None else path
    found = [claim for file in sorted(path.glob("*.yaml")) for claim in read(file)]
    names = {claim.name for claim in found}
    for claim in found:
        for other in claim.contradicts:
            if other not in names:
                raise ClaimError(
                    f"{path / claim.document}.yaml: {claim.name}: contradicts: unknown claim '{other}'"
                    f"{did_you_mean(other, names)}"
                )
    return found


def select(claims: Sequence[Claim], pattern: str | None) -> list[Claim]:
    """Those that a glob on DOCUMENT/ID, DOCUMENT or ID, or a part of the name, means.

    BakeoffError if there are none.
    """
    if pattern is None:
        return list(claims)
    bare = pattern.rstrip("/")
    chosen = [claim for claim in claims if bare in claim.name or any(fnmatchcase(name, bare) for name in _names(claim))]
    if not chosen:
        near = get_close_matches(bare, [claim.name for claim in claims], n=2, cutoff=0.5)
        known = " or ".join(f"'{name}'" for name in near) or ", ".join(dict.fromkeys(c.document for c in claims))
        raise ClaimError(f"'{pattern}': no such claim; expected for example {known or 'a file in ' + str(folder())}")
    return chosen


def _names(claim: Claim) -> tuple[str, str, str]:
    """What a glob may be about: the claim, its document, or its own name alone."""
    return claim.name, claim.document, claim.name.partition("/")[2]


def read(path: Path) -> list[Claim]:
    """The claims of a file. BakeoffError as for `load`."""
    data = read_yaml(path)
    try:
        file = File.model_validate(data)
    except ValidationError as error:
        raise ClaimError(f"{path}: {explain(error, data)}") from None
    name = file.document.name
    if name != path.stem:
        raise ClaimError(f"{path}: document.name: '{name}'; expected '{path.stem}', the file's name")
    found: dict[str, Claim] = {}
    for number, text in enumerate(file.claims):
        place = f"{path}: claims[{number}]"
        if text.id in found:
            raise ClaimError(f"{place}.id: duplicate name '{text.id}'; expected unique names")
        found[text.id] = _claim(name, text, f"{place} ({text.id})")
    return list(found.values())


def _claim(document: str, text: ClaimText, place: str) -> Claim:
    keys = ("runs", "set", "share", "direction", "size", "cause", "mutation")
    decided = [key for key in keys if getattr(text, key) is not None]
    statement = mutation = None
    if text.needs is not None:
        if decided or text.arithmetic:
            other = (decided or ["arithmetic"])[0]
            raise ClaimError(f"{place}: 'needs' (no runs) and '{other}' are mutually exclusive")
    elif text.arithmetic and text.runs is None:
        if unused := [key for key in ("set", "share", "cause") if getattr(text, key) is not None]:
            raise ClaimError(f"{place}.{unused[0]}: only valid with 'runs'")
        statement = _statement(text, None, {}, place)
    else:
        if text.runs is None:
            raise ClaimError(f"{place}: missing 'runs'; expected the runs that test it, or 'needs'")
        statement = _statement(text, text.runs, text.set or {}, place)
    if text.mutation is not None:
        if text.arithmetic:
            raise ClaimError(f"{place}: 'arithmetic' (no run can turn it) and 'mutation' are mutually exclusive")
        mutation = _mutation(text, text.mutation, f"{place}.mutation")
    return Claim(
        name=f"{document}/{text.id}",
        document=document,
        says=text.says,
        where=", ".join(part for part in (text.where.section, text.where.item, text.where.figure) if part),
        statement=statement,
        contradicts=tuple(text.contradicts),
        needs=text.needs,
        cause=_cause(text, text.cause, f"{place}.cause") if text.cause else None,
        arithmetic=text.arithmetic,
        mutation=mutation,
    )


def _mutation(claim: ClaimText, text: MutationText, place: str) -> Statement:
    if not text.runs and not text.set:
        raise ClaimError(f"{place}: empty; expected 'set' or 'runs'")
    runs = text.runs or claim.runs or []
    if isinstance(runs, dict) and isinstance(claim.runs, dict):
        if other := next((name for name in runs if name not in claim.runs), None):
            raise ClaimError(f"{place}.runs: unknown run '{other}'; expected one of {', '.join(claim.runs)}")
        runs = {**claim.runs, **runs}
    return _statement(claim, runs, {**(claim.set or {}), **(text.set or {})}, place)


def _cause(claim: ClaimText, text: CauseText, place: str) -> Cause:
    tried = () if text.tried is None else (text.tried,) if isinstance(text.tried, str) else tuple(text.tried)
    given = [text.runs, text.direction, text.size, text.set, text.engine]
    if text.kind == "open" and not tried:
        raise ClaimError(f"{place}.tried: missing; expected a list of sentences, one per attempt")
    statement = None
    if any(part is not None for part in given):
        runs = text.runs if text.runs is not None else claim.runs
        if text.direction is None and text.size is None:
            text = text.model_copy(update={"direction": claim.direction, "size": claim.size})
        elif text.kind != "measure":
            for key in ("direction", "size"):
                if getattr(claim, key) is not None and getattr(text, key) is None:
                    raise ClaimError(f"{place}: missing '{key}'; expected all predicates of the claim, or none")
        text = text.model_copy(update={"holds": text.holds or claim.holds})
        if runs is not None:
            statement = _statement(text, runs, {**(claim.set or {}), **(text.set or {})}, place)
    elif text.kind != "open":
        raise ClaimError(
            f"{place}: no test; expected 'set', 'runs', 'engine', 'direction' or 'size', or 'kind: open' with 'tried'"
        )
    return Cause(text.kind, text.says, statement, tried, text.source)


def _statement(text: ClaimText | CauseText, runs: Runs | None, changed: dict[str, Any], place: str) -> Statement:
    """`runs` are None for arithmetic without a measure."""
    if text.direction is None and text.size is None:
        raise ClaimError(f"{place}: missing 'direction' or 'size'; expected one or both")
    if runs is not None and not runs:
        raise ClaimError(f"{place}.runs: empty; expected the name of a run")
    named = runs if isinstance(runs, dict) else {}
    if named and text.share is not None:
        raise ClaimError(f"{place}.share: only valid if 'runs' is a pattern, not a mapping of names")
    found = Statement(
        place=place,
        runs=() if runs is None else _wanted(runs, changed),
        share=1.0 if text.share is None else text.share,
        direction=None if text.direction is None else _direction(text.direction, list(named), f"{place}.direction"),
        size=None if text.size is None else _size(text.size, list(named), f"{place}.size"),
        engine=text.engine if isinstance(text, CauseText) else None,
        holds=text.holds or "typical",
    )
    parts = [part for part in (found.direction, found.size.of if found.size else None) if part is not None]
    bare = [part.text for part in parts if not part.calls]
    if runs is None and len(bare) < len(parts):
        raise ClaimError(f"{place}: missing 'runs'; expected the runs that are measured")
    if runs is not None and bare:
        raise ClaimError(
            f"{place}: '{bare[0]}' contains no measure; expected for example goodput(1), or 'arithmetic: true' "
            "without 'runs'"
        )
    return found


def _wanted(runs: Runs, changed: dict[str, Any]) -> tuple[Wanted, ...]:
    if not isinstance(runs, dict):
        return tuple(Wanted(None, pattern, changed) for pattern in ([runs] if isinstance(runs, str) else runs))
    texts = {short: RunText(run=run) if isinstance(run, str) else run for short, run in runs.items()}
    return tuple(Wanted(short, text.run, {**text.set, **changed}) for short, text in texts.items())


def _direction(text: str, runs: Sequence[str], place: str) -> Expression:
    found = _expression(text, runs, place)
    if found.unit != TRUTH:
        raise ClaimError(f"{place}: '{found.text}' is a number; expected a comparison")
    return found


def _expression(text: str, runs: Sequence[str], place: str) -> Expression:
    try:
        found = parse(text, runs)
    except ExpressionError as error:
        raise ClaimError(f"{place}: {error}") from None
    return found


def _size(text: SizeText, runs: Sequence[str], place: str) -> Size:
    of = _expression(str(text.of), runs, f"{place}.of")
    if of.unit == TRUTH:
        raise ClaimError(f"{place}.of: '{of.text}' is a boolean; expected a number")
    published = text.published if isinstance(text.published, list) else [text.published]
    numbers = [_published(value, of.unit, f"{place}.published") for value in published]
    low, high = numbers[0], numbers[-1]
    if low > high:
        raise ClaimError(f"{place}.published: {quoted(text.published)}; expected the smaller number first")
    tolerance = _quantity(text.tolerance, f"{place}.tolerance")
    if tolerance.value < 0:
        raise ClaimError(f"{place}.tolerance: {quoted(text.tolerance)}; expected at least 0")
    relative = isinstance(text.tolerance, str) and text.tolerance.strip().endswith("%")
    if not relative and tolerance.unit not in (None, of.unit) and of.unit is not None:
        raise ClaimError(f"{place}.tolerance: {quoted(text.tolerance)}; expected a share such as '30%', or {of.unit}")
    if not relative and tolerance.unit is None and of.unit in _UNITS_TO_WRITE and tolerance.value:
        raise ClaimError(f"{place}.tolerance: {quoted(text.tolerance)} has no unit; expected '30%', or {of.unit}")
    return Size(
        of=of,
        published=(low, high),
        low=low - (abs(low) * tolerance.value if relative else tolerance.value),
        high=high + (abs(high) * tolerance.value if relative else tolerance.value),
        unit=of.unit,
        text=" to ".join(str(value) for value in published),
        tolerance=str(text.tolerance),
        because=text.because,
    )


def _published(value: Number, unit: str | None, place: str) -> float:
    found = _quantity(value, place)
    if found.unit is None and unit in _UNITS_TO_WRITE and found.value:
        raise ClaimError(f"{place}: {quoted(value)} has no unit; expected a text such as '10 {unit}'")
    if found.unit is not None and unit is not None and found.unit != unit:
        raise ClaimError(f"{place}: {quoted(value)}; expected {'no unit' if unit == '1' else unit}, as 'of' has it")
    return found.value


def _quantity(value: Number, place: str) -> quantity.Quantity:
    if not isinstance(value, str):
        if not isfinite(value):
            raise ClaimError(f"{place}: {quoted(value)}; expected a number")
        return quantity.Quantity(float(value), None)
    try:
        return quantity.parse(value)
    except ValueError as error:
        raise ClaimError(f"{place}: {error}") from None
