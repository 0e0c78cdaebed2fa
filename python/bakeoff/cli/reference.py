"""`bakeoff reference add|list`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.command import Group, add


def add_(
    table: Annotated[Path, typer.Argument(help="CSV file with a number per line.", show_default=False)],
    *,
    scenario: Annotated[str, typer.Option(metavar="FILE|NAME", help="Scenario of the runs.", show_default=False)],
    source: Annotated[
        str, typer.Option(metavar="TEXT", help="Who measured this, of lines without a source.", show_default=False)
    ] = "",
    licence: Annotated[str, typer.Option(metavar="TEXT", help="Licence of the numbers.", show_default=False)] = "",
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The reference.", show_default="references/ and TABLE's name")
    ] = None,
) -> None:
    """Make a reference from somebody's table of numbers.

    Columns: run, flow, measure, value, unit; optional: sd, n, seed, source, licence. An empty flow stands for a number
    of the whole run, a pattern such as 'prague*' for the sum of rates.

    \b
    Examples:
      bakeoff reference add cells.csv --scenario mine.yaml --source "Doe and others, 2025" --licence CC-BY-4.0
      bakeoff run mine.yaml --out results/mine
      bakeoff compare results/mine references/cells.csv
      bakeoff table results/mine --reference references/cells.csv
    """
    from bakeoff import references
    from bakeoff.scenario import catalog

    to = Path("references", table.name) if out is None else out
    lines = references.add(table, catalog.select(scenario), to, source=source, licence=licence)
    runs = {(line.scenario, line.run) for line in lines}
    noise = sum(line.sd is not None for line in lines)
    typer.echo(f"{to}: {len(lines)} numbers of {len(runs)} runs, {noise} with the scatter of trials")
    typer.echo(f"next:    bakeoff compare RESULTS {to}")


def list_() -> None:
    """List the references of the catalog."""
    from bakeoff import references
    from bakeoff.cli.output import print_table
    from bakeoff.text.columns import Column

    groups: dict[str, list[references.Reference]] = {}
    for line in references.load():
        groups.setdefault(line.reference, []).append(line)
    print_table(
        [
            Column("name", [*groups], text=True),
            Column("numbers", [str(len(of)) for of in groups.values()]),
            Column("runs", [str(len({(line.scenario, line.run) for line in of})) for of in groups.values()]),
            Column("with noise", [str(sum(line.sd is not None for line in of)) for of in groups.values()]),
            Column("measures", [", ".join(sorted({line.measure for line in of})) for of in groups.values()], text=True),
        ]
    )


class _Compare(Group):
    section = "Compare"


app = typer.Typer(cls=_Compare, help="Numbers of other people: add, list.", no_args_is_help=True)
add(app, add_, list_)
