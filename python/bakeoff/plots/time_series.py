"""Pictures over time: rates, round-trip times and windows, of one run or of several laid over each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal

from bakeoff.errors import MeasureError
from bakeoff.plots.plotted_run import Line, PlottedRun, bottlenecks, direction, lines
from bakeoff.plots.style import plain
from bakeoff.tables import run_labels

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from bakeoff.measure.samples import Array
    from bakeoff.plots.panels import Panel
    from bakeoff.plots.picture import Picture
    from bakeoff.scenario.run import Flow

Scale = Literal["auto", "fixed", "var", "data"]
_LEAST_USED = 0.25
"""Share of the axis that a scenario asks for that the data fill; else the axis is theirs."""


def delivery_with_rtt(several: Sequence[PlottedRun], scale: Scale = "auto") -> Picture:
    """Every flow's delivery rate; below, every TCP's smoothed round-trip time and every probe's."""
    return _one_below_the_other(several, n_rates_and_delays(several), fill_delivery, scale)


def upload_with_ping_and_tcp_rtt(several: Sequence[PlottedRun], scale: Scale = "auto") -> Picture:
    """Every flow's goodput; below, every TCP's smoothed round-trip time and every probe's."""
    return _one_below_the_other(several, n_rates_and_delays(several), fill_goodput, scale)


def totals_with_tcp_rtt(several: Sequence[PlottedRun], scale: Scale = "auto") -> Picture:
    """The sum of all goodputs in each direction; below, round-trip times."""
    return _one_below_the_other(several, n_totals(several), fill_totals, scale)


def n_totals(several: Sequence[PlottedRun]) -> int:
    """How many panels `fill_totals` needs."""
    return len(bottlenecks(several)) + 1


def fill_totals(made: Picture, places: Sequence[Axes], several: Sequence[PlottedRun], scale: Scale) -> list[Artist]:
    """Draw the sums of goodputs and the round-trip times; the legend's entries."""
    from bakeoff.plots import panels
    from bakeoff.plots.colours import DASHES

    queues = bottlenecks(several)
    entries: list[Artist] = []
    for axes, queue in zip(places, queues, strict=False):
        panel = _rate_panel(made, axes, several, queue, scale=scale, what="sum of goodputs")
        for i, plotted in enumerate(several):
            of = [flow for flow in plotted.flows if plotted.crosses(flow, queue)]
            time, rate = total(plotted, of)
            label = f"{plotted.label}: total" if plotted.label else "total"
            line = Line(plain(label), "#333333", "o", dash=DASHES[i % len(DASHES)])
            panels.draw_line(panel, several, line, [(time, rate)], thin=False)
            if queue == queues[0]:
                entries.append(panels.line_entry(line))
    drawn = lines(several, together=True)
    seen = delays_panel(made, places[-1], several, drawn, scale=scale)
    entries += [panels.line_entry(line) for line in drawn if line in seen]
    return [*entries, *probe_entries(several)]


def all_scaled(several: Sequence[PlottedRun]) -> Picture:
    """Delivery rates of what goes up, of what comes down, and round-trip times: means only, axes as the data want."""
    return _one_below_the_other(several, n_scaled(several), fill_scaled, "auto")


def _ways(several: Sequence[PlottedRun]) -> list[str]:
    return [way for way in ("up", "down") if any(direction(s, f) == way for s in several for f in s.flows)]


def n_scaled(several: Sequence[PlottedRun]) -> int:
    """How many panels `fill_scaled` needs."""
    return len(_ways(several)) + 1


def fill_scaled(made: Picture, places: Sequence[Axes], several: Sequence[PlottedRun], _scale: Scale) -> list[Artist]:
    """Draw the rates of each direction and the round-trip times; the legend's entries."""
    from bakeoff.plots import panels

    ways, drawn, first = _ways(several), lines(several), len(made.panels)
    for axes, way in zip(places, ways, strict=False):
        prefix = {"up": "upload: ", "down": "download: "}[way] if len(ways) == 2 else ""
        panel = panels.Panel(axes, "Mbit/s", f"{way} rate")
        members = [(s, f) for line in drawn for s, f in line.members if direction(s, f) == way]
        axes.set_ylabel(f"{prefix}{rate_words(members, 'delivery_rate')} [Mbit/s]")
        for line in drawn:
            inside = tuple((s, f) for s, f in line.members if direction(s, f) == way)
            panels.draw_line(panel, several, line, _rates_of(inside, "delivery_rate"), thin=False, named=True)
        made.panels.append(panel)
        panels.over_time(panel, several)
    delays_panel(made, places[-1], several, drawn, hints=False)
    # Scaled: what lies outside of the middle 98 % of the means is cut off, and the picture says so.
    for panel in made.panels[first:]:
        panel.fixed = _middle(panel)
    return [*(panels.line_entry(line) for line in drawn), *probe_entries(several)]


