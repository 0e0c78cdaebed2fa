"""run: do runs of the catalog, in parallel, into a results folder."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import (
    AllowCode,
    Capture,
    Dask,
    Engine,
    Exact,
    FileSeeds,
    Fresh,
    Inventory,
    Jobs,
    Json,
    Kernel,
    Name,
    Note,
    Only,
    Out,
    Quiet,
    Resume,
    RunTimeout,
    Set,
    StopOnFailure,
    Store,
    Trace,
    Verbose,
    Yes,
    detail,
    resume_command,
    seconds,
    tell_code,
    tell_warnings,
    with_exact,
    with_inventory,
    with_kernel,
)
from bakeoff.errors import NoKernelError, UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bakeoff.campaign import Done, Execution, Report
    from bakeoff.campaign.worker import Also
    from bakeoff.cli.progress import Detail
    from bakeoff.cli.until import Until
    from bakeoff.results import Request, Result
    from bakeoff.scenario import Run


def run(
    patterns: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="PATTERN...",
            help="Globs (or re:REGEX) on suite/scenario/run, or scenario files; FILE::PATTERN for single runs of one.",
            show_default="with --last-failed, all that failed",
            autocompletion=complete.scenario,
        ),
    ] = None,
    *,
    engine: Engine = "sim",
    exact: Exact = False,
    kernel: Kernel = None,
    inventory: Inventory = None,
    jobs: Jobs = None,
    dask: Dask = None,
    only: Only = None,
    set_: Set = None,
    seeds: FileSeeds = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="'MEASURE ±WIDTH'",
            help="Repeat each run with new seeds until half of the 95 % interval of an expression of claims is at most "
            "so wide, such as 'jain ±2%'; three seeds at least.",
            show_default=False,
        ),
    ] = None,
    max_seeds: Annotated[int, typer.Option(metavar="N", min=3, help="With --until: seeds of a run at most.")] = 30,
    yes: Yes = False,
    allow_code: AllowCode = False,
    resume: Resume = False,
    last_failed: Annotated[
        bool, typer.Option("--last-failed", help="Do only what failed in --out (or the latest), again.")
    ] = False,
    stop: StopOnFailure = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Begin nothing if the engine cannot do one of the runs.")
    ] = False,
    durations: Annotated[
        int, typer.Option(metavar="N", min=0, help="Show the N runs that took longest.", show_default=False)
    ] = 0,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Check the runs and say what they cost. Of a single run, show all that would be done."
        ),
    ] = False,
    out: Out = None,
    name: Name = None,
    trace: Trace = None,
    capture: Capture = None,
    store: Store = None,
    fresh: Fresh = False,
    run_timeout: RunTimeout = None,
    note: Note = None,
    notify: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL",
            help="Tell this place how the campaign ended, as apprise writes places: mailto://…, slack://…; repeatable.",
        ),
    ] = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Run all that the patterns name.

    Ends with 1 if a run failed or the engine cannot do it (the others are done all the same), with 2 if something has
    to be put right first.
    Ctrl-C leaves whole results only; --resume does the rest.

    \b
    Examples:
      bakeoff run 'l4s-tests/s6*'
      bakeoff run 'l4s-tests/s6*' 're:s1.*-10ms-10ms$' --seeds 5 --jobs 2 --name fairness
      bakeoff run 'l4s-tests/s1-*' --dry-run
      bakeoff run 'l4s-tests/s1-*' --resume       go on where the latest was interrupted
      bakeoff run --last-failed                   again what failed in the latest, in its place
      bakeoff run 'l4s-tests/s1*fq_codel*' --engine kernel     on real Linux, in virtual time
      bakeoff run mine.yaml --engine ssh --inventory bed.yaml     on the machines of a testbed
      bakeoff run mine.yaml --out /tmp/mine      a scenario of your own
      bakeoff run mine.yaml::'*pie*'             those of its runs whose name has such a form
      bakeoff run 'l4s-tests/s6*' -k reno        likewise, of any selection
      bakeoff run l4s-tests/s6-rfc3168 --set network.rtt=40ms --set flows.prague.cc=prague     with other values
      bakeoff run '*/s6*/*pie*' --trace cc --capture all     with internals per ACK, and packets
      bakeoff run 'l4s-tests/s6*' --until 'goodput(1) ±2%'     as many seeds as that takes
      bakeoff run 'l4s-tests/s6*' --fresh        without the runs that the store has
      bakeoff run 'l4s-tests/*' --dask ssh:one,one,two     on several machines
      bakeoff run 'linux/*' --notify json://localhost:8080/ended     and a message when it has ended
    """
    from bakeoff import campaign, engines
    from bakeoff.api.do_runs import observed
    from bakeoff.campaign import campaign_record
    from bakeoff.campaign.store import place
    from bakeoff.cli.notify import notifying, service
    from bakeoff.cli.until import Until
    from bakeoff.results import Request
    from bakeoff.scenario import catalog, parse_settings

    places = service(notify or ())
    engine = with_inventory(with_kernel(with_exact(engine, exact), kernel), inventory)
    if allow_code:
        engines.permit_code(engine)
    root = root_of(out, name, resume=resume or last_failed)
    failed = _failed_in(root) if last_failed else {}
    if last_failed and not failed:
        typer.echo(f"{root}: no run failed")
        return
    request = Request(
        patterns=tuple(patterns or ()), only=only, settings=parse_settings(set_ or ()), seeds=seeds,
        trace=tuple(trace or ()), capture=tuple(capture or ()),
    )  # fmt: skip
    taken = Request()
    if resume or last_failed:
        bare = not patterns and last_failed
        request, taken, begun_with = campaign_record.continued(root, request, patterns=bare)
        if bare and engine == "sim":
            engine = begun_with
        _tell_taken(taken, engine if bare else "sim", quiet=quiet)
        if bare and request.seeds is None:
            request = replace(request, seeds=max(run.run.seed for run in failed.values()))
    if not request.patterns:
        raise UsageError("Missing argument 'PATTERN': expected for example 'l4s-tests/s6*'; --last-failed needs none")
    repeated = Until(until, request.seeds, max_seeds, last_failed=last_failed)
    runs = catalog.select(request.patterns, repeated.most, only=request.only, settings=request.settings, yes=yes)
    runs = observed(_told_suites(request.patterns, runs), request.trace, request.capture)
    if last_failed:
        runs = [
            each if request.trace or request.capture else _as_observed(each, failed)
            for each in runs
            if each.key in failed
        ]
        if not runs:
            typer.echo(f"{root}: no such run failed")
            return
    _check_taken(root, taken, runs, allow_code=allow_code)
    runs, refused = (runs, {}) if strict else _possible(runs, engine)
    runs = repeated.begin(runs)
    if dry_run:
        _dry_run(runs, engine, jobs or campaign.cores(), as_json)
        raise typer.Exit(1 if refused else 0)
    given = {  # not --notify, whose URL may hold a password
        "--engine": engine if engine != "sim" else None, "--yes": yes, "--allow-code": allow_code, "--fresh": fresh,
        "--until": until, "--max-seeds": max_seeds if until is not None else None, "--note": note, "--store": store,
        "--dask": dask, "--run-timeout": run_timeout,
    }  # fmt: skip
    execution = campaign.Execution(
        engine=engine, jobs=jobs, dask=dask, timeout_s=seconds("--run-timeout", run_timeout), store=place(store),
        fresh=fresh, stop_on_failure=stop, allow_code=allow_code, note=note,
    )  # fmt: skip
    with notifying(places, root) as told:
        report = execute(
            runs,
            root,
            request,
            execution,
            resume=resume or last_failed,
            latest=campaign.LATEST,
            again=resume_command(request, root, given),
            show=detail(quiet=quiet, verbose=verbose),
            also=repeated.also,
            more=repeated.more,
        )
        told(report)
    _tell(report, refused, durations, repeated, quiet=quiet, as_json=as_json)
    if report.failed or refused:
        raise typer.Exit(1)


