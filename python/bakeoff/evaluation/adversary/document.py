"""A point of the space as a scenario file, and its runs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff.evaluation.adversary import space
from bakeoff.evaluation.adversary.goal import ITSELF, ONE, OTHER
from bakeoff.measure.functions import CATALOGUE
from bakeoff.scenario.observe import observe
from bakeoff.scenario.python_cc import short, split
from bakeoff.scenario.scenario import OWN, from_document, runs_at
from bakeoff.scenario.yaml_file import parse_yaml

if TYPE_CHECKING:
    from bakeoff.evaluation.adversary.goal import Goal
    from bakeoff.evaluation.adversary.space import Point
    from bakeoff.scenario import Run

DURATION_S: Final = 20
_PACKET_BITS: Final = 12000
_LEAST_PACKETS: Final = 2
_UNUSED_DSCP: Final = "0x13"
"""Selects the delay of one flow; no qdisc treats it specially."""


@dataclass(frozen=True)
class Contest:
    """The controls of a search and what it measures."""

    cc: str
    baseline: str
    goal: Goal

    @property
    def seats(self) -> tuple[str, str]:
        """The control and the baseline."""
        return self.cc, self.baseline


def text(contest: Contest, point: Point, other: str | None, name: str = "worst") -> str:
    """The scenario file: both controls in one seat. `other` is the competitor; the control itself stands for both."""
    return "\n".join([f"scenario: {name}", *_lines(contest, point, other)]) + "\n"


def runs(contest: Contest, written: str, name: str, seeds: Sequence[int]) -> list[tuple[Run, Run]]:
    """For each seed the run with the control, and the one with the baseline. BakeoffError for an invalid scenario."""
    document = parse_yaml(written, "worst")
    scenario = from_document(
        {**document, "scenario": name}, path="worst", suite=OWN, default_name=name,
        typed=frozenset(_quoted(each) for each in (*contest.seats, *contest.goal.competitors) if each is not None),
    )  # fmt: skip
    traced = any(CATALOGUE[call.measure].of_variable for call in contest.goal.expression.calls)
    found = []
    for seed in seeds:
        pair = runs_at(scenario, scenario.points, seed=seed, seeds=1)
        ours, theirs = [observe(run, trace=["cc"]) if traced else run for run in pair]
        found.append((ours, theirs))
    return found


def mean_rate(point: Point) -> float:
    """The mean rate of the link in the window, which is the last two thirds [bit/s]."""
    rate, step = _number(point, space.RATE), _optional(point, space.STEP)
    return rate if step is None else rate / 4 + step * 3 / 4


def _lines(contest: Contest, point: Point, other: str | None) -> list[str]:
    rate, rtt = _number(point, space.RATE), _number(point, space.RTT)
    loss, jitter, step = (_optional(point, each) for each in (space.LOSS, space.JITTER, space.STEP))
    shape = _rate(rate) if step is None else f"[[0s, {_rate(rate)}], [{DURATION_S // 2}s, {_rate(step)}]]"
    queue, comment = str(point[space.QUEUE]), ""
    if queue == "pfifo":
        bdp = _number(point, space.BUFFER)
        queue = f"pfifo limit {max(_LEAST_PACKETS, round(bdp * rate * rtt / _PACKET_BITS))}"
        comment = f"  # {bdp:g} BDP"
    return [
        f"duration: {DURATION_S}s",
        "network:",
        "  path: [cli, mid, srv]",
        f"  rtt: {_time(rtt)}",
        *([] if jitter is None else [f"  delay: {{jitter: {_time(jitter * rtt)}, extra: rate 10gbit}}"]),
        *([] if loss is None else [f"  links: [{{ends: [mid, srv], loss: {{mid: {loss * 100:.3g}%}}}}]"]),
        f"  bottleneck: {{rate: {shape}, qdisc: {queue}}}{comment}",
        "flows:",
        *_flows(point, other, rate),
        *_probes(contest.goal),
        f"vary: {{cc: {_axis(contest)}}}",
    ]


def _flows(point: Point, other: str | None, rate: float) -> list[str]:
    start, its_rtt = _optional(point, space.START), _optional(point, space.OTHER_RTT)
    cross, crowd = _optional(point, space.CROSS), _optional(point, space.CROWD)
    competitor = f'"{ITSELF}"' if other in (None, ITSELF) else _quoted_yaml(str(other))
    flows = [[f"name: {ONE}", f'cc: "{ITSELF}"']]
    if start is not None and start < 0:
        flows[0].append(f"start: {_time(-start)}")
    if other is not None:
        flows.append([f"name: {OTHER}", f"cc: {competitor}"])
        if start is not None and start > 0:
            flows[1].append(f"start: {_time(start)}")
        if its_rtt is not None:
            flows[1] += [f"rtt: {_time(its_rtt)}", f"dscp: {_UNUSED_DSCP}"]
    if crowd is not None:
        flows.append(['name: "more{n}"', f"count: {crowd:.0f}", f"cc: {competitor}"])
    if cross is not None:
        flows.append(["name: cross", "transport: udp", f"source: {{rate: {_rate(cross * rate)}, size: 1200B}}"])
    return [f"  - {{{', '.join(words)}}}" for words in flows]


def _probes(goal: Goal) -> list[str]:
    needed = any(CATALOGUE[call.measure].of == "probe" for call in goal.expression.calls)
    return ["probes: [{name: ping, type: udp, every: 20ms}]"] if needed else []


def _axis(contest: Contest) -> str:
    if any(split(each) for each in contest.seats):
        return "{" + ", ".join(f"{json.dumps(label(each))}: {_quoted_yaml(each)}" for each in contest.seats) + "}"
    return "[" + ", ".join(map(_quoted_yaml, contest.seats)) + "]"


def label(cc: str) -> str:
    """A control as a name has it: a class in a file without the file."""
    module = split(cc)
    return " ".join((short(cc), *module.words)) if module else cc


def _quoted(cc: str) -> str:
    """As a scenario has it: braces are placeholders there."""
    return cc.replace("{", "{{").replace("}", "}}")


def _quoted_yaml(cc: str) -> str:
    written = _quoted(cc)
    return written if written.replace("-", "").replace("@", "").isalnum() else json.dumps(written)


def _number(point: Point, name: str) -> float:
    value = point[name]
    assert value is not None
    return float(value)


def _optional(point: Point, name: str) -> float | None:
    value = point.get(name)
    return None if value is None else float(value)


def _rate(value: float) -> str:
    return f"{value / 1e6:.3g}mbit" if value >= 1e6 else f"{value / 1e3:.3g}kbit"


def _time(value: float) -> str:
    return f"{value:.3g}s" if value >= 1 else f"{value * 1e3:.3g}ms"


def absolute(cc: str) -> str:
    """A control of a file by its absolute path, so that a scenario anywhere may name it; others as they are."""
    module = split(cc)
    return (
        cc if module is None else " ".join((f"{Path(module.path).expanduser().resolve()}:{module.name}", *module.words))
    )
