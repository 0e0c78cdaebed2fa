"""Results of a household's runs, put together choice by choice."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bakeoff.advice.choices import Words, words
from bakeoff.advice.numbers import MEASURES, Measure, Number, numbers
from bakeoff.advice.rule import Verdict, decide, mean, missed, most
from bakeoff.measure import Interval, interval
from bakeoff.scenario.access_line import LINE, QUEUE

if TYPE_CHECKING:
    from bakeoff.results import Result


@dataclass(frozen=True)
class Choice:
    """One queue, in one variant of the household."""

    label: str
    words: Words
    results: tuple[Result, ...]
    """A run per repetition, in order of seed."""
    each: tuple[Mapping[str, Number], ...]
    """The numbers of each."""
    means: Mapping[str, Number]
    missed: tuple[Measure, ...]
    """The needs that the means do not meet."""

    def interval(self, key: str) -> Interval | None:
        """Mean and 95 % interval of a number over the repetitions; None if there is no such number."""
        known = [one[key].value for one in self.each if key in one]
        return interval(known) if known else None


@dataclass(frozen=True)
class Variant:
    """The household with one mix of traffic."""

    label: str
    """Empty if the scenario has one only."""
    choices: tuple[Choice, ...]
    verdict: Verdict
    at_home: Verdict | None
    """The same rule over what a household can do alone; None if that is what the verdict says, or nothing."""

    def choice(self, label: str) -> Choice:
        """The choice of this label."""
        return next(choice for choice in self.choices if choice.label == label)


@dataclass(frozen=True)
class Advice:
    """All that is known of a line."""

    variants: tuple[Variant, ...]
    """First the one that the scenario has first, which the recommendation is for."""
    measures: tuple[Measure, ...]
    """Those that any run has."""

    @property
    def main(self) -> Variant:
        """What the recommendation is for."""
        return self.variants[0]


def advise(results: Sequence[Result], *, own: Collection[str] = ()) -> Advice:
    """What the runs of one line say. MeasureError if a run lacks what has to be measured.

    The queues whose labels are in `own` are not the catalog's, and have no words but their labels.
    """
    sorted_: dict[str, dict[str, list[Result]]] = {}
    for result in sorted(results, key=lambda each: int(each.run.seed)):
        point = result.run.point
        variant = ", ".join(label for axis, label in point.items() if axis not in (QUEUE, LINE))
        sorted_.setdefault(variant, {}).setdefault(point[QUEUE], []).append(result)
    order = list(dict.fromkeys(result.run.point[QUEUE] for result in results))
    texts = {label: words(label, own=label in own) for label in order}
    variants = tuple(_variant(label, found, texts) for label, found in sorted_.items())
    known = {key for variant in variants for choice in variant.choices for key in choice.means}
    return Advice(variants, tuple(measure for measure in MEASURES if measure.key in known))


def _variant(label: str, found: Mapping[str, Sequence[Result]], texts: Mapping[str, Words]) -> Variant:
    each = {queue: [numbers(result) for result in found[queue]] for queue in texts if queue in found}
    means = {queue: mean(several) for queue, several in each.items()}
    best = most(means.values())
    choices = tuple(
        Choice(queue, texts[queue], tuple(found[queue]), tuple(several), means[queue], missed(means[queue], best))
        for queue, several in each.items()
    )
    verdict = decide(each)
    home = [choice.label for choice in choices if choice.words.where != "line"]
    alone = texts[verdict.choice].where == "line" and len(home) > 1
    return Variant(label, choices, verdict, decide(each, home) if alone else None)