def _told_suites(patterns: Sequence[str], runs: list[Run]) -> list[Run]:
    """The runs; says that a word alone names runs of several suites, which may be more than was meant."""
    words = [pattern for pattern in patterns if pattern.replace("-", "").replace(".", "").isidentifier()]
    suites = dict.fromkeys(run.suite for run in runs)
    if words and len(suites) > 1:
        one = f"'{next(iter(suites))}/*{words[0]}*'"
        typer.echo(f"'{words[0]}' names runs of {len(suites)} suites: {', '.join(suites)}; of one: {one}", err=True)
    return runs


def _possible(runs: list[Run], engine: str) -> tuple[list[Run], dict[str, str]]:
    """The runs that the engine can do, and the reasons for the others, which are told; all of them if it can do none.

    What stops all of them is then told by the campaign, and is mostly something that this machine lacks.
    """
    from bakeoff import campaign

    can, refused = campaign.accepted(runs, engine)
    if not can:
        return runs, {}
    for key, why in refused.items():
        typer.echo(printable(f"cannot be run here: {key}: {why}"), err=True)
    return can, refused


def execute(
    runs: list[Run],
    root: Path,
    request: Request,
    execution: Execution,
    *,
    resume: bool = False,
    latest: Path | None = None,
    again: str | None = None,
    show: Detail = "normal",
    also: Also | None = None,
    more: Callable[[Done, int], Sequence[Run]] | None = None,
    expected: Callable[[], int] | None = None,
) -> Report:
    """Do the runs with progress on standard error; a Ctrl-C ends with 130 and the command that continues (`again`).

    `expected` gives how many runs there will be with those that `more` gives, as far as that is known.
    """
    from bakeoff import campaign, results
    from bakeoff.cli import output
    from bakeoff.cli.progress import progress

    tell_warnings(runs)
    console = output.console(err=True)

    def waiting() -> None:
        typer.echo("interrupted: waiting for what is under way; Ctrl-C again discards it", err=True)

    def started(dashboard: str) -> None:
        typer.echo(f"dask: {dashboard} shows what the workers do", err=True)

    total = len({run.key for run in runs})
    try:
        with progress(runs, console, show) as shown:
            if expected is not None:
                shown.expect(expected() - total)
                total = expected()

            def further(done: Done, waiting: int) -> Sequence[Run]:
                nonlocal total
                several = more(done, waiting) if more is not None else ()
                change = expected() - total if expected is not None else len(several)
                shown.expect(change)
                total += change
                return several

            report = campaign.run(
                runs,
                root,
                execution,
                request=request,
                resume=resume,
                latest=latest,
                also=also,
                more=further if more is not None else None,
                watch=campaign.Watch(
                    on_start=shown.started, on_done=shown.ended, on_interrupt=waiting, on_cluster=started
                ),
            )
    except (KeyboardInterrupt, SystemExit) as interrupt:
        whole = len(results.scan(root)) if root.is_dir() else 0
        typer.echo(f"interrupted: {whole} of {total} runs are in {root}", err=True)
        if again is not None:
            typer.echo(f"go on with: {again}", err=True)
        if isinstance(interrupt, SystemExit):
            raise
        raise typer.Exit(130) from None
    for done in report.failed:
        typer.echo(f"failed: {done.key}: {done.error} ({done.path})", err=True)
    if report.not_begun:
        typer.echo(f"stopped at a failure: {report.not_begun} of {total} runs were not begun", err=True)
    if report.not_stored:
        typer.echo(printable(f"bakeoff: warning: not all runs were kept in the store: {report.not_stored}"), err=True)
    return report


