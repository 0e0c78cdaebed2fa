"""Two versions of something, number by number: what is more or less over pairs of equal seeds, and what that is worth.

A change is tested by Student's t of the differences between the two runs of each seed. Many numbers are compared at
once, so the probabilities are corrected by Holm's method (Holm, Scand. J. Statist. 6, 1979): if nothing changed, the
chance that any number is called better or worse is at most 5 %, however the numbers depend on each other. Those of one
report do, as they come from the same controls and seeds, and a single false alarm stops a release; Benjamini and
Hochberg's method bounds the share of false alarms only, and needs numbers that are independent or rise together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf, isfinite, sqrt
from statistics import fmean, stdev
from typing import Final, Literal

from bakeoff.expressions import quantity
from bakeoff.measure import interval

Better = Literal["higher", "lower", "neither"]
Word = Literal["worse", "better", "differs", "undecided", "same"]
WORDS: Final[tuple[Word, ...]] = ("worse", "better", "differs", "undecided", "same")
"""`differs` is a change of a number of which neither more nor less is better."""
LEVEL: Final = 0.05
"""The chance of any false alarm if nothing changed."""
METHOD: Final = (
    "Changes are means over pairs of equal seeds with the 95 % interval by Student's t. Better and worse: at 5 % for "
    "all comparisons together (Holm)."
)
_SAME: Final = 1e-3
"""Two numbers within this share of the larger are the same, as three digits show them."""
_TIMES: Final = 3.0
"""From this ratio on a change is told as a multiple, not in percent."""


@dataclass(frozen=True)
class Change:
    """A number of two versions over pairs of runs with equal seeds, in the base unit."""

    ours: float
    """The mean of the new version."""
    theirs: float
    """The mean of the old one."""
    pairs: int
    unit: str | None
    difference: float
    """The mean of new less old; infinite if one of the numbers is."""
    interval: tuple[float, float] | None
    """Its 95 % interval; None of one pair, or if a number is infinite."""
    p: float
    """The probability of such a difference if nothing changed; 0 if all pairs agree without scatter."""
    better: Better
    same: bool
    """Whether the numbers of each pair are equal, up to a thousandth."""
    corrected: float = 1.0
    """`p` after the correction for the number of comparisons."""

    @property
    def word(self) -> Word:
        """One of `WORDS`."""
        if self.same:
            return "same"
        if self.corrected > LEVEL:
            return "undecided"
        if self.better == "neither":
            return "differs"
        return "better" if (self.difference > 0) == (self.better == "higher") else "worse"

    @property
    def relative(self) -> float | None:
        """The difference as a share of the old number; None if that is 0 or infinite."""
        known = isfinite(self.difference) and isfinite(self.theirs) and self.theirs
        return self.difference / abs(self.theirs) if known else None

    @property
    def words(self) -> str:
        """In words: `8 % less, interval 5 to 11 %`."""
        if self.same:
            return "the same"
        if not isfinite(self.difference):
            before, now = (quantity.formatted(value, self.unit) for value in (self.theirs, self.ours))
            return f"{before} before, {now} now"
        if self.relative is None:
            return _told(self.difference, self.interval, lambda values: quantity.several(values, self.unit, " to "))
        scale, ends = abs(self.theirs), self.interval
        shares = () if ends is None else (ends[0] / scale, ends[1] / scale)
        if self.theirs > 0 and self.ours >= _TIMES * self.theirs:
            times = [1 + share for share in (self.relative, *shares)]
            written = _digits(times)
            return f"{written(times[:1])} times as much" + (f", interval {written(times[1:])}" if shares else "")
        if shares and min(self.ours, self.theirs) >= 0:
            shares = max(shares[0], -1.0), shares[1]
        percent = [100 * share for share in (self.relative, *shares)]
        written = _digits(percent)
        return _told(percent[0], (percent[1], percent[2]) if shares else None, lambda values: f"{written(values)} %")


def change(ours: Sequence[float], theirs: Sequence[float], unit: str | None, better: Better) -> Change:
    """The change of one number; the values are in the order of the same seeds, at least one."""
    each = [0.0 if new == old else new - old for new, old in zip(ours, theirs, strict=True)]
    largest = [max(abs(new), abs(old)) for new, old in zip(ours, theirs, strict=True)]
    same = all(one == 0 or abs(one) <= _SAME * most < inf for one, most in zip(each, largest, strict=True))
    found = Change(fmean(ours), fmean(theirs), len(each), unit, 0.0, None, 1.0, better, same)
    if not all(map(isfinite, each)):
        more = [one > 0 for one in each]
        agreed = len(each) > 1 and all(each) and len(set(more)) == 1
        return replace(found, difference=inf if any(more) else -inf, p=0.0 if agreed else 1.0)
    over = interval(each)
    half = over["ci95"]
    ends = None if half is None else (over["mean"] - half, over["mean"] + half)
    return replace(found, difference=over["mean"], interval=ends, p=_probability(each))


def corrected(changes: Sequence[Change]) -> list[Change]:
    """The changes with Holm's correction: the i-th smallest of m probabilities times m - i + 1, never falling.

    Numbers that are the same are no comparisons: no test could call them anything else.
    """
    order = sorted((at for at, one in enumerate(changes) if not one.same), key=lambda at: changes[at].p)
    found = list(changes)
    least = 0.0
    for rank, at in enumerate(order):
        least = max(least, min(1.0, (len(order) - rank) * changes[at].p))
        found[at] = replace(changes[at], corrected=least)
    return found


def counts(words: Sequence[Word]) -> dict[Word, int]:
    """Number of changes by word, in the order of `WORDS`, without those of 0."""
    return {word: words.count(word) for word in WORDS if word in words}


def size(one: Change) -> float:
    """How large a change is beside others: its share of the old number, infinite if there is none."""
    return inf if one.relative is None else abs(one.relative)


def _probability(each: Sequence[float]) -> float:
    """Two-sided, of Student's t with n - 1 degrees of freedom; without scatter 0, and 1 for a single pair."""
    if len(each) < 2:
        return 1.0
    scatter = stdev(each)
    if scatter == 0:
        return 0.0 if each[0] else 1.0
    from scipy.special import stdtr  # type: ignore[import-untyped]  # the distribution function

    return float(2 * stdtr(len(each) - 1, -abs(fmean(each)) * sqrt(len(each)) / scatter))


def _told(middle: float, ends: tuple[float, float] | None, written: Callable[[Sequence[float]], str]) -> str:
    told = f"{written([abs(middle)])} {_word(middle)}"
    if ends is None:
        return told
    if ends[0] < 0 < ends[1]:
        low, high = (f"{written([abs(end)])} {_word(end)}" for end in ends)
        return f"{told}, interval {low} to {high}"
    return f"{told}, interval {written(sorted(map(abs, ends)))}"


def _word(difference: float) -> str:
    return "less" if difference < 0 else "more"


def _digits(values: Sequence[float]) -> Callable[[Sequence[float]], str]:
    """How numbers are written: with as many decimals as the largest needs, more if they would look the same."""
    largest = max(map(abs, values))
    places = 0 if largest >= 10 else 1 if largest >= 1 else 2
    while places < 2 and len({f"{value:.{places}f}" for value in values}) < len(set(values)):
        places += 1
    return lambda several: " to ".join(f"{value:,.{places}f}" for value in several)
