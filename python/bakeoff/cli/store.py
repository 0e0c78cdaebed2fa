"""store: what is kept of runs that were done, so that none is done twice."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bakeoff.cli.options import Json
from bakeoff.errors import BakeoffError


def store(
    place: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH|URL", help="A store.", show_default="BAKEOFF_STORE, or your own in the cache folder"
        ),
    ] = None,
    *,
    empty: Annotated[bool, typer.Option("--empty", help="Remove all that is stored there.")] = False,
    as_json: Json = False,
) -> None:
    """Show how many runs the store keeps, and what they take; or empty it.

    run, duel and verify take a run from the store if it was done before, and keep new ones there. Results folders stay
    whole when the store is emptied.

    \b
    Examples:
      bakeoff store
      bakeoff store --empty
      bakeoff store sftp://lab/srv/bakeoff-store --json
    """
    from bakeoff.campaign.store import opened
    from bakeoff.campaign.store_local import LocalStore, limit
    from bakeoff.cli.results import size_in_words

    there = opened(place)
    if there is None:
        raise BakeoffError("store: 'none' is no store; expected a path or a URL")
    content = there.empty() if empty else there.content()
    most = limit() if isinstance(there, LocalStore) else None
    if as_json:
        typer.echo(json.dumps({"store": there.name, "runs": content.runs, "bytes": content.bytes, "limit": most}))
        return
    runs = f"{content.runs} run{'s' * (content.runs != 1)}, {size_in_words(content.bytes)}"
    bound = f" of at most {size_in_words(most)}" if most is not None and not empty else ""
    typer.echo(f"{there.name}: {'removed ' * empty}{runs}{bound}")
