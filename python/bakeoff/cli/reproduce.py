"""reproduce: do a stored run again, and say whether the same comes out."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from bakeoff.cli.options import AllowCode, Json
from bakeoff.cli.table import OneRun, chosen_run
from bakeoff.errors import UsageError


def reproduce(
    run: OneRun = None,
    *,
    seeds: Annotated[int, typer.Option(min=3, help="Repetitions for the interval, if the samples differ.")] = 5,
    allow_code: AllowCode = False,
    as_json: Json = False,
) -> None:
    """Run a stored run again with its own engine, and compare.

    Prints 'identical' if all samples are equal. Otherwise the run is repeated with other seeds. The verdict is 'within
    the interval' if every number lies between the minimum and the maximum of the repetitions, else 'different', with
    exit code 1.

    \b
    Examples:
      bakeoff reproduce results/latest/l4s-tests/s6-rfc3168/ns-prague-vs-cubic-ecn-pie-50Mbit-20ms
      bakeoff reproduce '*s6*cubic-ecn-pie-*' --json
    """
    import tempfile
    from pathlib import Path

    from bakeoff import campaign, results
    from bakeoff.claims import comparison
    from bakeoff.measure.functions import CATALOGUE

    stored = chosen_run(run)
    if not stored.ok:
        raise UsageError(f"{stored.key}: failed, nothing to compare with: {stored.record.error}")
    engine = stored.record.engine
    rows = []
    with tempfile.TemporaryDirectory(prefix="bakeoff-") as folder:

        def again(seed: int) -> results.Result:
            each = stored.run.model_copy(update={"seed": seed})
            [done] = campaign.run(
                [each], Path(folder) / str(seed), campaign.Execution(engine=engine, jobs=1, allow_code=allow_code)
            ).runs
            if done.error is not None:
                raise UsageError(f"{stored.key}: fails now with seed {seed}: {done.error}")
            return results.read(done.path)

        fresh = again(stored.run.seed)
        verdict = "identical"
        if fresh.record.digest != stored.record.digest:
            repeated = [fresh, *(again(stored.run.seed + n) for n in range(1, seeds))]
            sides = [comparison.side_of(name, found) for name, found in (("stored", [stored]), ("today", repeated))]
            today = sides[1].values
            for key, repetitions in sides[0].values.items():
                [value] = repetitions.values()
                least, most = min(today[key].values()), max(today[key].values())
                inside = least <= value <= most
                unit = CATALOGUE[key.measure].unit
                row = {"flow": key.flow, "measure": key.measure, "unit": unit, "stored": value}
                rows.append(row | {"least": least, "greatest": most, "within": inside})
            verdict = "within the interval" if all(row["within"] for row in rows) else "different"
    if as_json:
        typer.echo(json.dumps({"run": stored.key, "engine": engine, "verdict": verdict, "numbers": rows}, indent=2))
    else:
        for row in rows:
            mark = " " if row["within"] else "!"
            what = f"{row['flow']} {row['measure']}".strip()
            typer.echo(
                f"{mark} {what}: {row['stored']:.6g}, today {row['least']:.6g} to {row['greatest']:.6g} {row['unit']}"
            )
        typer.echo(f"{stored.key}: {verdict}")
    if verdict == "different":
        raise typer.Exit(1)
