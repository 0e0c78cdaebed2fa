"""serve: the results as pages that follow a campaign."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli import complete
from bakeoff.errors import UsageError


def serve(
    results: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RESULTS]",
            help="Results folder, possibly empty.",
            show_default="the latest campaign",
            autocompletion=complete.results,
        ),
    ] = None,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port on localhost; 0 picks a free one.")] = 8000,
) -> None:
    """Serve the pages of 'site' on this machine, live.

    The pages are those of 'bakeoff site', plus the progress of the campaign. Results are read only, and other machines
    have no access. Ctrl-C stops it.

    \b
    Examples:
      bakeoff serve                            the latest campaign, also while it runs
      bakeoff serve results/fairness --port 0
    """
    import tempfile

    from bakeoff import campaign
    from bakeoff.campaign.signals import unwinding
    from bakeoff.cli.progress import patience
    from bakeoff.site.live import Live
    from bakeoff.site.server import Server

    root = campaign.latest() if results is None else results
    if not root.is_dir():
        raise UsageError(f"{root}: no such results folder")
    with unwinding(), tempfile.TemporaryDirectory(prefix="bakeoff-serve-") as private:
        live = Live(root.resolve(), Path(private).resolve())
        with Server(live, port) as server:
            with patience("reading"):
                live.news()
            typer.echo(f"{server.url} shows {root}; Ctrl-C stops it")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                typer.echo("", err=True)
