"""Tests of iperf3: what `iperf3 -c … -J` prints, of TCP and UDP, in any direction, with one stream or several.

Source: what iperf3 3.12 writes, and iperf_api.c and iperf_tcp.c of esnet/iperf. Each stream is a flow. With
`--get-server-output` and a server that writes JSON too (`iperf3 -s -J`) the server's intervals are in the file, and the
goodput of an upload is what arrived there. Without them it is what the client handed to its kernel, as iperf3 shows it,
and the recording says so. The window and the round-trip time are those of the sender's socket, which only the end that
sends has; intervals that `--omit` left out are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from bakeoff.errors import BakeoffError
from bakeoff.imports.document import Keys, decoded, is_there, need_few
from bakeoff.imports.flent_network import file_word
from bakeoff.imports.recording import UNKNOWN, Recording, Row, frame, recorded
from bakeoff.scenario.run import Bulk, ConstantRate, Flow, Link, Node, Run

KEYS: Final = frozenset({"start", "intervals", "end"})
WANTED: Final = frozenset({*KEYS, "server_output_json"})
SUITE: Final = "iperf3"
_MOST_INTERVALS: Final = 2_000_000
"""Of all streams together: a day at ten intervals per second has 900,000."""
_DATAGRAM: Final = 1460

Number = Annotated[float, msgspec.Meta(ge=0, le=1e18)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Port = int | None


class Connected(msgspec.Struct):
    """One stream, as the client sees it."""

    socket: int
    local_host: str = "client"
    remote_host: str = "server"


class Timestamp(msgspec.Struct):
    """When the test began."""

    timesecs: Annotated[int, msgspec.Meta(ge=0, le=2**40)]


class TestStart(msgspec.Struct):
    """What was asked for."""

    protocol: Literal["TCP", "UDP", "SCTP"]
    reverse: int = 0
    tos: Annotated[int, msgspec.Meta(ge=0, le=255)] = 0
    blksize: Count | None = None
    target_bitrate: Number | None = None


class Start(msgspec.Struct):
    """The beginning of a document."""

    test_start: TestStart
    connected: list[Connected] = []
    version: str = "iperf3"
    system_info: str = ""
    timestamp: Timestamp | None = None
    tcp_mss_default: Count | None = None
    tcp_mss: Count | None = None


class Stream(msgspec.Struct):
    """What one stream did in one interval."""

    socket: int
    end: Number
    seconds: Number
    bytes: Count
    bits_per_second: Number
    start: Number = 0.0
    retransmits: Annotated[int, msgspec.Meta(ge=-1, le=2**62)] | None = None
    snd_cwnd: Count | None = None
    rtt: Count | None = None
    """Microseconds."""
    jitter_ms: Number | None = None
    packets: Count | None = None
    lost_packets: Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)] | None = None
    """Below 0 where datagrams of the interval before came late."""
    omitted: bool = False
    sender: bool | None = None


class Interval(msgspec.Struct):
    """All streams in one interval."""

    streams: list[Stream]


class Total(msgspec.Struct):
    """What one end of a stream did in the whole test."""

    socket: int | None = None
    bytes: Count | None = None
    packets: Count | None = None
    retransmits: Annotated[int, msgspec.Meta(ge=-1, le=2**62)] | None = None
    lost_packets: Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)] | None = None


class Ends(msgspec.Struct):
    """Both ends of a stream; of UDP they are one."""

    sender: Total | None = None
    receiver: Total | None = None
    udp: Total | None = None


class End(msgspec.Struct):
    """The end of a document."""

    streams: list[Ends] = []
    sender_tcp_congestion: str | None = None
    receiver_tcp_congestion: str | None = None


class Server(msgspec.Struct):
    """What is read of the server's document."""

    intervals: list[Interval] = []


@dataclass
class _Flow:
    """A stream with everything that was told of it."""

    name: str
    reverse: bool
    """Whether the server sends."""
    client: list[Stream]
    server: list[Stream]
    ends: Ends

    @property
    def arrived(self) -> list[Stream]:
        """The intervals that say what arrived; those of the sender where nobody says it."""
        return self.client if self.reverse else self.server or self.client

    @property
    def sent(self) -> list[Stream]:
        """The intervals of the sender's socket, if they are there."""
        return self.server if self.reverse else self.client


