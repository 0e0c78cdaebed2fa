"""What a capture tells (crates/trace/src/report.rs), as types: the keys that tables, folders and comparisons read."""

from __future__ import annotations

import msgspec


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """Keys that nothing here reads are passed over."""


class Distribution(Part, frozen=True, kw_only=True):
    """Many values, in the unit that the name of the distribution says; of none only `n` is there."""

    n: int = 0
    mean: float | None = None
    min: float | None = None
    p5: float | None = None
    p50: float | None = None
    p90: float | None = None
    p95: float | None = None
    p99: float | None = None
    p999: float | None = None
    max: float | None = None


class EcnCounts(Part, frozen=True, kw_only=True):
    """How many packets had which ECN field."""

    not_ect: int = 0
    ect1: int = 0
    ect0: int = 0
    ce: int = 0


class Endpoint(Part, frozen=True, kw_only=True):
    """One end of a flow."""

    address: str
    port: int

    def text(self) -> str:
        """`10.0.0.1:5201`, `[fe80::1]:5201`"""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


class Goodput(Part, frozen=True, kw_only=True):
    """Acknowledged payload over time, without what the first ACK acknowledges."""

    first_ack_s: float
    last_ack_s: float
    mean_bps: float | None = None
    min_bps: float | None = None
    max_bps: float | None = None


class Data(Part, frozen=True, kw_only=True):
    """Payload of one direction."""

    packets: int = 0
    frame_bytes: int = 0
    payload_bytes: int = 0
    ecn: EcnCounts = EcnCounts()
    sequence_bytes: int = 0
    acked_bytes: int = 0
    retransmits: int = 0
    retransmit_bytes: int = 0
    spurious_retransmits: int | None = None
    gaps: int = 0
    lost_bytes: int = 0
    reordered: int = 0
    reorder_max_packets: int = 0
    goodput: Goodput | None = None


class Acks(Part, frozen=True, kw_only=True):
    """ACKs that one direction carries."""

    pure: int = 0
    duplicates: int | None = None
    dsacks: int | None = None
    zero_windows: int = 0


class Marks(Part, frozen=True, kw_only=True):
    """Marks on the packets of one direction, and what the other end said of them."""

    ce: int = 0
    sce: int | None = None
    ece_acks: int | None = None
    esce_acks: int | None = None
    echoed_ce_packets: int | None = None
    echoed_ce_bytes: int | None = None


class TcpOptions(Part, frozen=True, kw_only=True):
    """TCP options of one end."""

    mss: int | None = None


class Direction(Part, frozen=True, kw_only=True):
    """One direction of a TCP flow."""

    packets: int = 0
    frame_bytes: int = 0
    ip_bytes: int = 0
    ecn: EcnCounts = EcnCounts()
    options: TcpOptions = TcpOptions()
    data: Data = Data()
    acks: Acks = Acks()
    marks: Marks = Marks()
    rtt_s: Distribution = Distribution()
    timestamp_rtt_s: Distribution = Distribution()


class FlowEcn(Part, frozen=True, kw_only=True):
    """How ECN is used on a flow."""

    mode: str = "none"
    chosen_by: str = ""


class DirectionSeries(Part, frozen=True, kw_only=True):
    """One direction over time; the counts are those of each interval."""

    goodput_bps: list[float] = []
    throughput_bps: list[float] = []
    rtt_s: list[float | None] = []
    ce: list[int] = []
    ect1: list[int] = []
    echoed: list[int] = []
    retransmits: list[int] = []
    in_flight_bytes: list[int] = []


class Series(Part, frozen=True, kw_only=True):
    """A flow over time. All lists are equally long."""

    interval_s: float
    time_s: list[float]
    up: DirectionSeries | None = None
    down: DirectionSeries | None = None


class Flow(Part, frozen=True, kw_only=True):
    """A TCP flow as seen at one interface."""

    number: int
    client: Endpoint
    server: Endpoint
    interface: int
    tunnels: list[str] = []
    start_s: float
    end_s: float
    begin_seen: bool
    end: str
    ecn: FlowEcn
    up: Direction
    down: Direction
    series: Series | None = None


