"""The runs of cases: with the evaluated control or queue in its seat, and with the baseline there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bakeoff.claims.required_runs import RequiredRuns, expressions
from bakeoff.errors import BakeoffError, EvaluationError, MeasureError
from bakeoff.evaluation.battery import BASELINE, CC, QDISC
from bakeoff.measure.functions import CATALOGUE, check_names
from bakeoff.scenario import catalog
from bakeoff.scenario.observe import observe
from bakeoff.scenario.scenario import OWN, expand, from_document
from bakeoff.scenario.settings import with_settings
from bakeoff.scenario.shipped import with_profile
from bakeoff.scenario.yaml_file import read_yaml

if TYPE_CHECKING:
    from bakeoff.claims.claim import Statement
    from bakeoff.claims.expression import Call
    from bakeoff.evaluation.battery import Case, Kind, Test
    from bakeoff.scenario import Run

OTHER: Final = "other"
"""The axis of competitors."""
BASELINES: Final[Mapping[str, str]] = {CC: "cubic", QDISC: "pfifo limit BDP"}
"""What is compared with by default. RFC 7928, section 4.3.1: a drop-tail queue of one bandwidth-delay product."""
_BDP: Final = re.compile(r"\bBDP\b")


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is evaluated, and how."""

    cc: str = ""
    """The control; empty if a queue is evaluated."""
    qdisc: str = ""
    """The queue, in tc's syntax; `BDP` is the number of packets of a bandwidth-delay product."""
    baseline: str = BASELINES[CC]
    versions: bool = False
    """Whether the baseline is another version, so that the report says what changed."""
    against: tuple[str, ...] = ("cubic", "reno", "bbr", "prague")
    battery: tuple[str, ...] = ()
    """Names of batteries; all if empty."""
    case: tuple[str, ...] = ()
    """Globs on BATTERY/ID; all cases if empty."""
    quick: bool = False
    seeds: int = 10

    @property
    def of(self) -> Kind:
        """Which kind is evaluated."""
        return QDISC if self.qdisc else CC

    @property
    def subject(self) -> str:
        """What is evaluated."""
        return self.qdisc or self.cc

    @property
    def controls(self) -> tuple[str, ...]:
        """The controls that the request names."""
        return () if self.qdisc else (self.cc, self.baseline, *self.against)


@dataclass(frozen=True, eq=False)
class Seats:
    """The repetitions of a case with each control or queue, beside one competitor if the case has one."""

    case: Case
    other: str | None
    runs: dict[str, list[Run]]
    """By the seat, `cc` or `qdisc` and `baseline`; the same ones if the baseline is evaluated, or the case has none."""
    lacks: str | None = None
    """What the control does not trace that the case is about. There are no runs then."""

    @property
    def direction(self) -> RequiredRuns:
        """The runs as the predicate of the case needs them."""
        assert self.case.test is not None
        return self._required(self.case.test.direction)

    @property
    def applies(self) -> RequiredRuns | None:
        """The runs as the condition of the case needs them."""
        assert self.case.test is not None
        return None if self.case.test.applies is None else self._required(self.case.test.applies)

    def _required(self, statement: Statement) -> RequiredRuns:
        of = self.case.of
        return RequiredRuns(statement, {of: self.runs[of]} if statement.each else self.runs)

    def number_calls(self) -> list[Call]:
        """What is measured of both seats for the report, and whether a run is void."""
        assert self.case.test is not None
        void = self.case.test.void_unless
        return [*self.case.test.number.calls, *(void.calls if void else ())]


def check_run(asked: Asked) -> Run:
    """A run that has every control, or both queues, for an engine to accept. BakeoffError for one that no scenario
    accepts."""
    controls = dict.fromkeys(asked.controls or ("cubic",))
    queues = [asked.qdisc, asked.baseline] if asked.qdisc else ["pfifo"]
    boxes = [f"m{number}" for number in range(len(queues))]
    document = {
        "duration": "1s",
        "network": {
            "path": ["cli", *boxes, "srv"],
            "delay": {"at": boxes[0]},
            "rtt": "20ms",
            "bottleneck": [
                {"at": box, "rate": "10mbit", "qdisc": _escaped(_with_bdp(queue, 100))}
                for box, queue in zip(boxes, queues, strict=True)
            ],
        },
        "flows": [{"cc": _escaped(each), "name": f"flow{number}"} for number, each in enumerate(controls)],
    }
    return from_document(
        document, path="evaluate", suite=OWN, default_name="probe", typed=frozenset(asked.controls)
    ).resolve({}, 1)


