"""A number over two axes of numbers: colours, lines of equal value with their labels, and gaps where runs failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.colors import Normalize

    from bakeoff.plots.points import Estimate

At = tuple[float, float]
"""Where a point lies on both axes."""

LEAST: Final = 4
"""Different values of each axis from which on they are drawn as numbers, and not as so many labels."""
MOST_NUMBERS: Final = 240
"""Cells up to which each has its number."""
_LINES: Final = 6
"""Lines of equal value, about."""
_SHADES: Final = 100
_DOTS: Final = 1000
"""Runs up to which each has a dot: more would hide the colours."""
_LABEL_PT: Final = 24
_FAILED: Final = "#b00020"
_NONE: Final = "#111111"
_EMPTY: Final = "#e6e6e6"
_FULL: Final = 0.95
"""Share of the crossings of all values that have a run in what is drawn as a grid; else it is a sample."""


@dataclass(frozen=True)
class Field:
    """What is drawn in one panel."""

    values: Mapping[At, float]
    failed: frozenset[At]
    """Where no run ended well."""
    partly: frozenset[At] = frozenset()
    """Where only some seeds have a number, of which the value is the mean."""
    none: frozenset[At] = frozenset()
    """Where no seed has one."""

    @property
    def everywhere(self) -> list[At]:
        """All points that there are."""
        return [*self.values, *self.failed, *self.none]


def logarithmic(values: Iterable[float]) -> bool:
    """Whether values are spread evenly on a logarithmic scale rather than on a linear one, and span a factor of 8."""
    known = sorted(set(values))
    if len(known) < 3 or known[0] <= 0 or known[-1] < 8 * known[0]:
        return False
    middle = known[len(known) // 2] if len(known) % 2 else (known[len(known) // 2 - 1] + known[len(known) // 2]) / 2
    linear = (middle - known[0]) / (known[-1] - known[0])
    scaled = log(middle / known[0]) / log(known[-1] / known[0])
    return abs(scaled - 0.5) < abs(linear - 0.5)


def draw(axes: Axes, field: Field, norm: Normalize) -> None:
    """Draw the field; each axis is logarithmic where its points are spread so."""
    xs, ys = (sorted({at[axis] for at in field.everywhere}) for axis in (0, 1))
    axes.set_facecolor(_EMPTY)
    axes.grid(visible=False)
    for scale, of in ((axes.set_xscale, xs), (axes.set_yscale, ys)):
        if logarithmic(of):
            scale("log")
    if _is_grid(field, xs, ys):
        _grid(axes, field, xs, ys, norm)
    else:
        _sample(axes, field, norm)
    size = 22 if len(field.everywhere) < 1500 else 6
    for region, look in (
        (field.failed, {"marker": "x", "color": _FAILED}),
        (field.none, {"marker": "x", "color": _NONE}),
        (field.partly, {"marker": "o", "facecolor": "none", "edgecolor": _NONE}),
    ):
        at = sorted(region)
        if at:
            axes.scatter([x for x, _ in at], [y for _, y in at], s=size, linewidth=1, zorder=4, **look)  # type: ignore[arg-type]
    for axis, of in ((axes.xaxis, xs), (axes.yaxis, ys)):
        _ticks(axis, of)


def cells(
    axes: Axes,
    values: Mapping[tuple[str, str], Estimate],
    columns: Sequence[str],
    rows: Sequence[str],
    *,
    norm: Normalize,
    narrow: bool = False,
) -> None:
    """Draw a cell for each pair of labels, with its number, and of how many seeds it is if not of all.

    Where cells are `narrow`, numbers have two digits, and labels stand upright.
    """
    import numpy as np

    from bakeoff.plots.style import plain

    grid = np.full((len(rows), len(columns)), np.nan)
    at_row, at_column = ({label: i for i, label in enumerate(labels)} for labels in (rows, columns))
    texts: dict[tuple[int, int], str] = {}
    for (column, row), seen in values.items():
        at = at_row[row], at_column[column]
        if seen.found is None:
            texts[at] = "never"
        else:
            grid[at] = seen.found["mean"]
            few = "" if seen.whole else f"\n{seen.found['n']} of {seen.of}"
            texts[at] = (_two_digits if narrow else _digits)(seen.found["mean"]) + few
    axes.set_facecolor(_EMPTY)
    axes.imshow(grid, cmap="cividis", norm=norm, aspect="auto", origin="lower", interpolation="nearest")
    axes.grid(visible=False)
    upright = sum(len(label) for label in columns) > (20 if narrow else 60)
    across, down = -(-len(columns) // 50), -(-len(rows) // 50)
    axes.set_xticks(range(0, len(columns), across), [plain(c) for c in columns[::across]], fontsize=9,
                    rotation=90 if upright else 0)  # fmt: skip
    axes.set_yticks(range(0, len(rows), down), [plain(r) for r in rows[::down]], fontsize=9)
    if grid.size > MOST_NUMBERS:
        return
    for (row, column), value in np.ndenumerate(grid):
        empty = not np.isfinite(value)
        dark = not empty and norm(value) < 0.55
        axes.text(column, row, texts.get((row, column), "none"), ha="center", va="center",
                  fontsize=7.5 if narrow and len(columns) > 6 else 8.5,
                  color="#888888" if empty else "white" if dark else "black")  # fmt: skip


def _digits(value: float) -> str:
    """Three digits, zeros at the end too, so that numbers beside each other look alike: `0.998`, `1.00`, `1250`."""
    return f"{value:.0f}" if abs(value) >= 999.5 else f"{value:#.3g}".rstrip(".")


def _two_digits(value: float) -> str:
    """Two digits, and all before the point up to 999: `0.0056`, `4.7`, `558`, `8.8k`, `25k`, `0`."""
    if abs(value) >= 999.5:
        return f"{_two_digits(value / 1000)}k"
    return f"{value:.0f}" if not value or abs(value) >= 9.95 else f"{value:#.2g}"


def entries(fields: Sequence[Field]) -> list[Artist]:
    """What the signs mean, for a legend; of those that are there."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    if not fields:
        return []
    found: list[Artist] = [Line2D([], [], color="#333333", linewidth=0.9, label="equal value, as the line says")]
    signs = (
        (any(field.failed for field in fields), "x", _FAILED, "the run failed"),
        (any(field.none for field in fields), "x", _NONE, "never, or no number, with any seed"),
        (any(field.partly for field in fields), "o", _NONE, "mean over those seeds alone that have a number"),
    )
    for there, marker, colour, label in signs:
        if there:
            found.append(Line2D([], [], linestyle="", marker=marker, color=colour, markerfacecolor="none", label=label))
    if any(_gaps(field) for field in fields):
        found.append(Patch(facecolor=_EMPTY, label="no run"))
    if any(not _is_grid(field) for field in fields):
        few = all(len(field.values) <= _DOTS for field in fields)
        meaning = "a run; between them interpolated" if few else "interpolated between runs"
        found.append(Line2D([], [], linestyle="", marker="." if few else "", color="#333333", label=meaning))
    return found


