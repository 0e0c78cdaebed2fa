"""Tables of results, with what was published beside what we measured."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from bakeoff.errors import BakeoffError
from bakeoff.present.columns import Column, console, number, pipes, rich_table, text_of
from bakeoff.present.rows import RATES, FlowRow, Row, base_cc, choose_references, finished, finite, qdisc_order, rows
from bakeoff.references import Deviation, Reference, deviation

if TYPE_CHECKING:
    from bakeoff.results import Result

Format = Literal["terminal", "markdown", "csv", "json"]

_NOTES_SHOWN = 10


def render(
    results: Iterable[Result],
    *,
    format: Format = "terminal",  # noqa: A002 the word that the command line uses too
    reference: str | Sequence[Reference] | None = None,
    metric: str | None = None,
    width: int | None = None,
    colour: bool | None = None,
) -> str:
    """A table with one row per run, repetitions taken together (mean ± 95 % interval), one table per scenario.

    `reference`: None for what each suite published itself, a reference's name, or reference lines. `metric`: the
    rate that is shown, `delivery_rate` (as the suites define the steady state) or `goodput`; by default what the
    reference holds. `width` and `colour` are the terminal's; by default those of standard output, 100 columns if it
    has none. Columns are dropped until the table fits. `csv` and `json` hold every value in SI units, the unit in
    its name.

    Raises BakeoffError if there is nothing to show, for an unknown reference or metric, and for a seed that stands
    twice.
    """
    given = list(results)
    lines = choose_references(given, reference)
    table = rows(given, lines, metric)
    left_out = [_why(result) for result in given if result not in finished([result])]
    if not table:
        raise BakeoffError("no finished run to show" + "".join(f"\n  {why}" for why in left_out))
    distances = sorted(deviation(finished(given), lines), key=_qdisc_of)
    if format == "csv":
        return _csv(table)
    if format == "json":
        document = {
            "rows": [record(row) for row in table],
            "deviations": [_plain(d) for d in distances],
            "left_out": left_out,
        }
        return json.dumps(document, indent=2, allow_nan=False) + "\n"
    if format == "markdown":
        return _markdown(table, distances, left_out)
    if format == "terminal":
        return _terminal(table, distances, left_out, width, colour)
    raise BakeoffError(f"format: unknown '{format}'; expected terminal, markdown, csv or json")


def record(row: Row) -> dict[str, Any]:
    """A row as flat names and plain values: what CSV and JSON hold.

    `axis_…` is the point of the matrix; `flowN_…` the flows in the run's order; `_ci95` a half width of a 95 %
    interval; `reference_ln_spread` the standard deviation of the logarithms of a reference's seeds. Infinite and
    unknown values are null.
    """
    flat: dict[str, Any] = {
        "suite": row.suite,
        "scenario": row.scenario,
        "run": row.run,
        "engine": row.engine,
        "n": row.n,
        **{f"axis_{axis}": label for axis, label in row.axes.items()},
        "bottleneck_rate_bps": row.rate_bps,
        "reference": row.reference,
        "compared": row.metric,
    }
    for i, flow in enumerate(row.flows, start=1):
        of = f"flow{i}_"
        flat |= {f"{of}name": flow.name, f"{of}cc": flow.cc, f"{of}ecn": flow.ecn}
        for rate in RATES:
            share = flow.rates_bps[rate]
            flat |= {f"{of}{rate}_bps": share and share["mean"], f"{of}{rate}_ci95_bps": share and share["ci95"]}
        flat |= {
            f"{of}reference_bps": flow.reference and flow.reference.value,
            f"{of}reference_ln_spread": flow.reference and flow.reference.spread,
            f"{of}log_ratio": finite(flow.log_ratio),
            f"{of}srtt_mean_s": flow.srtt_mean_s,
            f"{of}srtt_p99_s": flow.srtt_p99_s,
            f"{of}retransmissions": flow.retransmissions,
            f"{of}mark_fraction": flow.mark_fraction,
        }
        if flow.unfinished is not None:
            flat |= {f"{of}fct_{name}_s": value for name, value in (flow.fct_s or {}).items()}
            flat[f"{of}unfinished"] = flow.unfinished
        flat |= {f"{of}video_{name}": value for name, value in (flow.video or {}).items()}
    return flat | {
        "jain": row.jain,
        "ratio": row.ratio,
        "utilisation": row.utilisation,
        "queue_delay_p50_s": row.queue_delay_p50_s,
        "queue_delay_p99_s": row.queue_delay_p99_s,
        "probe_rtt_mean_s": row.probe_rtt_mean_s,
        "marks": row.marks,
        "drops": row.drops,
        "notes": "; ".join(row.notes),
    }


def _columns(table: Sequence[Row]) -> list[Column]:
    """The columns of one scenario's rows; axes that never vary are left to the caption."""
    found = [
        Column(axis, [row.axes.get(axis, "") for row in table], 9, text=True)
        for axis in dict.fromkeys(axis for row in table for axis in row.axes)
        if len({row.axes.get(axis) for row in table}) > 1
    ]
    if len({row.engine for row in table}) > 1:
        found.append(Column("engine", [row.engine for row in table], 9, text=True))
    heads, named = _flow_heads(table)
    if not named:
        found.append(Column("flows", ["/".join(flow.name for flow in row.flows) for row in table], 8, text=True))
    if any(row.n > 1 for row in table):
        found.append(Column("n", [str(row.n) for row in table], 8))
    compared = any(flow.reference for row in table for flow in row.flows)
    for i, head in enumerate(heads):
        found.append(Column(f"{head}\nMbit/s", _flow_cells(table, i, _share), 9))
        if compared:
            found.append(Column("ref", _flow_cells(table, i, _reference), 7))
            found.append(Column("ln", _flow_cells(table, i, lambda flow, _: number(flow.log_ratio, "+.2f")), 7))
    found.append(Column("ratio", [number(row.ratio, ".2f" if (row.ratio or 0) < 10 else ".1f") for row in table], 6))
    found.append(Column("Jain", [number(row.jain, ".3f") for row in table], 4))
    found.append(Column("FCT ms\n50/95/99 %", [_completion(row) for row in table], 8))
    found.append(Column("video\nMbit/s", ["/".join(_video(row, "mean_rate_bps", 1e-6)) for row in table], 8))
    found.append(Column("stalls\ns", ["/".join(_video(row, "stalled_s", 1.0)) for row in table], 8))
    delays = [(row.queue_delay_p50_s, row.queue_delay_p99_s) for row in table]
    found.append(Column("queue ms\np50/p99", ["/".join(_milli(s) for s in pair) for pair in delays], 5))
    found.append(Column("RTT ms", ["/".join(_milli(flow.srtt_mean_s) for flow in row.flows) for row in table], 3))
    found.append(Column("marks", [number(row.marks, ".0f") for row in table], 2))
    found.append(Column("drops", [number(row.drops, ".0f") for row in table], 2))
    found.append(Column("util", [number(row.utilisation, ".2f") for row in table], 1))
    return [column for column in found if column.keep == 9 or any(column.cells)]


