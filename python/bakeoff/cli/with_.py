"""with: a command with the congestion controls of a crate."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer


def with_(
    crate: Annotated[Path, typer.Argument(help="Folder of a crate with congestion controls.", show_default=False)],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="COMMAND…", help="Command of bakeoff, with its words.")
    ] = None,
) -> None:
    """Run a command with the congestion controls of a Rust crate.

    Compiles the simulator and the crate, a copy of examples/rust-cc, into one extension; what did not change is not
    compiled again. Without a command it prints the setting for the shell.

    \b
    Examples:
      bakeoff with ./rust-cc evaluate scalable --quick
      bakeoff with ./rust-cc duel 'scalable ai 50' cubic
      eval "$(bakeoff with ./rust-cc)"     for all later commands and Python
    """
    from bakeoff.crate import build
    from bakeoff.extension import VARIABLE

    extension = str(build(crate))
    if not command:
        typer.echo(f"export {VARIABLE}={shlex.quote(extension)}")
        return
    sys.stdout.flush()
    os.execve(sys.executable, [sys.executable, "-m", "bakeoff", *command], os.environ | {VARIABLE: extension})  # noqa: S606 (the words are the user's own command)
