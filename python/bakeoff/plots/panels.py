"""What pictures are put together from: a figure with words above and a legend below, and panels over time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import nan
from typing import TYPE_CHECKING, Any

from bakeoff.plots import caption, colours
from bakeoff.plots.axes import other_unit
from bakeoff.plots.mpl import Line2D, Patch, StepPatch
from bakeoff.plots.picture import Picture, titled
from bakeoff.plots.plotted_run import Line, PlottedRun, bins, means
from bakeoff.plots.style import plain
from bakeoff.scenario.run import ClassChange, QdiscChange, QdiscReplace

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from bakeoff.measure.samples import Array
    from bakeoff.scenario.run import Action

BAND = "#f2f2f2"
CHANGE = "#888888"
CAPACITY = "#999999"
_MEMBERS_SEEN = 12
"""Of a group of more flows than this the picture has the range, and no line for each of them."""
_MOST_CHANGES = 4
_THIN_LINES = 4
_THIN = 0.5
_PALE = 0.7
_CAPACITY_LIES = 1.2
_END_INCHES = 0.15
"""Room that a name at the end of a line needs."""


@dataclass
class Panel:
    """Axes of a picture, and the extent of what is drawn in them."""

    axes: Axes
    unit: str
    role: str
    """Panels of one role have the same limits in a comparison."""
    values: list[tuple[float, float]] = field(default_factory=list)
    fixed: tuple[float, float] | None = None
    from_zero: bool = True
    room: float = 0.06
    """Share of the extent that is left empty above it."""
    ends: list[tuple[float, float, str, str]] = field(default_factory=list)
    """Names at the ends of lines: where each ends, the name, and its colour."""

    def saw(self, values: Array) -> None:
        """Note what is drawn, so that limits hold it, or say that they do not."""
        import numpy as np

        known = values[np.isfinite(values)]
        if len(known):
            self.values.append((float(known.min()), float(known.max())))

    @property
    def extent(self) -> tuple[float, float] | None:
        """The least and the greatest value that is drawn; None if nothing is."""
        if not self.values:
            return None
        return min(low for low, _ in self.values), max(high for _, high in self.values)

    def limits(self) -> tuple[float, float]:
        """The limits that were asked for, else those that hold everything, with a little room above."""
        if self.fixed is not None:
            return self.fixed
        if self.extent is None:
            return 0.0, 1.0
        low, high = self.extent
        if self.from_zero:
            return 0.0, (high * (1 + self.room) or 1.0)
        room = self.room * (high - low) or 0.05 * abs(high) or 1.0
        return max(low - room, 0.0) if low >= 0 else low - room, high + room

    def finish(self) -> None:
        """Set the limits; where they cut data off, say what is not seen."""
        low, high = self.limits()
        self.axes.set_ylim(low, high)
        self._name_ends(low, high)
        if self.extent is None:
            self.axes.text(0.5, 0.5, "no samples", transform=self.axes.transAxes, ha="center", color="#888888")
            return
        least, greatest = self.extent
        notes = []
        if greatest > high * 1.0001:
            notes.append(f"up to {greatest:.4g}")
        if least < low - 1e-9 - 0.0001 * abs(low):
            notes.append(f"down to {least:.4g}")
        if notes:
            note = f"the axis is cut: data go {' and '.join(notes)} {self.unit}"
            self.axes.set_title(note, loc="right", fontsize=9, color="#b00000", pad=3)

    def _name_ends(self, low: float, high: float) -> None:
        """Write the names at the ends of lines, one above the other where lines end in one place."""
        first, last = self.axes.get_xlim()
        columns: dict[float, list[tuple[float, str, str]]] = {}
        for x, y, name, colour in self.ends:
            at = round((x - first) / (last - first), 1)
            height = min(max((y - low) / (high - low), 0.0), 1.0)
            columns.setdefault(1.0 if at > 0.95 else (x - first) / (last - first), []).append((height, name, colour))
        step = _END_INCHES / max(self.axes.get_window_extent().height / self.axes.figure.dpi, _END_INCHES)
        for at, found in columns.items():
            found.sort()
            heights = spread([height for height, _, _ in found], step)
            for height, (_, name, colour) in zip(heights, found, strict=True):
                self.axes.text(at + 0.004, height, name, color=colour, transform=self.axes.transAxes, fontsize=8.5,
                               ha="left", va="center")  # fmt: skip
        self.ends = []

    def show_in(self, unit: str, factor: float) -> None:
        """Write the numbers of the axis in another unit; `factor` of it are one of the axis."""
        from matplotlib.ticker import FuncFormatter

        self.axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value * factor:g}"))
        self.axes.set_ylabel(self.axes.get_ylabel().replace(f"[{self.unit}]", f"[{unit}]"))


def picture(several: Sequence[PlottedRun], rows: int, *, row_inch: float = 0.0, notes: Sequence[str] = ()) -> Picture:
    """A picture of some panels, one above the other, that share the x axis; `made.axes` are theirs.

    `said` are lines for below the configuration that was in effect.
    """
    row_inch = row_inch or {1: 5.0, 2: 3.6}.get(rows, 2.7)
    made = titled(
        caption.title(several),
        [*caption.lines(several), *notes],
        caption.failures(several),
        height_inch=row_inch * rows,
    )
    for one in made.subplots(rows, 1, sharex=True, squeeze=False).flat:
        one.tick_params(labelbottom=True)
    return made


def draw_line(panel: Panel, several: Sequence[PlottedRun], line: Line, parts: Sequence[tuple[Array, Array]], *,
              thin: bool, named: bool = False) -> None:  # fmt: skip
    """One flow: samples as a thin pale line, their means as a thick one, because 50 ms of noise hide everything else.

    Several flows that are alike: the mean over them as the thick line, their means as pale lines or, of many, their
    range as a band. `named`: with its name at its end, if it has one.
    """
    import numpy as np

    edges, width = bins(several)
    middles = edges[:-1] + width / 2
    found = [means(time, value, edges) for time, value in parts]
    if not found:
        return
    if len(found) == 1 and thin:
        time, value = parts[0]
        panel.axes.plot(time, value, color=line.colour, linewidth=_THIN, alpha=0.3, zorder=2)
        panel.saw(value)
    stack = np.ma.masked_invalid(np.vstack(found))
    mean = np.ma.filled(stack.mean(axis=0), np.nan)
    if 1 < len(found) <= _MEMBERS_SEEN:
        for one in found:
            panel.axes.plot(middles, one, color=line.colour, linewidth=_PALE, alpha=0.35, zorder=2)
    elif len(found) > 1:
        low, high = (np.ma.filled(part, np.nan) for part in (stack.min(axis=0), stack.max(axis=0)))
        panel.axes.fill_between(middles, low, high, color=line.colour, alpha=0.16, linewidth=0, zorder=1.5)
    panel.saw(np.concatenate(found))
    known = np.flatnonzero(np.isfinite(mean))
    if line.end and named and len(known):
        panel.ends.append((float(edges[known[-1] + 1]), float(mean[known[-1]]), line.end, line.colour))
    nth = sum(one.get_marker() != "None" for one in panel.axes.lines)
    look = spaced(middles, line.marker, nth)
    panel.axes.plot(middles, mean, color=line.colour, linewidth=1.8, linestyle=line.dash, zorder=3, **look)


def spaced(time: Array, marker: str, nth: int = 0) -> dict[str, Any]:
    """Some ten markers along a line, so that lines differ without colour too.

    `nth` lines of the panel have markers before this one, which begins elsewhere: of lines that lie on each other the
    markers of both are then seen. The golden ratio keeps any number of beginnings apart.
    """
    step = max(1, len(time) // 10)
    return {"marker": marker, "markersize": 6, "markevery": (round(nth * 0.618 * step) % step, step),
            "markeredgecolor": "white", "markeredgewidth": 0.5}  # fmt: skip


def over_time(panel: Panel, several: Sequence[PlottedRun]) -> None:
    """Time from 0 to the end, the steady state shaded, a line where something was changed."""
    panel.axes.set_xlim(0, max(plotted.end_s for plotted in several))
    if len({plotted.window for plotted in several}) == 1:
        panel.axes.axvspan(*several[0].window, color=BAND, zorder=0)
    times = {change.at_s for plotted in several for change in plotted.run.changes}
    if times:
        # One artist: thousands of them would take longer than the rest of the picture.
        across = [part for at in sorted(times) for part in (at, at, nan)]
        panel.axes.add_line(
            Line2D(across, [0, 1, nan] * len(times), transform=panel.axes.get_xaxis_transform(), color=CHANGE,
                   linewidth=1, linestyle=(0, (6, 3)), zorder=1)
        )  # fmt: skip


def capacity(panel: Panel, several: Sequence[PlottedRun], queue: str | None) -> bool:
    """The bottleneck's rate as a grey line; whether there is one."""
    drawn = set()
    for plotted in several:
        steps = plotted.capacity(queue)
        if steps is not None and (key := (tuple(steps[0]), tuple(steps[1]))) not in drawn:
            drawn.add(key)
            rates = [rate / 1e6 for rate in steps[1]]
            panel.axes.stairs(rates, steps[0], baseline=None, color=CAPACITY, linewidth=2.2, zorder=_CAPACITY_LIES)
            panel.values.append((0.0, max(rates)))
    return bool(drawn)