def read(keys: Keys, path: Path) -> Recording:
    """What a file tells. BakeoffError names the file, the first key that is wrong, and the expected form."""
    for key in ("intervals", "server_output_json"):
        if key in keys:
            need_few(keys[key], b'"socket"', _MOST_INTERVALS, f"{path}: {key}", "intervals of streams")
    start = decoded(keys["start"], Start, f"{path}: start")
    end = decoded(keys["end"], End, f"{path}: end")
    intervals = decoded(keys["intervals"], list[Interval], f"{path}: intervals")
    server = Server()
    if is_there(keys.get("server_output_json", msgspec.Raw())):
        server = decoded(keys["server_output_json"], Server, f"{path}: server_output_json")
    if start.test_start.protocol == "SCTP":
        raise BakeoffError(f"{path}: start.test_start.protocol: SCTP; expected TCP or UDP")
    flows = _flows(start, intervals, server, end)
    if not flows:
        raise BakeoffError(f"{path}: intervals: no stream has one; did the test end before its first interval?")
    mss = start.tcp_mss or start.tcp_mss_default or None
    samples = frame(row for flow in flows for row in _rows(flow, mss))
    run = _run(start, end, flows, path)
    record = recorded(
        run,
        engine="iperf3",
        versions={"iperf3": _line(start.version)} | ({"kernel": _line(start.system_info)} if start.system_info else {}),
        date=datetime.fromtimestamp(start.timestamp.timesecs, UTC) if start.timestamp else None,
        host=None,
        note=None,
        effective=_effective(flows, path, mss),
    )
    return Recording(record, samples, {"flows": {flow.name: _counted(flow, start, end, mss) for flow in flows}})


def _flows(start: Start, intervals: Sequence[Interval], server: Server, end: End) -> list[_Flow]:
    """The streams in the order of the client's first interval; the server has them in the same order."""
    client, there = _by_stream(intervals), _by_stream(server.intervals)
    udp = start.test_start.protocol == "UDP"
    control = "udp" if udp else _word(end.sender_tcp_congestion) or "tcp"
    same = len(there) == len(client)
    found = []
    for number, (socket, streams) in enumerate(client.items()):
        sends = streams[0].sender
        ends = next((each for each in end.streams if _socket(each) == socket), Ends())
        found.append(
            _Flow(
                name=control if len(client) == 1 else f"{control}-{number + 1}",
                reverse=bool(start.test_start.reverse) if sends is None else not sends,
                client=streams,
                server=[*there.values()][number] if same else [],
                ends=ends,
            )
        )
    return found


def _by_stream(intervals: Sequence[Interval]) -> dict[int, list[Stream]]:
    found: dict[int, list[Stream]] = {}
    for interval in intervals:
        for stream in interval.streams:
            if not stream.omitted and stream.seconds > 0:
                found.setdefault(stream.socket, []).append(stream)
    return found


def _socket(ends: Ends) -> int | None:
    return next((end.socket for end in (ends.sender, ends.receiver, ends.udp) if end is not None), None)


def _rows(flow: _Flow, mss: int | None) -> Iterator[Row]:
    received = datagrams = lost = 0
    for stream in _rising(flow.arrived):
        received += stream.bytes
        yield stream.end, "flow", flow.name, "goodput", stream.bits_per_second
        yield stream.end, "flow", flow.name, "received", float(received)
        if stream.jitter_ms is not None:
            yield stream.end, "flow", flow.name, "jitter", stream.jitter_ms / 1e3
        if stream.packets is not None and stream.lost_packets is not None:
            datagrams += stream.packets
            lost += stream.lost_packets
            yield stream.end, "flow", flow.name, "datagrams", float(datagrams)
            yield stream.end, "flow", flow.name, "datagrams_lost", float(max(lost, 0))
    retransmits = 0
    for stream in _rising(flow.sent):
        if stream.rtt:
            yield stream.end, "flow", flow.name, "srtt", stream.rtt / 1e6
        if stream.snd_cwnd is not None and mss:
            yield stream.end, "flow", flow.name, "cwnd", stream.snd_cwnd / mss
        if stream.retransmits is not None and stream.retransmits >= 0:
            retransmits += stream.retransmits
            yield stream.end, "flow", flow.name, "retrans", float(retransmits)


