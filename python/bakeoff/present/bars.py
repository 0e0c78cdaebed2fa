"""Bar charts over a matrix: who gets what, per queue and set of flows."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff.errors import BakeoffError
from bakeoff.present import caption, colours
from bakeoff.present.rows import RATES, FlowRow, Row, choose_references, finished, qdisc_order, rows
from bakeoff.present.shown import Shown
from bakeoff.present.style import plain, save, styled
from bakeoff.present.words import engine_of
from bakeoff.references import Reference

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from bakeoff.present.panels import Picture
    from bakeoff.results import Result

MOST_CHARTS = 60
_MOST_FLOWS = 8
"""Of more flows in one run those with one control share a bar."""
_MOST_BARS = 80
_MOST_GROUPS = 16


@dataclass(frozen=True)
class Bar:
    """One bar: a flow, or the flows of one control, in Mbit/s."""

    name: str
    control: str
    height: float
    low: float
    high: float
    reference: float | None


def bars(
    results: Iterable[Result],
    path: Path,
    *,
    reference: str | Sequence[Reference] | None = None,
    metric: str | None = None,
    suffix: str = ".svg",
) -> list[Path]:
    """Draw grouped bars into the folder `path`: a file per scenario and point of the axes that make no group or bar.

    Named as in l4s-tests scenario 1, `rttfair_cc_qdisc_50mbit_20ms_20ms.svg`. See `charts`. Raises BakeoffError as
    `charts` does, for an unknown suffix, and for a file that cannot be written.
    """
    made = charts(results, reference=reference, metric=metric)
    return [save(picture, path / f"{name}{suffix}") for name, picture in made.items()]


def charts(
    results: Iterable[Result], *, reference: str | Sequence[Reference] | None = None, metric: str | None = None
) -> dict[str, Picture]:
    """Grouped bars, by name: groups along x are qdiscs, in a group stand the runs, of each run a bar per flow.

    Without an axis `qdisc` the groups are the labels of the last axis that says something else than which controls
    compete. Error bars are 95 % intervals over seeds or, where flows of one control share a bar, from the least to the
    greatest of them; diamonds are the reference. `reference` and `metric` as in `tables.render`.

    Raises BakeoffError if there is no finished run, for an unknown reference or metric, and for more charts than
    anybody looks at.
    """
    given = list(results)
    table = [row for row in rows(given, choose_references(given, reference), metric) if row.flows]
    if not table:
        raise BakeoffError("no finished run has a flow to draw; --kind queue draws runs without flows")
    parts: dict[str, tuple[str, list[Row]]] = {}
    for scenario in dict.fromkeys((row.suite, row.scenario) for row in table):
        part = [row for row in table if (row.suite, row.scenario) == scenario]
        varied = [axis for axis in part[0].axes if len({row.axes.get(axis) for row in part}) > 1]
        free = [axis for axis in part[0].axes if not _names_flows(axis, part)]
        few = [a for a in free if a in varied and len({row.axes.get(a) for row in part}) <= _MOST_GROUPS]
        group = next((axis for axis in ["qdisc", *reversed(free)] if axis in few), "")
        for row in part:
            point = [row.axes.get(axis, "") for axis in free if axis not in (group, "qdisc")]
            engine = [row.engine] if len({other.engine for other in part}) > 1 else []
            name = "_".join([re.sub(r"^s\d+-", "", row.scenario), "cc_qdisc", *point, *engine])
            parts.setdefault(re.sub(r"[^\w.()+-]", "_", name), (group, []))[1].append(row)
    if len(parts) > MOST_CHARTS:
        raise BakeoffError(
            f"{len(parts)} bar charts of {len(table)} runs; at most {MOST_CHARTS} at a time: choose runs with a "
            "pattern, or draw one picture of all with --kind sweep or heatmap"
        )
    made = {}
    for name, (group, part) in parts.items():
        names = {(row.suite, row.scenario, row.run, row.engine) for row in part}
        shown = [result for result in finished(given) if _name(result) in names]
        made[name] = _chart(part, group, caption.averaged([Shown(result) for result in shown]), caption.epochs(shown))
    return made


def _name(result: Result) -> tuple[str, str, str, str]:
    """What tells the row of a result from others."""
    at = result.resolved
    return at["suite"], at["scenario"], at["run"], engine_of(result)


def _names_flows(axis: str, table: Sequence[Row]) -> bool:
    """Whether an axis says nothing but which congestion controls compete."""
    for row in table:
        known = {_control(flow) for flow in row.flows} | {flow.name for flow in row.flows} | {"vs"}
        if not set(re.split(r"[-/, ]+", row.axes.get(axis, ""))) <= known:
            return False
    return True


def _chart(table: Sequence[Row], group_axis: str, said: Sequence[str], mixed: Sequence[str]) -> Picture:
    from bakeoff.present import panels

    table = sorted(table, key=_matrix_order)
    groups = list(dict.fromkeys(row.axes.get(group_axis, "") for row in table))
    if any(row.order is None for row in table):
        groups.sort(key=qdisc_order)
    many = any(len(row.flows) > _MOST_FLOWS for row in table) or sum(len(row.flows) for row in table) > _MOST_BARS
    stacks = {id(row): _bars_of(row, together=many) for row in table}
    n = sum(len(stack) for stack in stacks.values())
    looks = colours.looks(bar.control for stack in stacks.values() for bar in stack)
    same = {axis: label for axis, label in table[0].axes.items() if len({row.axes.get(axis) for row in table}) == 1}
    first = table[0]
    title = f"{first.suite}/{first.scenario}  " + ", ".join(f"{axis} {label}" for axis, label in same.items())
    failed = sum(any(note.startswith("check ") for note in row.notes) for row in table)
    with styled():
        made = panels.titled(
            plain(title),
            [*_ran(table), *said],
            [*mixed, *([f"self-checks failed in {failed} runs"] if failed else [])],
            height_inch=6.2,
            width_inch=max(12.0, 0.26 * n + 2),
        )
        axes = made.subplots()
        axes.grid(visible=False, axis="x")
        left, ticks, middles = 0.0, {}, {}
        for group in groups:
            begin = left
            for row in (row for row in table if row.axes.get(group_axis, "") == group):
                stack = stacks[id(row)]
                for i, bar in enumerate(stack):
                    _bar(axes, left + i, bar, looks[bar.control][0])
                    ticks[left + i] = bar.name
                if row.jain is not None and len(stack) > 1:
                    axes.text(left + (len(stack) - 1) / 2, 0.985, f"{row.jain:.2f}", ha="center", va="top", fontsize=8,
                              color="#666666", transform=axes.get_xaxis_transform())  # fmt: skip
                left += len(stack) + 0.6
            middles[(begin + left - 1.6) / 2] = group
            if group != groups[-1]:
                axes.axvline(left - 0.3, color="#bbbbbb", linewidth=0.8)
            left += 1.0
        axes.set_xlim(-1.0, left - 1.6)
        room = 0.86 * made.get_figwidth() / max(left, 1.0)
        upright = max(len(name) for name in ticks.values()) * 0.085 > room
        axes.set_xticks(
            list(ticks), [plain(name) for name in ticks.values()], rotation=90 if upright else 0, fontsize=9
        )
        axes.tick_params(axis="x", length=0)
        _name_groups(made, axes, middles)
        rate = "delivery rate" if first.metric == RATES[0] else "goodput"
        axes.set_ylabel(f"{rate} in the steady state [Mbit/s]")
        highest = max((max(bar.high, bar.reference or 0.0) for stack in stacks.values() for bar in stack), default=0.0)
        axes.set_ylim(0, 1.14 * highest or 1.0)
        _legend(made, table, looks, together=many)
    return made


def _bars_of(row: Row, *, together: bool) -> list[Bar]:
    """A bar for each flow, or for all flows of one control."""
    found = []
    for flow in row.flows:
        share = flow.rate_bps(row.metric)
        mean = share["mean"] / 1e6 if share else 0.0
        half = (share["ci95"] or 0.0) / 1e6 if share else 0.0
        published = flow.reference.value / 1e6 if flow.reference is not None else None
        found.append(Bar(flow.name, _control(flow), mean, mean - half, mean + half, published))
    if not together:
        return found
    made = []
    for control in dict.fromkeys(bar.control for bar in found):
        several = [bar for bar in found if bar.control == control]
        heights = [bar.height for bar in several]
        name = several[0].name if len(several) == 1 else f"{control} \N{MULTIPLICATION SIGN}{len(several)}"
        made.append(Bar(name, control, sum(heights) / len(heights), min(heights), max(heights), None))
    return made


def _bar(axes: Axes, x: float, bar: Bar, colour: str) -> None:
    axes.bar(x, bar.height, 0.86, color=colour, edgecolor="white", linewidth=0.6)
    if bar.high > bar.low:
        axes.errorbar(x, bar.height, yerr=[[bar.height - bar.low], [bar.high - bar.height]], color="black", capsize=3,
                      linewidth=1.2)  # fmt: skip
    if bar.reference is not None:
        axes.plot(x, bar.reference, "D", color="black", markerfacecolor="white", markersize=6, zorder=4)


def _name_groups(made: Picture, axes: Axes, middles: dict[float, str]) -> None:
    """The groups' names above them, wrapped to the room they have."""
    room = int(9.5 * made.get_figwidth() / max(len(middles), 1))
    for middle, name in middles.items():
        text = "\n".join(textwrap.wrap(plain(name), max(room, 6), break_on_hyphens=False))
        axes.text(middle, 1.01, text, transform=axes.get_xaxis_transform(), ha="center", va="bottom", fontsize=11)


