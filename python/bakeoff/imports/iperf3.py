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
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from bakeoff.errors import BakeoffError
from bakeoff.imports.document import Keys, decoded, need_few
from bakeoff.imports.flent_network import file_word
from bakeoff.imports.iperf3_form import Connected, End, Ends, Interval, Server, Start, Stream, TestStart, Total
from bakeoff.imports.iperf3_mss import Segments
from bakeoff.imports.iperf3_stream import EVENT, error_in, failed
from bakeoff.imports.recording import UNKNOWN, Recording, Row, frame, recorded
from bakeoff.scenario.run import Bulk, ConstantRate, Flow, Link, Node, Run

KEYS: Final = frozenset({"start", "intervals", "end"})
WANTED: Final = frozenset({*KEYS, *EVENT, "server_output_json", "server_output_text", "error", "title"})
SUITE: Final = "iperf3"
_MOST_INTERVALS: Final = 2_000_000
"""Of all streams together: a day at ten intervals per second has 900,000."""
_DATAGRAM: Final = 1460


@dataclass
class _Flow:
    """A stream with everything that was told of it."""

    name: str
    cc: str | None
    is_udp: bool
    is_sent_here: bool
    """Whether the end sends whose file it is."""
    is_servers: bool
    """Whether the file is the server's."""
    is_alone: bool
    """Whether `end` has nothing that only the other end knows: in a server's file, and after an error."""
    here: list[Stream]
    there: list[Stream]
    """The intervals of the file's own end, and those of the other end."""
    ends: Ends
    lost: tuple[int, int] | None = None
    """(datagrams lost, datagrams) of the whole test, where the intervals do not tell them."""

    @property
    def is_reverse(self) -> bool:
        """Whether the server sends."""
        return self.is_sent_here == self.is_servers

    @property
    def arrived(self) -> list[Stream]:
        """The intervals that say what arrived; those of the sender where none does."""
        return self.there or self.here if self.is_sent_here else self.here

    @property
    def sent(self) -> list[Stream]:
        """The intervals of the sender's socket, if they are there."""
        return self.here if self.is_sent_here else self.there

    @property
    def is_handed(self) -> bool:
        """Whether only the sender's intervals are there."""
        return self.is_sent_here and not self.there

    @property
    def tells_loss(self) -> bool:
        """Whether the receiver's intervals tell of datagrams that were lost."""
        return not self.is_handed and any(stream.lost_packets is not None for stream in self.arrived)

    @property
    def receiver(self) -> Total:
        """What `end` has of the receiver; iperf3 writes 0 of what it does not know."""
        known = not (self.is_alone and self.is_sent_here)
        return (self.ends.udp or self.ends.receiver or Total()) if known else Total()

    @property
    def sender(self) -> Total:
        """What `end` has of the sender: where it is the other end, a receiver knows of datagrams by their numbers."""
        known = self.is_udp or self.is_sent_here or not self.is_alone
        return (self.ends.udp or self.ends.sender or Total()) if known else Total()

    @property
    def share(self) -> float:
        """The part of what the intervals tell that arrived, as far as it is known."""
        if self.lost is None or not self.is_handed:
            return 1.0
        lost, datagrams = self.lost
        return (datagrams - lost) / datagrams


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
        raise BakeoffError(f"{path}: start.test_start.protocol: SCTP; expected TCP or UDP")
    told = end.sum_received is not None and bool(end.sum_received.bytes)
    is_alone = start.is_servers or (error is not None and not told)
    flows = _flows(start, asked, intervals, server, end, is_alone=is_alone)
    if not flows:
        raise (
            failed(error, path)
            if error
            else BakeoffError(f"{path}: intervals: no stream has one; did the test end before its first interval?")
        )
    segments = Segments(start, [flow.sent for flow in flows])
    samples = frame(row for flow in flows for row in _rows(flow, segments))
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
    found = Recording(record, samples, {"flows": {flow.name: _counted(flow, segments) for flow in flows}})
    if error is not None:
        return found.with_warnings([f"iperf3 ended with an error, and the recording ends there: {error}"])
    return found.with_warnings([] if end.streams else ["the end of the test is missing, which may have been cut off"])


