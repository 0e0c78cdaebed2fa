"""Which columns people see of each kind of record, in which unit, and what goes first when there is no room."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from bakeoff.measure import Mean, partly
from bakeoff.scenario import python_cc
from bakeoff.scenario.cc_words import parse
from bakeoff.tables import groups, run_labels
from bakeoff.tables.cells import form_of, formatted, mbit, mean_text, rate, starred, with_interval
from bakeoff.tables.filters import lookup
from bakeoff.tables.records import interval_of, without_unit
from bakeoff.tables.rows import RATES
from bakeoff.text.columns import Column, clean, number

if TYPE_CHECKING:
    from bakeoff.results.summary import Distribution, Summary
    from bakeoff.tables.filters import Record, Value
    from bakeoff.tables.rows import FlowRow, Row

_LONG_NAME: Final = 20
MANY: Final = 4
"""More flows than these are shown in groups of equal ones."""

WHAT: Final = "what changed at its beginning"
_REACHED: Final = {"convergence_s": "converged", "meet_s": "met"}
"""By the name of a time that may never come the column that says how often it does."""
_COUNTS: Final = ("marks", "sce_marks", "drops", "retransmissions", "unfinished", "video_stalls")
"""Of the whole run: no averages."""


@dataclass(frozen=True)
class Spec:
    """One column of one or several numbers of a record."""

    head: str
    names: tuple[str, ...]
    keep: int
    between: str = "/"
    text: bool = False


_WHO: Final = Spec("from > to", ("from", "to"), 4, " > ", text=True)
SPECS: Final[Mapping[str, tuple[Spec, ...]]] = {
    "flows": (
        Spec("flow", ("flow",), 9, text=True),
        _WHO,
        Spec("cc", ("cc",), 6, text=True),
        Spec("Mbit/s", ("goodput_bps",), 9),
        Spec("share", ("share",), 8),
        Spec("RTT ms\nmean/p99", ("srtt_mean_s", "srtt_p99_s"), 7),
        Spec("one-way ms\nmean/p50/p99", ("delay_mean_s", "delay_p50_s", "delay_p99_s"), 8),
        Spec("jitter\nms", ("jitter_s",), 8),
        Spec("loss", ("loss",), 8),
        Spec("FCT ms\n50/95/99 %", ("fct_p50_s", "fct_p95_s", "fct_p99_s"), 8),
        Spec("video\nMbit/s", ("video_mean_rate_bps",), 8),
        Spec("startup\ns", ("video_startup_s",), 5),
        Spec("stalls", ("video_stalls",), 8),
        Spec("stalled\ns", ("video_stalled_s",), 7),
        Spec("marked", ("mark_fraction",), 3),
        Spec("retrans", ("retransmissions",), 2),
    ),
    "queues": (
        Spec("queue", ("queue",), 9, text=True),
        Spec("Mbit/s", ("rate_bps",), 9),
        Spec("util", ("utilisation",), 9),
        Spec("delay ms\nmean/p50/p99", ("delay_mean_s", "delay_p50_s", "delay_p99_s"), 9),
        Spec("L ms\nmean/p99", ("l_delay_mean_s", "l_delay_p99_s"), 9),
        Spec("C ms\nmean/p99", ("c_delay_mean_s", "c_delay_p99_s"), 9),
        Spec("CE\nmarks", ("marks",), 8),
        Spec("SCE\nmarks", ("sce_marks",), 8),
        Spec("drops", ("drops",), 8),
        Spec("data of", ("flows",), 3, text=True),
        Spec("qdisc", ("qdisc",), 2, text=True),
    ),
    "probes": (
        Spec("probe", ("probe",), 9, text=True),
        _WHO,
        Spec("RTT ms\nmean/p50/p99", ("rtt_mean_s", "rtt_p50_s", "rtt_p99_s"), 9),
        Spec("jitter\nms", ("jitter_s",), 9),
        Spec("loss", ("loss",), 9),
    ),
}


def columns(kind: str, table: Sequence[tuple[Row, Record]]) -> list[Column]:
    """The columns of records of one kind, of one scenario: first what tells the runs apart."""
    rows = [row for row, _ in table]
    if kind == "runs":
        return _runs(rows)
    records = [record for _, record in table]
    found = _apart(rows)
    if kind == "phases":
        return found + _phases(records)
    for spec in SPECS[kind]:
        cells = [_joined(spec, record, row) for row, record in table]
        cells = _readable(cells) if spec.names == ("cc",) else cells
        if any(cells) and not (spec.names == ("sce_marks",) and not any(cell.strip("0±") for cell in cells)):
            if not spec.text and spec.names[0] not in _COUNTS:
                cells = [starred(row, cell) for row, cell in zip(rows, cells, strict=True)]
            found.append(Column(spec.head, cells, spec.keep, text=spec.text))
    return found


def chosen(names: Sequence[str], records: Sequence[Record]) -> list[Column]:
    """The columns that were asked for, each with its unit for people and with its interval."""
    found = []
    for name in names:
        values = [lookup(record, name) for record in records]
        unit = form_of(name).unit
        head = clean(f"{without_unit(name)}\n{'' if unit == '%' else unit}".rstrip("\n"), keep="\n")
        text = any(isinstance(value, str) for value in values)
        cells = [_with_interval(name, value, record) for value, record in zip(values, records, strict=True)]
        found.append(Column(head, cells, text=text))
    return found


def _with_interval(name: str, value: Value, record: Record, most: float = inf) -> str:
    """One cell: a mean with its interval if the record has one, and where a pair never gets there how often."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        half = lookup(record, interval_of(name))
        return with_interval(name, value, half if isinstance(half, int | float) else None, most)
    count = record.get(_REACHED.get(name, ""))
    if value is None and isinstance(count, int) and isinstance(n := record.get("n"), int):
        return "never" if not count else f"never in {n - count} of {n}"
    return formatted(name, value)