def _flow_heads(table: Sequence[Row]) -> tuple[list[str], bool]:
    """The flows' headings, and whether a reader can tell from headings and axes which flow is which."""
    heads, told = [], True
    for i in range(max(len(row.flows) for row in table)):
        names = {row.flows[i].name for row in table if i < len(row.flows)}
        heads.append(names.pop() if len(names) == 1 else f"flow {i + 1}")
        if names:
            told &= all(
                base_cc(row.flows[i].cc or "?") in " ".join(row.axes.values()) for row in table if i < len(row.flows)
            )
    return heads, told


def _flow_cells(table: Sequence[Row], i: int, cell: Callable[[FlowRow, Row], str]) -> list[str]:
    return [cell(row.flows[i], row) if i < len(row.flows) else "" for row in table]


def _share(flow: FlowRow, row: Row) -> str:
    share = flow.rate_bps(row.metric)
    if share is None:
        return "none"
    return _mbit(share["mean"]) + (f"±{_mbit(share['ci95'])}" if share["ci95"] is not None else "")


def _completion(row: Row) -> str:
    times = [flow.fct_s for flow in row.flows if flow.fct_s]
    return " ".join("/".join(f"{fct[name] * 1e3:.0f}" for name in ("p50", "p95", "p99")) for fct in times)


def _video(row: Row, name: str, scale: float) -> list[str]:
    values = [flow.video[name] for flow in row.flows if flow.video]
    return [number(None if value is None else value * scale, ".2f") for value in values]


def _reference(flow: FlowRow, _: Row) -> str:
    return _mbit(flow.reference.value if flow.reference else None)


def _captions(table: Sequence[Row]) -> list[str]:
    first = table[0]
    axes = dict.fromkeys(axis for row in table for axis in row.axes)
    always = [f"{axis} {first.axes[axis]}" for axis in axes if len({row.axes.get(axis) for row in table}) == 1]
    captions = [", ".join(["always " + ", ".join(always)] if always else [])]
    rate = "mean tcp_delivery_rate" if first.metric == RATES[0] else "goodput"
    other = {
        flow.name for row in table for flow in row.flows if not flow.rates_bps[row.metric] and flow.rate_bps(row.metric)
    }
    others = f" (goodput of {', '.join(sorted(other))})" if other else ""
    names = sorted({row.reference for row in table if row.reference})
    of = f"; ref: {', '.join(names)}; ln: ln(ours / ref)" if names else ""
    seeds = ", mean ± 95 % interval over n seeds" if any(row.n > 1 for row in table) else ""
    captions.append(f"Mbit/s: {rate} in the steady state{others}{seeds}{of}")
    return [caption for caption in captions if caption]


