"""Two sides packet by packet: which packets are the same, which differs first, and how far apart in time they are.

A packet is the same if sequence number, payload, flags and ECN field are, and without payload the acknowledgement
number too. Times are since the first packet of the connection. The same packets in the same order are a longest common
subsequence; the n-th of several equal packets is paired with the n-th of the other side.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from bakeoff.captures.packets import Connection, Integers, Packet, Stream
from bakeoff.errors import TraceError

BEFORE: Final = 10
"""Packets that are shown before the first that differs."""
BOUND_S: Final = 20e-6
"""How far apart packets may leave and count as at the same time."""

Kind = Literal["data", "ack"]


@dataclass(frozen=True)
class FirstDifference:
    """The first place at which the packets of the two sides differ."""

    index: int
    """Packets of this kind before it, all the same."""
    ours: Packet | None
    """None if this side ends there."""
    theirs: Packet | None
    what: tuple[str, ...]
    """`seq`, `ack`, `payload`, `flags`, `ecn`, or `end`."""
    before: tuple[tuple[Packet, Packet], ...]
    """At most ten pairs before it."""


@dataclass(frozen=True)
class Times:
    """Differences of time of the same packets, ours - theirs, in seconds."""

    p50_s: float
    """Of the absolute values."""
    p90_s: float
    max_s: float
    first_beyond_s: float | None
    """Time of the first packet more than the bound apart, None without one."""
    apart_from_s: float | None
    """Time of the first packet after which none is within the bound again, None if the last is."""


@dataclass(frozen=True)
class Compared:
    """The data packets, or the packets without payload, of one direction."""

    kind: Kind
    sender: str
    ours: int
    """Packets."""
    theirs: int
    same: int
    """Packets of both sides in the same order."""
    first: FirstDifference | None
    times: Times | None
    """None without a packet that is the same."""
    until_loss: bool | None
    """Data: whether the packets before the first retransmission of either side are the same and within the bound. None
    of packets without payload."""
    loss_s: float | None
    """Data: time of that retransmission, None without one."""
    matched_s: npt.NDArray[np.float64]
    """Times of the packets that are the same, ours."""
    apart_s: npt.NDArray[np.float64]
    """Ours - theirs, of each."""

    @property
    def identical(self) -> bool:
        """Whether both sides have the same packets in the same order."""
        return self.first is None

    @property
    def lockstep(self) -> bool:
        """Whether they also leave at the same time, within the bound."""
        return self.identical and (self.times is None or self.times.first_beyond_s is None)


@dataclass(frozen=True)
class ComparedFlow:
    """A connection on both sides."""

    ours: str
    theirs: str
    start_apart_s: float
    """How much later ours begins, each counted from its side's first connection."""
    parts: tuple[Compared, ...]
    """Data and other packets of both directions; those that neither side has are left out."""

    @property
    def data(self) -> list[Compared]:
        """Of directions with payload."""
        return [part for part in self.parts if part.kind == "data"]

    def first_times(self) -> tuple[float | None, float | None]:
        """Times of the first data packets that differ, ours and theirs, in seconds; None without one."""
        firsts = [part.first for part in self.data if part.first is not None]
        if not firsts:
            return None, None
        mine, other = (
            [one.time_s for one in side if one is not None]
            for side in zip(*((f.ours, f.theirs) for f in firsts), strict=True)
        )
        return min(mine, default=None), min(other, default=None)


@dataclass(frozen=True)
class PacketComparison:
    """What `compare` found."""

    bound_s: float
    flows: tuple[ComparedFlow, ...]
    unpaired: tuple[str, ...]
    """Connections that one side alone has."""

    @property
    def same(self) -> bool:
        """Whether all connections are on both sides, with the same data packets within the bound."""
        return not self.unpaired and all(part.lockstep for flow in self.flows for part in flow.data)


def compare(ours: Sequence[Connection], theirs: Sequence[Connection], *, bound_s: float = BOUND_S) -> PacketComparison:
    """Two sides, connections paired in order of their first packets. TraceError if one side has none."""
    if not ours or not theirs:
        raise TraceError("no connections on one side; expected TCP connections on both")
    pairs = list(zip(ours, theirs, strict=False))
    flows = tuple(
        ComparedFlow(
            ours=mine.name,
            theirs=other.name,
            start_apart_s=((mine.start_ns - ours[0].start_ns) - (other.start_ns - theirs[0].start_ns)) * 1e-9,
            parts=tuple(_parts(mine, other, bound_s)),
        )
        for mine, other in pairs
    )
    rest = (*ours[len(pairs) :], *theirs[len(pairs) :])
    return PacketComparison(bound_s, flows, tuple(connection.name for connection in rest))


def _parts(ours: Connection, theirs: Connection, bound_s: float) -> list[Compared]:
    found = []
    for sender, mine, other in ((ours.client, ours.up, theirs.up), (ours.server, ours.down, theirs.down)):
        kinds: tuple[Kind, Kind] = ("data", "ack")
        for kind in kinds:
            a, b = (stream.chosen((stream.payload > 0) == (kind == "data")) for stream in (mine, other))
            if len(a) or len(b):
                found.append(_compared(kind, sender, a, b, bound_s))
    return found


