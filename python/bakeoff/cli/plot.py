"""plot: what came out, as pictures."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli.present import Results, chosen_results, warn_of_epochs
from bakeoff.errors import BakeoffError

if TYPE_CHECKING:
    from bakeoff.results import Result

_BARS = "bars"


class Picture(StrEnum):
    """How a picture is written."""

    svg = "svg"
    png = "png"


def plot(
    results: Results = None,
    kind: Annotated[
        str | None,
        typer.Option(help="What to draw.", show_default="tcp_delivery_with_rtt for one run, bars for several"),
    ] = None,
    format_: Annotated[Picture, typer.Option("--format", "-f", help="Vectors or pixels.")] = Picture.svg,
    out: Annotated[
        Path | None, typer.Option(help="Folder, or file for a single picture.", show_default="beside the results")
    ] = None,
) -> None:
    """Draw pictures of runs, and print where they lie.

    \b
    Examples:
      bakeoff plot                                        bars over the latest campaign
      bakeoff plot 'l4s-tests/s6*/*pie*' --kind tcp_delivery_with_rtt --format png
      bakeoff plot results/fairness/l4s-tests/s6-rfc3168/ns-prague-vs-cubic-pie-50Mbit-20ms --out pie.svg
    """
    from bakeoff.present import bars, plots

    root, chosen = chosen_results(results)
    warn_of_epochs(chosen)
    known = [*plots.kinds(), _BARS]
    kind = kind or (known[0] if len(chosen) == 1 else _BARS)
    if kind not in known:
        raise BakeoffError(f"--kind: unknown '{kind}'; expected one of {', '.join(known)}")
    suffix = f".{format_.value}"
    if kind == _BARS:
        for path in bars.bars(chosen, out or root / "plots", suffix=suffix):
            typer.echo(path)
        return
    for result in chosen:
        if not result.ok:
            typer.echo(f"left out: {result.key} failed: {result.meta['error']}", err=True)
        else:
            typer.echo(plots.draw(result, _picture(result, root, kind, suffix, out, alone=len(chosen) == 1), kind))


def _picture(result: Result, root: Path, kind: str, suffix: str, out: Path | None, *, alone: bool) -> Path:
    """Where the picture of one run goes."""
    if out is not None and alone and out.suffix in (".svg", ".png"):
        return out
    if out is None and alone:
        return result.path / f"{kind}{suffix}"
    return (out or root / "plots") / f"{result.key.replace('/', '_')}-{kind}{suffix}"
