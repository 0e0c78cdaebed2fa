"""Pictures of runs: what `bakeoff plot` and `Result.plot` draw."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from copy import copy
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff.errors import BakeoffError, PlotError
from bakeoff.plots.kinds import KINDS, Kind
from bakeoff.plots.kinds import kind as kind_of
from bakeoff.plots.plotted_run import PlottedRun
from bakeoff.plots.style import plain, save, styled

if TYPE_CHECKING:
    from bakeoff.plots.picture import Picture, Pictures
    from bakeoff.plots.time_series import Scale
    from bakeoff.results import Result

DEFAULT = "tcp_delivery_with_rtt"
SCALES = ("auto", "fixed", "var", "data")
MOST_OVERLAID = 8
_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}
"""A point is TeX's, as in \\columnwidth."""
_LEAST_WIDTH = 2.0
_MOST_WIDTH = 40.0


def kinds() -> list[str]:
    """The kinds of picture of a run that `figure` and `draw` know."""
    return [one.name for one in KINDS if one.of == "run"]


def draw(result: Result, path: Path, kind: str = DEFAULT, *, scale: Scale = "auto") -> Path:
    """Draw a result into a file, `.svg`, `.png` or `.pdf` by its suffix; the same result gives the same bytes.

    Raises BakeoffError for an unknown kind or suffix, missing samples, or a file that cannot be written.
    """
    return save(figure(result, kind, scale=scale), path)


def figure(result: Result, kind: str = DEFAULT, *, scale: Scale = "auto") -> Picture:
    """A matplotlib figure, 12 inches wide; in a notebook it shows itself.

    Thin lines are samples, thick ones means over 1 s; the shaded band is the steady state. The lines below the
    title are the configuration that was in effect, as the engine reported it. `scale` is for kinds with rates above
    round-trip times: `auto` takes the scenario's axes or else holds all data, `fixed` goes to 1.2 times the capacity
    and from the empty path's round-trip time 100 ms up, `var` three times as far up as the data do, `data`
    as far as they do. Raises BakeoffError for an unknown kind or scale and for missing samples.
    """
    return overlay([result], kind, scale=scale)


def overlay(
    results: Sequence[Result],
    kind: str = DEFAULT,
    *,
    scale: Scale = "auto",
    names: Sequence[str] | None = None,
    title: str | None = None,
    columns: bool = False,
) -> Picture:
    """One picture of several runs: the colour says the congestion control, the dash the run.

    `names` are what the runs are called, one for each; by default what tells them apart (see `labels`). `title` says
    what the picture shows; by default the names of runs or scenarios. With `columns` each run has panels of its own,
    side by side. Raises BakeoffError as `figure` does, and for more runs than can be told apart.
    """
    from bakeoff.plots import panels

    made = _drawn(results, kind, scale, names, columns=columns)
    with styled():
        finished = panels.finish(made)
    return finished if title is None else titled(finished, title)


def titled(picture: Picture, title: str) -> Picture:
    """The picture with this title; the one that it had follows below."""
    picture.retitle(plain(title))
    return picture


def sized(picture: Picture, width: str | None = None, *, heading: bool = True) -> Picture:
    """The picture so wide, `3.5in`, with letters and lines to fit, and with or without the words above it."""
    if not heading:
        picture.without_heading()
    if width is not None:
        picture.to_width(width_of(width))
    return picture


