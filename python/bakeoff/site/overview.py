"""What the overview knows of every run, as one compact script: the page itself filters it and draws what is visible."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import astuple, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bakeoff.errors import BakeoffError, MeasureError
from bakeoff.measure import Mean
from bakeoff.measure.delays import base_rtt
from bakeoff.plots import colours
from bakeoff.plots.flow_styles import FlowStyles, flow_styles
from bakeoff.plots.plotted_run import control_words
from bakeoff.tables.cells import percent
from bakeoff.tables.label_order import by_value
from bakeoff.tables.records import shares
from bakeoff.tables.rows import qdisc_order
from bakeoff.tables.run_labels import engine_of
from bakeoff.text.columns import clean

if TYPE_CHECKING:
    from bakeoff.scenario.run import Flow as RunFlow
    from bakeoff.scenario.run import Run as ResolvedRun
    from bakeoff.site.site_contents import Contents, Page
    from bakeoff.tables.rows import Row

_SEGMENTS: Final = 4
"""Flows that a bar has a part for each of; more are taken together by congestion control."""
_FELT: Final = 4
_UNKNOWN: Final = "unknown"


@dataclass(frozen=True)
class Run:
    """The repetitions of a run in one campaign, which the overview shows as one."""

    pages: Sequence[Page]

    @property
    def row(self) -> Row | None:
        """The measures; None if all repetitions failed."""
        return next((page.row for page in self.pages if page.row is not None), None)

    @property
    def failed(self) -> list[Page]:
        """The repetitions that failed."""
        return [page for page in self.pages if not page.result.ok]

    @property
    def document(self) -> ResolvedRun:
        """The resolved run of the first."""
        return self.pages[0].result.run


def runs(contents: Contents) -> list[Run]:
    """Every run once, in the order of the results."""
    found: dict[tuple[str, str, str], list[Page]] = {}
    for page in contents.pages:
        key = page.campaign, page.result.key.partition("~seed")[0], engine_of(page.result)
        found.setdefault(key, []).append(page)
    return [Run(pages) for pages in found.values()]


@dataclass
class _Facet:
    """What runs can be filtered by: its name in the address, its words, and the values that there are."""

    key: str
    label: str
    values: dict[str, int] = field(default_factory=dict)

    def code(self, value: str) -> int:
        return self.values.setdefault(value, len(self.values))


_EVERY: Final = {
    "suite": "Suite",
    "scenario": "Scenario",
    "campaign": "Campaign",
    "engine": "Engine",
    "status": "Status",
    "cc": "Congestion control",
    "qdisc": "Queue",
    "rate": "Rate",
    "rtt": "Round-trip time",
}
"""What every run has, by the name in the page's address."""


def document(contents: Contents) -> dict[str, Any]:
    """All that the overview's script knows, as plain JSON values.

    `facets` say what can be filtered by; a run has the numbers of its values by the facet's number. Rates are in
    Mbit/s, times in ms, shares between 0 and 1.
    """
    several = runs(contents)
    facets = {key: _Facet(key, label) for key, label in _EVERY.items()}
    for run in several:
        for axis in run.document.point:
            facets.setdefault(f"vary.{axis}", _Facet(f"vary.{axis}", f"Varied: {axis}"))
    numbers: dict[str, int] = {}
    scenarios: dict[str, dict[str, Any]] = {}
    listed = []
    looked = flow_styles(page.result for page in contents.pages)
    for run in several:
        at = run.document
        name = f"{at.suite}/{at.scenario}"
        scenario = scenarios.setdefault(name, {"name": clean(name), "title": "", "axes": {}, "at": len(scenarios)})
        scenario["axes"].update(dict.fromkeys(at.point))
        listed.append(_run(run, facets, numbers, looked, scenario["at"]))
    order = {facet.key: _ordered(facet) for facet in facets.values()}
    chosen = [facet for facet in facets.values() if facet.values]
    for one in listed:
        codes = one.pop("facets")
        one["f"] = {
            number: [order[facet.key][code] for code in codes[facet.key]]
            for number, facet in enumerate(chosen)
            if facet.key in codes
        }
    return {
        "summary": summary(contents),
        "made": [list(astuple(one)) for one in campaigns(contents)],
        "facets": [{"key": facet.key, "label": facet.label, "values": _values(facet, order)} for facet in chosen],
        "scenarios": [
            {"name": scenario["name"], "axes": [f"vary.{axis}" for axis in scenario["axes"]]}
            for scenario in scenarios.values()
        ],
        "words": list(numbers),
        "runs": listed,
    }