def line_entry(line: Line) -> Line2D:
    """A line as the legend has it."""
    return Line2D([], [], color=line.colour, linestyle=line.dash, marker=line.marker, linewidth=1.8, label=line.label)


def shows_capacity(made: Picture) -> bool:
    """Whether the rate of a bottleneck lies inside some panel."""
    drawn = [
        (panel, patch.get_data()[0].max())
        for panel in made.panels
        for patch in panel.axes.patches
        if isinstance(patch, StepPatch) and patch.get_zorder() == _CAPACITY_LIES
    ]
    return any(rate <= panel.limits()[1] for panel, rate in drawn)


def capacity_entry() -> Line2D:
    """The grey line of a bottleneck's rate."""
    return Line2D([], [], color=CAPACITY, linewidth=2.2, label="capacity of the bottleneck")


def time_entries(several: Sequence[PlottedRun], *, means_in: Picture | None = None) -> list[Artist]:
    """What shading and vertical lines mean, and, of a picture whose lines are means, over how much time."""
    entries: list[Artist] = []
    if means_in is not None:
        _, width = bins(several)
        widths = {line.get_linewidth() for panel in means_in.panels for line in panel.axes.lines}
        bands = any(panel.axes.collections for panel in means_in.panels)
        besides = [
            "thin: samples" if _THIN in widths else "",
            "pale: each of the flows" if _PALE in widths else "",
            "bands: from the least to the greatest flow" if bands else "",
        ]
        if any(besides):
            label = "; ".join([f"thick lines: means over {width:g} s", *filter(None, besides)])
        else:
            label = f"lines are means over {width:g} s"
        entries.append(Line2D([], [], linestyle="", label=label))
    if len({plotted.window for plotted in several}) == 1:
        start, end = several[0].window
        entries.append(Patch(facecolor=BAND, edgecolor="#cccccc", label=f"steady state, {start:.4g} s to {end:.4g} s"))
    notes = list(dict.fromkeys(text for plotted in several for text in changes(plotted)))
    if len(notes) > _MOST_CHANGES:
        notes = [f"{len(notes)} timed changes, the first: {notes[0]}"]
    look = {"color": CHANGE, "linewidth": 1, "linestyle": (0, (6, 3))}
    return entries + [Line2D([], [], label=text, **look) for text in notes]  # type: ignore[arg-type]


