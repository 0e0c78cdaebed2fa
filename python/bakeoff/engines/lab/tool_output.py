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
from bakeoff.engines.lab import iperf3_output
from bakeoff.engines.lab.plan import Plan, Program
from bakeoff.errors import BakeoffError, RunError
from bakeoff.results import irtt_json, sample_rows
from bakeoff.results.sample_rows import Row
from bakeoff.scenario import Run

if TYPE_CHECKING:
    import polars as pl

    from bakeoff.results.irtt_json import IrttTest

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
class ToolOutput:
    """What the tools of a run measured."""

    rows: list[Row] = field(default_factory=list)
    counters: dict[str, dict[str, dict[str, Any]]] = field(
        default_factory=lambda: {"sources": {}, "sinks": {}, "probes": {}}
    )
    """As in the agent's last line."""
    starts: dict[str, float] = field(default_factory=dict)
    """Begin of each flow's first interval, where its counters are 0."""
    notes: list[str] = field(default_factory=list)


def read(run: Run, plan: Plan, folder: Path, summaries: Sequence[dict[str, Any]]) -> ToolOutput:
    """Everything that the plan's programs left in `folder`; RunError names the file that cannot be read."""
    tools = ToolOutput()
    started_at = started(summaries)
    for program in plan.programs:
        if program.start_s is None or program.folder:
            continue
        started_s, epoch_ns = started_at[program.name]
        try:
            _read(run, program, folder, (started_s, epoch_ns), tools)
            need_finite(tools.rows)
        except RunError:
            raise
        except NOT_ITS as error:
            prefix = f"node '{program.node}': {program.file}"
            raise RunError(f"{prefix}: invalid output of {program.argv[0]}: {error!r}") from error
    return tools


def started(summaries: Sequence[dict[str, Any]]) -> dict[str, tuple[float, int]]:
    """When each program began, in seconds of the run, with t = 0 in ns of its node's CLOCK_REALTIME."""
    return {
        line["name"]: (line["started_s"], summary["epoch_realtime_ns"])
        for summary in summaries
        for line in summary.get("programs", ())
    }


def need_finite(samples: Sequence[Row]) -> None:
    """ValueError names a value that nothing measures: JSON in Python may hold NaN and Infinity."""
    for row in samples:
        if not (math.isfinite(row[0]) and math.isfinite(row[4])):
            raise ValueError(f"{row[3]} of '{row[2]}' is {row[4]} at {row[0]} s")


def added(samples: pl.DataFrame, tools: ToolOutput, run: Run) -> pl.DataFrame:
    """`samples` with those of the tools within the run, one series after the other, each in order of time."""
    import polars as pl

    if not tools.rows:
        return samples
    more = sample_rows.counted(sample_rows.frame(tools.rows), tools.starts, run.window_s)
    return sample_rows.ordered(pl.concat([samples, more.filter(pl.col("time").is_between(0, run.duration_s))]))


def _read(run: Run, program: Program, folder: Path, when: tuple[float, int], tools: ToolOutput) -> None:
    """`when`: its start in seconds of the run, and t = 0 in ns of its node's CLOCK_REALTIME."""
    started_s, epoch_ns = when
    if program.argv[0] == "flent":
        [data] = folder.glob("*.flent.gz")
        with gzip.GzipFile(fileobj=io.BytesIO(files.plain_bytes(data))) as file:
            document = file.read(_LARGEST + 1)
        if len(document) > _LARGEST:
            raise ValueError(f"unpacks to more than {_LARGEST:,} bytes")
        flent(json.loads(document), run, epoch_ns / 1e9, tools)
        return
    text = files.plain_text(folder / program.file)
    if program.argv[0] == "iperf3":
        document = json.loads(text)
        if "error" not in document and "server_output_json" not in document:
            raise ValueError("has no server_output_json")
        udp = next(flow.transport == "udp" for flow in run.flows if flow.name == program.name)
        iperf3(document, program.name, started_s, tools, udp=udp)
    elif program.argv[0] == "netperf":
        cc = next(flow.cc for flow in run.flows if flow.name == program.name)
        netperf(text, program.name, cc, epoch_ns / 1e9, tools)
    elif program.argv[0] == "irtt":
        # A line for people may stand ahead of the document.
        irtt(irtt_json.parse(text[text.index("{") :].encode(), program.file), program.name, epoch_ns, tools)


