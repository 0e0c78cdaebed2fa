"""The output of `iperf3 -J`, or of another program in its form, as one flow.

Another program may leave out `start`, and print an interval as a `sum` of `end`, `bytes` and `bits_per_second`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from bakeoff.results.iperf3_form import End, Interval, Server, Start, TestStart
from bakeoff.results.iperf3_mss import Segments
from bakeoff.results.iperf3_streams import StreamRecord, counters_of, samples_of, streams_of
from bakeoff.results.sample_rows import COUNTERS, Row

_SUMMED: Final = {*COUNTERS, "goodput"}
"""Metrics whose values of parallel streams add up."""


class _Part(msgspec.Struct):
    """An interval as it was printed."""

    streams: list[dict[str, object]] = []
    sum: dict[str, object] = {}


class _Span(msgspec.Struct):
    end: float
    start: float | None = None


@dataclass(frozen=True)
class Output:
    """A flow; times are seconds from the start of the program's data."""

    start_s: float
    """Begin of the first interval, after those of `--omit`."""
    rows: list[Row]
    source: dict[str, object]
    """Counters of the sender, as in the agent's last line."""
    received_bytes: int
    note: str | None
    """Samples that are left out, and why."""


def read(document: dict[str, object], name: str, *, udp: bool) -> Output:
    """The flow of an output. ValueError or KeyError if it has none.

    The receiver's intervals count where they are there, else the sender's. Parallel streams are one flow. Of a test in
    both directions it is the client's upload.
    """
    if "error" in document:
        raise ValueError(document["error"])
    whole = _whole(document)
    start = msgspec.convert(whole.get("start", {}), Start)
    end = msgspec.convert(whole["end"], End)
    intervals = _intervals(whole["intervals"])
    server = msgspec.convert(whole.get("server_output_json", {}), Server)
    asked = start.test_start or TestStart(protocol="UDP" if udp else "TCP")
    streams = streams_of(start, asked, intervals, server, end, is_alone=start.is_servers)
    streams = [stream for stream in streams if not stream.is_reverse] or streams
    if not streams:
        raise ValueError("no stream has an interval")
    omitted_s = max((stream.end for each in intervals for stream in each.streams if stream.omitted), default=0.0)
    segments = Segments(start, [stream.sent for stream in streams])
    samples = _together([list(samples_of(stream, segments)) for stream in streams])
    return Output(
        start_s=omitted_s + min(stream.arrived[0].begin for stream in streams),
        rows=[(omitted_s + time, kind, name, metric, value) for time, kind, _, metric, value in samples],
        source=_source(start, end, streams, segments),
        received_bytes=_received(end, streams, segments),
        note=segments.note(),
    )


def _whole(value: object) -> dict[str, object]:
    """The document with whole numbers as such, which some encoders write as 1.0."""
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_whole(each) for each in value]  # type: ignore[return-value]
    return int(value) if isinstance(value, float) and value.is_integer() else value  # type: ignore[return-value]


def _intervals(printed: object) -> list[Interval]:
    """The intervals, each of which has streams with a socket and a length."""
    found = []
    before = 0.0
    for part in msgspec.convert(printed, list[_Part]):
        several = part.streams or [{}]
        shared = part.sum if len(several) == 1 else {}
        streams = []
        for number, stream in enumerate(several):
            values = shared | stream
            span = msgspec.convert(values, _Span)
            length = span.end - (before if span.start is None else span.start)
            streams.append({"socket": number, "seconds": max(length, 0.0)} | values)
        before = msgspec.convert(streams[0], _Span).end
        found.append(msgspec.convert({"streams": streams}, Interval))
    return found


def _together(streams: Sequence[list[Row]]) -> list[Row]:
    """The samples of parallel streams: sums by interval where values add up, and all samples of other metrics."""
    if len(streams) == 1:
        return streams[0]
    found = [row for rows in streams for row in rows if row[3] not in _SUMMED]
    for metric in sorted(_SUMMED):
        several = [[row for row in rows if row[3] == metric] for rows in streams]
        for number in range(max(map(len, several))):
            # A counter keeps its last value where its stream has ended.
            at = [rows[number] for rows in several if number < len(rows)]
            ended = [rows[-1][4] for rows in several if rows and number >= len(rows) and metric in COUNTERS]
            time, kind, name, _, _ = max(at)
            found.append((time, kind, name, metric, sum(row[4] for row in at) + sum(ended)))
    return found


def _source(start: Start, end: End, streams: Sequence[StreamRecord], segments: Segments) -> dict[str, object]:
    """Counters of the sender; a key that is not in the output is absent."""
    is_iperf3 = start.test_start is not None
    cc = end.sender_tcp_congestion or (streams[0].cc if is_iperf3 else None)
    sent = (end.sum_sent or end.sum) if streams[0].is_udp else None
    found = {
        "cc": cc,
        "mss": None if streams[0].is_udp else segments.mss,
        "retransmits": _sum("retransmits", streams, segments),
        "sent_packets": None if sent is None else sent.packets,
        "sent_bytes": None if sent is None or sent.packets is None else sent.bytes,
    }
    return {key: value for key, value in found.items() if value is not None}


def _received(end: End, streams: Sequence[StreamRecord], segments: Segments) -> int:
    counted = _sum("received_bytes", streams, segments)
    if counted is not None:
        return counted
    for total in (end.sum_received, end.sum):
        if total is not None and total.bytes is not None:
            return total.bytes
    raise ValueError("end: no sum_received.bytes")


def _sum(key: str, streams: Sequence[StreamRecord], segments: Segments) -> int | None:
    """The sum of a counter over streams; None if one of them does not have it."""
    values = [counters_of(stream, segments).get(key) for stream in streams]
    return sum(value for value in values if isinstance(value, int)) if None not in values else None
