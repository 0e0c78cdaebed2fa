"""The rule that recommends one of several choices: numbers in, a verdict out.

Each choice is asked which needs it meets. Those that meet most stay; of these, those whose call is at most 5 ms slower
than the quickest; and of these the one whose long transfers move most.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    difference: Interval | None
    """Of the deciding number, the runner-up's less the choice's, repetition by repetition: the needs met, the call's
    delay [s] or the rate of the transfers [bit/s]."""
    alone: tuple[str, ...]
    """What the rule recommends from each repetition alone."""

    @property
    def agreeing(self) -> int:
        """How many repetitions alone give the same answer."""
        return sum(one == self.choice for one in self.alone)


def missed(numbers: Numbers) -> tuple[Measure, ...]:
    """The needs that are not met; a need for which there is no number is none."""
    return tuple(need for need in NEEDS if need.key in numbers and not need.good(numbers[need.key]))


def pick(choices: Mapping[str, Numbers]) -> str:
    """The choice that the rule takes; of equals the first."""
    fewest = min(len(missed(numbers)) for numbers in choices.values())
    left = {label: numbers for label, numbers in choices.items() if len(missed(numbers)) == fewest}
    if all(DELAY in numbers for numbers in left.values()):
        quickest = min(numbers[DELAY].value for numbers in left.values())
        left = {label: numbers for label, numbers in left.items() if numbers[DELAY].value <= quickest + CLOSE_S}
    return max(left, key=lambda label: _rate(left[label]))


def decide(choices: Mapping[str, Sequence[Numbers]]) -> Verdict:
    """The rule over the means of all repetitions. `choices`: by label the numbers of each repetition, in one order."""
    means = {label: mean(each) for label, each in choices.items()}
    chosen = pick(means)
    count = min(map(len, choices.values()))
    alone = tuple(pick({label: each[n] for label, each in choices.items()}) for n in range(count))
    others = {label: numbers for label, numbers in means.items() if label != chosen}
    if not others:
        return Verdict(chosen, None, "only", missed(means[chosen]), None, alone)
    second = pick(others)
    reason = _reason(means[chosen], means[second])
    pairs = zip(choices[chosen][:count], choices[second][:count], strict=True)
    differences = [_decisive(theirs, reason) - _decisive(ours, reason) for ours, theirs in pairs]
    return Verdict(chosen, second, reason, missed(means[chosen]), interval(differences), alone)


def mean(each: Sequence[Numbers]) -> dict[str, Number]:
    """The mean of every number over the repetitions; at least so much if that holds for one of them."""
    found = {}
    for key in dict.fromkeys(key for numbers in each for key in numbers):
        known = [numbers[key] for numbers in each if key in numbers]
        found[key] = Number(sum(one.value for one in known) / len(known), any(one.at_least for one in known))
    return found


def _reason(chosen: Numbers, other: Numbers) -> Reason:
    if len(missed(other)) > len(missed(chosen)):
        return "needs"
    if DELAY in chosen and DELAY in other and other[DELAY].value > chosen[DELAY].value + CLOSE_S:
        return "delay"
    return "rate"


def _decisive(numbers: Numbers, reason: Reason) -> float:
    if reason == "needs":
        return float(len(NEEDS) - len(missed(numbers)))
    return numbers[DELAY].value if reason == "delay" and DELAY in numbers else _rate(numbers)


def _rate(numbers: Numbers) -> float:
    return sum(numbers[key].value for key in RATES if key in numbers)
