"""Many flows of a run in groups of equal ones: the sum of their rates, its share, and what each of them gets."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bakeoff.measure.sharing import queue_of
from bakeoff.scenario.cc_words import parse
from bakeoff.tables.cells import mbit, milli, percent, starred
from bakeoff.tables.records import equal_flows
from bakeoff.text.columns import Column, clean

if TYPE_CHECKING:
    from bakeoff.tables.rows import FlowRow, Row


@dataclass(frozen=True)
class Group:
    """Equal flows."""

    name: str
    """What they have in common, without their number: `user cubic` of user1 to user20."""
    rates: tuple[float, ...]
    """In bit/s, by flow."""
    share: str
    """Their part of the rates of all flows at their queue, in per cent; empty where nothing arrives."""
    flows: tuple[str, ...]

    @property
    def label(self) -> str:
        """With their number, `20 user cubic`; of one flow its name."""
        return self.name if len(self.flows) == 1 else f"{len(self.flows)} {self.name}".rstrip()


def groups(row: Row) -> list[Group]:
    """The groups of a run, in the order of their first flows."""
    rates = {flow.name: rate_of(flow, row) for flow in row.flows}
    at = queue_of(row.summaries[0].flows, row.document)
    named = _named(row)
    sums = {name: sum(rates[flow] for flow in flows) for name, flows in named.items()}
    shares: dict[str, str] = {}
    # Only flows that meet in a queue have shares of one thing.
    for queue in dict.fromkeys(at.values()):
        inside = [name for name, flows in named.items() if at[flows[0]] == queue]
        total = sum(sums[name] for name in inside)
        parts = percent([sums[name] / total for name in inside]) if total else [""] * len(inside)
        shares |= dict(zip(inside, parts, strict=True))
    return [
        Group(name, tuple(rates[flow] for flow in flows), shares[name], tuple(flows)) for name, flows in named.items()
    ]


def _named(row: Row) -> dict[str, list[str]]:
    """The flows by what they have in common: what their names begin with, and their congestion control."""
    found: dict[str, list[str]] = {}
    ccs = {flow.name: parse(flow.cc or "?").name for flow in row.flows}
    for names in equal_flows(row):
        if len(names) == 1:
            label = names[0]
        else:
            first, last = min(names), max(names)
            same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
            prefix = re.sub(r"[\d\W_]+$", "", first[:same])
            label = " ".join(dict.fromkeys(part for part in (prefix, ccs[names[0]]) if part not in ("", "none", "?")))
            label = label or "flows"
        while label in found:
            label += "'"
        found[label] = names
    return found


def columns(table: Sequence[Row]) -> list[Column]:
    """The groups of several runs side by side."""
    every = [{group.name: group for group in groups(row)} for row in table]
    found = []
    if any(row.n > 1 for row in table):
        found.append(Column("n", [str(row.n) for row in table], 8))
    for name in dict.fromkeys(name for named in every for name in named):
        mine = [named.get(name) for named in every]
        labels = {group.label for group in mine if group}
        head = labels.pop() if len(labels) == 1 else name
        if labels:
            found.append(Column(f"{clean(head)}\nflows", [str(len(group.flows)) if group else "" for group in mine], 8))
        sums = [starred(row, mbit(sum(group.rates))) if group else "" for row, group in zip(table, mine, strict=True)]
        found.append(Column(f"{clean(head)}\nMbit/s", sums, 9))
        ranges = [_range(group.rates) if group and len(group.flows) > 1 else "" for group in mine]
        if any(ranges):
            found.append(Column("each\nMbit/s", ranges, 8))
        found.append(Column("share", [group.share if group else "" for group in mine], 7))
    return found


def of_one(row: Row) -> list[Column]:
    """The groups of one run, one below the other."""
    found = groups(row)

    def over(what: str, which: str, pick: Callable[[list[float]], float]) -> list[str]:
        cells = []
        for group in found:
            known = [getattr(row.summaries[0].flows[name], what) for name in group.flows]
            values = [getattr(one, which) for one in known if one is not None]
            cells.append(starred(row, milli(pick(values))) if values else "")
        return cells

    made = [
        Column("flows", [clean(group.label) for group in found], text=True),
        Column("sum\nMbit/s", [starred(row, mbit(sum(group.rates))) for group in found]),
        Column("share", [group.share for group in found]),
        Column("each Mbit/s\nleast-most", [_range(group.rates) for group in found], 8),
        Column("RTT ms\nmean", over("srtt_s", "mean", lambda values: sum(values) / len(values)), 7),
        Column("RTT ms\nworst p99", over("srtt_s", "p99", max), 6),
        Column("one-way ms\nworst p99", over("delay_s", "p99", max), 6),
    ]
    return [column for column in made if any(column.cells)]


def _range(rates: Sequence[float]) -> str:
    return f"{mbit(min(rates))}-{mbit(max(rates))}"


def rate_of(flow: FlowRow, row: Row) -> float:
    """The rate that a run's table shows of a flow, in bit/s; 0 if nothing arrived."""
    share = flow.rate_bps(row.metric)
    return share["mean"] if share else 0.0
