"""summary.json: the measures of a run, as records. `bakeoff.measure` computes them.

Names end in their unit: `_s` seconds, `_bps` bit/s; counts are packets, shares lie between 0 and 1.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from typing import Any, ClassVar, Final, Self, get_args, get_origin

import msgspec

from bakeoff.errors import ResultsError
from bakeoff.results import layout

FORMAT: Final = 6
"""The format that is written; this one and all before it can be read. Those before lack what has a default here."""


OF_GOODPUT: Final = 5
"""The first format whose `jain` and `ratio` are those of goodputs; before it they were those of delivery rates."""

_SCALARS: Final = frozenset({int, float, bool, str, type(None)})


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A part of summary.json: nothing changes after construction, and keys that this version does not know are left."""

    _optional: ClassVar[tuple[str, ...]] = ()
    """Fields that are written only where they say something."""

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        plain: dict[str, Any] = _plain(self)
        return plain


class Distribution(Record, frozen=True, kw_only=True):
    """Distribution of samples, in their unit; `n` is their number."""

    _optional: ClassVar[tuple[str, ...]] = ("min", "p5", "p90", "p95", "p999")

    n: int
    mean: float
    p50: float
    p99: float
    max: float
    min: float | None = None
    p5: float | None = None
    p90: float | None = None
    p95: float | None = None
    p999: float | None = None


class SteadyState(Record, frozen=True, kw_only=True):
    """A flow's rates in the measurement window."""

    delivery_rate_bps: float | None
    """Mean of `tcpi_delivery_rate`; None for what is no single TCP connection."""
    goodput_bps: float | None
    """Payload that reached the receiving socket."""


class CompletionTimes(Record, frozen=True, kw_only=True):
    """Completion times of objects, in seconds."""

    n: int
    mean: float
    geometric_mean: float
    p50: float
    p95: float
    p99: float
    max: float


class SizeClass(CompletionTimes, frozen=True, kw_only=True):
    """The same of the objects of `from_bytes` up to, and without, `to_bytes` (None: no upper end)."""

    from_bytes: int
    to_bytes: int | None


class Completion(Record, frozen=True, kw_only=True):
    """Objects of a `short` flow that began in the window."""

    begun: int
    ended: int
    """How many of them ended before the run did."""
    fct_s: CompletionTimes | None
    """None if none ended."""
    sizes: list[SizeClass]

    @property
    def unfinished(self) -> int:
        """How many of them had not ended with the run."""
        return self.begun - self.ended


class Video(Record, frozen=True, kw_only=True):
    """Quality of a video over the whole run."""

    segments: int
    startup_s: float | None
    """From opening to playing; None if it never played."""
    mean_rate_bps: float
    switches: int
    stalls: int
    stalled_s: float


class Spike(Record, frozen=True, kw_only=True):
    """The highest excursion of a round-trip time above the base RTT; all 0 if it never leaves the base by 10 ms."""

    height_s: float
    """Of its highest sample above the base RTT."""
    duration_s: float
    """For how long it stays 10 ms above the base RTT."""
    begin_s: float


class Flow(Record, frozen=True, kw_only=True):
    """The measures of one flow."""

    _optional: ClassVar[tuple[str, ...]] = (
        "fct", "video", "delay_s", "jitter_s", "loss", "spike", "starvation", "oscillations_per_s", "seen_marks",
        "seen_ect1", "echoed_marks",
    )  # fmt: skip

    cc: str | None
    """What it ran, as the engine reported it."""
    ecn: str | None
    """What was negotiated: `accecn`, `rfc3168`, `off`."""
    transport: str
    start_s: float
    bottleneck: str | None
    """The hop of its path with the lowest rate: `mid>srv`."""
    steady_state: SteadyState
    srtt_s: Distribution | None
    """Samples of the smoothed round-trip time in the window."""
    rtt_s: Distribution | None
    """Every ACK's sample of the round-trip time in the window."""
    retransmissions: int | None
    mark_fraction: float | None
    mark_fraction_of: str | None
    """Where `mark_fraction` comes from."""
    fct: Completion | None = None
    """Of a `short` flow."""
    video: Video | None = None
    """Of a `video`."""
    delay_s: Distribution | None = None
    """Of a `udp` flow: one-way delays of the datagrams sent in the window; None where its ends read two clocks."""
    jitter_s: float | None = None
    """Of a `udp` flow: mean of the interarrival jitter (RFC 3550) of the same."""
    loss: float | None = None
    """Of a `udp` flow: share of the datagrams sent in the window that never arrived."""
    spike: Spike | None = None
    """Of the smoothed round-trip time in the window."""
    starvation: float | None = None
    """Of a long TCP flow beside others at its queue: share of the window with a rate below 1/10 of its fair share."""
    oscillations_per_s: float | None = None
    """Of a long TCP flow: how often per second its rate crosses its own mean."""
    seen_marks: int | None = None
    """Its segments of data, or datagrams, that reached the receiver with CE, over the whole run: `tcpi_received_ce`."""
    seen_ect1: int | None = None
    """Likewise those that arrived as ECT(1): SCE marks if the flow sends ECT(0). Linux counts them with AccECN only."""
    echoed_marks: int | None = None
    """What the sender heard of CE marks over the whole run: `tcpi_delivered_ce`. With RFC 3168 feedback these are the
    segments that ACKs with ECE acknowledged."""


