"""suites: what the catalog holds, what each engine can run of it, and how its claims are decided."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import typer

from bakeoff.cli import output
from bakeoff.cli.options import Json
from bakeoff.errors import BakeoffError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bakeoff.scenario import Run
    from bakeoff.text.columns import Column

ENGINES: Final = ("sim", "kernel")
"""Those that need no machine but this one; what `netns` and `ssh` can run, `bakeoff doctor` says."""


def suites(*, as_json: Json = False) -> None:
    """List the suites: runs, engines and verdicts of each.

    A claim counts in every suite whose runs it uses. Seeds of a run count once.

    \b
    Examples:
      bakeoff suites
      bakeoff suites --json
    """
    from rich.progress import track

    from bakeoff.scenario import catalog

    by_suite: dict[str, dict[str, Run]] = {}
    for run in catalog.select("*"):
        by_suite.setdefault(run.suite, {}).setdefault(f"{run.scenario}/{run.run}", run)
    verdicts = _verdicts()
    reasons: dict[str, str] = {}
    rows: list[dict[str, Any]] = []
    errors = output.console(err=True)
    hidden = not errors.is_terminal
    for name, runs in track(by_suite.items(), "checking engines", console=errors, transient=True, disable=hidden):
        can = {engine: _can(list(runs.values()), engine, reasons) for engine in ENGINES}
        claims = {engine: dict(verdicts.get((name, engine), {})) for engine in ENGINES}
        rows.append({"suite": name, "runs": len(runs), "can_run": can, "claims": claims})
    if as_json:
        typer.echo(json.dumps({"suites": rows, "not_here": reasons}, indent=2))
        return
    output.print_table(_columns(rows))
    for engine, why in reasons.items():
        output.say(f"{engine}: {why}", indent=2, err=True)


def _can(runs: Sequence[Run], engine: str, reasons: dict[str, str]) -> int | None:
    """How many of the runs the engine can do; None, with the reason noted, if it cannot be used here at all."""
    from bakeoff import campaign

    if engine in reasons:
        return None
    try:
        return len(campaign.accepted(runs, engine)[0])
    except BakeoffError as error:
        reasons[engine] = str(error)
        return None


def _verdicts() -> dict[tuple[str, str], Counter[str]]:
    """By suite and engine, how many claims have which recorded verdict, the worse of direction and size."""
    from bakeoff.claims import expected
    from bakeoff.claims.claim import load
    from bakeoff.claims.verdict import counted, worse

    known = expected.load()
    found: dict[tuple[str, str], Counter[str]] = {}
    for claim in load():
        if claim.statement is None:
            continue
        of = {wanted.pattern.partition("/")[0] for wanted in claim.statement.runs}
        for engine in ENGINES:
            recorded = known.get((claim.name, engine))
            word = counted(worse([part for part in recorded if part]), claim) if recorded else "not recorded"
            for suite in of:
                found.setdefault((suite, engine), Counter())[word] += 1
    return found


def _columns(rows: Sequence[dict[str, Any]]) -> list[Column]:
    """One line per suite; claims by verdict as the simulator decides them."""
    from bakeoff.text.columns import Column

    outcomes = list(dict.fromkeys(word for row in rows for word in row["claims"]["sim"]))
    found = [
        Column("suite", [row["suite"] for row in rows], text=True),
        Column("runs", [str(row["runs"]) for row in rows]),
    ]
    for engine in ENGINES:
        counts = [row["can_run"][engine] for row in rows]
        found.append(Column(engine, ["-" if count is None else str(count) for count in counts], keep=5))
    for at, word in enumerate(outcomes):
        cells = [str(row["claims"]["sim"].get(word, "")) for row in rows]
        found.append(Column(("claims:\n" if not at else "\n") + word, cells, keep=4))
    return found
