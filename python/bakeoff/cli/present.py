"""What came out, as a table; and which results are meant, for all commands that read some."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.errors import BakeoffError

if TYPE_CHECKING:
    from bakeoff.results import Result

Results = Annotated[
    str | None,
    typer.Argument(
        metavar="[RESULTS]",
        help="A results folder, of a campaign or one run; or a glob on suite/scenario/run in the latest campaign.",
        show_default="the latest campaign",
    ),
]


class Format(StrEnum):
    """How a table is written."""

    terminal = "terminal"
    markdown = "markdown"
    csv = "csv"
    json = "json"


def table(
    results: Results = None,
    format_: Annotated[Format, typer.Option("--format", "-f", help="For people or for programs.")] = Format.terminal,
    reference: Annotated[
        str | None, typer.Option(help="Whose numbers stand beside.", show_default="what the suite published")
    ] = None,
) -> None:
    """Show what came out of the runs, beside what was published.

    \b
    Examples:
      bakeoff table                                  the latest campaign
      bakeoff table results/fairness --format markdown > fairness.md
      bakeoff table 'l4s-tests/s6*pie*' -f json | jq .
    """
    from bakeoff.present import tables

    _, chosen = chosen_results(results)
    warn_of_epochs(chosen)
    sys.stdout.write(tables.render(chosen, format=format_.value, reference=reference))


def chosen_results(results: str | None) -> tuple[Path, list[Result]]:
    """The campaign's folder and the runs that are meant; half-written ones are reported and left out."""
    from fnmatch import fnmatchcase

    from bakeoff import campaign
    from bakeoff.campaign.place import LATEST
    from bakeoff.results import survey

    named = results is not None and Path(results).is_dir()
    if results is not None and not named and not LATEST.is_dir():
        raise BakeoffError(f"{results}: no such results folder, and no campaign yet whose runs could have such a name")
    root = Path(results or "") if named else campaign.latest()
    found = survey(root)
    for complaint in found.complaints():
        typer.echo(f"bakeoff: {complaint}", err=True)
    chosen = found.results
    if results is not None and not named:
        chosen = [result for result in chosen if fnmatchcase(result.key, results.rstrip("/") + "*")]
        if not chosen:
            raise BakeoffError(f"'{results}' is no folder, and no run in {root} has such a name")
    if not chosen and found.unreadable:
        raise BakeoffError(f"{root}: holds nothing that can be read")
    if not chosen:
        raise BakeoffError(f"{root}: holds no results; make some: bakeoff run 'l4s-tests/s6*' --out {root}")
    return root, chosen


def warn_of_epochs(results: list[Result]) -> None:
    """Say on standard error if numbers of different model epochs are about to stand side by side."""
    from bakeoff.results import epoch_warning

    warning = epoch_warning(results)
    if warning is not None:
        typer.echo(f"bakeoff: {warning}", err=True)
