"""Warnings for valid but unlikely values: times without a unit in a qdisc, a window that includes slow start.

Delays and shapers that do more than their words say (`_of_shapers`) are not warned of in the catalog, whose scenarios
have them from their sources.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from math import ceil
from typing import TYPE_CHECKING, Final

from bakeoff import tc
from bakeoff.engines.sim import rates
from bakeoff.errors import BakeoffError
from bakeoff.scenario.run import Bulk
from bakeoff.scenario.scenario import OWN

if TYPE_CHECKING:
    from bakeoff.scenario import Run

_TIMES: Final = frozenset({
    "target", "interval", "ce_threshold", "tupdate", "max_rtt", "typical_rtt", "step_thresh", "rtt", "latency", "lat",
    "refill_delay", "timer_slack", "horizon",
})  # fmt: skip
"""Words of qdiscs before a time."""
_NETEM: Final = frozenset({"delay", "latency", "slot"})
"""netem's, before one time or two, which are nanoseconds if they have no unit."""

_NETEM_LIMIT: Final = 1000
"""netem's own, in packets."""
_FRAME: Final = 1514
"""Bytes of a full packet, with its Ethernet header."""


def warnings(runs: Iterable[Run]) -> list[str]:
    """The warnings for the runs, each once, with the first run that it is about."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for each in dict.fromkeys(
            (*run.notices, *_of_qdiscs(run), *_of_window(run), *_of_rate(run), *_of_shapers(run))
        ):
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
    rated = any(link.rate_bps is not None or link.features.keys() - {"jitter"} for link in run.links)
    lines = [*(line for _, line in run.qdiscs()), *_classes(run)]
    if run.flows and not rated and not any(set(line.split()) & {"rate", "bandwidth", "ceil"} for line in lines):
        yield "no link has a rate, so no queue ever fills; expected for example 'bottleneck: {rate: 50mbit}'"


def _of_shapers(run: Run) -> Iterator[str]:
    """netem that reorders or overflows, and tbf whose burst is less than its rate in a tick of the kernel's clock."""
    if run.suite != OWN:
        return
    slowest = min(rates(run), default=None)
    hz = {node.name: node.hz for node in run.nodes}
    for interface in run.interfaces:
        for tree in (interface.egress, interface.ingress):
            for _, line in tree.lines() if tree is not None else ():
                # A word that tc cannot read is refused by the engine.
                with suppress(BakeoffError):
                    if tc.kernel_kind(line) == "netem":
                        yield from _of_netem(line, slowest)
                    elif tc.kernel_kind(line) == "tbf":
                        yield from _of_tbf(line, hz[interface.node])


def _of_netem(line: str, slowest_bps: float | None) -> Iterator[str]:
    words = line.split()
    at = next((number for number, word in enumerate(words) if word in ("delay", "latency")), None)
    if at is None or at + 1 == len(words):
        return
    delay_s = tc.time(words[at + 1], bare="ns")
    jitter = words[at + 2] if at + 2 < len(words) and words[at + 2][0].isdigit() else "0"
    # Behind a rate a packet's delay counts from the one before, so that their order stays (sch_netem.c).
    if tc.time(jitter, bare="ns") and "rate" not in words:
        yield (
            f"the jitter '{jitter}' in '{line}' reorders packets, since each has a delay of its own; expected 'rate' "
            "as well, which keeps their order, such as 'rate 10gbit'"
        )
    limit = int(tc.value(line, "limit") or _NETEM_LIMIT)
    needed = ceil(delay_s * (slowest_bps or 0) / 8 / _FRAME)
    if limit < needed:
        what = f"'limit {limit}'" if "limit" in words else f"netem's default limit of {limit} packets"
        yield (
            f"{what} in '{line}' is less than the {needed} packets that {slowest_bps or 0:.4g} bit/s send in "
            f"{delay_s * 1e3:.4g} ms, so that the delay drops packets; expected 'limit {2 * needed}'"
        )


def _of_tbf(line: str, hz: int) -> Iterator[str]:
    """Source: tc-tbf(8), `burst`; above a packet, only timers of high resolution make up for it."""
    rate = tc.value(line, "rate")
    burst = next((value for word in ("burst", "buffer", "maxburst") if (value := tc.value(line, word))), None)
    if rate is None or burst is None:
        return
    needed = ceil(tc.rate(rate) / 8 / hz)
    # `burst 20k/8`: the size of a cell follows.
    if tc.size(burst.partition("/")[0]) < needed:
        yield (
            f"'burst {burst}' in '{line}' is less than the {needed} bytes that {rate} sends in a tick of HZ {hz}; "
            f"without timers of high resolution a kernel does not reach the rate; expected 'burst {needed}b' or more"
        )


def _classes(run: Run) -> Iterator[str]:
    for interface in run.interfaces:
        for tree in (interface.egress, interface.ingress):
            yield from (class_.class_ for class_ in (tree.classes if tree is not None else ()))