def tell_taken(report: Report) -> None:
    """Say on standard error how many runs nobody had to do."""
    if report.taken:
        typer.echo(f"taken from the store: {len(report.taken)} of {len(report.runs)} runs", err=True)


def root_of(out: Path | None, name: str | None, *, resume: bool) -> Path:
    """The folder that the results go to; with `resume` the latest where none is named."""
    from bakeoff import campaign
    from bakeoff.campaign.locations import RESULTS, TAKEN

    if out is not None and name is not None:
        raise UsageError("--out and --name both say where the results go; expected one of them")
    if name is not None:
        if Path(name).name != name or not name.isprintable() or name.startswith(".") or name in ("", *TAKEN):
            raise UsageError(
                f"--name: {printable(name)!r} is no name for a folder below results/; expected for example 'fairness'"
            )
        return RESULTS / name
    if out is not None:
        return out
    return campaign.latest() if resume else campaign.new_folder()


def _failed_in(root: Path) -> dict[str, Result]:
    """The runs whose results in `root` say that they failed, by name."""
    from bakeoff import results

    return {result.key: result for result in results.survey(root).results if not result.ok}


def _tell_taken(taken: Request, engine: str, *, quiet: bool) -> None:
    """Say what comes from the beginning of the campaign."""
    words = [*taken.words(), *(["--engine", engine] if engine != "sim" else [])]
    if words and not quiet:
        typer.echo(f"as the campaign was begun: {printable(shlex.join(words))}", err=True)


