"""verify: decide what the documents state, by runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.claims import SEEDS
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
    from bakeoff.api.do_verify import EngineCost, Verdicts
    from bakeoff.campaign import Execution, Report
    from bakeoff.claims.verdict import Decided
    from bakeoff.results import Request
    from bakeoff.scenario import Run


def verify(
    pattern: Annotated[
        str | None,
        typer.Argument(
            metavar="PATTERN",
            help="Glob on DOCUMENT/CLAIM or DOCUMENT, or part of the name.",
            show_default="all claims",
            autocompletion=complete.claim,
        ),
    ] = None,
    *,
    engine: Engine = "sim",
    kernel: Kernel = None,
    inventory: Inventory = None,
    seeds: Annotated[int, typer.Option(min=2, help="Repetitions per run, with seeds 1 to N.")] = SEEDS,
    today: Annotated[
        bool, typer.Option("--today", help="Claims that name versions, with today's algorithms instead.")
    ] = False,
    jobs: Jobs = None,
    dask: Dask = None,
    set_: Set = None,
    store: Store = None,
    fresh: Fresh = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the number and the cost of missing runs, and exit.")
    ] = False,
    record: Annotated[
        bool, typer.Option("--record", help="Write the verdicts to the catalog's claims/expected.csv.")
    ] = False,
    mutations: Annotated[
        bool,
        typer.Option(
            "--mutations", help="Run the claims' mutations instead; exit with 1 if a mutated claim still holds."
        ),
    ] = False,
    write_docs: Annotated[
        bool,
        typer.Option(
            "--write-docs",
            help="Write docs/findings.md and docs/findings.csv of a checkout.",
        ),
    ] = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Test the claims of the published documents.

    Missing runs are done first, in results/verify/ENGINE. Exits with 1 if a verdict differs from the catalog's
    claims/expected.csv, with 2 on invalid input.

    \b
    Examples:
      bakeoff verify                                   every claim, five seeds
      bakeoff verify sce-l4s-bakeoff                   claims of one document
      bakeoff verify 'sce-l4s-bakeoff/s3-*' --seeds 10
      bakeoff verify sce-l4s-bakeoff --engine kernel   on real Linux, in virtual time
      bakeoff verify --today                           with today's Prague, CUBIC and queues
      bakeoff verify l4s-tests --mutations             whether its claims can fail
      bakeoff verify --engine kernel --dry-run         the cost of the missing runs
      bakeoff verify s3-prague-over-cubic-10ms --set 'network.bottleneck.0.qdisc=fq_codel flows 1 target 20ms'
                                                       override a value
    """
    from bakeoff import campaign, engines
    from bakeoff.api import do_verify
    from bakeoff.campaign.store import place
    from bakeoff.claims import expected
    from bakeoff.claims import today as claims_today
    from bakeoff.claims.claim import load, select
    from bakeoff.cli.execute import execute, tell_taken
    from bakeoff.scenario import parse_settings
    from bakeoff.tables import claim_report as shown
    from bakeoff.tables import findings

    _check_options(
        set_=bool(set_), today=today, mutations=mutations, dry_run=dry_run, record=record, write_docs=write_docs
    )
    engine = with_inventory(with_kernel(engine, kernel), inventory)
    show = detail(quiet=quiet, verbose=verbose)
    everything = load()
    chosen = select(everything, pattern)
    if write_docs and len(chosen) < len(everything):
        raise UsageError(f"--write-docs: needs all claims; expected no pattern, got '{pattern}'")
    if mutations:
        chosen = do_verify.mutated(chosen)
    engines.get(engine)
    execution = campaign.Execution(
        engine=engine, jobs=jobs or campaign.cores(), dask=dask, store=place(store), fresh=fresh
    )
    chosen, wanted = do_verify.runs_of(chosen, seeds, parse_settings(set_ or ()), today=today)
    if not chosen:
        typer.echo("no claim names a version: today's verdicts are those without --today", err=True)
        return
    if dry_run:
        _tell_cost(do_verify.costs(wanted, execution, today=today), jobs or campaign.cores(), as_json=as_json)
        return

    def run(runs: list[Run], root: Path, execution: Execution, *, request: Request, resume: bool) -> Report:
        report = execute(runs, root, request, execution, resume=resume, show=show, again="bakeoff verify")
        if show != "quiet":
            tell_taken(report)
        return report

    found = do_verify.verdicts(
        chosen,
        wanted,
        execution,
        changed=bool(set_) or mutations,
        today=today,
        run=run,
        tell=lambda said: typer.echo(said, err=True),
    )
    if mutations:
        _tell_mutations(found.decided, engine, as_json=as_json, quiet=quiet)
        return
    label = expected.label(engine, today=today)
    if record:
        expected.record(found.decided, label)
        found = do_verify.Verdicts(found.decided, [], [])
    if as_json:
        told = shown.as_json(found.decided, found.differences, label)
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        typer.echo(printable(shown.text(found.decided, quiet=quiet)), nl=False)
    if write_docs:
        named = {claim.name: claims_today.named(wanted[claim.statement]) for claim in chosen if claim.statement}
        for path in findings.write_docs(found.decided, expected.load(), engine, Path(), named):
            typer.echo(f"wrote {path}", err=True)
    _tell_differences(found, label, changed=bool(set_))


