"""The page with SCE beside L4S: a suite's scenarios that differ only in this word, by rate, RTT and neighbour."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from bakeoff.errors import BakeoffError, MeasureError
from bakeoff.measure.delays import base_rtt
from bakeoff.scenario.cc_words import parse
from bakeoff.site.site_contents import sides
from bakeoff.tables.cells import mbit, milli, starred
from bakeoff.tables.label_order import Key, by_value
from bakeoff.tables.rows import qdisc_order
from bakeoff.text.columns import clean

if TYPE_CHECKING:
    from bakeoff.site.pages import Site
    from bakeoff.site.site_contents import Contents, Page
    from bakeoff.tables.rows import Row

CAMPS: Final = {"sce": "SCE", "l4s": "L4S"}
"""Words of scenario names, and how the page names them."""
_NOT_A_ROW: Final = ("cc", "rate", "rtt")
"""Axes whose values the page shows in other ways."""


@dataclass(frozen=True)
class Run:
    """A run as the page shows it."""

    page: Page
    controls: str
    qdisc: str
    goodputs: str
    """In Mbit/s, by flow."""
    queue: str
    """Median and 99th percentile of the queue's delay, in ms."""
    ping: str
    """Mean round-trip time of a probe, in ms."""


@dataclass(frozen=True)
class Group:
    """Rows with the same heads; each line has a run per camp, or None."""

    heads: tuple[str, ...]
    lines: list[tuple[Run | None, ...]]


@dataclass(frozen=True)
class Matrix:
    """The scenarios of a suite whose names differ in the camp only."""

    name: str
    by: str
    """The engine and campaign, if there are several."""
    camps: tuple[str, ...]
    heads: tuple[str, ...]
    groups: list[Group]


def gather(contents: Contents) -> list[Matrix]:
    """One matrix per suite, engine and pair of scenarios; none without scenarios of two camps."""
    found = []
    by = sides(contents.pages)
    for side, pages in by.items():
        families: dict[tuple[str, str], dict[str, list[Page]]] = {}
        known = set()
        for page in pages:
            split = _camp(page.result.run.scenario)
            if page.row is not None and split is not None and id(page.row) not in known:
                known.add(id(page.row))
                camp, rest = split
                families.setdefault((page.result.run.suite, rest), {}).setdefault(camp, []).append(page)
        for (suite, rest), members in families.items():
            if len(members) > 1:
                ordered = {camp: members[camp] for camp in CAMPS if camp in members}
                found.append(_matrix(f"{suite}/{rest}".rstrip("/"), side if len(by) > 1 else "", ordered))
    return found


def _camp(scenario: str) -> tuple[str, str] | None:
    """The camp that a scenario's name holds, and the name without it."""
    words = scenario.split("-")
    camps = [word for word in words if word in CAMPS]
    return (camps[0], "-".join(word for word in words if word not in CAMPS)) if len(camps) == 1 else None


def _matrix(name: str, by: str, members: Mapping[str, Sequence[Page]]) -> Matrix:
    shared = set.intersection(*({cc for page in pages for cc in _controls(page)} for pages in members.values()))
    axes = list(
        dict.fromkeys(
            axis for pages in members.values() for page in pages
            for axis in page.result.run.point if axis not in _NOT_A_ROW
        )
    )  # fmt: skip
    labels = {
        axis: set.intersection(
            *({page.result.run.point.get(axis, "") for page in pages} for pages in members.values())
        )
        for axis in axes
    }  # fmt: skip
    axes = [axis for axis in axes if labels[axis] - {""}]
    cells: dict[tuple[str, ...], dict[str, list[Run]]] = {}
    for camp, pages in members.items():
        for page in pages:
            assert page.row is not None
            point = page.result.run.point
            varied = [point.get(axis, "") if point.get(axis) in labels[axis] else "own" for axis in axes]
            heads = (_rate(page.row), _rtt(page), _who(page, shared), *varied)
            cells.setdefault(heads, {}).setdefault(camp, []).append(_run(page, page.row))
    groups = [
        Group(
            tuple(clean(head) for head in heads),
            list(zip_longest(*(sorted(runs.get(camp, ()), key=_run_order) for camp in members))),
        )
        for heads, runs in sorted(cells.items(), key=lambda item: _order(item[0]))
    ]
    heads = ("rate", "RTT", "flows", *map(clean, axes))
    return Matrix(clean(name), by, tuple(CAMPS[camp] for camp in members), heads, groups)


def _controls(page: Page) -> list[str]:
    return [parse(flow.cc or "?").name if flow.transport == "tcp" else "udp" for flow in page.result.run.flows]


def _who(page: Page, shared: set[str]) -> str:
    """The flows; a control that only one camp has is its own: `own vs cubic`."""
    return " vs ".join(cc if cc in shared else "own" for cc in _controls(page))


def _rate(row: Row) -> str:
    return f"{row.rate_bps / 1e6:.4g} Mbit/s" if row.rate_bps else ""


def _rtt(page: Page) -> str:
    found: dict[str, None] = {}
    for flow in page.result.run.flows:
        with suppress(MeasureError, BakeoffError):
            found[f"{base_rtt(page.result.run, flow) * 1e3:.3g} ms"] = None
    return ", ".join(found)


def _run(page: Page, row: Row) -> Run:
    summary = row.summaries[0]
    named = [queue for rated in summary.rated if rated.flows for queue in rated.queues if queue in summary.queues]
    qdiscs = dict.fromkeys(summary.queues[queue].qdisc.partition(" ")[0] for queue in named)
    rates = [flow.rates_bps["goodput"] for flow in row.flows]
    delays = [row.queue_delay_p50_s, row.queue_delay_p99_s]
    return Run(
        page,
        clean(" vs ".join(_controls(page))),
        clean(page.result.run.point.get("qdisc") or " → ".join(qdiscs)),
        starred(row, " : ".join(mbit(rate["mean"]) if rate else "–" for rate in rates)),
        " / ".join(milli(delay) for delay in delays) if None not in delays else "",
        "" if row.probe_rtt_mean_s is None else milli(row.probe_rtt_mean_s),
    )


def _run_order(run: Run) -> tuple[object, ...]:
    point = run.page.result.run.point
    return (qdisc_order(point.get("qdisc", "")), run.controls, run.page.id)


def _order(heads: Sequence[str]) -> tuple[tuple[int, Key], ...]:
    """By value; `own` comes first."""
    return tuple((head.split(" ")[0] != "own", by_value(head)) for head in heads)


def render(found: Sequence[Matrix], site: Site) -> str:
    """The page."""
    return site.render("camps.html.j2", "", matrices=found)
