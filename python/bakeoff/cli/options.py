"""Arguments and options that several commands take."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bakeoff.cli import complete
from bakeoff.errors import UsageError, printable

if TYPE_CHECKING:
    from bakeoff.campaign import Execution
    from bakeoff.cli.progress import Detail
    from bakeoff.results import Request
    from bakeoff.scenario import Run


def with_kernel(engine: str, kernel: str | None) -> str:
    """The engine's whole name: `kernel:NAME` where a kernel was chosen. BakeoffError if it is another engine."""
    if kernel is None:
        return engine
    if engine != "kernel":
        raise UsageError(f"--kernel: only valid with --engine kernel, not with '{engine}'")
    # A path with a slash, as in registry.get; whole, because the name stands in the results.
    return f"kernel:{Path(kernel).expanduser().absolute() if '/' in kernel else kernel}"


def with_exact(engine: str, exact: bool) -> str:
    """The engine's whole name: `sim:exact` where that was asked for. BakeoffError if it is another engine."""
    if not exact or engine == "sim:exact":
        return engine
    if engine != "sim":
        raise UsageError(f"--exact: only valid with --engine sim, not with '{engine}'")
    return "sim:exact"


def with_inventory(engine: str, inventory: Path | None) -> str:
    """The engine's whole name: `ssh:FILE` where an inventory was given. BakeoffError if it is another engine."""
    if inventory is None:
        return engine
    if engine != "ssh":
        raise UsageError(f"--inventory: only valid with --engine ssh, not with '{engine}'")
    return f"ssh:{inventory.expanduser().absolute()}"


class Format(StrEnum):
    """How a table is written."""

    terminal = "terminal"
    markdown = "markdown"
    csv = "csv"
    json = "json"
    latex = "latex"
    html = "html"


FormatOption = Annotated[Format, typer.Option("--format", "-f", help="Output format.")]
Engine = Annotated[str, typer.Option(help="Engine: sim, kernel, netns or ssh.", autocompletion=complete.engine)]
Exact = Annotated[
    bool,
    typer.Option("--exact", help="Disable the simulator's shortcuts; slower, identical results."),
]
Kernel = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|PATH",
        help="Virtual-time kernel, with --engine kernel.",
        show_default="the newest one built",
        autocompletion=complete.kernel,
    ),
]
ItsKernel = Annotated[
    str | None,
    typer.Option(
        "--kernel",
        metavar="NAME|PATH",
        help="Virtual-time kernel.",
        show_default="the newest one built",
        autocompletion=complete.kernel,
    ),
]
Inventory = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Testbed inventory, with --engine ssh.", show_default=False),
]
Jobs = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Parallel processes.", show_default="one per core")
]
Seeds = Annotated[int, typer.Option(min=1, help="Repetitions per run, with consecutive seeds.")]
FileSeeds = Annotated[
    int | None,
    typer.Option(
        "--seeds",
        min=1,
        help="Repetitions per run, with consecutive seeds.",
        show_default="the scenario's value, or 1",
    ),
]
Seed = Annotated[int | None, typer.Option(min=1, help="Seed of the first repetition.", show_default="1")]
Only = Annotated[
    str | None,
    typer.Option(
        "-k",
        metavar="PATTERN",
        help="Only runs that match: a glob on the short or full name, re:REGEX, or part of the name.",
        show_default=False,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="Override a value, such as network.rtt=40ms, flows.0.cc=bbr or flows.NAME.cc=bbr; repeatable.",
    ),
]
AllowCode = Annotated[
    bool,
    typer.Option(
        "--allow-code",
        help="Allow congestion controls in Python from outside the scenario's folder, and local programs started "
        "by the OpenSSH configuration of an inventory.",
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Allow more than 100,000 runs.")]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="PATH|URL",
        help="Cache of finished runs; 'none' disables it.",
        show_default="BAKEOFF_STORE, or one in the user's cache folder",
    ),
]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="WORKERS",
        help="Distribute runs with Dask: tcp://HOST:PORT, local:N, slurm:N or ssh:HOST,HOST.",
        show_default="local processes",
    ),
]
RunTimeout = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Time limit per run, such as 5min; a run that exceeds it fails.",
        show_default=False,
    ),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Ignore cached runs.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Trace = Annotated[
    list[str] | None, typer.Option(metavar="cc", help="Record congestion-control internals at every ACK.")
]
Capture = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NODE>PEER",
        help="Capture packets leaving this interface (pcapng); NODE: both directions; or 'all'; repeatable.",
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Do only the runs that are missing in --out (or the latest).")]
StopOnFailure = Annotated[bool, typer.Option("-x", "--stop-on-failure", help="Stop after the first failure.")]
Out = Annotated[Path | None, typer.Option(help="Results folder.", show_default="results/TIMESTAMP")]
Name = Annotated[str | None, typer.Option(help="Short for --out results/NAME.")]
Note = Annotated[str | None, typer.Option(metavar="TEXT", help="Note stored with the results.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show results and failures, no progress.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print a line when a run starts or ends.")]