def _gaps(field: Field) -> bool:
    xs, ys = ({at[axis] for at in field.everywhere} for axis in (0, 1))
    return _is_grid(field) and len(field.everywhere) < len(xs) * len(ys)


def _is_grid(field: Field, xs: Sequence[float] = (), ys: Sequence[float] = ()) -> bool:
    crossings = len(xs or {x for x, _ in field.everywhere}) * len(ys or {y for _, y in field.everywhere})
    return len(field.everywhere) >= _FULL * crossings


def _grid(axes: Axes, field: Field, xs: Sequence[float], ys: Sequence[float], norm: Normalize) -> None:
    import numpy as np

    grid = np.full((len(ys), len(xs)), np.nan)
    column, row = ({value: n for n, value in enumerate(of)} for of in (xs, ys))
    for (x, y), value in field.values.items():
        grid[row[y], column[x]] = value
    masked = np.ma.masked_invalid(grid)
    axes.pcolormesh(
        _edges(xs, axes.get_xscale()), _edges(ys, axes.get_yscale()), masked, cmap="cividis", norm=norm, rasterized=True
    )
    levels = _levels(masked.compressed())
    if levels and min(masked.shape) > 1:
        _label(axes, axes.contour(xs, ys, masked, levels=levels, **_line(norm, levels)))