def document(text: str) -> dict[str, Any]:
    """The JSON object of an output; lines for people may stand around it. ValueError if there is none."""
    found, _ = json.JSONDecoder().raw_decode(text[text.index("{") :])
    if not isinstance(found, dict):
        raise TypeError("not a JSON object")
    return found


def iperf3(document: dict[str, Any], name: str, started_s: float, tools: ToolOutput, *, udp: bool) -> None:
    """The output of `iperf3 -J`, or of another program in its form."""
    found = iperf3_output.read(document, name, udp=udp)
    tools.starts[name] = started_s + found.start_s
    tools.rows += [(started_s + time, kind, flow, metric, value) for time, kind, flow, metric, value in found.rows]
    tools.counters["sources"][name] = found.source
    tools.counters["sinks"][name] = {"received_bytes": found.received_bytes}
    if found.note is not None:
        tools.notes.append(f"flow '{name}': {found.note}")


def netperf(text: str, name: str, cc: str, epoch_s: float, tools: ToolOutput) -> None:
    """`netperf -D -f m` with `-k`: goodput here is what the sender handed to its kernel."""
    handed = 0.0
    found = _INTERIM.findall(text)
    if not found:
        raise ValueError("no interim results")
    tools.starts[name] = float(found[0][2]) - float(found[0][1]) - epoch_s
    for rate, over, at in found:
        handed += float(rate) * 1e6 * float(over) / 8
        time = float(at) - epoch_s
        tools.rows.append((time, "flow", name, "goodput", float(rate) * 1e6))
        tools.rows.append((time, "flow", name, "received", round(handed)))
    end = dict(_KEY.findall(text))
    retransmits = int(float(end.get("LOCAL_TRANSPORT_RETRANS", -1)))
    tools.counters["sources"][name] = {"cc": cc} | ({"retransmits": retransmits} if retransmits >= 0 else {})
    tools.counters["sinks"][name] = {"received_bytes": int(float(end["REMOTE_BYTES_RECVD"]))}


def flent(document: dict[str, Any], run: Run, epoch_s: float, tools: ToolOutput) -> None:
    """A flent data file of tcp_nup: stream n is flow n. Rates are those of netperf, socket statistics those of `ss`."""
    for number, flow in enumerate(run.flows, start=1):
        series = f"TCP upload::{number}"
        points = document["raw_values"][series]
        rates = [point for point in points if point.get("val") is not None]
        if not rates:
            raise ValueError(f"no values in '{series}'")
        ends = [(point["t"] - epoch_s, point.get("dur")) for point in rates]
        lasted = list(sample_rows.lengths(ends, run.sample_interval_s))
        tools.starts[flow.name] = ends[0][0] - lasted[0]
        handed = 0.0
        for (time, _), length, point in zip(ends, lasted, rates, strict=True):
            handed += point["val"] * 1e6 * length / 8
            tools.rows.append((time, "flow", flow.name, "goodput", point["val"] * 1e6))
            tools.rows.append((time, "flow", flow.name, "received", round(handed)))
        tools.rows += _socket_statistics(points, flow.name, epoch_s)
        meta = document["metadata"].get("SERIES_META", {}).get(series, {})
        tools.counters["sources"][flow.name] = {"cc": meta.get("CONG_CONTROL", flow.cc)}
        tools.counters["sinks"][flow.name] = {"received_bytes": int(float(meta.get("BYTES_RECVD", round(handed))))}


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


def irtt(test: IrttTest, name: str, epoch_ns: int, tools: ToolOutput) -> None:
    """`irtt client -o`: a round trip or a loss per request, at the time it was sent."""
    if test.started_ns is None:
        raise ValueError("the first request has no wall-clock time")
    start = (test.started_ns - epoch_ns) / 1e9
    for time, kind, probe, metric, value in test.series(name).iter_rows():
        tools.rows.append((start + time, kind, probe, metric, value))
    tools.counters["probes"][name] = {"sent": test.sent, "received": test.received}
