"""The resolved run: one experiment with every value filled in, in SI units.

The same contract as `crates/document/src/run.rs`, field by field and name by name;
`docs/resolved-run.md` explains it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Final, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from bakeoff.errors import ScenarioError

FORMAT: Final = 1

# The bounds of crates/document/src/bounds.rs: wider than any network.
Seconds = Annotated[float, Field(ge=0, le=1e9)]
Rate = Annotated[int, Field(ge=1, le=10**13)]
"""Bits per second."""
Probability = Annotated[float, Field(ge=0, le=1)]
Delay = Annotated[float, Field(ge=0, le=1000)]
Every = Annotated[float, Field(ge=1e-6, le=1e9)]
VideoSeconds = Annotated[float, Field(ge=1e-3, le=1e6)]
PayloadBytes = Annotated[int, Field(ge=1, le=10**15)]
Write = Annotated[int, Field(ge=1, le=10**9)]
"""Bytes of one write, or of one datagram."""
Burst = Annotated[int, Field(ge=1, le=10_000)]
Dscp = Annotated[int, Field(ge=0, le=63)]
I64 = Annotated[int, Field(ge=-(2**63), lt=2**63)]
U32 = Annotated[int, Field(ge=0, lt=2**32)]

Ecn = Literal["not-ect", "ect0", "ect1", "ce"]
Cipher = Literal["aes-gcm", "aes-cbc-hmac-sha256"]


class Part(BaseModel):
    """A part of the document: unknown keys are refused, nothing changes after construction."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True, defer_build=True
    )


class Sparse(Part):
    """A part of the document whose absent fields are not written."""

    @model_serializer(mode="wrap")
    def _drop_absent(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value not in (None, [])}


