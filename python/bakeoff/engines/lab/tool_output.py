"""What traffic tools wrote, as series and counters of a results folder. Their files stay.

Times are seconds from the start of the run. iperf3 counts from the start of its data: when that was is known as well as
its process took to start and to shake hands, some round trips.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bakeoff import files
from bakeoff.engines.lab.plan import Plan, Program
from bakeoff.errors import BakeoffError
from bakeoff.results import irtt_json
from bakeoff.scenario import Run

if TYPE_CHECKING:
    import polars as pl

    from bakeoff.results.irtt_json import IrttTest

Row = tuple[float, str, str, str, float]
"""time, kind, name, metric, value."""

_INTERIM: Final = re.compile(
    r"^NETPERF_INTERIM_RESULT\[\d+\]=([0-9.]+)\n.*\nNETPERF_INTERVAL\[\d+\]=([0-9.]+)\nNETPERF_ENDING\[\d+\]=([0-9.]+)$",
    re.MULTILINE,
)
NOT_ITS: Final = (
    BakeoffError, KeyError, ValueError, TypeError, OSError, EOFError, OverflowError, RecursionError, zlib.error,
)  # fmt: skip
_LARGEST: Final = 256 << 20
"""Bytes of a data file of flent, unpacked: ten flows for an hour make 100 MB."""
_KEY: Final = re.compile(r"^([A-Z_]+)=(-?[0-9.]+)$", re.MULTILINE)


@dataclass
class Told:
    """What the tools of a run measured."""

    rows: list[Row] = field(default_factory=list)
    counters: dict[str, dict[str, dict[str, Any]]] = field(
        default_factory=lambda: {"sources": {}, "sinks": {}, "probes": {}}
    )
    """As in the agent's last line."""


def read(run: Run, plan: Plan, folder: Path, summaries: Sequence[dict[str, Any]]) -> Told:
    """Everything that the plan's programs left in `folder`; RuntimeError names the file that cannot be read."""
    told = Told()
    started_at = started(summaries)
    for program in plan.programs:
        if program.start_s is None or program.folder:
            continue
        started_s, epoch_ns = started_at[program.name]
        try:
            _read(run, program, folder, (started_s, epoch_ns), told)
            need_finite(told.rows)
        except NOT_ITS as error:
            where = f"node '{program.node}': {program.file}"
            raise RuntimeError(f"{where}: not what {program.argv[0]} writes: {error!r}") from error
    told.rows = [row for row in told.rows if 0 <= row[0] <= run.duration_s]
    return told


def started(summaries: Sequence[dict[str, Any]]) -> dict[str, tuple[float, int]]:
    """When each program began, in seconds of the run, with t = 0 in ns of its node's CLOCK_REALTIME."""
    return {
        line["name"]: (line["started_s"], summary["epoch_realtime_ns"])
        for summary in summaries
        for line in summary.get("programs", ())
    }


def need_finite(rows: Sequence[Row]) -> None:
    """ValueError names a value that nothing measures: JSON in Python may hold NaN and Infinity."""
    for row in rows:
        if not (math.isfinite(row[0]) and math.isfinite(row[4])):
            raise ValueError(f"{row[3]} of '{row[2]}' is {row[4]} at {row[0]} s")


def added(frame: pl.DataFrame, rows: Sequence[Row]) -> pl.DataFrame:
    """The frame and the rows, one series after the other, each in order of time."""
    import polars as pl

    if not rows:
        return frame
    more = pl.DataFrame(rows, schema=frame.schema, orient="row")
    return pl.concat([frame, more]).sort(["kind", "name", "metric", "time"], maintain_order=True)


