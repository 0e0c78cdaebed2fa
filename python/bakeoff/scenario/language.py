"""The models of a scenario file, after its placeholders are substituted; `docs/scenario-language.md` has examples.

Here is what can be said and how it is checked word by word; what it means for a network is in `dumbbell` and `resolve`.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, model_validator

from bakeoff.scenario import cc_words
from bakeoff.scenario.defaults import HOST_SYSCTLS
from bakeoff.scenario.network import (
    Direction,
    Dscp,
    End,
    Interval,
    Lane,
    LinkDelay,
    Model,
    Name,
    Network,
    Percentage,
    PositiveRate,
    PositiveSize,
    PositiveTime,
    QdiscTree,
    Rate,
    Side,
    Size,
    Stall,
    Time,
    bounded,
)
from bakeoff.scenario.run import Ecn
from bakeoff.scenario.units import parse_size, parse_time

Written = Annotated[PositiveSize, bounded(parse_size, most="1GB")]
VideoTime = Annotated[Time, bounded(parse_time, least="1ms", most="1000000s")]
"""Bytes that an application writes at once."""
_TAKEN: Final = r"^(every|next) [1-9][0-9]{0,3}$"


class Hosts(Model):
    """What all machines have in common."""

    sysctl: dict[str, int | str] = Field(default_factory=lambda: dict(HOST_SYSCTLS))
    """Sysctls of every host by full name; a mapping of one's own takes the place of the default, AccECN."""
    hz: int = Field(default=250, ge=100, le=1000)
    """The kernel's timer frequency, on every node."""
    offloads: bool = False
    """Whether segmentation and receive offloads are on, on every node."""
    stall: Stall | None = None
    """When a host does not run: it receives, sends and times out nothing; the first stall is at a random time."""
    timer_slack: LinkDelay = 0
    """Most that a timer of a host is late; each is late by a uniformly random time."""
    receive_coalescing: LinkDelay = 0
    """How long a host's network card holds frames back after the first of a batch (rx-usecs)."""


class PeriodicSource(Model):
    """Bursts at a fixed interval."""

    size: Written
    """Bytes per write or datagram."""
    count: int = Field(default=1, gt=0, le=10_000)
    """Writes or datagrams per burst."""
    every: Interval
    """From burst to burst."""


class ShortSource(Model):
    """A new connection per object: Poisson arrivals, lognormal sizes."""

    count: int = Field(gt=0, le=65_534)
    """Number of connections."""
    mean_gap: PositiveTime
    """Mean time between arrivals."""
    size_p5: PositiveSize
    """5th percentile of the size."""
    size_p95: PositiveSize
    """95th percentile of the size."""

    @model_validator(mode="after")
    def _ordered(self) -> "ShortSource":
        if self.size_p5 > self.size_p95:
            raise ValueError(f"size_p5 of {self.size_p5} bytes is above size_p95 of {self.size_p95} bytes")
        return self


class VideoSource(Model):
    """A segmented video, fetched by an adaptive player."""

    rates: list[PositiveRate] = Field(min_length=1)
    """Encoding rates, one per quality level."""
    segment: VideoTime
    """Length of a segment."""
    buffer: VideoTime
    """How much is buffered before it pauses."""

    @model_validator(mode="after")
    def _holds_a_segment(self) -> "VideoSource":
        if self.buffer < self.segment:
            raise ValueError(f"a buffer of {self.buffer:g} s is smaller than a segment of {self.segment:g} s")
        return self


class Source(Model):
    """What the application offers; exactly one key, or the word `bulk`."""

    bytes: PositiveSize | None = None
    """That much, then the end."""
    rate: PositiveRate | None = None
    """A constant rate of payload."""
    size: Written = 1448
    """With `rate`: bytes per write or datagram."""
    periodic: PeriodicSource | None = None
    short: ShortSource | None = None
    video: VideoSource | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> "Source":
        given = [key for key in ("bytes", "rate", "periodic", "short", "video") if getattr(self, key) is not None]
        if len(given) > 1:
            raise ValueError(f"has {' and '.join(given)}; expected one of bytes, rate, periodic, short, video")
        if "size" in self.model_fields_set and self.rate is None:
            raise ValueError("has 'size' without 'rate'; expected for example {rate: 5mbit, size: 1200B}")
        return self


def _source(value: object) -> object:
    if isinstance(value, str):
        if value != "bulk":
            raise ValueError(f"'{value}': unknown source; expected bulk, or a mapping such as {{bytes: 10MB}}")
        return {}
    return value


