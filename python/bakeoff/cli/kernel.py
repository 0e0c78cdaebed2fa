"""`bakeoff kernel build|list|check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli import complete
from bakeoff.cli.command import Group, add
from bakeoff.cli.output import on_one_line, print_table, say


def build(
    source: Annotated[Path | None, typer.Option(help="Linux source tree or tarball, 6.6 or later.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the kernel.", show_default="linux-RELEASE")] = None,
    module: Annotated[list[Path] | None, typer.Option(help="Source folder of an external module; repeatable.")] = None,
    config: Annotated[
        list[Path] | None,
        typer.Option(help="Additional kernel configuration, CONFIG_NAME=value lines; repeatable."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Parallel compiler processes.", show_default="one per core")
    ] = None,
) -> None:
    """Build a virtual-time kernel from a Linux source tree.

    The source tree is not modified.
    """
    from bakeoff.cli import output
    from bakeoff.engines.kernel.build import build as build_kernel

    console = output.console(err=True)
    with console.status("preparing") as status:

        def progress(step: str, objects: int) -> None:
            status.update(f"{objects} objects  {step}" if objects else step)

        kernel = build_kernel(
            source, name=name, modules=module or [], fragments=config or [], jobs=jobs, progress=progress
        )
    typer.echo(f"{kernel.name}: Linux {kernel.release}, fingerprint {kernel.fingerprint[:16]}")
    typer.echo(f"  {kernel.binary}")
    if kernel.not_granted:
        typer.echo(f"  options missing in this tree: {', '.join(kernel.not_granted)}")


def list_(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the kernels built on this machine."""
    from bakeoff.engines.kernel.registry import list_kernels
    from bakeoff.text.columns import Column

    kernels = list_kernels()
    if as_json:
        keys = ("name", "release", "fingerprint", "source", "not_granted")
        found = [{key: getattr(kernel, key) for key in keys} for kernel in kernels]
        for kernel, each in zip(kernels, found, strict=True):
            each |= {"binary": str(kernel.binary), "modules": [str(path) for path in kernel.modules]}
        typer.echo(json.dumps(found, indent=2))
        return
    if not kernels:
        typer.echo("no kernels; build one with 'bakeoff kernel build'", err=True)
    if kernels:
        cells = [
            [each.name, f"Linux {each.release}", each.fingerprint[:16], on_one_line(each.source)] for each in kernels
        ]
        print_table([Column("", column, text=True) for column in zip(*cells, strict=True)])


def check(
    kernel: Annotated[
        str,
        typer.Argument(help="Name from 'kernel list', or path of a 'linux' binary.", autocompletion=complete.kernel),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Boot a kernel and report which parts of the catalog it can run."""
    from bakeoff.engines import controls
    from bakeoff.engines.kernel.check import check as check_kernel

    report = check_kernel(kernel)
    if as_json:
        typer.echo(json.dumps(report.to_json(), indent=2))
        return
    typer.echo(f"{report.kernel}: Linux {report.release}, fingerprint {report.fingerprint[:16]}")
    for kind in dict.fromkeys(finding.kind for finding in report.findings):
        good = [finding.name for finding in report.findings if finding.kind == kind and finding.ok]
        if good:
            say(f"  {kind}: {', '.join(good)}", indent=4)
    for finding in report.findings:
        if not finding.ok:
            say(f"  no {finding.kind} {finding.name}: {finding.why}", indent=4)
    for kind, names in report.adds.items():
        if names:
            say(f"  beyond Linux 7.3, {kind}: {', '.join(names)}", indent=4)
    simulated = [name for name, control in controls.table().items() if control.engines == ("sim",)]
    say(f"  only on the simulator, cc: {', '.join(simulated)}", indent=4)


Suites = Annotated[
    list[str] | None,
    typer.Option("--suite", metavar="SUITE", help="Debian suite on apt's mirror; repeatable."),
]


def fetch_source(
    suite: Suites = None,
    package: Annotated[
        str | None, typer.Option(metavar="linux-source-X.Y", help="Package to fetch.", show_default="the newest")
    ] = None,
) -> None:
    """Fetch Debian's linux-source and print the tarball's path.

    Needs no root and installs nothing.

    \b
    Example:
      bakeoff kernel build --source "$(bakeoff kernel fetch-source --suite trixie-backports)"
    """
    _script("fetch-source", [*_options("--suite", suite), *_options("--package", [package] if package else None)])


def fetch_programs(suite: Suites = None) -> None:
    """Fetch newer tc, ip, nft and other programs for the guest.

    The programs come from Debian packages and do not replace the installed ones.

    \b
    Example:
      bakeoff kernel fetch-programs --suite forky
    """
    _script("fetch-programs", _options("--suite", suite))


def _options(name: str, values: list[str] | None) -> list[str]:
    return [word for value in values or [] for word in (name, value)]


def _script(name: str, arguments: list[str]) -> None:
    """A program of the folder `kernel`, which imports nothing of bakeoff; this process ends as it does."""
    import subprocess
    import sys

    from bakeoff import data

    # -B: an installation's folders are not for compiled files that pip knows nothing of.
    command = [sys.executable, "-B", str(data.folder("kernel") / name), *arguments]
    raise typer.Exit(subprocess.run(command, check=False).returncode)


app = typer.Typer(cls=Group, help="Build, list and check virtual-time kernels.", no_args_is_help=True)
add(app, build, list_, check, fetch_source, fetch_programs)