def _ran(table: Sequence[Row]) -> list[str]:
    """For every congestion control what ran: version and negotiated ECN."""
    from bakeoff.present.words import ecn_words

    ran = sorted({f"{flow.cc}, {ecn_words(flow.ecn)}" if flow.cc else "UDP" for row in table for flow in row.flows})
    line = f"ran: {'; '.join(ran)}; engine {', '.join(sorted({row.engine for row in table}))}"
    return textwrap.wrap(plain(line), 140)


def _legend(made: Picture, table: Sequence[Row], looks: dict[str, tuple[str, str]], *, together: bool) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    from bakeoff.present import panels

    handles: list[Artist] = [
        Patch(facecolor=colour, label="UDP" if name == "udp" else name) for name, (colour, _) in looks.items()
    ]
    names = sorted({row.reference for row in table if row.reference and any(flow.reference for flow in row.flows)})
    if names:
        label = f"published: {', '.join(names)}"
        handles.append(Line2D([], [], marker="D", color="black", markerfacecolor="white", linestyle="", label=label))
    seeds = {row.n for row in table} - {1}
    if together:
        handles.append(Line2D([], [], marker="_", markersize=12, color="black", label="least to greatest of the flows"))
    elif seeds:
        label = f"95 % interval over {'/'.join(str(n) for n in sorted(seeds))} seeds"
        handles.append(Line2D([], [], marker="_", markersize=12, color="black", label=label))
    if any(row.jain is not None for row in table):
        handles.append(Line2D([], [], linestyle="", label="small figures: Jain's index"))
    panels.legend(made, handles)


def _control(flow: FlowRow) -> str:
    return colours.control(flow.cc or flow.name) if flow.cc not in (None, "none") or flow.ecn else "udp"


def _matrix_order(row: Row) -> tuple[bool, int, list[str], str]:
    """As the scenario's matrix has the runs; by controls where the results do not say it."""
    return row.order is None, row.order or 0, [_control(flow) for flow in row.flows], row.run
