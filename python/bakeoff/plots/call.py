"""What a call felt: of every UDP flow the delay of its datagrams, jitter and loss; and who was on the line too."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from bakeoff.errors import MeasureError
from bakeoff.measure import jitter
from bakeoff.measure.delays import arrivals, jitter_over_time, lost_share, shares_a_clock
from bakeoff.plots.plotted_run import Line, PlottedRun, bins, lines
from bakeoff.plots.style import plain
from bakeoff.plots.time_series import delays_panel, probe_entries, rate_panels
from bakeoff.scenario.run import ConstantRate, Periodic
from bakeoff.tables import run_labels

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from bakeoff.measure.samples import Array
    from bakeoff.plots.picture import Picture
    from bakeoff.scenario.run import Flow

_MOST_SAID = 6
_UNIT = re.compile(r"(\d) (ms|%)")
Series = tuple["Array", "Array"]
Draw = Callable[["PlottedRun", "Flow"], Series]


def call(several: Sequence[PlottedRun]) -> Picture:
    """One-way delay, jitter and loss of each UDP flow over time, and what else was on the line.

    Where the datagrams were not told one by one, the share of them that arrived and the probes' round-trip times.
    Raises MeasureError if no flow is UDP with a rate of its own.
    """
    from bakeoff.plots import panels

    # Apart, so that no line stands for a call and something else.
    calls = lines(several, lambda _, flow: offered_bps(flow) is not None)
    others = lines(several, lambda _, flow: offered_bps(flow) is None)
    if not calls:
        raise MeasureError(f"{run_labels.title(several[0].result)}: no call; expected a UDP flow with a rate")
    queues = list(dict.fromkeys(s.bottlenecks[f.name] for line in others for s, f in line.members))
    one_way = all(_one_way_known(plotted, flow) for line in calls for plotted, flow in line.members)
    probes = not one_way and any(("probe", p.name, "rtt") in s.samples for s in several for p in s.run.probes)
    rows = (3 if one_way else 1) + probes
    made = panels.picture(several, rows + len(queues), row_inch=2.3 if one_way else 2.6, notes=_felt(several))
    entries: list[Artist] = [panels.line_entry(line) for line in [*calls, *others]]
    if one_way:
        known = all(shares_a_clock(s.samples, f.name) for line in calls for s, f in line.members)
        late = "one-way delay\n[ms]" if known else "one-way delay above\nthe quickest [ms]"
        _panel(made, 0, several, calls, _delays, label=late, unit="ms", thin=True)
        _panel(made, 1, several, calls, _jitters, label="jitter\n[ms]", unit="ms")
        # Less than a millisecond is none, and looks so.
        made.panels[-1].values.append((0.0, 1.0))
        _lost_panel(made, made.axes[2], several, calls)
    else:
        label = "arrived of the call,\nshare of what was sent [%]"
        _panel(made, 0, several, calls, _arrived, label=label, unit="%")
    if probes:
        delays_panel(made, made.axes[1], several, [], label="round-trip time\nbeside the call [ms]")
        entries += probe_entries(several)
    if queues:
        rate_panels(made, made.axes[rows:], several, others, queues=queues, metric="goodput")
        if panels.shows_capacity(made):
            entries.append(panels.capacity_entry())
    made.add_legend([*entries, *panels.time_entries(several, means_in=made)])
    made.axes[-1].set_xlabel("time [s]")
    return made


def _panel(made: Picture, row: int, several: Sequence[PlottedRun], calls: Sequence[Line], draw: Draw, *, label: str,
           unit: str, thin: bool = False) -> None:  # fmt: skip
    from bakeoff.plots import panels

    panel = panels.Panel(made.axes[row], unit, label)
    made.panels.append(panel)
    panel.axes.set_ylabel(label)
    for line in calls:
        parts = []
        for plotted, flow in line.members:
            with suppress(MeasureError):  # nothing of it arrived
                parts.append(draw(plotted, flow))
        panels.draw_line(panel, several, line, parts, thin=thin and panels.thin_lines(len(calls)))
    panels.over_time(panel, several)


def _lost_panel(made: Picture, axes: Axes, several: Sequence[PlottedRun], calls: Sequence[Line]) -> None:
    from bakeoff.plots import panels

    panel = panels.Panel(axes, "%", "lost")
    made.panels.append(panel)
    axes.set_ylabel("lost\n[%]")
    edges, _ = bins(several)
    for line in calls:
        share = _lost(line, edges)
        axes.stairs(share, edges, color=line.colour, linestyle=line.dash, linewidth=1.4)
        panel.saw(share)
    panels.over_time(panel, several)
    if panel.extent == (0.0, 0.0):
        panel.fixed = (0.0, 1.0)
        axes.text(0.5, 0.5, "nothing was lost", transform=axes.transAxes, ha="center", va="center", color="#888888")


def _one_way_known(plotted: PlottedRun, flow: Flow) -> bool:
    """Whether it is known of each datagram what became of it."""
    return any(("flow", flow.name, metric) in plotted.samples for metric in ("delay", "delay_variation"))


def _delays(plotted: PlottedRun, flow: Flow) -> Series:
    sent, took = arrivals(plotted.samples, flow.name)
    return sent, 1e3 * took


def _jitters(plotted: PlottedRun, flow: Flow) -> Series:
    time, estimate = jitter_over_time(*arrivals(plotted.samples, flow.name))
    return time, 1e3 * estimate


def _arrived(plotted: PlottedRun, flow: Flow) -> Series:
    time, goodput = plotted.samples.of("flow", flow.name, "goodput")
    inside = (time > flow.start_s + plotted.run.sample_interval_s) & (time <= flow.stop_s)
    return time[inside], 100 * goodput[inside] / (offered_bps(flow) or 1.0)


def _lost(line: Line, edges: Array) -> Array:
    """Of the datagrams of all members sent in each interval, the share that never arrived, in per cent."""
    import numpy as np

    lost, came = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    for plotted, flow in line.members:
        with suppress(MeasureError):  # nothing of it arrived
            came += np.histogram(arrivals(plotted.samples, flow.name)[0], edges)[0]
        if ("flow", flow.name, "missing") in plotted.samples:
            lost += np.histogram(plotted.samples.of("flow", flow.name, "missing")[0], edges)[0]
    sent = lost + came
    return np.where(sent > 0, 100 * lost / np.maximum(sent, 1), np.nan)


def _felt(several: Sequence[PlottedRun]) -> list[str]:
    """`call in the steady state: half took over 134 ms, 1 % over 230 ms, jitter 16 ms, 0.3 % lost`; a line for each."""
    notes = []
    for plotted in several:
        calls = [flow for flow in plotted.flows if offered_bps(flow) is not None]
        parts = [found for flow in calls if (found := _felt_by(plotted, flow))]
        if not all(_one_way_known(plotted, flow) for flow in calls):
            parts += _felt_by_probes(plotted)
        notes += [f"{plotted.label}: {part}" if plotted.label else part for part in parts]
    if len(notes) > _MOST_SAID:
        notes = [*notes[: _MOST_SAID - 1], f"and {len(notes) - _MOST_SAID + 1} more flows"]
    # A number stays with its unit.
    return [_UNIT.sub("\\1\u00a0\\2", plain(part)) for part in notes]


def _felt_by(plotted: PlottedRun, flow: Flow) -> str:
    import numpy as np

    name = f"{plain(flow.name)} in the steady state"
    if not _one_way_known(plotted, flow):
        counted = plotted.result.counters.flow(flow.name)
        size = flow.source.size if isinstance(flow.source, ConstantRate | Periodic) else 0
        handed = (counted.sent_packets or 0) * size
        missing = max(0.0, 1 - (counted.received_bytes or 0) / handed) if handed else 0.0
        return f"{plain(flow.name)}: {100 * missing:.2g} % lost" if handed else ""
    try:
        share = lost_share(plotted.samples, "flow", flow.name, plotted.window)
        sent, took = arrivals(plotted.samples, flow.name, plotted.window)
    except MeasureError:
        return f"{name}: nothing arrived"
    half, most = 1e3 * np.quantile(took, [0.5, 0.99])
    lost = f"{100 * share:.2g} % lost" if share else "nothing lost"
    shaken = f"jitter {_ms(jitter(sent, took) or 0.0)}, {lost}"
    if not shares_a_clock(plotted.samples, flow.name):
        return f"{name}: {shaken}"
    return f"{name}: half took over {half:.3g} ms, 1 % over {most:.3g} ms, {shaken}"


def _ms(time_s: float) -> str:
    return f"{1e3 * time_s:.3g} ms" if time_s >= 1e-5 else "under 0.01 ms"


def _felt_by_probes(plotted: PlottedRun) -> list[str]:
    import numpy as np

    parts = []
    for probe in plotted.run.probes:
        if ("probe", probe.name, "rtt") in plotted.samples:
            time, rtt = plotted.samples.of("probe", probe.name, "rtt")
            inside = rtt[(time >= plotted.window[0]) & (time <= plotted.window[1])]
            if len(inside):
                half, most = 1e3 * np.quantile(inside, [0.5, 0.99])
                parts.append(
                    f"{probe.name}: half of the round trips above {half:.3g} ms, 1 % above {most:.3g} ms, "
                    f"{1e3 * plotted.base_rtt_s(probe):.3g} ms on an empty path"
                )
    return parts


def offered_bps(flow: Flow) -> float | None:
    """The payload rate that a UDP flow's source sends by itself [bit/s]; None of what fills whatever there is."""
    source = flow.source
    if flow.transport != "udp":
        return None
    if isinstance(source, ConstantRate):
        return float(source.rate_bps)
    if isinstance(source, Periodic):
        return 8.0 * source.size * source.count / source.every_s
    return None
