"""Arguments and options that several commands take."""

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bakeoff.cli import complete
from bakeoff.errors import UsageError, printable

if TYPE_CHECKING:
    from bakeoff.results import Request
    from bakeoff.scenario import Run


def with_kernel(engine: str, kernel: str | None) -> str:
    """The engine's whole name: `kernel:NAME` where a kernel was chosen. BakeoffError if it is another engine."""
    if kernel is None:
        return engine
    if engine != "kernel":
        raise UsageError(f"--kernel is for --engine kernel; --engine {engine} has no choice of kernels")
    # A path with a slash, as in registry.get; whole, because the name stands in the results.
    return f"kernel:{Path(kernel).expanduser().absolute() if '/' in kernel else kernel}"


def with_exact(engine: str, exact: bool) -> str:
    """The engine's whole name: `sim:exact` where that was asked for. BakeoffError if it is another engine."""
    if not exact or engine == "sim:exact":
        return engine
    if engine != "sim":
        raise UsageError(f"--exact is for --engine sim; --engine {engine} takes no shortcuts")
    return "sim:exact"


def with_inventory(engine: str, inventory: Path | None) -> str:
    """The engine's whole name: `ssh:FILE` where an inventory was given. BakeoffError if it is another engine."""
    if inventory is None:
        return engine
    if engine != "ssh":
        raise UsageError(f"--inventory is for --engine ssh; --engine {engine} has no machines")
    return f"ssh:{inventory.expanduser().absolute()}"


Engine = Annotated[
    str, typer.Option(help="What does the runs: sim, kernel, netns or ssh.", autocompletion=complete.engine)
]
Exact = Annotated[
    bool,
    typer.Option(
        "--exact", help="Simulate every packet step by step, without shortcuts: slower, with the same results."
    ),
]
Kernel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|PATH",
        help="The virtual-time kernel that does the runs; goes with --engine kernel.",
        show_default="the newest that was built",
        autocompletion=complete.kernel,
    ),
]
ItsKernel = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="NAME|PATH",
        help="The virtual-time kernel.",
        show_default="the newest that was built",
        autocompletion=complete.kernel,
    ),
]
Inventory = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The machines of a testbed; goes with --engine ssh.", show_default=False),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Processes at a time.", show_default="one per core")
]
Seeds = Annotated[
    int, typer.Option(min=1, help="Repetitions of every run, with seeds 1 to N, the same in all variants.")
]
FileSeeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        min=1,
        help="Repetitions of every run, with seeds 1 to N, the same in all variants.",
        show_default="what the scenario says, or 1",
    ),
]
Only = Annotated[
    str | None,
    typer.Option(
        "-k",
        metavar="PATTERN",
        help="Of these, the runs of this name: a glob on the run's own or whole name, re:REGEX, or a word in it.",
        show_default=False,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A value of the scenario, as in network.rtt=40ms or flows.0.cc=bbr (or flows.NAME.cc); repeatable.",
    ),
]
AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code",
        help="Also execute congestion controls in Python from outside the folder of the scenario, and programs that an "
        "inventory's configuration of OpenSSH starts on this machine.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Go on even if there are more than 100,000 runs.")]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="PATH|URL",
        help="Take runs that were done before from here, and keep new ones; 'none' does neither.",
        show_default="BAKEOFF_STORE, or your own in the cache folder",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="WORKERS",
        help="Do the runs with Dask: tcp://HOST:PORT, local:N, slurm:N or ssh:HOST,HOST.",
        show_default="processes of this machine",
    ),
]
RunTimeout = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="A run that takes longer, such as 5min, is ended and counts as failed; the others go on.",
        show_default=False,
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Do all runs, also those that the store has.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Trace = Annotated[
    list[str] | None, typer.Option(metavar="cc", help="Keep the congestion controls' internals after every ACK.")
]
Capture = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NODE>PEER", help="Keep the packets that leave there as pcapng; 'all' for every interface; repeatable."
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Do only what --out (or the latest) lacks.")]
StopOnFailure = Annotated[bool, typer.Option("-x", "--stop-on-failure", help="Begin no run after one that failed.")]
Out = Annotated[Path | None, typer.Option(help="Folder for the results.", show_default="results/ and the time of day")]
Name = Annotated[str | None, typer.Option(help="Short for --out results/NAME.")]
Note = Annotated[
    str | None, typer.Option(metavar="TEXT", help="A line of your own that the results keep.", show_default=False)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress, only the results and what failed.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show a line whenever a run begins or ends.")]


def resume_command(request: "Request", root: Path, options: Mapping[str, str | int | Path | bool | None]) -> str:
    """The command that continues an interrupted campaign, with the options that were given."""
    words = [*request.patterns, "--out", str(root), "--resume", *replace(request, patterns=()).words()]
    for name, value in options.items():
        if value is not None and value is not False:
            words += [name] if value is True else [name, str(value)]
    return shlex.join(["bakeoff", request.kind, *words])


def seconds(option: str, value: str | None) -> float | None:
    """The time [s] that an option was given. BakeoffError if it is none, or 0."""
    from bakeoff.scenario.units import TIME_FORM, parse_time

    if value is None:
        return None
    try:
        found = parse_time(value)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from None
    if found <= 0:
        raise UsageError(f"{option}: '{value}'; expected {TIME_FORM}, above 0")
    return found


def detail(*, quiet: bool, verbose: bool) -> Literal["quiet", "normal", "verbose"]:
    """How much of a campaign's progress is shown. BakeoffError if both were given."""
    if quiet and verbose:
        raise UsageError("--quiet and --verbose were both given; expected one of them")
    return "quiet" if quiet else "verbose" if verbose else "normal"


def tell_code(runs: "Iterable[Run]") -> None:
    """Say which files the runs would execute, on standard error."""
    from bakeoff.scenario.python_cc import executed

    for code in executed(runs):
        needs = "" if code.own else "; it lies outside of the scenario's folder and needs --allow-code"
        typer.echo(f"will execute {code.path} (SHA-256 {code.sha256 or 'unknown'}){needs}", err=True)


def tell_warnings(runs: "Iterable[Run]") -> None:
    """Say on standard error what is valid in the runs and probably not meant."""
    from bakeoff.cli.warn import warnings

    for warning in warnings(runs):
        typer.echo(printable(f"bakeoff: warning: {warning}"), err=True)
