"""Captures and files of irtt as a results folder, whose tables, pictures and pages are drawn like any run's.

Each file is a run. A direction of a TCP or UDP flow that carries payload is a flow of it, and echo requests and tests
of irtt are probes. What a capture does not tell (the network, the congestion control, the queues) is absent. All round
trips are those between the capture and the receiver, so that they are whole ones at the sender only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from bakeoff import captures, imports
from bakeoff.captures import CaptureFile, IrttFile
from bakeoff.errors import BakeoffError, TraceError
from bakeoff.imports.recording import UNKNOWN, Recording, recorded, write
from bakeoff.results.sample_rows import Row, frame
from bakeoff.scenario.run import Bulk, ConstantRate, Flow, Link, Node, Probe, Run
from bakeoff.version import version

if TYPE_CHECKING:
    from bakeoff.captures import report as told

    _Flow = TypeVar("_Flow", told.Flow, told.Udp)

SUITE: Final = "trace"
_HUB: Final = "network"
_MOST_FLOWS: Final = 1000
"""Of a run: those with the most payload."""
_SHARE: Final = 1e-3
"""A direction with less of its flow's payload is its requests or replies, and no flow of its own."""
_MODES: Final = {"none": "off", "rfc3168": "rfc3168", "accecn": "accecn", "sce": "rfc3168"}
_LONGEST_S: Final = 1e9
"""Of a run."""
_MOST_BPS: Final = 10**13
_QUANTILES: Final = ("p5", "p50", "p90", "p95", "p99", "p999")
_PROBE_BYTES: Final = 84
_LONGEST_NAME: Final = 100

Count = tuple[float, float]
"""time [s], bytes."""


def write_all(found: Sequence[CaptureFile | IrttFile], out: Path, interval_s: float) -> Path:
    """Make the results folder `out` of these files, and return it.

    BakeoffError if it is there already, or names the file that holds nothing that could be a run; then there is none.
    """
    from bakeoff import results
    from bakeoff.campaign import campaign_record

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise TraceError(f"--out: '{out}' already exists; expected a new folder")
    names = _names([one.file for one in found])
    with results.writing(out) as partial:
        asked = results.Request(kind="import", patterns=tuple(one.file for one in found))
        campaign = campaign_record.begin(
            partial, asked, "capture", {"bakeoff": version()}, campaign_record.provenance(), runs=len(found)
        )
        for number, (name, one) in enumerate(zip(names, found, strict=True)):
            try:
                made = of_capture(one, name, interval_s) if isinstance(one, CaptureFile) else of_irtt(one, name)
                write(made, partial, campaign.id, number)
            except BakeoffError as error:
                raise TraceError(f"{one.file}: {error}") from None
    return out


def read(path: Path, interval_s: float = 0.1) -> Recording:
    """The recording in any file that can be imported: a capture, irtt's JSON, or one of `bakeoff.imports`.

    The samples of a capture are `interval_s` apart. BakeoffError names the file and what is wrong with it.
    """
    if not captures.is_known(path):
        return imports.read(path)
    found, [name] = captures.read(path, interval_s=interval_s), _names([str(path)])
    try:
        return of_capture(found, name, interval_s) if isinstance(found, CaptureFile) else of_irtt(found, name)
    except BakeoffError as error:
        raise TraceError(f"{path}: {error}") from None


def of_capture(found: CaptureFile, name: str, interval_s: float) -> Recording:
    """The flows and probes of a capture; its report has to have series. BakeoffError if it has neither."""
    report = found.report
    flows = [made for flow in _largest(report.flows, lambda side: side.data.payload_bytes) for made in _tcp(flow)]
    datagrams = [flow for flow in report.datagrams.udp if flow.protocol != "irtt"]
    flows += [made for flow in _largest(datagrams, lambda side: side.payload_bytes) for made in _udp(flow)]
    flows = sorted(flows, key=lambda made: -made.payload)[:_MOST_FLOWS]
    probes = [_asked(one, "udp") for one in report.datagrams.irtt]
    probes += [_asked(one, "icmp") for one in report.datagrams.echo]
    flows, probes = [made for made in flows if made.rows], [made for made in probes if made.rows]
    if not flows and not probes:
        raise TraceError("no data; expected a flow with payload, echo requests or an irtt test")
    several = [*flows, *probes]
    _tell_apart(several)
    told = [f"read from the capture {Path(found.file).name}; round trips are those between it and the receiver"]
    told += report.capture.notes
    return _recording(
        several,
        name,
        title=Path(found.file).name,
        duration_s=report.capture.duration_s,
        interval_s=interval_s,
        start_ns=report.capture.start_ns,
        effective=told,
    )


