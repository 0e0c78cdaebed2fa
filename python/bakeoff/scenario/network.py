"""The models of the network part of a scenario file, and the quantities that all of the file is written in."""

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, WrapValidator, model_validator

from bakeoff.scenario import run, units
from bakeoff.scenario.error import did_you_mean, quoted
from bakeoff.scenario.run import Cipher, Ecn


def _schema(pattern: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": list(examples)})


def bounded(parse: Callable[[object], float], least: str = "", most: str = "") -> WrapValidator:
    """Bounds of a quantity that `parse` reads, written as in a scenario, so that the message has their unit too."""

    def check(value: object, parsed: Callable[[object], float]) -> float:
        number = parsed(value)
        if least and number < parse(least):
            raise ValueError(f"{quoted(value)}; expected at least {least}")
        if most and number > parse(most):
            raise ValueError(f"{quoted(value)}; expected at most {most}")
        return number

    return WrapValidator(check)


Rate = Annotated[int, BeforeValidator(units.parse_rate), _schema(units.RATE_PATTERN, "50mbit", "1gbit")]
Time = Annotated[float, BeforeValidator(units.parse_time), _schema(units.TIME_PATTERN, "20ms", "60s")]
Size = Annotated[int, BeforeValidator(units.parse_size), _schema(units.SIZE_PATTERN, "1448B", "10MB")]
Percentage = Annotated[float, BeforeValidator(units.parse_percentage), _schema(units.PERCENTAGE_PATTERN, "1%")]
PositiveRate = Annotated[Rate, Field(gt=0)]
PositiveTime = Annotated[Time, Field(gt=0)]
PositiveSize = Annotated[Size, Field(gt=0)]
Interval = Annotated[Time, bounded(units.parse_time, least="1us")]
"""From one packet or burst to the next."""
LinkDelay = Annotated[Time, bounded(units.parse_time, most="1000s")]
"""Of one link."""
Stall = Annotated[tuple[float, float], BeforeValidator(units.parse_stall), _schema(units.STALL_PATTERN, "5ms every 1s")]
"""Length and period, in seconds."""


def _scheduled(pattern: str, example: str) -> WithJsonSchema:
    value = {"type": "string", "pattern": pattern, "examples": [example]}
    time = {"type": "string", "pattern": units.TIME_PATTERN, "examples": ["0s"]}
    step = {"type": "array", "prefixItems": [time, value], "minItems": 2, "maxItems": 2}
    return WithJsonSchema({"anyOf": [value, {"type": "array", "items": step, "minItems": 1}]})


# Values, or schedules of them, which `schedules` has turned into values and changes before they come here.
ScheduledRate = Annotated[PositiveRate, _scheduled(units.RATE_PATTERN, "50mbit")]
ScheduledTime = Annotated[LinkDelay, _scheduled(units.TIME_PATTERN, "20ms")]
ScheduledPercentage = Annotated[Percentage, _scheduled(units.PERCENTAGE_PATTERN, "1%")]
Dscp = Annotated[
    int,
    BeforeValidator(units.parse_dscp),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": 63},
                {"type": "string", "pattern": "^0[xX][0-9a-fA-F]{1,2}$"},
                {"enum": sorted(units.DSCP_NAMES)},
            ]
        }
    ),
]
Name = Annotated[str, Field(min_length=1, pattern=r"^[^\s/<>]+$")]
End = Annotated[str, Field(pattern=r"^[^\s<>]+>[^\s<>]+$")]
Direction = Literal["both", "up", "down"]
Side = Literal["egress", "ingress"]


_AMPDU: Final = 65535
"""Bytes: the longest aggregate of 802.11n."""