def _read(run: Run, program: Program, folder: Path, when: tuple[float, int], told: Told) -> None:
    """`when`: its start in seconds of the run, and t = 0 in ns of its node's CLOCK_REALTIME."""
    started_s, epoch_ns = when
    if program.argv[0] == "flent":
        [data] = folder.glob("*.flent.gz")
        with gzip.GzipFile(fileobj=io.BytesIO(files.plain_bytes(data))) as file:
            document = file.read(_LARGEST + 1)
        if len(document) > _LARGEST:
            raise ValueError(f"unpacks to more than {_LARGEST:,} bytes")
        flent(json.loads(document), run, epoch_ns / 1e9, told)
        return
    text = files.plain_text(folder / program.file)
    if program.argv[0] == "iperf3":
        iperf3(json.loads(text), program.name, started_s, told)
    elif program.argv[0] == "netperf":
        cc = next(flow.cc for flow in run.flows if flow.name == program.name)
        netperf(text, program.name, cc, epoch_ns / 1e9, told)
    elif program.argv[0] == "irtt":
        # A line for people may stand ahead of the document.
        irtt(irtt_json.parse(text[text.index("{") :].encode(), program.file), program.name, epoch_ns, told)


def document(text: str) -> dict[str, Any]:
    """The JSON object of an output; lines for people may stand around it. ValueError if there is none."""
    found, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    if not isinstance(found, dict):
        raise TypeError("is no JSON object")
    return found


def iperf3_client(document: dict[str, Any], name: str, started_s: float, told: Told, *, udp: bool) -> None:
    """`iperf3 -c … -J`, and what other programs write in its form: an object with `intervals` and `end`.

    Where the client has the server's output, the server counted what was received; else the client did, whose intervals
    are those of what was sent unless it was the receiver.
    """
    if "error" in document:
        raise ValueError(document["error"])
    if "server_output_json" in document:
        iperf3(document, name, started_s, told)
        return
    end = document["end"]
    received = 0
    retransmits = None
    mss = document.get("start", {}).get("tcp_mss_default", 0)
    for interval in document["intervals"]:
        total = interval["sum"]
        time = started_s + total["end"]
        received += total["bytes"]
        told.rows.append((time, "flow", name, "goodput", float(total["bits_per_second"])))
        told.rows.append((time, "flow", name, "received", float(received)))
        for stream in interval.get("streams", ()):
            if stream.get("snd_cwnd") and mss:
                told.rows.append((time, "flow", name, "cwnd", stream["snd_cwnd"] / mss))
            if stream.get("rtt"):
                told.rows.append((time, "flow", name, "srtt", stream["rtt"] / 1e6))
            if "retransmits" in stream:
                retransmits = (retransmits or 0) + stream["retransmits"]
                told.rows.append((time, "flow", name, "retrans", float(retransmits)))
    counted: dict[str, Any] = {}
    if (cc := end.get("sender_tcp_congestion")) is not None:
        counted["cc"] = str(cc)
    if mss and not udp:
        counted["mss"] = mss
    if retransmits is not None:
        counted["retransmits"] = retransmits
    told.counters["sources"][name] = counted
    total = end.get("sum_received") or end["sum"]
    told.counters["sinks"][name] = {"received_bytes": int(total["bytes"])}


def iperf3(document: dict[str, Any], name: str, started_s: float, told: Told) -> None:
    """`iperf3 -J --get-server-output`: goodput and received from the server's intervals, the rest from the client's.

    Of UDP the server also tells, at the end of each interval, its jitter (RFC 1889's, which is RFC 3550's), and how
    many datagrams the interval should have had and did not have.
    """
    server = document["server_output_json"]
    received = datagrams = lost = 0
    for interval in server["intervals"]:
        total = interval["sum"]
        received += total["bytes"]
        time = started_s + total["end"]
        told.rows.append((time, "flow", name, "goodput", float(total["bits_per_second"])))
        told.rows.append((time, "flow", name, "received", float(received)))
        if "jitter_ms" in total:
            datagrams += total["packets"]
            lost += total["lost_packets"]
            told.rows.append((time, "flow", name, "jitter", total["jitter_ms"] / 1e3))
            told.rows.append((time, "flow", name, "datagrams", float(datagrams)))
            told.rows.append((time, "flow", name, "datagrams_lost", float(lost)))
    mss = document["start"].get("tcp_mss_default", 0)
    retransmits = 0
    for interval in document["intervals"]:
        for stream in interval["streams"]:
            time = started_s + stream["end"]
            if "snd_cwnd" in stream and mss:
                told.rows.append((time, "flow", name, "cwnd", stream["snd_cwnd"] / mss))
                told.rows.append((time, "flow", name, "srtt", stream["rtt"] / 1e6))
            if "retransmits" in stream:
                retransmits += stream["retransmits"]
                told.rows.append((time, "flow", name, "retrans", float(retransmits)))
    end = document["end"]
    counted: dict[str, Any] = {"cc": end.get("sender_tcp_congestion", "none")}
    if mss:
        counted |= {"mss": mss, "retransmits": retransmits}
    elif "packets" in (sent := end.get("sum_sent", end.get("sum", {}))):
        counted |= {"sent_packets": sent["packets"], "sent_bytes": sent["bytes"]}
    told.counters["sources"][name] = counted
    told.counters["sinks"][name] = {"received_bytes": int(server["end"]["sum_received"]["bytes"])}