class UdpDirection(Part, frozen=True, kw_only=True):
    """One direction of a UDP flow."""

    packets: int = 0
    ip_bytes: int = 0
    payload_bytes: int = 0
    throughput_bps: float | None = None
    ecn: EcnCounts = EcnCounts()
    gap_s: Distribution = Distribution()


class UdpSeries(Part, frozen=True, kw_only=True):
    """A UDP flow over time."""

    interval_s: float
    time_s: list[float]
    up_throughput_bps: list[float]
    down_throughput_bps: list[float]


class Udp(Part, frozen=True, kw_only=True):
    """A UDP flow."""

    number: int
    client: Endpoint
    server: Endpoint
    interface: int
    protocol: str | None = None
    start_s: float
    end_s: float
    up: UdpDirection
    down: UdpDirection
    series: UdpSeries | None = None


class Samples(Part, frozen=True, kw_only=True):
    """Every request in order of time; null where it was lost."""

    time_s: list[float]
    rtt_s: list[float | None]


class Asked(Part, frozen=True, kw_only=True):
    """Requests and their replies."""

    number: int
    client: Endpoint | str
    server: Endpoint | str
    interface: int
    start_s: float
    end_s: float
    requests: int
    replies: int
    duplicate_replies: int = 0
    late_replies: int = 0
    unmatched_replies: int = 0
    lost: int = 0
    rtt_s: Distribution = Distribution()
    ipdv_s: Distribution = Distribution()
    samples: Samples | None = None

    @property
    def ends(self) -> tuple[str, str]:
        """Who asks and who replies."""
        client, server = (end if isinstance(end, str) else end.text() for end in (self.client, self.server))
        return client, server


class Irtt(Asked, frozen=True, kw_only=True):
    """A test of irtt."""

    lost_up: int = 0
    lost_down: int = 0


class Echo(Asked, frozen=True, kw_only=True):
    """Echo requests with one identifier."""

    identifier: int = 0


class Spin(Part, frozen=True, kw_only=True):
    """Round trips by QUIC's spin bit."""

    state: str = ""
    rtt_s: Distribution = Distribution()


class QuicDirection(Part, frozen=True, kw_only=True):
    """One direction of a QUIC connection."""

    datagrams: int = 0
    payload_bytes: int = 0
    spin: Spin | None = None


class Quic(Part, frozen=True, kw_only=True):
    """A QUIC connection."""

    number: int
    client: Endpoint
    server: Endpoint
    interface: int
    versions: list[str] = []
    start_s: float
    end_s: float
    up: QuicDirection
    down: QuicDirection


class Datagrams(Part, frozen=True, kw_only=True):
    """What is not TCP."""

    udp_bytes: int = 0
    echo_bytes: int = 0
    beyond: int = 0
    udp: list[Udp] = []
    quic: list[Quic] = []
    irtt: list[Irtt] = []
    echo: list[Echo] = []


class Interface(Part, frozen=True, kw_only=True):
    """One interface of the capture."""

    name: str | None = None
    link_type: int = 0
    packets: int = 0
    read: bool = True


class Capture(Part, frozen=True, kw_only=True):
    """The file as a whole."""

    container: str
    compression: str = "none"
    interfaces: list[Interface] = []
    start_ns: int | None = None
    duration_s: float = 0.0
    packets: int = 0
    frame_bytes: int = 0
    ip_packets: int = 0
    ip_bytes: int = 0
    ecn: EcnCounts = EcnCounts()
    tcp_packets: int = 0
    udp_packets: int = 0
    icmp_packets: int = 0
    tunnel_packets: int = 0
    fragments: int = 0
    other_packets: int = 0
    not_ip: int = 0
    malformed: int = 0
    flows_beyond: int = 0
    notes: list[str] = []


class Report(Part, frozen=True, kw_only=True):
    """Everything about one capture."""

    format: int
    capture: Capture
    flows: list[Flow] = []
    datagrams: Datagrams = Datagrams()
