"""evaluate --worst: the case in which a measure is worst."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.api.do_worst import Doing
    from bakeoff.campaign import Report
    from bakeoff.cli.options import How


def search(
    cc: str | None,
    measure: str,
    against: tuple[str, ...] | None,
    baseline: str | None,
    *,
    seeds: int | None,
    runs: int | None,
    out: Path | None,
    how: How,
    given: Mapping[str, object],
) -> None:
    """Do the search and print what it found. `given` are options of the batteries, which must be absent."""
    from bakeoff import campaign
    from bakeoff.api import do_evaluate, do_worst
    from bakeoff.api.do_sweep import default_store
    from bakeoff.cli.execute import duration, execute
    from bakeoff.cli.options import tell_code
    from bakeoff.cli.output import print_rendered
    from bakeoff.evaluation.adversary.findings import record, text
    from bakeoff.evaluation.assess import reason

    for option, value in given.items():
        if value is not None:
            raise UsageError(f"{option}: not valid with --worst")
    execution = how.execution()
    execution = replace(execution, store=default_store(execution.engine, how.store))
    asked = do_evaluate.ask(
        cc, None, baseline, against, battery=(), case=(), quick=False, seeds=do_evaluate.seeds_of(seeds, quick=False)
    )
    plan = do_worst.planned(asked, measure, execution, runs=do_worst.RUNS if runs is None else runs)
    tell_code(plan.first)
    if not how.quiet:
        typer.echo(f"at most {plan.hunt.expected} runs, about {duration(plan.estimate_s)}", err=True)

    def do(doing: Doing) -> Report | None:
        try:
            return execute(
                doing.runs, doing.root, doing.request, doing.execution, show=how.detail, also=doing.also,
                more=doing.more, expected=doing.expected, reason=reason,
            )  # fmt: skip
        except typer.Exit:
            return None

    found = do_worst.searched(plan, out or campaign.new_folder(campaign.EVALUATION), do)
    if how.as_json:
        typer.echo(json.dumps(record(found), indent=2, allow_nan=False))
    else:
        print_rendered(text(found), colours=sys.stdout.isatty())
        if not how.quiet:
            typer.echo(f"results: {found.root}")
    if found.interrupted:
        raise typer.Exit(130)