class FlowAtQueue(Record, frozen=True, kw_only=True):
    """Packets of one flow or probe at a queue, over the whole run."""

    packets: int
    marks: int
    drops: int
    sce_marks: int = 0


class Queue(Record, frozen=True, kw_only=True):
    """The measures of one queue."""

    qdisc: str
    """In tc's words, as it was in effect."""
    sojourn_s: Distribution | None
    """Of every packet that left in the window."""
    sojourn_mean_s: Distribution | None
    """As time passes: of the means over each sampling interval, on real Linux of what the qdisc told at each sample."""
    sojourn_little_s: Distribution | None = None
    """By Little's law from backlog and departures, on every engine in the same way: `bakeoff.measure.delays`."""
    parts: dict[str, Distribution] | None = None
    """Likewise of the queues that a qdisc has within: `L` and `C` of dualpi2."""
    marks: int
    """CE marks, over the whole run."""
    drops: int
    """For whatever reason, over the whole run."""
    dropped: dict[str, int]
    """By reason."""
    flows: dict[str, FlowAtQueue]
    _optional: ClassVar[tuple[str, ...]] = ("sojourn_little_s", "parts")

    @property
    def delay_s(self) -> Distribution | None:
        """Of every packet where the engine tells (the simulator), else as time passes."""
        return self.sojourn_s or self.as_time_passes_s

    @property
    def as_time_passes_s(self) -> Distribution | None:
        """Over time on every engine: the means of each interval or what the qdisc tells, else by Little's law."""
        return self.sojourn_mean_s or self.sojourn_little_s

    @property
    def delay_of(self) -> str | None:
        """Where `delay_s` comes from: `packets`, `qdisc` or `little`."""
        known = {"packets": self.sojourn_s, "qdisc": self.sojourn_mean_s, "little": self.sojourn_little_s}
        return next((of for of, delay in known.items() if delay), None)

    sce_marks: int = 0
    """SCE marks (ECT(0) turned into ECT(1)), over the whole run; no CE mark is among them."""


class Probe(Record, frozen=True, kw_only=True):
    """The measures of one latency probe, of the requests sent in the window."""

    _optional: ClassVar[tuple[str, ...]] = ("induced_s", "ipdv_s", "spike")

    rtt_s: Distribution | None
    loss: float | None
    jitter_s: float | None = None
    """Mean of the interarrival jitter (RFC 3550) of the answers."""
    induced_s: Distribution | None = None
    """Induced latency: the round trips less the base RTT."""
    ipdv_s: Distribution | None = None
    """|RTT - RTT before| of the answers (RFC 3393)."""
    spike: Spike | None = None


class RatedQueue(Record, frozen=True, kw_only=True):
    """A queue with a rate on the way of some flow or probe, or all queues of a hop that has several."""

    queue: str
    """`mid>srv`; `mid>srv/1` for what class 1 holds there."""
    hop: str
    """The interface, `mid>srv` for what leaves there and `srv<mid` for what arrives."""
    queues: list[str]
    """Names of the queues it is made of, as in `Summary.queues`."""
    rate_bps: float
    """Averaged over the window."""
    utilisation: float | None
    """Share of the rate that left in the window, from 0 to 1: all packets, whole frames."""
    flows: list[str]
    """Whose data passes it; none if only ACKs and probes do."""


