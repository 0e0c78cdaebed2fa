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
            help="A results folder; it may still be empty.",
            show_default="the latest campaign",
            autocompletion=complete.results,
        ),
    ] = None,
    *,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Where to listen on this machine; 0 takes any.")] = 8000,
) -> None:
    """Serve the pages of 'site' on this machine, live.

    The pages are those of 'bakeoff site', with the progress of the campaign. Nothing is written to the results, and no
    other machine can ask. Ctrl-C ends it.

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
            typer.echo(f"{server.url} shows {root}; Ctrl-C ends it")
            try:
                server.serve_forever()
            except KeyboardInterrupt:
                typer.echo("", err=True)