def cwnd(several: Sequence[PlottedRun]) -> Picture:
    """Congestion windows and slow start thresholds; with a trace, every ACK's, and `alpha` where a control has one."""
    from matplotlib.lines import Line2D

    from bakeoff.plots import panels

    drawn = [line for line in lines(several) if any(f.transport == "tcp" for _, f in line.members)]
    if not any(s.every(f.name, "cwnd") for line in drawn for s, f in line.members):
        raise MeasureError(f"{run_labels.title(several[0].result)}: no samples of a congestion window")
    alphas = [line for line in drawn if any(s.traced(f.name, "alpha") is not None for s, f in line.members)]
    by_control = _split(drawn)
    made = panels.picture(several, len(by_control) + bool(alphas))
    shown_thresholds = False
    for axes, part in zip(made.axes, by_control, strict=False):
        panel = panels.Panel(axes, "packets", "window")
        made.panels.append(panel)
        plotted, flow = part[0].members[0]
        control = plain(plotted.control(flow)) if len(by_control) > 1 else ""
        axes.set_ylabel(f"{control}\nwindow [packets]".lstrip())
        for line in part:
            windows = [s.every(f.name, "cwnd") for s, f in line.members]
            known = [one for one in windows if one is not None]
            _windows(panel, line, known)
            thresholds = [s.every(f.name, "ssthresh") for s, f in line.members]
            if len(line.members) == 1 and thresholds[0] is not None:
                time, value = thresholds[0]
                axes.step(time, value, where="post", color=line.colour, linewidth=1, linestyle=":", zorder=2.5)
                shown_thresholds = True
        _threshold_limits(panel, part)
        panels.over_time(panel, several)
    if alphas:
        panel = panels.Panel(made.axes[-1], "", "alpha")
        made.panels.append(panel)
        panel.axes.set_ylabel("alpha [1]")
        for line in alphas:
            _windows(panel, line, [a for s, f in line.members if (a := s.traced(f.name, "alpha")) is not None])
        panels.over_time(panel, several)
    if not drawn or all(panel.extent is None for panel in made.panels):
        raise MeasureError(f"{run_labels.title(several[0].result)}: no congestion window; expected a TCP flow")
    entries: list[Artist] = [panels.line_entry(line) for line in drawn]
    if shown_thresholds:
        entries.append(Line2D([], [], color="#555555", linestyle=":", linewidth=1, label="ssthresh of the same colour"))
    made.add_legend([*entries, *panels.time_entries(several)])
    made.axes[-1].set_xlabel("time [s]")
    return made


def n_rates_and_delays(several: Sequence[PlottedRun]) -> int:
    """How many panels `fill_delivery` and `fill_goodput` need."""
    return len(bottlenecks(several)) + has_delays(several)


def fill_delivery(made: Picture, places: Sequence[Axes], several: Sequence[PlottedRun], scale: Scale) -> list[Artist]:
    """Draw every flow's delivery rate and the round-trip times; the legend's entries."""
    return _rates_above_delays(made, places, several, "delivery_rate", scale)


def fill_goodput(made: Picture, places: Sequence[Axes], several: Sequence[PlottedRun], scale: Scale) -> list[Artist]:
    """Draw every flow's goodput and the round-trip times; the legend's entries."""
    return _rates_above_delays(made, places, several, "goodput", scale)


def _rates_above_delays(
    made: Picture, places: Sequence[Axes], several: Sequence[PlottedRun], metric: str, scale: Scale
) -> list[Artist]:
    from bakeoff.plots import panels

    drawn = lines(several)
    rate_panels(made, places, several, drawn, queues=bottlenecks(several), metric=metric, scale=scale)
    if has_delays(several):
        delays_panel(made, places[-1], several, drawn, scale=scale)
    every = [(s, f) for line in drawn for s, f in line.members]
    alone = rate_words(every, metric) == "goodput"
    entries: list[Artist] = [panels.line_entry(_named(line, metric, alone=alone)) for line in drawn]
    return [*entries, *probe_entries(several)]