def changes(plotted: PlottedRun) -> list[str]:
    """The timed changes in words: `20 s: rate 10mbit at mid>srv, mid>cli`; what happens at once is one."""
    places: dict[tuple[float, str], list[str]] = {}
    for change in plotted.run.changes:
        at = (change.at_s, action_words(change.action))
        places.setdefault(at, []).append(f"{change.node}>{change.peer}")
    return [
        plain(f"{at_s:g} s: {what} at {', '.join(dict.fromkeys(queues))}")
        for (at_s, what), queues in sorted(places.items())
    ]


def action_words(action: Action) -> str:
    """What a timed change does: `rate 10mbit`, `delay 20 ms, loss 0.01`."""
    if isinstance(action, ClassChange):
        words = action.class_.split()
        named = dict(pairwise(words))
        return f"rate {named['rate']}" if named.get("ceil", named.get("rate")) == named.get("rate") else " ".join(words)
    if isinstance(action, QdiscChange):
        return action.qdisc
    if isinstance(action, QdiscReplace):
        return f"replaced by {action.qdisc.qdisc}"
    parts = []
    if action.rate_bps is not None:
        parts.append(f"rate {action.rate_bps / 1e6:g} Mbit/s")
    if action.delay_s is not None:
        parts.append(f"delay {action.delay_s * 1e3:g} ms")
    if action.loss is not None:
        parts.append(f"loss {action.loss:.3g}")
    if action.up is not None:
        parts.append("link up" if action.up else "link down")
    return ", ".join(parts) or "link"


