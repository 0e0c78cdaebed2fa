"""The series of a data file of Flent: their points in every version of the format, and what they are to us."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Annotated, Any, Final, Literal

import msgspec

from bakeoff.errors import RecordingError
from bakeoff.imports.document import ABSENT, Keys, Scalar, decoded, is_there, need_few
from bakeoff.results.sample_rows import Row, lengths

Kind = Literal["flow", "probe", "queue"]

STEP_S: Final = 0.2
"""Flent's own STEP_SIZE."""

_MOST_POINTS: Final = 2_000_000
"""Of a file, which take two gigabytes: ten flows sampled every 50 ms for an hour make 1.4 million."""
_MOST_VALUES: Final = 8_000_000
"""Of a file that `bakeoff export` wrote, and of numbers on the grid."""
MOST_SERIES: Final = 10_000
"""Of a file. Each takes 0.8 ms of processor time at most, so that this many take eight seconds."""
_MOST: Final = 1e15
"""Of a sample, in Flent's units. Sums of such values over a file are finite."""
_Value = Annotated[float, msgspec.Meta(ge=-_MOST, le=_MOST)]
_MOST_GAP: Final = 100_000
"""Requests without an answer in a row that are told by the numbers around them."""

OWN: Final = "bakeoff_"
"""Begins the keys of samples that Flent has no key for, in files that `bakeoff export` wrote; their units are ours."""
_FLOW: Final = {
    "val": ("goodput", 1e6),
    "tcp_cwnd": ("cwnd", 1.0),
    "tcp_rtt": ("srtt", 1e-3),
    "tcp_delivery_rate": ("delivery_rate", 1e6),
    "tcp_pacing_rate": ("pacing_rate", 1e6),
}
_QUEUE: Final = {
    "backlog_bytes": ("backlog", 1.0),
    "backlog_pkts": ("qlen", 1.0),
    "sent_bytes": ("sent", 1.0),
    "delay": ("sojourn", 1e-3),
}
_COUNTED: Final = {"dropped": "drops", "ecn_mark": "marks"}


class Point(msgspec.Struct, gc=False):
    """What is read of an entry of `raw_values`, in Flent's units: Mbit/s, ms, packets, bytes."""

    t: _Value | None = None
    val: _Value | None = None
    dur: _Value | None = None
    seq: _Value | str | None = None
    lost: bool | None = None
    tcp_cwnd: _Value | None = None
    tcp_rtt: _Value | None = None
    tcp_delivery_rate: _Value | None = None
    tcp_pacing_rate: _Value | None = None
    backlog_bytes: _Value | None = None
    backlog_pkts: _Value | None = None
    sent_bytes: _Value | None = None
    dropped: _Value | None = None
    ecn_mark: _Value | None = None
    delay: _Value | None = None


class Meta(msgspec.Struct):
    """What is read of an entry of `metadata.SERIES_META`."""

    UNITS: Scalar = None
    CONG_CONTROL: Scalar = None
    TCP_MSS: Scalar = None
    TCP_RETRANSMIT: Scalar = None
    BYTES_RECVD: Scalar = None
    DATA_TOS: Scalar = None
    UPSTREAM_TOS: Scalar = None
    PACKETS_SENT: Scalar = None
    PACKETS_RECEIVED: Scalar = None
    SEND_SIZE: Scalar = None
    RAW_VALUES: msgspec.Raw = ABSENT
    """In version 1."""

    def count(self, key: str) -> int | None:
        """A number of packets or bytes; None where it is not told, which netperf says as -1 or nothing."""
        value = getattr(self, key)
        try:
            number = float(value)
        except (TypeError, ValueError):
            return None
        return int(number) if 0 <= number < 1 << 63 else None


@dataclass
class Points:
    """The points of each series, by its name; of older files their times count from T0."""

    of: Mapping[str, Sequence[Point]]
    is_relative: bool

    def earliest(self) -> float | None:
        """The first time."""
        return min((p.t for points in self.of.values() for p in points if p.t is not None), default=None)


