"""The streams of a test of iperf3: intervals at both ends, samples, counters and losses.

Source: what iperf3 3.12 writes, and iperf_api.c and iperf_tcp.c of esnet/iperf (`iperf3_form` has the fields).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bakeoff.results.iperf3_form import End, Ends, Interval, Server, Start, Stream, TestStart, Total
from bakeoff.results.iperf3_mss import Segments
from bakeoff.results.sample_rows import Row


@dataclass
class StreamRecord:
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


def streams_of(
    start: Start, asked: TestStart, intervals: Sequence[Interval], server: Server, end: End, *, is_alone: bool
) -> list[StreamRecord]:
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
        control = end.sender_tcp_congestion
        if both_ways and not senders[socket] and end.receiver_tcp_congestion:
            control = end.receiver_tcp_congestion
        cc = "none" if udp else _word(control)
        name = "udp" if udp else cc or "tcp"
        found.append(
            StreamRecord(
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


def _set_lost(flows: Sequence[StreamRecord], end: End) -> None:
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


def samples_of(flow: StreamRecord, segments: Segments) -> Iterator[Row]:
    """The samples of a stream, at times of its test."""
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


def counters_of(flow: StreamRecord, segments: Segments) -> dict[str, object]:
    """What the file counts of a flow; a key that it does not tell is absent."""
    counted: dict[str, object] = {"cc": flow.cc, "received_bytes": flow.receiver.bytes}
    if flow.is_udp:
        arrived = None if flow.is_handed and flow.lost is None else sum(stream.bytes for stream in flow.arrived)
        counted["received_bytes"] = None if arrived is None else round(arrived * flow.share)
        counted["sent_packets"] = flow.sender.packets
    else:
        if counted["received_bytes"] is None and not flow.is_handed:
            counted["received_bytes"] = sum(stream.bytes for stream in flow.arrived)
        counts = [each for each in (stream.retransmits for stream in flow.sent) if each is not None and each >= 0]
        again = flow.sender.retransmits if flow.sender.retransmits is not None else sum(counts) if counts else -1
        counted |= {"mss": segments.mss, "retransmits": again if again >= 0 else None}
    return {key: value for key, value in counted.items() if value is not None}


def _word(control: str | None) -> str | None:
    """The name of a congestion control; None of what is none."""
    return control if control is not None and re.fullmatch(r"[\w@.-]{1,40}", control) else None
