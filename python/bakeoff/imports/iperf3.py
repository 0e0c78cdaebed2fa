"""Tests of iperf3: what `iperf3 -c … -J` or `iperf3 -s -J` prints, of TCP and UDP, in any direction and number.

Source: what iperf3 3.12 writes, and iperf_api.c and iperf_tcp.c of esnet/iperf (`iperf3_form` has the fields). Each
stream is a flow. With `--get-server-output` and a server that writes JSON too (`iperf3 -s -J`) the server's intervals
are in the file, and the goodput of an upload is what arrived there. Without them it is what the client handed to its
kernel, as iperf3 shows it, less the share of datagrams that `end` says were lost, and the recording says so. The window
and the round-trip time are those of the sender's socket, which only the end that sends has. Intervals that `--omit`
left out are not read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bakeoff.errors import BakeoffError, RecordingError
from bakeoff.imports.document import Keys, decoded, need_few
from bakeoff.imports.flent_network import file_word
from bakeoff.imports.iperf3_stream import EVENT, error_in, failed
from bakeoff.imports.recording import UNKNOWN, Recording, recorded
from bakeoff.results.iperf3_form import Connected, End, Interval, Server, Start, TestStart
from bakeoff.results.iperf3_mss import Segments
from bakeoff.results.iperf3_streams import StreamRecord, counters_of, samples_of, streams_of
from bakeoff.results.sample_rows import frame
from bakeoff.scenario.run import Bulk, ConstantRate, Flow, Link, Node, Run

KEYS: Final = frozenset({"start", "intervals", "end"})
WANTED: Final = frozenset({*KEYS, *EVENT, "server_output_json", "server_output_text", "error", "title"})
SUITE: Final = "iperf3"
_MOST_INTERVALS: Final = 2_000_000
"""Of all streams together: a day at ten intervals per second has 900,000."""
_DATAGRAM: Final = 1460


def read(keys: Keys, path: Path) -> Recording:
    """What a file tells. BakeoffError names the file, the first key that is wrong, and the expected form."""
    for key in ("intervals", "server_output_json"):
        if key in keys:
            need_few(keys[key], b'"socket"', _MOST_INTERVALS, f"{path}: {key}", "intervals of streams")
    error = error_in(keys, path)
    start = decoded(keys["start"], Start, f"{path}: start")
    end = decoded(keys["end"], End, f"{path}: end")
    intervals = decoded(keys["intervals"], list[Interval], f"{path}: intervals")
    server = Server()
    if "server_output_json" in keys:
        server = decoded(keys["server_output_json"], Server, f"{path}: server_output_json")
    asked = start.test_start
    if asked is None:
        raise (
            failed(error, path) if error else BakeoffError(f"{path}: start: Object missing required field `test_start`")
        )
    if asked.protocol == "SCTP":
        raise RecordingError(f"{path}: start.test_start.protocol: SCTP; expected TCP or UDP")
    summed = end.sum_received is not None and bool(end.sum_received.bytes)
    is_alone = start.is_servers or (error is not None and not summed)
    flows = streams_of(start, asked, intervals, server, end, is_alone=is_alone)
    if not flows:
        raise (
            failed(error, path)
            if error
            else BakeoffError(
                f"{path}: intervals: missing in all streams; the test may have ended before its first interval"
            )
        )
    segments = Segments(start, [flow.sent for flow in flows])
    samples = frame(row for flow in flows for row in samples_of(flow, segments))
    title = decoded(keys["title"], str, f"{path}: title") if "title" in keys else None
    record = recorded(
        _run(start, asked, flows, path),
        engine="iperf3",
        versions={"iperf3": _line(start.version)} | ({"kernel": _line(start.system_info)} if start.system_info else {}),
        date=datetime.fromtimestamp(start.timestamp.timesecs, UTC) if start.timestamp else None,
        host=None,
        note=_line(title) if title else None,
        effective=_effective(flows, path, segments, has_text="server_output_text" in keys),
    )
    found = Recording(record, samples, {"flows": {flow.name: counters_of(flow, segments) for flow in flows}})
    if error is not None:
        return found.with_warnings([f"iperf3 stopped with an error: {error}"])
    return found.with_warnings([] if end.streams else ["missing end of the test; the recording may be truncated"])


def _effective(flows: Sequence[StreamRecord], path: Path, segments: Segments, *, has_text: bool) -> list[str]:
    """What a reader of the numbers has to know."""
    notes = [f"recorded by iperf3, read from {path.name}"]
    handed = [flow for flow in flows if flow.is_handed]
    if handed:
        other, lost = "client" if handed[0].is_servers else "server", any(flow.share < 1 for flow in handed)
        why = f"the file has no intervals of the {other}"
        if other == "server":
            why += " (see 'iperf3 -s -J' and 'iperf3 -c … --get-server-output')"
        if has_text:
            why += "; the server's part is text (it ran without -J)"
        what = f"goodput is the data that the {'server' if handed[0].is_servers else 'client'} passed to its kernel"
        less = ", less the share of datagrams that were lost in the whole test" if lost else ""
        notes.append(f"{what}{less}: {why}")
    if any(not flow.sent for flow in flows):
        notes.append("the sender's window, round-trip times and retransmissions are not in the file")
    elif (note := segments.note()) is not None:
        notes.append(note)
    return notes


def _run(start: Start, asked: TestStart, flows: Sequence[StreamRecord], path: Path) -> Run:
    first = start.connected[0] if start.connected else Connected(socket=0)
    ends = (first.remote_host, first.local_host) if start.is_servers else (first.local_host, first.remote_host)
    client, server = _host(ends[0]) or "client", _host(ends[1]) or "server"
    if server == client:
        server = f"{server} (remote)"
    several = [streams for flow in flows for streams in (flow.here, flow.there) if streams]
    begins = min(1e9 - 1, *(streams[0].begin for streams in several))
    end = min(max(begins + 1e-3, *(streams[-1].end for streams in several)), 1e9)
    lengths = sorted(stream.seconds for flow in flows for stream in flow.here)
    rtts = [stream.rtt for flow in flows for stream in flow.sent if stream.rtt]
    name = file_word(path.name.removesuffix(".gz").removesuffix(".bz2").removesuffix(".json").removesuffix(".iperf3"))
    return Run(
        suite=SUITE,
        scenario=asked.protocol.lower(),
        run=name,
        title=f"{asked.protocol} from {client} to {server}, recorded by iperf3",
        seed=1,
        duration_s=end,
        sample_interval_s=min(max(lengths[len(lengths) // 2], 1e-4), 1e9),
        window_s=(begins, end),
        nodes=[Node(name=name, kind="host", sysctls={}, hz=250, offloads=True) for name in (client, server)],
        links=[Link(ends=(client, server), delay_s=min(min(rtts, default=0) / 2e6, 1000.0))],
        interfaces=[],
        flows=[
            Flow(
                name=flow.name,
                from_=server if flow.is_reverse else client,
                to=client if flow.is_reverse else server,
                cc=flow.cc or UNKNOWN,
                transport="udp" if flow.is_udp else "tcp",
                dscp=asked.tos >> 2,
                start_s=min(flow.here[0].begin, flow.arrived[0].begin, end),
                stop_s=min(flow.here[-1].end, end),
                source=_source(flow, start, asked),
            )
            for flow in flows
        ],
        probes=[],
    )


def _source(flow: StreamRecord, start: Start, asked: TestStart) -> Bulk | ConstantRate:
    """What the flow was to send: without a rate TCP sends all it can, and UDP's is what it sent."""
    target = asked.target_bitrate or start.target_bitrate
    if not target:
        if not flow.is_udp:
            return Bulk()
        sent = flow.sent or flow.here
        target = 8 * sum(stream.bytes for stream in sent) / (sent[-1].end - sent[0].begin)
    size = min(max(asked.blksize or _DATAGRAM, 1), 65_507) if flow.is_udp else max(asked.blksize or _DATAGRAM, 1)
    return ConstantRate(rate_bps=min(max(1, round(target)), 10**13), size=min(size, 1 << 30))


def _host(recorded: str) -> str:
    """A host's name or address, as it can stand for a node."""
    return re.sub(r"[<>/]", "_", _line(recorded))[:100]


def _line(recorded: str) -> str:
    return "".join(c if c.isprintable() else " " for c in recorded).strip()[:500]