Fill = Callable[["Picture", "Sequence[Axes]", "Sequence[PlottedRun]", Scale], "list[Artist]"]


def _one_below_the_other(several: Sequence[PlottedRun], rows: int, fill: Fill, scale: Scale) -> Picture:
    from bakeoff.plots import panels

    need_samples(several)
    made = panels.picture(several, rows)
    finish(made, several, fill(made, made.axes, several, scale))
    return made


def need_samples(several: Sequence[PlottedRun]) -> None:
    """MeasureError if there would be nothing in the picture: neither a flow nor a probe that was answered."""
    if any(plotted.flows for plotted in several) or has_delays(several):
        return
    has = "; --kind queue draws its queues" if any(plotted.samples.names("queue") for plotted in several) else ""
    raise MeasureError(f"{run_labels.title(several[0].result)}: neither flows nor answered probes{has}")


def rate_panels(
    made: Picture,
    axes: Sequence[Axes],
    several: Sequence[PlottedRun],
    drawn: Sequence[Line],
    *,
    queues: Sequence[str | None],
    metric: str,
    scale: Scale = "auto",
) -> None:
    """A panel for each bottleneck: the rates of what goes through it, and its capacity."""
    from bakeoff.plots import panels

    for one, queue in zip(axes, queues, strict=False):
        what = rate_words([(s, f) for line in drawn for s, f in line.members if s.crosses(f, queue)], metric)
        panel = _rate_panel(made, one, several, queue, scale=scale, what=what)
        inside = [(line, tuple((s, f) for s, f in line.members if s.crosses(f, queue))) for line in drawn]
        inside = [(line, members) for line, members in inside if members]
        for line, members in inside:
            # What reaches the application comes in bursts after a loss: samples of it would say nothing of the rate.
            bursts = any(one.rate_metric(flow, metric) == "goodput" for one, flow in members)
            thin = not bursts and panels.thin_lines(len(inside))
            panels.draw_line(panel, several, line, _rates_of(members, metric), thin=thin, named=True)
        _share_of_many(panel, several, queue)


def rate_words(members: Sequence[tuple[PlottedRun, Flow]], metric: str) -> str:
    """What the rates of these flows are: goodputs if none of them has the metric that was asked for."""
    used = {plotted.rate_metric(flow, metric) for plotted, flow in members}
    return "delivery rate" if "delivery_rate" in used or not used else "goodput"


def finish(made: Picture, several: Sequence[PlottedRun], entries: Sequence[Artist]) -> None:
    """The legend, and what the x axis is."""
    from bakeoff.plots import panels

    if panels.shows_capacity(made):
        entries = [*entries, panels.capacity_entry()]
    made.add_legend([*entries, *panels.time_entries(several, means_in=made)])
    made.axes[-1].set_xlabel("time [s]")


def _share_of_many(panel: Panel, several: Sequence[PlottedRun], queue: str | None) -> None:
    """Where every flow is far below the capacity, the axis is theirs, and the line is an equal share of it."""
    import numpy as np

    steps = [found for plotted in several if (found := plotted.capacity(queue))]
    drawn = [np.asarray(line.get_ydata(), dtype=float) for line in panel.axes.lines if line.get_zorder() == 3]
    if panel.fixed is not None or not drawn or not steps:
        return
    highest, top = max(float(np.nanmax(line)) for line in drawn), max(max(rates) for _, rates in steps) / 1e6
    n = len([flow for flow in several[0].flows if several[0].crosses(flow, queue)])
    if n < 5 or highest > 0.4 * top or len(steps) > 1:
        return
    panel.values = [(low, high) for low, high in panel.values if high < top]
    equal = [rate / 1e6 / n for rate in steps[0][1]]
    panel.axes.stairs(equal, steps[0][0], baseline=None, color="#999999", linewidth=1.4, linestyle="--", zorder=1.3)
    panel.axes.text(0.995, 0.97, f"dashed: {equal[0]:.3g} Mbit/s, a {n}th of the capacity of {top:g} Mbit/s",
                    transform=panel.axes.transAxes, ha="right", va="top", fontsize=9, color="#666666")  # fmt: skip


