"""packetdrill: the kernel's own test scripts against the simulated TCP."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.options import Json
from bakeoff.cli.output import on_one_line
from bakeoff.errors import UsageError

_LARGEST = 16 << 20
"""Bytes of a script; the longest of the kernel's own has 20 kB."""
_VERDICTS = ("passed", "failed", "not_applicable", "unreadable")


def packetdrill(
    path: Annotated[Path, typer.Argument(help="Script, or folder of *.pkt scripts.", show_default=False)],
    *,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show every packet and call.")] = False,
    as_json: Json = False,
) -> None:
    """Run packetdrill scripts against the simulated TCP.

    Exits with 1 if a script failed, with 2 if one cannot be read.

    \b
    Examples:
      bakeoff packetdrill linux/tools/testing/selftests/net/packetdrill
      bakeoff packetdrill tcp_slow_start_slow-start-after-idle.pkt --verbose
      bakeoff packetdrill gtests/net/tcp --json | jq '.scripts[] | select(.verdict == "failed")'
    """
    from bakeoff import _sim, files

    reports = []
    for file in _scripts(path):
        try:
            report = json.loads(_sim.packetdrill(files.read(file, _LARGEST).decode()))
        except OSError as error:
            report = {"verdict": "unreadable", "reason": error.strerror, "log": []}
        except ValueError as error:
            report = {"verdict": "unreadable", "reason": str(error), "log": []}
        if not verbose:
            del report["log"]
        reports.append({"script": str(file), **report})
    counts = {verdict: sum(report["verdict"] == verdict for report in reports) for verdict in _VERDICTS}
    if as_json:
        typer.echo(json.dumps({**counts, "scripts": reports}, indent=2))
    else:
        for report in reports:
            _show(report)
        applicable = counts["passed"] + counts["failed"]
        typer.echo(
            f"{counts['passed']} of {applicable} applicable scripts passed, {counts['failed']} failed; "
            f"{counts['not_applicable']} not applicable, {counts['unreadable']} unreadable"
        )
    if counts["unreadable"]:
        raise typer.Exit(2)
    if counts["failed"]:
        raise typer.Exit(1)


def _scripts(path: Path) -> list[Path]:

    if path.is_file():
        return [path]
    if not path.is_dir():
        raise UsageError(f"{path}: no such file or folder; expected a packetdrill script or a folder")
    found = sorted(path.rglob("*.pkt"))
    if not found:
        raise UsageError(f"{path}: no *.pkt file found; expected packetdrill scripts")
    return found


def _show(report: dict[str, object]) -> None:
    script = on_one_line(report["script"])
    match report["verdict"]:
        case "passed":
            typer.echo(f"passed          {script}")
        case "failed":
            typer.echo(f"FAILED          {script}:{report['line']}")
            typer.echo(f"  expected      {report['expected']}")
            typer.echo(f"  got           {report['got']}")
        case "not_applicable":
            typer.echo(f"not applicable  {script}:{report['line']}: {report['reason']}")
        case _:
            typer.echo(f"UNREADABLE      {script}: {report['reason']}")
    log = report.get("log")
    if isinstance(log, list):
        for line in log:
            typer.echo(f"  {line}")
