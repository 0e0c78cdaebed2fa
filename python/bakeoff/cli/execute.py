"""Runs with progress on standard error, for every command that executes runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bakeoff.cli.options import tell_warnings
from bakeoff.errors import UsageError, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from bakeoff.campaign import Done, Execution, Report
    from bakeoff.campaign.worker import Also
    from bakeoff.cli.progress import Detail
    from bakeoff.results import Request
    from bakeoff.scenario import Run


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
    reason: Callable[[str], str] | None = None,
) -> Report:
    """Do the runs with progress on standard error; a Ctrl-C ends with 130 and the command that continues (`again`).

    `expected` gives how many runs there will be with those that `more` gives, as far as that is known. With
    `reason`, which makes one line of an error, a run that fails is a finding of the caller, and not told at the end.
    """
    from bakeoff import campaign, results
    from bakeoff.cli import output
    from bakeoff.cli.progress import progress

    tell_warnings(runs)
    console = output.console(err=True)

    def waiting() -> None:
        typer.echo("interrupted: waiting for active runs; Ctrl-C again discards them", err=True)

    def ended(done: Done) -> None:
        shown.ended(done if reason is None or done.error is None else replace(done, error=reason(done.error)))

    def started(dashboard: str) -> None:
        typer.echo(f"dask: dashboard at {dashboard}", err=True)

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
                watch=campaign.Watch(on_start=shown.started, on_done=ended, on_interrupt=waiting, on_cluster=started),
            )
    except (KeyboardInterrupt, SystemExit) as interrupt:
        whole = len(results.scan(root)) if root.is_dir() else 0
        typer.echo(f"interrupted: {whole} of {total} runs finished in {root}", err=True)
        if again is not None:
            typer.echo(f"continue with: {again}", err=True)
        if isinstance(interrupt, SystemExit):
            raise
        raise typer.Exit(130) from None
    for done in report.failed if reason is None else ():
        typer.echo(f"failed: {done.key}: {done.error} ({done.path})", err=True)
    if report.not_begun:
        typer.echo(f"stopped after a failure: {report.not_begun} of {total} runs not started", err=True)
    if report.not_stored:
        typer.echo(printable(f"bakeoff: warning: not all runs were cached in the store: {report.not_stored}"), err=True)
    return report


def tell_taken(report: Report) -> None:
    """Print the number of cached runs on standard error."""
    if report.taken:
        typer.echo(f"cached: {len(report.taken)} of {len(report.runs)} runs", err=True)


def root_of(out: Path | None, name: str | None, *, resume: bool) -> Path:
    """The folder that the results go to; with `resume` the latest where none is named."""
    from bakeoff import campaign
    from bakeoff.campaign.locations import RESULTS, TAKEN

    if out is not None and name is not None:
        raise UsageError("--out and --name: mutually exclusive")
    if name is not None:
        if Path(name).name != name or not name.isprintable() or name.startswith(".") or name in ("", *TAKEN):
            raise UsageError(f"--name: invalid folder name {printable(name)!r}; expected for example 'fairness'")
        return RESULTS / name
    if out is not None:
        return out
    return campaign.latest() if resume else campaign.new_folder()


def duration(seconds: float) -> str:
    """For people."""
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"


def counts(report: Report) -> str:
    """How many runs ended in which way, for people."""
    done = len(report.runs) - len(report.skipped) - len(report.failed) - len(report.taken)
    words = {
        "done": done,
        "cached": len(report.taken),
        "skipped": len(report.skipped),
        "failed": len(report.failed),
    }
    parts = [f"{count} {word}" for word, count in words.items() if count]
    return f"{len(report.runs)} runs: {', '.join(parts)}"