def _joined(spec: Spec, record: Record, row: Row) -> str:
    values = [record.get(name) for name in spec.names]
    if all(value is None for value in values):
        return ""
    if spec.names == ("cc",) and record.get("transport") == "udp":
        return "UDP"
    if spec.names == ("flows",) and str(values[0]).count(", ") >= MANY:
        return f"{str(values[0]).count(', ') + 1} flows"
    if len(spec.names) == 1 and not spec.text:
        most = row.capacity_bps(str(record.get("flow"))) if spec.names == ("goodput_bps",) else inf
        return _with_interval(spec.names[0], values[0], record, most)
    return _together(spec.names, values, spec.between, "" if spec.text else "-")


def _together(names: Sequence[str], values: Sequence[Value], between: str = "/", nothing: str = "-") -> str:
    """Several numbers in one cell, and of how many repetitions they are if not of all."""
    few = next((note for value in values if (note := partly(value))), "")
    plain = [float(value) if isinstance(value, Mean) else value for value in values]
    return between.join(formatted(name, value) or nothing for name, value in zip(names, plain, strict=True)) + few


def _apart(rows: Sequence[Row]) -> list[Column]:
    """What tells runs of one scenario apart: axes that vary, else the names of the runs; engines, windows."""
    found = [
        Column(clean(axis), _readable([clean(row.axes.get(axis, "")) for row in rows]), 9, text=True)
        for axis in dict.fromkeys(axis for row in rows for axis in row.axes)
        if len({row.axes.get(axis) for row in rows}) > 1
    ]
    if not found and len({row.run for row in rows}) > 1:
        found.append(Column("run", [clean(row.run) for row in rows], 9, text=True))
    if len({row.engine for row in rows}) > 1:
        found.append(Column("engine", [clean(row.engine) for row in rows], 9, text=True))
    windows = [row.summaries[0].window_s for row in rows]
    if len(set(windows)) > 1:
        found.append(Column("window\ns", [f"{start:g}-{stop:g}" for start, stop in windows], 8, text=True))
    return found


def _readable(labels: Sequence[str]) -> list[str]:
    """Labels in which a class in a file of Python is called by its name alone, if no two classes have one name."""

    def word(text: str) -> str:
        return python_cc.short(text) if python_cc.is_python(text) else text

    short = {label: " ".join(map(word, label.split(" "))) for label in labels}
    return [short[label] if len(set(short.values())) == len(short) else label for label in labels]


