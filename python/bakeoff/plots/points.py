"""The runs of a campaign by the points of their matrix, and their measures over the seeds of each point."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Final

from bakeoff.errors import MeasureError, PlotError
from bakeoff.measure import ends, interval, summary_of
from bakeoff.plots import colours
from bakeoff.plots.axes import Axis, values
from bakeoff.plots.plotted_run import MOST_LINES
from bakeoff.results import measured
from bakeoff.tables.label_order import by_value, number
from bakeoff.tables.rows import capacity_bps, finished, qdisc_order
from bakeoff.tables.run_labels import engine_of

if TYPE_CHECKING:
    from typing import Any

    from bakeoff.measure import Interval
    from bakeoff.results import Result
    from bakeoff.results.summary import Summary

_WORDS: Final = {
    "rtt": "round-trip time", "cc": "congestion control", "qdisc": "queue", "bps": "rate", "count": "number",
}  # fmt: skip
"""Last words of keys of a scenario, as people say them."""


@dataclass(frozen=True)
class Estimate:
    """A measure over the seeds of a point."""

    found: Interval | None
    """Over the seeds that have a number; None if none has."""
    of: int
    """Seeds."""
    limits: tuple[float, float] = (-inf, inf)
    """The least and the greatest value that is possible."""

    @property
    def whole(self) -> bool:
        """Whether all seeds have a number."""
        return self.found is not None and self.found["n"] == self.of

    @property
    def ends(self) -> tuple[float, float]:
        """Of the interval; the mean twice where there is none, or where some seeds have no number."""
        assert self.found is not None
        mean = self.found["mean"]
        return (ends(self.found, self.limits) if self.whole else None) or (mean, mean)


@dataclass(frozen=True)
class Point:
    """The repetitions of one run."""

    axes: Mapping[str, str]
    results: tuple[Result, ...]

    def measured(self, measure: Axis) -> dict[str, Estimate]:
        """The measure over the seeds, by flow, probe or queue; of many flows by control, as their mean.

        A number that a seed has no finite value for (two rates that never meet) counts among the seeds.
        """
        collected: dict[str, list[float]] = {}
        if measure.expression:
            taken = [_taken(result, measure.path) for result in self.results]
            known = [value * measure.scale for value in taken if value is not None]
            if known:
                collected[""] = known
        else:
            for summary in self.summaries:
                found = values(summary, measure)
                if measure.path.startswith("flows.") and len(found) > MOST_LINES:
                    found = self._by_control(found)
                for name, value in found.items():
                    collected.setdefault(name, []).append(value)
        made = {}
        for name, several in collected.items():
            finite = [value for value in several if isfinite(value)]
            low, high = measure.limits
            if measure.unit == "Mbit/s" and name:
                high = min(high, capacity_bps(self.summaries, name) * measure.scale)
            made[name] = Estimate(interval(finite) if finite else None, len(self.results), (low, high))
        return made

    def _by_control(self, found: Mapping[str, float]) -> dict[str, float]:
        shares: dict[str, list[float]] = {}
        for name, value in found.items():
            shares.setdefault(f"mean over all {self.control(name)} flows", []).append(value)
        return {name: sum(several) / len(several) for name, several in shares.items()}

    @cached_property
    def summaries(self) -> list[Summary]:
        """The measures of each repetition."""
        return [summary_of(result) for result in self.results]

    def control(self, flow: str) -> str:
        """What a flow ran; the name itself if it is no flow."""
        known = self.summaries[0].flows.get(flow)
        if known is None:
            match = re.fullmatch(r"mean over all (.+) flows", flow)
            return match[1] if match else flow
        return colours.control(known.cc, known.transport)


def _taken(result: Result, text: str) -> float | None:
    """What a run gives for an expression, as it was taken when the run ended, or taken now.

    Not finite where it has no number, such as the time until two rates meet that never do; None if it has none because
    what it is of is not there.
    """
    from bakeoff.claims import evaluate

    kept = measured(result)
    if text in kept:
        value = kept[text]
        return nan if value is None else value
    expression = evaluate.number_of(text)
    try:
        return float(evaluate.measure(result, expression.text))
    except MeasureError:
        return None


@dataclass(frozen=True)
class Matrix:
    """The runs of one scenario and engine, by their points."""

    title: str
    points: list[Point]
    axes: dict[str, list[str]] = field(default_factory=dict)
    """The axes along which something varies, with their labels in order."""
    failed: Sequence[Mapping[str, str]] = field(default_factory=list)
    """Points of which no run ended well."""

    def numeric(self, axis: str) -> str | None:
        """The unit of an axis whose labels are all numbers of one unit; None of others."""
        found = [number(label) for label in self.axes[axis]]
        units = {one[1] for one in found if one is not None}
        return units.pop() if None not in found and len(units) == 1 else None


def matrices(results: Iterable[Result]) -> list[Matrix]:
    """The matrices of results: one for each scenario and engine of which a run is finished."""
    groups: dict[tuple[str, str, str], dict[tuple[tuple[str, str], ...], list[Result]]] = {}
    every = list(results)
    for result in finished(every):
        groups.setdefault(_of(result), {}).setdefault(_point(result), []).append(result)
    failed: dict[tuple[str, str, str], dict[tuple[tuple[str, str], ...], None]] = {}
    for result in every:
        if not result.ok and _point(result) not in groups.get(_of(result), {}):
            failed.setdefault(_of(result), {})[_point(result)] = None
    made = []
    for (suite, scenario, engine), points in groups.items():
        labels: dict[str, dict[str, None]] = {}
        for point in points:
            for axis, label in point:
                labels.setdefault(axis, {})[label] = None
        varied = {axis: sorted(several, key=order_of(axis)) for axis, several in labels.items() if len(several) > 1}
        several_engines = len({key[2] for key in groups if key[:2] == (suite, scenario)}) > 1
        title = f"{suite}/{scenario}" + (f" on {engine}" if several_engines else "")
        lost = [dict(point) for point in failed.get((suite, scenario, engine), {})]
        made.append(Matrix(title, [Point(dict(p), tuple(r)) for p, r in points.items()], varied, lost))
    if not made:
        raise PlotError("no finished run to draw")
    return made


def order_of(axis: str) -> Any:  # noqa: ANN401 (a sort key)
    """How the labels of an axis are sorted: queues as the suites have them, all others by the size of their numbers."""
    return qdisc_order if axis in ("qdisc", "queue") else by_value


def axis_words(axis: str) -> str:
    """An axis as people say it: `bottleneck rate` of the key `network.bottleneck[0].rate`, a plain name as it is."""
    if "." not in axis:
        return axis
    parts = [part for part in re.sub(r"\[(\d+)\]", r".\1", axis).split(".") if part != "network"]
    words: list[str] = []
    for part in parts:
        if part.isdigit():
            # The first of several needs no number, as it is mostly the only one.
            words[-1:] = [words[-1].removesuffix("s") if words else "", *([str(int(part) + 1)] if int(part) else [])]
        else:
            words.append(_WORDS.get(part, part.replace("_", " ")))
    return " ".join(word for word in words if word)


def _of(result: Result) -> tuple[str, str, str]:
    return result.run.suite, result.run.scenario, engine_of(result)


def _point(result: Result) -> tuple[tuple[str, str], ...]:
    at = result.run
    return tuple(dict(at.point or {"run": at.run}).items())
