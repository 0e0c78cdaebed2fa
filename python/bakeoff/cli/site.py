"""site: the results as a folder of pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from bakeoff.cli.options import Only
from bakeoff.cli.table import Results

_TOLD: Final = 5
"""Runs that cannot be read which are named."""


def site(
    results: Results = None,
    *,
    only: Only = None,
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Destination folder; an existing site is replaced.")
    ] = Path("site"),
    downloads: Annotated[
        bool,
        typer.Option(help="Include each run's files: samples (Parquet, CSV), logs, captures."),
    ] = True,
) -> None:
    """Write results as a folder of pages for any browser.

    Open index.html in the folder, which is self-contained.

    \b
    Examples:
      bakeoff site                                      the latest campaign, to site/
      bakeoff site results/fairness --out fairness-site
      bakeoff site 'l4s-tests/s6*' --out s6             some runs of the latest campaign
      bakeoff site --no-downloads                       without the files of runs: a quarter of the size
    """
    from bakeoff import campaign
    from bakeoff.campaign.signals import unwinding
    from bakeoff.cli.progress import patience
    from bakeoff.cli.table import chosen_results
    from bakeoff.site import claims_page
    from bakeoff.site.site_contents import gather
    from bakeoff.site.site_folder import check_place, write

    root, chosen = chosen_results(results, only)
    check_place(out, root)
    with unwinding():
        with patience("measuring"):
            contents = gather(root, chosen)
        with patience("deciding claims"):
            claims = claims_page.gather(contents, campaign.cores())
        with patience("writing pages") as tell:
            broken = write(contents, out, claims, jobs=campaign.cores(), downloads=downloads, tell=tell)
    for why in broken[:_TOLD]:
        typer.echo(f"bakeoff: unreadable run, noted on its page: {why}", err=True)
    if len(broken) > _TOLD:
        typer.echo(f"bakeoff: and {len(broken) - _TOLD} more", err=True)
    typer.echo(out / "index.html")