def _compared(kind: Kind, sender: str, ours: Stream, theirs: Stream, bound_s: float) -> Compared:
    keys = [_keys(kind, stream) for stream in (ours, theirs)]
    prefix = _same_until(keys[0], keys[1])
    mine, other = _common(keys[0], keys[1], prefix)
    matched_s = ours.at_ns[mine].astype(np.float64) * 1e-9
    apart_s = (ours.at_ns[mine] - theirs.at_ns[other]).astype(np.float64) * 1e-9
    losses = [at for stream in (ours, theirs) if (at := first_retransmission(stream)) is not None]
    loss_s = min(losses) if losses and kind == "data" else None
    until_loss = None
    if kind == "data":
        end = np.inf if loss_s is None else loss_s
        short = min(int(np.sum(stream.at_ns * 1e-9 < end)) for stream in (ours, theirs))
        if loss_s is None:
            short = max(len(ours), len(theirs))
        until_loss = prefix >= short and bool(np.all(np.abs(apart_s[:short]) <= bound_s))
    return Compared(
        kind=kind,
        sender=sender,
        ours=len(ours),
        theirs=len(theirs),
        same=len(mine),
        first=_first_difference(kind, ours, theirs, prefix),
        times=_times(matched_s, apart_s, bound_s) if len(mine) else None,
        until_loss=until_loss,
        loss_s=loss_s,
        matched_s=matched_s,
        apart_s=apart_s,
    )


def _fields(kind: Kind) -> tuple[str, ...]:
    return ("seq", "payload", "flags", "ecn") if kind == "data" else ("seq", "ack", "payload", "flags", "ecn")


def _keys(kind: Kind, stream: Stream) -> Integers:
    """One row per packet of what has to be equal."""
    return np.column_stack([getattr(stream, name) for name in _fields(kind)])


def _same_until(ours: Integers, theirs: Integers) -> int:
    """Packets at the beginning that are all the same."""
    short = min(len(ours), len(theirs))
    differ = np.flatnonzero((ours[:short] != theirs[:short]).any(axis=1))
    return int(differ[0]) if len(differ) else short


def _common(ours: Integers, theirs: Integers, prefix: int) -> tuple[Integers, Integers]:
    """Rows of both sides that are the same in the same order, of which the first `prefix` are."""
    places: dict[tuple[int, ...], list[int]] = {}
    for row, key in enumerate(map(tuple, theirs[prefix:].tolist()), prefix):
        places.setdefault(key, []).append(row)
    used: dict[tuple[int, ...], int] = {}
    pairs = []
    for row, key in enumerate(map(tuple, ours[prefix:].tolist()), prefix):
        nth = used.get(key, 0)
        if nth < len(places.get(key, ())):
            pairs.append((row, places[key][nth]))
            used[key] = nth + 1
    rising = _longest_rise([other for _, other in pairs])
    head = np.arange(prefix, dtype=np.int64)
    mine = np.array([pairs[at][0] for at in rising], np.int64)
    other = np.array([pairs[at][1] for at in rising], np.int64)
    return np.concatenate([head, mine]), np.concatenate([head, other])


def _longest_rise(numbers: Sequence[int]) -> list[int]:
    """Places of a longest strictly rising subsequence, by patience sorting."""
    tops: list[int] = []
    at: list[int] = []
    before: list[int] = []
    for place, number in enumerate(numbers):
        pile = bisect_left(tops, number)
        before.append(at[pile - 1] if pile else -1)
        tops[pile : pile + 1] = [number]
        at[pile : pile + 1] = [place]
    found = []
    place = at[-1] if at else -1
    while place >= 0:
        found.append(place)
        place = before[place]
    return found[::-1]


def first_retransmission(data: Stream) -> float | None:
    """Time of the first packet of `data` that begins below the highest byte sent, in seconds. None without one."""
    if not len(data):
        return None
    sent = np.maximum.accumulate(data.seq + data.payload)
    again = np.flatnonzero(data.seq[1:] < sent[:-1])
    return float(data.at_ns[again[0] + 1]) * 1e-9 if len(again) else None


def _first_difference(kind: Kind, ours: Stream, theirs: Stream, at: int) -> FirstDifference | None:
    mine = ours.packet(at) if at < len(ours) else None
    other = theirs.packet(at) if at < len(theirs) else None
    if mine is None and other is None:
        return None
    what = (
        ("end",)
        if mine is None or other is None
        else tuple(name for name in _fields(kind) if getattr(mine, name) != getattr(other, name))
    )
    before = tuple((ours.packet(row), theirs.packet(row)) for row in range(max(0, at - BEFORE), at))
    return FirstDifference(at, mine, other, what, before)


def _times(at_s: npt.NDArray[np.float64], apart_s: npt.NDArray[np.float64], bound_s: float) -> Times:
    size = np.abs(apart_s)
    beyond = np.flatnonzero(size > bound_s)
    within = np.flatnonzero(size <= bound_s)
    for_good = int(within[-1]) + 1 if len(within) else 0
    p50, p90 = (float(value) for value in np.percentile(size, (50, 90)))
    return Times(
        p50_s=p50,
        p90_s=p90,
        max_s=float(size.max()),
        first_beyond_s=float(at_s[beyond[0]]) if len(beyond) else None,
        apart_from_s=float(at_s[for_good]) if for_good < len(at_s) else None,
    )
