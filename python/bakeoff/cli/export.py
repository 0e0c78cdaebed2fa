"""export: runs in the forms of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.options import Only
from bakeoff.cli.table import SeveralResults, chosen_several
from bakeoff.errors import BakeoffError, UsageError

if TYPE_CHECKING:
    from bakeoff.results import Result


def export(
    results: SeveralResults = None,
    *,
    only: Only = None,
    flent: Annotated[bool, typer.Option("--flent", help="Flent data file (.flent.gz).")] = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="Samples and measures as CSV, with units in column names.")
    ] = False,
    parquet: Annotated[
        bool, typer.Option("--parquet", help="Samples and measures as Parquet, with units in the schema.")
    ] = False,
    iperf3: Annotated[bool, typer.Option("--iperf3", help="Each flow in the format of iperf3 -J.")] = False,
    irtt: Annotated[bool, typer.Option("--irtt", help="Each probe in the format of irtt client -o.")] = False,
    mahimahi: Annotated[
        bool, typer.Option("--mahimahi", help="Each rate-limited interface as a trace for mm-link.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Destination folder, created if missing.",
            show_default="'exports' beside the results, or the folder of a single run",
        ),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite existing files.")] = False,
) -> None:
    """Export runs to the file formats of other programs.

    \b
    Examples:
      bakeoff export --flent                                  every run of the latest campaign
      bakeoff export 'l4s-tests/s6*/*pie*' --flent --out pie  some of its runs, to the folder pie
      bakeoff export results/a results/b --flent --replace    two campaigns, overwriting files
      bakeoff export 'l4s-tests/s6*' --parquet --csv          for DuckDB, pandas, R or a spreadsheet
      bakeoff export 'l4s-tests/s2*' --iperf3 --irtt          flows and probes
    """
    from bakeoff import exports
    from bakeoff.campaign.signals import unwinding
    from bakeoff.cli.progress import patience
    from bakeoff.results import below

    asked = {
        "flent": flent, "csv": csv, "parquet": parquet, "iperf3": iperf3, "irtt": irtt, "mahimahi": mahimahi,
    }  # fmt: skip
    forms = [name for name, wanted in asked.items() if wanted]
    if not forms:
        raise UsageError(f"no format; expected one or more of {', '.join(f'--{name}' for name in asked)}")
    root, chosen = chosen_several(results or [], only)
    folder = out or (chosen[0].path if len(chosen) == 1 else below(root, "exports/file").parent)
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"--out: '{folder}' is not a folder")
    whole = [result for result in chosen if result.ok]
    for result in chosen:
        if not result.ok:
            typer.echo(f"skipped: {result.key}: failed: {result.record.error}", err=True)
    if not whole:
        raise UsageError("no finished run to export")
    named = list(zip(whole, exports.stems(whole), strict=True))
    written = 0
    with unwinding(), patience("exporting") as tell:
        if not replace:
            _need_free(named, forms, folder)
        for number, (result, stem) in enumerate(named, start=1):
            for name in forms:
                written += _export(result, name, folder / stem, replace=replace, alone=len(whole) * len(forms) == 1)
            tell(number)
    if not written:
        raise UsageError(f"nothing to export in {len(whole)} runs with {', '.join(f'--{name}' for name in forms)}")


def _need_free(named: list[tuple[Result, str]], forms: list[str], folder: Path) -> None:
    """BakeoffError names the first file that is there, before any is written."""
    from bakeoff import exports

    if not folder.exists():
        return
    for result, stem in named:
        for name in forms:
            try:
                suffixes = exports.form(name).suffixes(result)
            except BakeoffError:
                continue  # said when its turn comes
            for suffix in suffixes:
                if (path := exports.place(folder, stem, suffix)).exists():
                    raise exports.taken(path)


def _export(result: Result, name: str, stem: Path, *, replace: bool, alone: bool) -> int:
    """Write the files of a run in one form, and return how many; what cannot be is said, or raised if it is `alone`."""
    from bakeoff import exports

    written = 0
    made = exports.form(name).files(result)
    while True:
        try:
            suffix, content = next(made)
        except StopIteration:
            return written
        except BakeoffError as error:
            if alone:
                raise
            typer.echo(f"skipped: {result.key}: {error}", err=True)
            return written
        path = exports.place(stem.parent, stem.name, suffix)
        exports.write(path, content, replace=replace)
        typer.echo(path)
        written += 1