def _rate_panel(
    made: Picture, axes: Axes, several: Sequence[PlottedRun], queue: str | None, *, scale: Scale, what: str
) -> Panel:
    from bakeoff.plots import panels

    panel = panels.Panel(axes, "Mbit/s", f"rate {queue}")
    made.panels.append(panel)
    several_queues = len(bottlenecks(several)) > 1
    at = f"at {queue}" if queue is not None else "no bottleneck"
    # In a picture of several panels a longer line would reach into the next one's.
    axes.set_ylabel("\n".join(wrap(plain(f"{what} [Mbit/s] {at}"), 20)) if several_queues else f"{what} [Mbit/s]")
    panels.capacity(panel, several, queue)
    panels.over_time(panel, several)
    top = max((max(steps[1]) for plotted in several if (steps := plotted.capacity(queue))), default=None)
    hints = {axis for plotted in several if (axis := plotted.run.hints.rate_axis_bps)}
    if scale == "fixed" and top is not None:
        panel.fixed = (0.0, 1.2 * top / 1e6)
    elif scale == "auto" and len(hints) == 1 and not several_queues:
        [(low, high)] = hints
        panel.fixed = (low / 1e6, high / 1e6)
    return panel


def _rates_of(members: Sequence[tuple[PlottedRun, Flow]], metric: str) -> list[tuple[Array, Array]]:
    """Of those that got anything through."""
    found = []
    for plotted, flow in members:
        of = ("flow", flow.name, plotted.rate_metric(flow, metric))
        if of in plotted.samples:
            time, value = plotted.samples.of(*of)
            found.append((time, value / 1e6))
    return found


def total(plotted: PlottedRun, flows: Sequence[Any]) -> tuple[Array, Array]:
    """The goodputs of several flows, added at each time of sampling."""
    import numpy as np

    named = [("flow", flow.name, "goodput") for flow in flows]
    parts = [plotted.samples.of(*of) for of in named if of in plotted.samples]
    time = np.unique(np.concatenate([np.array([]), *(time for time, _ in parts)]))
    added = np.zeros(len(time))
    for at, value in parts:
        added[np.searchsorted(time, at)] += value
    return time, added / 1e6


def has_delays(several: Sequence[PlottedRun]) -> bool:
    """Whether a round-trip time was sampled, of a flow or of a probe."""
    return any(("flow", flow.name, "srtt") in plotted.samples for plotted in several for flow in plotted.flows) or any(
        ("probe", probe.name, "rtt") in plotted.samples for plotted in several for probe in plotted.run.probes
    )


def delays_panel(
    made: Picture,
    axes: Axes,
    several: Sequence[PlottedRun],
    drawn: Sequence[Line],
    *,
    scale: Scale = "auto",
    hints: bool = True,
    label: str = "round-trip time [ms]",
) -> list[Line]:
    """The panel of round-trip times; the lines that are in it."""
    from bakeoff.plots import panels
    from bakeoff.plots.colours import DASHES

    panel = panels.Panel(axes, "ms", "rtt")
    made.panels.append(panel)
    axes.set_ylabel(label)
    seen = []
    for line in drawn:
        parts = [s.samples.of("flow", f.name, "srtt") for s, f in line.members
                 if ("flow", f.name, "srtt") in s.samples]  # fmt: skip
        if parts:
            seen.append(line)
            thin = panels.thin_lines(len(drawn)) and hints
            panels.draw_line(panel, several, line, [(time, rtt * 1e3) for time, rtt in parts], thin=thin)
    for i, plotted in enumerate(several):
        for j, probe in enumerate(plotted.run.probes):
            name = probe.name
            if ("probe", name, "rtt") in plotted.samples:
                time, rtt = plotted.samples.of("probe", name, "rtt")
                dash = DASHES[(i if len(several) > 1 else j) % len(DASHES)]
                look = Line(name, panels.probe_colour(plotted, name), "x+1234"[j % 6], dash=dash)
                thin = panels.thin_lines(len(drawn)) and hints
                panels.draw_line(panel, several, look, [(time, rtt * 1e3)], thin=thin)
    panels.over_time(panel, several)
    bases = [plotted.base_rtt_s(flow) for plotted in several for flow in plotted.flows]
    bases += [plotted.base_rtt_s(probe) for plotted in several for probe in plotted.run.probes]
    base = min(bases, default=0.0) * 1e3
    asked = {axis for plotted in several if (axis := plotted.run.hints.rtt_axis_s)}
    if scale == "fixed":
        panel.fixed = (base, base + 100)
    elif scale == "var" and panel.extent is not None:
        panel.fixed = (base, base + 3 * max(panel.extent[1] - base, 1.0))
    elif scale == "auto" and hints and len(asked) == 1:
        [(low, high)] = asked
        # On an axis made for seconds some 30 ms would be a line along its foot.
        if panel.extent is None or panel.extent[1] > low * 1e3 + _LEAST_USED * (high - low) * 1e3:
            panel.fixed = (low * 1e3, high * 1e3)
    return seen