def points_of(keys: Keys, metas: Mapping[str, Meta], version: int, place: str) -> Points:
    """The points of every series, in the units of version 4. BakeoffError names the first that is none."""
    raw = keys.get("raw_values") if version > 1 else None
    found: dict[str, list[Point]]
    if raw is not None:
        _need_room(raw, f"{place}: raw_values")
        found = decoded(raw, dict[str, list[Point]], f"{place}: raw_values")
    else:
        found = {}
        for name, meta in metas.items():
            if is_there(meta.RAW_VALUES):
                _need_room(meta.RAW_VALUES, f"{place}: metadata.SERIES_META.{name}.RAW_VALUES")
                found[name] = decoded(meta.RAW_VALUES, list[Point], f"{place}: metadata.SERIES_META.{name}.RAW_VALUES")
    if not any(found.values()):
        return Points(_of_grid(keys, place), is_relative=True)
    if version < 4:
        _convert(found)
    return Points(found, is_relative=False)


def _need_room(raw: msgspec.Raw, place: str) -> None:
    need_few(raw, b"{", _MOST_POINTS, place, "points")
    need_few(raw, b"[", MOST_SERIES, place, "series")


def _of_grid(keys: Keys, place: str) -> dict[str, list[Point]]:
    """The interpolated values as points, where a file has no others: their times count from T0."""
    for name, most in (("results", _MOST_VALUES), ("x_values", _MOST_POINTS)):
        need_few(keys[name], b",", most, f"{place}: {name}", "values")
    need_few(keys["results"], b"[", MOST_SERIES, f"{place}: results", "series")
    grid = decoded(keys["x_values"], list[_Value], f"{place}: x_values")
    results = decoded(keys["results"], dict[str, list[_Value | None]], f"{place}: results")
    need = sum(value is not None for values in results.values() for value in values)
    if need > _MOST_POINTS:
        raise RecordingError(f"{place}: results: {need:,} values; expected at most {_MOST_POINTS:,}")
    found = {}
    for name, values in results.items():
        if len(values) != len(grid):
            raise RecordingError(
                f"{place}: results.{name}: has {len(values)} values; expected {len(grid)}, the length of x_values"
            )
        found[name] = [Point(t=at, val=value) for at, value in zip(grid, values, strict=True) if value is not None]
    return found


def _convert(found: Mapping[str, list[Point]]) -> None:
    """What version 4 changed: round trips of netperf as times, and drops and marks per interval."""
    for name, points in found.items():
        if "UDP" in name:
            for point in points:
                if point.dur is not None and point.val is not None:
                    point.val = 1000 / point.val if abs(point.val) > 1000 / _MOST else None
        for key in _COUNTED:
            last = None
            for point in points:
                count = getattr(point, key)
                if count is not None:
                    setattr(point, key, count - last if last is not None else 0.0)
                    last = count


@dataclass
class Series:
    """A flow, a probe or a queue of a data file."""

    kind: Kind
    name: str
    key: str
    """Its name in the file."""
    points: Sequence[Point]
    meta: Meta = field(default_factory=Meta)
    step_s: float = STEP_S
    """How long an interval is where the file does not tell it."""

    def intervals(self, t0: float) -> Iterator[tuple[float, float, float]]:
        """(end [s], length [s], rate [bit/s]) of the interval of each of a flow's points; ends count from `t0`."""
        points = sorted((p for p in self.points if p.t is not None and p.val is not None), key=lambda p: p.t or 0.0)
        ends = [((point.t or 0.0) - t0, point.dur) for point in points]
        for (end, _), length, point in zip(ends, lengths(ends, self.step_s), points, strict=True):
            yield end, length, (point.val or 0.0) * 1e6

    @property
    def transport(self) -> Literal["tcp", "udp"]:
        """Whether a flow has a congestion window."""
        return "udp" if self.key.startswith("UDP") else "tcp"

    @property
    def is_download(self) -> bool:
        """Whether its data comes from the remote host."""
        return "download" in self.key.lower()

    @property
    def numbered(self) -> list[tuple[int, Point]]:
        """A probe's points with the numbers of their requests, in their order; none if they have none.

        A number that comes again (ping tells of duplicates) counts once.
        """
        several: dict[int, Point] = {}
        for point in self.points:
            if not isinstance(point.seq, float) or not point.seq.is_integer():
                return []
            several.setdefault(int(point.seq), point)
        return sorted(several.items(), key=lambda at: at[0])

    @property
    def tells_loss(self) -> bool:
        """Whether it is known which of a probe's requests had no answer."""
        return bool(self.numbered)


