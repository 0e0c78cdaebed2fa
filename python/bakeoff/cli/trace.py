"""trace: what packet captures and irtt's files tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bakeoff.captures import Ecn
from bakeoff.cli import complete
from bakeoff.cli.options import Json
from bakeoff.errors import UsageError


def trace(
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Captures (pcap, pcapng, optionally compressed; - is standard input), or JSON files of irtt.",
            show_default="with --against, all captures of the runs",
        ),
    ] = None,
    *,
    flow: Annotated[
        str | None,
        typer.Option(
            metavar="FLOW",
            help="Only these flows: number in the table, address or port, or glob on CLIENT>SERVER.",
            show_default=False,
        ),
    ] = None,
    ecn: Annotated[Ecn, typer.Option(help="Interpretation of TCP's ECN bits; auto follows each handshake.")] = "auto",
    every: Annotated[bool, typer.Option("--all", help="Show all flows, not only the 40 largest of each kind.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write a results folder for table, plot, site and render.",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[str, typer.Option(metavar="TIME", help="Sampling interval of --out and --series.")] = "100ms",
    series: Annotated[bool, typer.Option("--series", help="With --json: include time series per flow.")] = False,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="RESULTS",
            help="Compare captures with the simulator's counters of these runs.",
            show_default=False,
            autocompletion=complete.results,
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(metavar="RUN", help="With --against: suite/scenario/run, or a glob.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Analyse packet captures flow by flow.

    With --against, exits with 1 if a number differs.

    \b
    Examples:
      bakeoff trace capture.pcapng
      bakeoff trace capture.pcap.gz --flow 443 --json
      tcpdump -w - -i eth0 | bakeoff trace -
      bakeoff trace capture.pcapng --out results/captured     and then: bakeoff plot results/captured
      bakeoff trace d.json.gz                                 of irtt client -o d.json.gz
      bakeoff run 'l4s-tests/s6*' --capture all && bakeoff trace --against results/latest
    """
    from bakeoff import captures
    from bakeoff.api.do_trace import interval_s, trace
    from bakeoff.captures import tables
    from bakeoff.cli.output import print_rendered
    from bakeoff.cli.progress import patience

    spacing_s = interval_s("--interval", interval)
    if against is not None:
        if flow is not None or out is not None or series:
            raise UsageError("--against: not valid with --flow, --out or --series")
        _against(files or [], against, run, ecn=ecn, as_json=as_json)
        return
    if run is not None:
        raise UsageError("--run: only valid with --against")
    if not files:
        raise UsageError("missing argument FILE; expected captures, or JSON files of irtt")
    if series and not as_json:
        raise UsageError("--series: only valid with --json; for a results folder, use --out")
    found = []
    with patience("reading") as tell:
        for number, path in enumerate(files, start=1):
            found.append(trace(path, flow=flow, ecn=ecn, interval=interval if out is not None or series else None))
            tell(number)
    if out is not None:
        from bakeoff.captures.result_folder import write_all

        folder = write_all(found, out, spacing_s)
        typer.echo(f"results: {folder}", err=as_json)
    if as_json:
        typer.echo(b'{"format":%d,"files":[%s]}' % (captures.FORMAT, b",".join(one.encoded() for one in found)))
        return
    print_rendered(tables.text(found, every=every), colours=True)


def _against(files: list[Path], results: str, run: str | None, *, ecn: Ecn, as_json: bool) -> None:
    from bakeoff.captures import tables
    from bakeoff.captures.against import compare_all
    from bakeoff.cli.output import print_rendered
    from bakeoff.cli.progress import patience
    from bakeoff.cli.table import chosen_results

    chosen = chosen_results(results)[1]
    with patience("reading") as tell:
        compared = compare_all(chosen, files, run=run, ecn=ecn, tell=tell)
    if as_json:
        typer.echo(json.dumps(tables.against_json(compared)))
    else:
        print_rendered(tables.against(compared), colours=True)
    if any(not row.agrees for _, rows in compared for row in rows):
        raise typer.Exit(1)