def _largest(flows: Sequence[_Flow], payload: Callable[[Any], int]) -> list[_Flow]:
    """As many as a run may have, in their order: the others need not be made."""
    ranks = sorted(range(len(flows)), key=lambda i: -max(payload(flows[i].up), payload(flows[i].down)))
    return [flows[i] for i in sorted(ranks[:_MOST_FLOWS])]


def of_irtt(found: IrttFile, name: str) -> Recording:
    """The round trips of a test of irtt."""
    test = found.test
    document: dict[str, Any] = found.to_json()["test"]
    ends = (_host(test.local_address, "client"), _host(test.remote_address, "server"))
    made = _Made("probe", "irtt", ends, "udp")
    made.counters = {"sent": test.sent, "received": test.received, "rtt": _histogram(document["rtt_s"])}
    made.rows = list(test.series("irtt").iter_rows())
    made.span = (0.0, document["duration_s"] or 0.0)
    made.every_s = min(max(test.interval_s, 1e-6), _LONGEST_S)
    if not made.rows:
        raise TraceError("no round trips")
    told = [f"read from {Path(found.file).name}, a file of irtt"]
    return _recording(
        [made],
        name,
        title=Path(found.file).name,
        duration_s=made.span[1],
        interval_s=made.every_s,
        start_ns=test.started_ns,
        effective=told,
        engine="irtt",
    )


class _Made:
    """A flow or probe in the making."""

    def __init__(self, kind: str, name: str, ends: tuple[str, str], transport: str) -> None:
        self.kind = kind
        self.name = name
        self.ends = ends
        self.transport = transport
        self.payload = 0
        self.span = (0.0, 0.0)
        self.every_s = 1.0
        self.rate_bps: float | None = None
        self.rows: list[Row] = []
        self.counters: dict[str, Any] = {}

    def add(self, metric: str, times: Sequence[float], values: Sequence[float | int | None]) -> None:
        """A series; null has no row."""
        rows = zip(times, values, strict=True)
        self.rows += [(time, self.kind, self.name, metric, float(value)) for time, value in rows if value is not None]

    def count(self, ends: Sequence[float], bps: Sequence[float], every_s: float, first: Count, last: Count) -> None:
        """Add what was received by the end of each interval, and by the first and the last packet that counts.

        Between these two the goodput is the report's, whatever the intervals are.
        """
        sums = accumulate(rate * every_s / 8 for rate in bps)
        between = [count for count in zip(ends, sums, strict=True) if first[0] < count[0] < last[0]]
        counted = [first, *between, last] if last[0] > first[0] else [first]
        self.add("received", *zip(*counted, strict=True))

    def rename(self, name: str) -> None:
        """Give it and its samples another name."""
        self.name = name
        self.rows = [(time, kind, name, metric, value) for time, kind, _, metric, value in self.rows]