def _flows(
    start: Start, asked: TestStart, intervals: Sequence[Interval], server: Server, end: End, *, is_alone: bool
) -> list[_Flow]:
    """The streams in the order of their first intervals."""
    here, there = _by_stream(intervals), _by_stream(server.intervals)
    matched = _matched(start, here, server, there)
    udp = asked.protocol == "UDP"
    senders = {
        # Versions before 3.7 do not say who sends: then all streams go one way.
        socket: bool(asked.reverse) == start.is_servers if streams[0].sender is None else streams[0].sender
        for socket, streams in here.items()
    }
    both_ways = len(set(senders.values())) > 1
    found = []
    for number, (socket, streams) in enumerate(here.items()):
        told = end.sender_tcp_congestion
        if both_ways and not senders[socket] and end.receiver_tcp_congestion:
            told = end.receiver_tcp_congestion
        cc = "none" if udp else _word(told)
        name = "udp" if udp else cc or "tcp"
        found.append(
            _Flow(
                name=name if len(here) == 1 else f"{name}-{number + 1}",
                cc=cc,
                is_udp=udp,
                is_sent_here=senders[socket],
                is_servers=start.is_servers,
                is_alone=is_alone,
                here=streams,
                there=there.get(matched.get(socket, -1), []),
                ends=next((each for each in end.streams if each.socket == socket), Ends()),
            )
        )
    _set_lost([flow for flow in found if flow.is_udp and not flow.tells_loss], end)
    return found


def _set_lost(flows: Sequence[_Flow], end: End) -> None:
    """What `end` tells of the losses of these flows, whose intervals do not tell them.

    With `--omit` iperf3 3.12 counts the losses of the time that it leaves out, too, and more would be lost than did not
    arrive. Then those of one flow are what did not arrive, and those of several are not known.
    """
    totals = [flow.receiver for flow in flows]
    if not flows or any(total.lost_packets is None or not total.packets for total in totals):
        return
    packets = sum(total.packets or 0 for total in totals)
    lost = [min(max(total.lost_packets or 0, 0), total.packets or 0) for total in totals]
    size = sum(total.bytes or 0 for total in totals) / packets
    if size and end.sum_received is not None and end.sum_received.bytes is not None:
        missed = max(packets - int(end.sum_received.bytes / size), 0)
        if missed < sum(lost):
            lost = [missed] if len(lost) == 1 else []
    for flow, total, each in zip(flows, totals, lost, strict=False):
        flow.lost = each, total.packets or 0


def _matched(
    start: Start, here: dict[int, list[Stream]], server: Server, there: dict[int, list[Stream]]
) -> dict[int, int]:
    """The server's socket of each of the client's: by the client's port, or else by their order."""
    connected = server.start.connected if server.start is not None else []
    by_port = {each.remote_port: each.socket for each in connected if each.remote_port is not None}
    ports = {each.socket: by_port.get(each.local_port or 0) for each in start.connected}
    if len(by_port) == len(there) and all(ports.get(socket) in there for socket in here):
        return {socket: other for socket in here if (other := ports[socket]) is not None}
    return dict(zip(here, there, strict=True)) if len(here) == len(there) else {}


def _by_stream(intervals: Sequence[Interval]) -> dict[int, list[Stream]]:
    """The intervals of each stream, each of which ends after the one before.

    What an interval without length brought belongs to its neighbour: iperf3 may close a test with one. After an error
    it may write the last interval once more, which is passed over.
    """
    found: dict[int, list[Stream]] = {}
    for interval in intervals:
        for stream in interval.streams:
            if stream.omitted:
                continue
            several = found.setdefault(stream.socket, [])
            last = several[-1] if several else None
            if last is None or (last.seconds > 0 and stream.end > last.end and stream.seconds > 0):
                several.append(stream)
            elif stream.begin >= last.end or last.seconds <= 0:
                _join(last, stream)
    return {socket: several for socket, several in found.items() if several[0].seconds > 0}


def _join(stream: Stream, other: Stream) -> None:
    """Add what another interval brought, and its time if it has one."""
    if other.bytes or other.end > stream.end:
        stream.bits_per_second = None
    for key in ("bytes", "packets", "lost_packets", "retransmits"):
        if (more := getattr(other, key)) is not None:
            setattr(stream, key, (getattr(stream, key) or 0) + more)
    if other.end > stream.end:
        stream.seconds += other.seconds
        stream.end = other.end


def _rows(flow: _Flow, segments: Segments) -> Iterator[Row]:
    received = 0.0
    datagrams = lost = 0
    for stream in flow.arrived:
        received += stream.bytes * flow.share
        yield stream.end, "flow", flow.name, "goodput", stream.rate_bps * flow.share
        yield stream.end, "flow", flow.name, "received", received
        if flow.is_handed:
            continue
        if stream.jitter_ms is not None:
            yield stream.end, "flow", flow.name, "jitter", stream.jitter_ms / 1e3
        if stream.packets is not None and stream.lost_packets is not None:
            datagrams += stream.packets
            lost += stream.lost_packets
            yield stream.end, "flow", flow.name, "datagrams", float(datagrams)
            yield stream.end, "flow", flow.name, "datagrams_lost", float(max(lost, 0))
    if flow.lost is not None:
        # The client's intervals tell what it sent, and its `end` what the server missed of the whole test.
        last, jitter_ms = flow.arrived[-1].end, flow.receiver.jitter_ms
        yield last, "flow", flow.name, "datagrams", float(flow.lost[1])
        yield last, "flow", flow.name, "datagrams_lost", float(flow.lost[0])
        if jitter_ms is not None and not any(stream.jitter_ms is not None for stream in flow.arrived):
            yield last, "flow", flow.name, "jitter", jitter_ms / 1e3
    retransmits = 0
    for stream in flow.sent:
        if stream.rtt:
            yield stream.end, "flow", flow.name, "srtt", stream.rtt / 1e6
        if (window := segments.window(stream)) is not None:
            yield stream.end, "flow", flow.name, "cwnd", window
        if stream.retransmits is not None and stream.retransmits >= 0:
            retransmits += stream.retransmits
            yield stream.end, "flow", flow.name, "retrans", float(retransmits)


