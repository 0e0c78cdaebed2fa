"""advise: which queue to choose for an access line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli.options import How, resume_command, takes
from bakeoff.errors import UsageError


@takes(how=How)
def advise(
    *,
    up: Annotated[str, typer.Option(help="Upstream rate of the line.")] = "20mbit",
    down: Annotated[str, typer.Option(help="Downstream rate of the line.")] = "100mbit",
    rtt: Annotated[str, typer.Option(help="Round-trip time to the servers on an idle line.")] = "30ms",
    link: Annotated[
        str,
        typer.Option(
            metavar="KIND",
            help="Per-packet overhead of the line: plain (none), ethernet, docsis, vdsl or adsl.",
        ),
    ] = "plain",
    buffer: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Size of the unmanaged queue.",
            show_default="250ms, but at least 128 kB and at most 4 MB",
        ),
    ] = None,
    mix: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Scenario file with another traffic mix or other queues.",
            show_default="advice/household of the catalog",
        ),
    ] = None,
    duration: Annotated[str, typer.Option(help="Simulated time of each run.")] = "60s",
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions of every run, with seeds 1 to N.")] = 5,
    out: Annotated[Path | None, typer.Option(help="Results folder.", show_default="results/advise/TIMESTAMP")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Do only the runs that are missing in --out (or the latest advice).")
    ] = False,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the report as an HTML page.", show_default=False),
    ] = None,
    how: How,
) -> None:
    """Recommend a queue for an access line.

    Runs a busy household (uploads, downloads, a call, games, video, web pages) through each candidate queue: unmanaged,
    pie, fq_codel, dualpi2, and a home router that shapes with cake. The report compares them, recommends one, and
    states the rule and the confidence.

    Ctrl-C keeps finished runs; --resume continues.

    \b
    Examples:
      bakeoff advise --up 20mbit --down 100mbit --rtt 30ms
      bakeoff advise --up 1mbit --down 10mbit --rtt 40ms --link adsl
      bakeoff advise --up 50mbit --down 1gbit --seeds 3 --html advice.html     also an HTML page
      bakeoff advise --up 20mbit --down 100mbit --json | jq -r .recommended
      bakeoff show advice/household                      the default traffic mix, a template for --mix
      bakeoff advise --mix HOUSEHOLD.yaml --resume       continue the latest, which was interrupted
    """
    from bakeoff import campaign, files
    from bakeoff.api import do_advise
    from bakeoff.cli.execute import execute
    from bakeoff.cli.output import check_page
    from bakeoff.scenario.access_line import Asked, runs

    asked = Asked(up=up, down=down, rtt=rtt, buffer=buffer, link=link, duration=duration, mix=mix)
    if html is not None:
        check_page(html)
    every = runs(asked, seeds=seeds)
    execution = how.execution()
    root = out or (_latest() if resume else campaign.new_folder(campaign.ADVICE))
    request = do_advise.request_of(asked)
    given = {**how.given(execution.engine), "--seeds": seeds, "--html": html}
    report = execute(
        every,
        root,
        request,
        execution,
        resume=resume,
        latest=campaign.LATEST_ADVICE,
        again=resume_command(request, root, given),
        show=how.detail,
    )
    if report.failed:
        raise typer.Exit(1)
    advice = do_advise.advised(asked, report)
    from bakeoff.advice import page, record, text
    from bakeoff.cli.output import print_rendered

    if html is not None:
        files.write(html, page(asked, advice).encode())
    if how.as_json:
        typer.echo(json.dumps(record(asked, advice, root), indent=2))
        return
    import sys

    print_rendered(text(asked, advice), colours=sys.stdout.isatty())
    if not how.quiet:
        typer.echo(f"results: {root}")
        if html is not None:
            typer.echo(f"page:    {html}")


def _latest() -> Path:
    from bakeoff import campaign

    if not campaign.LATEST_ADVICE.is_dir():
        raise UsageError(f"{campaign.LATEST_ADVICE}: no advice to resume; expected --out")
    return campaign.LATEST_ADVICE.resolve()
