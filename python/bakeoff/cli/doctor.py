"""`bakeoff doctor`."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="one JSON array instead of the table")] = False,
) -> None:
    """Show what this machine can run, what is missing for which engine, and the package to install."""
    from bakeoff.doctor import report

    checks = report()
    if as_json:
        typer.echo(json.dumps([check.to_json() for check in checks], indent=2))
        return
    for check in checks:
        line = f"{check.status:<8} {check.area:<7} {check.name}: {check.detail}"
        typer.echo(line + (f"  -> {check.install}" if check.install else ""))