class FlowSpec(Model):
    """Traffic from one host to another."""

    name: Name = ""
    """Unique; with `count`, `{n}` is the number of the copy. Without one a flow has the name of its congestion control,
    or `udp`, with a number where that would stand twice: `cubic`, or `cubic-1` and `cubic-2`."""
    cc: str | list[str] = "cubic"
    """Congestion control with version and parameters: `prague@2020-08`. A list is dealt to the copies of `count`."""
    direction: Literal["up", "down"] = "up"
    """Along the path, or back; `from` and `to` say it by name."""
    from_: str | None = Field(default=None, alias="from")
    """Sending host; the path's first if absent."""
    to: str | None = None
    """Receiving host; the path's last if absent."""
    transport: Literal["tcp", "udp"] = "tcp"
    dscp: Dscp = 0
    """DSCP of data and ACKs: ToS 0x4c is DSCP 0x13."""
    ecn: Literal["on", "bleached", "ect1", "not-negotiated", "not-negotiated-ect1"] = "on"
    """What the middlebox does to the ECN field of this flow, chosen by its DSCP: nothing; `bleach_ecn`; `dscp_to_ect1`;
    `dscp_to_notect`; `dscp_to_notect_ect1`."""
    rtt: Time | None = None
    """Base round-trip time of its own: a class of the delay, chosen by DSCP."""
    start: Time = 0.0
    """When the connection is opened (start_jitter is added)."""
    stop: Time | None = None
    """When the source stops; the end of the run if absent."""
    source: Annotated[Source, BeforeValidator(_source, json_schema_input_type=Literal["bulk"] | Source)] = Source()
    """What the application offers: `bulk`, `{bytes: 10MB}`, `{rate: 5mbit, size: 1200B}`, `{periodic: …}`,
    `{short: …}`, `{video: …}`."""
    max_pacing_rate: PositiveRate | None = None
    """`SO_MAX_PACING_RATE`."""

    @model_validator(mode="before")
    @classmethod
    def _named_as_its_control(cls, data: object) -> object:
        """A name that is the congestion control's words (`name: "{cc}"`) has neither its path nor its parameters."""
        if isinstance(data, dict) and isinstance(data.get("name"), str) and data["name"] == data.get("cc"):
            return {**data, "name": cc_words.parse(data["name"]).versioned or data["name"]}
        return data

    tunnel: str | None = None
    """Name of the tunnel it goes through."""
    count: int | None = Field(default=None, gt=0, le=65_534)
    """So many copies, named with `{n}` (1, 2, …), or with `-1`, `-2`, … appended."""


class ProbeSpec(Model):
    """A latency probe."""

    name: Name
    type: Literal["icmp", "udp"] = "icmp"
    from_: str | None = Field(default=None, alias="from")
    """Asking host; the path's first if absent."""
    to: str | None = None
    """Answering host; the path's last if absent."""
    every: Interval
    """Time between requests."""
    size: Annotated[Size, bounded(parse_size, least="28B", most="65535B")] | None = None
    """IP packet size; 84 B for icmp, 60 B for udp if absent."""
    dscp: Dscp = 0
    ecn: Ecn = "not-ect"
    """ECN field of request and reply."""
    start: Time | None = None
    """The beginning of the run if absent, also with `idle`."""
    stop: Time | None = None
    """The end of the run if absent, also with `idle`."""
    tunnel: str | None = None
    """Name of the tunnel it goes through."""


class ClassWords(Model):
    """New words of a class."""

    id: str = Field(pattern="^[0-9a-f]+$")
    words: str
    """`rate 10mbit ceil 10mbit`."""


class LinkState(Model):
    """New properties of a link; what is absent stays."""

    rate: PositiveRate | None = None
    delay: LinkDelay | None = None
    loss: Percentage | None = None
    up: bool | None = None


def _replacement(value: object) -> object:
    if isinstance(value, dict):
        return (Lane if value.keys() & {"rate", "shape"} else QdiscTree).model_validate(value)
    return QdiscTree(qdisc=value) if isinstance(value, str) else value