def width_of(text: str) -> float:
    """A width in inches from `3.5in`, `88mm`, `8.8cm` or `252pt`. BakeoffError says what is wrong."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(in|mm|cm|pt)", text.strip())
    width = float(match[1]) * _INCHES[match[2]] if match else 0.0
    if not _LEAST_WIDTH <= width <= _MOST_WIDTH:
        raise PlotError(
            f"--width: '{text}'; expected {_LEAST_WIDTH:g}in to {_MOST_WIDTH:g}in, or the same in mm, cm or pt (a "
            "journal column is 3.5in)"
        )
    return width


def compared(
    results: Sequence[Result], kind: str = DEFAULT, *, scale: Scale = "auto"
) -> Iterator[tuple[Result, Picture | BakeoffError]]:
    """A picture of each run, with the same limits in all whose bottlenecks have the same rates.

    Of a run that has not what the kind shows, the error. BakeoffError for an unknown kind or scale.
    """
    from bakeoff.plots import panels

    _known(kind, scale)
    made: list[tuple[Result, Picture | BakeoffError]] = []
    groups: dict[str, list[Picture]] = {}
    for result in results:
        # A copy, so that its samples go when it is drawn: hundreds of runs would fill the memory.
        one = copy(result)
        try:
            picture = _drawn([one], kind, scale)
        except BakeoffError as error:
            made.append((result, error))
            continue
        made.append((result, picture))
        plotted = PlottedRun(one)
        rates = sorted({str(plotted.capacity(queue)) for queue in plotted.bottlenecks.values()})
        groups.setdefault(" ".join(rates), []).append(picture)
    for several in groups.values():
        panels.share(several)
    for result, found in made:
        if not isinstance(found, BakeoffError):
            with styled():
                panels.finish(found)
        yield result, found


def campaign(
    results: Sequence[Result],
    kind: str = "bars",
    *,
    measure: str | None = None,
    x: str | None = None,
    y: str | None = None,
    lines: Sequence[str] | None = None,
    panels: Sequence[str] | None = None,
) -> dict[str, Picture]:
    """Pictures of many runs by name: bars per point, or a measure over the axes of each scenario's matrix.

    `x` and `y` are axes of the matrix; `lines` and `panels` name those whose labels become lines (`sweep`) and panels
    (`sweep`, `bars`); `all` names every one. Raises BakeoffError for an unknown kind, measure or axis, and without a
    finished run.
    """
    from bakeoff.plots import against_axis, bars, heatmap
    from bakeoff.plots.points import matrices

    if kind == "bars":
        return bars.charts(results, x=x, panels=panels or ())
    if kind not in ("sweep", "heatmap"):
        raise PlotError(f"plot kind: '{kind}' draws single runs; expected a kind for campaigns")
    made = {}
    for matrix in matrices(results):
        if kind == "sweep":
            picture = against_axis.sweep(matrix, measure, x, lines=lines, panels=panels)
        else:
            picture = heatmap.heatmap(matrix, measure, x, y)
        name = measure or against_axis.default_measure(matrix, kind)
        made[f"{matrix.title.replace('/', '_')}-{kind}-{name}"] = picture
    return made


def default_kind(results: Sequence[Result], *, overlay: bool = False) -> str:
    """What says most at first sight: of one run rates above delays, or what a call felt where there is one.

    Of several runs bars, or what `sweep.default_kind` says of their matrix. Of runs without flows their queues.
    """
    from bakeoff.plots.against_axis import default_kind as sweep_default
    from bakeoff.plots.call import offered_bps
    from bakeoff.plots.points import matrices

    if not any(result.run.flows for result in results):
        queues = any(kind == "queue" for result in results for kind, _, _ in result.parts)
        return "queue" if queues else DEFAULT
    if overlay or len(results) == 1:
        flows = results[0].run.flows
        return "call" if any(offered_bps(flow) is not None for flow in flows) else DEFAULT
    proposed = {sweep_default(matrix) for matrix in matrices(results)}
    return proposed.pop() if len(proposed) == 1 else "bars"


def of_several(
    results: Sequence[Result],
    kind: str | None = None,
    *,
    scale: Scale = "auto",
    measure: str | None = None,
    x: str | None = None,
    y: str | None = None,
    lines: Sequence[str] | None = None,
    panels: Sequence[str] | None = None,
) -> Picture | Pictures:
    """One picture of several runs, or, of a kind that needs one for each point of the matrix, all of them."""
    from bakeoff.plots.picture import Pictures

    if not results:
        raise PlotError("no finished run to draw")
    name = kind or default_kind(results)
    if kind_of(name).of == "run":
        return overlay(results, name, scale=scale)
    made = list(campaign(results, name, measure=measure, x=x, y=y, lines=lines, panels=panels).values())
    return made[0] if len(made) == 1 else Pictures(made)


def _known(name: str, scale: Scale) -> Kind:
    chosen = kind_of(name)
    if chosen.draw is None:
        raise PlotError(f"plot kind: '{name}' draws campaigns; expected a kind for single runs")
    if scale not in SCALES:
        raise PlotError(f"scale: unknown '{scale}'; expected {', '.join(SCALES)}")
    if scale != "auto" and not chosen.scales:
        able = ", ".join(one.name for one in KINDS if one.scales)
        raise PlotError(f"scale: '{name}' has no scales; expected one of: {able}")
    return chosen


def file_name(name: str, scale: Scale) -> str:
    """The name of a picture's file without its suffix: `NAME`, `NAME_fixed`, `NAME_var` or `NAME_data`."""
    return name if scale == "auto" else f"{name}_{scale}"


def _drawn(
    results: Sequence[Result], name: str, scale: Scale, names: Sequence[str] | None = None, *, columns: bool = False
) -> Picture:
    chosen = _known(name, scale)
    assert chosen.draw is not None
    if len(results) > MOST_OVERLAID:
        raise PlotError(f"{len(results)} runs in one picture; expected at most {MOST_OVERLAID}")
    plotted = [PlottedRun(result, label) for result, label in zip(results, names or labels(results), strict=True)]
    for one in plotted:
        _ = one.samples
    if columns:
        from bakeoff.plots.beside import beside

        return beside(plotted, name, scale)
    with styled():
        return chosen.draw(plotted, scale) if chosen.scales else chosen.draw(plotted)


def labels(results: Sequence[Result]) -> list[str]:
    """What tells runs apart: the labels of the axes in which they differ; else as much of their names as it takes."""
    if len(results) < 2:
        return [""] * len(results)
    points = [{**result.run.point} for result in results]
    for point, result in zip(points, results, strict=True):
        point["seed"] = f"seed {result.run.seed}"
    axes = [axis for axis in dict.fromkeys(a for p in points for a in p) if len({p.get(axis) for p in points}) > 1]
    # A rate or a time says by its unit what it is; a number alone does not.
    bare = {axis for axis in axes if all(str(point.get(axis, 0)).replace(".", "", 1).isdigit() for point in points)}
    short = [
        ", ".join(f"{axis} {point[axis]}" if axis in bare else str(point[axis]) for axis in axes if axis in point)
        for point in points
    ]
    candidates = [
        short,
        [str(result.run.run) for result in results],
        [result.key for result in results],
        [f"{result.record.engine} {result.key}" for result in results],
        [str(result.path) for result in results],
    ]
    fine = [made for made in candidates if len(set(made)) == len(results) and all(made)]
    return fine[0] if fine else [f"run {i}" for i in range(1, len(results) + 1)]
