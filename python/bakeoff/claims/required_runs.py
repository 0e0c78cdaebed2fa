"""Which runs decide which claims."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bakeoff.claims.claim import Claim, Statement, Wanted
from bakeoff.claims.expression import Call
from bakeoff.errors import BakeoffError, ClaimError, MeasureError
from bakeoff.measure.functions import CATALOGUE, check_names
from bakeoff.measure.of_control import is_traced_only
from bakeoff.scenario import catalog
from bakeoff.scenario.error import did_you_mean
from bakeoff.scenario.observe import observe

if TYPE_CHECKING:
    from bakeoff.scenario import Run


@dataclass(frozen=True)
class RequiredRuns:
    """The runs of a statement: the repetitions of each, by its short name, or by its whole one where there is none."""

    statement: Statement
    runs: dict[str, list[Run]]

    @property
    def each(self) -> bool:
        """Whether the predicates are about each run, and not about all of them together."""
        return self.statement.each

    @property
    def traced(self) -> bool:
        """Whether a measure needs `--trace cc`, on the simulator."""
        return any(CATALOGUE[call.measure].of_variable for call in self._all_calls)

    @property
    def _all_calls(self) -> list[Call]:
        return [call for expression in expressions(self.statement) for call in expression.calls]

    def untraced(self) -> RequiredRuns:
        """The same runs without a trace, for the engines that record none."""
        return replace(self, runs={name: [_without_trace(run) for run in runs] for name, runs in self.runs.items()})

    def unobservable(self, engine: str) -> dict[str, str]:
        """By key the runs of which an engine does not record what the statement measures, with the reason."""
        lost = [
            call for call in self._all_calls
            if CATALOGUE[call.measure].of_variable and is_traced_only(dict(call.arguments))
        ]  # fmt: skip
        if engine == "sim" or not lost:
            return {}
        reason = f"'{lost[0]}' needs a trace of the congestion control; expected --engine sim"
        return dict.fromkeys(self.keys(), reason)

    def keys(self) -> set[str]:
        """The keys of all these runs."""
        return {run.key for repetitions in self.runs.values() for run in repetitions}

    def calls(self, name: str) -> list[Call]:
        """What is measured of a run, without the run's short name."""
        found = []
        for expression in expressions(self.statement):
            found += [call for call in expression.calls if self.each or call.of == name]
        return list(dict.fromkeys(replace(call, of=None) for call in found))


def calls_by_folder(several: Iterable[RequiredRuns], paths: Mapping[str, Path]) -> dict[Path, list[Call]]:
    """What `evaluate` has to take: the measures of each run that has a folder, by its key, in `paths`."""
    found: dict[Path, dict[Call, None]] = {}
    for each in several:
        for name, repetitions in each.runs.items():
            own = dict.fromkeys(each.calls(name))
            for run in repetitions:
                if run.key in paths:
                    found.setdefault(paths[run.key], {}).update(own)
    return {path: list(calls) for path, calls in found.items()}


def expressions(statement: Statement) -> list[Any]:
    """Its direction and its size, as far as it has them."""
    return [part for part in (statement.direction, statement.size.of if statement.size else None) if part is not None]


def required_runs(
    claims: Iterable[Claim], seeds: int, settings: dict[str, Any] | None = None
) -> dict[Statement, RequiredRuns]:
    """The runs of every statement of the claims, and of their causes; with `settings` all runs are changed by them.

    BakeoffError names the file, the claim and the pattern that names no run, or the flow that a run does not have.
    """
    statements = [part for claim in claims for part in statements_of(claim)]
    known = catalog.names()
    asked: dict[Wanted, tuple[list[str], dict[str, Any]]] = {}
    groups: dict[str, tuple[dict[str, Any], set[str]]] = {}
    setting: dict[str, str] = {}
    for each in statements:
        for wanted in each.runs:
            names, changed = asked[wanted] = _asked(each, wanted, known, settings or {})
            groups.setdefault(_key(changed), (changed, set()))[1].update(names)
            if wanted.set:
                setting.setdefault(_key(changed), f"{each.place}.set")
    expanded = {key: _expanded(names, seeds, changed, setting.get(key)) for key, (changed, names) in groups.items()}
    found = {}
    for each in statements:
        runs: dict[str, list[Run]] = {}
        for wanted in each.runs:
            names, changed = asked[wanted]
            for name in names:
                if name not in expanded[_key(changed)]:
                    raise ClaimError(
                        f"{each.place}: its settings remove the run '{name}'; expected settings that keep the name"
                    )
                runs[wanted.short or name] = expanded[_key(changed)][name]
        found[each] = RequiredRuns(each, runs)
    _check(found.values())
    return _observed(found)


