"""plot: what came out, as pictures."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import Only
from bakeoff.cli.table import SeveralResults, chosen_several, warn_of_epochs
from bakeoff.errors import BakeoffError, UsageError

if TYPE_CHECKING:
    from bakeoff.plots.kinds import Kind
    from bakeoff.plots.picture import Picture as Drawn

MOST_PICTURES = 200


class Picture(StrEnum):
    """How a picture is written."""

    svg = "svg"
    png = "png"
    pdf = "pdf"


class Scale(StrEnum):
    """Where axes end."""

    auto = "auto"
    fixed = "fixed"
    var = "var"
    data = "data"


def _list_kinds(wanted: bool) -> None:
    if wanted:
        from bakeoff.cli.output import say
        from bakeoff.plots.kinds import KINDS

        for title, of in (("of a run, or of several with --overlay", "run"), ("of a campaign", "campaign")):
            typer.echo(f"{title}:")
            for kind in KINDS:
                if kind.of == of:
                    say(f"  {kind.name:<30}{kind.shows}", indent=32)
        raise typer.Exit


def plot(
    results: SeveralResults = None,
    *,
    only: Only = None,
    kind: Annotated[
        str | None,
        typer.Option(
            help="Kind of plot; see --list-kinds.",
            show_default="one run: tcp_delivery_with_rtt, or call if it has a call; several runs: bars, or sweep; runs "
            "without flows: queue",
            autocompletion=complete.kind,
        ),
    ] = None,
    list_kinds: Annotated[
        bool, typer.Option("--list-kinds", callback=_list_kinds, is_eager=True, help="List the kinds and exit.")
    ] = False,
    overlay: Annotated[bool, typer.Option("--overlay", help="Draw all runs in one picture.")] = False,
    measure: Annotated[
        str | None,
        typer.Option(
            help="For sweep and heatmap: the measure; for heatmap also several, with commas between them.",
            show_default="for sweep goodput, for heatmap jain or utilisation",
            autocompletion=complete.measure,
        ),
    ] = None,
    x: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS",
            help="For sweep and heatmap: x axis. For bars: the axis that groups them.",
            show_default="the axis with the most values; for bars, qdisc",
            autocompletion=complete.axis,
        ),
    ] = None,
    y: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS",
            help="For heatmap: y axis.",
            show_default="the axis with the second most values",
            autocompletion=complete.axis,
        ),
    ] = None,
    lines: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS,…",
            help="For sweep: axes drawn as lines, or 'all'.",
            show_default="as many as are readable; none for measures per flow",
            autocompletion=complete.axis,
        ),
    ] = None,
    panels: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS,…",
            help="For sweep and bars: axes drawn as panels of one picture, or 'all'.",
            show_default="for sweep, the remaining axes; for bars, none: one picture each",
            autocompletion=complete.axis,
        ),
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(
            metavar="WIDTH",
            help="Width with unit (in, cm, mm, pt); a journal column is 3.5in.",
            show_default="12in",
        ),
    ] = None,
    heading: Annotated[
        bool, typer.Option("--heading/--no-heading", help="Draw the title and the configuration above the plot.")
    ] = True,
    scale: Annotated[
        Scale,
        typer.Option(
            help="Axis limits. auto: from the data or the scenario; fixed: 1.2 times the capacity, and 100 ms "
            "above the base delay; var: three times the delay in the data; data: all of the data. File names end "
            "in _fixed, _var or _data."
        ),
    ] = Scale.auto,
    format_: Annotated[
        Picture | None, typer.Option("--format", "-f", help="Picture format.", show_default="svg")
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|FOLDER/",
            help="Destination file, or folder if it exists or ends in /.",
            show_default="in the results folder",
        ),
    ] = None,
) -> None:
    """Draw pictures of runs.

    \b
    Examples:
      bakeoff plot                                        bars over the latest campaign
      bakeoff plot 'l4s-tests/s6*/*pie*' --kind tcp_delivery_with_rtt --format png
      bakeoff plot results/fairness/l4s-tests/s6-rfc3168/ns-prague-vs-cubic-pie-50Mbit-20ms --out pie.svg
      bakeoff plot results/a results/b --overlay --kind ping_cdf
      bakeoff plot results/fairness --kind sweep --x rtt1 --measure jain
      bakeoff plot results/duels/latest --panels rate,rtt --x qdisc       a batch of duels in one picture
      bakeoff plot results/fairness --kind sweep --width 3.5in --no-heading -f pdf     for a paper
    """
    from bakeoff.cli.output import say
    from bakeoff.cli.progress import patience
    from bakeoff.plots import draw, kinds
    from bakeoff.plots.style import save
    from bakeoff.results import below

    root, chosen = chosen_several(results or [], only)
    warn_of_epochs(chosen)
    whole = [result for result in chosen if result.ok]
    for result in chosen:
        if not result.ok:
            typer.echo(f"skipped: {result.key}: failed: {result.record.error}", err=True)
    if not whole:
        raise UsageError("no finished run to draw")
    picked = kinds.kind(kind) if kind is not None else kinds.kind(draw.default_kind(whole, overlay=overlay))
    _fits(picked, measure=measure, x=x, y=y, lines=lines, panels=panels, width=width, overlay=overlay, scale=scale)
    target = _Place(out, format_)
    plots_folder = root / "plots" if out is not None else below(root, "plots/picture").parent

    def written(figure: Drawn, path: Path) -> None:
        if width is not None or not heading:
            draw.sized(figure, width, heading=heading)
        typer.echo(save(figure, path))

    if picked.of == "campaign":
        with patience("drawing"):
            made = draw.campaign(
                whole, picked.name, measure=measure, x=x, y=y, lines=_axes(lines), panels=_axes(panels)
            )
        for name, figure in made.items():
            written(figure, target.of(plots_folder, name, alone=len(made) == 1))
        if len(made) > 1 and picked.name == "bars" and panels is None:
            say(f"{len(made)} pictures; --panels all draws one per scenario, --x AXIS groups by another axis", err=True)
        return
    if overlay or len(whole) == 1:
        with patience("drawing"):
            figure = draw.overlay(whole, picked.name, scale=scale.value)
        folder = whole[0].path if len(whole) == 1 else plots_folder
        name = draw.file_name(picked.name if len(whole) == 1 else f"overlay-{picked.name}", scale.value)
        written(figure, target.of(folder, name, alone=True))
        return
    if len(whole) > MOST_PICTURES:
        raise UsageError(
            f"{len(whole)} runs: too many pictures; expected at most {MOST_PICTURES} runs, or --kind bars, sweep or "
            "heatmap, which draw all runs in one picture"
        )
    drawn = 0
    for result, found in draw.compared(whole, picked.name, scale=scale.value):
        if isinstance(found, BakeoffError):
            typer.echo(f"skipped: {found}", err=True)
        else:
            name = draw.file_name(f"{result.key.replace('/', '_')}-{picked.name}", scale.value)
            written(found, target.of(plots_folder, name, alone=False))
            drawn += 1
    if not drawn:
        raise UsageError(f"--kind: no data for '{picked.name}' in {len(whole)} runs")


def _axes(text: str | None) -> list[str] | None:
    return None if text is None else [name.strip() for name in text.split(",") if name.strip()]


def _fits(
    kind: Kind,
    *,
    measure: str | None,
    x: str | None,
    y: str | None,
    lines: str | None,
    panels: str | None,
    width: str | None,
    overlay: bool,
    scale: Scale,
) -> None:
    """Whether the options are ones that the kind knows, and the width is one."""
    if width is not None:
        from bakeoff.plots.draw import width_of

        width_of(width)
    known = {
        "--measure": (measure, ("sweep", "heatmap")),
        "--x": (x, ("sweep", "heatmap", "bars")),
        "--y": (y, ("heatmap",)),
        "--lines": (lines, ("sweep",)),
        "--panels": (panels, ("sweep", "bars")),
    }
    for option, (value, kinds) in known.items():
        if value is not None and kind.name not in kinds:
            able = f"{', '.join(kinds[:-1])} or {kinds[-1]}" if len(kinds) > 1 else kinds[0]
            raise UsageError(f"{option}: only valid with --kind {able}, not with '{kind.name}'")
    if overlay and kind.of == "campaign":
        raise UsageError(f"--overlay: not valid with --kind {kind.name}, which draws all runs in one picture")
    if scale is not Scale.auto and not kind.scales:
        from bakeoff.plots.kinds import KINDS

        able = ", ".join(one.name for one in KINDS if one.scales)
        raise UsageError(f"--scale: only valid with --kind {able}, not with '{kind.name}'")


class _Place:
    """Where pictures go, from --out and --format."""

    def __init__(self, out: str | None, format_: Picture | None) -> None:
        from bakeoff.plots.style import SUFFIXES

        self.folder = self.file = None
        self.suffix = f".{format_.value}" if format_ is not None else ".svg"
        if out is None:
            return
        if out.endswith("/") or Path(out).is_dir():
            self.folder = Path(out)
            return
        self.file = Path(out)
        if self.file.suffix.lower() not in SUFFIXES:
            raise UsageError(
                f"--out: '{out}' has no known suffix; expected a file ending in {', '.join(SUFFIXES)}, or a folder "
                "ending in /"
            )
        if format_ is not None and self.file.suffix.lower() != self.suffix:
            raise UsageError(f"--out: '{out}' does not match --format {format_.value}")

    def of(self, folder: Path, name: str, *, alone: bool) -> Path:
        """The path of one picture; `alone` if there are no others."""
        if self.file is not None:
            if not alone:
                raise UsageError(
                    f"--out: '{self.file}' is a file, but there are several pictures; expected a folder ending in /"
                )
            return self.file
        # A file's name has at most 255 bytes; names of runs may be longer.
        short = re.sub(r"[^\w.()+~@=,-]", "_", name)[:200]
        return (self.folder or folder) / f"{short}{self.suffix}"
