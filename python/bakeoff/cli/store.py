"""store: the cache of finished runs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.options import Json
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.campaign.store import Content


def store(
    place: Annotated[
        str | None,
        typer.Argument(
            metavar="PATH|URL", help="Store location.", show_default="BAKEOFF_STORE, or one in the user's cache folder"
        ),
    ] = None,
    *,
    empty: Annotated[bool, typer.Option("--empty", help="Remove all cached runs, with confirmation.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """Show or empty the cache of finished runs.

    run, duel and verify reuse cached runs and add new ones. Emptying the store does not affect results folders. It
    removes only undamaged runs of this user; at a URL, it reads all of them to verify that.

    \b
    Examples:
      bakeoff store
      bakeoff store --empty
      bakeoff store /srv/bakeoff-store --empty --yes     without confirmation
      bakeoff store sftp://lab/srv/bakeoff-store --json
    """
    from bakeoff.campaign.store import opened
    from bakeoff.campaign.store_local import LocalStore, limit
    from bakeoff.cli.results import check_sure, size_in_words

    there = opened(place)
    if there is None:
        raise UsageError("store: 'none' means no store; expected a path or a URL")
    content = there.content()
    left = 0
    if empty:
        if not yes and content.runs:
            check_sure("store --empty", [f"{there.name}: {_in_words(content)}"])
        had, content = content, there.empty()
        left = had.runs - content.runs
    most = limit() if isinstance(there, LocalStore) else None
    if as_json:
        document = {"store": there.name, "runs": content.runs, "bytes": content.bytes, "limit": most}
        typer.echo(json.dumps(document | ({"left": left} if empty else {})))
        return
    bound = f" of at most {size_in_words(most)}" if most is not None and not empty else ""
    typer.echo(f"{there.name}: {'removed ' * empty}{_in_words(content)}{bound}")
    if left:
        typer.echo(f"bakeoff: kept {left} runs of other users or damaged; remove them by hand", err=True)


def _in_words(content: Content) -> str:
    from bakeoff.cli.results import size_in_words

    return f"{content.runs} run{'s' * (content.runs != 1)}, {size_in_words(content.bytes)}"