def spread(heights: Sequence[float], step: float) -> list[float]:
    """Rising heights, moved as little as it takes until none is closer to another than `step`."""
    groups: list[list[float]] = []
    for height in heights:
        groups.append([height])
        while len(groups) > 1 and _low(groups[-1], step) < _low(groups[-2], step) + len(groups[-2]) * step:
            upper = groups.pop()
            groups[-1] += upper
    return [_low(group, step) + i * step for group in groups for i in range(len(group))]


def _low(group: Sequence[float], step: float) -> float:
    """Where the lowest of a group stands that is spread about its mean."""
    return sum(group) / len(group) - (len(group) - 1) * step / 2


def columns_of(panels: int, most: int) -> int:
    """How many panels stand side by side, so that few places stay empty."""
    able = range(min(2, most, panels), min(most, panels) + 1)
    return min(able, key=lambda count: (-panels % count, -count))


def share(pictures: Sequence[Picture]) -> None:
    """Give panels of one role the same limits in all pictures that are compared."""
    extents: dict[str, list[tuple[float, float]]] = {}
    for panel in (panel for made in pictures for panel in made.panels):
        if panel.extent is not None:
            extents.setdefault(panel.role, []).append(panel.extent)
    for panel in (panel for made in pictures for panel in made.panels):
        panel.values += extents.get(panel.role, [])


def finish(made: Picture) -> Picture:
    """Set all limits, and units in which they are no fractions of a thousandth: the last step, after `share`."""
    for panel in made.panels:
        panel.finish()
    for unit in {panel.unit for panel in made.panels}:
        alike = [panel for panel in made.panels if panel.unit == unit and panel.extent is not None]
        other = other_unit(unit, max((panel.limits()[1] for panel in alike), default=1.0))
        for panel in alike:
            if other is not None:
                panel.show_in(*other)
    return made


def thin_lines(n: int) -> bool:
    """Whether single samples are drawn beside their means: of many lines they would be a cloud."""
    return n <= _THIN_LINES


def probe_colour(plotted: PlottedRun, name: str) -> str:
    """Black, or what the scenario asks for."""
    return colours.asked_colours(plotted.run).get(name, colours.PROBE)
