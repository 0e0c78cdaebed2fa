"""Claims decided by the algorithms of today: a version that a run names is dropped, `prague@2020-08` becomes `prague`.

`cubic`, `prague` and `dualpi2` without a version are those of Linux 7.3 and of Prague 0.7. Verdicts of today are
recorded under labels of their own, `sim-today`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from bakeoff.claims.required_runs import RequiredRuns, required_runs
from bakeoff.engines.lab import versions

if TYPE_CHECKING:
    from bakeoff.claims.claim import Claim, Statement
    from bakeoff.scenario import Run

SUFFIX: Final = "-today"


def named(found: RequiredRuns) -> list[str]:
    """The versions that a statement's runs name."""
    return sorted({version for runs in found.runs.values() for version in versions.named(runs[0])})


def claims_and_runs(
    claims: Sequence[Claim], seeds: int, settings: dict[str, Any]
) -> tuple[list[Claim], dict[Statement, RequiredRuns]]:
    """The claims that name a version, without their causes, and their runs of today.

    The others hold today as they do anyway. A claim that compares versions, so that two of its runs are one today,
    loses its statement: it needs these versions.
    """
    wanted = required_runs(
        [replace(claim, cause=None, mutation=None) for claim in claims if claim.statement], seeds, settings
    )
    kept, runs = [], {}
    for claim in claims:
        if claim.statement is None or not (names := named(wanted[claim.statement])):
            continue
        found = wanted[claim.statement]
        now = {name: [versions.today(run) for run in several] for name, several in found.runs.items()}
        if not found.each and _different(now) < _different(found.runs):
            kept.append(replace(claim, cause=None, mutation=None, statement=None, needs=", ".join(names)))
        else:
            kept.append(replace(claim, cause=None, mutation=None))
            runs[claim.statement] = RequiredRuns(claim.statement, now)
    return kept, runs


def _different(runs: Mapping[str, Sequence[Run]]) -> int:
    """How many of the runs are different in more than their name."""
    names = {"suite", "scenario", "run", "title", "source", "point", "present"}
    return len({several[0].model_dump_json(exclude=names) for several in runs.values()})
