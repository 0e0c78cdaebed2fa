"""Pictures of one run over time, as SVG or PNG."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bakeoff.errors import BakeoffError
from bakeoff.measure import MeasureError, Samples, summary_of
from bakeoff.measure.bottleneck import leaves
from bakeoff.present import words
from bakeoff.present.style import COLOURS, MARKERS, SIZE_INCH, save, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bakeoff.measure.samples import Array
    from bakeoff.results import Result
    from bakeoff.results.summary import Summary

_MEAN_OVER_S = 1.0
_BAND = "#f4f4f4"


def kinds() -> list[str]:
    """The kinds of picture that `figure` and `draw` know."""
    return list(_KINDS)


def draw(result: Result, path: Path, kind: str = "tcp_delivery_with_rtt") -> Path:
    """Draw a result into a file, `.svg` or `.png` by its suffix; the same result gives the same bytes.

    Raises BakeoffError for an unknown kind or suffix, missing samples, or a file that cannot be written.
    """
    return save(figure(result, kind), path)


def figure(result: Result, kind: str = "tcp_delivery_with_rtt") -> Figure:
    """A matplotlib figure of 12 x 9 inches, as the suites' plots are.

    Thin lines are samples, thick ones means over 1 s; the shaded band is the steady state. The lines below the
    title are the configuration that was in effect, as the engine reported it. Raises BakeoffError for an unknown
    kind and for missing samples.
    """
    if kind not in _KINDS:
        raise BakeoffError(f"plot kind: unknown '{kind}'; expected one of {', '.join(_KINDS)}")
    if result.series.is_empty():
        raise MeasureError(f"{words.title(result)}: the run has no series")
    from matplotlib.figure import Figure

    summary = summary_of(result)
    with styled():
        made = Figure(figsize=SIZE_INCH, layout="constrained")
        _KINDS[kind](made, result, Samples(result.series), summary)
        _head(made, result, summary)
    return made


def _head(made: Figure, result: Result, summary: Summary) -> None:
    """Title, and what was in effect; a failed self-check in red, because then the picture shows something else."""
    lines = [part for line in words.in_effect(result, summary) for part in textwrap.wrap(line, 130)]
    failed = [part for line in words.failures(summary) for part in textwrap.wrap(line, 130)]
    top = made.axes[0]
    top.set_title("\n".join(lines + failed), fontsize=9.5, color="#b00000" if failed else "#444444", loc="left")
    made.suptitle(words.title(result), x=0.01, ha="left", fontsize=14, fontweight="bold", parse_math=False)


def _delivery_with_rtt(made: Figure, result: Result, samples: Samples, summary: Summary) -> None:
    left = made.add_subplot()
    right = left.twinx()
    present = result.resolved.get("present", {})
    for i, flow in enumerate(_tcp(result)):
        name, look = flow["name"], {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
        time, rate = samples.of("flow", name, "delivery_rate")
        _line(left, time, rate / 1e6, look, label=f"{name}: delivery rate")
        time, srtt = samples.of("flow", name, "srtt")
        look |= {"markerfacecolor": "white"}
        _line(right, time, srtt * 1e3, look, label=f"{name}: TCP RTT", style="--")
    for i, probe in enumerate(result.resolved["probes"]):
        if ("probe", probe["name"], "rtt") in samples:
            time, rtt = samples.of("probe", probe["name"], "rtt")
            look = {"color": "#222222", "marker": "x+*"[i % 3]}
            _line(right, time, rtt * 1e3, look, label=f"{probe['name']}: {probe['proto'].upper()} RTT", style=":")
    left.set_ylabel("delivery rate [Mbit/s]  (solid)")
    right.set_ylabel("round-trip time [ms]  (dashed, dotted)")
    right.grid(visible=False)
    right.spines["right"].set_visible(True)
    _limits(left, present.get("rate_axis_bps"), 1e-6)
    _limits(right, present.get("rtt_axis_s"), 1e3)
    _time_axis(left, result)
    _legend(made, left, right)


def _cwnd(made: Figure, result: Result, samples: Samples, summary: Summary) -> None:
    axes = made.add_subplot()
    for i, flow in enumerate(_tcp(result)):
        name, colour = flow["name"], COLOURS[i % len(COLOURS)]
        time, cwnd = samples.of("flow", name, "cwnd")
        axes.plot(
            time, cwnd, color=colour, linewidth=1.1, label=f"{name}: cwnd", **_spaced(time, MARKERS[i % len(MARKERS)])
        )
        if ("flow", name, "ssthresh") in samples:
            time, ssthresh = samples.of("flow", name, "ssthresh")
            axes.plot(time, ssthresh, color=colour, linewidth=0.9, linestyle=":", label=f"{name}: ssthresh")
    axes.set_ylabel("window [packets]")
    axes.set_ylim(bottom=0)
    _time_axis(axes, result)
    _legend(made, axes)


def _queue(made: Figure, result: Result, samples: Samples, summary: Summary) -> None:
    import numpy as np

    narrow = summary.bottleneck
    if narrow is None:
        raise MeasureError(f"{words.title(result)}: the first flow's path has no bottleneck")
    names = leaves(narrow.queue, summary.queues)
    panels = made.subplots(3, 1, sharex=True)
    for i, name in enumerate(names):
        look = {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}
        time, qlen = samples.of("queue", name, "qlen")
        _line(panels[0], time, qlen, look, label=name)
        time, sojourn = samples.of("queue", name, "sojourn")
        _line(panels[1], time, sojourn * 1e3, look, label="")
        for metric, style in (("marks", "-"), ("drops", "--")):
            time, count = samples.of("queue", name, metric)
            edges = np.arange(0.0, result.resolved["duration_s"] + _MEAN_OVER_S, _MEAN_OVER_S)
            per_s = np.diff(np.interp(edges, time, count, left=0.0)) / _MEAN_OVER_S
            panels[2].stairs(
                per_s, edges, color=look["color"], linestyle=style, label=f"{name}: {metric}", linewidth=1.4
            )
    for axes, label in zip(panels, ("length [packets]", "queue delay [ms]", "signals [packets/s]"), strict=True):
        axes.set_ylabel(label)
        axes.set_ylim(bottom=0)
        _time_axis(axes, result, label=axes is panels[-1])
    _legend(made, *panels)


_KINDS: dict[str, Callable[[Figure, Result, Samples, Summary], None]] = {
    "tcp_delivery_with_rtt": _delivery_with_rtt,
    "cwnd": _cwnd,
    "queue": _queue,
}


def _tcp(result: Result) -> list[Mapping[str, Any]]:
    return [flow for flow in result.resolved["flows"] if flow["transport"] == "tcp"]


def _line(axes: Axes, time: Array, value: Array, look: Mapping[str, Any], *, label: str, style: str = "-") -> None:
    """Samples as a thin pale line, their means over 1 s as a thick one: 50 ms of noise would hide everything else."""
    import numpy as np

    axes.plot(time, value, color=look["color"], linewidth=0.5, alpha=0.3, zorder=2)
    # A sample stands for the interval that ends with it: one at 1 s belongs to the first second.
    bins = np.maximum(np.ceil(time / _MEAN_OVER_S - 1e-9) - 1, 0).astype(int)
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    counts = np.diff(starts, append=len(bins))
    means = np.add.reduceat(value, starts) / counts
    middles = (bins[starts] + 0.5) * _MEAN_OVER_S
    dress = {"markerfacecolor": look.get("markerfacecolor", look["color"]), **_spaced(middles, look["marker"])}
    axes.plot(middles, means, color=look["color"], linewidth=1.7, linestyle=style, label=label, zorder=3, **dress)


def _spaced(time: Array, marker: str) -> dict[str, Any]:
    """Some ten markers along a line, so that lines differ without colour too."""
    return {"marker": marker, "markersize": 6, "markevery": max(1, len(time) // 10)}


def _limits(axes: Axes, limits: Sequence[float] | None, scale: float) -> None:
    if limits is None:
        axes.set_ylim(bottom=0)
    else:
        axes.set_ylim(limits[0] * scale, limits[1] * scale)


def _time_axis(axes: Axes, result: Result, *, label: bool = True) -> None:
    """Time from 0 to the end, the steady state shaded, a line where something was changed."""
    axes.set_xlim(0, result.resolved["duration_s"])
    if label:
        axes.set_xlabel("time [s]")
    axes.axvspan(*result.resolved["window_s"], color=_BAND, zorder=0)
    for at_s in sorted({change["at_s"] for change in result.resolved.get("changes", ())}):
        axes.axvline(at_s, color="#888888", linewidth=1, linestyle=(0, (6, 3)), zorder=1)


def _legend(made: Figure, *several: Axes) -> None:
    """One legend below everything, so that it never lies on data."""
    from matplotlib.patches import Patch

    handles = [handle for axes in several for handle in axes.get_legend_handles_labels()[0]]
    handles.append(Patch(facecolor=_BAND, edgecolor="#cccccc", label="steady state"))
    made.legend(handles=handles, loc="outside lower center", ncols=min(4, len(handles)), fontsize=10)
