"""What is valid in a run and probably not meant: times without a unit in a qdisc, a window that holds slow start."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from bakeoff import tc

if TYPE_CHECKING:
    from bakeoff.scenario import Run

Part = Mapping[str, Any]
"""Of a resolved run."""

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
        document = json.loads(run.to_json())
        for each in dict.fromkeys(
            (*getattr(run, "notices", ()), *_of_qdiscs(document), *_of_window(document), *_of_rate(document))
        ):
            found.setdefault(each, []).append(run.key)
    return [
        f"{keys[0]}{f' and {len(keys) - 1} more runs' if len(keys) > 1 else ''}: {text}" for text, keys in found.items()
    ]


def _of_qdiscs(run: Part) -> Iterator[str]:
    for line in dict.fromkeys(_lines(run)):
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


def _lines(run: Part) -> Iterator[str]:
    for interface in run["interfaces"]:
        for side in ("egress", "ingress"):
            yield from _of_tree(interface.get(side))
    for change in run["changes"]:
        words = change["action"].get("qdisc")
        yield from [words] if isinstance(words, str) else _of_tree(words)


def _of_tree(tree: Part | None) -> Iterator[str]:
    if tree is None:
        return
    yield tree["qdisc"]
    yield from _of_tree(tree.get("child"))
    for class_ in tree.get("classes", ()):
        yield from _of_tree(class_.get("child"))


def _of_window(run: Part) -> Iterator[str]:
    """That no long flow of TCP has begun when the steady state begins."""
    starts = [
        flow["start_s"] for flow in run["flows"] if flow["transport"] == "tcp" and flow["source"]["kind"] == "bulk"
    ]
    begin, end = run["window_s"]
    if starts and min(starts) >= begin:
        yield (
            f"the steady state from {begin:.4g} s to {end:.4g} s begins before the flows do and holds their slow start"
            "; expected a shorter measure.steady_state.window, or a longer duration"
        )


def _of_rate(run: Part) -> Iterator[str]:
    """That something on the ways has a rate: without one no queue ever fills."""
    rated = any(link["rate_bps"] is not None or link["features"] for link in run["links"])
    lines = [*_lines(run), *(each["class"] for _, each in _classes(run))]
    if run["flows"] and not rated and not any(set(line.split()) & {"rate", "bandwidth", "ceil"} for line in lines):
        yield "nothing on the way has a rate, so no queue ever fills; expected for example 'bottleneck: {rate: 50mbit}'"


def _classes(run: Part) -> Iterator[tuple[str, Part]]:
    for interface in run["interfaces"]:
        for side in ("egress", "ingress"):
            tree = interface.get(side)
            yield from ((side, each) for each in (tree or {}).get("classes", ()))
