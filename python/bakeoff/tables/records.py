"""Tables as flat records: a name with its unit, and a plain value in SI units. docs/tables.md says what each is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bakeoff.errors import MeasureError, TableError
from bakeoff.measure import Mean, interval
from bakeoff.measure.catalogue import Of
from bakeoff.measure.delays import base_rtt
from bakeoff.measure.functions import CATALOGUE
from bakeoff.measure.sharing import queue_of
from bakeoff.results.series_units import SUFFIXES, unit_in
from bakeoff.scenario.run import Short
from bakeoff.tables.rows import RATES, finite

if TYPE_CHECKING:
    from bakeoff.results.summary import Flow, Phase, Queue, RatedQueue, Summary
    from bakeoff.tables.filters import Value
    from bakeoff.tables.rows import Row

    Record = dict[str, Value]

KINDS: Final = ("runs", "flows", "queues", "probes", "phases")


def records(table: Sequence[Row], kind: str) -> list[tuple[Row, Record]]:
    """The records of a kind with the rows that they belong to.

    `runs` has one per run, `flows`, `queues` and `probes` one each of these, `phases` one per part of a window between
    changes. Numbers are means over the repetitions, and `…_ci95…` half widths of their 95 % intervals, where there are
    several. A mean over fewer repetitions than there are says over how many by a column `…_n`. BakeoffError for an
    unknown kind.
    """
    made: dict[str, Callable[[Row], Iterable[Record]]] = {
        "runs": lambda row: [run(row)],
        "flows": _flows,
        "queues": _queues,
        "probes": _probes,
        "phases": _phases,
    }
    if kind not in made:
        raise TableError(f"rows: unknown '{kind}'; expected one of {', '.join(KINDS)}")
    return [(row, _counted(record)) for row in table for record in made[kind](row)]


def _counted(record: Record) -> Record:
    """The record with a column `…_n` behind each mean that some repetitions have no number for."""
    made: Record = {}
    for name, value in record.items():
        made[name] = value
        if isinstance(value, Mean) and value.n < value.of:
            made[f"{without_unit(name)}_n"] = value.n
    return made


def run(row: Row) -> Record:
    """A run as flat names and plain values.

    `axis_…` is the point of the matrix; `flowN_…`, `queueN_…`, `probeN_…` the flows, the queues with a rate that data
    passes, and the probes, in the run's order; `reference_ln_spread` the standard deviation of the logarithms of a
    reference's seeds. Infinite and unknown values are null.
    """
    flat: Record = {
        **_of(row),
        "bottleneck_rate_bps": row.rate_bps,
        "reference": row.reference,
        "compared": row.metric,
    }
    for i, flow in enumerate(row.flows, start=1):
        of = f"flow{i}_"
        parts = [summary.flows[flow.name] for summary in row.summaries]
        flat |= {f"{of}name": flow.name, f"{of}cc": flow.cc, f"{of}ecn": flow.ecn}
        for rate in RATES:
            found = flow.rates_bps[rate]
            flat |= {f"{of}{rate}_bps": found and found["mean"], f"{of}{rate}_ci95_bps": found and found["ci95"]}
        flat |= {
            f"{of}reference_bps": flow.reference.value if flow.reference else None,
            f"{of}reference_ln_spread": flow.reference.spread if flow.reference else None,
            f"{of}log_ratio": finite(flow.log_ratio),
        }
        flat |= _means(parts, of, _FLOW_OF_RUN)
        if parts[0].spike is not None:
            flat |= _numbers(parts, of, _OVER_TIME)
        if parts[0].transport == "udp":
            flat |= _numbers(parts, of, _DATAGRAMS)
        if any(part.fct for part in parts):
            flat |= _means(parts, of, _COMPLETION)
        if any(part.video for part in parts):
            flat |= _means(parts, of, _VIDEO)
    several = len(row.summaries[0].shared) > 1
    for i, (name, queues) in enumerate(_rated(row, with_data=True), start=1):
        flat |= {f"queue{i}_name": name} | _numbers(queues, f"queue{i}_", _QUEUE)
        if several and name in row.summaries[0].shared:
            flat |= _means([summary.shared.get(name) for summary in row.summaries], f"queue{i}_", _SHARING)
    for i, name in enumerate(row.summaries[0].probes, start=1):
        probes = [summary.probes[name] for summary in row.summaries]
        flat |= {f"probe{i}_name": name} | _numbers(probes, f"probe{i}_", _PROBE)
    sce = [sum(queue.sce_marks for queue in summary.queues.values()) for summary in row.summaries]
    return flat | {
        **_means(row.summaries, "", _SHARING),
        **_pair(row),
        "utilisation": row.utilisation,
        "queue_delay_p50_s": row.queue_delay_p50_s,
        "queue_delay_p99_s": row.queue_delay_p99_s,
        "queue_delay_of": row.queue_delay_of,
        "probe_rtt_mean_s": row.probe_rtt_mean_s,
        "marks": row.marks,
        "sce_marks": sum(sce) / len(sce),
        "drops": row.drops,
        "changes": "; ".join(row.changes),
        "notes": "; ".join(row.notes),
    }


def _pair(row: Row) -> Record:
    """How two long flows come to share: means over the repetitions, and none if they do not in one of them."""
    pairs = [summary.pair for summary in row.summaries if summary.pair]
    if not pairs:
        return {}
    converged = [pair.convergence_s for pair in pairs if pair.convergence_s is not None]
    met = [pair.meet_s for pair in pairs if pair.meet_s is not None]
    return {
        "convergence_s": sum(converged) / len(pairs) if len(converged) == len(pairs) else None,
        "converged": len(converged),
        "meet_s": sum(met) / len(pairs) if len(met) == len(pairs) else None,
        "met": len(met),
    }


def _of(row: Row) -> Record:
    start, stop = row.summaries[0].window_s
    return {
        "suite": row.suite,
        "scenario": row.scenario,
        "run": row.run,
        "engine": row.engine,
        "n": row.n,
        **{f"axis_{axis}": label for axis, label in row.axes.items()},
        "window_from_s": start,
        "window_to_s": stop,
    }


Take = Callable[[Any], float | None]


def _takes(of: Of) -> dict[str, Take]:
    """How each column of a kind of object is read from its record in summary.json."""
    return {each.column: each.read for each in CATALOGUE.of(of) if each.tabled}


def _named(*names: str) -> dict[str, Take]:
    return {CATALOGUE[name].column: CATALOGUE[name].read for name in names}


_FLOW: Final = _takes("flow")
_QUEUE: Final = _takes("queue")
_PROBE: Final = _takes("probe")
_OVER_TIME: Final = _named("starvation", "oscillations", "spike_height", "spike_duration")
_DATAGRAMS: Final = _named("udp_delay_mean", "udp_delay_p50", "udp_delay_p99", "udp_jitter", "udp_loss")
_FLOW_OF_RUN: Final = _named("srtt_mean", "srtt_p99", "retransmissions", "mark_fraction")
_COMPLETION: Final = _named("fct_geometric_mean", "fct_p50", "fct_p95", "fct_p99", "unfinished")
_VIDEO: Final = _named("video_rate", "startup", "stalled")
_SHARING: Final = _named("jain", "ratio", "jain_delivery_rate", "ratio_delivery_rate")
_RECOVERY: Final[dict[str, Take]] = {CATALOGUE["recovery"].column: lambda part: part.recovery_s}
_PROBE_OF_PHASE: Final = _named("ping_mean", "ping_p50", "ping_p99", "ping_jitter", "ping_loss") | _RECOVERY
_QUEUE_OF_PHASE: Final = _named(
    "rate", "utilisation", "queue_delay_mean", "queue_delay_p50", "queue_delay_p99", "marks", "drops"
)
_FLOW_OF_PHASE: Final = _named("goodput", "delivery_rate", "srtt_mean", "srtt_p50", "srtt_p99")


class RatedCounts:
    """A queue with a rate and what its queues counted, as the catalogue reads the record of a queue."""

    def __init__(self, rated: RatedQueue, summary: Summary) -> None:
        self.rated = rated
        self.rate_bps = rated.rate_bps
        self.utilisation = rated.utilisation
        self.queues: list[Queue] = [summary.queues[name] for name in rated.queues if name in summary.queues]
        # Percentiles of several queues do not add up.
        only = self.queues[0] if len(self.queues) == 1 else None
        self.delay_s = only.delay_s if only else None
        self.sojourn_little_s = only.sojourn_little_s if only else None
        self.parts = only.parts if only else None
        self.marks = self._sum("marks")
        self.sce_marks = self._sum("sce_marks")
        self.drops = self._sum("drops")

    def _sum(self, what: str) -> int | None:
        return sum(getattr(queue, what) for queue in self.queues) if self.queues else None


def _numbers(several: Sequence[object], prefix: str, takes: Mapping[str, Take]) -> Record:
    """The mean of each number over the repetitions that have it, and its interval if there are several."""
    flat: Record = {}
    for name, take in takes.items():
        values = [take(one) for one in several]
        flat[prefix + name] = Mean.over(values)
        if len(several) > 1:
            known = [float(value) for value in values if value is not None]
            flat[prefix + interval_of(name)] = interval(known)["ci95"] if known else None
    return flat


def _means(several: Sequence[object], prefix: str, takes: Mapping[str, Take]) -> Record:
    """The mean of each number over the repetitions that have it."""
    return {prefix + name: Mean.over(take(one) for one in several) for name, take in takes.items()}


def without_unit(name: str) -> str:
    """The name of a column without its unit: `goodput` of `goodput_bps`."""
    return name.removesuffix(SUFFIXES.get(unit_in(name) or "", ""))


def interval_of(name: str) -> str:
    """The column with half of the interval of a mean: `goodput_ci95_bps` of `goodput_bps`."""
    return f"{without_unit(name)}_ci95{SUFFIXES.get(unit_in(name) or '', '')}"


def _rated(row: Row, *, with_data: bool = False) -> Iterator[tuple[str, list[RatedCounts]]]:
    for rated in row.summaries[0].rated:
        if rated.flows or not row.flows or not with_data:
            same = [
                RatedCounts(one, summary)
                for summary in row.summaries
                for one in summary.rated
                if one.queue == rated.queue
            ]
            yield rated.queue, same


def shares(row: Row) -> dict[str, float | None]:
    """Each flow's part of the goodput of all flows at its queue, of means.

    None where nothing arrives, and of a flow that has no goodput.
    """
    first = row.summaries[0].flows
    rates = {name: _mean_goodput(row, name) for name in first}
    at = queue_of(first, row.document)
    together: dict[str, float] = {}
    for name, queue in at.items():
        together[queue] = together.get(queue, 0.0) + (rates[name] or 0.0)
    found: dict[str, float | None] = {}
    for name, queue in at.items():
        rate, total = rates[name], together[queue]
        found[name] = rate / total if rate is not None and total else None
    return found


def _flows(row: Row) -> Iterator[Record]:
    documents = {flow.name: flow for flow in row.document.flows}
    first = row.summaries[0].flows
    part = shares(row)
    for name, flow in first.items():
        document = documents[name]
        parts = [summary.flows[name] for summary in row.summaries]
        yield {
            **_of(row),
            "flow": name,
            "from": document.from_,
            "to": document.to,
            "transport": flow.transport,
            "source": document.source.kind,
            "cc": flow.cc,
            "ecn": flow.ecn,
            "start_s": document.start_s,
            "stop_s": document.stop_s,
            "base_rtt_s": _base_rtt(row, name),
            "bottleneck": flow.bottleneck,
            "share": part[name],
            **_numbers(parts, "", _FLOW),
        }


def _mean_goodput(row: Row, name: str) -> float | None:
    """0 in a repetition that has none, and None if no repetition has one."""
    values = [summary.flows[name].steady_state.goodput_bps for summary in row.summaries]
    if all(value is None for value in values):
        return None
    return sum(value or 0.0 for value in values) / len(values)


def _base_rtt(row: Row, flow: str) -> float | None:
    try:
        return base_rtt(row.document, row.document.named(flow))
    except MeasureError:
        return None


def _queues(row: Row) -> Iterator[Record]:
    for name, several in _rated(row):
        qdiscs = dict.fromkeys(queue.qdisc for one in several for queue in one.queues)
        sources = dict.fromkeys(one.queues[0].delay_of for one in several if one.delay_s)
        yield {
            **_of(row),
            "queue": name,
            "qdisc": "; ".join(qdiscs),
            "flows": ", ".join(several[0].rated.flows),
            "delay_of": ", ".join(str(of) for of in sources) or None,
            **_numbers(several, "", _QUEUE),
        }


def _probes(row: Row) -> Iterator[Record]:
    documents = {probe.name: probe for probe in row.document.probes}
    for name in row.summaries[0].probes:
        document = documents[name]
        yield {
            **_of(row),
            "probe": name,
            "protocol": document.proto,
            "from": document.from_,
            "to": document.to,
            **_numbers([summary.probes[name] for summary in row.summaries], "", _PROBE),
        }


def _phases(row: Row) -> Iterator[Record]:
    """Only where all repetitions have the same phases: a start that a seed moves over an edge cannot be averaged."""
    several = [summary.phases for summary in row.summaries]
    if len({len(phases) for phases in several}) > 1:
        return
    for i, phase in enumerate(several[0]):
        same = [phases[i] for phases in several]
        record = {
            **_of(row),
            "phase": i + 1,
            "from_s": phase.from_s,
            "to_s": phase.to_s,
            "changes": "; ".join(phase.changes),
        }
        yield record | _phase(row, phase, same)


def _phase(row: Row, phase: Phase, same: Sequence[Phase]) -> Record:
    flat: Record = {}
    for i, name in enumerate(phase.flows, start=1):
        datagrams = _DATAGRAMS if row.summaries[0].flows[name].transport == "udp" else {}
        takes = _FLOW_OF_PHASE | _RECOVERY | datagrams
        flat |= {f"flow{i}_name": name} | _numbers([one.flows[name] for one in same], f"flow{i}_", takes)
    data = [rated.queue for rated in row.summaries[0].rated if rated.flows]
    for i, name in enumerate(data, start=1):
        sce = any(one.queues[name].sce_marks is not None for one in same)
        takes = _QUEUE_OF_PHASE | (_named("sce_marks") if sce else {})
        flat |= {f"queue{i}_name": name} | _numbers([one.queues[name] for one in same], f"queue{i}_", takes)
    for i, name in enumerate(phase.probes, start=1):
        flat |= {f"probe{i}_name": name} | _numbers([one.probes[name] for one in same], f"probe{i}_", _PROBE_OF_PHASE)
    return flat


def equal_flows(row: Row) -> list[list[str]]:
    """The names of the flows in groups: those that differ in nothing but name, DSCP and start."""
    groups: dict[str, list[str]] = {}
    for flow in row.document.flows:
        source = Short(objects=[]) if isinstance(flow.source, Short) else flow.source
        kept = flow.model_copy(update={"name": "", "dscp": 0, "start_s": 0.0, "source": source}).model_dump_json()
        queues = [rated.queue for rated in row.summaries[0].rated if flow.name in rated.flows]
        groups.setdefault(f"{kept} {_base_rtt(row, flow.name)} {queues}", []).append(flow.name)
    return list(groups.values())


def flow_of(row: Row, name: str) -> Flow:
    """A flow's measures in the first repetition."""
    return row.summaries[0].flows[name]
