"""diff: run by run, which numbers of two campaigns differ."""

from __future__ import annotations

from typing import Annotated

import typer

from bakeoff.cli import complete
from bakeoff.cli.compare import bounds_of
from bakeoff.cli.options import Json, Only


def diff(
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            help="Folder of a campaign or a run.",
            show_default=False,
            autocompletion=complete.results,
        ),
    ],
    b: Annotated[
        str,
        typer.Argument(
            metavar="B",
            help="Folder of another campaign or run.",
            show_default=False,
            autocompletion=complete.results,
        ),
    ],
    *,
    only: Only = None,
    tolerance: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE=X",
            help="Ignore differences of a measure up to |ln(A / B)| = X: goodput, tcp_delay_mean, "
            "tcp_delay_p99, little_delay_mean, little_delay_p99, marks, drops; repeatable.",
            show_default="0 for each",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List every number that differs between two campaigns.

    Exits with 1 if there are any.

    \b
    Examples:
      bakeoff diff results/before results/after
      bakeoff diff results/before results/after --tolerance goodput=0.01 --tolerance marks=0.1
    """
    import json

    from bakeoff.api import do_compare
    from bakeoff.claims import comparison
    from bakeoff.cli.output import say
    from bakeoff.cli.progress import patience
    from bakeoff.cli.table import chosen_results
    from bakeoff.measure.functions import CATALOGUE

    bounds = dict.fromkeys(comparison.MEASURES, 0.0) | bounds_of(tolerance or [], "--tolerance")
    sides = [(name, chosen_results(name, only)[1]) for name in (a, b)]
    with patience("comparing"):
        found = do_compare.compared(*sides, bounds=bounds)
    differing, notes = found.outside, list(found.comparison.notes)
    if as_json:
        rows = [
            {**one.key._asdict(), "unit": CATALOGUE[one.key.measure].unit, "a": one.ours, "b": one.theirs}
            for one in differing
        ]
        typer.echo(json.dumps({"compared": len(found.differences), "differences": rows, "notes": notes}, indent=2))
    else:
        for note in notes:
            say(f"note: {note}", indent=6)
        for one in sorted(differing, key=lambda each: each.key):
            run_name = "/".join(one.key[:3]) + (f" {one.key.flow}" if one.key.flow else "")
            unit = CATALOGUE[one.key.measure].unit
            change = f"{100 * (one.theirs / one.ours - 1):+.2f} %" if one.ours else "from nothing"
            say(f"{run_name}  {one.key.measure}: {one.ours:.6g} -> {one.theirs:.6g} {unit} ({change})", indent=2)
        typer.echo(f"{len(differing)} of {len(found.differences)} numbers differ")
    if differing:
        raise typer.Exit(1)
