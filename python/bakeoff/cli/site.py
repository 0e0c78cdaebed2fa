"""site: the results as a folder of pages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.present import Results


def site(
    results: Results = None,
    *,
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="Where to; a site that is there is replaced.")] = Path(
        "site"
    ),
) -> None:
    """Write the results as a folder of pages that any browser shows, with no server and no network.

    Open index.html in it. The folder can be passed on, as an archive or on a stick.

    \b
    Examples:
      bakeoff site                                      the latest campaign, into site/
      bakeoff site results/fairness --out fairness-site
      bakeoff site 'l4s-tests/s6*' --out s6             some runs of the latest campaign
    """
    from bakeoff import campaign
    from bakeoff.campaign.ending import unwinding
    from bakeoff.cli.present import chosen_results
    from bakeoff.cli.progress import patience
    from bakeoff.present.site import claims_page
    from bakeoff.present.site.data import gather
    from bakeoff.present.site.write import check_place, write

    root, chosen = chosen_results(results)
    check_place(out, root)
    with unwinding():
        with patience("measuring"):
            contents = gather(root, chosen)
        with patience("deciding claims"):
            claims = claims_page.gather(contents, campaign.cores())
        with patience("writing pages") as tell:
            write(contents, out, claims, tell)
    typer.echo(out / "index.html")
