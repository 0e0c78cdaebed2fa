"""Dot plots: one measure of chosen runs, a row for each set-up and a dot with its interval for each variant."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Final

from bakeoff.errors import PlotError
from bakeoff.plots import colours
from bakeoff.plots.mpl import ConstrainedLayoutEngine, Figure, Line2D
from bakeoff.plots.style import plain, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH_INCH: Final = 5.6
"""Letters stay legible where a phone shows the picture at two thirds of this."""
MOST_DOTS: Final = 60
_LINE_INCH: Final = 0.235
"""Height that a dot needs."""
_GAP: Final = 0.55
"""Between two rows, in lines."""
_LETTERS: Final = 17
"""Of a row's label in a line."""
HOLLOW: Final = "hollow"
PROBE: Final = "black"


@dataclass(frozen=True)
class Dot:
    """A value with its 95 % interval, in the unit of the axis."""

    value: float
    low: float
    high: float
    text: str
    """The value as it is written beside the dot."""


@dataclass(frozen=True)
class Look:
    """How the dots of a variant are drawn."""

    colour: str
    marker: str
    filled: bool


def look(words: str) -> Look:
    """`prague`, `cubic hollow`, `black`: the colour and marker of a control, filled unless `hollow` follows.

    BakeoffError for anything else.
    """
    name, _, rest = words.partition(" ")
    known = {**colours.CONTROLS, PROBE: (colours.PROBE, "D")}
    if name not in known or rest not in ("", HOLLOW):
        raise PlotError(f"look: '{words}'; expected one of {', '.join(known)}, and '{HOLLOW}' after it for a ring")
    colour, marker = known[name]
    return Look(colour, marker, filled=not rest)


def figure(
    rows: Mapping[str, Mapping[str, Dot]],
    looks: Mapping[str, Look],
    *,
    axis: str,
    log: bool = False,
    mark: float | None = None,
) -> Figure:
    """Rows from top to bottom, and in each its variants in the order of `looks`; `mark` is a vertical line.

    BakeoffError for no dot, too many, a variant without a look, and a value that a logarithmic axis cannot show.
    """
    values = [dot for row in rows.values() for dot in row.values()]
    unknown = next((name for row in rows.values() for name in row if name not in looks), None)
    if unknown is not None:
        raise PlotError(f"'{unknown}': unknown look; expected one of: {', '.join(looks) or 'none'}")
    if not 0 < len(values) <= MOST_DOTS:
        raise PlotError(f"{len(values)} dots; expected 1 to {MOST_DOTS}")
    bad = next((dot for dot in values if not isfinite(dot.value) or (log and dot.value <= 0)), None)
    if bad is not None:
        raise PlotError(f"a dot at {bad.text}; expected a finite number{' above 0' if log else ''}")
    shown = [name for name in looks if any(name in row for row in rows.values())]
    lines = len(values) + _GAP * (len(rows) - 1)
    with styled():
        # The legend, the axis and its label take 1.1 inches.
        made = Figure(figsize=(WIDTH_INCH, lines * _LINE_INCH + 1.1 + 0.22 * ((len(shown) - 1) // 2)),
                      layout=ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.05))  # fmt: skip
        axes = made.add_subplot()
        _rows(axes, rows, looks, log=log)
        _axis(axes, values, axis, log=log, mark=mark)
        entries = [_entry(looks[name], plain(name)) for name in shown]
        if len(entries) > 1:
            made.legend(handles=entries, loc="outside upper center", ncols=2 if len(entries) != 3 else 3,
                        fontsize=10, handlelength=1.0, handletextpad=0.5, columnspacing=1.4)  # fmt: skip
    return made


def _rows(axes: Axes, rows: Mapping[str, Mapping[str, Dot]], looks: Mapping[str, Look], *, log: bool) -> None:
    at = 0.0
    ticks: dict[float, str] = {}
    for label, row in rows.items():
        places = [at + i for i in range(len(row))]
        ticks[sum(places) / len(places)] = _folded(label)
        axes.axhspan(places[0] - 0.5, places[-1] + 0.5, color="#f4f4f4", linewidth=0)
        for place, name in zip(places, [name for name in looks if name in row], strict=True):
            dot, style = row[name], looks[name]
            low = max(dot.low, dot.value / 100) if log else dot.low
            axes.plot([low, dot.high], [place, place], color=style.colour, linewidth=1.6, solid_capstyle="butt")
            axes.plot([dot.value], [place], linestyle="none", marker=style.marker, markersize=7, color=style.colour,
                      markerfacecolor=style.colour if style.filled else "white", markeredgewidth=1.5)  # fmt: skip
            axes.annotate(plain(dot.text), (max(dot.high, dot.value), place), xytext=(7, 0), va="center",
                          textcoords="offset points", fontsize=10, color="#222222")  # fmt: skip
        at = places[-1] + 1 + _GAP
    axes.set_yticks(list(ticks), list(ticks.values()))
    axes.set_ylim(at - 0.5 - _GAP, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)


def _folded(label: str) -> str:
    """The label in lines; a number stays with its unit."""
    kept = re.sub(r"(?<=\d) (?=\w)", "\N{NO-BREAK SPACE}", plain(label))
    return "\n".join(textwrap.wrap(kept, _LETTERS, break_on_hyphens=False))


def _axis(axes: Axes, values: Sequence[Dot], text: str, *, log: bool, mark: float | None) -> None:
    ends = [*(dot.high for dot in values), *(dot.value for dot in values), *([mark] if mark is not None else [])]
    lows = [*(max(dot.low, dot.value / 2) for dot in values), *([mark] if mark is not None else [])]
    if log:
        axes.set_xscale("log")
        # A fifth of the axis is for the number beside the rightmost dot.
        low, high = min(lows) / 1.4, max(ends) * 1.15
        axes.set_xlim(low, high * (high / low) ** 0.2)
        from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.xaxis.set_minor_formatter(NullFormatter())
    else:
        axes.set_xlim(0, max(ends) * 1.22)
    axes.set_xlabel(plain(text), fontsize=10.5)
    if mark is not None:
        axes.axvline(mark, color="#555555", linewidth=1.2)


def _entry(style: Look, name: str) -> Line2D:
    return Line2D([], [], color=style.colour, marker=style.marker, markersize=7, linewidth=1.6, label=name,
                  markerfacecolor=style.colour if style.filled else "white", markeredgewidth=1.5)  # fmt: skip