def _counted(flow: _Flow, segments: Segments) -> dict[str, object]:
    """What the file counts of a flow; a key that it does not tell is absent."""
    counted: dict[str, object] = {"cc": flow.cc, "received_bytes": flow.receiver.bytes}
    if flow.is_udp:
        arrived = None if flow.is_handed and flow.lost is None else sum(stream.bytes for stream in flow.arrived)
        counted["received_bytes"] = None if arrived is None else round(arrived * flow.share)
        counted["sent_packets"] = flow.sender.packets
    else:
        if counted["received_bytes"] is None and not flow.is_handed:
            counted["received_bytes"] = sum(stream.bytes for stream in flow.arrived)
        told = [each for each in (stream.retransmits for stream in flow.sent) if each is not None and each >= 0]
        again = flow.sender.retransmits if flow.sender.retransmits is not None else sum(told) if told else -1
        counted |= {"mss": segments.mss, "retransmits": again if again >= 0 else None}
    return {key: value for key, value in counted.items() if value is not None}


def _effective(flows: Sequence[_Flow], path: Path, segments: Segments, *, has_text: bool) -> list[str]:
    """What a reader of the numbers has to know."""
    told = [f"recorded by iperf3, read from {path.name}"]
    handed = [flow for flow in flows if flow.is_handed]
    if handed:
        other, lost = "client" if handed[0].is_servers else "server", any(flow.share < 1 for flow in handed)
        why = f"the file has no intervals of the {other}"
        if other == "server":
            why += ", which 'iperf3 -s -J' and 'iperf3 -c … --get-server-output' put there"
        if has_text:
            why += "; what it has of the server is text, because that ran without -J"
        what = f"goodput is what the {'server' if handed[0].is_servers else 'client'} handed to its kernel"
        less = ", less the share of datagrams that were lost in the whole test" if lost else ""
        told.append(f"{what}{less}: {why}")
    if any(not flow.sent for flow in flows):
        told.append("the sender's window, round-trip times and retransmissions are not in the file")
    elif (note := segments.note()) is not None:
        told.append(note)
    return told


def _run(start: Start, asked: TestStart, flows: Sequence[_Flow], path: Path) -> Run:
    first = start.connected[0] if start.connected else Connected(socket=0)
    ends = (first.remote_host, first.local_host) if start.is_servers else (first.local_host, first.remote_host)
    client, server = _host(ends[0]) or "client", _host(ends[1]) or "server"
    if server == client:
        server = f"{server} (remote)"
    several = [streams for flow in flows for streams in (flow.here, flow.there) if streams]
    begin = min(1e9 - 1, *(streams[0].begin for streams in several))
    end = min(max(begin + 1e-3, *(streams[-1].end for streams in several)), 1e9)
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
        window_s=(begin, end),
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


def _source(flow: _Flow, start: Start, asked: TestStart) -> Bulk | ConstantRate:
    """What the flow was to send: without a rate TCP sends all it can, and UDP's is what it sent."""
    target = asked.target_bitrate or start.target_bitrate
    if not target:
        if not flow.is_udp:
            return Bulk()
        sent = flow.sent or flow.here
        target = 8 * sum(stream.bytes for stream in sent) / (sent[-1].end - sent[0].begin)
    size = min(max(asked.blksize or _DATAGRAM, 1), 65_507) if flow.is_udp else max(asked.blksize or _DATAGRAM, 1)
    return ConstantRate(rate_bps=min(max(1, round(target)), 10**13), size=min(size, 1 << 30))


def _word(told: str | None) -> str | None:
    """The name of a congestion control; None of what is none."""
    return told if told is not None and re.fullmatch(r"[\w@.-]{1,40}", told) else None


def _host(told: str) -> str:
    """A host's name or address, as it can stand for a node."""
    return re.sub(r"[<>/]", "_", _line(told))[:100]


def _line(told: str) -> str:
    return "".join(c if c.isprintable() else " " for c in told).strip()[:500]