def seats(cases: Sequence[Case], asked: Asked) -> list[Seats]:
    """The runs of the cases that have some, with the seeds 1 to `asked.seeds`.

    BakeoffError names the case whose scenario is invalid, or whose measure names an unknown flow.
    """
    found = []
    for case in cases:
        if case.test is not None:
            found += _of_case(case, case.test, asked)
    return found


def _of_case(case: Case, test: Test, asked: Asked) -> list[Seats]:
    lacks = case.lacking(asked.cc)
    if lacks is not None:
        return [Seats(case, None, {CC: [], BASELINE: []}, lacks)]
    document, path = _document(case, test)
    seated: dict[str, str] = {case.of: _with_bdp(asked.subject, case.bdp)}
    if asked.baseline != asked.subject and not case.variables:
        seated[BASELINE] = _with_bdp(asked.baseline, case.bdp)
    others = list(dict.fromkeys(asked.against)) if case.takes_other else [None]
    axes: dict[str, Any] = {case.of: {seat: _escaped(words) for seat, words in seated.items()}}
    if case.takes_other:
        axes[OTHER] = {_label(other): _escaped(other) for other in others if other is not None}
    document |= {
        "scenario": case.name.replace("/", "-"),
        "title": case.says.replace("{", "{{").replace("}", "}}"),
        "run": "-".join(f"{{{axis}.label}}" for axis in axes),
        "vary": {**document.get("vary", {}), **axes},
    }
    try:
        scenario = from_document(
            document, path=path, suite=OWN, default_name="case", settings=None,
            typed=frozenset(asked.controls),
        )  # fmt: skip
        several = expand(scenario, seeds=asked.seeds)
    except BakeoffError as error:
        raise EvaluationError(f"{case.place}: {error}" if path != case.place else str(error)) from None
    found = []
    for other in others:
        runs: dict[str, list[Run]] = {}
        for run in several:
            if other is None or run.point[OTHER] == _label(other):
                runs.setdefault(run.point[case.of], []).append(run)
        runs.setdefault(BASELINE, runs[case.of])
        made = Seats(case, other, runs)
        _check(made)
        found.append(_traced(made))
    return found


def _document(case: Case, test: Test) -> tuple[dict[str, Any], str]:
    """The scenario as plain data without what a case sets itself, and the file that paths in it are relative to."""
    if isinstance(test.scenario, str):
        suite, _, name = test.scenario.partition("/")
        path = catalog.root() / "suites" / suite / f"{name}.yaml"
        if not path.is_file():
            raise EvaluationError(f"{case.place}.scenario: '{test.scenario}'; expected SUITE/NAME of the catalog")
        document = with_profile(read_yaml(path))
        document, where = with_settings(document, test.settings), str(path)
    else:
        document, where = dict(test.scenario), case.place
    for key in ("suite", "exclude", "seeds", "present"):
        document.pop(key, None)
    return document, where


def _check(made: Seats) -> None:
    """That flows, probes and queues of the measures exist, before runs are done."""
    for seat in made.runs:
        calls = [*made.direction.calls(seat), *(made.applies.calls(seat) if made.applies else ()), *made.number_calls()]
        for call in calls:
            try:
                check_names(CATALOGUE[call.measure], dict(call.arguments), made.runs[seat][0])
            except MeasureError as error:
                raise EvaluationError(f"{made.case.place}: '{call}': {error}") from None


def _traced(made: Seats) -> Seats:
    """With traces of the control where a measure needs them."""
    assert made.case.test is not None
    statements = [each for each in (made.case.test.direction, made.case.test.applies) if each is not None]
    calls = [call for each in statements for part in expressions(each) for call in part.calls]
    needed = any(CATALOGUE[call.measure].of_variable for call in [*calls, *made.number_calls()])
    if not needed and not made.case.variables:
        return made
    runs: Mapping[str, list[Run]] = {
        seat: [observe(run, trace=["cc"]) for run in several] for seat, several in made.runs.items()
    }
    return Seats(made.case, made.other, dict(runs))


def _label(cc: str) -> str:
    """A competitor as a run's name has it."""
    return "_".join(cc.replace("/", "_").replace("{", "").replace("}", "").split())


def _with_bdp(words: str, bdp: int | None) -> str:
    return words if bdp is None else _BDP.sub(str(bdp), words)


def _escaped(words: str) -> str:
    return words.replace("{", "{{").replace("}", "}}")