def takes(**groups: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of groups: for its parameter `how` those that are fields of the dataclass `how`."""

    def mark(function: Callable[..., None]) -> Callable[..., None]:
        function.option_groups = groups  # type: ignore[attr-defined]
        return function

    return mark


@dataclass(frozen=True, kw_only=True)
class How:
    """How runs are done and told, of every command that does some of the user's choice."""

    engine: Engine = "sim"
    exact: Exact = False
    kernel: Kernel = None
    inventory: Inventory = None
    jobs: Jobs = None
    dask: Dask = None
    allow_code: AllowCode = False
    store: Store = None
    fresh: Fresh = False
    run_timeout: RunTimeout = None
    stop: StopOnFailure = False
    note: Note = None
    quiet: Quiet = False
    verbose: Verbose = False
    as_json: Json = False

    def execution(self) -> "Execution":
        """As the campaign takes it, with the engine's whole name and permission to execute what it may."""
        from bakeoff import campaign, engines
        from bakeoff.campaign.store import place

        engine = with_inventory(with_kernel(with_exact(self.engine, self.exact), self.kernel), self.inventory)
        if self.allow_code:
            engines.permit_code(engine)
        return campaign.Execution(
            engine=engine, jobs=self.jobs, dask=self.dask, timeout_s=seconds("--run-timeout", self.run_timeout),
            store=place(self.store), fresh=self.fresh, stop_on_failure=self.stop, allow_code=self.allow_code,
            note=self.note,
        )  # fmt: skip

    @property
    def detail(self) -> "Detail":
        """How much of a campaign's progress is shown. BakeoffError if both extremes were asked for."""
        return detail(quiet=self.quiet, verbose=self.verbose)

    def given(self, engine: str) -> dict[str, str | bool | None]:
        """The options that a resumed campaign needs again, where `engine` is the engine's whole name."""
        return {
            "--engine": engine if engine != "sim" else None, "--allow-code": self.allow_code, "--fresh": self.fresh,
            "--note": self.note, "--store": self.store, "--dask": self.dask, "--run-timeout": self.run_timeout,
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which of the runs of scenarios are done, with which values and seeds."""

    only: Only = None
    set_: Set = None
    seed: Seed = None
    seeds: FileSeeds = None
    yes: Yes = False


@dataclass(frozen=True, kw_only=True)
class Observations:
    """What runs keep besides their samples."""

    trace: Trace = None
    capture: Capture = None


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
        raise UsageError("--quiet and --verbose: mutually exclusive")
    return "quiet" if quiet else "verbose" if verbose else "normal"


def tell_code(runs: "Iterable[Run]") -> None:
    """Say which files the runs would execute, on standard error."""
    from bakeoff.scenario.python_cc import executed

    for code in executed(runs):
        needs = "" if code.own else "; outside the scenario's folder, needs --allow-code"
        typer.echo(f"will execute {code.path} (SHA-256 {code.sha256 or 'unknown'}){needs}", err=True)


def tell_warnings(runs: "Iterable[Run]") -> None:
    """Say on standard error what is valid in the runs and probably not meant."""
    from bakeoff.cli.warn import warnings

    for warning in warnings(runs):
        typer.echo(printable(f"bakeoff: warning: {warning}"), err=True)
