"""One row per run: what a table shows, before it has a form."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf, isinf
from typing import TYPE_CHECKING, Any, Final

from bakeoff import tc
from bakeoff.errors import TableError
from bakeoff.measure import Interval, Mean, interval, summary_of
from bakeoff.measure.functions import CATALOGUE
from bakeoff.measure.summarise import bottleneck_queues
from bakeoff.references import Expected, Reference, expected, load, log_ratio, measured, named
from bakeoff.tables.label_order import Key, by_value
from bakeoff.tables.run_labels import engine_of, failures

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.results.summary import Summary
    from bakeoff.scenario.run import Run

RATES: Final = ("goodput", "delivery_rate")
"""What the rate of a flow can be; the first is shown unless a reference holds the other."""

_RECORDINGS = ("capture", "irtt", "iperf3", "flent")
"""Engines of runs that were read from files: their network and the state of their senders are unknown."""
_UNTOLD = re.compile(
    r"(flows\..*\.)?(bottleneck|steady_state\.delivery_rate_bps|(jain|ratio)(_delivery_rate)?|utilisation)\b[^.]*: "
)


@dataclass(frozen=True)
class FlowRow:
    """One flow of a row; numbers are means over the repetitions, None if no repetition has them."""

    name: str
    cc: str | None
    ecn: str | None
    transport: str
    rates_bps: Mapping[str, Interval | None]
    """By metric: `delivery_rate`, `goodput`."""
    srtt_mean_s: Mean | None
    srtt_p99_s: Mean | None
    retransmissions: Mean | None
    mark_fraction: Mean | None
    fct_s: Mapping[str, Mean | None] | None
    """Of a short flow: completion times, `p50`, `p95`, `p99` and `geometric_mean`."""
    unfinished: Mean | None
    """Of a short flow: objects that began in the window and had not ended with the run."""
    video: Mapping[str, Mean | None] | None
    """Of a video: `mean_rate_bps`, `startup_s`, `stalled_s`."""
    reference: Expected | None
    """Of the row's `metric`, in bit/s."""
    log_ratio: float | None
    """ln(ours / reference) of the row's `metric`; -inf if ours is 0."""

    def rate_bps(self, metric: str) -> Interval | None:
        """`metric`, or the goodput of a flow that has no delivery rate: UDP, and many connections under one name.

        None if nothing arrived.
        """
        goodput = self.rates_bps["goodput"]
        return self.rates_bps[metric] or (goodput if goodput and goodput["mean"] > 0 else None)


@dataclass(frozen=True, eq=False)
class Row:
    """A run, its repetitions taken together."""

    suite: str
    scenario: str
    run: str
    engine: str
    axes: Mapping[str, str]
    """The point of the matrix: axis name to label."""
    n: int
    """Number of repetitions."""
    order: int | None
    """Its place in the order of the matrix, None if the results do not say it."""
    metric: str
    """The rate that is compared: `delivery_rate` or `goodput`."""
    reference: str | None
    """Name of the reference that `flows[].reference` comes from."""
    flows: tuple[FlowRow, ...]
    rate_bps: float | None
    """Of the bottleneck."""
    jain: Mean | None
    """Of the goodputs of the long flows that share a queue; None if several are shared (see `summaries`)."""
    ratio: Mean | None
    """Likewise their ratio."""
    utilisation: Mean | None
    queue_delay_p50_s: Mean | None
    queue_delay_p99_s: Mean | None
    queue_delay_of: str | None
    """Where these come from: `Queue.delay_of`."""
    probe_rtt_mean_s: Mean | None
    marks: Mean | None
    drops: Mean | None
    notes: tuple[str, ...]
    """What is wrong or missing, for people."""
    document: Run
    """The resolved run of the first repetition."""
    summaries: tuple[Summary, ...]
    """The measures of each repetition."""

    def capacity_bps(self, flow: str) -> float:
        """The rate of the flow's bottleneck, which no rate of the flow can exceed; infinite if none is known."""
        return capacity_bps(self.summaries, flow)

    @cached_property
    def changes(self) -> list[str]:
        """What changes inside the window, so that numbers of the window average over it."""
        return list(dict.fromkeys(change for summary in self.summaries for change in summary.changes))


