"""`bakeoff.verify`: test claims by runs; select these runs, and reuse valid results."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bakeoff import campaign, engines, results
from bakeoff.arguments import check
from bakeoff.campaign import Execution, Report
from bakeoff.campaign.store import place
from bakeoff.claims import SEEDS, expected
from bakeoff.claims.claim import load, select
from bakeoff.claims.evaluate import evaluate
from bakeoff.claims.required_runs import calls_by_folder, required_runs
from bakeoff.claims.today import SUFFIX, claims_and_runs
from bakeoff.claims.verdict import decide, of_claims
from bakeoff.errors import CampaignError, UsageError
from bakeoff.results import Request
from bakeoff.version import MODEL_EPOCH

if TYPE_CHECKING:
    from bakeoff.claims.claim import Claim
    from bakeoff.claims.expression import Values
    from bakeoff.claims.required_runs import RequiredRuns
    from bakeoff.claims.verdict import Decided, Outcome
    from bakeoff.scenario import Run

Wanted = Mapping[Any, "RequiredRuns"]
"""The runs of each statement."""


class Campaign(Protocol):
    """A function that does runs: `campaign.run`, or the same with progress."""

    def __call__(self, runs: list[Run], root: Path, execution: Execution, *, request: Request, resume: bool) -> Report:
        """Do the runs, as `campaign.run` does."""


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on claims."""

    decided: list[Decided]
    differences: list[str]
    """Verdicts that differ from those recorded in the catalog, in words."""
    unrecorded: list[str]
    """Claims without a recorded verdict for the engine."""


@dataclass(frozen=True)
class EngineCost:
    """The missing runs of one engine."""

    engine: str
    needed: int
    """Runs of the claims that it can do."""
    missing: list[Run]
    """Those of them without a valid result."""
    refused: dict[str, str]
    """Runs that it cannot do, with the reason."""
    estimate_s: float
    """Wall time with all the jobs."""


def verify(
    pattern: str | None = None,
    *,
    engine: str = "sim",
    seeds: int = SEEDS,
    settings: Mapping[str, Any] | None = None,
    today: bool = False,
    jobs: int | None = None,
    store: str | None = None,
    fresh: bool = False,
) -> Verdicts:
    """Test the claims that match `pattern`, or all, as `bakeoff verify` does.

    Missing runs are done in results/verify/ENGINE with seeds 1 to `seeds`. `settings` overrides values of the runs.
    `today`: only claims that name a version of an algorithm, with those of today in its place.
    `jobs`, `store` and `fresh` as for `run`. BakeoffError for invalid input.
    """
    check(
        "verify", pattern=("text?", pattern), engine=("text", engine), seeds=("whole", seeds),
        settings=("mapping?", settings), today=("flag", today), jobs=("whole?", jobs), store=("text?", store),
        fresh=("flag", fresh),
    )  # fmt: skip
    claims = select(load(), pattern)
    execution = Execution(engine=engine, jobs=jobs, store=place(store), fresh=fresh)
    claims, wanted = runs_of(claims, seeds, settings or {}, today=today)
    return verdicts(claims, wanted, execution, changed=bool(settings), today=today)


def runs_of(
    claims: Sequence[Claim], seeds: int, settings: Mapping[str, Any], *, today: bool = False
) -> tuple[list[Claim], Wanted]:
    """The claims, of `today` those that name a version, and the runs that decide each statement.

    These values are changed in them.
    """
    if today:
        return claims_and_runs(claims, seeds, dict(settings))
    return list(claims), required_runs([claim for claim in claims if claim.statement], seeds, dict(settings))


def mutated(claims: Sequence[Claim]) -> list[Claim]:
    """Those of the claims that have a mutation, each with its mutation as its statement and without a cause.

    BakeoffError if there is none.
    """
    found = [replace(each, statement=each.mutation, cause=None) for each in claims if each.mutation is not None]
    if not found:
        raise UsageError("--mutations: none of these claims has a mutation; expected a claim with 'mutation'")
    return found


def costs(wanted: Wanted, execution: Execution, *, today: bool = False) -> list[EngineCost]:
    """The missing runs of each engine; does nothing."""
    jobs = execution.jobs or campaign.cores()
    found = []
    for name, several in _by_engine(wanted, execution.engine).items():
        can, refused = _possible(several, name)
        root = _root(name, today=today)
        missing = campaign.missing(can, root) if _same(root, name) else can
        module = engines.get(name)
        wall_s = sum(map(module.estimate_s, missing)) / max(1, min(jobs, len(missing)))
        found.append(EngineCost(name, len(can), missing, refused, wall_s))
    return found


