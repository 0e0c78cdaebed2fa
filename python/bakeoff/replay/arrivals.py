"""Sequences of arrivals: eight patterns, and the file format (docs/qdisc-replay.md).

A pattern is a pure function of its name, a seed and the rate at which the queue is drained: loads are relative to it.
"""

from __future__ import annotations

import csv
import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bakeoff import files
from bakeoff.errors import ReplayError

ECN: Final = {"not-ect": 0, "ect1": 1, "ect0": 2, "ce": 3}
"""The two bits of the IP header."""
HEADER: Final = ("time_s", "bytes", "flow", "ecn")
MIN_BYTES: Final = 46
"""Ethernet, IPv4 and UDP headers, and four bytes for the packet's number."""
MAX_BYTES: Final = 1514
MAX_FLOWS: Final = 1024
_LARGEST: Final = 64 << 20
"""Bytes of a file."""
_MOST: Final = 1_000_000
"""Packets of a file."""
MOST_DRAWN: Final = 4_000_000
"""Packets of a pattern: of most, 2 s at 10 Gbit/s."""
_LONGEST: Final = 40
"""Characters of a value in a message."""

_ECN_WORDS: Final = {bits: word for word, bits in ECN.items()}
_NOT_ECT, _ECT1, _ECT0, _CE = 0, 1, 2, 3
_FULL: Final = 1514


@dataclass(frozen=True, slots=True)
class Arrival:
    """One packet."""

    ns: int
    """Since the first packet may arrive."""
    bytes: int
    """Length of the frame with its 14 bytes of Ethernet header, as qdiscs count it."""
    flow: int
    """From 0."""
    ecn: int
    """See `ECN`."""


@dataclass(frozen=True)
class Arrivals:
    """A sequence in order of time."""

    name: str
    packets: tuple[Arrival, ...]


def names() -> list[str]:
    """The patterns."""
    return list(_PATTERNS)


def pattern(name: str, *, rate_bps: int, seed: int = 1) -> Arrivals:
    """The pattern `name` for a queue drained at `rate_bps`.

    BakeoffError if there is none of this name, or if it has no packets or more than `MOST_DRAWN` at this rate.
    """
    if name not in _PATTERNS:
        raise ReplayError(f"unknown pattern '{name}'; expected {', '.join(_PATTERNS)} or a file")
    if rate_bps < 1:
        raise ReplayError(f"--rate: pattern '{name}' at {rate_bps} bit/s has no packets; expected a rate above zero")
    draw = random.Random(f"{name}/{seed}")  # noqa: S311 (a pattern is to be repeatable)
    packets = tuple(itertools.islice(_PATTERNS[name](rate_bps, draw), MOST_DRAWN + 1))
    if len(packets) > MOST_DRAWN:
        raise ReplayError(
            f"--rate: pattern '{name}' at {rate_bps / 1e9:g} Gbit/s has more than {MOST_DRAWN:,} packets; expected a "
            "lower rate, or a file of arrivals"
        )
    return Arrivals(name, packets)


def load(named: str, *, rate_bps: int, seed: int = 1) -> Arrivals:
    """The pattern of this name, or the file of this path."""
    return pattern(named, rate_bps=rate_bps, seed=seed) if named in _PATTERNS else read(Path(named))


def read(path: Path) -> Arrivals:
    """A CSV file; BakeoffError names the line, the value and what was expected."""
    try:
        content = files.read(path, _LARGEST)
        if content.count(b"\n") > _MOST + 1:
            raise ReplayError(f"{path}: has more than {_MOST:,} lines; expected fewer, one per packet")
        lines = content.decode().splitlines()
    except OSError as error:
        raise ReplayError(
            f"{path}: {error.strerror}; expected a CSV file or one of the patterns {', '.join(_PATTERNS)}"
        ) from error
    except UnicodeDecodeError:
        raise ReplayError(f"{path}: not a text file; expected a CSV file with the columns {','.join(HEADER)}") from None
    rows = csv.reader(lines)
    try:
        if tuple(next(rows, ())) != HEADER:
            raise ReplayError(f"{path}:1: expected the columns {','.join(HEADER)}")
        packets = [_row(row, f"{path}:{number}") for number, row in enumerate(rows, 2) if row]
    except csv.Error as error:
        raise ReplayError(f"{path}:{rows.line_num}: {error}; expected {','.join(HEADER)}") from None
    if not packets:
        raise ReplayError(f"{path}: no arrivals; expected a line per packet after the header")
    for number, (one, next_one) in enumerate(itertools.pairwise(packets), 3):
        if next_one.ns < one.ns:
            raise ReplayError(f"{path}:{number}: time_s decreases; expected packets in order of time")
    return Arrivals(path.stem, tuple(packets))


def write(arrivals: Arrivals, path: Path) -> None:
    """As CSV; `read` gives the same back. BakeoffError if the file cannot be written."""
    lines = [",".join(HEADER)]
    lines += [f"{p.ns / 1e9:.9f},{p.bytes},{p.flow},{_ECN_WORDS[p.ecn]}" for p in arrivals.packets]
    files.write(path, ("\n".join(lines) + "\n").encode())