def _runs(table: Sequence[Row]) -> list[Column]:
    found = _apart(table)
    several = max(len(row.flows) for row in table)
    if several > MANY:
        found += groups.columns(table)
    else:
        found += _each(table)
    found += _sharing(table)
    found.append(Column("FCT ms\n50/95/99 %", [_completion(row) for row in table], 8))
    found.append(Column("video\nMbit/s", ["/".join(_video(row, "mean_rate_bps")) for row in table], 8))
    found.append(Column("stalls\ns", ["/".join(_video(row, "stalled_s")) for row in table], 8))
    found += _calls(table)
    found += _delays(table)
    if several <= MANY:
        rtts = [_together(["srtt_s"] * len(row.flows), [flow.srtt_mean_s for flow in row.flows]) for row in table]
        rtts = ["" if set(cell) <= {"-", "/"} else cell for cell in rtts]
        found.append(Column("RTT ms", [starred(*pair) for pair in zip(table, rtts, strict=True)], 4))
    found += _probes(table)
    found += _counts(table)
    return [column for column in found if column.keep == 9 or any(column.cells)]


def _sharing(table: Sequence[Row]) -> list[Column]:
    """Ratio and Jain's index of the goodputs, for each queue that long flows share."""
    queues = list(dict.fromkeys(queue for row in table for queue in row.summaries[0].shared))
    alone = all(len(row.summaries[0].shared) < 2 for row in table)
    found = []
    for queue in [None] if alone else queues[:MANY]:

        def mean(row: Row, name: str, queue: str | None = queue) -> Mean | None:
            if queue is None:
                return Mean.over(getattr(summary, name) for summary in row.summaries)
            return Mean.over(getattr(summary.shared.get(queue), name, None) for summary in row.summaries)

        at = "" if queue is None else f"{clean(queue)}\n"
        ratios = [mean(row, "ratio") for row in table]
        found.append(
            Column(f"{at}ratio", [mean_text(ratio, ".2f" if (ratio or 0) < 10 else ".1f") for ratio in ratios], 6)
        )
        found.append(Column(f"{at}Jain", [mean_text(mean(row, "jain"), ".3f") for row in table], 5))
    return found


def _each(table: Sequence[Row]) -> list[Column]:
    """A column per flow, with the reference beside it."""
    found = []
    heads, named = _flow_heads(table)
    if not named:
        cells = [clean("/".join(flow.name for flow in row.flows)) for row in table]
        found.append(Column("flows", cells, 8, text=True))
    if any(row.n > 1 for row in table):
        found.append(Column("n", [str(row.n) for row in table], 8))
    compared = any(flow.reference for row in table for flow in row.flows)
    for i, head in enumerate(heads):
        rate = "" if all(row.metric == RATES[0] for row in table) else "delivery\nrate "
        found.append(Column(f"{head}\n{rate}Mbit/s", _flow_cells(table, i, _share), 9))
        if compared:
            found.append(Column("ref", _flow_cells(table, i, _reference), 7))
            found.append(Column("ln", _flow_cells(table, i, lambda flow, _: number(flow.log_ratio, "+.2f")), 7))
    return found


def _calls(table: Sequence[Row]) -> list[Column]:
    """What each UDP flow met, by its name."""
    names = dict.fromkeys(
        name
        for row in table
        for name, flow in row.summaries[0].flows.items()
        if flow.delay_s is not None or flow.loss is not None
    )
    found = []
    for name in list(names)[:MANY]:

        def delay(summary: Summary, name: str = name) -> Distribution | None:
            return summary.flows[name].delay_s if name in summary.flows else None

        def loss(summary: Summary, name: str = name) -> float | None:
            return summary.flows[name].loss if name in summary.flows else None

        found.append(Column(f"{clean(name)} ms\np50/p99", [_quantiles(row, delay) for row in table], 8))
        found.append(Column("loss", [formatted("loss", _mean(row, loss)) for row in table], 7))
    return found


def _counts(table: Sequence[Row]) -> list[Column]:
    """Marks, drops and use of the queues with a rate that data passes, in the order of the columns of their delays."""
    names = _passed(table)
    if not names:
        marks, drops = ([mean_text(getattr(row, what), ".0f") for row in table] for what in ("marks", "drops"))
        used = [starred(row, formatted("utilisation", row.utilisation)) for row in table]
        sce = [_mean(row, lambda summary: sum(queue.sce_marks for queue in summary.queues.values())) for row in table]
        sces = [mean_text(count, ".0f") for count in sce]
    else:

        def each(what: str) -> list[str]:
            joined = ["/".join(formatted(what, _at(row, name, what)) or "-" for name in names) for row in table]
            return ["" if set(cell) <= {"-", "/"} else cell for cell in joined]

        marks, sces, drops = (each(what) for what in ("marks", "sce_marks", "drops"))
        used = [starred(row, cell) for row, cell in zip(table, each("utilisation"), strict=True)]
    found = [
        Column("marks", marks, 2),
        Column("SCE\nmarks", sces, 2),
        Column("drops", drops, 2),
        Column("util", used, 1),
    ]
    return [column for column in found if not column.head.startswith("SCE") or set("".join(sces)) - set("0/-")]


