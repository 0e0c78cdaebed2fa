"""run: do runs of the catalog, in parallel, into a results folder."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bakeoff.cli import complete
from bakeoff.cli.execute import counts, duration, execute, root_of
from bakeoff.cli.options import (
    How,
    Name,
    Observations,
    Out,
    Resume,
    Selection,
    resume_command,
    takes,
    tell_code,
    tell_warnings,
)
from bakeoff.errors import printable

if TYPE_CHECKING:
    from bakeoff.api.run_plan import RunPlan
    from bakeoff.campaign import Report


@takes(chosen=Selection, observations=Observations, how=How)
def run(
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATTERN...",
            help="Globs (or re:REGEX) on suite/scenario/run, or scenario files; FILE::PATTERN selects runs of a file.",
            show_default="with --last-failed, all failed runs",
            autocompletion=complete.scenario,
        ),
    ] = None,
    *,
    chosen: Selection,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="'MEASURE ±WIDTH'",
            help="Add seeds (at least 3) until the half-width of the 95 % confidence interval of a claim "
            "expression is at most this, such as 'jain ±2%'.",
            show_default=False,
        ),
    ] = None,
    max_seeds: Annotated[int, typer.Option(metavar="N", min=3, help="With --until: maximum seeds per run.")] = 30,
    resume: Resume = False,
    last_failed: Annotated[
        bool, typer.Option("--last-failed", help="Repeat only the failed runs of --out (or the latest).")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail before starting if the engine cannot run every selected run.")
    ] = False,
    durations: Annotated[
        int, typer.Option(metavar="N", min=0, help="Show the N slowest runs.", show_default=False)
    ] = 0,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Check the runs and print their cost; of a single run, print every setting."),
    ] = False,
    out: Out = None,
    name: Name = None,
    notify: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Send a message at the end to an apprise URL (mailto://…, slack://…); repeatable.",
        ),
    ] = None,
    observations: Observations,
    how: How,
) -> None:
    """Run experiments of the catalog or of scenario files.

    Exits with 1 if a run failed or the engine cannot run it, with 2 on invalid input. Ctrl-C keeps finished runs;
    --resume continues.

    \b
    Examples:
      bakeoff run 'l4s-tests/s6*'
      bakeoff run 'l4s-tests/s6*' 're:s1.*-10ms-10ms$' --seeds 5 --jobs 2 --name fairness
      bakeoff run 'l4s-tests/s1-*' --dry-run
      bakeoff run 'l4s-tests/s1-*' --resume       continue the latest campaign
      bakeoff run --last-failed                   repeat the failed runs of the latest campaign
      bakeoff run 'l4s-tests/s1*fq_codel*' --engine kernel     on real Linux, in virtual time
      bakeoff run mine.yaml --engine ssh --inventory bed.yaml     on the machines of a testbed
      bakeoff run mine.yaml --out /tmp/mine      a scenario file
      bakeoff run mine.yaml::'*pie*'             the runs of a scenario file that match
      bakeoff run 'l4s-tests/s6*' -k reno        further restrict the selection
      bakeoff run l4s-tests/s6-rfc3168 --set network.rtt=40ms --set flows.prague.cc=prague     override values
      bakeoff run '*/s6*/*pie*' --trace cc --capture all     record internals per ACK, and packets
      bakeoff run 'l4s-tests/s6*' --until 'goodput(1) ±2%'     add seeds up to this precision
      bakeoff run 'l4s-tests/s6*' --fresh        ignore cached runs
      bakeoff run 'l4s-tests/*' --dask ssh:one,one,two     on several machines
      bakeoff run 'linux/*' --notify json://localhost:8080/ended     a message at the end
    """
    from bakeoff import campaign
    from bakeoff.api.run_plan import RunPlan
    from bakeoff.cli.notify import notifying, service
    from bakeoff.results import Request
    from bakeoff.scenario import parse_settings

    places = service(notify or ())
    execution = how.execution()
    root = root_of(out, name, resume=resume or last_failed)
    request = Request(
        patterns=tuple(patterns or ()), only=chosen.only, settings=parse_settings(chosen.set_ or ()),
        seed=chosen.seed, seeds=chosen.seeds, trace=tuple(observations.trace or ()),
        capture=tuple(observations.capture or ()),
    )  # fmt: skip
    plan = RunPlan.of(
        request, root, execution.engine, resume=resume, last_failed=last_failed, until=until, max_seeds=max_seeds,
        yes=chosen.yes, allow_code=how.allow_code, strict=strict,
    )  # fmt: skip
    _tell_plan(plan, execution.engine, quiet=how.quiet)
    if not plan.runs:
        typer.echo(f"{root}: no {'matching ' if patterns else ''}failed runs")
        return
    if dry_run:
        _dry_run(plan, how.jobs or campaign.cores(), as_json=how.as_json)
        raise typer.Exit(1 if plan.refused else 0)
    given = {  # not --notify, whose URL may hold a password
        **how.given(plan.engine), "--yes": chosen.yes, "--until": until,
        "--max-seeds": max_seeds if until is not None else None,
    }  # fmt: skip
    with notifying(places, root) as told:
        report = execute(
            plan.runs,
            root,
            plan.request,
            replace(execution, engine=plan.engine),
            resume=plan.resume,
            latest=campaign.LATEST,
            again=resume_command(plan.request, root, given),
            show=how.detail,
            also=plan.also,
            more=plan.more,
        )
        told(report)
    _tell(plan, report, durations, quiet=how.quiet, as_json=how.as_json)
    if report.failed or plan.refused:
        raise typer.Exit(1)


def _tell_plan(plan: RunPlan, engine: str, *, quiet: bool) -> None:
    """Parts of the plan that may surprise a user, on standard error."""
    words = [*plan.taken.words(), *(["--engine", plan.engine] if plan.engine != engine else [])]
    if words and not quiet:
        typer.echo(f"options of the resumed campaign: {printable(shlex.join(words))}", err=True)
    names = [pattern for pattern in plan.request.patterns if pattern.replace("-", "").replace(".", "").isidentifier()]
    suites = dict.fromkeys(key.partition("/")[0] for key in (*(run.key for run in plan.runs), *plan.refused))
    if names and len(suites) > 1:
        one = f"'{next(iter(suites))}/*{names[0]}*'"
        typer.echo(
            f"'{names[0]}' matches runs of {len(suites)} suites: {', '.join(suites)}; for one of them: {one}", err=True
        )
    for key, why in plan.refused.items():
        typer.echo(printable(f"cannot be run here: {key}: {why}"), err=True)


def _dry_run(plan: RunPlan, jobs: int, *, as_json: bool) -> None:
    cost = plan.cost(jobs)
    tell_code(plan.runs)
    tell_warnings(plan.runs)
    if as_json:
        content: dict[str, Any] = {
            "runs": cost.runs, "simulated_s": cost.simulated_s, "jobs": jobs, "estimated_wall_s": round(cost.wall_s, 1),
            "keys": [each.key for each in plan.runs],
        }  # fmt: skip
        if cost.effective is not None:
            content["effective"] = cost.effective
        if cost.unchecked is not None:
            content["unchecked"] = cost.unchecked
        typer.echo(json.dumps(content, indent=2))
        return
    typer.echo(f"{cost.runs} runs, {cost.simulated_s:.0f} s simulated, about {duration(cost.wall_s)} with {jobs} jobs")
    if cost.unchecked:
        typer.echo(f"not checked: {cost.unchecked}", err=True)
    if cost.effective is not None:
        typer.echo(f"\n{cost.effective.rstrip()}")


def _tell(plan: RunPlan, report: Report, durations: int, *, quiet: bool, as_json: bool) -> None:
    """The outcome, on standard output."""
    if as_json:
        typer.echo(json.dumps({**_as_json(report), "refused": plan.refused, **_goal_as_json(plan)}, indent=2))
    elif not quiet:
        typer.echo(f"{counts(report)} in {report.wall_s:.1f} s")
        if plan.refused:
            typer.echo(f"{len(plan.refused)} more cannot be run here, such as {printable(next(iter(plan.refused)))}")
        typer.echo(f"results: {report.root}")
        typer.echo(f"next:    bakeoff table {shlex.quote(str(report.root))}")
    if not as_json:
        _tell_goal(plan)
    if durations and not as_json:
        slowest = sorted(report.runs, key=lambda done: done.wall_s, reverse=True)[:durations]
        typer.echo("slowest:\n" + "".join(f"{done.wall_s:>8.2f} s  {done.key}\n" for done in slowest), nl=False)


def _as_json(report: Report) -> dict[str, Any]:
    return {
        "results": str(report.root),
        "wall_s": round(report.wall_s, 3),
        "not_begun": report.not_begun,
        "runs": [
            {
                "run": done.key,
                "path": str(done.path),
                "status": done.status,
                "wall_s": round(done.wall_s, 3),
                "error": done.error,
            }
            for done in report.runs
        ],
    }


def _goal_as_json(plan: RunPlan) -> dict[str, Any]:
    """How many seeds each run took and what came out, in base units; nothing without a goal."""
    from bakeoff.campaign.until import METHOD

    if plan.goal is None or plan.repetitions is None:
        return {}
    rows = [
        {
            "run": each.name,
            "seeds": each.ended,
            "lost": each.lost,
            "mean": each.found and each.found["mean"],
            "ci95": each.found and each.found["ci95"],
            "reached": each.reached,
        }
        for each in plan.repetitions.all
    ]
    return {"until": {"measure": plan.goal.number, "method": METHOD, "runs": rows}}


def _tell_goal(plan: RunPlan) -> None:
    """The same as text, with the runs that missed the goal."""
    from bakeoff.campaign.until import METHOD
    from bakeoff.claims.goal import written

    if plan.goal is None or plan.repetitions is None:
        return
    several = plan.repetitions.all
    typer.echo(f"{plan.goal.number}: {METHOD}")
    width = max(len(each.name) for each in several)
    for each in several:
        said = "no number" if each.found is None else written(each.found, plan.goal)
        lost = f", {each.lost} without a number" if each.lost else ""
        end = "" if each.reached else ": not narrow enough"
        typer.echo(printable(f"  {each.name:<{width}}  {each.ended:>3} seeds  {said}{lost}{end}"))
    missed = sum(not each.reached for each in several)
    if missed:
        typer.echo(f"{missed} of {len(several)} runs missed the goal; continue with --resume and a larger --max-seeds")
