"""push, pull: results taken elsewhere and back."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import Only
from bakeoff.cli.results import size_in_words
from bakeoff.cli.table import chosen_results
from bakeoff.errors import UsageError, printable

if TYPE_CHECKING:
    from bakeoff.results.remote import Copied, Tell

Url = Annotated[
    str,
    typer.Argument(
        metavar="URL",
        help="Campaign folder: a path, sftp://HOST/FOLDER, ssh://HOST/FOLDER or s3://BUCKET/FOLDER.",
        show_default=False,
    ),
]
Captures = Annotated[bool, typer.Option(help="Copy packet captures, which may be large.")]
Update = Annotated[bool, typer.Option("--update", help="Copy runs that are missing or differ at the destination.")]


def push(
    results: Annotated[
        str,
        typer.Argument(
            metavar="RESULTS",
            help="Folder of a campaign or a run, or a glob on suite/scenario/run in the latest campaign.",
            show_default=False,
            autocompletion=complete.results,
        ),
    ],
    url: Url,
    *,
    only: Only = None,
    captures: Captures = True,
    update: Update = False,
) -> None:
    """Copy results to another folder, machine or store.

    An existing destination is an error without --update. --update copies incomplete runs again. sftp, ssh and s3 need
    pip install 'bakeoff[remote]'. Credentials come from ~/.ssh/config, or from AWS_PROFILE, AWS_ENDPOINT_URL and the
    other AWS variables.

    \b
    Examples:
      bakeoff push results/fairness /mnt/usb/fairness
      bakeoff push results/fairness sftp://lab/srv/results/fairness --no-captures
      bakeoff push 'l4s-tests/s6*pie*' s3://our-results/pie
      bakeoff push results/fairness s3://our-results/fairness --update     only changes
    """
    from bakeoff.results import remote

    _, chosen = chosen_results(results, only)
    with _watching("pushing") as tell:
        copied = remote.push(chosen, url, captures=captures, update=update, tell=tell)
    typer.echo(f"{_counts(copied)} to {remote.printable_url(url)}")


def pull(
    url: Url,
    folder: Annotated[
        Path | None,
        typer.Argument(help="Destination folder.", show_default="results/ and the URL's last part"),
    ] = None,
    *,
    only: Only = None,
    captures: Captures = True,
    update: Update = False,
) -> None:
    """Copy a campaign from another folder, machine or store.

    The folder appears when the copy is complete. Incomplete runs are skipped. Links, and names that lead out of the
    folder, are refused.

    \b
    Examples:
      bakeoff pull sftp://lab/srv/results/fairness
      bakeoff pull s3://our-results/fairness results/theirs --no-captures
      bakeoff pull sftp://lab/srv/results/fairness -k pie
      bakeoff pull sftp://lab/srv/results/fairness --update     only changes
    """
    from bakeoff.campaign import lock
    from bakeoff.results import remote
    from bakeoff.results.named import is_named

    target = folder or _folder_for(url)
    lock.refuse_written(target)
    with _watching("pulling") as tell:
        copied = remote.pull(
            url, target, captures=captures, update=update, wanted=lambda place: is_named(place, only), tell=tell
        )
    if copied.left_out:
        more = f" and {len(copied.left_out) - 1} more" if len(copied.left_out) > 1 else ""
        typer.echo(f"bakeoff: skipped, incomplete at the source: {copied.left_out[0]}{more}", err=True)
    if not copied.runs and not copied.same:
        raise typer.Exit(1)
    typer.echo(f"{_counts(copied)} from {remote.printable_url(url)}")
    typer.echo(f"results: {target}")


def _folder_for(url: str) -> Path:
    from bakeoff.campaign.locations import RESULTS, TAKEN

    name = re.split(r"[/\\]", url.rstrip("/"))[-1]
    if name in ("", *TAKEN) or name.startswith(".") or not name.isprintable() or ":" in name:
        raise UsageError(f"'{printable(name)}': invalid folder name in {RESULTS}/; expected FOLDER after the URL")
    return RESULTS / name


def _counts(copied: Copied) -> str:
    runs = f"{copied.runs} run{'s' * (copied.runs != 1)} ({size_in_words(copied.bytes)})"
    return f"{runs} copied" + (f", {copied.same} unchanged," if copied.same else "")


@contextmanager
def _watching(what: str) -> Iterator[Tell]:
    """Let SIGTERM and SIGHUP clean up, and show a bar on a terminal once two seconds have passed."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from bakeoff.campaign.signals import unwinding
    from bakeoff.cli import output

    # Neither a form nor markup: a name may have braces and brackets.
    named = TextColumn("{task.description}", markup=False)
    columns = (named, BarColumn(), MofNCompleteColumn(), TextColumn("runs,"), TimeRemainingColumn())
    bar = Progress(*columns, TextColumn("left"), console=output.console(err=True), transient=True)
    task = bar.add_task(what)
    started = time.monotonic()

    def tell(copied: int, total: int) -> None:
        if time.monotonic() - started > 2 and bar.console.is_terminal:
            bar.start()
        bar.update(task, completed=copied, total=total)

    with unwinding():
        try:
            yield tell
        finally:
            if bar.live.is_started:
                bar.stop()
