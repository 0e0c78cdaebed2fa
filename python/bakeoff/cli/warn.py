"""Warnings for valid but unlikely values: times without a unit in a qdisc, a window that includes slow start."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from bakeoff import tc
from bakeoff.scenario.run import Bulk

if TYPE_CHECKING:
    from bakeoff.scenario import Run

_TIMES: Final = frozenset({
    "target", "interval", "ce_threshold", "tupdate", "max_rtt", "typical_rtt", "step_thresh", "rtt", "latency", "lat",
    "refill_delay", "timer_slack", "horizon",
})  # fmt: skip
"""Words of qdiscs before a time."""
_NETEM: Final = frozenset({"delay", "latency", "slot"})
"""netem's, before one time or two, which are nanoseconds if they have no unit."""


def warnings(runs: Iterable[Run]) -> list[str]:
    """The warnings for the runs, each once, with the first run that it is about."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for each in dict.fromkeys((*run.notices, *_of_qdiscs(run), *_of_window(run), *_of_rate(run))):
            found.setdefault(each, []).append(run.key)
    return [
        f"{keys[0]}{f' and {len(keys) - 1} more runs' if len(keys) > 1 else ''}: {text}" for text, keys in found.items()
    ]


def _of_qdiscs(run: Run) -> Iterator[str]:
    for line in dict.fromkeys(line for _, line in run.qdiscs()):
        netem = tc.kernel_kind(line) == "netem"
        words = line.split()
        for number, (before, word) in enumerate(pairwise(words), start=1):
            if before not in (_NETEM if netem else _TIMES) or not _is_bare(word):
                continue
            unit = "ns" if netem or before == "timer_slack" else "us"
            yield (
                f"'{before} {word}' in '{line}' is {word} {unit}, as in tc; expected a unit, such as "
                f"'{before} {word}ms' or '{before} {word}{unit}'"
            )
            second = words[number + 1] if netem and number + 1 < len(words) else ""
            if _is_bare(second):
                yield f"'{before} {word} {second}' in '{line}': '{second}' is {second} ns, as in tc; expected a unit"


def _is_bare(word: str) -> bool:
    """Whether it is a number other than 0 without a unit."""
    return word.replace(".", "", 1).isdecimal() and float(word) != 0


def _of_window(run: Run) -> Iterator[str]:
    """That no long flow of TCP has begun when the steady state begins."""
    starts = [flow.start_s for flow in run.flows if flow.transport == "tcp" and isinstance(flow.source, Bulk)]
    start, end = run.window_s
    if starts and min(starts) >= start:
        yield (
            f"the steady state from {start:.4g} s to {end:.4g} s starts before the flows and includes their slow start"
            "; expected a shorter measure.steady_state.window, or a longer duration"
        )


def _of_rate(run: Run) -> Iterator[str]:
    """That something on the ways has a rate: without one no queue ever fills."""
    rated = any(link.rate_bps is not None or link.features for link in run.links)
    lines = [*(line for _, line in run.qdiscs()), *_classes(run)]
    if run.flows and not rated and not any(set(line.split()) & {"rate", "bandwidth", "ceil"} for line in lines):
        yield "no link has a rate, so no queue ever fills; expected for example 'bottleneck: {rate: 50mbit}'"


def _classes(run: Run) -> Iterator[str]:
    for interface in run.interfaces:
        for tree in (interface.egress, interface.ingress):
            yield from (class_.class_ for class_ in (tree.classes if tree is not None else ()))
