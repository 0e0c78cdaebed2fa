"""shell: a shell, or one command, inside the network of a run."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import ItsKernel, Only, Set, with_kernel
from bakeoff.errors import RunError, UsageError, printable

if TYPE_CHECKING:
    from bakeoff.scenario import Run

_SHOWN = 10
"""Names of runs that a message lists."""


class ClockName(StrEnum):
    """Which clock the guest has."""

    real = "real"
    virtual = "virtual"


def shell(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="Run of the catalog, scenario file, FILE::PATTERN, or results folder of a run.",
            autocompletion=complete.scenario,
        ),
    ],
    *,
    node: Annotated[
        str | None,
        typer.Option(metavar="NODE", help="Node to start on.", show_default="the sender of the first flow"),
    ] = None,
    command: Annotated[
        str | None,
        typer.Option(
            "-c", metavar="COMMAND", help="Run this command without a terminal, and exit.", show_default=False
        ),
    ] = None,
    clock: Annotated[
        ClockName,
        typer.Option(help="Real time, or with -c the virtual time of runs, in which programs take no time."),
    ] = ClockName.real,
    traffic: Annotated[bool, typer.Option("--traffic", help="Start the run's flows and probes.")] = False,
    reads: Annotated[
        list[Path] | None,
        typer.Option(metavar="PATH", help="File or folder to make readable; repeatable.", show_default=False),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="New or empty working folder that is kept.",
            show_default="a temporary folder",
        ),
    ] = None,
    kernel: ItsKernel = None,
    only: Only = None,
    set_: Set = None,
) -> None:
    """Open a shell inside the network of a run, on real Linux.

    Needs no root.

    The nodes are network namespaces with the run's queues, delays, tunnels and middleboxes, and node names resolve: try
    'ping srv', 'tc -s qdisc', or 'on mid tc -s qdisc' for another node. The exit code is that of the shell.

    \b
    Examples:
      bakeoff shell mine.yaml::'*pie*'
      bakeoff shell 'l4s-tests/s6-rfc3168/*prague-vs-cubic-ecn-pie-*' --node mid
      bakeoff shell mine.yaml -k pie -c 'ping -c 3 srv'
      bakeoff shell mine.yaml -k pie -c 'iperf3 -sD; iperf3 -c localhost' --clock real
      bakeoff shell mine.yaml -k pie --set network.rtt=80ms --traffic
    """
    import sys

    from bakeoff.campaign.signals import unwinding
    from bakeoff.cli import output
    from bakeoff.engines.kernel import shell as inside
    from bakeoff.engines.kernel import virtual

    chosen = _chosen(run, only, set_)
    terminal = command is None and sys.stdin.isatty() and sys.stdout.isatty()
    if clock is ClockName.virtual and terminal:
        raise UsageError("--clock virtual: not valid for an interactive shell; expected -c COMMAND")
    for path in reads or ():
        if not path.exists():
            raise UsageError(f"--reads: {path}: no such file or folder")
    if out is not None and out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"--out: {out}: not empty, or not a folder; expected a new or an empty folder")
    engine = virtual.choose(with_kernel("kernel", kernel).partition(":")[2] or None)
    asked = inside.Asked(
        node=node if node is not None else inside.first_host(chosen),
        command=command,
        terminal=terminal,
        clock=clock.value,
        traffic=traffic,
        reads=tuple(path.resolve() for path in reads or ()),
        folder=out,
    )
    inside.check(engine, chosen, asked)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    console = output.console(err=True)
    if terminal:
        console.print(printable(f"{chosen.key}: booting Linux {engine.kernel.release}"), highlight=False, markup=False)
    try:
        with unwinding():
            code = inside.enter(engine, chosen, asked)
    except RunError as error:
        typer.echo(printable(f"bakeoff: {error}"), err=True)
        raise typer.Exit(1) from None
    raise typer.Exit(code)


def _chosen(name: str, only: str | None, set_: list[str] | None) -> Run:
    """The one run that is meant. BakeoffError lists the first of them if several are."""
    from bakeoff.cli.table import chosen_run
    from bakeoff.scenario import catalog, parse_settings

    if Path(name).is_dir():
        if only is not None or set_:
            raise UsageError(f"{name}: a results folder; -k and --set are not valid with it")
        return chosen_run(name).run
    runs = catalog.select(name, 1, only=only, settings=parse_settings(set_ or ()))
    if len(runs) > 1:
        listed = "".join(f"\n  {each.key}" for each in runs[:_SHOWN])
        more = f"\n  and {len(runs) - _SHOWN} more" if len(runs) > _SHOWN else ""
        raise UsageError(f"'{name}' matches {len(runs)} runs; expected one, for example with -k:{listed}{more}")
    return runs[0]