def _rising(streams: Sequence[Stream]) -> Iterator[Stream]:
    """Those whose end is after the one before: iperf3 may close a test with an interval of no length."""
    last = -1.0
    for stream in streams:
        if stream.end > last:
            last = stream.end
            yield stream


def _counted(flow: _Flow, start: Start, end: End, mss: int | None) -> dict[str, object]:
    """What the file counts of a flow; a key that it does not tell is absent."""
    udp = start.test_start.protocol == "UDP"
    cc = "none" if udp else _word(end.sender_tcp_congestion)
    total = flow.ends.udp or flow.ends.sender or Total()
    again = total.retransmits if total.retransmits is not None and total.retransmits >= 0 else None
    arrived = flow.ends.receiver.bytes if flow.ends.receiver is not None else None
    if udp and flow.server:
        arrived = sum(stream.bytes for stream in flow.server)
    counted = {
        "cc": cc,
        "mss": None if udp else mss,
        "retransmits": None if udp else again,
        "received_bytes": arrived,
        "sent_packets": total.packets if udp else None,
    }
    return {key: value for key, value in counted.items() if value is not None}


def _effective(flows: Sequence[_Flow], path: Path, mss: int | None) -> list[str]:
    """What a reader of the numbers has to know."""
    told = [f"recorded by iperf3, read from {path.name}"]
    if any(not flow.reverse and not flow.server for flow in flows):
        told.append(
            "goodput is what the client handed to its kernel: the file has no intervals of the server, which "
            "'iperf3 -s -J' and 'iperf3 -c … --get-server-output' put there"
        )
    if any(not flow.sent for flow in flows):
        told.append("the sender's window, round-trip times and retransmissions are not in the file")
    elif mss is None and any(stream.snd_cwnd for flow in flows for stream in flow.sent):
        told.append("the file has no MSS, so that windows, which it tells in bytes, are left out")
    return told


def _run(start: Start, end: End, flows: Sequence[_Flow], path: Path) -> Run:
    asked = start.test_start
    udp = asked.protocol == "UDP"
    first = start.connected[0] if start.connected else Connected(socket=0)
    client, server = _host(first.local_host) or "client", _host(first.remote_host) or "server"
    if server == client:
        server = f"{server} (remote)"
    duration = max(stream.end for flow in flows for stream in flow.client)
    lengths = sorted(stream.seconds for flow in flows for stream in flow.client)
    rtts = [stream.rtt for flow in flows for stream in flow.sent if stream.rtt]
    rate = max(1, round(asked.target_bitrate or 1))
    datagrams = ConstantRate(rate_bps=min(rate, 10**13), size=min(max(asked.blksize or _DATAGRAM, 1), 65_507))
    name = file_word(path.name.removesuffix(".gz").removesuffix(".bz2").removesuffix(".json").removesuffix(".iperf3"))
    return Run(
        suite=SUITE,
        scenario=asked.protocol.lower(),
        run=name,
        title=f"{asked.protocol} from {client} to {server}, recorded by iperf3",
        seed=1,
        duration_s=min(max(duration, 1e-3), 1e9),
        sample_interval_s=min(max(lengths[len(lengths) // 2], 1e-4), 1e9),
        window_s=(0.0, min(max(duration, 1e-3), 1e9)),
        nodes=[Node(name=name, kind="host", sysctls={}, hz=250, offloads=True) for name in (client, server)],
        links=[Link(ends=(client, server), delay_s=min(min(rtts, default=0) / 2e6, 1000.0))],
        interfaces=[],
        flows=[
            Flow(
                name=flow.name,
                from_=server if flow.reverse else client,
                to=client if flow.reverse else server,
                cc="none" if udp else _word(end.sender_tcp_congestion) or UNKNOWN,
                transport="udp" if udp else "tcp",
                dscp=asked.tos >> 2,
                start_s=0.0,
                stop_s=min(flow.client[-1].end, 1e9),
                source=datagrams if udp else Bulk(),
            )
            for flow in flows
        ],
        probes=[],
    )


def _word(told: str | None) -> str | None:
    """The name of a congestion control; None of what is none."""
    return told if told is not None and re.fullmatch(r"[\w@.-]{1,40}", told) else None


def _host(told: str) -> str:
    """A host's name or address, as it can stand for a node."""
    return re.sub(r"[<>/]", "_", _line(told))[:100]


def _line(told: str) -> str:
    return "".join(c if c.isprintable() else " " for c in told).strip()[:500]