def _passed(table: Sequence[Row]) -> list[str]:
    """The queues with a rate that have to be named: those that data passes, but not the bottleneck if it is alone."""
    names = dict.fromkeys(rated.queue for row in table for rated in run_labels.passed(row.summaries[0]))
    alone = len(names) < 2 and any(row.flows for row in table)
    return [] if alone else list(names)[: 2 * MANY]


def _at(row: Row, name: str, what: str) -> float | None:
    def take(summary: Summary) -> float | None:
        rated = next((one for one in summary.rated if one.queue == name), None)
        if what == "utilisation":
            return rated.utilisation if rated else None
        return getattr(summary.queues[name], what) if rated and name in summary.queues else None

    return _mean(row, take)


def _delays(table: Sequence[Row]) -> list[Column]:
    """The delay in each queue with a rate that data passes: the name stands above if there are several."""
    names = _passed(table)
    if not names:
        delays = [(row.queue_delay_p50_s, row.queue_delay_p99_s) for row in table]
        cells = [_together(("p50_s", "p99_s"), pair) if pair != (None, None) else "" for pair in delays]
        return [Column("queue ms\np50/p99", [starred(*pair) for pair in zip(table, cells, strict=True)], 5)]
    found = []
    for name in names:

        def delay(summary: Summary, name: str = name) -> Distribution | None:
            return summary.queues[name].delay_s if name in summary.queues else None

        found.append(Column(f"{clean(name)} ms\np50/p99", [_quantiles(row, delay) for row in table], 5))
    return found


def _probes(table: Sequence[Row]) -> list[Column]:
    names = dict.fromkeys(name for row in table for name in row.summaries[0].probes)
    found = []
    for name in list(names)[:MANY]:

        def rtt(summary: Summary, name: str = name) -> Distribution | None:
            return summary.probes[name].rtt_s if name in summary.probes else None

        def loss(summary: Summary, name: str = name) -> float | None:
            return summary.probes[name].loss if name in summary.probes else None

        found.append(Column(f"{clean(name)} ms\np50/p99", [_quantiles(row, rtt) for row in table], 3))
        losses = [_mean(row, loss) for row in table]
        if any(losses):
            found.append(Column("lost", [formatted("loss", loss) for loss in losses], 3))
    return found


def _mean(row: Row, take: Callable[[Summary], float | None]) -> Mean | None:
    """Over the repetitions that have it."""
    return Mean.over(take(summary) for summary in row.summaries)


def _quantiles(row: Row, take: Callable[[Summary], Distribution | None]) -> str:
    """Median and 99th percentile in ms, means over the repetitions."""
    found = [take(summary) for summary in row.summaries]
    if not any(found):
        return ""
    both = [Mean.over(getattr(one, name, None) for one in found) for name in ("p50", "p99")]
    return starred(row, _together(("p50_s", "p99_s"), both))


def _phases(records: Sequence[Record]) -> list[Column]:
    found = [
        Column("from s", [formatted("from_s", record["from_s"]) for record in records]),
        Column("to s", [formatted("to_s", record["to_s"]) for record in records]),
    ]
    flows = _named(records, "flow")
    for name, of in flows.items() if len(flows) <= MANY else ():
        found.append(Column(f"{_head(name)}\nMbit/s", _cells(records, of, ("goodput_bps",))))
        found.append(Column("RTT ms", _cells(records, of, ("srtt_mean_s",)), 6))
        found.append(Column("one-way ms\np50/p99", _cells(records, of, ("delay_p50_s", "delay_p99_s")), 8))
        found.append(Column("loss", _cells(records, of, ("loss",)), 7))
    if len(flows) > MANY:
        sums = [
            sum(float(record.get(f"{of[i]}goodput_bps") or 0.0) for of in flows.values() if i in of)
            for i, record in enumerate(records)
        ]
        found.append(Column(f"{len(flows)} flows\nMbit/s", [mbit(total) for total in sums]))
    for name, of in _named(records, "queue").items():
        found.append(Column(f"{clean(name)}\nrate Mbit/s", _cells(records, of, ("rate_bps",)), 8))
        found.append(Column("util", _cells(records, of, ("utilisation",)), 5))
        found.append(Column("delay ms\nmean/p99", _cells(records, of, ("delay_mean_s", "delay_p99_s")), 7))
        found.append(Column("marks", _cells(records, of, ("marks",)), 3))
        found.append(Column("drops", _cells(records, of, ("drops",)), 3))
    for name, of in _named(records, "probe").items():
        found.append(Column(f"{clean(name)} ms\np50/p99", _cells(records, of, ("rtt_p50_s", "rtt_p99_s")), 4))
    found.append(Column(WHAT, [formatted("", record["changes"]) for record in records], text=True))
    return [column for column in found if any(column.cells)]


