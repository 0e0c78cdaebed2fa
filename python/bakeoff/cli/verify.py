"""verify: decide what the documents state, by runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import (
    Dask,
    Engine,
    Fresh,
    Inventory,
    Jobs,
    Json,
    Kernel,
    Quiet,
    Set,
    Store,
    Verbose,
    detail,
    with_inventory,
    with_kernel,
)
from bakeoff.errors import UsageError, printable

if TYPE_CHECKING:
    from bakeoff.claims.claim import Claim
    from bakeoff.claims.expression import Values
    from bakeoff.claims.required_runs import RequiredRuns
    from bakeoff.claims.verdict import Decided, Outcome
    from bakeoff.cli.progress import Detail
    from bakeoff.scenario import Run

SEEDS: Final = 3


class _Doing(NamedTuple):
    """How runs are done that are missing."""

    jobs: int
    show: Detail
    store: str | None
    fresh: bool
    dask: str | None


class _Cost(NamedTuple):
    """What one engine has to do."""

    engine: str
    needed: int
    """Runs of the claims that it can do."""
    missing: list[Run]
    """Those of them without a result that may stand."""
    refused: dict[str, str]
    estimate_s: float
    """Wall time with all the jobs."""


def verify(
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="PATTERN",
            help="Glob on DOCUMENT/CLAIM or DOCUMENT, or a word in such a name.",
            show_default="all claims",
            autocompletion=complete.claim,
        ),
    ] = None,
    *,
    engine: Engine = "sim",
    kernel: Kernel = None,
    inventory: Inventory = None,
    seeds: Annotated[int, typer.Option(min=SEEDS, help="Repetitions of every run, with seeds 1 to N.")] = SEEDS,
    jobs: Jobs = None,
    dask: Dask = None,
    set_: Set = None,
    store: Store = None,
    fresh: Fresh = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say how many runs are missing and what they cost, and do nothing.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Write the verdicts into the catalog's claims/expected.csv.")
    ] = False,
    write_docs: Annotated[
        bool, typer.Option("--write-docs", help="Write the tables of docs/findings.md and README.md, in a checkout.")
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Decide the catalog's claims: what the documents state, measured in the runs that they are about.

    Runs that are missing below results/verify/ENGINE are done first. Ends with 1 if a verdict differs from the one
    recorded in the catalog's claims/expected.csv, with 2 if something has to be put right first.

    \b
    Examples:
      bakeoff verify                                   every claim, three seeds
      bakeoff verify sce-l4s-bakeoff                   those of one document
      bakeoff verify 'sce-l4s-bakeoff/s3-*' --seeds 5
      bakeoff verify sce-l4s-bakeoff --engine kernel   on real Linux, in virtual time
      bakeoff verify --engine kernel --dry-run         how much of that is still to be done
      bakeoff verify s3-prague-over-cubic-10ms --set 'network.bottleneck.0.qdisc=fq_codel flows 1 target 20ms'
                                                       with another value: what depends on it turns
    """
    from bakeoff import campaign, engines
    from bakeoff.claims import expected
    from bakeoff.claims.claim import load, select
    from bakeoff.claims.required_runs import required_runs
    from bakeoff.scenario import parse_settings
    from bakeoff.tables import claim_report as shown

    engine = with_inventory(with_kernel(engine, kernel), inventory)
    show = detail(quiet=quiet, verbose=verbose)
    if set_ and (record or write_docs):
        raise UsageError("--set changes the runs; --record and --write-docs are for the runs of the catalog")
    everything = load()
    chosen = select(everything, pattern)
    if dry_run and (record or write_docs):
        raise UsageError("--dry-run decides nothing; --record and --write-docs are for verdicts")
    if write_docs and len(chosen) < len(everything):
        raise UsageError(f"--write-docs writes about all claims; expected no '{pattern}'")
    engines.get(engine)
    known = expected.load()
    wanted = required_runs([claim for claim in chosen if claim.statement], seeds, parse_settings(set_ or ()))
    doing = _Doing(jobs or campaign.cores(), show, store, fresh, dask)
    if dry_run:
        costs = [_cost(several, name, doing.jobs) for name, several in _by_engine(wanted, engine).items()]
        _tell_cost(costs, doing.jobs, as_json=as_json)
        return
    decided = _decided(chosen, wanted, engine, doing)
    differ = [] if set_ and not known else expected.differences(decided, known, engine)
    if record:
        expected.record(decided, engine)
        differ = []
    if as_json:
        typer.echo(json.dumps(shown.as_json(decided, differ, engine), indent=2, ensure_ascii=False))
    else:
        typer.echo(printable(shown.text(decided, quiet=quiet)), nl=False)
    if write_docs:
        for path in shown.write_docs(decided, expected.load(), engine, Path()):
            typer.echo(f"wrote {path}", err=True)
    new = [] if record else expected.unrecorded([each for each in decided if each.claim.statement], known, engine)
    if new and known:
        more = f" and {len(new) - 3} more" if len(new) > 3 else ""
        typer.echo(f"without a recorded verdict for {engine}: {', '.join(new[:3])}{more}", err=True)
    for line in differ:
        typer.echo(printable(f"differs: {line}"), err=True)
    if differ:
        raise typer.Exit(1)


def _decided(claims: list[Claim], wanted: dict[Any, RequiredRuns], engine: str, doing: _Doing) -> list[Decided]:
    """Do what is missing, measure, and decide."""
    from bakeoff.claims.verdict import decide, of_claims

    outcomes: dict[Any, Outcome] = {}
    for name, several in _by_engine(wanted, engine).items():
        paths, values, refused, failed = _measured(several, name, doing)
        outcomes.update({found.statement: decide(found, paths, values, refused, failed) for found in several})
    return of_claims(claims, outcomes)


