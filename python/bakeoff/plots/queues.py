"""The queue over time: delay, backlog, marks, drops, of all queues at the bottlenecks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bakeoff.errors import MeasureError
from bakeoff.measure.delays import delay_over_time
from bakeoff.plots.plotted_run import MOST_LINES, Line, PlottedRun, bins
from bakeoff.plots.style import plain
from bakeoff.tables import run_labels

if TYPE_CHECKING:
    from matplotlib.artist import Artist

    from bakeoff.measure.samples import Array
    from bakeoff.plots.picture import Picture

_PANELS = (
    (("sojourn",), "queue delay\n[ms]", "ms", 1e3),
    (("sojourn_l",), "delay in L\n[ms]", "ms", 1e3),
    (("sojourn_c",), "delay in C\n[ms]", "ms", 1e3),
    (("qlen",), "backlog\n[packets]", "packets", 1.0),
    (("backlog",), "backlog\n[kB]", "kB", 1e-3),
    (("marks",), "CE marks\n[packets/s]", "packets/s", 1.0),
    (("sce_marks",), "SCE marks\n[packets/s]", "packets/s", 1.0),
    (("drops",), "drops\n[packets/s]", "packets/s", 1.0),
)
_COUNTED = {"marks": "CE marks", "sce_marks": "SCE marks", "drops": "drops"}


def queue(several: Sequence[PlottedRun]) -> Picture:
    """Delay, backlog, marks and drops of the sampled queues at the bottlenecks, one line per queue.

    Of runs without flows it is the whole picture, and has the probes' round-trip times below.
    """
    from bakeoff.plots import panels, time_series

    drawn = queue_lines(several)
    rows = [row for row in _PANELS if any(_has(plotted, name, row[0][0]) for plotted, name, _ in drawn)]
    # Bytes say little more than packets; where there are no packets they are all there is.
    if any(row[0] == ("qlen",) for row in rows):
        rows = [row for row in rows if row[0] != ("backlog",)]
    # A panel in which nothing happens would only take room from those in which something does.
    none = [row for row in rows if row[0][0] in _COUNTED and not any(_grew(s, name, row[0][0]) for s, name, _ in drawn)]
    rows = [row for row in rows if row not in none] or rows
    notes = [f"these queues had no {' and no '.join(_COUNTED[row[0][0]] for row in none)}"] if none else []
    probed = time_series.has_delays(several) and not any(plotted.flows for plotted in several)
    made = panels.picture(several, len(rows) + probed, row_inch=2.2, notes=notes)
    for axes, ((metric,), label, unit, scale) in zip(made.axes, rows, strict=False):
        panel = panels.Panel(axes, unit, metric)
        made.panels.append(panel)
        axes.set_ylabel(label)
        for plotted, name, line in drawn:
            if not _has(plotted, name, metric):
                continue
            time, value = _of(plotted, name, metric)
            if metric in _COUNTED:
                edges, _ = bins(several)
                per_s = _per_second(time, value, edges)
                axes.stairs(per_s, edges, color=line.colour, linestyle=line.dash, linewidth=1.4)
                panel.saw(per_s)
            else:
                panels.draw_line(panel, several, line, [(time, value * scale)], thin=panels.thin_lines(len(drawn)))
        panels.over_time(panel, several)
    entries: list[Artist] = [panels.line_entry(line) for _, _, line in drawn]
    if probed:
        time_series.delays_panel(made, made.axes[-1], several, [], label="round-trip\ntime [ms]")
        entries += time_series.probe_entries(several)
    made.add_legend([*entries, *panels.time_entries(several, means_in=made)])
    made.axes[-1].set_xlabel("time [s]")
    return made


def queue_lines(several: Sequence[PlottedRun]) -> list[tuple[PlottedRun, str, Line]]:
    """The queues to show, and how: those at the bottlenecks that were sampled, or all that were.

    Of more queues than eyes can tell apart the busiest. Raises MeasureError if none was sampled.
    """
    from bakeoff.plots.colours import DASHES, SERIES

    found: list[tuple[PlottedRun, str]] = []
    for plotted in several:
        sampled = list(plotted.samples.names("queue"))
        narrow = {queue for queue in plotted.bottlenecks.values() if queue is not None}
        at = [name for name in sampled if name in narrow or any(name.startswith(f"{queue}/") for queue in narrow)]
        found += [(plotted, name) for name in at or sampled]
    if not found:
        raise MeasureError(
            f"{run_labels.title(several[0].result)}: no queue samples; expected a queue that measures its delay"
        )
    left_out = len(found) - MOST_LINES
    if left_out > 0:
        busiest = sorted(found, key=lambda at: -_sent(*at))[:MOST_LINES]
        found = [at for at in found if at in busiest]
    made = []
    for i, (plotted, name) in enumerate(found):
        label = plain(f"{plotted.label}: {name}" if plotted.label else name)
        if left_out > 0 and i == len(found) - 1:
            label += f"  ({left_out} queues with less traffic are left out)"
        look = Line(label, SERIES[i % len(SERIES)], "os^DvP<>"[i % 8], dash=DASHES[i // len(SERIES) % 4])
        made.append((plotted, name, look))
    return made


def _of(plotted: PlottedRun, name: str, metric: str) -> tuple[Array, Array]:
    if metric == "sojourn":
        return delay_over_time(plotted.samples, name)
    return plotted.samples.of("queue", name, metric)


def _has(plotted: PlottedRun, name: str, metric: str) -> bool:
    try:
        return bool(len(_of(plotted, name, metric)[0]))
    except MeasureError:
        return False


def _grew(plotted: PlottedRun, name: str, metric: str) -> bool:
    return _has(plotted, name, metric) and bool(plotted.samples.of("queue", name, metric)[1].any())


def _sent(plotted: PlottedRun, name: str) -> float:
    for metric in ("sent", "backlog", "qlen"):
        if _has(plotted, name, metric):
            return float(plotted.samples.of("queue", name, metric)[1].sum())
    return 0.0


def _per_second(time: Array, count: Array, edges: Array) -> Array:
    """How much a counter grew in each bin, per second."""
    import numpy as np

    return np.diff(np.interp(edges, time, count, left=0.0)) / np.diff(edges)