def _check_options(*, set_: bool, today: bool, mutations: bool, dry_run: bool, record: bool, write_docs: bool) -> None:
    """BakeoffError for options that exclude each other."""
    if mutations and (record or write_docs or set_ or today):
        raise UsageError("--mutations: not valid with --record, --write-docs, --set or --today")
    if set_ and (record or write_docs):
        raise UsageError("--set: not valid with --record or --write-docs, which need the catalog's own runs")
    if dry_run and (record or write_docs):
        raise UsageError("--dry-run: not valid with --record or --write-docs, which need verdicts")
    if today and write_docs:
        raise UsageError("--today: not valid with --write-docs, which reads the recorded verdicts of today")


def _tell_differences(found: Verdicts, label: str, *, changed: bool) -> None:
    """Verdicts that are not the recorded ones, on standard error; exit 1 if there are any."""
    new, differ = found.unrecorded, found.differences
    if new:
        typer.echo(f"no recorded verdict for {label}: {_first(new)}", err=True)
    for line in differ:
        typer.echo(printable(f"differs: {line}"), err=True)
    if changed:
        turned = len({line.partition(":")[0] for line in differ})
        typer.echo(f"{turned} of {len(found.decided)} claims have another verdict than the recorded one", err=True)
    if differ:
        raise typer.Exit(1)


def _first(names: list[str]) -> str:
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _tell_mutations(decided: list[Decided], engine: str, *, as_json: bool, quiet: bool) -> None:
    """The mutated claims with their verdicts; exit 1 if one still holds, or if its runs decide nothing."""
    from bakeoff.claims.verdict import CANNOT, FAILED, HOLDS
    from bakeoff.tables import claim_report as shown

    survivors = [each.claim.name for each in decided if each.word in (HOLDS, FAILED, CANNOT)]
    if as_json:
        told = {**shown.as_json(decided, [], engine), "survivors": survivors}
        typer.echo(json.dumps(told, indent=2, ensure_ascii=False))
    else:
        typer.echo(printable(shown.text(decided, quiet=quiet)), nl=False)
    for each in decided:
        if each.claim.name in survivors:
            typer.echo(printable(f"mutation: {each.claim.name}: '{each.word}'; expected 'does not hold'"), err=True)
    if survivors:
        raise typer.Exit(1)


def _tell_cost(costs: list[EngineCost], jobs: int, *, as_json: bool) -> None:
    """On standard output, one line or one object for each engine."""
    from bakeoff.cli.execute import duration

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