class ChangeSpec(Model):
    """Something that changes during the run.

    At a bottleneck (`node`, `direction`) it is one of rate, rtt, change, replace. At any `interface` one of change,
    replace, set_class, link.
    """

    at: Time
    """When."""
    node: str | None = None
    """Which bottleneck (or delay); may be absent if there is one."""
    direction: Direction = "both"
    """Which direction of the bottleneck."""
    interface: End | None = None
    """An end of a cable, as `node>peer`, instead of a bottleneck."""
    side: Side = "egress"
    """With `interface`: which queue."""
    handle: str = ""
    """With `interface`: which qdisc of the tree; walks from the root: `""`, `"1"` (class 1's child), `"1/child"`."""
    rate: PositiveRate | None = None
    """New rate of the bottleneck's shaper."""
    rtt: Time | None = None
    """New base round-trip time."""
    change: str | None = None
    """`tc qdisc change` with this line: state kept."""
    replace: Annotated[
        QdiscTree | Lane | None, BeforeValidator(_replacement, json_schema_input_type=str | QdiscTree | Lane)
    ] = None
    """`tc qdisc replace` with this line: state lost. At a bottleneck, `{rate, qdisc}` or `{shape, qdisc}` replaces the
    shaper too."""
    set_class: ClassWords | None = None
    """`tc class change`."""
    link: LinkState | None = None
    """New properties of the link behind the interface."""


def _in_place(value: object) -> object:
    return "none" if value == "none" else _source(value)


class StimulusSpec(Model):
    """What is done to a flow when its sender comes into a state; one of drop, mark, delay, hold, rate, rtt, source.

    The simulator only.
    """

    name: Name = ""
    """Unique; what is done if absent: `drop`."""
    flow: str | None = None
    """Its name; may be absent if there is one flow."""
    state: str
    """`cc.mode == probe_bw and cc.in_flight > 100`: traced variables, or `time`. It happens when an ACK or a timeout
    makes all true."""
    after: Time = 0.0
    """So much later."""
    for_: PositiveTime | None = Field(default=None, alias="for")
    """How long; to the end of the run if absent."""
    times: Literal["once", "each"] = "once"
    """The first time, or each time."""
    drop: str | None = Field(default=None, pattern=_TAKEN)
    """Of the packets with data sent meanwhile: `every 10`, `next 3`."""
    mark: str | None = Field(default=None, pattern=_TAKEN)
    """The same for CE."""
    delay: LinkDelay | None = None
    """What is sent meanwhile arrives later, and is overtaken."""
    hold: bool = False
    """What is sent meanwhile arrives at the end of it, in order."""
    rate: PositiveRate | None = None
    """Rate of the bottleneck's shaper."""
    rtt: Time | None = None
    """Base round-trip time."""
    node: str | None = None
    """With `rate` and `rtt`: as for a change."""
    direction: Direction = "both"
    """With `rate` and `rtt`: as for a change."""
    source: Annotated[
        Literal["none"] | Source | None,
        BeforeValidator(_in_place, json_schema_input_type=Literal["bulk", "none"] | Source),
    ] = None
    """What the application offers meanwhile. What it wrote and TCP did not send is dropped."""


class Tools(Model):
    """Traffic tools that real engines use instead of their own agent; what they measure is taken over."""

    flows: Literal["iperf3", "netperf", "flent"] | None = None
    """What makes the flows."""
    probes: Literal["irtt"] | None = None
    """What makes the (UDP) probes."""


class MeasuredFlow(Model):
    """The flow that a program makes, for tables and pictures."""

    from_: str | None = Field(default=None, alias="from")
    """Sending host; the program's node if absent."""
    to: str | None = None
    """Receiving host; the program's node if `from` is another one."""
    cc: str = "none"
    """What it is controlled by, for people: the program's own output counts where it tells."""
    transport: Literal["tcp", "udp"] = "tcp"


class MeasuredProbe(Model):
    """The probe that a program makes, for tables and pictures."""

    to: str
    """Answering host."""
    type: Literal["icmp", "udp"] = "icmp"
    every: Interval = 1.0
    """Time between requests, as the program is told."""
    size: Annotated[Size, bounded(parse_size, least="28B", most="65535B")] | None = None
    """IP packet size, as the program is told; 84 B for icmp, 60 B for udp if absent."""


