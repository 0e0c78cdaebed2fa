"""Tables as flat records: a name with its unit, and a plain value in SI units. docs/tables.md says what each is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bakeoff.errors import BakeoffError
from bakeoff.measure import Mean, interval
from bakeoff.measure.delays import base_rtt
from bakeoff.measure.samples import MeasureError
from bakeoff.results.units import SUFFIXES, unit_in
from bakeoff.tables.rows import RATES, finite

if TYPE_CHECKING:
    from bakeoff.results.summary import Distribution, Flow, Phase, Queue, RatedQueue, Summary
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
        raise BakeoffError(f"rows: unknown '{kind}'; expected one of {', '.join(KINDS)}")
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
        flat |= {f"{of}name": flow.name, f"{of}cc": flow.cc, f"{of}ecn": flow.ecn}
        for rate in RATES:
            share = flow.rates_bps[rate]
            flat |= {f"{of}{rate}_bps": share and share["mean"], f"{of}{rate}_ci95_bps": share and share["ci95"]}
        flat |= {
            f"{of}reference_bps": flow.reference.value if flow.reference else None,
            f"{of}reference_ln_spread": flow.reference.spread if flow.reference else None,
            f"{of}log_ratio": finite(flow.log_ratio),
            f"{of}srtt_mean_s": flow.srtt_mean_s,
            f"{of}srtt_p99_s": flow.srtt_p99_s,
            f"{of}retransmissions": flow.retransmissions,
            f"{of}mark_fraction": flow.mark_fraction,
        }
        parts = [summary.flows[flow.name] for summary in row.summaries]
        if parts[0].spike is not None:
            flat |= _numbers(parts, of, _OVER_TIME)
        if parts[0].transport == "udp":
            flat |= _numbers(parts, of, _DATAGRAMS)
        if flow.unfinished is not None:
            flat |= {f"{of}fct_{name}_s": value for name, value in (flow.fct_s or {}).items()}
            flat[f"{of}unfinished"] = flow.unfinished
        flat |= {f"{of}video_{name}": value for name, value in (flow.video or {}).items()}
    for i, (name, several) in enumerate(_rated(row, with_data=True), start=1):
        flat |= {f"queue{i}_name": name} | _numbers(several, f"queue{i}_", _QUEUE)
    for i, name in enumerate(row.summaries[0].probes, start=1):
        probes = [summary.probes[name] for summary in row.summaries]
        flat |= {f"probe{i}_name": name} | _numbers(probes, f"probe{i}_", _PROBE_OF_RUN)
    sce = [sum(queue.sce_marks for queue in summary.queues.values()) for summary in row.summaries]
    return flat | {
        "jain": row.jain,
        "ratio": row.ratio,
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


def _spread(part: Distribution | None, which: str) -> float | None:
    return None if part is None else getattr(part, which)


def _distribution(name: str, take: Callable[[Any], Distribution | None]) -> dict[str, Take]:
    def one(which: str) -> Take:
        return lambda of: _spread(take(of), which)

    return {f"{name}_{which}_s": one(which) for which in ("mean", "p50", "p99")}


def _completion(which: str) -> Take:
    def take(flow: Flow) -> float | None:
        times = flow.fct.fct_s if flow.fct else None
        return getattr(times, which) if times else None

    return take


def _spike(which: str) -> Take:
    return lambda part: getattr(part.spike, which) if part.spike else None


_OVER_TIME: Final[dict[str, Take]] = {
    "starvation": lambda flow: flow.starvation,
    "oscillations_per_s": lambda flow: flow.oscillations_per_s,
    "spike_height_s": _spike("height_s"),
    "spike_duration_s": _spike("duration_s"),
}
_DATAGRAMS: Final[dict[str, Take]] = {
    **_distribution("delay", lambda flow: flow.delay_s),
    "jitter_s": lambda flow: flow.jitter_s,
    "loss": lambda flow: flow.loss,
}
_FLOW: Final[dict[str, Take]] = {
    "goodput_bps": lambda flow: flow.steady_state.goodput_bps,
    "delivery_rate_bps": lambda flow: flow.steady_state.delivery_rate_bps,
    **_distribution("srtt", lambda flow: flow.srtt_s),
    **_distribution("rtt", lambda flow: flow.rtt_s),
    **_DATAGRAMS,
    "retransmissions": lambda flow: flow.retransmissions,
    "mark_fraction": lambda flow: flow.mark_fraction,
    "seen_marks": lambda flow: flow.seen_marks,
    "seen_ect1": lambda flow: flow.seen_ect1,
    "echoed_marks": lambda flow: flow.echoed_marks,
    **_OVER_TIME,
    **{f"fct_{which}_s": _completion(which) for which in ("geometric_mean", "p50", "p95", "p99")},
    "unfinished": lambda flow: flow.fct and flow.fct.begun - flow.fct.ended,
    "video_mean_rate_bps": lambda flow: flow.video and flow.video.mean_rate_bps,
    "video_startup_s": lambda flow: flow.video and flow.video.startup_s,
    "video_stalls": lambda flow: flow.video and flow.video.stalls,
    "video_stalled_s": lambda flow: flow.video and flow.video.stalled_s,
    "video_switches": lambda flow: flow.video and flow.video.switches,
}
_PROBE: Final[dict[str, Take]] = {
    **_distribution("rtt", lambda probe: probe.rtt_s),
    "jitter_s": lambda probe: probe.jitter_s,
    "loss": lambda probe: probe.loss,
}
_PROBE_OF_PHASE: Final[dict[str, Take]] = {**_PROBE, "recovery_s": lambda probe: probe.recovery_s}
_PROBE_OF_RUN: Final[dict[str, Take]] = {
    **_PROBE,
    **_distribution("induced", lambda probe: probe.induced_s),
    **_distribution("ipdv", lambda probe: probe.ipdv_s),
    "spike_height_s": _spike("height_s"),
    "spike_duration_s": _spike("duration_s"),
}


class Standing:
    """A queue with a rate, and what its queues counted."""

    def __init__(self, rated: RatedQueue, summary: Summary) -> None:
        self.rated = rated
        self.queues: list[Queue] = [summary.queues[name] for name in rated.queues if name in summary.queues]

    def delay(self) -> Distribution | None:
        """None for several queues together: percentiles of each are told, and do not add up."""
        return self.queues[0].delay_s if len(self.queues) == 1 else None

    def little(self) -> Distribution | None:
        """The delay by Little's law, likewise."""
        return self.queues[0].sojourn_little_s if len(self.queues) == 1 else None

    def part(self, name: str) -> Distribution | None:
        """The delay in one of the queues within."""
        return (self.queues[0].parts or {}).get(name) if len(self.queues) == 1 else None

    def count(self, what: str) -> float | None:
        """Marks or drops of all of them."""
        return sum(getattr(queue, what) for queue in self.queues) if self.queues else None