class PhaseFlow(Record, frozen=True, kw_only=True):
    """Measures of a flow in one phase."""

    _optional: ClassVar[tuple[str, ...]] = ("recovery_s",)

    delivery_rate_bps: float | None
    goodput_bps: float | None
    srtt_s: Distribution | None
    delay_s: Distribution | None
    jitter_s: float | None
    loss: float | None
    recovery_s: float | None = None
    """From the phase's beginning until the smoothed RTT stays at most 10 ms above the base RTT; None: it never does."""

    @property
    def steady_state(self) -> SteadyState:
        """The rates, as a flow of the whole window has them."""
        return SteadyState(delivery_rate_bps=self.delivery_rate_bps, goodput_bps=self.goodput_bps)


class PhaseQueue(Record, frozen=True, kw_only=True):
    """Measures of a rate-limited queue in one phase."""

    _optional: ClassVar[tuple[str, ...]] = ("sce_marks", "sojourn_little_s")

    rate_bps: float
    utilisation: float | None
    sojourn_mean_s: Distribution | None
    """As `Queue.sojourn_mean_s`."""
    marks: int | None
    drops: int | None
    sce_marks: int | None = None
    """None of a queue that sets none, or that is not sampled for them."""
    sojourn_little_s: Distribution | None = None
    """As `Queue.sojourn_little_s`."""

    @property
    def delay_s(self) -> Distribution | None:
        """As time passes, else by Little's law."""
        return self.sojourn_mean_s or self.sojourn_little_s


class PhaseProbe(Record, frozen=True, kw_only=True):
    """Measures of a probe in one phase."""

    _optional: ClassVar[tuple[str, ...]] = ("recovery_s",)

    rtt_s: Distribution | None
    jitter_s: float | None
    loss: float | None
    recovery_s: float | None = None
    """As of a flow, of the probe's round trip."""


class Phase(Record, frozen=True, kw_only=True):
    """A part of the window in which nothing changes."""

    from_s: float
    to_s: float
    changes: list[str]
    """What changed at its beginning, in words; nothing at that of the first."""
    flows: dict[str, PhaseFlow]
    queues: dict[str, PhaseQueue]
    """By `RatedQueue.queue`."""
    probes: dict[str, PhaseProbe]


class Bottleneck(Record, frozen=True, kw_only=True):
    """The hop of a flow's path with the lowest rate."""

    queue: str
    """Its name in counters and series, without the class: `mid>srv`."""
    rate_bps: float
    """Its rate, averaged over time where it changes in the window."""


class Sharing(Record, frozen=True, kw_only=True):
    """Sharing of a bottleneck queue by two or more long TCP flows."""

    flows: list[str]
    jain: float | None
    """Jain's index of the goodputs; None if a flow has none, or all have 0."""
    ratio: float | None
    """The largest goodput over the smallest; None if the smallest is 0 or unknown."""
    jain_delivery_rate: float | None = None
    """Jain's index of the delivery rates; None where the engine does not report them."""
    ratio_delivery_rate: float | None = None


class Pair(Record, frozen=True, kw_only=True):
    """Convergence of the two long TCP flows of a run, from the start of the later one."""

    flows: tuple[str, str]
    """First the one that starts first."""
    convergence_s: float | None
    """Until the rates, averaged over a second, stay within a ratio of 1.5 for 5 s; None if they never do."""
    meet_s: float | None
    """Until the later one's rate first reaches the other's; None if it never does."""


class Check(Record, frozen=True, kw_only=True):
    """A comparison of a requested value with the value in effect."""

    check: str
    flow: str | None
    requested: str | int | None
    effective: str | int | None
    ok: bool