def capacity_bps(summaries: Iterable[Summary], flow: str) -> float:
    """The highest rate of the flow's bottleneck in these repetitions; infinite if none is known."""
    rates = [
        rated.rate_bps
        for summary in summaries
        for rated in summary.rated
        if flow in summary.flows and rated.queue == summary.flows[flow].bottleneck
    ]
    return max(rates, default=inf)


def finished(results: Iterable[Result]) -> list[Result]:
    """The results that hold a complete run."""
    return [result for result in results if result.ok]


def choose_references(results: Iterable[Result], wanted: str | Sequence[Reference] | None) -> list[Reference]:
    """The reference lines to compare with.

    None means what each suite itself published (the reference named like the suite), a name or CSV file that one;
    lines are taken as they are. Raises BakeoffError if a named reference does not exist.
    """
    if wanted is not None and not isinstance(wanted, str):
        return list(wanted)
    if wanted is None:
        return own_references({result.run.suite for result in results})
    chosen = named(wanted)
    if not chosen:
        names = ", ".join(dict.fromkeys(line.reference for line in load())) or "none"
        raise TableError(f"reference: unknown '{wanted}'; expected one of: {names}")
    return chosen


def own_references(suites: Collection[str]) -> list[Reference]:
    """What the suites themselves published: the references that are named like them."""
    return [line for line in load() if line.reference in suites and line.reference == line.suite]


def rows(results: Iterable[Result], references: Sequence[Reference] = (), metric: str | None = None) -> list[Row]:
    """The rows of finished results, in order of rate, qdisc (as l4s-tests has them), round-trip times and other axes.

    Runs that differ only in their seed become one row. `metric` (`delivery_rate` or `goodput`) is by default the one
    that the references hold, else `goodput`. Raises BakeoffError for an unknown metric and for a seed that
    stands twice.
    """
    if metric is None:
        held = {line.measure for line in references}
        metric = next((rate for rate in RATES if rate in held), RATES[0])
    if metric not in RATES:
        raise TableError(f"metric: unknown '{metric}'; expected {' or '.join(RATES)}")
    groups: dict[tuple[str, str, str, str], list[Result]] = {}
    for result in finished(results):
        at = result.run
        key = (at.suite, at.scenario, at.run, engine_of(result))
        groups.setdefault(key, []).append(result)
    known = expected(line for line in references if line.measure == metric)
    names = list(dict.fromkeys(line.reference for line in references))
    held_by = {name: {key[1:3] for key in known if key[0] == name} for name in names}
    made = [_row(key, members, known, held_by, metric) for key, members in groups.items()]
    return sorted(made, key=_suites_order)


def qdisc_order(label: str) -> tuple[int, Key]:
    """A sort key for qdisc labels, in the suites' order."""
    kind = tc.kinds().get(re.split(r"[ (]", label, maxsplit=1)[0])
    order = kind.order if kind is not None else None
    return (len(tc.kinds()) if order is None else order), by_value(label)


def _suites_order(row: Row) -> tuple[Any, ...]:
    rtts = [by_value(value) for axis, value in row.axes.items() if axis.startswith("rtt")]
    rest = [by_value(value) for axis, value in row.axes.items() if axis != "qdisc" and not axis.startswith("rtt")]
    return (
        row.suite,
        by_value(row.scenario),
        row.rate_bps or 0.0,
        qdisc_order(row.axes.get("qdisc", "")),
        rtts,
        rest,
        by_value(row.run),
        row.engine,
    )