def _check_taken(root: Path, taken: Request, runs: list[Run], *, allow_code: bool) -> None:
    """BakeoffError if campaign.json, which may be somebody else's, and not the user, names what would be executed."""
    if allow_code or not taken.words():
        return
    from bakeoff.scenario.python_cc import executed, split
    from bakeoff.scenario.settings import typed

    code = executed(runs) if taken.patterns or any(split(word) for word in typed(taken.settings)) else ()
    if code:
        raise UsageError(
            f"{root}: its campaign.json names runs that would execute {code[0].path}; expected the patterns and --set "
            "on the command line, or --allow-code after a look into it"
        )


def _as_observed(run: Run, failed: dict[str, Result]) -> Run:
    """The run with the traces and captures that were asked for when it failed."""
    before = failed[run.key].run
    if not before.trace and not before.captures:
        return run
    from bakeoff.scenario.observe import observe

    return observe(run, trace=before.trace, capture=before.captures)


def _tell(
    report: Report,
    refused: dict[str, str],
    durations: int,
    repeated: Until,
    *,
    quiet: bool,
    as_json: bool,
) -> None:
    """How it ended, on standard output."""
    if as_json:
        typer.echo(json.dumps({**_as_json(report), "refused": refused, **repeated.as_json()}, indent=2))
    elif not quiet:
        typer.echo(f"{counts(report)} in {report.wall_s:.1f} s")
        if refused:
            typer.echo(f"{len(refused)} more cannot be run here, such as {printable(next(iter(refused)))}")
        typer.echo(f"results: {report.root}")
        typer.echo(f"next:    bakeoff table {shlex.quote(str(report.root))}")
    if not as_json:
        repeated.tell()
    if durations and not as_json:
        slowest = sorted(report.runs, key=lambda done: done.wall_s, reverse=True)[:durations]
        typer.echo("slowest:\n" + "".join(f"{done.wall_s:>8.2f} s  {done.key}\n" for done in slowest), nl=False)


def _dry_run(runs: list[Run], engine: str, jobs: int, as_json: bool) -> None:
    from bakeoff import engines

    module = engines.get(engine)
    unchecked = None
    try:
        effective = [module.check(each) for each in runs]
    except NoKernelError as error:
        effective, unchecked = [], str(error)
    simulated_s = sum(each.duration_s for each in runs)
    wall_s = estimate_s(runs, engine, jobs)
    tell_code(runs)
    tell_warnings(runs)
    if as_json:
        cost = {"runs": len(runs), "simulated_s": simulated_s, "jobs": jobs, "estimated_wall_s": round(wall_s, 1)}
        plan = {"effective": effective[0]} if len(effective) == 1 else {}
        plan |= {"unchecked": unchecked} if unchecked else {}
        typer.echo(json.dumps({**cost, "keys": [each.key for each in runs], **plan}, indent=2))
        return
    typer.echo(f"{len(runs)} runs, {simulated_s:.0f} s simulated, about {duration(wall_s)} with {jobs} jobs")
    if unchecked:
        typer.echo(f"not checked: {unchecked}", err=True)
    if len(effective) == 1:
        typer.echo(f"\n{effective[0].rstrip()}")


def estimate_s(runs: Sequence[Run], engine: str, jobs: int) -> float:
    """About how long the runs take with so many jobs (s)."""
    from bakeoff import engines

    module = engines.get(engine)
    return sum(module.estimate_s(each) for each in runs) / max(1, min(jobs, len(runs)))


def duration(seconds: float) -> str:
    """For people."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def counts(report: Report) -> str:
    """How many runs ended in which way, for people."""
    done = len(report.runs) - len(report.skipped) - len(report.failed) - len(report.taken)
    words = {
        "done": done,
        "taken from the store": len(report.taken),
        "there already": len(report.skipped),
        "failed": len(report.failed),
    }
    parts = [f"{count} {word}" for word, count in words.items() if count]
    return f"{len(report.runs)} runs: {', '.join(parts)}"


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