class ProgramSpec(Model):
    """A program of this machine, which runs in a node's network (engine `kernel`)."""

    node: str
    """Where it runs."""
    run: str
    """Program and arguments, without a shell: `iperf3 -c {srv} -t 10 -J`. `{srv}` is the address of the node srv,
    `{out}` the program's own folder, `{seed}` the run's seed. A program with a slash in its name lies beside the
    scenario's file."""
    name: Name = ""
    """Unique; the program's own name if absent, with a number where that would stand twice."""
    at: Time | None = None
    """When it starts; before the run if absent, as a server does. What starts in the run has to end by itself, unless
    `stop` says when it is ended."""
    stop: Time | None = None
    """When it is interrupted, as by Ctrl-C; after the run if absent."""
    exit: Annotated[int, Field(ge=-(2**63), lt=2**63)] | Literal["any"] = 0
    """The exit code that it has to end with, if it ends by itself."""
    reads: list[str] = Field(default_factory=list)
    """Files and folders that it reads besides those of the system; they lie beside the scenario's file, or below."""
    flow: MeasuredFlow | None = None
    """The flow that it makes: its output is JSON in the form of iperf3. Of an iperf3 client with `-J` it goes without
    saying."""
    probe: MeasuredProbe | None = None
    """The probe that it makes: its output is that of `ping -D`, or irtt's JSON. Of a client of irtt with `-o -`, and of
    ping with `-D`, it goes without saying."""

    @model_validator(mode="after")
    def _one_measure(self) -> "ProgramSpec":
        if self.flow is not None and self.probe is not None:
            raise ValueError("has 'flow' and 'probe'; expected one of them")
        return self


class SteadyState(Model):
    """The window that steady-state measures are taken in."""

    window: PositiveTime
    """Its length."""
    ends: str = Field(default="at end", pattern=r"^(at end|at .+|.+ before end|.+ before last sample)$")
    """`at end`, `2s before end`, `1s before last sample`, `at 58s`."""


class Measure(Model):
    """What is measured."""

    steady_state: SteadyState | None = None
    """The last two thirds of the run if absent."""


class Present(Model):
    """Hints for tables and plots; engines ignore them."""

    rate_axis: list[Rate] | None = Field(default=None, min_length=2, max_length=2)
    """Range of the rate axis: `[0mbit, 55mbit]`."""
    rtt_axis: list[Time] | None = Field(default=None, min_length=2, max_length=2)
    """Range of the delay axis: `[20ms, 70ms]`."""
    colours: dict[str, str] = Field(default_factory=dict)
    """Colour by flow or probe name, as matplotlib writes it."""


class Document(Model):
    """A congestion-control experiment: a network, flows through it, and how they vary."""

    scenario: Name
    """Its name; by habit the name of the file."""
    suite: Name | None = None
    """The set it belongs to; in the catalog the name of the folder."""
    title: str = ""
    """For people. `{axis}` is the label here."""
    source: str = ""
    """Where the experiment comes from."""
    profile: str | None = None
    """A file of the catalog's profiles that lies under this one: mappings are merged, everything else is replaced."""
    run: str | None = None
    """Template of run names; the labels of all axes, joined by '-', if absent. `{axis}` is the label here."""
    seeds: int = Field(default=1, gt=0)
    """Repetitions of every run, with the seeds 1 to N, if nobody says otherwise."""
    duration: PositiveTime
    """How long flows may send: of a run, without `idle`."""
    idle: Annotated[Time, bounded(parse_time, most="3600s")] = 0.0
    """So long the network is idle but for probes, before that and after it, as flent has it with 5 s. Every other time
    of the scenario counts from the end of the first idle time."""
    sample_interval: Annotated[Time, bounded(parse_time, least="100us")] | None = None
    """How often series are sampled; by default every 50 ms, and n times as seldom with more than 1000 (n - 1) flows."""
    start_jitter: Time = 0.01
    """Every flow starts later by a random time below this, drawn from the seed and its name: repetitions differ also
    where the path draws no random numbers."""
    network: Network
    hosts: Hosts = Hosts()
    flows: list[FlowSpec] = Field(default_factory=list)
    """Traffic; may be absent where programs make it."""
    probes: list[ProbeSpec] = Field(default_factory=list)
    changes: list[ChangeSpec] = Field(default_factory=list)
    """What changes during the run."""
    when: list[StimulusSpec] = Field(default_factory=list)
    """What is done when senders come into a state."""
    captures: list[End] = Field(default_factory=list)
    """Interfaces to capture packets at, as `node>peer`."""
    tools: Tools | None = None
    """Traffic tools instead of the engines' own agent: `{flows: iperf3, probes: irtt}`; real engines."""
    programs: list[ProgramSpec] = Field(default_factory=list)
    """Programs of this machine in the network; engine `kernel`."""
    measure: Measure = Measure()
    present: Present = Present()
    vary: dict[str, list[Any] | dict[str, Any]] | None = None
    """Axes of variation: a list, a mapping label -> value, or a list of mappings (axes that move together)."""
    exclude: list[dict[str, Any]] | None = None
    """Points of the matrix to leave out: axis -> label or labels."""
