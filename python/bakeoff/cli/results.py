"""results, logs, rm: what is stored, what a run said, and its removal."""

from __future__ import annotations

import sys
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import Format, FormatOption, Json, Only
from bakeoff.cli.output import print_rows
from bakeoff.cli.table import OneRun, chosen_run
from bakeoff.errors import UsageError, printable

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.text.markup import Format as Form


def results(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Campaign folder, to list its runs.",
            show_default="the campaigns in results/",
            autocompletion=complete.results,
        ),
    ] = None,
    *,
    status: Annotated[
        Literal["ok", "failed"] | None,
        typer.Option(help="Only runs with this status, or campaigns that have such runs."),
    ] = None,
    only: Only = None,
    format_: FormatOption = Format.terminal,
    as_json: Json = False,
) -> None:
    """List stored campaigns, or the runs of one.

    \b
    Examples:
      bakeoff results                            the campaigns in results/
      bakeoff results results/latest             the runs of the latest one
      bakeoff results --status failed            campaigns with failed runs
      bakeoff results results/latest -k pie --json
    """
    rows = _campaigns(status, only) if folder is None else _runs(folder, status, only)
    form: Form = "json" if as_json else format_.value
    if form in ("json", "csv"):
        whole = [
            {key: " ".join(value) if key == "what" and value else value for key, value in row.items()} for row in rows
        ]
        print_rows("", whole, [], form)
        return
    if not rows:
        typer.echo("no matching results", err=True)
        return
    from bakeoff.text.columns import ALWAYS, Column

    cells = [{key: _cell(key, value) for key, value in row.items()} for row in rows]
    right = {"runs", "failed", "half-written", "seconds", "size"}
    columns = [
        Column(key, [row[key] for row in cells], _KEPT.get(key, ALWAYS), text=key not in right) for key in cells[0]
    ]
    print_rows("campaigns" if folder is None else str(folder), rows, columns, form)


_KEPT: Final = {"note": 2, "half-written": 3, "date": 4, "engine": 5, "size": 6}
"""By the name of a column when it goes where there is no room; others always stay."""


def logs(
    run: OneRun = None,
    *,
    only: Only = None,
) -> None:
    """Print the logs of a run, and why it failed.

    \b
    Examples:
      bakeoff logs results/latest/l4s-tests/s6-rfc3168/ns-prague-vs-cubic-ecn-pie-50Mbit-20ms
      bakeoff logs '*s6*cubic-ecn-pie-*'
    """
    from bakeoff import files
    from bakeoff.results import layout

    result = chosen_run(run, only)
    if result.record.error is not None:
        typer.echo(f"error: {result.record.error}")
    for note in result.record.effective:
        typer.echo(f"in effect: {note}")
    for name in (layout.SETUP_LOG, layout.TEARDOWN_LOG, "console.log"):
        try:
            text = files.read(result.path / name, files.MOST_TEXT, follow=False).decode(errors="backslashreplace")
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UsageError(f"{result.path / name}: cannot be read: {error.strerror}") from None
        typer.echo(f"--- {name}\n{text.rstrip()}")


def rm(
    folders: Annotated[
        list[Path], typer.Argument(help="Folders of campaigns or runs.", autocompletion=complete.results)
    ],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Remove campaigns or runs, with confirmation.

    Other folders are refused.

    \b
    Examples:
      bakeoff rm results/2026-11-21T22-35-10
      bakeoff rm results/duels/* --yes
    """
    from bakeoff.campaign import lock
    from bakeoff.results import storage

    folders = [path for path in folders if not (path.is_symlink() and len(folders) > 1)]
    kinds = [storage.removable(path) for path in folders]
    for path in folders:
        lock.refuse_written(path)
    if not yes:
        pairs = zip(folders, kinds, strict=True)
        check_sure("rm", [f"{kind} {path}, {size_in_words(storage.size(path))}" for path, kind in pairs])
    for path in folders:
        lock.refuse_written(path)  # it may have begun while the user thought
        storage.remove(path)


def check_sure(command: str, listed: list[str]) -> None:
    """Ask whether what is listed is to be removed; end with 1 if not. BakeoffError where there is no terminal."""
    for line in listed:
        typer.echo(line, err=True)
    if not sys.stdin.isatty():
        raise UsageError(f"{command}: cannot ask for confirmation, standard input is not a terminal; expected --yes")
    if not typer.confirm("Remove them?", err=True):
        raise typer.Exit(1)


def _campaigns(status: str | None, only: str | None) -> list[dict[str, Any]]:
    from bakeoff.campaign.locations import ADVICE, DUELS, RESULTS, VERIFY
    from bakeoff.results import storage

    rows = []
    below = (DUELS, ADVICE, VERIFY)
    several = [storage.campaigns(RESULTS, leave=below), *map(storage.campaigns, below)]
    for stored in chain.from_iterable(several):
        chosen = _chosen(stored.content.results, status, only)
        if (status or only) and not chosen:
            continue
        record = stored.record
        rows.append(
            {
                "campaign": str(stored.path),
                "date": record.provenance.date.isoformat(timespec="minutes") if record else None,
                "engine": record.engine if record else None,
                "runs": len(stored.content.results),
                "failed": sum(not result.ok for result in stored.content.results),
                "half-written": len(stored.content.half_written),
                "size": stored.bytes,
                "what": record.lines() if record else None,
                "note": record.provenance.note if record else None,
            }
        )
    return rows


def _runs(folder: Path, status: str | None, only: str | None) -> list[dict[str, Any]]:
    from bakeoff.cli.progress import patience
    from bakeoff.results import storage, survey

    with patience("reading") as tell:
        content = survey(folder, tell)
    for complaint in content.complaints():
        typer.echo(f"bakeoff: {complaint}", err=True)
    with patience("counting bytes"):
        return [
            {
                "run": result.key,
                "status": result.record.status,
                "engine": result.record.engine,
                "seconds": round(result.record.wall_s, 2),
                "size": storage.size(result.path),
                "error": result.record.error,
            }
            for result in _chosen(content.results, status, only)
        ]


def _chosen(found: list[Result], status: str | None, only: str | None) -> list[Result]:
    from bakeoff.results.named import is_named

    return [result for result in found if is_named(result.key, only) and status in (None, result.record.status)]


def _cell(key: str, value: object) -> str:
    if value is None:
        return ""
    if key == "size" and isinstance(value, int):
        return size_in_words(value)
    if isinstance(value, list | tuple):
        more = f" and {len(value) - _NAMED} more" if len(value) > _NAMED else ""
        return printable(" ".join(value[:_NAMED]) + more).replace("\n", " ")
    return printable(str(value)).replace("\n", " ")


_NAMED: Final = 3
"""Of more patterns than these the first are named."""


def size_in_words(count: int) -> str:
    """Bytes with a unit of the power of 1000 that keeps them below 1000."""
    number = float(count)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
