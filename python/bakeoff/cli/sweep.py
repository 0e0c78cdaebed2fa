"""sweep: one scenario over many values of its parameters."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli import complete
from bakeoff.cli.execute import counts, duration, execute, root_of
from bakeoff.cli.options import How, Name, Out, Resume, Selection, resume_command, takes, tell_code
from bakeoff.errors import NoKernelError, UsageError

if TYPE_CHECKING:
    from bakeoff.api.do_sweep import Plan
    from bakeoff.campaign import Report
    from bakeoff.campaign.sweep_schedule import Budget, Told


@dataclass(frozen=True, kw_only=True)
class _How(How):
    store: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|URL",
            help="Cache of finished runs; 'none' disables it.",
            show_default="none with --engine sim, else as for run",
        ),
    ] = None


@takes(chosen=Selection, how=_How)
def sweep(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO",
            help="Scenario file, or name of a scenario of the catalog; FILE::PATTERN selects runs of a file.",
            autocompletion=complete.scenario,
        ),
    ],
    *,
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            metavar="KEY=VALUES",
            help="Parameter (as for --set) or axis, with a list A,B,C or a range lin:A..B:N or log:A..B:N; repeatable.",
        ),
    ],
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="lhs:N|sobol:N",
            help="Latin hypercube or Sobol sequence of N points over the ranges.",
            show_default="a full grid",
        ),
    ] = None,
    adaptive: Annotated[
        str | None,
        typer.Option(
            metavar="MEASURE",
            help="Choose points where this claim expression changes fastest; needs --budget.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="RUNS|TIME",
            help="Maximum number of runs, or approximate time, such as 500 or 10min.",
            show_default="unlimited",
        ),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(metavar="measures|series", help="Data kept per run: measures only, or samples too."),
    ] = "measures",
    measure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPRESSION",
            help="Additional column of the data set, a claim expression; repeatable.",
        ),
    ] = None,
    resume: Resume = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the points and print their cost.")] = False,
    out: Out = None,
    name: Name = None,
    chosen: Selection,
    how: _How,
) -> None:
    """Run a scenario over many values of its parameters.

    The measures of all runs also go to one Parquet data set, RESULTS/sweep, for DuckDB, polars or pandas. Exits with 1
    if a run failed, with 2 on invalid input. Ctrl-C keeps finished runs; --resume continues.

    \b
    Examples:
      bakeoff sweep mine.yaml --over network.rtt=log:1ms..200ms:12 --over network.bottleneck.rate=5mbit,20mbit,100mbit
      bakeoff sweep mine.yaml --over network.rtt=log:1ms..200ms --over flows.0.count=lin:1..50 --sample sobol:256
      bakeoff sweep mine.yaml --over network.rtt=log:1ms..200ms:100 --budget 10min
      bakeoff sweep mine.yaml --over network.rtt=log:1ms..200ms --adaptive 'share("prague")' --budget 200
      bakeoff sweep l4s-tests/s6-rfc3168 -k pie --over network.rtt=lin:5ms..50ms:10 --measure 'ping_p99()'
      bakeoff sweep mine.yaml --over network.rtt=log:1ms..200ms:100 --dask ssh:one,one,two     on several machines
      bakeoff plot --kind heatmap --measure jain     plots the latest sweep
    """
    from bakeoff import campaign
    from bakeoff.api import do_sweep
    from bakeoff.campaign.sweep_schedule import Budget
    from bakeoff.results import Request
    from bakeoff.scenario import parse_settings

    if keep not in ("measures", "series"):
        raise UsageError(f"--keep: '{keep}'; expected measures or series")
    execution = how.execution()
    engine, quiet = execution.engine, how.quiet
    request = Request(
        kind="sweep", patterns=(scenario,), over=tuple(over), sample=sample, adaptive=adaptive, only=chosen.only,
        seed=chosen.seed, seeds=chosen.seeds, settings=parse_settings(chosen.set_ or ()), measures=tuple(measure or ()),
        kept="all" if keep == "series" else "measures",
    )  # fmt: skip
    cores = do_sweep.jobs_of(engine, how.jobs)
    execution = replace(
        execution,
        # How many workers of Dask there are, Dask knows.
        jobs=cores if how.dask is None else how.jobs,
        store=do_sweep.default_store(engine, how.store),
    )
    cost = Budget.parse(budget)
    plan = do_sweep.Plan.of(request, yes=chosen.yes)
    run_s = _estimate(plan, engine, dry_run=dry_run)
    plan = plan.with_chooser(cost, run_s, cores, yes=chosen.yes)
    if dry_run:
        tell_code(plan.runs(plan.one_by_one[0]))
        _tell_plan(plan, cost, run_s, cores, as_json=how.as_json, err=False)
        return
    root = root_of(out, name, resume=resume)
    if not quiet:
        _tell_plan(plan, cost, run_s, cores, as_json=False, err=True)
    given = {
        **how.given(engine), "--keep": keep if keep != "measures" else None, "--yes": chosen.yes, "--budget": budget,
    }  # fmt: skip

    def tell(known: Told) -> None:
        if not quiet:
            _tell_cost(plan, known, budget, cores)

    doing = plan.begin(request, cost, cores, tell)
    report = execute(
        doing.first(),
        root,
        request,
        execution,
        resume=resume,
        latest=campaign.LATEST,
        again=resume_command(request, root, given),
        show=how.detail,
        also=do_sweep.also(request),
        more=doing.more,
        expected=lambda: doing.expected,
    )
    found = do_sweep.swept(report)
    _tell(
        report,
        found.data_set,
        found.rows,
        results_bytes=_size(root) if not quiet or how.as_json else 0,
        quiet=quiet,
        as_json=how.as_json,
    )
    if report.failed:
        raise typer.Exit(1)


def _estimate(plan: Plan, engine: str, *, dry_run: bool) -> float:
    """About how long a run takes on one core (s). With `dry_run` the engine may lack its kernel."""
    try:
        plan.check(engine)
    except NoKernelError as error:
        if not dry_run:
            raise
        typer.echo(f"not checked: {error}", err=True)
    return plan.estimate_s(engine)


def _tell_plan(plan: Plan, budget: Budget, run_s: float, jobs: int, *, as_json: bool, err: bool) -> None:
    room = budget.points(plan.runs_per_point, run_s, jobs)
    points = plan.points if room is None else min(plan.points, room)
    runs = points * plan.runs_per_point
    wall_s = runs * run_s / jobs
    if as_json:
        content = {
            "points": points, "runs": runs, "left_out": (plan.points - points) * plan.runs_per_point, "jobs": jobs,
            "estimated_wall_s": round(wall_s, 1),
        }  # fmt: skip
        typer.echo(json.dumps(content, indent=2))
        return
    text = f"{runs:,} runs at {points:,} points, about {duration(wall_s)} with {jobs} jobs"
    if points < plan.points:
        text += f"; the budget excludes {plan.points - points:,} points"
    typer.echo(text, err=err)


def _tell_cost(plan: Plan, cost: Told, budget: str | None, jobs: int) -> None:
    """What the first runs say of the others."""
    typer.echo(
        f"{cost.of} runs took {cost.run_s:.2f} s each: {cost.points * plan.runs_per_point:,} runs at {cost.points:,} "
        f"points will be done, the rest in about {duration(cost.wall_s)} with {jobs} jobs",
        err=True,
    )
    if cost.left_out:
        typer.echo(
            f"the budget of {budget} excludes {cost.left_out:,} of {cost.points + cost.left_out:,} points; the others "
            "are evenly spaced. Continue with --resume and a larger --budget",
            err=True,
        )


def _size(root: Path) -> int:
    from bakeoff.results.storage import size

    return size(root)


def _tell(report: Report, folder: Path, rows: int, *, results_bytes: int, quiet: bool, as_json: bool) -> None:
    if as_json:
        content = {
            "results": str(report.root),
            "data_set": str(folder),
            "rows": rows,
            "bytes": results_bytes,
            "wall_s": round(report.wall_s, 3),
            "failed": [{"run": done.key, "path": str(done.path), "error": done.error} for done in report.failed],
        }
        typer.echo(json.dumps(content, indent=2))
    elif not quiet:
        typer.echo(f"{counts(report)} in {report.wall_s:.1f} s")
        typer.echo(f"results:  {report.root} ({results_bytes / 1e6:,.1f} MB)")
        typer.echo(f"data set: {folder} ({rows:,} rows)")
        typer.echo(f"next:     bakeoff plot {shlex.quote(str(report.root))}")
