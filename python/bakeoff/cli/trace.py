"""trace: what packet captures and irtt's files tell."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import Json
from bakeoff.errors import UsageError
from bakeoff.trace import Ecn

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.trace.against import Row


def trace(
    captures: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE]...",
            help="Captures (pcap, pcapng; packed or not; - is standard input), and JSON files of irtt's client.",
            show_default="with --against, all captures of its runs",
        ),
    ] = None,
    *,
    flow: Annotated[
        str | None,
        typer.Option(
            metavar="FLOW",
            help="Only these flows: a number of the table, an address or port in the name, or a glob on CLIENT>SERVER.",
            show_default=False,
        ),
    ] = None,
    ecn: Annotated[
        Ecn, typer.Option(help="How to read the ECN bits of TCP; auto goes by each flow's handshake.")
    ] = "auto",
    every: Annotated[bool, typer.Option("--all", help="Show more than the 40 largest flows of each kind.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Write a results folder, which table, plot, site and render read.",
            show_default=False,
        ),
    ] = None,
    interval: Annotated[
        str, typer.Option(metavar="TIME", help="Time between the samples of --out, and of the series in --json.")
    ] = "100ms",
    series: Annotated[bool, typer.Option("--series", help="With --json: also print every flow over time.")] = False,
    against: Annotated[
        str | None,
        typer.Option(
            metavar="RESULTS",
            help="Compare captures of these runs with what the simulator counted.",
            show_default=False,
            autocompletion=complete.results,
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="RUN", help="With --against: the run, as suite/scenario/run or a glob.", show_default=False
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show each flow of packet captures: rates, round trips, ECN marks and their echoes, retransmissions, gaps.

    With --against it ends with 1 if a number differs.

    \b
    Examples:
      bakeoff trace capture.pcapng
      bakeoff trace capture.pcap.gz --flow 443 --json
      tcpdump -w - -i eth0 | bakeoff trace -
      bakeoff trace capture.pcapng --out results/captured     and then: bakeoff plot results/captured
      bakeoff trace d.json.gz                                 of irtt client -o d.json.gz
      bakeoff run 'l4s-tests/s6*' --capture all && bakeoff trace --against results/latest
    """
    from bakeoff import trace as traces
    from bakeoff.cli.output import print_rendered
    from bakeoff.cli.progress import patience

    interval_s = _interval(interval)
    if against is not None:
        if flow is not None or out is not None or series:
            raise UsageError("--against: compares whole captures; leave out --flow, --out and --series")
        _against(captures or [], against, run, ecn=ecn, as_json=as_json)
        return
    if run is not None:
        raise UsageError("--run: names a run of --against; give both")
    if not captures:
        raise UsageError("no file was given; expected captures, or JSON files of irtt's client")
    if series and not as_json:
        raise UsageError("--series: adds to --json; give both, or --out for a results folder")
    found = []
    with patience("reading") as tell:
        for number, path in enumerate(captures, start=1):
            one = traces.read(path, ecn=ecn, interval_s=interval_s if out is not None or series else None)
            if flow is not None and isinstance(one, traces.CaptureFile):
                one = traces.of_flows(one, flow)
            found.append(one)
            tell(number)
    if out is not None:
        from bakeoff.trace.result_folder import write_all

        folder = write_all(found, out, interval_s)
        typer.echo(f"results: {folder}", err=as_json)
    if as_json:
        typer.echo(b'{"format":%d,"files":[%s]}' % (traces.FORMAT, b",".join(one.encoded() for one in found)))
        return
    from bakeoff.trace import tables

    print_rendered(tables.text(found, every=every), colours=True)


def _interval(text: str) -> float:
    """In seconds. BakeoffError unless it is a time between 1 ms and an hour."""
    from bakeoff.scenario.units import parse_time

    try:
        interval_s = parse_time(text)
    except ValueError as error:
        raise UsageError(f"--interval: {error}") from None
    if not 1e-3 <= interval_s <= 3600:
        raise UsageError(f"--interval: '{text}'; expected a time from 1ms to 1h")
    return interval_s


def _against(captures: list[Path], results: str, run: str | None, *, ecn: Ecn, as_json: bool) -> None:
    from bakeoff.cli.output import print_rendered
    from bakeoff.cli.progress import patience
    from bakeoff.cli.table import chosen_results
    from bakeoff.trace import tables

    chosen = [result for result in chosen_results(results)[1] if result.ok and _is_called(result, run)]
    if not chosen:
        raise UsageError(f"--against: no finished run in '{results}'" + (f" is called '{run}'" if run else ""))
    pairs = _pairs(captures, chosen)
    compared: list[tuple[str, list[Row]]] = []
    with patience("reading") as tell:
        for number, (result, path) in enumerate(pairs, start=1):
            compared.append((result.key, _rows(result, path, ecn)))
            tell(number)
    if as_json:
        typer.echo(json.dumps(tables.against_json(compared)))
    else:
        print_rendered(tables.against(compared), colours=True)
    if any(not row.agrees for _, rows in compared for row in rows):
        raise typer.Exit(1)


def _is_called(result: Result, run: str | None) -> bool:
    from fnmatch import fnmatchcase

    return run is None or fnmatchcase(result.key, run) or fnmatchcase(result.run.run, run)


def _pairs(captures: list[Path], chosen: list[Result]) -> list[tuple[Result, Path]]:
    """Each capture with the run whose it is: that in whose folder it lies, or the only one."""
    if not captures:
        found = [(result, path) for result in chosen for path in sorted(result.path.glob("*.pcapng"))]
        if not found:
            raise UsageError("--against: no run there has captures; bakeoff run PATTERN --capture all keeps them")
        return found
    pairs = []
    for path in captures:
        own = [result for result in chosen if result.path.resolve() == path.resolve().parent] or chosen
        if len(own) > 1:
            raise UsageError(f"--against: {len(own)} runs could be that of {path}; --run RUN says which one is")
        pairs.append((own[0], path))
    return pairs


def _rows(result: Result, path: Path, ecn: Ecn) -> list[Row]:
    from bakeoff import trace as traces
    from bakeoff.trace.against import compare

    found = traces.CaptureFile(str(path), traces.capture(path, ecn=ecn))
    interfaces = found.report.capture.interfaces
    name = interfaces[0].name if len(interfaces) == 1 else None
    if name is None:
        raise UsageError(f"{path}: has {len(interfaces)} interfaces or one without a name; expected a capture of a run")
    return compare(result, name, found.report)