def verdicts(
    claims: Sequence[Claim],
    wanted: Wanted,
    execution: Execution,
    *,
    changed: bool = False,
    today: bool = False,
    run: Campaign = campaign.run,
    tell: Callable[[str], None] = lambda _: None,
) -> Verdicts:
    """Do the runs that are missing with `run`, measure, decide, and compare with the recorded verdicts.

    `changed` runs are not those of the recorded verdicts, and a catalog without any differs in nothing then. Those of
    `today` have verdicts of their own. `tell` is called with what a user has to know.
    """
    known, label = expected.load(), expected.label(execution.engine, today=today)
    outcomes: dict[Any, Outcome] = {}
    for name, several in _by_engine(wanted, execution.engine).items():
        paths, values, refused, failed = _measured(
            several, replace(execution, engine=name), run, tell, _root(name, today=today)
        )
        for found in several:
            lost = {**found.unobservable(name), **refused}
            outcomes[found.statement] = decide(found, paths, values, lost, failed)
    decided = of_claims(list(claims), outcomes)
    differ = [] if changed and not known else expected.differences(decided, known, label)
    new = expected.unrecorded([each for each in decided if each.claim.statement], known, label)
    return Verdicts(decided, differ, new if known else [])


def _by_engine(wanted: Wanted, engine: str) -> dict[str, list[RequiredRuns]]:
    """The statements by the engine that does their runs: the one that was asked for, or the one that a cause names."""
    found: dict[str, list[RequiredRuns]] = {}
    for statement, each in wanted.items():
        name = statement.engine or engine
        found.setdefault(name, []).append(each if name == "sim" else each.untraced())
    return found


def _possible(several: list[RequiredRuns], engine: str) -> tuple[list[Run], dict[str, str]]:
    """The runs that the engine can do and that decide something, and the reasons for those that it refuses."""
    runs: dict[str, Run] = {run.key: run for found in several for each in found.runs.values() for run in each}
    can, refused = campaign.accepted(list(runs.values()), engine, exact=True)
    # A statement of which one run is refused cannot be decided: its other runs would be done for nothing.
    able = [found for found in several if not found.unobservable(engine)]
    decidable = {key for found in able if not (keys := found.keys()) & refused.keys() for key in keys}
    return [run for run in can if run.key in decidable], refused


def _measured(
    several: list[RequiredRuns], execution: Execution, run: Campaign, tell: Callable[[str], None], root: Path
) -> tuple[dict[str, Path], dict[Path, Values], dict[str, str], dict[str, str]]:
    """The folders of the runs, what was measured there, and the reasons for those that were refused or failed."""
    engine, jobs = execution.engine, execution.jobs or campaign.cores()
    can, refused = _possible(several, engine)
    failed: dict[str, str] = {}
    if can:
        # How many workers of Dask there are, Dask knows.
        made = replace(execution, jobs=jobs if execution.dask is None else None, note=_made_by(engine))
        resume = _reusable(root, engine, tell)
        report = run(can, root, made, request=Request(kind="verify"), resume=resume)
        failed = {done.key: done.error or "failed" for done in report.failed}
    paths = {run.key: root / run.key for run in can if run.key not in failed}
    return paths, evaluate(calls_by_folder(several, paths), jobs), refused, failed


def _root(engine: str, *, today: bool) -> Path:
    return campaign.VERIFY / (engine.replace("/", "_") + (SUFFIX if today else ""))


def _made_by(engine: str) -> str:
    """What a result has to be of, besides its document, versions and model epoch: the simulator as it was built."""
    if engine != "sim":
        return "for bakeoff verify"
    from bakeoff import _sim

    with Path(_sim.__file__).open("rb") as file:
        return f"for bakeoff verify, by the simulator {file_digest(file, 'sha256').hexdigest()[:16]}"


def _reusable(root: Path, engine: str, tell: Callable[[str], None]) -> bool:
    """Whether the folder's runs are valid; those of other models are removed."""
    same = _same(root, engine)
    if same is None:
        return root.is_dir() and any(root.iterdir())
    if not same:
        tell(f"{root}: its runs are of other models or versions; they are done again")
        shutil.rmtree(root)
    return same


def _same(root: Path, engine: str) -> bool | None:
    """Whether the folder's runs are of the models and versions of today; None if it holds no campaign."""
    record = results.read_campaign(root) if root.is_dir() else None
    if record is None:
        return None
    if record.kind != "verify":
        raise CampaignError(f"{root}: contains a {record.kind}, not runs of bakeoff verify; move it away")
    made = record.provenance
    return (
        made.model_epoch == MODEL_EPOCH
        and made.note == _made_by(engine)
        and record.versions == engines.get(engine).versions()
        and record.engine == engine
    )