def _observed(found: dict[Statement, RequiredRuns]) -> dict[Statement, RequiredRuns]:
    """With traces of the runs that a statement needs them of: one result of such a run serves all statements."""
    traced = {key for each in found.values() if each.traced for key in each.keys()}  # noqa: SIM118 (a method)
    if not traced:
        return found

    def of(run: Run) -> Run:
        return observe(run, trace=["cc"]) if run.key in traced else run

    return {
        statement: replace(each, runs={name: [of(run) for run in runs] for name, runs in each.runs.items()})
        for statement, each in found.items()
    }


def _without_trace(run: Run) -> Run:
    return run.model_copy(update={"trace": []}) if run.trace else run


def _expanded(names: set[str], seeds: int, changed: dict[str, Any], place: str | None) -> dict[str, list[Run]]:
    """The repetitions of these runs by name; `place` is that of the claim which sets values in them."""
    try:
        return catalog.named(names, seeds, settings=changed or None)
    except BakeoffError as error:
        if place is None:
            raise
        raise ClaimError(f"{place}: invalid run with its settings: {error}") from None


def _key(changed: dict[str, Any]) -> str:
    return json.dumps(changed, sort_keys=True, default=str)


def _asked(
    statement: Statement, wanted: Wanted, known: Sequence[str], settings: dict[str, Any]
) -> tuple[list[str], dict[str, Any]]:
    """The catalog's runs that are wanted, and what is varied in them."""
    place = f"{statement.place}.runs" + (f".{wanted.short}" if wanted.short else "")
    names = _names(wanted.pattern, known, place)
    if wanted.short is not None and len(names) > 1:
        raise ClaimError(f"{place}: '{wanted.pattern}' matches {len(names)} runs, such as {names[0]}; expected one")
    return names, {**settings, **wanted.set}


def statements_of(claim: Claim) -> list[Statement]:
    """What has to be decided of a claim: itself, and what would show its cause."""
    return [each for each in (claim.statement, claim.cause.statement if claim.cause else None) if each is not None]


def _names(pattern: str, known: Sequence[str], place: str) -> list[str]:
    if pattern in known:
        return [pattern]
    # A run's name may hold a slash, which its folder has as an underscore.
    found = [name for name in known if fnmatchcase(name, pattern) or fnmatchcase(_as_folder(name), pattern)]
    if not found:
        raise ClaimError(f"{place}: '{pattern}': no such run in the catalog{_near(pattern, known)}")
    return found


def _as_folder(name: str) -> str:
    suite, scenario, run = name.split("/", 2)
    return f"{suite}/{scenario}/{run.replace('/', '_')}"


def _near(pattern: str, known: Sequence[str]) -> str:
    heads = list(dict.fromkeys(name.rsplit("/", 1)[0] for name in known))
    head = pattern.rsplit("/", 1)[0]
    inside = [name for name in known if name.startswith(f"{head}/")]
    return did_you_mean(pattern, inside) if inside else did_you_mean(head, heads)


def _check(found: Iterable[RequiredRuns]) -> None:
    """That flows and probes exist in the runs, before hours are spent on them."""
    for each in found:
        for name, runs in each.runs.items():
            for call in each.calls(name):
                try:
                    check_names(CATALOGUE[call.measure], dict(call.arguments), runs[0])
                except MeasureError as error:
                    raise ClaimError(f"{each.statement.place}: '{call}': {error}") from None
