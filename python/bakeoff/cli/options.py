"""Arguments and options that several commands take, and what completes them in a shell."""

from typing import Annotated

import typer

from bakeoff.errors import BakeoffError


def complete_scenario(incomplete: str) -> list[str]:
    """The names suite/scenario that begin so; none if the catalog cannot be read: a completion must not fail."""
    from bakeoff.scenario import catalog

    try:
        names = [f"{entry.suite}/{entry.scenario}" for entry in catalog.scenarios()]
    except BakeoffError:
        return []
    return [name for name in names if name.startswith(incomplete)]


def complete_engine(incomplete: str) -> list[str]:
    """The engines that begin so."""
    from bakeoff.engines import MODULES

    return [name for name in MODULES if name.startswith(incomplete)]


Engine = Annotated[str, typer.Option(help="What does the runs.", autocompletion=complete_engine)]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Processes at a time.", show_default="one per core")
]
Seeds = Annotated[
    int, typer.Option(min=1, help="Repetitions of every run, with seeds 1 to N, the same in all variants.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
