"""The ranges of a search: their values, and the simplest value of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, floor, log, log10
from typing import Final

Value = float | str | None
"""None: the ingredient is absent."""
Point = Mapping[str, Value]
"""A value for each dimension."""
Key = tuple[tuple[str, Value], ...]

RATE: Final = "rate"
RTT: Final = "rtt"
BUFFER: Final = "buffer"
QUEUE: Final = "queue"
LOSS: Final = "loss"
JITTER: Final = "jitter"
STEP: Final = "step"
CROSS: Final = "cross"
CROWD: Final = "crowd"
START: Final = "start"
OTHER_RTT: Final = "other_rtt"

_PREFERRED: Final = (1.0, 2.0, 5.0, 10.0)


@dataclass(frozen=True)
class Niche:
    """A part of the space that is searched by itself."""

    other: str | None
    """The competitor."""
    kind: str | None = None
    """Of queue; None for all."""
    unlike_rtt: bool | None = None
    """Whether the competitor has an RTT of its own; None: it may."""


@dataclass(frozen=True)
class Choice:
    """Named alternatives, the simplest first."""

    name: str
    values: tuple[str, ...]

    def simpler(self, value: Value) -> list[Value]:
        """Values to try in place of this one, the simplest first."""
        return list(self.values[: self.values.index(str(value))])


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high` in base units."""

    name: str
    low: float
    high: float
    usual: float | None
    """The simplest value; None if the ingredient can be absent."""
    logarithmic: bool = True
    whole: bool = False

    @property
    def optional(self) -> bool:
        """Whether the ingredient can be absent."""
        return self.usual is None

    def at(self, share: float) -> float:
        """The value at this share of the range, with three significant digits."""
        if self.logarithmic:
            value = exp(log(self.low) + share * (log(self.high) - log(self.low)))
        else:
            value = self.low + share * (self.high - self.low)
        return min(max(rounded(value, 0 if self.whole else 3), self.low), self.high)

    def simpler(self, value: Value) -> list[Value]:
        """Values to try in place of this one, the simplest first.

        For an ingredient that can be absent: none, then less of it. Otherwise the usual value. Then rounder numbers.
        """
        if value is None:
            return []
        number = float(value)
        tried: list[Value] = [None, *(preferred(number / by) for by in (30, 10, 3))] if self.optional else [self.usual]
        if not self.logarithmic:
            tried = [self.usual]
        tried += [preferred(number), rounded(number, 1), rounded(number, 2)]
        found = [each if each is None or not self.whole else float(round(float(each))) for each in tried]
        return [
            each
            for index, each in enumerate(found)
            if each not in (*found[:index], number) and (each is None or self.low <= float(each) <= self.high)
        ]


Dimension = Choice | Range

KINDS: Final = {
    "FIFO": ("pfifo",),
    "AQM": ("codel", "codel ecn", "pie", "pie ecn", "dualpi2"),
    "fair queue": ("fq_codel", "cake"),
}
"""Queues by kind. Each kind is searched by itself, because a control may have one weakness in each."""
QUEUES: Final = Choice(QUEUE, tuple(queue for several in KINDS.values() for queue in several))
RANGES: Final[tuple[Dimension, ...]] = (
    QUEUES,
    Range(RATE, 1e6, 100e6, usual=20e6),
    Range(RTT, 0.002, 0.2, usual=0.04),
    Range(BUFFER, 0.1, 10.0, usual=1.0),
    Range(LOSS, 1e-5, 0.03, usual=None),
    Range(JITTER, 0.01, 0.5, usual=None),
    Range(STEP, 1e6, 100e6, usual=None),
    Range(CROSS, 0.05, 0.8, usual=None, logarithmic=False),
    Range(CROWD, 1.0, 8.0, usual=None, whole=True),
)
"""Rates in bit/s, times in seconds. `buffer` is in bandwidth-delay products and for pfifo only, `jitter` a share of the
RTT, `cross` a share of the rate, `crowd` a number of further flows, `step` the rate after half of the time."""
OF_OTHER: Final[tuple[Dimension, ...]] = (
    Range(START, -5.0, 5.0, usual=None, logarithmic=False),
    Range(OTHER_RTT, 0.002, 0.2, usual=None),
)
"""Besides where there is a competitor: how much later it starts [s], and its RTT if that is not the path's."""


def dimensions(niche: Niche) -> tuple[Dimension, ...]:
    """The ranges of a niche."""
    queues = Choice(QUEUE, KINDS[niche.kind]) if niche.kind is not None else QUEUES
    found = (queues, *(RANGES + OF_OTHER if niche.other is not None else RANGES)[1:])
    if niche.unlike_rtt is None:
        return found
    others = tuple(each for each in found if each.name != OTHER_RTT)
    return (*others, Range(OTHER_RTT, 0.002, 0.2, usual=0.16)) if niche.unlike_rtt else others


def usual(ranges: Sequence[Dimension]) -> Point:
    """The simplest point."""
    return {each.name: each.values[0] if isinstance(each, Choice) else each.usual for each in ranges}


def kind(queue: Value) -> str | None:
    """The kind of a queue."""
    return next((name for name, queues in KINDS.items() if queue in queues), None)


def key(point: Point) -> Key:
    """What equal points have in common."""
    return tuple(sorted(point.items()))


def rounded(value: float, digits: int) -> float:
    """With so many significant digits; a whole number for 0."""
    if value == 0 or digits == 0:
        return float(round(value))
    return round(value, digits - 1 - floor(log10(abs(value))))


def preferred(value: float) -> float:
    """The nearest of 1, 2, 5, 10 and their multiples by powers of ten, by ratio."""
    if value == 0:
        return 0.0
    power = 10.0 ** floor(log10(abs(value)))
    best = min(_PREFERRED, key=lambda each: abs(log(each) - log(abs(value) / power)))
    return rounded(best * power * (1 if value > 0 else -1), 1)


def ingredients(point: Point, ranges: Sequence[Dimension]) -> list[str]:
    """The names of what could be absent and is there."""
    return [
        each.name for each in ranges if isinstance(each, Range) and each.optional and point.get(each.name) is not None
    ]
