"""run: do runs of the catalog, in parallel, into a results folder."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import (
    AllowCode,
    Capture,
    Dask,
    Engine,
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
    as_words,
    detail,
    seconds,
    tell_code,
    tell_warnings,
    with_inventory,
    with_kernel,
)
from bakeoff.errors import NoKernelError, UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bakeoff.campaign import Asked, Done, Report
    from bakeoff.campaign.cluster import Cluster
    from bakeoff.campaign.worker import Also
    from bakeoff.cli.progress import Detail
    from bakeoff.cli.until import Until
    from bakeoff.results import Kept, Result
    from bakeoff.scenario import Run

_OPTIONS = ("--set ", "-k ", "--seeds ", "--trace ", "--capture ")
"""How the options begin that campaign.json keeps beside the patterns."""


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
    from bakeoff.cli.notify import notifying, service
    from bakeoff.cli.until import Until
    from bakeoff.scenario import catalog, parse_settings

    places = service(notify or ())
    engine = with_inventory(with_kernel(engine, kernel), inventory)
    if allow_code:
        engines.permit_code(engine)
    root = root_of(out, name, resume=resume or last_failed)
    failed = _failed_in(root) if last_failed else {}
    if last_failed and not failed:
        typer.echo(f"{root}: no run failed")
        return
    if resume or last_failed:
        given = _Options(set_ or [], only, seeds, trace or [], capture or [])
        begun = _Begun.of(root, given, bare=not patterns and last_failed)
        begun.tell(quiet=quiet)
        set_, only, seeds, trace, capture = begun.options
        if not patterns and last_failed:
            patterns, engine = begun.patterns, begun.engine if engine == "sim" else engine
            seeds = seeds or max(run.run.seed for run in failed.values())
    if not patterns:
        raise UsageError("Missing argument 'PATTERN': expected for example 'l4s-tests/s6*'; --last-failed needs none")
    repeated = Until(until, seeds, max_seeds, last_failed=last_failed)
    runs = catalog.select(patterns, repeated.most, only=only, settings=parse_settings(set_ or ()), yes=yes)
    runs = _observed(_told_suites(patterns, runs), trace, capture)
    if last_failed:
        runs = [each if trace or capture else _as_observed(each, failed) for each in runs if each.key in failed]
        if not runs:
            typer.echo(f"{root}: no such run failed")
            return
    if (resume or last_failed) and begun.taken and not allow_code:
        _check_taken(root, begun, set_, runs)
    runs, refused = (runs, {}) if strict else _possible(runs, engine)
    runs = repeated.begin(runs)
    if dry_run:
        _dry_run(runs, engine, jobs or campaign.cores(), as_json)
        raise typer.Exit(1 if refused else 0)
    options = _Options(set_ or [], only, seeds, trace or [], capture or [])
    again = ["bakeoff", "run", *patterns, "--out", str(root), "--resume"]  # not --notify, whose URL may hold a password
    further = {
        "--until": until, "--max-seeds": str(max_seeds) if until is not None else None, "--note": note,
        "--store": store, "--dask": dask, "--run-timeout": run_timeout,
    }  # fmt: skip
    again += (
        ["--engine", engine] * (engine != "sim")
        + options.chosen()
        + options.observed()
        + ["--yes"] * yes
        + ["--allow-code"] * allow_code
        + ["--fresh"] * fresh
    )
    again += as_words(further)
    # Who goes on may ask for more seeds or traces, which makes the campaign no other one.
    kept = [options.chosen(), [] if resume or last_failed else options.observed()]
    asked = campaign.Asked("run", (*patterns, *(shlex.join(words) for words in kept if words)), note)
    with notifying(places, root) as told:
        report = execute(
            runs,
            root,
            asked,
            engine=engine,
            jobs=jobs,
            resume=resume or last_failed,
            stop_on_failure=stop,
            allow_code=allow_code,
            store=store,
            fresh=fresh,
            timeout_s=seconds("--run-timeout", run_timeout),
            dask=dask,
            latest=campaign.LATEST,
            again=shlex.join(again),
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


def _observed(runs: list[Run], trace: list[str] | None, capture: list[str] | None) -> list[Run]:
    if not trace and not capture:
        return runs
    from bakeoff.scenario.observe import observe

    return [observe(each, trace=trace or (), capture=capture or ()) for each in runs]


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
    asked: Asked,
    *,
    engine: str,
    jobs: int | None,
    resume: bool = False,
    stop_on_failure: bool = False,
    allow_code: bool = False,
    store: str | None = None,
    fresh: bool = False,
    timeout_s: float | None = None,
    dask: str | None = None,
    latest: Path | None = None,
    again: str | None = None,
    show: Detail = "normal",
    kept: Kept = "all",
    also: Also | None = None,
    more: Callable[[Done, int], Sequence[Run]] | None = None,
    expected: Callable[[], int] | None = None,
) -> Report:
    """Do the runs with progress on standard error; a Ctrl-C ends with 130 after telling how to go on (`again`).

    `expected` tells how many runs there will be with those that `more` gives, as far as that is known.
    """
    from bakeoff import campaign, results
    from bakeoff.campaign.store import opened
    from bakeoff.cli import output
    from bakeoff.cli.progress import progress

    tell_warnings(runs)
    opened_store = opened(store)
    console = output.console(err=True)

    def waiting() -> None:
        typer.echo("interrupted: waiting for what is under way; Ctrl-C again discards it", err=True)

    def started() -> Cluster:
        from bakeoff.campaign.cluster import Cluster

        workers = Cluster(dask or "", engine, jobs)
        typer.echo(f"dask: {workers.dashboard} shows what the workers do", err=True)
        return workers

    total = len({run.key for run in runs})
    try:
        with progress(runs, console, show) as watch:
            if expected is not None:
                watch.expect(expected() - total)
                total = expected()

            def further(done: Done, waiting: int) -> Sequence[Run]:
                nonlocal total
                several = more(done, waiting) if more is not None else ()
                change = expected() - total if expected is not None else len(several)
                watch.expect(change)
                total += change
                return several

            report = campaign.run(
                runs,
                root,
                engine=engine,
                jobs=jobs,
                resume=resume,
                asked=asked,
                latest=latest,
                stop_on_failure=stop_on_failure,
                allow_code=allow_code,
                store=opened_store,
                fresh=fresh,
                timeout_s=timeout_s,
                cluster=None if dask is None else started,
                kept=kept,
                also=also,
                more=further if more is not None else None,
                on_start=watch.started,
                on_done=watch.ended,
                on_interrupt=waiting,
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


class _Options(NamedTuple):
    """Options that decide which runs there are and what they record; empty or None where they were not given."""

    set: list[str]
    only: str | None
    seeds: int | None
    trace: list[str]
    capture: list[str]

    def chosen(self) -> list[str]:
        """The words that say which runs there are."""
        return as_words({"--set": self.set, "-k": self.only})

    def observed(self) -> list[str]:
        """The words that say how often they are done, and what they record."""
        return as_words({"--seeds": self.seeds, "--trace": self.trace, "--capture": self.capture})


@dataclass(frozen=True)
class _Begun:
    """What a campaign that is gone on with was begun with, as far as the user did not give it again."""

    patterns: list[str]
    engine: str
    options: _Options
    taken: list[str]
    """The words that were taken from campaign.json."""

    @classmethod
    def of(cls, root: Path, given: _Options, *, bare: bool) -> _Begun:
        """From campaign.json in `root`; `bare` if the user named no patterns, and so means those of then.

        Without the options of then the same patterns would name other runs. BakeoffError if `bare` and there is none.
        """
        from bakeoff import results

        record = results.read_campaign(root) if root.is_dir() else None
        if record is None or record.kind != "run":
            if bare:
                raise UsageError(f"{root}: holds no campaign of 'bakeoff run'; expected patterns that name its runs")
            return cls([], "sim", given, [])
        patterns = [line for line in record.patterns if not line.startswith(_OPTIONS)]
        lines = [line for line in record.patterns if line.startswith(_OPTIONS)]
        try:
            words = [word for line in lines for word in shlex.split(line)]
            pairs = list(zip(words[::2], words[1::2], strict=True))
            seeds = next((int(value) for option, value in pairs if option == "--seeds"), None)
        except ValueError:
            raise UsageError(f"{root}: campaign.json: patterns: no options of 'bakeoff run': {lines}") from None
        # Other settings or names mean other runs: who gives one of these means none of those of then.
        free = {"--set", "-k"} if not given.set and given.only is None else set()
        free |= {"--seeds"} if given.seeds is None else set()
        free |= {"--trace"} if not given.trace else set()
        free |= {"--capture"} if not given.capture else set()
        kept = {option: [value for name, value in pairs if name == option] for option in free}
        options = _Options(
            given.set or kept.get("--set", []),
            next(iter(kept.get("-k", [])), given.only),
            seeds if given.seeds is None else given.seeds,
            given.trace or kept.get("--trace", []),
            given.capture or kept.get("--capture", []),
        )
        engine = ["--engine", record.engine] if bare and record.engine != "sim" else []
        taken = [word for option, value in pairs if option in free for word in (option, value)]
        return cls(patterns, record.engine, options, [*(patterns if bare else []), *taken, *engine])

    def tell(self, *, quiet: bool) -> None:
        """Say what was taken."""
        if self.taken and not quiet:
            typer.echo(f"as the campaign was begun: {printable(shlex.join(self.taken))}", err=True)


def _check_taken(root: Path, begun: _Begun, set_: list[str] | None, runs: list[Run]) -> None:
    """BakeoffError if campaign.json, which may be somebody else's, and not the user, names what would be executed."""
    from bakeoff.scenario import parse_settings
    from bakeoff.scenario.python_cc import executed, split
    from bakeoff.scenario.settings import typed

    code = executed(runs)
    patterns = any(pattern in begun.taken for pattern in begun.patterns)
    if code and (patterns or any(split(word) for word in typed(parse_settings(set_ or ())))):
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