class Model(BaseModel):
    """A mapping of the scenario file: an unknown key is refused, with the nearest known one."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _know_every_key(cls, data: Any) -> Any:  # noqa: ANN401 (before validation)
        if isinstance(data, dict):
            known = _keys(cls)
            for key in data:
                if key not in known:
                    meant = _MEANT.get((cls.__name__, str(key)))
                    hint = f"; did you mean '{meant}'?" if meant else did_you_mean(str(key), known)
                    raise ValueError(f"unknown key '{key}'{hint}")
        return data


_MEANT: Final = {
    **{("Network", key): f"bottleneck: {{{key}: …}}" for key in ("rate", "qdisc", "shape")},
    ("Network", "bandwidth"): "bottleneck: {rate: …}",
    ("Network", "jitter"): "delay: {jitter: …}",
    ("Network", "loss"): "links: [{ends: …, loss: …}]",
    ("Bottleneck", "bandwidth"): "rate",
    ("Bottleneck", "queue"): "qdisc",
    ("Bottleneck", "aqm"): "qdisc",
    **{("FlowSpec", key): f"source: {{{key}: …}}" for key in ("bytes", "rate", "size", "periodic", "short", "video")},
    **{("FlowSpec", key): "cc" for key in ("congestion", "congestion_control", "tcp", "algorithm")},
    ("FlowSpec", "duration"): "stop",
    ("ProbeSpec", "interval"): "every",
    ("Measure", "window"): "steady_state: {window: …}",
}  # fmt: skip
"""Where a key belongs, or what it is called here, by the mapping that has none of the name."""


@cache
def _keys(form: type[Model]) -> dict[str, None]:
    """Those that a mapping may have, in their order."""
    return {field.alias or name: None for name, field in form.model_fields.items()}


class QdiscTree(Model):
    """A qdisc and what hangs below it, each in tc's own words."""

    qdisc: str
    """`htb default 1`, `fq_codel flows 1`, `netem delay 10ms`."""
    classes: list["ClassTree"] = []
    """Classes of a classful qdisc (htb, prio)."""
    child: "QdiscLine | None" = None
    """The child of a qdisc with one inner qdisc (netem, tbf)."""

    def filters(self, place: str) -> "list[tuple[str, PacketMatch]]":
        """All filters of the tree at `place`, with theirs."""
        found = self.child.filters(f"{place}.child") if self.child else []
        for number, entry in enumerate(self.classes):
            here = f"{place}.classes[{number}]"
            found += [(f"{here}.filters[{index}]", match) for index, match in enumerate(entry.filters)]
            found += entry.child.filters(f"{here}.child") if entry.child else []
        return found

    def resolved(self) -> run.Qdisc:
        """The same in the resolved run."""
        return run.Qdisc(
            qdisc=self.qdisc,
            classes=[entry.resolved() for entry in self.classes],
            child=self.child.resolved() if self.child else None,
        )


class ClassTree(Model):
    """A class of a classful qdisc."""

    id: str = Field(pattern="^[0-9a-f]+$")
    """Minor number in hexadecimal digits, as in tc's `1:MINOR`."""
    parent: str | None = Field(default=None, pattern="^[0-9a-f]+$")
    """The class that it borrows from (htb); none means below the root."""
    words: str = ""
    """tc's words after the kind: `rate 50mbit ceil 50mbit`; none for a band of prio."""
    filters: list["PacketMatch"] = []
    """Packets that belong here; none means only by `default`."""
    child: "QdiscLine | None" = None
    """The class's own qdisc; none means a pfifo of `tx_queue_len`."""

    def resolved(self) -> run.Class:
        """The same in the resolved run."""
        return run.Class(
            id=self.id,
            parent=self.parent,
            class_=self.words,
            filters=[match.resolved() for match in self.filters],
            child=self.child.resolved() if self.child else None,
        )


def _line(value: object) -> object:
    return {"qdisc": value} if isinstance(value, str) else value


QdiscLine = Annotated[QdiscTree, BeforeValidator(_line, json_schema_input_type=str | QdiscTree)]
"""One line in tc's words, or a tree of them."""


class PacketMatch(Model):
    """Which packets; absent fields match all."""

    proto: Literal["tcp", "udp", "icmp"] | None = None
    dscp: Dscp | None = None
    ecn: Ecn | None = None
    syn: bool | None = None
    """TCP packets with (true) or without (false) the SYN flag."""
    flow: str | None = None
    """A flow or probe by name, both directions."""

    def resolved(self) -> run.Match:
        """The same in the resolved run."""
        return run.Match(proto=self.proto, dscp=self.dscp, ecn=self.ecn, syn=self.syn, flow=self.flow)


Verb = Literal[
    "bleach_ecn",
    "bleach_ce",
    "dscp_to_ect1",
    "dscp_to_notect",
    "dscp_to_notect_ect1",
    "ect0_to_ect1",
    "ect1_to_ect0",
    "set_tos",
    "dscp_to_tos",
]


class MangleRule(Model):
    """Rewriting of arriving packets: a named rule, or a match with actions."""

    rule: Verb | None = None
    """A rewriting rule of the l4s-tests harness; `docs/scenario-language.md` says what each does."""
    dscp: Dscp | None = None
    """Which packets a named rule takes."""
    tos: int | None = Field(default=None, ge=0, le=255)
    """The new ToS byte, for `set_tos` and `dscp_to_tos`."""
    match: PacketMatch = PacketMatch()
    set_dscp: Dscp | None = None
    set_ecn: Ecn | None = None
    clear_syn_ecn: bool = False
    """Clear the ECN flags of a SYN, so that ECN is not negotiated."""


class PathMangleRule(MangleRule):
    """A rewriting rule for what arrives at a node from one neighbour."""

    at: str
    """The node that rewrites."""
    from_: str = Field(alias="from")
    """The neighbour that the packets come from."""


