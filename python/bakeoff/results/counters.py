"""counters.json: the counters of a whole run, as records that validate the file.

Keys that no measure reads are ignored. An engine omits counters that it does not have.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from bakeoff.errors import ResultsError
from bakeoff.results.summary import Record, wrong

Count = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Seconds = Annotated[float, msgspec.Meta(ge=-1e9, le=1e9)]


class Histogram(Record, frozen=True, kw_only=True):
    """A distribution of durations; if empty, only `n` is present."""

    n: Count
    mean_s: Seconds | None = None
    p50_s: Seconds | None = None
    p99_s: Seconds | None = None
    max_s: Seconds | None = None
    min_s: Seconds | None = None
    p5_s: Seconds | None = None
    p90_s: Seconds | None = None
    p95_s: Seconds | None = None
    p999_s: Seconds | None = None

    def __post_init__(self) -> None:
        """ValueError unless a distribution can be told of what was counted."""
        for key in ("mean_s", "p50_s", "p99_s", "max_s"):
            if self.n and getattr(self, key) is None:
                raise ValueError(f"Object missing required field `{key}`")


class Flow(Record, frozen=True, kw_only=True):
    """Counters of the end points of a flow."""

    cc: str | None = None
    ecn: str | None = None
    mss: Count | None = None
    sent_packets: Count | None = None
    sent_bytes: Count | None = None
    received_bytes: Count | None = None
    delivered: Count | None = None
    delivered_ce: Count | None = None
    received_ce: Count | None = None
    received_ect1: Count | None = None
    retransmits: Count | None = None
    acks: Count | None = None
    rtt: Histogram = Histogram(n=0)

    def __post_init__(self) -> None:
        """ValueError unless the marks that AccECN tells have a number of packets to be a share of."""
        for key in ("delivered", "delivered_ce"):
            if self.ecn == "accecn" and getattr(self, key) is None:
                raise ValueError(f"Object missing required field `{key}`")


class FlowAtQueue(Record, frozen=True, kw_only=True):
    """Counters of one flow's packets at a queue."""

    packets: Count
    marks: Count
    drops: Count
    sce_marks: Count = 0


class Queue(Record, frozen=True, kw_only=True):
    """Counters of a queue; `drops` by reason."""

    qdisc: str
    marks: Count
    drops: dict[str, Count]
    sent: Count | None = None
    sent_bytes: Count | None = None
    queued: Count = 0
    sce_marks: Count = 0
    flows: dict[str, FlowAtQueue] = msgspec.field(default_factory=dict)
    sojourn: Histogram = Histogram(n=0)


class Probe(Record, frozen=True, kw_only=True):
    """Counters of a probe."""

    sent: Count | None = None
    received: Count | None = None
    rtt: Histogram = Histogram(n=0)


class Conservation(Record, frozen=True, kw_only=True):
    """Totals for packet conservation."""

    sent: Count
    delivered: Count
    dropped: Count
    queued: Count


class TunnelDirection(Record, frozen=True, kw_only=True):
    """Counters of one direction of a tunnel."""

    sent: Count | None = None


class Stimulus(Record, frozen=True, kw_only=True):
    """What a stimulus did: when its effect began, and to how many packets it did something."""

    fired_s: list[Seconds]
    packets: Count


class Counters(Record, frozen=True, kw_only=True):
    """All counters of a run."""

    flows: dict[str, Flow] = msgspec.field(default_factory=dict)
    queues: dict[str, Queue] = msgspec.field(default_factory=dict)
    probes: dict[str, Probe] = msgspec.field(default_factory=dict)
    tunnels: dict[str, dict[str, TunnelDirection]] = msgspec.field(default_factory=dict)
    """By the tunnel's name, then by `sender>receiver`."""
    stimuli: dict[str, Stimulus] = msgspec.field(default_factory=dict)
    conservation: Conservation | None = None
    """Only of an engine that sees single packets and ACKs."""

    @classmethod
    def of(cls, content: object, place: str) -> Counters:
        """The counters in a JSON object. BakeoffError names `place` and the first key that is not of its form."""
        try:
            return msgspec.convert(content, cls)
        except msgspec.ValidationError as error:
            raise ResultsError(f"{place}: {wrong(cls, content, error)}") from None

    def flow(self, name: str) -> Flow:
        """The counters of a flow; empty if there are none."""
        return self.flows.get(name, _NO_FLOW)

    def probe(self, name: str) -> Probe:
        """The counters of a probe; empty if there are none."""
        return self.probes.get(name, _NO_PROBE)


_NO_FLOW: Final = Flow()
_NO_PROBE: Final = Probe()