def _sample(axes: Axes, field: Field, norm: Normalize) -> None:
    """Between points that lie anywhere, triangles on the axes' own scales."""
    import numpy as np
    from matplotlib.tri import Triangulation

    at = np.array(list(field.values))
    values = np.array(list(field.values.values()))
    scaled = [
        np.log(of) if scale == "log" else of
        for of, scale in zip(at.T, (axes.get_xscale(), axes.get_yscale()), strict=True)
    ]
    unit = [(of - of.min()) / ((of.max() - of.min()) or 1.0) for of in scaled]
    triangles = Triangulation(at[:, 0], at[:, 1], Triangulation(unit[0], unit[1]).triangles)
    shades = np.linspace(min(norm.vmin or 0.0, values.min()), max(norm.vmax or 1.0, values.max()), _SHADES)
    made = axes.tricontourf(triangles, values, levels=shades, cmap="cividis", norm=norm)
    made.set_rasterized(True)
    axes.use_sticky_edges = False
    axes.margins(0.02)
    levels = _levels(values)
    if levels:
        _label(axes, axes.tricontour(triangles, values, levels=levels, **_line(norm, levels)))
    if len(at) <= _DOTS:
        axes.scatter(at[:, 0], at[:, 1], s=5, color="#333333", edgecolor="white", linewidth=0.3, zorder=3)


def _edges(values: Sequence[float], scale: str) -> Any:  # noqa: ANN401 (an array)
    """Half-way between neighbours, on the scale of the axis, and as far beyond the ends."""
    import numpy as np

    at = np.log(values) if scale == "log" else np.asarray(values, dtype=float)
    if len(at) == 1:
        return np.array([at[0] - 0.5, at[0] + 0.5])
    middle = (at[1:] + at[:-1]) / 2
    edges = np.concatenate(([2 * at[0] - middle[0]], middle, [2 * at[-1] - middle[-1]]))
    return np.exp(edges) if scale == "log" else edges


def _levels(values: Any) -> list[float]:  # noqa: ANN401 (an array)
    from matplotlib.ticker import MaxNLocator

    if len(values) < 4 or values.max() <= values.min():
        return []
    found = MaxNLocator(_LINES, steps=[1, 2, 2.5, 5, 10]).tick_values(values.min(), values.max())
    return [float(level) for level in found if values.min() < level < values.max()]


def _line(norm: Normalize, levels: Sequence[float]) -> dict[str, Any]:
    """Lines that can be seen on their colour: light on the dark half of the scale."""
    return {"colors": ["white" if norm(level) < 0.5 else "black" for level in levels], "linewidths": 0.9}


def _label(axes: Axes, lines: Any) -> None:  # noqa: ANN401 (a set of contours)
    """Say the values on the lines, but not twice in one place: small islands of several values lie close together."""
    kept: list[tuple[float, float]] = []
    for text in axes.clabel(lines, fmt="%g", fontsize=8.5, inline=True, inline_spacing=3):
        x, y = axes.transData.transform(text.get_position())
        if any(abs(x - a) < _LABEL_PT and abs(y - b) < _LABEL_PT for a, b in kept):
            text.set_visible(False)
        else:
            kept.append((x, y))


def _ticks(axis: Any, values: Sequence[float]) -> None:  # noqa: ANN401 (one of matplotlib's)
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    if axis.get_scale() == "log":
        wide = values[-1] / values[0] > 1e3
        axis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    else:
        axis.set_major_locator(MaxNLocator(8))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