def _tcp(flow: told.Flow) -> Iterator[_Made]:
    """The directions that carry payload."""
    most = max(flow.up.data.payload_bytes, flow.down.data.payload_bytes)
    sides = ((flow.client, flow.server, flow.up, True), (flow.server, flow.client, flow.down, False))
    for source, target, own, up in sides:
        if not own.data.packets or own.data.payload_bytes < _SHARE * most or flow.series is None:
            continue
        series = flow.series.up if up else flow.series.down
        if series is None:
            continue
        made = _Made("flow", f"{source.text()}>{target.text()}", (source.address, target.address), "tcp")
        made.payload, made.span = own.data.payload_bytes, (flow.start_s, flow.end_s)
        other = flow.down if up else flow.up
        mss = other.options.mss or max(own.data.payload_bytes // own.data.packets, 1)
        # The last interval goes on after the flow's last packet.
        times = [min(time, flow.end_s) for time in flow.series.time_s]
        goodput, first, last = _acked(flow, own, series)
        made.add("goodput", times, goodput)
        made.count(times, goodput, flow.series.interval_s, first, last)
        made.add("srtt", times, series.rtt_s)
        made.add("in_flight", times, [value / mss for value in series.in_flight_bytes])
        made.add("retrans", times, list(accumulate(series.retransmits)))
        mode, echoed = _MODES.get(flow.ecn.mode, "off"), own.marks.echoed_ce_packets
        if mode == "accecn" and echoed is not None:
            made.add("delivered_ce", times, list(accumulate(series.echoed)))
        made.counters = {
            # Without the echo nobody knows which share of the packets was marked.
            **({"ecn": mode} if mode != "accecn" or echoed is not None else {}),
            "mss": mss,
            "sent_packets": own.data.packets,
            "sent_bytes": own.data.frame_bytes,
            "received_bytes": own.data.acked_bytes or own.data.sequence_bytes,
            "retransmits": own.data.retransmits,
            **({"delivered": max(own.data.packets, echoed), "delivered_ce": echoed} if echoed is not None else {}),
            "received_ce": own.data.ecn.ce,
            "received_ect1": own.data.ecn.ect1,
            "rtt": _histogram_of(own.rtt_s),
        }
        yield made


def _acked(flow: told.Flow, own: told.Direction, series: told.DirectionSeries) -> tuple[list[float], Count, Count]:
    """The goodput in each interval, and what the first and the last ACK had acknowledged.

    Without the other direction it is not known what was acknowledged: then it is what passed, from the flow's start.
    """
    data = own.data
    if not data.acked_bytes:
        share = data.payload_bytes / own.ip_bytes if own.ip_bytes else 0.0
        rates = [rate * share for rate in series.throughput_bps]
        # Without a SYN the flow starts with a packet of data.
        begun = 0.0 if flow.begin_seen else data.payload_bytes / data.packets
        return rates, (flow.start_s, begun), (flow.end_s, float(data.payload_bytes))
    whole = float(data.acked_bytes)
    if data.goodput is None or data.goodput.mean_bps is None:
        return series.goodput_bps, (flow.end_s, whole), (flow.end_s, whole)
    first, last = data.goodput.first_ack_s, data.goodput.last_ack_s
    return series.goodput_bps, (first, whole - data.goodput.mean_bps * (last - first) / 8), (last, whole)


def _udp(flow: told.Udp) -> Iterator[_Made]:
    """The directions that have datagrams with payload; their goodput is what passed the capture."""
    if flow.series is None:
        return
    most = max(flow.up.payload_bytes, flow.down.payload_bytes)
    sides = (
        (flow.client, flow.server, flow.up, flow.series.up_throughput_bps),
        (flow.server, flow.client, flow.down, flow.series.down_throughput_bps),
    )
    for source, target, own, rates in sides:
        if not own.packets or own.payload_bytes < _SHARE * most:
            continue
        made = _Made("flow", f"{source.text()}>{target.text()}", (source.address, target.address), "udp")
        made.payload, made.span, made.rate_bps = own.payload_bytes, (flow.start_s, flow.end_s), own.throughput_bps
        share = own.payload_bytes / own.ip_bytes if own.ip_bytes else 0.0
        goodput = [rate * share for rate in rates]
        times, every = [min(time, flow.end_s) for time in flow.series.time_s], flow.series.interval_s
        made.add("goodput", times, goodput)
        # The rate is that of what came after the first datagram.
        after = (own.throughput_bps or 0.0) * share * (flow.end_s - flow.start_s) / 8
        first = (flow.start_s, max(own.payload_bytes - after, 0.0))
        made.count(times, goodput, every, first, (flow.end_s, float(own.payload_bytes)))
        made.counters = {
            "sent_packets": own.packets,
            "sent_bytes": own.ip_bytes + 14 * own.packets,
            "received_bytes": own.payload_bytes,
            "received_ce": own.ecn.ce,
            "received_ect1": own.ecn.ect1,
            "rtt": {"n": 0},
        }
        yield made


def _asked(one: told.Asked, proto: str) -> _Made:
    """Echo requests, or a test of irtt."""
    client, server = one.ends
    made = _Made("probe", f"{client}>{server}", (_address(client), _address(server)), proto)
    made.span = (one.start_s, one.end_s)
    made.every_s = max((one.end_s - one.start_s) / max(one.requests - 1, 1), 1e-6)
    if one.samples is not None:
        times, rtts = one.samples.time_s, one.samples.rtt_s
        made.add("rtt", times, rtts)
        made.add("lost", times, [1.0 if rtt is None else None for rtt in rtts])
    made.counters = {"sent": one.requests, "received": one.replies, "rtt": _histogram_of(one.rtt_s)}
    return made


def _address(end: str) -> str:
    """An end without its port."""
    return re.sub(r"^\[(.*)\]:\d+$|^([\d.]+):\d+$", r"\1\2", end)


def _host(address: str | None, otherwise: str) -> str:
    """An address as the name of a host: a file may hold anything in its place."""
    return re.sub(r"[^\w.:\[\]%-]+", "_", address or "").strip("_")[:_LONGEST_NAME] or otherwise


def _tell_apart(several: Sequence[_Made]) -> None:
    """Number those that have a name twice: a port that was used again."""
    seen: dict[str, int] = {}
    for made in several:
        seen[made.name] = seen.get(made.name, 0) + 1
        if seen[made.name] > 1:
            made.rename(f"{made.name} ({seen[made.name]})")


def _recording(
    several: Sequence[_Made],
    name: str,
    *,
    title: str,
    duration_s: float,
    interval_s: float,
    start_ns: int | None,
    effective: Sequence[str],
    engine: str = "capture",
) -> Recording:
    """The run that these make: each address is a host, and all of them meet in one node."""
    latest = max(row[0] for made in several for row in made.rows)
    duration = max(duration_s, latest, 1e-3)
    if duration > _LONGEST_S:
        raise TraceError(f"duration of {duration:.3g} s; expected at most {_LONGEST_S:.0e} s")
    hosts = list(dict.fromkeys(end for made in several for end in made.ends))
    hub = _HUB + "_" * (_HUB in hosts)
    nodes = [Node(name=host, kind="host", hz=250, offloads=True) for host in hosts]
    nodes.append(Node(name=hub, kind="router", hz=250, offloads=True))
    run = Run(
        suite=SUITE,
        scenario="capture" if engine == "capture" else engine,
        run=name,
        title=title,
        seed=1,
        duration_s=duration,
        sample_interval_s=min(max(interval_s, 1e-4), 1e9),
        window_s=_window(several, duration),
        nodes=nodes,
        links=[Link(ends=(hub, host)) for host in hosts],
        flows=[_flow(made, duration) for made in several if made.kind == "flow"],
        probes=[_probe(made, duration) for made in several if made.kind == "probe"],
    )
    counters = {
        f"{kind}s": {made.name: made.counters for made in several if made.kind == kind} for kind in ("flow", "probe")
    }
    date = datetime.fromtimestamp(start_ns / 1e9, UTC).replace(microsecond=0) if start_ns is not None else None
    record = recorded(
        run, engine=engine, versions={"bakeoff": version()}, date=date, host=None, note=None, effective=effective
    )
    return Recording(record, frame(row for made in several for row in made.rows), counters, counts_from_start=False)


def _window(several: Sequence[_Made], duration: float) -> tuple[float, float]:
    """The time of the flow with the most payload, in whose midst others may begin and end; without flows all of it."""
    flows = [made for made in several if made.kind == "flow" and made.span[0] < made.span[1]]
    start, stop = max(flows, key=lambda made: made.payload).span if flows else (0.0, duration)
    return start, min(stop, duration)


def _flow(made: _Made, duration: float) -> Flow:
    start, stop = made.span[0], min(max(made.span[1], made.span[0] + 1e-6), duration)
    source: Bulk | ConstantRate = Bulk()
    if made.transport == "udp":
        source = ConstantRate(rate_bps=min(max(int(made.rate_bps or 0), 1), _MOST_BPS), size=1472)
    return Flow.model_validate(
        {
            "name": made.name, "from": made.ends[0], "to": made.ends[1], "cc": UNKNOWN,
            "transport": made.transport, "start_s": min(start, stop), "stop_s": stop, "source": source,
        }
    )  # fmt: skip


def _probe(made: _Made, duration: float) -> Probe:
    return Probe.model_validate(
        {
            "name": made.name, "proto": made.transport, "from": made.ends[0], "to": made.ends[1],
            "every_s": made.every_s, "size": _PROBE_BYTES, "start_s": min(made.span[0], duration), "stop_s": duration,
        }
    )  # fmt: skip


def _histogram_of(values: told.Distribution) -> dict[str, float | int]:
    return _histogram({key: getattr(values, key) for key in ("n", "mean", "min", "max", *_QUANTILES)})


def _histogram(values: Mapping[str, Any]) -> dict[str, float | int]:
    """In the form of counters.json."""
    if not values["n"]:
        return {"n": 0}
    return {"n": values["n"], **{f"{key}_s": values[key] for key in ("mean", "min", *_QUANTILES, "max")}}


def _names(several: Sequence[str]) -> list[str]:
    """A run's name for each file: its own without the endings of captures, told apart by numbers."""
    found: list[str] = []
    for file in several:
        stem = re.sub(r"(\.(pcap|pcapng|cap|json|gz|xz|zst|bz2))+$", "", Path(file).name)
        word = re.sub(r"[^\w.+~@=,%-]+", "_", stem).strip("._")[:100] or "capture"
        number = 1
        while (name := word if number == 1 else f"{word}-{number}") in found:
            number += 1
        found.append(name)
    return found
