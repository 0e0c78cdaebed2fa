"""Claims decided by runs that are stored already; nothing is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from bakeoff.claims.claim import load
from bakeoff.claims.evaluate import evaluate
from bakeoff.claims.expected import kind
from bakeoff.claims.required_runs import calls_by_folder, required_runs
from bakeoff.claims.verdict import Decided, decide
from bakeoff.engines.lab import versions

if TYPE_CHECKING:
    from bakeoff.claims.claim import Claim, Statement
    from bakeoff.claims.required_runs import RequiredRuns
    from bakeoff.claims.verdict import Outcome
    from bakeoff.results import Result


@dataclass(frozen=True)
class Stored:
    """What stored runs say of the claims."""

    decided: list[tuple[Decided, list[Result]]]
    """Each claim that could be decided, with the runs that did."""
    untested: frozenset[str]
    """The names of those among them whose cause has a test that needs runs which are not there."""
    lacking: int
    """Claims about some of the same scenarios that need runs which are not there."""
    seeds: int
    """Repetitions of most runs."""


def decided(results: Sequence[Result], jobs: int) -> Stored:
    """Decide the catalog's claims by the runs of one campaign, all of one engine.

    A run counts if its resolved run is the one that the claim asks for, and if its samples were kept. BakeoffError if
    the catalog's claims cannot be read.
    """
    known = {result.key: result for result in results if result.record.kept == "all"}
    repetitions = Counter(key.partition("~seed")[0] for key in known)
    if not known or not _suites(known) & _catalog_suites():
        return Stored([], frozenset(), 0, 0)
    seeds = Counter(repetitions.values()).most_common(1)[0][0]
    names = {result.run.name for result in known.values()}
    engine = kind(next(iter(known.values())).record.engine)

    def is_there(statement: Statement) -> bool:
        return bool(statement.runs) and statement.engine in (None, engine) and _has_runs(statement, names)

    about = [claim for claim in load() if claim.statement is not None and is_there(claim.statement)]
    found = required_runs([_without_lost_cause(claim, is_there) for claim in about], seeds)
    able = {statement: one for statement, one in found.items() if _holds_all(one, known)}
    outcomes = _outcomes(able, known, jobs)
    decided, untested = [], []
    for claim in about:
        outcome = outcomes.get(claim.statement) if claim.statement is not None else None
        if outcome is None or claim.statement is None:
            continue
        test = claim.cause.statement if claim.cause is not None else None
        if test is not None and test not in outcomes:
            untested.append(claim.name)
        used = [known[run.key] for runs in able[claim.statement].runs.values() for run in runs]
        decided.append((Decided(claim, outcome, outcomes.get(test) if test is not None else None), used))
    return Stored(decided, frozenset(untested), len(about) - len(decided), seeds)


def _outcomes(
    able: Mapping[Statement, RequiredRuns], known: Mapping[str, Result], jobs: int
) -> dict[Statement, Outcome]:
    failed = {key: result.record.error or "failed" for key, result in known.items() if not result.ok}
    paths = {key: result.path for key, result in known.items() if result.ok}
    values = evaluate(calls_by_folder(able.values(), paths), jobs)
    others = replaced(known)
    return {statement: decide(one, paths, values, others, failed) for statement, one in able.items()}


def replaced(known: Mapping[str, Result]) -> dict[str, str]:
    """By key the runs of a kernel that ran something else than they name, with what it lacks: they decide nothing."""
    found = {key: versions.lacking("\n".join(result.record.effective)) for key, result in known.items()}
    return {key: why for key, why in found.items() if why is not None}


def _suites(known: Mapping[str, Result]) -> set[str]:
    return {result.run.suite for result in known.values()}


def _catalog_suites() -> set[str]:
    from bakeoff.scenario import catalog

    return {path.parent.name for path in catalog.root().glob("suites/*/*.yaml")}


def _has_runs(statement: Statement, names: set[str]) -> bool:
    """Whether the results may hold the statement's runs: what is varied has another name, in the same scenario."""
    for wanted in statement.runs:
        pattern = wanted.pattern
        if wanted.set:
            pattern = pattern.rsplit("/", 1)[0] + "/*"
        if not any(name == pattern or fnmatchcase(name, pattern) for name in names):
            return False
    return True


def _without_lost_cause(claim: Claim, is_there: Callable[[Statement], bool]) -> Claim:
    """The claim without the test of its cause, where its runs are not there: they need not be expanded."""
    if claim.cause is None or claim.cause.statement is None or is_there(claim.cause.statement):
        return claim
    return replace(claim, cause=replace(claim.cause, statement=None))


def _holds_all(one: RequiredRuns, known: Mapping[str, Result]) -> bool:
    """Whether every run is there, as the claim asks for it, and with a trace if it needs one."""
    for runs in one.runs.values():
        for run in runs:
            result = known.get(run.key)
            if result is None or (one.traced and not result.run.trace):
                return False
            if result.run.model_copy(update={"trace": []}).to_json() != run.model_copy(update={"trace": []}).to_json():
                return False
    return True
