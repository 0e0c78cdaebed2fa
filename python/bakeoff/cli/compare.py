"""compare: the same runs done twice."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import Format, FormatOption, Json, Only
from bakeoff.cli.table import chosen_results
from bakeoff.errors import UsageError


def compare(
    ours: Annotated[
        str,
        typer.Argument(
            metavar="OURS", help="A campaign's folder.", show_default=False, autocompletion=complete.results
        ),
    ],
    theirs: Annotated[
        str,
        typer.Argument(
            metavar="THEIRS",
            help="Another campaign's folder, or the name of a reference.",
            show_default=False,
            autocompletion=complete.results_or_reference,
        ),
    ],
    *,
    only: Only = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="AXIS,…",
            help="Group by these axes, one distribution per value; 'scenario' is an axis too.",
            show_default="one for all; with --own, scenario",
        ),
    ] = None,
    bound: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEASURE=X",
            help="Largest |ln(ours / theirs)| of a measure: goodput, tcp_delay_mean, tcp_delay_p99, "
            "little_delay_mean, little_delay_p99, marks, drops, ping_mean, ping_p99; repeatable.",
            show_default="goodput=0.05 tcp_delay_mean=0.15",
        ),
    ] = None,
    own: Annotated[
        bool,
        typer.Option("--own", help="Also show the distance between the seeds of THEIRS."),
    ] = False,
    unpaired: Annotated[
        bool,
        typer.Option("--unpaired", help="Compare means over all seeds instead of pairs of equal seeds."),
    ] = False,
    each: Annotated[
        bool,
        typer.Option("--each", help="Also exit with 1 if any number is out of bounds and 'apart'."),
    ] = False,
    format_: FormatOption = Format.terminal,
    packets: Annotated[
        bool, typer.Option("--packets", help="Compare two runs with captures, or two captures, packet by packet.")
    ] = False,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="With --packets: plot the time difference over time.", show_default=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare two campaigns statistically, engine against engine.

    Shows the distribution of |ln(ours / theirs)| per measure and lists values out of bounds. The exit code is 1 if a
    median is out of bounds. With --each it is also 1 if a single value is out of bounds and the seeds separate the two
    sides. Campaigns that differ in one congestion control are compared as two versions of it; the exit code is then 1
    if a number is worse. --own shows another table and exits with 0. --packets exits with 1 unless both sides have the
    same data packets within 20 µs.

    \b
    Examples:
      bakeoff run linux/single linux/pairs --out results/sim
      bakeoff run linux/single linux/pairs --out results/kernel --engine kernel
      bakeoff compare results/sim results/kernel --by qdisc
      bakeoff compare results/sim linux --own
      bakeoff compare results/patched results/base --each     regression test of a patch
      bakeoff compare results/new results/old                 two versions of a congestion control
      bakeoff compare results/sim linux --bound marks=0.3 -f csv > differences.csv
      bakeoff compare --packets results/sim/local/mine/run results/kernel/local/mine/run --plot apart.svg
    """
    if packets:
        if only or by or bound or own or unpaired or each:
            raise UsageError("--packets: only valid with --plot and --json; the other options compare campaigns")
        from bakeoff.cli.compare_packets import compare_packets

        compare_packets(ours, theirs, plot=plot, as_json=as_json)
        return
    if plot is not None or as_json:
        raise UsageError(f"{'--plot' if plot else '--json'}: only valid with --packets")

    from bakeoff.api import do_compare
    from bakeoff.cli.output import print_rendered
    from bakeoff.cli.progress import patience

    if own and (bound or each):
        raise UsageError(f"--own: not valid with {'--bound' if bound else '--each'}")
    bounds = bounds_of(bound, "--bound") if bound else None
    mine = ours, chosen_results(ours, only)[1]
    other = (theirs, chosen_results(theirs, only)[1]) if Path(theirs).is_dir() else theirs
    with patience("comparing"):
        found = do_compare.compared(
            mine, other, by=by.split(",") if by else (), bounds=bounds, own=own, paired=not unpaired
        )
    if found.comparison.warning is not None:
        typer.echo(f"bakeoff: {found.comparison.warning}", err=True)
    print_rendered(found.text(format_.value), colours=format_ is Format.terminal)
    if found.controls is not None:
        raise typer.Exit(0 if found.agrees else 1)
    if not own and not (found.agrees and (found.each_agrees or not each)):
        raise typer.Exit(1)


def bounds_of(words: list[str], option: str) -> dict[str, float]:
    """`goodput=0.05` of `option` as a measure and a number; the measure is checked where the measures are known."""
    import warnings

    from bakeoff.claims.comparison import RENAMED

    bounds = {}
    for word in words:
        measure, equals, value = word.partition("=")
        if measure in RENAMED:
            warnings.warn(f"measure '{measure}' was renamed to '{RENAMED[measure]}'", FutureWarning, stacklevel=2)
            measure = RENAMED[measure]
        try:
            bounds[measure] = float(value)
        except ValueError:
            equals = ""
        if not equals or not bounds[measure] >= 0:
            raise UsageError(f"{option}: '{word}'; expected a measure and a number, such as goodput=0.05")
    return bounds
