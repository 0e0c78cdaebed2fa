"""What two queues did with the same packets: packet by packet, and as distributions over seeds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bakeoff.replay.arrivals import Arrivals
from bakeoff.replay.sim import Replayed

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

CE: Final = 3
PERMUTATIONS: Final = 2000


@dataclass(frozen=True)
class Statistics:
    """One replay in numbers."""

    packets: int
    sent: int
    drops: int
    marks: int
    """Packets that arrived without CE and left with it."""
    mean_sojourn_s: float
    """Of what left."""
    max_sojourn_s: float


@dataclass(frozen=True)
class Difference:
    """A packet with two fates."""

    packet: int
    """Its number among the arrivals, from 1."""
    ours: str
    theirs: str

    def text(self) -> str:
        """For people."""
        return f"packet {self.packet}: ours {self.ours}; the kernel's {self.theirs}"


@dataclass(frozen=True)
class Comparison:
    """Ours against theirs."""

    ours: Statistics
    theirs: Statistics
    differing: int
    """Packets whose departure (time, order, ECN field) or drop differs."""
    first: Difference | None
    """None: identical."""
    late_ns: int
    """See `Replayed.late_ns`."""

    @property
    def identical(self) -> bool:
        """Whether every packet had the same fate at the same nanosecond."""
        return self.first is None


def compare(arrivals: Arrivals, ours: Replayed, theirs: Replayed) -> Comparison:
    """Packet by packet. Both saw the packets at the same times."""
    fates = _fates(ours), _fates(theirs)
    differing = [number for number in range(len(arrivals.packets)) if fates[0].get(number) != fates[1].get(number)]
    order = [[number for number, _, _ in side.departures] for side in (ours, theirs)]
    first = None
    if differing:
        number = differing[0]
        at = theirs.arrivals_ns[number]
        first = Difference(number + 1, *(_words(side.get(number), at, arrivals.packets[number].ecn) for side in fates))
    elif order[0] != order[1]:
        # The same instants, another order within one of them.
        one, other = next((a, b) for a, b in zip(*order, strict=True) if a != b)
        first = Difference(one + 1, "left first", f"sent packet {other + 1} first at the same time")
    return Comparison(statistics(arrivals, ours), statistics(arrivals, theirs), len(differing), first, ours.late_ns)


def statistics(arrivals: Arrivals, side: Replayed) -> Statistics:
    """Counts and sojourn times."""
    sojourns = [at - side.arrivals_ns[number] for number, at, _ in side.departures]
    return Statistics(
        packets=len(arrivals.packets),
        sent=len(side.departures),
        drops=len(arrivals.packets) - len({number for number, _, _ in side.departures}),
        marks=sum(ecn == CE and arrivals.packets[number].ecn != CE for number, _, ecn in side.departures),
        mean_sojourn_s=sum(sojourns) / len(sojourns) / 1e9 if sojourns else 0.0,
        max_sojourn_s=max(sojourns, default=0) / 1e9,
    )


def permutation_test(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, float]:
    """The two-sample Kolmogorov-Smirnov statistic, and its p-value from 2000 random permutations (seed 1): the share
    of permutations, the observed one included, whose statistic is at least as large. Holds with ties, which counts
    have."""
    import numpy as np

    pooled = np.concatenate([ours, theirs]).astype(float)
    observed = _distance(pooled, len(ours))
    shuffle = np.random.default_rng(1)
    # Differences of shares are multiples of 1 / (n m): half of one is room enough for rounding.
    least = observed - 0.5 / (len(ours) * len(theirs))
    larger = sum(_distance(shuffle.permutation(pooled), len(ours)) >= least for _ in range(PERMUTATIONS - 1))
    return observed, (larger + 1) / PERMUTATIONS


def _distance(pooled: npt.NDArray[np.float64], n: int) -> float:
    import numpy as np

    ours, theirs = np.sort(pooled[:n]), np.sort(pooled[n:])
    shares = [np.searchsorted(side, pooled, side="right") / len(side) for side in (ours, theirs)]
    return float(np.abs(shares[0] - shares[1]).max())


def _fates(side: Replayed) -> dict[int, list[tuple[int, int]]]:
    fates: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, at, ecn in side.departures:
        fates[number].append((at, ecn))
    return fates


def _words(fate: list[tuple[int, int]] | None, arrived_ns: int, ecn: int) -> str:
    if not fate:
        return "dropped it"
    parts = []
    for at, left in fate:
        marked = ", marked" if left == CE != ecn else "" if left == ecn else f", ECN field {ecn:02b} to {left:02b}"
        parts.append(f"sent it after {(at - arrived_ns) / 1e6:.6f} ms{marked}")
    return " and ".join(parts)