_QUEUE: Final[dict[str, Take]] = {
    "rate_bps": lambda standing: standing.rated.rate_bps,
    "utilisation": lambda standing: standing.rated.utilisation,
    **_distribution("delay", lambda standing: standing.delay()),
    **_distribution("little_delay", lambda standing: standing.little()),
    **_distribution("l_delay", lambda standing: standing.part("L")),
    **_distribution("c_delay", lambda standing: standing.part("C")),
    "marks": lambda standing: standing.count("marks"),
    "sce_marks": lambda standing: standing.count("sce_marks"),
    "drops": lambda standing: standing.count("drops"),
}


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


def without_unit(name: str) -> str:
    """The name of a column without its unit: `goodput` of `goodput_bps`."""
    return name.removesuffix(SUFFIXES.get(unit_in(name) or "", ""))


def interval_of(name: str) -> str:
    """The column with half of the interval of a mean: `goodput_ci95_bps` of `goodput_bps`."""
    return f"{without_unit(name)}_ci95{SUFFIXES.get(unit_in(name) or '', '')}"


def _rated(row: Row, *, with_data: bool = False) -> Iterator[tuple[str, list[Standing]]]:
    for rated in row.summaries[0].rated:
        if rated.flows or not row.flows or not with_data:
            same = [
                Standing(one, summary) for summary in row.summaries for one in summary.rated if one.queue == rated.queue
            ]
            yield rated.queue, same