class NodeSpec(Model):
    """A node; what is absent comes from `hosts`."""

    kind: Literal["host", "bridge", "router"]
    sysctl: dict[str, int | str] = {}
    """Sysctls by full name, added to those of `hosts`."""
    hz: int | None = Field(default=None, ge=100, le=1000)
    """The kernel's timer frequency."""
    offloads: bool | None = None
    """Whether segmentation and receive offloads are on."""
    stall: Stall | None = None
    """When the host does not run."""
    timer_slack: LinkDelay | None = None
    """Most that the host's timers are late."""
    receive_coalescing: LinkDelay | None = None
    """How long the host's network card holds frames back after the first of a batch."""


def _kind(value: object) -> object:
    return {"kind": value} if isinstance(value, str) else value


class Wifi(Model):
    """Wi-Fi-like aggregation: the medium is waited for, then many packets leave and arrive together."""

    access: PositiveTime | Annotated[list[Time], Field(min_length=2, max_length=2)]
    """How long the medium is waited for, or `[least, most]`, drawn uniformly."""
    packets: int = Field(default=64, gt=0)
    """At most so many per aggregate."""
    bytes: PositiveSize = _AMPDU
    """At most so many per aggregate, but always a packet."""


class Docsis(Model):
    """DOCSIS-like upstream: a modem asks for room and sends when it is granted."""

    modem: str
    """The end that asks; the other direction is a plain wire."""
    interval: PositiveTime = 0.002
    """From request to request, and from grant to grant (MAP)."""
    pending: int = Field(default=2, gt=0)
    """Intervals from a request to its grant."""


class Police(Model):
    """A token-bucket policer: nothing waits."""

    rate: PositiveRate
    """What passes in the long run."""
    burst: PositiveSize
    """What passes at once."""
    exceed: Literal["drop"] | Dscp = "drop"
    """What becomes of the rest: `drop`, or the DSCP it gets."""
    from_: str | None = Field(default=None, alias="from")
    """The end whose packets are policed; both if absent."""


class ParallelPath(Model):
    """One of several parallel paths, a drop-tail FIFO before it."""

    weight: int = Field(default=1, ge=1, le=1000)
    """Its share of packets, or of flows."""
    rate: PositiveRate | None = None
    """Serialisation rate; none is instantaneous."""
    delay: LinkDelay = 0.0
    """Added to the link's."""
    loss: Percentage = 0.0
    """Random loss per packet."""
    limit: int = Field(default=1000, gt=0, le=2**31 - 1)
    """Packets that may stand before it."""


class Multipath(Model):
    """Parallel paths between two nodes."""

    by: Literal["packet", "flow"]
    """What is dealt out: packets by weighted round robin, or flows by hash."""
    paths: list[ParallelPath] = Field(min_length=1)


class Jitter(Model):
    """A random delay of each packet, as Wi-Fi has it; packets keep their order."""

    wifi: Annotated[PositiveTime, Field(le=0.1)]
    """About its mean: up to 1 ms noise of a millisecond, above also long delays in steps of 7.5 ms."""


class HalfDuplex(Model):
    """One transmitter for both directions: who sent last lets the other go first."""

    turnaround: Time = 0.0
    """How long the medium rests after each transmission."""


def _turnaround(value: object) -> object:
    return {} if value is True else value


class LinkSpec(Model):
    """A cable, or one of the path's with properties of its own."""

    ends: list[Name] = Field(min_length=2, max_length=2)
    """The two nodes."""
    rate: ScheduledRate | None = None
    """Serialisation rate, or `[[0s, 10mbit], [10s, 50mbit]]`; none is instantaneous (veth)."""
    delay: ScheduledTime = 0.0
    """Propagation delay, one way; or a schedule."""
    loss: ScheduledPercentage | dict[str, ScheduledPercentage] = 0.0
    """Random loss per packet, in both directions, or `{END: 1%}` for what END sends; or schedules."""
    mtu: int = Field(default=1500, ge=128, le=65_535)
    """In bytes."""
    down: list[Annotated[list[Time], Field(min_length=2, max_length=2)]] = []
    """Outages of both directions: `[[5s, 6s]]`."""
    trace: str | dict[str, str] | None = None
    """Capacity trace in mahimahi's format: a file, from where the scenario is; or one for each sending end."""
    wifi: Wifi | None = None
    docsis: Docsis | None = None
    police: Police | None = None
    half_duplex: Annotated[
        HalfDuplex | None, BeforeValidator(_turnaround, json_schema_input_type=Literal[True] | HalfDuplex | None)
    ] = None
    """`true`, or `{turnaround: 10us}`."""
    jitter: Jitter | None = None
    multipath: Multipath | None = None