def _row(row: list[str], place: str) -> Arrival:
    if len(row) != len(HEADER):
        raise ReplayError(f"{place}: {len(row)} values; expected {','.join(HEADER)}")
    time_s, size, flow, ecn = (value.strip() for value in row)
    if ecn not in ECN:
        raise ReplayError(f"{place}: ecn: '{_short(ecn)}'; expected {', '.join(ECN)}")
    try:
        ns = round(float(time_s) * 1e9)
    except (ValueError, OverflowError):
        raise ReplayError(f"{place}: time_s: '{_short(time_s)}'; expected seconds, such as 0.001211") from None
    if ns < 0:
        raise ReplayError(f"{place}: time_s: {_short(time_s)} is negative; expected 0 or more")
    return Arrival(
        ns,
        _whole(size, MIN_BYTES, MAX_BYTES, f"{place}: bytes"),
        _whole(flow, 0, MAX_FLOWS - 1, f"{place}: flow"),
        ECN[ecn],
    )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _whole(text: str, low: int, high: int, place: str) -> int:
    # Python refuses to read numbers of thousands of digits.
    if not text.isdecimal() or len(text) > len(str(high)) or not low <= int(text) <= high:
        raise ReplayError(f"{place}: '{_short(text)}'; expected a whole number from {low} to {high}")
    return int(text)


def _paced(
    draw: random.Random,
    rate_bps: int,
    load: Callable[[float], float],
    until_s: float,
    packet: Callable[[], tuple[int, int, int]],
) -> Iterator[Arrival]:
    """Packets (bytes, flow, ecn), each as long after the one before as that one takes at `load` times the rate, with
    half as much more or less; where the load is 0, nothing for 10 ms."""
    at_s = 0.0
    while at_s < until_s:
        now = load(at_s)
        if now == 0:
            at_s += 0.01
            continue
        size, flow, ecn = packet()
        yield Arrival(round(at_s * 1e9), size, flow, ecn)
        at_s += size * 8 / rate_bps / now * (0.5 + draw.random())


def _below(draw: random.Random, n: int) -> int:
    return int(draw.random() * n)


def _idle(rate_bps: int, draw: random.Random) -> Iterator[Arrival]:
    """A tenth of the rate."""
    return _paced(draw, rate_bps, lambda _: 0.1, 2.0, lambda: (_FULL, 0, _ECT0))


def _overload(rate_bps: int, draw: random.Random) -> Iterator[Arrival]:
    """A quarter more than the rate, not ECN-capable."""
    return _paced(draw, rate_bps, lambda _: 1.25, 2.0, lambda: (_FULL, _below(draw, 2), _NOT_ECT))


def _bursts(rate_bps: int, draw: random.Random) -> Iterator[Arrival]:
    """Three times the rate for 100 ms, then nothing for 200 ms."""
    return _paced(draw, rate_bps, lambda t: 3.0 if t % 0.3 < 0.1 else 0.0, 2.0, lambda: (_FULL, _below(draw, 2), _ECT0))


def _ramp(rate_bps: int, draw: random.Random) -> Iterator[Arrival]:
    """From half the rate to one and a half."""
    return _paced(draw, rate_bps, lambda t: 0.5 + t / 2, 2.0, lambda: (_FULL, 0, _below(draw, 2) * _ECT0))


def _flows(rate_bps: int, draw: random.Random) -> Iterator[Arrival]:
    """Thirty-two flows; half of what arrives is the first one's."""

    def packet() -> tuple[int, int, int]:
        flow = max(0, _below(draw, 64) - 32)
        return 300 + _below(draw, _FULL - 299), flow, _NOT_ECT if flow % 2 else _ECT0

    return _paced(draw, rate_bps, lambda _: 1.3, 2.0, packet)


def _ecn(rate_bps: int, draw: random.Random) -> Iterator[Arrival]:
    """Four flows, one of each ECN field."""

    def packet() -> tuple[int, int, int]:
        ecn = _below(draw, 4)
        return _FULL, ecn, ecn

    return _paced(draw, rate_bps, lambda _: 1.2, 2.0, packet)


def _tiny(rate_bps: int, draw: random.Random) -> Iterator[Arrival]:
    """Packets of 60 to 123 bytes."""
    return _paced(draw, rate_bps, lambda _: 1.5, 0.4, lambda: (60 + _below(draw, 64), _below(draw, 4), _ECT0))


def _step(rate_bps: int, draw: random.Random) -> Iterator[Arrival]:
    """Nine tenths of the rate, twice the rate from 0.5 s to 1 s, nine tenths again."""
    return _paced(draw, rate_bps, lambda t: 2.0 if 0.5 <= t < 1 else 0.9, 2.0, lambda: (_FULL, _below(draw, 2), _ECT1))


_PATTERNS: Final[dict[str, Callable[[int, random.Random], Iterator[Arrival]]]] = {
    "idle": _idle,
    "overload": _overload,
    "bursts": _bursts,
    "ramp": _ramp,
    "flows": _flows,
    "ecn": _ecn,
    "tiny": _tiny,
    "step": _step,
}
