"""duel: two congestion controls, one bottleneck, seconds."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import Format, FormatOption, How, Observations, Seed, Seeds, Yes, takes
from bakeoff.duels import Duel

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.text.markup import Format as Form


@dataclass(frozen=True, kw_only=True)
class _How(How):
    run_timeout: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time limit per run, such as 5min; a run that exceeds it fails.",
            show_default="none; with a class in Python, 1min plus 100 times the estimate",
        ),
    ] = None


@takes(observations=Observations, how=_How)
def duel(
    cc1: Annotated[str, typer.Argument(help="Congestion control of the first flow.", autocompletion=complete.cc)],
    cc2: Annotated[str, typer.Argument(help="Congestion control of the second flow.", autocompletion=complete.cc)],
    *,
    qdisc: Annotated[
        str,
        typer.Option(
            help="Qdisc at the bottleneck, in tc syntax; by default one queue for both flows.",
            autocompletion=complete.qdisc,
        ),
    ] = Duel.qdisc,
    rate: Annotated[str, typer.Option(help="Rate of the bottleneck.")] = Duel.rate,
    rtt: Annotated[str, typer.Option(help="Round-trip time of the path.")] = Duel.rtt,
    rtt2: Annotated[
        str | None, typer.Option(help="Round-trip time of the second flow.", show_default="as --rtt")
    ] = Duel.rtt2,
    duration: Annotated[str, typer.Option(help="Simulated time.")] = Duel.duration,
    seed: Seed = None,
    seeds: Seeds = 1,
    yes: Yes = False,
    out: Annotated[Path | None, typer.Option(help="Results folder.", show_default="results/duels/TIMESTAMP")] = None,
    format_: FormatOption = Format.terminal,
    observations: Observations,
    how: _How,
) -> None:
    """Run two flows against each other and print their shares.

    The congestion controls, --qdisc, --rate, --rtt and --rtt2 take comma-separated lists. Every combination becomes a
    duel, and the output a table. '\\,' stands for a comma within a value.

    \b
    Examples:
      bakeoff duel prague cubic --qdisc "fq_codel flows 1" --rate 50mbit --rtt 20ms
      bakeoff duel cubic reno --qdisc "pie ecn" --rtt 10ms --rtt2 160ms --seeds 5
      bakeoff duel cubic reno,bbr --rtt 10ms,40ms --qdisc 'pie ecn,fq_codel flows 1'     eight duels, a table
      bakeoff duel prague cubic --qdisc dualpi2 --json | jq .summary
      bakeoff duel ./mycc.py:MyCC cubic --trace cc --capture 'mid>srv'     a class in Python
    """
    from bakeoff import campaign, results
    from bakeoff.api.run_plan import observed
    from bakeoff.cli.execute import execute, tell_taken
    from bakeoff.engines.patience import patience_s
    from bakeoff.scenario.duel_runs import duels

    every = Duel(cc1=cc1, cc2=cc2, qdisc=qdisc, rate=rate, rtt=rtt, rtt2=rtt2, duration=duration)
    execution = how.execution()
    runs = duels(every, seed=seed or 1, seeds=seeds, yes=yes)
    runs = observed(runs, observations.trace or (), observations.capture or ())
    root = out or campaign.new_folder(campaign.DUELS)
    request = results.Request(kind="duel", patterns=tuple(dict.fromkeys(each.run for each in runs)))
    if execution.timeout_s is None:
        execution = replace(execution, timeout_s=patience_s(runs, execution.engine))
    report = execute(
        runs,
        root,
        request,
        execution,
        latest=campaign.LATEST_DUEL,
        show=how.detail,
    )
    if not how.quiet:
        tell_taken(report)
    if report.failed:
        raise typer.Exit(1)
    found = [results.read(done.path) for done in report.runs]
    form: Form = "json" if how.as_json else format_.value
    if form == "json":
        records = [
            {"results": str(result.path), "run": result.key, "summary": result.summary and result.summary.to_json()}
            for result in found
        ]
        typer.echo(json.dumps(records[0] if len(records) == 1 else records, indent=2))
        return
    if form != "terminal":
        from bakeoff.tables import results_table

        sys.stdout.write(results_table.render(found, format=form, reference=None))
        return
    _show(found, matrix=every.count() > 1)
    typer.echo(f"next:    bakeoff plot {shlex.quote(str(root if len(found) > 1 else found[0].path))}")


def _feedback(found: list[Result]) -> str:
    """`AccECN`, or each mode with the congestion controls that had it."""
    from bakeoff.tables.run_labels import ecn_words

    modes: dict[str, dict[str, None]] = {}
    for result in found:
        for name, flow in result.summary.flows.items() if result.summary else ():
            modes.setdefault(ecn_words(flow.ecn), {})[name] = None
    return next(iter(modes)) if len(modes) == 1 else "; ".join(f"{mode}: {', '.join(of)}" for mode, of in modes.items())


def _show(found: list[Result], *, matrix: bool) -> None:
    from bakeoff.cli.output import beneath, console
    from bakeoff.tables import results_table, run_report

    if not matrix:
        run_report.duel(found[0], console())
    if len(found) > 1:
        if not matrix:
            typer.echo(f"\nSeed {found[0].run.seed} above; all {len(found)} seeds:\n")
        beneath(sys.stdout).write(results_table.render(found, format="terminal", reference=None))
        if matrix:
            typer.echo(f"ECN that was negotiated: {_feedback(found)}")
