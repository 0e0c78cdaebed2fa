"""What is read of the JSON of iperf3: the fields of versions 3.0 to 3.19, of its client and its server.

Source: what iperf3 3.12 writes; iperf_api.c, iperf_tcp.c, iperf_udp.c and iperf_client_api.c of esnet/iperf. Versions
before 3.7 have no `sender`. A value that is no number is null, or `-nan` in older versions.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

Number = Annotated[float, msgspec.Meta(ge=0, le=1e18)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Change = Annotated[int, msgspec.Meta(ge=-(2**62), le=2**62)]
"""Below 0 where datagrams of the interval before came late."""
Retransmits = Annotated[int, msgspec.Meta(ge=-1, le=2**62)]
"""-1 where the system does not count them."""


class Connected(msgspec.Struct):
    """One stream, as the end sees it whose file it is."""

    socket: int
    local_host: str = "client"
    remote_host: str = "server"
    local_port: int | None = None
    remote_port: int | None = None


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

    test_start: TestStart | None = None
    connected: list[Connected] = []
    version: str = "iperf3"
    system_info: str = ""
    timestamp: Timestamp | None = None
    target_bitrate: Number | None = None
    tcp_mss_default: Count | None = None
    """`TCP_MAXSEG` of the control connection: that of a server is 0."""
    tcp_mss: Count | None = None
    """What `--set-mss` asked for."""
    accepted_connection: object = None
    """Of a server."""

    @property
    def is_servers(self) -> bool:
        """Whether the server wrote the document."""
        return self.accepted_connection is not None


class Stream(msgspec.Struct):
    """What one stream did in one interval."""

    socket: int
    end: Number
    seconds: Number
    bytes: Count
    bits_per_second: Number | None = None
    start: Number | None = None
    retransmits: Retransmits | None = None
    snd_cwnd: Count | None = None
    rtt: Count | None = None
    """Microseconds."""
    pmtu: Count | None = None
    jitter_ms: Number | None = None
    packets: Count | None = None
    lost_packets: Change | None = None
    omitted: bool = False
    sender: bool | None = None

    @property
    def begin(self) -> float:
        """When the interval begins, in seconds."""
        return max(self.end - self.seconds, 0.0) if self.start is None else min(self.start, self.end)

    @property
    def rate_bps(self) -> float:
        """Payload per second; 0 of an interval without length."""
        if self.bits_per_second is not None:
            return self.bits_per_second
        return 8 * self.bytes / self.seconds if self.seconds else 0.0


class Interval(msgspec.Struct):
    """All streams in one interval."""

    streams: list[Stream]


class Total(msgspec.Struct):
    """What one end of a stream did in the whole test."""

    socket: int | None = None
    bytes: Count | None = None
    packets: Count | None = None
    retransmits: Retransmits | None = None
    jitter_ms: Number | None = None
    lost_packets: Change | None = None


class Ends(msgspec.Struct):
    """Both ends of a stream; of UDP they are one."""

    sender: Total | None = None
    receiver: Total | None = None
    udp: Total | None = None

    @property
    def socket(self) -> int | None:
        """The stream's."""
        return next((end.socket for end in (self.sender, self.receiver, self.udp) if end is not None), None)


class End(msgspec.Struct):
    """The end of a document."""

    streams: list[Ends] = []
    sum: Total | None = None
    sum_sent: Total | None = None
    sum_received: Total | None = None
    sender_tcp_congestion: str | None = None
    receiver_tcp_congestion: str | None = None


class Server(msgspec.Struct):
    """What is read of the server's document inside of the client's."""

    start: Start | None = None
    intervals: list[Interval] = []