class Grown(Part):
    """A part with fields that older documents do not have: they are written only where they say something."""

    _later: ClassVar[tuple[str, ...]] = ()

    @model_serializer(mode="wrap")
    def _drop_unused(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {key: value for key, value in handler(self).items() if value or key not in self._later}


class Stall(Part):
    """Periods in which a machine does not run, the first at a random time."""

    length_s: Delay
    every_s: Every


class Node(Grown):
    """A host, bridge or router."""

    _later = ("stall", "timer_slack_s", "receive_coalescing_s")

    name: str
    kind: Literal["host", "bridge", "router"]
    sysctls: dict[str, str] = Field(default_factory=dict)
    hz: Annotated[int, Field(ge=100, le=1000)]
    offloads: bool
    stall: Stall | None = None
    timer_slack_s: Delay = 0
    """Its timers are late by a time drawn uniformly from 0 to this."""
    receive_coalescing_s: Delay = 0
    """How long its network card holds frames back after the first of a batch."""

    @property
    def ideal(self) -> bool:
        """Whether it runs all the time, with timers and a network card that are never late."""
        return self.stall is None and not self.timer_slack_s and not self.receive_coalescing_s


class Policed(Part):
    """What a policer does with packets above its rate: it gives them another DSCP."""

    dscp: int


class Policer(Part):
    """A policer of what one end of a cable sends."""

    rate_bps: Rate
    burst: int
    """In bytes."""
    exceed: Literal["drop"] | Policed


class Trace(Part):
    """When packets may leave, as mahimahi has it: the milliseconds, repeated from the last one on."""

    file: str
    ms: list[int]


class Link(Part):
    """A cable; `rate_bps` None is instantaneous (veth)."""

    ends: tuple[str, str]
    rate_bps: Rate | None = None
    delay_s: Delay = 0.0
    mtu: Annotated[int, Field(ge=128, le=65_535)] = 1500
    loss: Probability | dict[str, Probability] = 0.0
    """Probability per packet, or one for what each end sends; an end that is not named loses nothing."""
    features: dict[str, Any] = Field(default_factory=dict)

    @property
    def policers(self) -> dict[str, Policer]:
        """The feature `police` (docs/links.md), by the end that sends."""
        return {end: _part(Policer, given, "features.police") for end, given in self.features.get("police", {}).items()}

    @property
    def traces(self) -> dict[str, Trace]:
        """The feature `trace`, likewise."""
        return {end: _part(Trace, given, "features.trace") for end, given in self.features.get("trace", {}).items()}

    def loss_of(self, end: str) -> float:
        """The probability for what `end` sends."""
        return self.loss.get(end, 0.0) if isinstance(self.loss, dict) else self.loss


class Match(Sparse):
    """Which packets; absent fields match all."""

    proto: Literal["tcp", "udp", "icmp"] | None = None
    dscp: Dscp | None = None
    ecn: Ecn | None = None
    syn: bool | None = None
    flow: str | None = None


class Mangle(Sparse):
    """A rewriting rule."""

    match: Match = Match()
    set_dscp: Dscp | None = None
    set_ecn: Ecn | None = None
    clear_syn_ecn: bool | None = None


class Qdisc(Sparse):
    """A qdisc and what hangs below it, each in tc's own words."""

    qdisc: str
    classes: list["Class"] = Field(default_factory=list)
    child: "Qdisc | None" = None

    def lines(self, place: str = "") -> Iterator[tuple[str, str]]:
        """The words of this qdisc and of all below it, each with its place, which begins with `place`."""
        yield f"{place}.qdisc", self.qdisc
        for index, class_ in enumerate(self.classes):
            if class_.child is not None:
                yield from class_.child.lines(f"{place}.classes[{index}].child")
        if self.child is not None:
            yield from self.child.lines(f"{place}.child")


class Class(Sparse):
    """A class of a classful qdisc; `id` is tc's minor number in hexadecimal digits."""

    id: str
    parent: str | None = None
    class_: str = Field("", validation_alias="class", serialization_alias="class")
    filters: list[Match] = Field(default_factory=list)
    child: Qdisc | None = None


class Interface(Part):
    """One end of a cable: `node`, towards `peer`."""

    node: str
    peer: str
    egress: Qdisc | None = None
    ingress: Qdisc | None = None
    mangle: list[Mangle] = Field(default_factory=list)
    tx_queue_len: U32 = 1000


class Tunnel(Part):
    """A tunnel between two hosts."""

    name: str
    kind: Literal["wireguard", "ipsec", "fou", "gre", "vxlan"]
    ends: tuple[str, str]
    replay_window: U32 | None = None
    """In packets: of IPsec (0 for no check); WireGuard's is fixed."""
    cipher: Cipher | None = None
    """Of IPsec."""
    inner_hash: bool


class Bulk(Part):
    """Always more data."""

    kind: Literal["bulk"] = "bulk"


class Bytes(Part):
    """That many payload bytes, then the end."""

    kind: Literal["bytes"] = "bytes"
    bytes: PayloadBytes


class ConstantRate(Part):
    """A constant rate in writes or datagrams of `size` bytes."""

    kind: Literal["rate"] = "rate"
    rate_bps: Rate
    size: Write


class Periodic(Part):
    """`count` writes of `size` bytes every `every_s` seconds."""

    kind: Literal["periodic"] = "periodic"
    size: Write
    count: Burst
    every_s: Every


class Short(Part):
    """A new connection per object: when each begins, in seconds after the flow's start, and its payload bytes."""

    kind: Literal["short"] = "short"
    objects: list[tuple[Seconds, PayloadBytes]]


class Video(Part):
    """A segmented video, fetched by an adaptive player (`crates/workload/src/video.rs`)."""

    kind: Literal["video"] = "video"
    rates_bps: list[Rate]
    segment_s: VideoSeconds
    buffer_s: VideoSeconds


Source = Annotated[Bulk | Bytes | ConstantRate | Periodic | Short | Video, Field(discriminator="kind")]


class Flow(Grown):
    """Traffic from one host to another."""

    _later: ClassVar = ("cc_sha256",)

    name: str
    from_: str = Field(validation_alias="from", serialization_alias="from")
    to: str
    cc: str
    cc_sha256: str | None = None
    """Of the file that `cc` names (hexadecimal), or of a class's source text, if it is written in Python."""
    transport: Literal["tcp", "udp"] = "tcp"
    dscp: Dscp = 0
    start_s: Seconds
    stop_s: Seconds
    source: Source = Bulk()
    max_pacing_rate_bps: Rate | None = None
    tunnel: str | None = None


class Probe(Part):
    """A latency probe; `size` is the IP packet's."""

    name: str
    proto: Literal["icmp", "udp"]
    from_: str = Field(validation_alias="from", serialization_alias="from")
    to: str
    every_s: Every
    size: Annotated[int, Field(ge=28, le=65_535)]
    dscp: Dscp = 0
    ecn: Ecn = "not-ect"
    start_s: Seconds
    stop_s: Seconds
    tunnel: str | None = None


class ClassChange(Part):
    """`tc class change`: state kept."""

    kind: Literal["class-change"] = "class-change"
    side: Literal["egress", "ingress"]
    id: str
    class_: str = Field(validation_alias="class", serialization_alias="class")


class QdiscChange(Part):
    """`tc qdisc change`: state kept. `handle` walks from the root: `""`, `"1"`, `"1/child"`."""

    kind: Literal["qdisc-change"] = "qdisc-change"
    side: Literal["egress", "ingress"]
    handle: str
    qdisc: str


class QdiscReplace(Part):
    """`tc qdisc replace`: state lost."""

    kind: Literal["qdisc-replace"] = "qdisc-replace"
    side: Literal["egress", "ingress"]
    handle: str
    qdisc: Qdisc


class LinkChange(Part):
    """Link properties; None stays as it is."""

    kind: Literal["link"] = "link"
    rate_bps: Rate | None = None
    delay_s: Delay | None = None
    loss: Probability | None = None
    up: bool | None = None


Traffic = Flow | Probe
"""What goes from one host to another."""

Action = Annotated[ClassChange | QdiscChange | QdiscReplace | LinkChange, Field(discriminator="kind")]


class Change(Part):
    """Something that changes at `at_s`, at the interface of `node` towards `peer`."""

    at_s: Seconds
    node: str
    peer: str
    action: Action


class Term(Part):
    """A comparison of a traced variable (`cc.cwnd`), or of `time` in seconds, with a number."""

    variable: str
    is_: Literal["eq", "ne", "lt", "le", "gt", "ge"] = Field(validation_alias="is", serialization_alias="is")
    value: float


class Drop(Sparse):
    """Each `every`-th packet is lost, at most `most` of them."""

    kind: Literal["drop"] = "drop"
    every: Burst
    most: Burst | None = None


class Mark(Sparse):
    """The same of CE."""

    kind: Literal["mark"] = "mark"
    every: Burst
    most: Burst | None = None


class DelayPackets(Part):
    """Packets arrive later by `delay_s`."""

    kind: Literal["delay"] = "delay"
    delay_s: Delay


class Hold(Part):
    """Packets arrive when the effect ends."""

    kind: Literal["hold"] = "hold"


class ChangeSource(Part):
    """The application has another source; None: it writes nothing."""

    kind: Literal["source"] = "source"
    source: Source | None = None


class Placed(Part):
    """A change of the interface of `node` towards `peer`."""

    node: str
    peer: str
    action: Action


class ChangeNetwork(Part):
    """The network changes when the effect begins, and when it ends."""

    kind: Literal["change"] = "change"
    begin: list[Placed]
    end: list[Placed] = Field(default_factory=list)


Effect = Annotated[Drop | Mark | DelayPackets | Hold | ChangeSource | ChangeNetwork, Field(discriminator="kind")]


class Stimulus(Sparse):
    """What is done to a flow when its sender comes into a state."""

    name: str
    flow: str
    state: list[Term]
    after_s: Seconds = 0
    for_s: Seconds | None = None
    each: bool = False
    effect: Effect


class Tools(Sparse):
    """Traffic tools that real engines use instead of their own agent."""

    flows: Literal["iperf3", "netperf", "flent"] | None = None
    probes: Literal["irtt"] | None = None


class Program(Sparse):
    """A program of the machine that runs in a node's network."""

    name: str
    node: str
    argv: list[str]
    """Program and arguments. `{NODE}` stands for a node's address, `{out}` for the program's own folder, `{seed}` for
    the run's seed; `{{` and `}}` for braces."""
    start_s: Seconds | None = None
    """None: before the run."""
    stop_s: Seconds | None = None
    """When it is interrupted; None: not before the run is over."""
    exit: I64 | Literal["any"] = 0
    """The exit code that it has to end with, if it ends by itself."""
    reads: list[str] = Field(default_factory=list)
    """Files and folders of the scenario that it may read, with their whole path."""
    measures: Literal["flow", "probe"] | None = None
    """What its output tells: the flow, or the probe, of the same name."""


class Hints(Part):
    """What a scenario wishes of tables and plots."""

    model_config = ConfigDict(extra="ignore")

    rate_axis_bps: tuple[float, float] | None = None
    rtt_axis_s: tuple[float, float] | None = None
    colours: dict[str, str] = Field(default_factory=dict)
    """By the name of a flow or a probe."""


class Run(Grown):
    """One run."""

    _later: ClassVar = ("tools", "programs", "trace", "when")

    format: Literal[1] = FORMAT
    suite: str
    scenario: str
    run: str
    title: str = ""
    seed: Annotated[int, Field(ge=0, lt=2**64)]
    duration_s: Annotated[float, Field(gt=0, le=1e9)]
    sample_interval_s: Annotated[float, Field(ge=1e-4, le=1e9)]
    window_s: tuple[Seconds, Seconds]
    nodes: list[Node]
    links: list[Link]
    interfaces: list[Interface] = Field(default_factory=list)
    tunnels: list[Tunnel] = Field(default_factory=list)
    flows: list[Flow]
    probes: list[Probe] = Field(default_factory=list)
    changes: list[Change] = Field(default_factory=list)
    when: list[Stimulus] = Field(default_factory=list)
    captures: list[str] = Field(default_factory=list)
    tools: Tools | None = None
    programs: list[Program] = Field(default_factory=list)
    trace: list[Literal["cc"]] = Field(default_factory=list)
    point: dict[str, str] = Field(default_factory=dict)
    present: dict[str, Any] = Field(default_factory=dict)
    _source: str = PrivateAttr("")
    _own_code: frozenset[str] = PrivateAttr(frozenset())
    _executable: bool = PrivateAttr(False)
    _notices: tuple[str, ...] = PrivateAttr(())
    _text: str | None = PrivateAttr(None)
    """The document, once it has been asked for."""

    @property
    def source(self) -> str:
        """The file it was expanded from, for messages; empty if there is none. Not part of the document."""
        return self._source

    def __eq__(self, other: object) -> bool:
        """Whether both are the same document, wherever they came from."""
        return isinstance(other, Run) and all(getattr(self, f) == getattr(other, f) for f in Run.model_fields)

    __hash__ = None  # type: ignore[assignment]

    def from_file(self, path: str) -> "Run":
        """Note where it came from."""
        self._source = path
        return self

    @property
    def notices(self) -> tuple[str, ...]:
        """What was done to the scenario that its reader may not expect, for messages. Not part of the document."""
        return self._notices

    def with_notices(self, notices: tuple[str, ...]) -> "Run":
        """Note such things."""
        self._notices = notices
        return self

    @property
    def own_code(self) -> frozenset[str]:
        """Which `cc` in Python need no permission to be executed; none in a document that was read."""
        return self._own_code

    @property
    def executable(self) -> bool:
        """Whether engines may execute the files that it names (`python_cc.permitted`). Not part of the document."""
        return self._executable

    def with_own_code(self, ccs: Iterable[str]) -> "Run":
        """Note which `cc` in Python are its own."""
        self._own_code = frozenset(ccs)
        return self

    def as_executable(self) -> "Run":
        """The same run, whose files engines may execute."""
        run = self.model_copy()
        run._executable = True
        return run

    @property
    def key(self) -> str:
        """`suite/scenario/run`, with `~seedN` for repetitions: unique in a campaign, and a path of three parts.

        A published run name may hold a slash (`pie(100p/5ms)`); here it is an underscore.
        """
        return run_key(self.suite, self.scenario, self.run, self.seed)

    @property
    def name(self) -> str:
        """`suite/scenario/run` as it was published, the same for all repetitions."""
        return f"{self.suite}/{self.scenario}/{self.run}"

    @property
    def n_flows(self) -> int:
        """Flows, and objects of short flows: what the size of the document grows with."""
        return sum(len(flow.source.objects) if isinstance(flow.source, Short) else 1 for flow in self.flows)

    def to_json(self) -> str:
        """The document, on one line."""
        if self._text is None:
            self._text = self.model_dump_json()
        return self._text

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy, which has a document of its own if something is updated."""
        copy = super().model_copy(update=update, deep=deep)
        if update:
            copy._text = None
        return copy

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process needs the document anyway, and reads it faster than it puts all parts together.
        return _sent, (self.to_json(), self._source, self._own_code, self._executable)

    @classmethod
    def from_json(cls, text: str | bytes, *, stored: bool = False) -> Self:
        """Read a document; BakeoffError names the first place that is wrong.

        A `stored` one is of another day: what it has beyond the keys of this version is passed over. It was written by
        a program, so that a number that is a text is an error.
        """
        try:
            return cls.model_validate_json(text, strict=stored or None, extra="ignore" if stored else None)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "document"
            raise ScenarioError(f"{place}: {first['msg']}", place="resolved run") from None

    @property
    def hints(self) -> Hints:
        """What `present` holds of today's wishes. ScenarioError if one has another form."""
        return _part(Hints, self.present, "present")

    @property
    def traffic(self) -> list[Traffic]:
        """All flows, then all probes."""
        return [*self.flows, *self.probes]

    def named(self, name: str) -> Traffic:
        """The flow or the probe of this name. KeyError if there is none."""
        for one in self.traffic:
            if one.name == name:
                return one
        raise KeyError(name)

    def qdiscs(self) -> Iterator[tuple[str, str]]:
        """The words of every qdisc, those of timed changes too, with its place in the document."""
        for index, interface in enumerate(self.interfaces):
            for side, tree in (("egress", interface.egress), ("ingress", interface.ingress)):
                if tree is not None:
                    yield from tree.lines(f"interfaces[{index}].{side}")
        for index, change in enumerate(self.changes):
            if isinstance(change.action, QdiscChange):
                yield f"changes[{index}].action.qdisc", change.action.qdisc
            elif isinstance(change.action, QdiscReplace):
                yield from change.action.qdisc.lines(f"changes[{index}].action.qdisc")

    def by_programs(self, what: Literal["flow", "probe"]) -> set[str]:
        """The names of the flows, or of the probes, that programs make."""
        return {program.name for program in self.programs if program.measures == what}


P = TypeVar("P", bound=Part)


def _part(form: type[P], given: object, place: str) -> P:
    """A part of the document that the document itself leaves open. ScenarioError names its `place`."""
    try:
        return form.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise ScenarioError(
            f"{'.'.join([place, *map(str, first['loc'])])}: {first['msg']}", place="resolved run"
        ) from None


def _sent(text: str, source: str, own_code: frozenset[str], executable: bool) -> Run:
    """The run that another process sent."""
    run = Run.model_validate_json(text)
    run._source, run._own_code, run._executable, run._text = source, own_code, executable, text
    return run


def run_key(suite: str, scenario: str, run: str, seed: int) -> str:
    """See `Run.key`."""
    return f"{suite}/{scenario}/{run.replace('/', '_')}" + (f"~seed{seed}" if seed > 1 else "")