def netperf(text: str, name: str, cc: str, epoch_s: float, told: Told) -> None:
    """`netperf -D -f m` with `-k`: goodput here is what the sender handed to its kernel."""
    handed = 0.0
    found = _INTERIM.findall(text)
    if not found:
        raise ValueError("no interim results")
    for rate, over, at in found:
        handed += float(rate) * 1e6 * float(over) / 8
        time = float(at) - epoch_s
        told.rows.append((time, "flow", name, "goodput", float(rate) * 1e6))
        told.rows.append((time, "flow", name, "received", round(handed)))
    end = dict(_KEY.findall(text))
    retransmits = int(float(end.get("LOCAL_TRANSPORT_RETRANS", -1)))
    told.counters["sources"][name] = {"cc": cc} | ({"retransmits": retransmits} if retransmits >= 0 else {})
    told.counters["sinks"][name] = {"received_bytes": int(float(end["REMOTE_BYTES_RECVD"]))}


def flent(document: dict[str, Any], run: Run, epoch_s: float, told: Told) -> None:
    """A flent data file of tcp_nup: stream n is flow n. Rates are those of netperf, socket statistics those of `ss`."""
    for number, flow in enumerate(run.flows, start=1):
        series = f"TCP upload::{number}"
        points = document["raw_values"][series]
        rates = [point for point in points if "val" in point]
        if not rates:
            raise ValueError(f"no values in '{series}'")
        handed = 0.0
        for point in rates:
            time = point["t"] - epoch_s
            handed += point["val"] * 1e6 * point.get("dur", 0.0) / 8
            told.rows.append((time, "flow", flow.name, "goodput", point["val"] * 1e6))
            told.rows.append((time, "flow", flow.name, "received", round(handed)))
        told.rows += _socket_statistics(points, flow.name, epoch_s)
        meta = document["metadata"].get("SERIES_META", {}).get(series, {})
        told.counters["sources"][flow.name] = {"cc": meta.get("CONG_CONTROL", flow.cc)}
        told.counters["sinks"][flow.name] = {"received_bytes": int(float(meta.get("BYTES_RECVD", round(handed))))}


def _socket_statistics(points: Sequence[dict[str, Any]], name: str, epoch_s: float) -> Iterator[Row]:
    units = {
        "tcp_cwnd": ("cwnd", 1.0),
        "tcp_rtt": ("srtt", 1e-3),
        "tcp_delivery_rate": ("delivery_rate", 1e6),
        "tcp_pacing_rate": ("pacing_rate", 1e6),
    }
    for point in points:
        for key, (metric, unit) in units.items():
            if point.get(key) is not None:
                yield point["t"] - epoch_s, "flow", name, metric, point[key] * unit


def irtt(test: IrttTest, name: str, epoch_ns: int, told: Told) -> None:
    """`irtt client -o`: a round trip or a loss per request, at the time it was sent."""
    if test.started_ns is None:
        raise ValueError("the first request has no time of the wall clock")
    begin = (test.started_ns - epoch_ns) / 1e9
    for time, kind, probe, metric, value in test.series(name).iter_rows():
        told.rows.append((begin + time, kind, probe, metric, value))
    told.counters["probes"][name] = {"sent": test.sent, "received": test.received}