def probe_entries(several: Sequence[PlottedRun]) -> list[Artist]:
    """The probes as the legend has them."""
    from matplotlib.lines import Line2D

    from bakeoff.plots import panels
    from bakeoff.plots.colours import DASHES

    entries: list[Artist] = []
    for i, plotted in enumerate(several):
        for j, probe in enumerate(plotted.run.probes):
            if ("probe", probe.name, "rtt") not in plotted.samples:
                continue
            label = f"{plotted.label}: {probe.name}" if plotted.label else probe.name
            entries.append(
                Line2D([], [], color=panels.probe_colour(plotted, probe.name), marker="x+1234"[j % 6], linewidth=1.8,
                       linestyle=DASHES[(i if len(several) > 1 else j) % len(DASHES)],
                       label=plain(f"{label} ({probe.proto.upper()} probe)"))
            )  # fmt: skip
    return entries


def _named(line: Line, metric: str, *, alone: bool) -> Line:
    """The line, saying so where another rate than the others' is drawn, or none; `alone`: there are no others."""
    from dataclasses import replace

    if not any(("flow", flow.name, "goodput") in plotted.samples for plotted, flow in line.members):
        return replace(line, label=f"{line.label}, no samples")
    used = {plotted.rate_metric(flow, metric) for plotted, flow in line.members}
    return line if used == {metric} or alone else replace(line, label=f"{line.label}, goodput")


def _middle(panel: Panel) -> tuple[float, float] | None:
    """Limits that hold the middle 98 % of the means that are drawn, of alike flows those of each, and 10 % more."""
    import numpy as np

    # Lines of means, pale ones for each of alike flows, and the band that many of these are.
    values = [np.asarray(line.get_ydata(), dtype=float) for line in panel.axes.lines if line.get_zorder() in (2, 3)]
    values += [np.asarray(path.vertices)[:, 1] for band in panel.axes.collections for path in band.get_paths()]
    known = np.concatenate(values) if values else np.array([])
    known = known[np.isfinite(known)]
    if not len(known):
        return None
    low, high = np.percentile(known, [1, 99])
    room = 0.1 * (high - low) or 0.05 * abs(high) or 1.0
    return (0.0 if "rate" in panel.role else max(0.0, float(low - room))), float(high + room)


def _split(drawn: Sequence[Line]) -> list[list[Line]]:
    """Windows one above the other for each control where there are many: sawteeth of eight flows hide each other."""
    if len(drawn) <= 4:
        return [list(drawn)]
    of = [line.members[0][0].control(line.members[0][1]) for line in drawn]
    return [[line for line, one in zip(drawn, of, strict=True) if one == control] for control in dict.fromkeys(of)]


def _windows(panel: Panel, line: Line, parts: Sequence[tuple[Array, Array]]) -> None:
    """Windows are drawn as they are: their sawteeth are what one looks for, and means would saw them off."""
    from bakeoff.plots import panels

    for i, (time, value) in enumerate(parts):
        panel.saw(value)
        look = panels.spaced(time, line.marker) if i == 0 else {}
        alpha = 1.0 if len(parts) == 1 else 0.55
        panel.axes.plot(time, value, color=line.colour, linewidth=1.1, linestyle=line.dash, alpha=alpha, **look)


def _threshold_limits(panel: Panel, part: Sequence[Line]) -> None:
    """Thresholds before the first loss may be huge: the axis ends at twice the windows, and says so."""
    if panel.extent is None:
        return
    most = 2 * panel.extent[1]
    for line in part:
        for plotted, flow in line.members if len(line.members) == 1 else ():
            threshold = plotted.every(flow.name, "ssthresh")
            if threshold is not None:
                panel.saw(threshold[1])
    if panel.extent[1] > most:
        panel.fixed = (0.0, most)