class Summary(Record, frozen=True, kw_only=True):
    """All measures of a run. A missing measure is None; `missing` has the reason."""

    format: int
    suite: str
    scenario: str
    run: str
    seed: int
    window_s: tuple[float, float]
    flows: dict[str, Flow]
    queues: dict[str, Queue]
    probes: dict[str, Probe]
    bottleneck: Bottleneck | None
    """Of the first flow."""
    utilisation: float | None
    """Of this bottleneck."""
    checks: list[Check]
    missing: list[str]
    rated: list[RatedQueue] = []
    """Every queue with a rate that somebody's packets pass; those with data first."""
    changes: list[str] = []
    """What changes inside the window: every number that is taken over the window averages over it."""
    phases: list[Phase] = []
    """The parts of the window between these changes; none if nothing changes, or too much to be told apart."""
    pair: Pair | None = None
    """Of a run with two long TCP flows that share a queue."""
    shared: dict[str, Sharing] = {}
    """By queue: each that two or more long TCP flows share. What follows is None unless there is exactly one."""
    jain: float | None = None
    ratio: float | None = None
    jain_delivery_rate: float | None = None
    ratio_delivery_rate: float | None = None

    @classmethod
    def from_json(cls, text: str | bytes, place: str) -> Self:
        """Read summary.json; `place` is its path. BakeoffError names the first key that is wrong, or the format."""
        try:
            found = msgspec.json.decode(text, type=cls)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ResultsError(
                f"{place}: {_wrong(cls, text, error)}; remove this file to recompute the measures from samples"
            ) from None
        if found.format not in range(1, FORMAT + 1):
            raise ResultsError(f"{place}: format: {found.format}; expected 1 to {FORMAT}")
        if found.format < OF_GOODPUT:
            found = msgspec.structs.replace(found, jain=None, ratio=None)
        return found

    def unlike(self, flows: Collection[str], probes: Collection[str]) -> str | None:
        """What is not of a run with these flows and probes, or of one part and not of another; None if nothing is."""
        known = set(flows)
        rated = [rated.queue for rated in self.rated if rated.flows]
        parts: list[tuple[str, Collection[str], Collection[str]]] = [
            ("flows", flows, self.flows),
            ("probes", probes, self.probes),
            *((f"rated.{rated.queue}.flows", (), set(rated.flows) - known) for rated in self.rated),
        ]
        for n, phase in enumerate(self.phases):
            parts += [(f"phases.{n}.flows", flows, phase.flows), (f"phases.{n}.probes", probes, phase.probes)]
            parts.append((f"phases.{n}.queues", rated, {name: 0 for name in phase.queues if name in rated}))
        for place, wanted, found in parts:
            for name in wanted:
                if name not in found:
                    return f"{place}: '{name}' of {layout.RUN} is missing"
            for name in found:
                if name not in wanted:
                    return f"{place}: '{name}' is not in {layout.RUN}"
        return None


@cache
def _nested(form: type[Record]) -> tuple[str, ...]:
    """The fields that may hold more than a number, a text or nothing."""
    fields = msgspec.structs.fields(form)
    return tuple(field.name for field in fields if not _SCALARS.issuperset(get_args(field.type) or (field.type,)))


def _plain(value: Any) -> Any:  # noqa: ANN401 (any part of a record)
    if isinstance(value, Record):
        found = msgspec.structs.asdict(value)
        for name in value._optional:
            if found[name] is None:
                del found[name]
        for name in _nested(type(value)):
            if name in found:
                found[name] = _plain(found[name])
        return found
    if isinstance(value, dict):
        return {key: of if type(of) in _SCALARS else _plain(of) for key, of in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(of) for of in value]
    return value


def _wrong(form: type[Record], text: str | bytes, error: Exception) -> str:
    """What is wrong with the file."""
    if not isinstance(error, msgspec.ValidationError):
        return f"the file: {error}"
    try:
        content = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as broken:  # behind the key that is wrong
        return f"the file: {broken}"
    return wrong(form, content, error)


def wrong(form: type[Record], content: Any, error: msgspec.ValidationError) -> str:  # noqa: ANN401 (any JSON)
    """Which key of the content is wrong, and why: with the names of flows and queues, which msgspec does not tell."""
    for field in msgspec.structs.fields(form) if isinstance(content, dict) else ():
        parts = content.get(field.encode_name)
        if get_origin(field.type) is not dict or not isinstance(parts, dict):
            continue
        for key, part in parts.items():
            try:
                msgspec.convert({key: part}, field.type)
            except msgspec.ValidationError as found:
                return _problem(str(found), f"{field.name}.{key}")
    return _problem(str(error), "")


def _problem(message: str, place: str) -> str:
    """`Expected ..., got ... - at `$[...].srtt_s`` with the key before the reason."""
    reason, _, path = message.partition(" - at `$")
    inside = path.rstrip("`").removeprefix("[...]").lstrip(".")
    lacking = re.search(r"missing required field `(.*)`", reason)
    keys = [key for key in (place, inside, lacking[1] if lacking else "") if key]
    return f"{'.'.join(keys) or 'the file'}: {reason}"
