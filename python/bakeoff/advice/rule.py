"""The rule that recommends one of several choices: numbers in, a verdict out.

Each choice is asked which needs it meets. Those that meet most stay; of these, those whose call is at most 5 ms slower
than the quickest; and of these the one whose long transfers move most.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bakeoff.advice.numbers import MEASURES, Measure, Number
from bakeoff.measure import Interval, interval

CLOSE_S: Final = 0.005
"""A difference of a call's delay that nobody hears."""

DELAY: Final = "call_delay_p99_s"
RATES: Final = ("uploads_bps", "downloads_bps")
NEEDS: Final = tuple(measure for measure in MEASURES if measure.bound is not None)

Numbers = Mapping[str, Number]
Reason = Literal["needs", "delay", "rate", "only"]


@dataclass(frozen=True)
class Verdict:
    """What is recommended, and how sure that is."""

    choice: str
    runner_up: str | None
    """What the rule would recommend if there were no such choice; None if nothing is left."""
    reason: Reason
    """Where the runner-up fell behind; `only` without one."""
    missed: tuple[Measure, ...]
    """The needs that the choice itself does not meet."""
    runner_up_missed: tuple[Measure, ...]
    """Those that the runner-up does not meet."""
    difference: Interval | None
    """Of the deciding number, the runner-up's less the choice's, repetition by repetition: the call's delay [s] or the
    rate of the transfers [bit/s]; None where needs decided."""
    alone: tuple[str, ...]
    """What the rule recommends from each repetition alone."""

    @property
    def agreeing(self) -> int:
        """How many repetitions alone give the same answer."""
        return sum(one == self.choice for one in self.alone)


def most(choices: Iterable[Numbers]) -> dict[str, float]:
    """What relative needs are a share of: the most that any of the choices has, by the measure's key."""
    found: dict[str, float] = {}
    for numbers in choices:
        for need in NEEDS:
            if need.relative and need.key in numbers:
                found[need.key] = max(found.get(need.key, 0.0), numbers[need.key].value)
    return found


def missed(numbers: Numbers, best: Mapping[str, float]) -> tuple[Measure, ...]:
    """The needs that are not met, where `best` is what `most` says; a need for which there is no number is none."""
    asked = [need for need in NEEDS if need.key in numbers]
    return tuple(need for need in asked if not need.good(numbers[need.key], best.get(need.key, 1.0)))


def pick(choices: Mapping[str, Numbers], allowed: Collection[str] | None = None) -> str:
    """The choice that the rule takes, of those that are allowed; of equals the first."""
    best = most(choices.values())
    left = {label: numbers for label, numbers in choices.items() if allowed is None or label in allowed}
    lacking = {label: len(missed(numbers, best)) for label, numbers in left.items()}
    left = {label: numbers for label, numbers in left.items() if lacking[label] == min(lacking.values())}
    if all(DELAY in numbers for numbers in left.values()):
        quickest = min(numbers[DELAY].value for numbers in left.values())
        left = {label: numbers for label, numbers in left.items() if numbers[DELAY].value <= quickest + CLOSE_S}
    return max(left, key=lambda label: _rate(left[label]))


def decide(choices: Mapping[str, Sequence[Numbers]], allowed: Collection[str] | None = None) -> Verdict:
    """The rule over the means of all repetitions. `choices`: by label the numbers of each repetition, in one order.

    Only those that are `allowed` are recommended, if not all are; the others say what there could be.
    """
    means = {label: mean(each) for label, each in choices.items()}
    best = most(means.values())
    chosen = pick(means, allowed)
    repetitions = [dict(zip(choices, each, strict=True)) for each in zip(*choices.values(), strict=False)]
    alone = tuple(pick(each, allowed) for each in repetitions)
    others = [label for label in means if label != chosen and (allowed is None or label in allowed)]
    lacking = missed(means[chosen], best)
    if not others:
        return Verdict(chosen, None, "only", lacking, (), None, alone)
    second = pick(means, others)
    theirs = missed(means[second], best)
    reason: Reason = "needs" if len(theirs) > len(lacking) else "delay" if _later(means, chosen, second) else "rate"
    apart = [_decisive(each[second], reason) - _decisive(each[chosen], reason) for each in repetitions]
    difference = None if reason == "needs" else interval(apart)
    return Verdict(chosen, second, reason, lacking, theirs, difference, alone)


def mean(each: Sequence[Numbers]) -> dict[str, Number]:
    """The mean of every number over the repetitions; at least so much if that holds for one of them."""
    found = {}
    for key in dict.fromkeys(key for numbers in each for key in numbers):
        known = [numbers[key] for numbers in each if key in numbers]
        found[key] = Number(sum(one.value for one in known) / len(known), any(one.at_least for one in known))
    return found


def _later(means: Mapping[str, Numbers], chosen: str, other: str) -> bool:
    delays = [means[label][DELAY].value for label in (chosen, other) if DELAY in means[label]]
    return len(delays) == 2 and delays[1] > delays[0] + CLOSE_S


def _decisive(numbers: Numbers, reason: Reason) -> float:
    return numbers[DELAY].value if reason == "delay" and DELAY in numbers else _rate(numbers)


def _rate(numbers: Numbers) -> float:
    return sum(numbers[key].value for key in RATES if key in numbers)