def _row(
    key: tuple[str, str, str, str],
    members: Sequence[Result],
    known: Mapping[tuple[str, str, str, str, str], Expected],
    held_by: Mapping[str, set[tuple[str, str]]],
    metric: str,
) -> Row:
    suite, scenario, run, engine = key
    seeds: dict[int, Result] = {}
    for member in members:
        twin = seeds.setdefault(member.run.seed, member)
        if twin is not member:
            seed = f"{suite}/{scenario}/{run}: seed {member.run.seed}"
            raise TableError(f"duplicate {seed}: {twin.path}, {member.path}; expected one of them")
        if {flow.name for flow in member.run.flows} != {flow.name for flow in members[0].run.flows}:
            raise TableError(f"{member.path}: flows differ from {members[0].path}, another seed of the same run")
    summaries = [summary_of(member) for member in members]
    first = members[0].run
    reference = next((name for name, runs in held_by.items() if (scenario, run) in runs), None)
    flows = []
    for flow in first.flows:
        of = known.get((reference or "", scenario, run, flow.name, metric))
        flows.append(_flow_row(flow.name, summaries, of, metric))
    queues = [bottleneck_queues(summary) for summary in summaries]
    slowest = [
        max(((q.delay_s, q.delay_of) for q in part if q.delay_s), key=lambda at: at[0].p99, default=None)
        for part in queues
    ]
    probes = [next((p.rtt_s for p in summary.probes.values() if p.rtt_s), None) for summary in summaries]
    rates = [summary.bottleneck.rate_bps for summary in summaries if summary.bottleneck]
    return Row(
        suite=suite,
        scenario=scenario,
        run=run,
        engine=engine,
        axes=first.point,
        n=len(members),
        order=min((member.record.order for member in members if member.record.order is not None), default=None),
        metric=metric,
        reference=reference,
        flows=tuple(flows),
        rate_bps=rates[0] if rates else None,
        jain=Mean.over(summary.jain for summary in summaries),
        ratio=Mean.over(summary.ratio for summary in summaries),
        utilisation=Mean.over(summary.utilisation for summary in summaries),
        queue_delay_p50_s=Mean.over(at[0].p50 if at else None for at in slowest),
        queue_delay_p99_s=Mean.over(at[0].p99 if at else None for at in slowest),
        queue_delay_of=", ".join(dict.fromkeys(str(at[1]) for at in slowest if at)) or None,
        probe_rtt_mean_s=Mean.over(d.mean if d else None for d in probes),
        marks=Mean.over(sum(q.marks for q in part) if part else None for part in queues),
        drops=Mean.over(sum(q.drops for q in part) if part else None for part in queues),
        notes=tuple(dict.fromkeys(note for summary in summaries for note in notes(summary, engine))),
        document=first,
        summaries=tuple(summaries),
    )


def notes(summary: Summary, engine: str) -> list[str]:
    """What is wrong or missing in a run; what a recording of another program never tells is not."""
    missing = summary.missing
    if engine in _RECORDINGS:
        missing = [note for note in missing if not _UNTOLD.match(note)]
    return [*failures(summary), *missing]


def _flow_row(name: str, summaries: Sequence[Summary], of: Expected | None, metric: str) -> FlowRow:
    parts = [summary.flows[name] for summary in summaries]
    rates: dict[str, Interval | None] = {}
    for rate in RATES:
        values = [v for part in parts if (v := CATALOGUE[rate].read(part)) is not None]
        rates[rate] = interval(values) if values else None
    ours = measured(summaries, name, metric)
    return FlowRow(
        name=name,
        cc=parts[0].cc,
        ecn=parts[0].ecn,
        transport=parts[0].transport,
        rates_bps=rates,
        srtt_mean_s=Mean.over(part.srtt_s.mean if part.srtt_s else None for part in parts),
        srtt_p99_s=Mean.over(part.srtt_s.p99 if part.srtt_s else None for part in parts),
        retransmissions=Mean.over(part.retransmissions for part in parts),
        mark_fraction=Mean.over(part.mark_fraction for part in parts),
        fct_s=_means([part.fct.fct_s if part.fct else None for part in parts], ("geometric_mean", "p50", "p95", "p99")),
        unfinished=Mean.over(part.fct.begun - part.fct.ended if part.fct else None for part in parts),
        video=_means([part.video for part in parts], ("mean_rate_bps", "startup_s", "stalled_s")),
        reference=of,
        log_ratio=log_ratio(ours, of.value) if of and ours is not None else None,
    )


def _means(parts: Sequence[object | None], names: Sequence[str]) -> dict[str, Mean | None] | None:
    """Each of the numbers over the repetitions; None if no repetition has any."""
    if not any(parts):
        return None
    return {name: Mean.over(getattr(part, name, None) for part in parts) for name in names}


def finite(value: float | None) -> float | None:
    """The value as JSON and CSV can hold it: None for an infinite one."""
    return None if value is None or isinf(value) else value