def _by_engine(wanted: dict[Any, RequiredRuns], engine: str) -> dict[str, list[RequiredRuns]]:
    """The statements by the engine that does their runs: the one that was asked for, or the one that a cause names."""
    found: dict[str, list[RequiredRuns]] = {}
    for statement, each in wanted.items():
        found.setdefault(statement.engine or engine, []).append(each)
    return found


def _possible(several: list[RequiredRuns], engine: str) -> tuple[list[Run], dict[str, str]]:
    """The runs that the engine can do and that decide something, and the reasons for those that it refuses."""
    from bakeoff import campaign

    runs: dict[str, Run] = {run.key: run for found in several for each in found.runs.values() for run in each}
    can, refused = campaign.accepted(list(runs.values()), engine)
    # A statement of which one run is refused cannot be decided: its other runs would be done for nothing.
    decidable = {key for found in several if not (keys := found.keys()) & refused.keys() for key in keys}
    return [run for run in can if run.key in decidable], refused


def _root(engine: str) -> Path:
    from bakeoff import campaign

    return campaign.VERIFY / engine.replace("/", "_")


def _cost(several: list[RequiredRuns], engine: str, jobs: int) -> _Cost:
    """What the engine would have to do for these statements."""
    from bakeoff import campaign
    from bakeoff.cli.run import estimate_s

    can, refused = _possible(several, engine)
    root = _root(engine)
    missing = campaign.missing(can, root) if _same(root, engine) else can
    return _Cost(engine, len(can), missing, refused, estimate_s(missing, engine, jobs))


def _tell_cost(costs: list[_Cost], jobs: int, *, as_json: bool) -> None:
    """On standard output, one line or one object for each engine."""
    from bakeoff.cli.run import duration

    if as_json:
        told = [
            {
                "engine": cost.engine,
                "runs": cost.needed,
                "missing": [run.key for run in cost.missing],
                "simulated_s": sum(run.duration_s for run in cost.missing),
                "jobs": jobs,
                "estimated_wall_s": round(cost.estimate_s, 1),
                "refused": cost.refused,
            }
            for cost in costs
        ]
        typer.echo(json.dumps({"engines": told}, indent=2))
        return
    for cost in costs:
        simulated_s = sum(run.duration_s for run in cost.missing)
        typer.echo(
            f"{cost.engine}: {len(cost.missing)} of {cost.needed} runs are missing: {simulated_s:.0f} s simulated, "
            f"about {duration(cost.estimate_s)} with {jobs} jobs"
        )
        if cost.refused:
            first = next(iter(cost.refused))
            typer.echo(printable(f"{len(cost.refused)} more cannot be run here: {first}: {cost.refused[first]}"))


def _measured(
    several: list[RequiredRuns], engine: str, doing: _Doing
) -> tuple[dict[str, Path], dict[Path, Values], dict[str, str], dict[str, str]]:
    """The folders of the runs, what was measured there, and the reasons for those that were refused or failed."""
    from bakeoff import campaign, results
    from bakeoff.campaign.store import place
    from bakeoff.claims.evaluate import evaluate
    from bakeoff.claims.required_runs import calls_by_folder
    from bakeoff.cli.run import execute, tell_taken

    can, refused = _possible(several, engine)
    root = _root(engine)
    failed: dict[str, str] = {}
    if can:
        execution = campaign.Execution(
            engine=engine, jobs=doing.jobs if doing.dask is None else None, dask=doing.dask, store=place(doing.store),
            fresh=doing.fresh, note=_made_by(engine),
        )  # fmt: skip
        report = execute(
            can,
            root,
            results.Request(kind="verify"),
            execution,
            resume=_reusable(root, engine),
            show=doing.show,
            again="bakeoff verify",
        )
        if doing.show != "quiet":
            tell_taken(report)
        failed = {done.key: done.error or "failed" for done in report.failed}
    paths = {run.key: root / run.key for run in can if run.key not in failed}
    return paths, evaluate(calls_by_folder(several, paths), doing.jobs), refused, failed


def _made_by(engine: str) -> str:
    """What a result has to be of, besides its document, versions and model epoch: the simulator as it was built."""
    from hashlib import file_digest

    if engine != "sim":
        return "for bakeoff verify"
    from bakeoff import _sim

    with Path(_sim.__file__).open("rb") as file:
        return f"for bakeoff verify, by the simulator {file_digest(file, 'sha256').hexdigest()[:16]}"


def _reusable(root: Path, engine: str) -> bool:
    """Whether the folder's runs may stand; if they are of other models, they are removed, and it may not."""
    same = _same(root, engine)
    if same is None:
        return root.is_dir() and any(root.iterdir())
    if not same:
        typer.echo(f"{root}: its runs are of other models or versions; they are done again", err=True)
        shutil.rmtree(root)
    return same


def _same(root: Path, engine: str) -> bool | None:
    """Whether the folder's runs are of the models and versions of today; None if it holds no campaign."""
    from bakeoff import engines, results
    from bakeoff.version import MODEL_EPOCH

    record = results.read_campaign(root) if root.is_dir() else None
    if record is None:
        return None
    if record.kind != "verify":
        raise UsageError(f"{root}: holds a {record.kind}, and no runs of bakeoff verify; move it away")
    made = record.provenance
    return (
        made.model_epoch == MODEL_EPOCH
        and made.note == _made_by(engine)
        and record.versions == engines.get(engine).versions()
        and record.engine == engine
    )
