"""`bakeoff doctor`."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Report what this machine can run and what is missing."""
    from bakeoff.cli.output import say
    from bakeoff.doctor import ENGINES, install_all, lacking, origin, report

    checks = report()
    if as_json:
        typer.echo(json.dumps([check.to_json() for check in checks], indent=2))
        return
    typer.echo(origin())
    for area in dict.fromkeys(check.area for check in checks):
        missing = lacking(checks, area)
        verdict = f"cannot run without: {', '.join(missing)}" if missing else "can run"
        typer.echo(f"\nengine {area}: {verdict}" if area in ENGINES else f"\n{area}")
        for check in checks:
            if check.area == area:
                say(f"  {check.status:<8} {check.name}: {check.detail}", indent=11)
                if check.install:
                    say(f"  {'':<8} -> {check.install}", indent=14)
    if command := install_all(checks):
        typer.echo(f"\nInstall all missing packages: {command}")