def script(contents: Contents) -> str:
    """The same as a script that a page without a server can load."""
    return f"bakeoff.overview({json.dumps(document(contents), ensure_ascii=False, separators=(',', ':'))});\n"


def _run(
    run: Run, facets: Mapping[str, _Facet], numbers: dict[str, int], looked: FlowStyles, scenario: int
) -> dict[str, Any]:
    first, row = run.pages[0], run.row
    best = next((page for page in run.pages if page.result.ok), first)

    def word(text: str) -> int:
        return numbers.setdefault(clean(text), len(numbers))

    made: dict[str, Any] = {
        "id": best.id,
        "name": clean(run.document.run),
        "s": scenario,
        "n": len(run.pages),
        "facets": {key: [facets[key].code(value) for value in values] for key, values in _known(run).items()},
    }
    if run.failed:
        made["failed"] = [
            [page.id, word(f"seed {page.result.run.seed}"), word(page.result.record.error or "no reason given")]
            for page in run.failed
        ]
    if row is not None:
        made |= {
            "bars": _bars(row, word, looked),
            "queue": word(row.summaries[0].bottleneck.queue if row.summaries[0].bottleneck else ""),
            "delay": [_short(row.queue_delay_p50_s, 1e3), _short(row.queue_delay_p99_s, 1e3)],
            "felt": [[word(name), _short(late, 1e3)] for name, late in _felt(row)],
            "ping": _short(row.probe_rtt_mean_s, 1e3),
            "use": _short(row.utilisation),
            "jain": _short(row.jain),
        }
        if noted := [*row.notes, *_some(row)]:
            made["notes"] = [word(note) for note in noted]
    return made


def _known(run: Run) -> dict[str, list[str]]:
    """The run's values of every facet."""
    at, row, page = run.document, run.row, run.pages[0]
    failed = len(run.failed)
    status = ["ok"] if not failed else ["failed"] if failed == len(run.pages) else ["ok", "failed"]
    rtts = []
    for flow in page.result.run.flows:
        with suppress(MeasureError, BakeoffError):
            rtts.append(f"{base_rtt(page.result.run, flow) * 1e3:.3g} ms")
    found = {
        "suite": [at.suite],
        "scenario": [f"{at.suite}/{at.scenario}"],
        "campaign": [page.campaign] if page.campaign else [],
        "engine": [engine_of(page.result)],
        "status": status,
        "cc": list(dict.fromkeys(_cc(flow, row) for flow in at.flows)),
        "qdisc": _qdiscs(row),
        "rate": [f"{row.rate_bps / 1e6:.4g} Mbit/s"] if row and row.rate_bps else [],
        "rtt": list(dict.fromkeys(rtts)),
        **{f"vary.{axis}": [label] for axis, label in at.point.items()},
    }
    return {key: [clean(value) for value in values] for key, values in found.items() if values}


def _cc(flow: RunFlow, row: Row | None) -> str:
    if flow.transport != "tcp":
        return "udp"
    ran = row.summaries[0].flows[flow.name].cc if row is not None else None
    return str(ran or flow.cc)


def _some(row: Row) -> list[str]:
    """Which numbers of a cell are means over some of the repetitions only."""
    numbers = {"queue delay": row.queue_delay_p50_s, "ping": row.probe_rtt_mean_s, "Jain's index": row.jain}
    return [
        f"{name}: mean over {mean.n} of {mean.of} repetitions; the others have none"
        for name, mean in numbers.items()
        if mean is not None and mean.n < mean.of
    ]


def _felt(row: Row) -> list[tuple[str, Mean]]:
    """How late 99 of 100 packets of each call at most are, and of each probe beside them; nothing without a call."""
    first = row.summaries[0]
    calls = [name for name, flow in first.flows.items() if flow.transport == "udp" and flow.delay_s is not None]
    if not calls:
        return []
    found = [(name, [summary.flows[name].delay_s for summary in row.summaries]) for name in calls]
    found += [(name, [summary.probes[name].rtt_s for summary in row.summaries]) for name in first.probes]
    late = [(name, Mean.over(part.p99 if part else None for part in parts)) for name, parts in found]
    return [(name, mean) for name, mean in late if mean is not None][:_FELT]


def _qdiscs(row: Row | None) -> list[str]:
    """The kinds of queue at the bottlenecks that data passes, as they were in effect."""
    if row is None:
        return []
    summary = row.summaries[0]
    named = [
        name
        for rated in summary.rated
        if rated.flows or not summary.flows
        for name in rated.queues
        if name in summary.queues
    ]
    return list(dict.fromkeys(summary.queues[name].qdisc.partition(" ")[0] for name in named))


