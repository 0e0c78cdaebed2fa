"""Bar charts over a matrix: who gets what, per qdisc and pair of congestion controls."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff.errors import BakeoffError
from bakeoff.present.rows import RATES, FlowRow, Row, base_cc, choose_references, qdisc_order, rows
from bakeoff.present.style import COLOURS, SIZE_INCH, save, styled
from bakeoff.references import Reference

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bakeoff.results import Result

_WIDTH = 0.38
_HATCHES = ("", "////", "....", "xxxx")


def bars(
    results: Iterable[Result],
    path: Path,
    *,
    reference: str | Sequence[Reference] | None = None,
    metric: str | None = None,
    suffix: str = ".svg",
) -> list[Path]:
    """Draw grouped bars into the folder `path`: a file per scenario and point of the axes other than qdisc and pair.

    Named as in l4s-tests scenario 1, `rttfair_cc_qdisc_50mbit_20ms_20ms.svg`: groups along x are qdiscs, in a group
    stand the pairs of congestion controls, of each pair one bar per flow. Error bars are 95 % intervals over seeds,
    diamonds the reference. `reference` and `metric` as in `tables.render`.

    Raises BakeoffError if there is no finished run, for an unknown reference, metric or suffix, and for a file that
    cannot be written.
    """
    given = list(results)
    table = rows(given, choose_references(given, reference), metric)
    if not table:
        raise BakeoffError("no finished run to draw")
    charts: dict[str, list[Row]] = {}
    for scenario in dict.fromkeys(row.scenario for row in table):
        part = [row for row in table if row.scenario == scenario]
        fixed = [axis for axis in part[0].axes if axis != "qdisc" and not _names_flows(axis, part)]
        for row in part:
            point = [row.axes.get(axis, "") for axis in fixed]
            name = "_".join([re.sub(r"^s\d+-", "", scenario), "cc_qdisc", *point])
            charts.setdefault(re.sub(r"[^\w.()+-]", "_", name), []).append(row)
    return [save(_chart(part), path / f"{name}{suffix}") for name, part in charts.items()]


def _names_flows(axis: str, table: Sequence[Row]) -> bool:
    """Whether an axis says nothing but which congestion controls compete."""
    for row in table:
        known = {base_cc(flow.cc or flow.name) for flow in row.flows} | {flow.name for flow in row.flows} | {"vs"}
        if not set(re.split(r"[-/, ]+", row.axes.get(axis, ""))) <= known:
            return False
    return True


def _chart(table: Sequence[Row]) -> Figure:
    from matplotlib.figure import Figure

    pairs = sorted({_pair(row) for row in table})
    qdiscs = sorted({row.axes.get("qdisc", "") for row in table}, key=qdisc_order)
    ccs = sorted({cc for pair in pairs for cc in pair})
    with styled():
        made = Figure(figsize=SIZE_INCH, layout="constrained")
        axes = made.add_subplot()
        axes.grid(visible=False, axis="x")
        ticks: dict[float, str] = {}
        for group, qdisc in enumerate(qdiscs):
            left = group * (len(pairs) + 0.8)
            for row in table:
                if row.axes.get("qdisc", "") == qdisc:
                    middle = left + pairs.index(_pair(row))
                    ticks[middle] = " / ".join(_pair(row))
                    _bars_of(axes, row, middle, ccs)
            axes.text(
                left + (len(pairs) - 1) / 2, 1.01, qdisc, transform=axes.get_xaxis_transform(), ha="center", fontsize=12
            )
            if group:
                axes.axvline(left - 0.9, color="#bbbbbb", linewidth=0.8)
        axes.set_xticks(list(ticks), list(ticks.values()), rotation=90)
        axes.tick_params(axis="x", length=0)
        axes.margins(x=0.02)
        rate = "delivery rate" if table[0].metric == RATES[0] else "goodput"
        axes.set_ylabel(f"{rate} in the steady state [Mbit/s]")
        axes.set_ylim(0, 1.1 * max((row.rate_bps or 0.0) / 1e6 for row in table) or None)
        _head(made, axes, table)
        _legend(made, table, ccs)
    return made


def _bars_of(axes: Axes, row: Row, middle: float, ccs: Sequence[str]) -> None:
    width = 2 * _WIDTH / len(row.flows)
    for i, flow in enumerate(row.flows):
        x = middle + (i - (len(row.flows) - 1) / 2) * width
        share = flow.rate_bps(row.metric)
        colour = COLOURS[ccs.index(_cc(flow)) % len(COLOURS)]
        height = share["mean"] / 1e6 if share else 0.0
        axes.bar(x, height, width, color=colour, hatch=_HATCHES[i % len(_HATCHES)], edgecolor="white", linewidth=0.8)
        if share and share["ci95"] is not None:
            axes.errorbar(x, height, yerr=share["ci95"] / 1e6, color="black", capsize=3, linewidth=1.2)
        if flow.reference is not None:
            axes.plot(
                x, flow.reference.value / 1e6, "D", color="black", markerfacecolor="white", markersize=6, zorder=4
            )


def _head(made: Figure, axes: Axes, table: Sequence[Row]) -> None:
    """The scenario, and for every congestion control what ran: version and negotiated ECN."""
    first = table[0]
    same = [f"{axis} {label}" for axis, label in first.axes.items() if len({row.axes.get(axis) for row in table}) == 1]
    ran = sorted({f"{flow.cc}, {flow.ecn}" for row in table for flow in row.flows})
    failed = sum(any(note.startswith("check ") for note in row.notes) for row in table)
    line = f"ran: {'; '.join(ran)}; engine {', '.join(sorted({row.engine for row in table}))}"
    made.suptitle(
        f"{first.suite}/{first.scenario}  {', '.join(same)}", x=0.01, ha="left", fontsize=14, fontweight="bold"
    )
    line += f"; self-checks failed in {failed} runs" if failed else ""
    axes.set_title(line, loc="left", fontsize=9.5, color="#b00000" if failed else "#444444", pad=26)


def _legend(made: Figure, table: Sequence[Row], ccs: Sequence[str]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Patch | Line2D] = [Patch(facecolor=COLOURS[i % len(COLOURS)], label=cc) for i, cc in enumerate(ccs)]
    for i in range(max(len(row.flows) for row in table)):
        handles.append(
            Patch(facecolor="#999999", edgecolor="white", hatch=_HATCHES[i % len(_HATCHES)], label=f"flow {i + 1}")
        )
    names = sorted({row.reference for row in table if row.reference})
    if names:
        label = f"reference: {', '.join(names)}"
        handles.append(Line2D([], [], marker="D", color="black", markerfacecolor="white", linestyle="", label=label))
    seeds = {row.n for row in table} - {1}
    if seeds:
        label = f"95 % interval over {'/'.join(str(n) for n in sorted(seeds))} seeds"
        handles.append(Line2D([], [], marker="_", markersize=12, color="black", label=label))
    made.legend(handles=handles, loc="outside lower center", ncols=min(6, len(handles)))


def _cc(flow: FlowRow) -> str:
    return base_cc(flow.cc or flow.name)


def _pair(row: Row) -> tuple[str, ...]:
    return tuple(_cc(flow) for flow in row.flows)
