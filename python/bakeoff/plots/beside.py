"""Pictures of several runs side by side: a column for each, the same axes in all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bakeoff.errors import PlotError
from bakeoff.plots import caption, time_series
from bakeoff.plots.picture import titled
from bakeoff.plots.plotted_run import PlottedRun
from bakeoff.plots.style import plain, styled

if TYPE_CHECKING:
    from matplotlib.artist import Artist

    from bakeoff.plots.picture import Picture
    from bakeoff.plots.time_series import Fill, Scale

MOST_COLUMNS: Final = 3
_LAYOUTS: Final[dict[str, tuple[Callable[[Sequence[PlottedRun]], int], Fill]]] = {
    "tcp_delivery_with_rtt": (time_series.n_rates_and_delays, time_series.fill_delivery),
    "upload_with_ping_and_tcp_rtt": (time_series.n_rates_and_delays, time_series.fill_goodput),
    "totals_with_tcp_rtt": (time_series.n_totals, time_series.fill_totals),
    "all_scaled_delivery": (time_series.n_scaled, time_series.fill_scaled),
}


def beside(several: Sequence[PlottedRun], kind: str, scale: Scale) -> Picture:
    """One picture with a column for each run, which has the run's label as its title, and the same limits in a row.

    Raises PlotError for a kind that has no columns, and for more runs than fit; MeasureError for missing samples.
    """
    if kind not in _LAYOUTS:
        raise PlotError(f"columns: '{kind}' has none; expected one of {', '.join(_LAYOUTS)}")
    if not 2 <= len(several) <= MOST_COLUMNS:
        raise PlotError(f"columns: {len(several)} runs; expected 2 to {MOST_COLUMNS}")
    rows_of, fill = _LAYOUTS[kind]
    rows = max(rows_of([plotted]) for plotted in several)
    with styled():
        made = titled(
            caption.title(several), caption.lines(several), caption.failures(several),
            height_inch=rows * {1: 5.0, 2: 3.6}.get(rows, 2.7),
        )  # fmt: skip
        grid = made.subplots(rows, len(several), sharex=True, squeeze=False)
        entries: dict[str, Artist] = {}
        for column, plotted in enumerate(several):
            alone = [replace(plotted, label="")]
            time_series.need_samples(alone)
            n, before = rows_of(alone), len(made.panels)
            # The last row of every column has the round-trip times.
            places = [*grid[: n - 1, column], grid[-1, column]]
            for empty in grid[n - 1 : -1, column]:
                empty.set_axis_off()
            for entry in fill(made, places, alone, scale):
                entries.setdefault(str(entry.get_label()), entry)
            for row, panel in enumerate(made.panels[before:]):
                panel.role = f"{panel.unit} {row if panel.unit != 'ms' else 'delay'}"
            places[0].set_title(plain(plotted.label), loc="left", fontsize=11, fontweight="bold")
            places[-1].set_xlabel("time [s]")
            for axes, left in zip(places, grid[:, 0], strict=False):
                axes.tick_params(labelbottom=True)
                if column and axes.get_ylabel() == left.get_ylabel():
                    axes.set_ylabel("")
        _same_limits(made)
        time_series.finish(made, [replace(plotted, label="") for plotted in several], list(entries.values()))
    return made


def _same_limits(made: Picture) -> None:
    """Give the panels of a row the same limits: those that were asked for, else those that hold the data of all."""
    for role in {panel.role for panel in made.panels}:
        row = [panel for panel in made.panels if panel.role == role]
        limits = [panel.fixed for panel in row if panel.fixed is not None] or [panel.limits() for panel in row]
        for panel in row:
            panel.fixed = min(low for low, _ in limits), max(high for _, high in limits)