class InterfaceSpec(Model):
    """One end of a cable."""

    node: str
    """The node it belongs to."""
    peer: str
    """The node at the other end."""
    egress: QdiscLine | None = None
    """Root qdisc for what leaves here."""
    ingress: QdiscLine | None = None
    """Qdisc of an ifb that receives what arrives here."""
    mangle: list[MangleRule] = []
    """Rewriting of what arrives here, after `ingress`."""
    tx_queue_len: int = Field(default=1000, gt=0, le=2**31 - 1)
    """`txqueuelen` in packets."""


class TunnelSpec(Model):
    """A tunnel between two hosts."""

    name: Name
    kind: Literal["wireguard", "ipsec", "fou", "gre", "vxlan"]
    ends: list[str] | None = Field(default=None, min_length=2, max_length=2)
    """Its two hosts; the ends of the path if absent."""
    replay_window: int | None = Field(default=None, ge=0, le=8192)
    """Anti-replay window of ipsec in packets, 0 for no check; 32 if absent. WireGuard's is 8128, before May 2020 it was
    1984."""
    cipher: Cipher | None = None
    """Of ipsec; aes-gcm if absent."""
    inner_hash: bool | None = None
    """Whether queues on the way tell the inner flows apart (true), or see one flow per direction (false). If absent, as
    with Linux on separate machines: true for fou (source port from the inner hash), gre (dissected) and vxlan."""

    @model_validator(mode="after")
    def _of_this_kind(self) -> "TunnelSpec":
        if self.cipher is not None and self.kind != "ipsec":
            raise ValueError(f"cipher: not valid for '{self.kind}'; expected ipsec")
        if self.replay_window is not None and self.kind not in ("ipsec", "wireguard"):
            raise ValueError(f"replay_window: not valid for '{self.kind}', which has no sequence numbers")
        return self


class Lane(Model):
    """What one direction of a bottleneck does differently."""

    shape: str | None = None
    """`htb rate 50mbit`; see `Bottleneck`."""
    rate: ScheduledRate | None = None
    """See `Bottleneck`."""
    qdisc: str | None = None
    """See `Bottleneck`."""


class Bottleneck(Lane):
    """A shaper with a queue, at the egress of a node of the path.

    `rate` is short for a shaper: `htb` with one class, or the `bandwidth` of a qdisc that shapes by itself (cake, …).
    With neither `rate` nor `shape` the qdisc is the root as it stands. A rate may be a schedule: `[[0s, 10mbit],
    [10s, 50mbit]]`.
    """

    at: str | None = None
    """The node; may be absent if there is only one between the hosts."""
    direction: Direction = "both"
    """Where it is installed: up (along the path), down (back), or both alike."""
    up: Lane | None = None
    """What differs along the path."""
    down: Lane | None = None
    """What differs back."""


def _listed(value: object) -> object:
    return [value] if isinstance(value, dict) else value


class Delay(Model):
    """The netem that makes the round-trip time: at the ingress of both sides of one node, half each way."""

    at: str | None = None
    """The node; may be absent if there is only one between the hosts."""
    limit: int = Field(default=1000000, gt=0)
    """netem's queue in packets."""
    jitter: str | None = None
    """Words after the delay: `1ms 10%` (jitter and correlation)."""
    extra: str | None = None
    """Further words of netem: `loss 1%`, `slot 800us 5ms`."""
    child: str | None = None
    """A qdisc under it: `netem delay 200us slot 800us 5ms packets 16 limit 10000`."""
    up: Time | None = None
    """One-way delay along the path, instead of half the RTT."""
    down: Time | None = None
    """One-way delay back, instead of half the RTT."""


class Network(Model):
    """The short form (`path`, `rtt`, `delay`, `bottleneck`, `mangle`), the graph form, or both: they add up."""

    path: list[Name] | None = Field(default=None, min_length=2)
    """Nodes in a row: a host at each end, bridges between (`nodes` may say otherwise)."""
    rtt: ScheduledTime | None = None
    """Base round-trip time of the path, or `[[0s, 20ms], [30s, 80ms]]`; a flow may have its own."""
    delay: Delay = Delay()
    """How the round-trip time is made."""
    bottleneck: Annotated[
        list[Bottleneck], BeforeValidator(_listed, json_schema_input_type=Bottleneck | list[Bottleneck])
    ] = []
    """One bottleneck, or several along the path."""
    mangle: list[PathMangleRule] = []
    """Rewriting of DSCP and ECN on the way."""
    nodes: dict[Name, Annotated[NodeSpec, BeforeValidator(_kind, json_schema_input_type=str | NodeSpec)]] = {}
    """Nodes by name: a kind (`host`, `bridge`, `router`) or a mapping."""
    links: list[LinkSpec] = []
    """Cables, besides those of the path."""
    interfaces: list[InterfaceSpec] = []
    """What is configured on ends of cables, besides what the short form builds."""
    tunnels: list[TunnelSpec] = []