def _bars(row: Row, word: Any, looked: FlowStyles) -> list[list[Any]]:  # noqa: ANN401 (gives a text its number)
    """For each bottleneck its name, its utilisation, and who has which share of what passes.

    A part has a name, a control, a share, the same in words, and a colour.
    """
    known = shares(row)
    flows = {flow.name: flow for flow in row.document.flows}
    used = {rated.queue: rated.utilisation for rated in row.summaries[0].rated}
    by_queue: dict[str, list[str]] = {}
    for name, flow in row.summaries[0].flows.items():
        by_queue.setdefault(flow.bottleneck or "", []).append(name)
    bars = []
    for queue, names in by_queue.items():
        controls = {name: colours.control(flows[name].cc, flows[name].transport) for name in names}
        parts = [
            (name, controls[name], known[name], looked.of(row.document, name, controls[name])[0]) for name in names
        ]
        if len(names) > _SEGMENTS:
            parts = []
            for control in dict.fromkeys(controls.values()):
                own = [name for name in names if controls[name] == control]
                label = own[0] if len(own) == 1 else f"{control_words(control)} ({len(own)} flows)"
                share = sum(known[name] or 0.0 for name in own)
                parts.append((label, control, share, looked.of_control(row.document, control)[0]))
        there = [part[2] or 0.0 for part in parts]
        texts = percent(there) if sum(there) > 0 else [""] * len(parts)
        bars.append(
            [
                word(queue),
                _short(used.get(queue)),
                [
                    [word(name), word(control_words(control)), _short(share), word(text), word(colour)]
                    for (name, control, share, colour), text in zip(parts, texts, strict=True)
                ],
            ]
        )
    return bars


def _short(value: float | None, scale: float = 1.0) -> float | None:
    """Four digits are more than a cell shows."""
    return None if value is None else float(f"{value * scale:.4g}")


def _ordered(facet: _Facet) -> dict[int, int]:
    """From the number that a value got as it was met to its place in the order that people expect."""
    known = sorted(facet.values, key=lambda value: _order(facet.key, value))
    return {facet.values[value]: index for index, value in enumerate(known)}


def _order(key: str, value: str) -> tuple[Any, ...]:
    return qdisc_order(value) if key in ("qdisc", "vary.qdisc") else (0, by_value(value))


def _values(facet: _Facet, order: Mapping[str, Mapping[int, int]]) -> list[str]:
    places = order[facet.key]
    return sorted(facet.values, key=lambda value: places[facet.values[value]])


@dataclass(frozen=True)
class Made:
    """From which bakeoff, command and day a campaign's runs are."""

    name: str
    runs: str
    engine: str
    version: str
    commit: str
    epoch: str
    date: str
    command: str
    note: str


def campaigns(contents: Contents) -> list[Made]:
    """One line for all runs that were made alike; a result that does not say where it comes from has empty words."""
    groups: dict[tuple[str, ...], list[Page]] = {}
    for page in contents.pages:
        made = page.result.record.provenance
        cells = [page.campaign or contents.root.resolve().name, engine_of(page.result)]
        if made is None:
            cells += [page.result.record.versions.get("bakeoff", ""), "", "", "", ""]
        else:
            commit = f"{made.commit[:12]}{' with changes' if made.dirty else ''}" if made.commit else _UNKNOWN
            cells += [made.version, commit, str(made.model_epoch), shlex.join(made.command), made.note or ""]
        groups.setdefault(tuple(clean(word) for word in cells), []).append(page)
    return [
        Made(name, str(len(pages)), engine, version, commit, epoch, _days(pages), command, note)
        for (name, engine, version, commit, epoch, command, note), pages in groups.items()
    ]


def _days(pages: Sequence[Page]) -> str:
    dates = [made.date for page in pages if (made := page.result.record.provenance) is not None]
    return f"{min(dates):%Y-%m-%d %H:%M} UTC" if dates else ""


def summary(contents: Contents) -> str:
    """How many runs of what the site shows, in one sentence."""
    several = runs(contents)
    if not several:
        return "No run has ended yet."
    scenarios = {(run.document.suite, run.document.scenario) for run in several}
    engines = list(dict.fromkeys(engine_of(page.result) for page in contents.pages))
    failed = sum(not page.result.ok for page in contents.pages)
    repetitions = f", {len(contents.pages)} with their repetitions" if len(contents.pages) > len(several) else ""
    return (
        f"{_count(len(several), 'run')} of {_count(len(scenarios), 'scenario')}{repetitions}, "
        f"by the engine{'s' if len(engines) > 1 else ''} {', '.join(engines)}. "
        + (f"{failed} failed." if failed else "None failed.")
    )


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
