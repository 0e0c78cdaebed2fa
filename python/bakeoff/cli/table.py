"""What came out, as a table or a report; and which results are meant, for all commands that read some."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import Format, FormatOption, Only
from bakeoff.errors import ResultsError, UsageError, printable

if TYPE_CHECKING:
    from bakeoff.results import Result

Results = Annotated[
    str | None,
    typer.Argument(
        metavar="[RESULTS]",
        help="Folder of a campaign or a run, or a glob on suite/scenario/run in the latest campaign.",
        show_default="the latest campaign",
        autocompletion=complete.results,
    ),
]

SeveralResults = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RESULTS]...",
        help="Folders of campaigns or runs, or globs on suite/scenario/run in the latest campaign.",
        show_default="the latest campaign",
        autocompletion=complete.results,
    ),
]

OneRun = Annotated[
    str | None,
    typer.Argument(
        metavar="[RUN]",
        help="Folder of a run, or a glob on suite/scenario/run in the latest campaign.",
        show_default="the latest campaign, if it has one run",
        autocompletion=complete.results,
    ),
]


class Rows(StrEnum):
    """What a table has one row of."""

    runs = "runs"
    flows = "flows"
    queues = "queues"
    probes = "probes"
    phases = "phases"


def table(
    results: Results = None,
    *,
    only: Only = None,
    format_: FormatOption = Format.terminal,
    rows: Annotated[
        Rows | None,
        typer.Option(
            help="One row per run, flow, rate-limited queue, probe, or phase between timed changes.",
            show_default="runs; for a single run, all",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Columns to show, by CSV name; '?' lists them.",
            show_default=False,
            autocompletion=complete.columns,
        ),
    ] = None,
    sort: Annotated[
        str | None,
        typer.Option(
            metavar="NAME,…",
            help="Sort by these columns; -NAME sorts in descending order.",
            autocompletion=complete.order,
        ),
    ] = None,
    where: Annotated[
        str | None,
        typer.Option(
            metavar="CONDITION",
            help="Filter rows: columns, numbers, strings, == < in, and, or, not.",
        ),
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            help="Reference to compare with.",
            show_default="the suite's published numbers",
            autocompletion=complete.reference,
        ),
    ] = None,
) -> None:
    """Print one row per run, beside the published numbers.

    \b
    Examples:
      bakeoff table                                  the latest campaign
      bakeoff table results/fairness --format markdown > fairness.md
      bakeoff table 'l4s-tests/s6*pie*' -f json | jq .
      bakeoff table --where 'qdisc == "pie" and jain < 0.9' --sort -jain
      bakeoff table --rows flows --columns run,flow,goodput_bps,delay_p99_s,loss
    """
    from bakeoff.cli.output import print_rendered
    from bakeoff.cli.progress import patience
    from bakeoff.tables import results_table

    _, chosen = chosen_results(results, only)
    warn_of_epochs(chosen)
    with patience("making the table"):
        text = results_table.render(
            chosen,
            format=format_.value,
            kind=rows.value if rows else None,
            columns=[name.strip() for name in columns.split(",")] if columns else None,
            sort=sort,
            condition=where,
            reference=reference,
        )
    print_rendered(text, colours=format_ is Format.terminal)


def report(
    results: OneRun = None,
    *,
    only: Only = None,
) -> None:
    """Print one run in full, as duel does.

    \b
    Examples:
      bakeoff report results/fairness/l4s-tests/s6-rfc3168/ns-prague-vs-cubic-pie-50Mbit-20ms
      bakeoff report 'l4s-tests/s6*/*cubic*pie*'
    """
    from bakeoff.cli.output import console
    from bakeoff.tables import run_report

    result = chosen_run(results, only)
    if not result.ok:
        raise UsageError(f"{result.key}: failed, no measures: {result.record.error}")
    run_report.duel(result, console())


def chosen_results(results: str | None, only: str | None = None) -> tuple[Path, list[Result]]:
    """The campaign's folder and the runs that are meant; half-written ones are reported and left out.

    `only` is a name that each has to have besides.
    """
    from fnmatch import fnmatchcase

    from bakeoff import campaign
    from bakeoff.campaign.locations import LATEST
    from bakeoff.cli.progress import patience
    from bakeoff.results import survey

    named = results is not None and Path(results).is_dir()
    if results is not None and not named and not LATEST.is_dir():
        raise UsageError(f"{results}: no such results folder, and no campaign to match it against; expected a folder")
    root = Path(results or "") if named else campaign.latest()
    with patience("reading") as tell:
        found = survey(root, tell)
    for complaint in found.complaints():
        typer.echo(f"bakeoff: {complaint}", err=True)
    chosen = found.results
    if results is not None and not named:
        chosen = [result for result in chosen if fnmatchcase(result.key, results.rstrip("/") + "*")]
        if not chosen:
            raise UsageError(f"'{results}': no such folder, and no match among the runs in {root}")
    if not chosen and found.unreadable:
        raise UsageError(f"{root}: unreadable results")
    if not chosen:
        raise UsageError(f"{root}: no results; {_how_to_fill(root)}")
    if only is not None:
        from bakeoff.results.named import is_named

        several, chosen = chosen, [result for result in chosen if is_named(result.key, only)]
        if not chosen:
            raise UsageError(f"-k: '{only}' matches none of {len(several)} runs in {root}, such as {several[0].key}")
    return root, chosen


def _how_to_fill(root: Path) -> str:
    """The command that goes on with the campaign in the folder, or makes one there."""
    import shlex

    from bakeoff.results import read_campaign

    quoted = shlex.quote(str(root))
    begun = read_campaign(root)
    if begun is None or begun.kind not in ("run", "sweep", "advise"):
        return f"create some: bakeoff run 'l4s-tests/s6*' --out {quoted}"
    try:
        words = begun.begun.words()
    except ResultsError:
        return f"'bakeoff {begun.kind}' with --out {quoted} --resume continues its campaign"
    engine = ["--engine", begun.engine] * (begun.engine not in (None, "sim"))
    again = shlex.join(["bakeoff", begun.kind, *words, *engine, "--out", str(root), "--resume"])
    return printable(f"its campaign was interrupted before the first run ended; continue with: {again}")


def chosen_several(names: list[str], only: str | None = None) -> tuple[Path, list[Result]]:
    """The first campaign's folder and the runs of all, each once."""
    found = [chosen_results(name, only) for name in names] or [chosen_results(None, only)]
    if len(found) == 1:
        return found[0]
    runs = {result.path.resolve(): result for _, several in found for result in several}
    return found[0][0], list(runs.values())


def chosen_run(run: str | None, only: str | None = None) -> Result:
    """The one run that is meant. BakeoffError names the first of them if several are."""
    root, chosen = chosen_results(run, only)
    if len(chosen) > 1:
        keys = "".join(f"\n  {result.key}" for result in chosen[:5])
        more = f"\n  and {len(chosen) - 5} more" if len(chosen) > 5 else ""
        raise UsageError(f"{run or root}: {len(chosen)} runs; expected one of:{keys}{more}")
    return chosen[0]


def warn_of_epochs(results: list[Result]) -> str | None:
    """Say on standard error if numbers of different model epochs are about to stand side by side; what was said."""
    from bakeoff.results import epoch_warning

    warning = epoch_warning(results)
    if warning is not None:
        typer.echo(f"bakeoff: {warning}", err=True)
    return warning