def _named(records: Sequence[Record], what: str) -> dict[str, dict[int, str]]:
    """By name of a flow, queue or probe: under which prefix each record has it."""
    found: dict[str, dict[int, str]] = {}
    for i, record in enumerate(records):
        for key, value in record.items():
            if re.fullmatch(rf"{what}\d+_name", key):
                found.setdefault(str(value), {})[i] = key.removesuffix("name")
    return found


def _cells(records: Sequence[Record], of: Mapping[int, str], names: Sequence[str]) -> list[str]:
    cells = []
    for i, record in enumerate(records):
        values = [record.get(f"{of[i]}{name}") if i in of else None for name in names]
        known = any(value is not None for value in values)
        cells.append(_together(names, values) if known else "")
    return cells


def _flow_heads(table: Sequence[Row]) -> tuple[list[str], bool]:
    """The flows' headings, and whether a reader can tell from headings and axes which flow is which."""
    heads, complete = [], True
    for i in range(max(len(row.flows) for row in table)):
        names = {row.flows[i].name for row in table if i < len(row.flows)}
        heads.append(_head(names.pop()) if len(names) == 1 else f"flow {i + 1}")
        if names:
            complete &= all(
                parse(row.flows[i].cc or "?").name in " ".join(row.axes.values()) for row in table if i < len(row.flows)
            )
    return heads, complete


def _head(name: str) -> str:
    """A flow's name above a column; both ends of a capture's flow have a line each."""
    return clean(name).replace(">", ">\n", 1) if len(name) > _LONG_NAME else clean(name)


def _flow_cells(table: Sequence[Row], i: int, cell: Callable[[FlowRow, Row], str]) -> list[str]:
    return [cell(row.flows[i], row) if i < len(row.flows) else "" for row in table]


def _share(flow: FlowRow, row: Row) -> str:
    return (
        starred(row, rate(flow.rate_bps(row.metric) or flow.rates_bps["goodput"], row.n, row.capacity_bps(flow.name)))
        or "-"
    )


def _completion(row: Row) -> str:
    names = [f"fct_{name}_s" for name in ("p50", "p95", "p99")]
    times = [flow.fct_s for flow in row.flows if flow.fct_s]
    return " ".join(_together(names, [fct[name] for name in ("p50", "p95", "p99")]) for fct in times)


def _video(row: Row, name: str) -> list[str]:
    return [formatted(f"video_{name}", flow.video[name]) for flow in row.flows if flow.video]


def _reference(flow: FlowRow, _: Row) -> str:
    return mbit(flow.reference.value if flow.reference else None)


def rates_shown(table: Sequence[Row]) -> str:
    """What the column Mbit/s is, in words."""
    first = table[0]
    flows = [flow for row in table for flow in row.flows]
    if first.metric == RATES[0] or not any(flow.rates_bps[first.metric] for flow in flows):
        return f"{RATES[0]} in the steady state"
    other = sorted({clean(flow.name) for flow in flows if not flow.rates_bps[first.metric] and flow.rate_bps(RATES[0])})
    more = f" and {len(other) - MANY} more" if len(other) > MANY else ""
    also = f" (goodput of {', '.join(other[:MANY])}{more})" if other else ""
    return f"mean tcp_delivery_rate{also} in the steady state; ratio, Jain: of goodputs"


def counts_shown(table: Sequence[Row]) -> str:
    """What the columns of marks and drops are, in words."""
    names = _passed(table)
    if not names:
        return "marks, drops: of the bottleneck, over the whole run"
    location = clean("/".join(names))
    first = next((row.flows[0].name for row in table if row.jain), None)
    shared = f"; ratio, Jain: of the flows that share the bottleneck of {clean(first)}" if first else ""
    return f"marks, drops: of {location}, over the whole run; util: of {location}{shared}"
