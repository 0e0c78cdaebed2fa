"""import: recordings and captures as a results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Data files of Flent, iperf3 (-J, --json-stream) or irtt, or captures (pcap, pcapng).",
            show_default=False,
        ),
    ],
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Results folder to create.",
            show_default="a new folder in results/",
        ),
    ] = None,
) -> None:
    """Convert recordings and captures into a results folder.

    All commands that read results accept it.

    \b
    Examples:
      bakeoff import rrul-2026-11-23.flent.gz --out results/home
      bakeoff import recorded/*.flent.gz
      bakeoff import iperf3.json
      bakeoff import capture.pcapng
    """
    from bakeoff.campaign.signals import unwinding
    from bakeoff.captures.result_folder import read
    from bakeoff.cli.progress import patience
    from bakeoff.errors import printable
    from bakeoff.imports.folder import write_all

    warnings: list[str] = []
    with unwinding(), patience("importing") as tell:
        root = write_all(files, out, tell, warnings.append, read)
    for warning in warnings:
        typer.echo(printable(f"bakeoff: warning: {warning}"), err=True)
    typer.echo(root)
