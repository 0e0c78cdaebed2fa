"""evaluate: what a congestion control or a queue does in the cases of documents."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import Format, FormatOption, How, takes
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    from bakeoff.campaign import Execution, Report
    from bakeoff.evaluation.overdue import More
    from bakeoff.results import Request
    from bakeoff.scenario import Run
    from bakeoff.text.markup import Format as Form


@takes(how=How)
def evaluate(
    *,
    cc: Annotated[
        str | None, typer.Argument(metavar="CC", help="Congestion control.", autocompletion=complete.cc)
    ] = None,
    qdisc: Annotated[
        str | None,
        typer.Option(
            metavar="QDISC", help="Evaluate a queue instead.", autocompletion=complete.qdisc, show_default=False
        ),
    ] = None,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="CC,…", help="Competitors in the cases that have one.", show_default="cubic,reno,bbr,prague"
        ),
    ] = None,
    battery: Annotated[
        str | None, typer.Option(metavar="NAME,…", help="Batteries of cases.", show_default="all")
    ] = None,
    case: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Only cases that match: a glob on BATTERY/ID or ID; repeatable."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Only the short cases; under one minute.")] = False,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, help="Repetitions of every run, with seeds 1 to N.", show_default="10, with --quick 5"),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="CC|QDISC",
            help="What to compare with. If given, the report says what changed from it.",
            show_default="cubic, or the queue pfifo limit BDP",
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Results folder.", show_default="results/evaluate/TIMESTAMP")] = None,
    format_: FormatOption = Format.terminal,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the report as an HTML page.", show_default=False),
    ] = None,
    worst: Annotated[
        str | None,
        typer.Option(
            metavar="MEASURE",
            help="Search for the case in which starvation, own, delay, loss, fairness or an expression is worst.",
            show_default=False,
        ),
    ] = None,
    most: Annotated[
        int | None,
        typer.Option(
            "--runs", metavar="N", help="Maximum number of runs of --worst, at least 100.", show_default="2000"
        ),
    ] = None,
    how: How,
) -> None:
    """Evaluate a congestion control or a queue by batteries of cases.

    Runs the cases of RFCs, such as RFC 9743 for controls and RFC 7928 for queues, each with the control or queue and
    with the baseline in its place. Prints a verdict for each clause and the five worst findings. A run that fails is a
    finding. BDP in a queue is the number of packets of a bandwidth-delay product.

    \b
    Examples:
      bakeoff evaluate bbr --quick
      bakeoff evaluate ./mine.py:Mine --baseline reno --html mine.html
      bakeoff evaluate prague --battery rfc9331 --json | jq .counts
      bakeoff evaluate prague --format latex > appendix.tex
      bakeoff evaluate cubic --case 'rfc9743/loss-*' --seeds 10
      bakeoff evaluate --qdisc 'fq_pie limit BDP' --html fq_pie.html
      bakeoff evaluate bbr --worst starvation --against cubic,reno
    """
    from bakeoff import campaign, files
    from bakeoff.api import do_evaluate
    from bakeoff.cli.execute import duration, execute
    from bakeoff.cli.options import tell_code
    from bakeoff.cli.output import check_page, print_rendered
    from bakeoff.evaluation.assess import reason

    competitors = None if against is None else _words("--against", against)
    if worst is not None:
        from bakeoff.cli.worst import search

        given = {"--qdisc": qdisc, "--battery": battery, "--case": case, "--quick": quick or None, "--html": html}
        given["--format"] = None if format_ is Format.terminal else format_
        search(cc, worst, competitors, baseline, seeds=seeds, runs=most, out=out, how=how, given=given)
        return
    if most is not None:
        raise UsageError("--runs: only valid with --worst")
    if html is not None:
        check_page(html)
    batteries = () if battery is None else _words("--battery", battery)
    asked = do_evaluate.ask(
        cc, qdisc, baseline, competitors, battery=batteries,
        case=tuple(case or ()), quick=quick, seeds=do_evaluate.seeds_of(seeds, quick=quick),
    )  # fmt: skip
    plan = do_evaluate.plan(asked, how.execution(), tell_code)
    root = out or campaign.new_folder(campaign.EVALUATION)
    if not how.quiet:
        typer.echo(f"{len(plan.runs)} runs, about {duration(plan.estimate_s)}", err=True)

    another = f"the same command{'' if out is None else ' and another --out'}; finished runs are cached"
    again = None if plan.execution.store is None else another

    def run(runs: list[Run], root: Path, execution: Execution, request: Request, more: More | None) -> Report:
        return execute(
            runs, root, request, execution, latest=campaign.LATEST_EVALUATION, again=again, show=how.detail, more=more,
            expected=lambda: len(plan.runs), reason=reason,
        )  # fmt: skip

    evaluation = do_evaluate.evaluated(plan, root, run)
    if html is not None:
        files.write(html, evaluation.text("html").encode())
    form: Form = "json" if how.as_json else format_.value
    print_rendered(evaluation.text(form), colours=form == "terminal")
    if form == "terminal" and not how.quiet:
        typer.echo(f"results: {root}")
        if html is not None:
            typer.echo(f"page:    {html}")


def _words(option: str, text: str) -> tuple[str, ...]:
    """What commas separate, each once. BakeoffError for nothing."""
    found = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not found:
        raise UsageError(f"{option}: '{text}'; expected names, with commas in between")
    return found