def _remarks(table: Sequence[Row], left_out: Sequence[str]) -> list[str]:
    found = [f"left out: {why}" for why in left_out] + [f"{row.run}: {note}" for row in table for note in row.notes]
    more = len(found) - _NOTES_SHOWN
    return found[:_NOTES_SHOWN] + ([f"and {more} more; format json has all"] if more > 0 else [])


def _scenarios(table: Sequence[Row]) -> Iterable[tuple[str, list[Row]]]:
    groups: dict[str, list[Row]] = {}
    for row in table:
        groups.setdefault(f"{row.suite}/{row.scenario}", []).append(row)
    return groups.items()


_DISTANCE_HEADS = ("scenario", "qdisc", "measure", "flows", "median", "p90", "max")


def _distance_cells(distance: Deviation) -> list[str]:
    numbers = (distance.median, distance.p90, distance.max)
    measure = distance.measure.removeprefix("steady_state.")
    return [
        distance.scenario,
        distance.qdisc,
        measure,
        str(distance.n),
        *(number(value, ".2f") for value in numbers),
    ]


def _terminal(
    table: Sequence[Row],
    distances: Sequence[Deviation],
    left_out: Sequence[str],
    width: int | None,
    colour: bool | None,
) -> str:
    drawing, out = console(width, colour)
    width = drawing.width
    boundless = drawing.options.update(width=100_000)
    for title, part in _scenarios(table):
        drawing.print(title, style="bold", markup=False)
        columns = _columns(part)
        drawn = rich_table(columns)
        while drawing.measure(drawn, options=boundless).maximum > width and any(column.keep < 9 for column in columns):
            weakest = min(column.keep for column in columns)
            columns = [column for column in columns if column.keep != weakest]
            drawn = rich_table(columns)
        drawing.print(drawn)
        for caption in _captions(part):
            drawing.print(caption, style="dim", markup=False)
        drawing.print()
    for name in dict.fromkeys(distance.reference for distance in distances):
        drawing.print(f"|ln(ours / {name})| over all flows", style="bold", markup=False)
        cells = [_distance_cells(distance) for distance in distances if distance.reference == name]
        drawing.print(
            rich_table([Column(h, [c[i] for c in cells], 9, text=i < 3) for i, h in enumerate(_DISTANCE_HEADS)])
        )
    for remark in _remarks(table, left_out):
        drawing.print(remark, style="yellow", markup=False)
    return text_of(out)


def _markdown(table: Sequence[Row], distances: Sequence[Deviation], left_out: Sequence[str]) -> str:
    parts = []
    for title, part in _scenarios(table):
        columns = _columns(part)
        cells = zip(*(column.cells for column in columns), strict=True)
        heads = [column.head.replace("\n", " ") for column in columns]
        parts.append(f"### {title}\n\n" + pipes(heads, [column.text for column in columns], cells))
        parts.append("\n\n".join(_captions(part)) + "\n")
    for name in dict.fromkeys(distance.reference for distance in distances):
        cells_of = [_distance_cells(distance) for distance in distances if distance.reference == name]
        parts.append(
            f"Distribution of \\|ln(ours / {name})\\| over all flows:\n\n"
            + pipes(_DISTANCE_HEADS, [i < 3 for i in range(7)], cells_of)
        )
    remarks = _remarks(table, left_out)
    if remarks:
        parts.append("".join(f"- {remark}\n" for remark in remarks))
    return "\n".join(parts)


def _csv(table: Sequence[Row]) -> str:
    records = [record(row) for row in table]
    out = io.StringIO()
    writer = csv.DictWriter(out, list(dict.fromkeys(name for one in records for name in one)), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return out.getvalue()


def _plain(distance: Deviation) -> dict[str, Any]:
    return {name: finite(value) if isinstance(value, float) else value for name, value in asdict(distance).items()}


def _qdisc_of(distance: Deviation) -> tuple[Any, ...]:
    return distance.reference, distance.measure, distance.scenario, qdisc_order(distance.qdisc)


def _why(result: Result) -> str:
    at, meta = result.resolved, result.meta
    reason = meta.get("error") or "no reason given"
    return f"{at['suite']}/{at['scenario']}/{at['run']}: {meta.get('status')}: {reason}"


def _mbit(bps: float | None) -> str:
    return number(None if bps is None else bps / 1e6, ".2f")


def _milli(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.1f}"