def rows_of(series: Series, t0: float) -> Iterator[Row]:
    """The samples of a series, at times that count from `t0` [s of Unix time], in our units.

    A rate stands for the interval that ends there, and `received` is what these rates amount to. A round trip stands
    where the request was sent.
    """
    if series.kind == "flow":
        yield from _flow(series, t0)
    elif series.kind == "probe":
        yield from _probe(series, t0)
    else:
        yield from _queue(series, t0)


def _values(series: Series, t0: float, key: str) -> list[tuple[float, float]]:
    """(time, value) of all points that have the key, in order of time."""
    found = [(p.t - t0, value) for p in series.points if p.t is not None and (value := getattr(p, key)) is not None]
    return sorted(found)


def _flow(series: Series, t0: float) -> Iterator[Row]:
    for key, (metric, unit) in _FLOW.items():
        for time, value in _values(series, t0, key):
            yield time, "flow", series.name, metric, value * unit
    handed = 0.0
    for end, lasted, rate in series.intervals(t0):
        handed += rate * lasted / 8
        yield end, "flow", series.name, "received", handed


def _probe(series: Series, t0: float) -> Iterator[Row]:
    sent = {}
    for point in series.points:
        if point.t is None or (point.val is None and not point.lost):
            continue
        # Netperf's round trips are means over `dur`; others are told as the answer came.
        took = (point.val or 0.0) * 1e-3 if point.dur is None and not point.lost else 0.0
        time = sent[id(point)] = point.t - took - t0
        if point.lost:
            yield time, "probe", series.name, "lost", 1.0
        else:
            yield time, "probe", series.name, "rtt", (point.val or 0.0) * 1e-3
    for (before, one), (after, other) in pairwise(series.numbered):
        if after - before - 1 > _MOST_GAP or id(one) not in sent or id(other) not in sent:
            continue
        start, end = sent[id(one)], sent[id(other)]
        for number in range(before + 1, after):
            yield start + (end - start) * (number - before) / (after - before), "probe", series.name, "lost", 1.0


def _queue(series: Series, t0: float) -> Iterator[Row]:
    for key, (metric, unit) in _QUEUE.items():
        for time, value in _values(series, t0, key):
            yield time, "queue", series.name, metric, value * unit
    for key, metric in _COUNTED.items():
        total = 0.0
        for time, value in _values(series, t0, key):
            total += value
            yield time, "queue", series.name, metric, total


def own_rows(raw: msgspec.Raw, series: Mapping[str, tuple[str, str]], t0: float, place: str) -> Iterator[Row]:
    """The samples of a file that `bakeoff export` wrote: as in other files, and what Flent has no key for besides."""
    _need_room(raw, place)
    need_few(raw, b":", _MOST_VALUES, place, "values")
    points = decoded(raw, dict[str, list[Point]], place)
    others = decoded(raw, dict[str, list[dict[str, Scalar]]], place)
    for key, (kind, name) in series.items():
        if key not in points or kind not in ("flow", "probe", "queue"):
            continue
        names = {str(k) for entry in others[key] for k in entry if k.startswith(OWN)}
        for row in rows_of(Series(kind, name, key, points[key]), t0):  # type: ignore[arg-type]
            if f"{OWN}{row[3]}" not in names:
                yield (round(row[0], 6), *row[1:])
        for entry in others[key]:
            at = entry.get("t")
            for word, value in entry.items():
                if word.startswith(OWN) and isinstance(at, float) and isinstance(value, float):
                    yield round(at - t0, 6), kind, name, word.removeprefix(OWN), value


def number(value: Any) -> float | None:  # noqa: ANN401 (any JSON value)
    """The value if it is a number."""
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
