"""Batteries: files of cases, each a question of a document with a scenario and the predicate that answers it.

docs/evaluate.md explains the form. Everything is checked when a file is read, except what is inside the scenarios.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from bakeoff.claims.changes import Better
from bakeoff.claims.claim import Starts, Statement, Wanted, Word
from bakeoff.claims.expression import Call, Expression, parse
from bakeoff.errors import EvaluationError
from bakeoff.expressions.grammar import ExpressionError
from bakeoff.expressions.nodes import TRUTH, Apply, Leaf, Node, walk
from bakeoff.scenario import catalog
from bakeoff.scenario import json_schema as scenario_schema
from bakeoff.scenario.cc_variables import variables
from bakeoff.scenario.error import did_you_mean
from bakeoff.scenario.explain import explain
from bakeoff.scenario.network import Model
from bakeoff.scenario.yaml_file import read_yaml

if TYPE_CHECKING:
    from pathlib import Path

Kind = Literal["cc", "qdisc"]
CC: Final = "cc"
QDISC: Final = "qdisc"
KINDS: Final[tuple[Kind, ...]] = (CC, QDISC)
"""What a battery evaluates: congestion controls or queues."""
BASELINE: Final = "baseline"
_ALL: Final = 1e9
"""Packets with ECT(1), where all have it."""
_PLURAL: Final = {CC: "congestion controls", QDISC: "queues"}


def seats_of(kind: str) -> tuple[str, str]:
    """The names of the two runs of a case: with what is evaluated, and with the baseline in its place."""
    return kind, BASELINE


Text = Annotated[str, Field(min_length=1)]


class HeadText(Model):
    """What the cases are from."""

    name: Word
    """As the file is called, without .yaml; cases are called NAME/ID."""
    title: Text
    source: Text
    """The document, as a report names it before a clause."""
    of: Kind = CC
    """What it evaluates."""


class CaseText(Model):
    """One case, or a question that no run answers."""

    id: Word
    clause: Text
    says: Text
    kind: Literal["case", "needs judgement"] = "case"
    question: Text | None = None
    """Of 'needs judgement': what a reviewer must answer."""
    scenario: dict[str, Any] | Text | None = None
    """In the scenario language, or the SUITE/NAME of one in the catalog. `{cc}` is the control, `{other}` a
    competitor, `{qdisc}` the queue."""
    bdp: Annotated[int, Field(gt=0)] | None = None
    """Of queues: rate times the largest round trip, in packets of 1514 bytes; `BDP` in the words of a queue."""
    set: dict[str, Any] = Field(default_factory=dict)
    """Values of a catalog scenario that are replaced, as --set does."""
    variables: list[Text] = Field(default_factory=list)
    """Traced variables of the control without which the clause does not apply. The case then has no baseline, and
    `direction` no `of`."""
    void_unless: Text | None = None
    """A predicate without `of`: the seeds in which it is false do not count, as a stimulus that never came."""
    applies: Text | None = None
    """A predicate without which the clause does not apply to a control."""
    number: Text | None = None
    """What is shown of both seats."""
    shows: Text | None = None
    """The number in words; by default the expression."""
    direction: Text | None = None
    """The predicate, over `of="cc"` (or `of="qdisc"`) and `of="baseline"`."""
    better: Better | None = None
    """Whether a higher or a lower `number` is better, for two versions; by default as `direction` has it."""
    holds: Starts = "typical"
    limit: Literal["ours", "document"] = "ours"
    """Who set the limits in `direction`."""
    because: Text | None = None
    """How the limit was derived."""
    quick: bool = False
    """Whether it is part of --quick."""


class BatteryText(Model):
    """A file of cases."""

    battery: HeadText
    cases: list[CaseText]


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of batteries, for editors, with that of the scenarios in them."""
    schema = BatteryText.model_json_schema()
    scenario = scenario_schema()
    inner = {key: scenario[key] for key in ("type", "properties", "additionalProperties") if key in scenario}
    case = schema["$defs"]["CaseText"]["properties"]["scenario"]
    case["anyOf"] = [{"$ref": "#/$defs/Scenario"} if part.get("type") == "object" else part for part in case["anyOf"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:bakeoff:evaluation:1",
        **schema,
        "title": "bakeoff battery of cases",
        "$defs": {**scenario["$defs"], **schema["$defs"], "Scenario": inner},
    }


@dataclass(frozen=True, eq=False)
class Test:
    """How a case is decided."""

    __test__ = False  # nothing of pytest
    scenario: dict[str, Any] | str
    settings: dict[str, Any]
    applies: Statement | None
    direction: Statement
    number: Expression
    shows: str
    """What the number is."""
    better: Better
    """Which way `number` is better."""
    void_unless: Expression | None = None


@dataclass(frozen=True, eq=False)
class Case:
    """One case. `test` is None if it needs judgement, which `question` asks for."""

    place: str
    """File and place inside, for messages."""
    name: str
    """BATTERY/ID."""
    of: Kind
    """What it evaluates."""
    source: str
    clause: str
    says: str
    question: str | None
    test: Test | None
    limit: str
    because: str | None
    quick: bool
    variables: tuple[str, ...] = ()
    """What the control must trace; it then has no baseline."""
    bdp: int | None = None
    """The bandwidth-delay product of a queue's case [packets]."""

    def excludes(self, ect1: bool | None = None) -> bool:
        """Whether it does not apply to a control that sends ECT(1), or to one that does not; of None to one of both."""
        applies = self.test.applies.direction if self.test and self.test.applies else None
        if applies is None or any(call.measure != "seen_ect1" for call in applies.calls):
            return False
        truths = {sends: applies.truth(dict.fromkeys(applies.calls, _ALL if sends else 0.0)) for sends in (False, True)}
        return not (all(truths.values()) if ect1 is None else truths[ect1])

    def lacking(self, cc: str) -> str | None:
        """A variable that the case is about and that the control is known not to trace; None if there is none."""
        traced = variables(cc)
        return None if traced is None else next((name for name in self.variables if name not in traced), None)

    @property
    def takes_other(self) -> bool:
        """Whether it is repeated for each competitor."""
        return self.test is not None and "{other}" in str((self.test.scenario, self.test.settings))


def folder() -> Path:
    """Where the catalog's batteries lie."""
    return catalog.root() / "evaluation"


def names() -> list[str]:
    """The batteries of the catalog."""
    return sorted(path.stem for path in folder().glob("*.yaml"))


def load(batteries: Sequence[str] = (), of: Kind = CC) -> list[Case]:
    """The cases of these batteries, or of all for this kind. BakeoffError for an unknown one, one of the other kind, or
    an invalid file."""
    known = names()
    for name in batteries:
        if name not in known:
            raise EvaluationError(f"--battery: '{name}'{did_you_mean(name, known)}")
    found = {name: read(folder() / f"{name}.yaml") for name in batteries or known}
    for name in batteries:
        if any(case.of != of for case in found[name]):
            raise EvaluationError(f"--battery: '{name}' is not about {_PLURAL[of]}; expected a battery that is")
    return [case for cases in found.values() for case in cases if case.of == of]


def select(cases: Sequence[Case], patterns: Sequence[str]) -> list[Case]:
    """Those that a glob on BATTERY/ID or ID names. BakeoffError if one names none."""
    for pattern in patterns:
        if not any(_named(case, pattern) for case in cases):
            known = [case.name for case in cases]
            raise EvaluationError(f"--case: '{pattern}'{did_you_mean(pattern, known)}")
    return [case for case in cases if any(_named(case, pattern) for pattern in patterns)]


def _named(case: Case, pattern: str) -> bool:
    return fnmatchcase(case.name, pattern) or fnmatchcase(case.name.partition("/")[2], pattern)


def read(path: Path) -> list[Case]:
    """The cases of a file. BakeoffError names the place in it, what is wrong and what was expected."""
    data = read_yaml(path)
    try:
        file = BatteryText.model_validate(data)
    except ValidationError as error:
        raise EvaluationError(f"{path}: {explain(error, data)}") from None
    if file.battery.name != path.stem:
        raise EvaluationError(f"{path}: battery.name: '{file.battery.name}'; expected '{path.stem}', as the file")
    found: list[Case] = []
    for number, text in enumerate(file.cases):
        case = _case(text, file.battery, f"{path}: cases[{number}] ({text.id})")
        if any(case.name == other.name for other in found):
            raise EvaluationError(f"{case.place}: duplicate id; expected one of its own")
        found.append(case)
    return found


def _case(text: CaseText, head: HeadText, place: str) -> Case:
    return Case(
        place=place,
        name=f"{head.name}/{text.id}",
        of=head.of,
        source=head.source,
        clause=text.clause,
        says=text.says,
        question=text.question,
        test=_test(text, head.of, place),
        limit=text.limit,
        because=text.because,
        quick=text.quick,
        variables=tuple(text.variables),
        bdp=text.bdp,
    )


def _test(text: CaseText, of: Kind, place: str) -> Test | None:
    if text.kind == "needs judgement":
        if text.question is None:
            raise EvaluationError(f"{place}: missing 'question'; expected what a reviewer must answer")
        for key in ("scenario", "direction", "number", "applies", "shows", "better", "bdp", "void_unless"):
            if getattr(text, key) is not None:
                raise EvaluationError(f"{place}.{key}: only valid of kind 'case', not of 'needs judgement'")
        return None
    if text.question is not None:
        raise EvaluationError(f"{place}.question: only valid of kind 'needs judgement'")
    if text.scenario is None or text.direction is None or text.number is None:
        lacking = next(key for key in ("scenario", "direction", "number") if getattr(text, key) is None)
        raise EvaluationError(f"{place}: missing '{lacking}'; expected 'scenario', 'direction' and 'number'")
    if text.set and not isinstance(text.scenario, str):
        raise EvaluationError(f"{place}.set: only valid with the name of a scenario of the catalog")
    if f"{{{of}}}" not in str((text.scenario, text.set)):
        lacks = "flow has the evaluated control" if of == CC else "bottleneck has the evaluated queue"
        raise EvaluationError(f"{place}.scenario: no {lacks}; expected one with '{of}: \"{{{of}}}\"'")
    if (text.bdp is None) != (of == CC):
        raise EvaluationError(f"{place}: 'bdp' is {'missing' if of == QDISC else 'given'}; expected for queues only")
    number = _expression(text.number, (), f"{place}.number")
    if number.unit == TRUTH or not number.calls:
        raise EvaluationError(f"{place}.number: '{text.number}'; expected a measure, such as goodput(1)")
    seats = () if text.variables else seats_of(of)
    void = None if text.void_unless is None else _expression(text.void_unless, (), f"{place}.void_unless")
    if void is not None and (void.unit != TRUTH or not void.calls):
        raise EvaluationError(f"{place}.void_unless: '{text.void_unless}'; expected a comparison of measures")
    direction = _statement(text.direction, of, seats, text.holds, f"{place}.direction")
    assert direction.direction is not None
    return Test(
        scenario=text.scenario,
        settings=text.set,
        applies=None if text.applies is None else _statement(text.applies, of, seats, "any", f"{place}.applies"),
        direction=direction,
        number=number,
        shows=text.shows or number.text,
        better=text.better or _better(number.root, direction.direction.root),
        void_unless=void,
    )


def _better(number: Node, direction: Node) -> Better:
    """Which way the number is better: `higher` if the predicate only has lower bounds of it, `neither` without any."""
    found: set[Better] = set()
    for node in walk(direction):
        if isinstance(node, Apply) and node.name in ("<", "<=", ">", ">="):
            for at, part in enumerate(node.parts):
                if _shape(part) == _shape(number) and all(call.of != BASELINE for call in _calls(part)):
                    found.add("higher" if (at == 0) == node.name.startswith(">") else "lower")
        elif isinstance(node, Apply) and node.name in ("not", "==", "!="):
            return "neither"
    return found.pop() if len(found) == 1 else "neither"


def _shape(node: Node) -> Hashable:
    """What a number is, whichever run it is of."""
    if isinstance(node, Apply):
        return node.name, *map(_shape, node.parts)
    return replace(node.key, of=None) if isinstance(node, Leaf) and isinstance(node.key, Call) else node


def _calls(node: Node) -> list[Call]:
    return [part.key for part in walk(node) if isinstance(part, Leaf) and isinstance(part.key, Call)]


def _statement(text: str, of: Kind, seats: Sequence[str], holds: Starts, place: str) -> Statement:
    """A predicate over the runs in these seats; in none of them it is about the one of the control."""
    expression = _expression(text, seats, place)
    if expression.unit != TRUTH or not expression.calls:
        example = f'jain(of="{of}") > 0.9'
        raise EvaluationError(f"{place}: '{text}'; expected a comparison of measures, such as {example}")
    return Statement(
        place=place,
        runs=tuple(Wanted(seat, seat, {}) for seat in seats) or (Wanted(None, of, {}),),
        share=1.0,
        direction=expression,
        size=None,
        engine=None,
        holds=holds,
    )


def _expression(text: str, runs: Sequence[str], place: str) -> Expression:
    try:
        return parse(text, runs)
    except ExpressionError as error:
        raise EvaluationError(f"{place}: {error}") from None