def shares(row: Row) -> dict[str, float | None]:
    """Each flow's part of the goodput of all flows with the same bottleneck, of means.

    None where nothing arrives, and of a flow that has no goodput.
    """
    first = row.summaries[0].flows
    rates = {name: _mean_goodput(row, name) for name in first}
    together: dict[str | None, float] = {}
    for name, flow in first.items():
        together[flow.bottleneck] = together.get(flow.bottleneck, 0.0) + (rates[name] or 0.0)
    found: dict[str, float | None] = {}
    for name, flow in first.items():
        rate, total = rates[name], together[flow.bottleneck]
        found[name] = rate / total if rate is not None and total else None
    return found


def _flows(row: Row) -> Iterator[Record]:
    documents = {flow["name"]: flow for flow in row.resolved["flows"]}
    first = row.summaries[0].flows
    part = shares(row)
    for name, flow in first.items():
        document = documents[name]
        parts = [summary.flows[name] for summary in row.summaries]
        yield {
            **_of(row),
            "flow": name,
            "from": document["from"],
            "to": document["to"],
            "transport": flow.transport,
            "source": document["source"]["kind"],
            "cc": flow.cc,
            "ecn": flow.ecn,
            "start_s": document["start_s"],
            "stop_s": document["stop_s"],
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
        return base_rtt(row.run_, row.run_.named(flow))
    except MeasureError:
        return None


def _queues(row: Row) -> Iterator[Record]:
    for name, several in _rated(row):
        qdiscs = dict.fromkeys(queue.qdisc for one in several for queue in one.queues)
        told = dict.fromkeys(one.queues[0].delay_of for one in several if one.delay())
        yield {
            **_of(row),
            "queue": name,
            "qdisc": "; ".join(qdiscs),
            "flows": ", ".join(several[0].rated.flows),
            "delay_of": ", ".join(str(of) for of in told) or None,
            **_numbers(several, "", _QUEUE),
        }


def _probes(row: Row) -> Iterator[Record]:
    documents = {probe["name"]: probe for probe in row.resolved["probes"]}
    for name in row.summaries[0].probes:
        document = documents[name]
        yield {
            **_of(row),
            "probe": name,
            "protocol": document["proto"],
            "from": document["from"],
            "to": document["to"],
            **_numbers([summary.probes[name] for summary in row.summaries], "", _PROBE_OF_RUN),
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
        takes: dict[str, Take] = {
            "goodput_bps": lambda flow: flow.goodput_bps,
            "delivery_rate_bps": lambda flow: flow.delivery_rate_bps,
            **_distribution("srtt", lambda flow: flow.srtt_s),
            "recovery_s": lambda flow: flow.recovery_s,
            **(_DATAGRAMS if row.summaries[0].flows[name].transport == "udp" else {}),
        }
        flat |= {f"flow{i}_name": name} | _numbers([one.flows[name] for one in same], f"flow{i}_", takes)
    data = [rated.queue for rated in row.summaries[0].rated if rated.flows]
    for i, name in enumerate(data, start=1):
        takes = {
            "rate_bps": lambda queue: queue.rate_bps,
            "utilisation": lambda queue: queue.utilisation,
            **_distribution("delay", lambda queue: queue.delay_s),
            "marks": lambda queue: queue.marks,
            "drops": lambda queue: queue.drops,
        }
        if any(one.queues[name].sce_marks is not None for one in same):
            takes["sce_marks"] = lambda queue: queue.sce_marks
        flat |= {f"queue{i}_name": name} | _numbers([one.queues[name] for one in same], f"queue{i}_", takes)
    for i, name in enumerate(phase.probes, start=1):
        flat |= {f"probe{i}_name": name} | _numbers([one.probes[name] for one in same], f"probe{i}_", _PROBE_OF_PHASE)
    return flat


def equal_flows(row: Row) -> list[list[str]]:
    """The names of the flows in groups: those that differ in nothing but name, DSCP and start."""
    groups: dict[str, list[str]] = {}
    for flow in row.resolved["flows"]:
        kept = {key: value for key, value in flow.items() if key not in ("name", "dscp", "start_s")}
        if kept["source"]["kind"] == "short":
            kept["source"] = "short"
        queues = [rated.queue for rated in row.summaries[0].rated if flow["name"] in rated.flows]
        groups.setdefault(f"{kept} {_base_rtt(row, flow['name'])} {queues}", []).append(flow["name"])
    return list(groups.values())


def flow_of(row: Row, name: str) -> Flow:
    """A flow's measures in the first repetition."""
    return row.summaries[0].flows[name]
