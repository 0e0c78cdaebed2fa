"""What was in effect in a run, as tables of words: flows, probes, queues, interfaces, changes, hosts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bakeoff.errors import MeasureError
from bakeoff.scenario.run import Bulk, Bytes, ConstantRate, Interface, Periodic, Short, Video
from bakeoff.site.interfaces import cable_words, mangle_words, qdisc_words
from bakeoff.tables import run_labels

if TYPE_CHECKING:
    from bakeoff.plots.plotted_run import PlottedRun
    from bakeoff.scenario.run import Qdisc, Run, Source, Traffic
    from bakeoff.site.long_tables import Whole


@dataclass(frozen=True)
class Words:
    """A table of words; each row begins with what it is of."""

    caption: str
    heads: Sequence[str]
    rows: list[list[str]]
    whole: Whole | None = None
    """Where all rows are, if these are not all."""


def of(plotted: PlottedRun) -> list[Words]:
    """The tables of a run; those without rows are left out."""
    run = plotted.run
    made = [
        Words("Flows", ("flow", "from > to", "control", "feedback", "sends", "when", "empty path"), _flows(plotted)),
        Words("Probes", ("probe", "from > to", "kind", "every", "when", "empty path"), _probes(plotted)),
        Words("Queues, as the engine reported them", ("queue", "qdisc in effect"), _queues(plotted)),
        Words(
            "Interfaces and cables, as asked for",
            ("interface", "leaving", "arriving", "cable", "rules"),
            _interfaces(run),
        ),
        Words("Timed changes", ("at", "interface", "change"), _changes(run)),
        Words("Tunnels", ("tunnel", "kind", "ends", "replay window"), _tunnels(run)),
        Words("Hosts", ("node", "kind", "sysctls", "timer", "offloads"), _nodes(run)),
    ]
    return [table for table in made if table.rows]


def _flows(plotted: PlottedRun) -> list[list[str]]:
    found = []
    for flow in plotted.flows:
        ran, ecn = plotted.ran(flow)
        if flow.transport != "tcp":
            control, feedback = "UDP", ""
        else:
            control = flow.cc if ran in (None, flow.cc) else f"{ran} (asked for {flow.cc})"
            feedback = run_labels.ecn_words(ecn)
        extra = [f"DSCP {flow.dscp}"] if flow.dscp else []
        extra += [f"in the tunnel {flow.tunnel}"] if flow.tunnel else []
        sends = ", ".join([_source(flow.source), *extra])
        when = f"{flow.start_s:.4g} s to {flow.stop_s:.4g} s"
        way = f"{flow.from_} > {flow.to}"
        found.append([flow.name, way, control, feedback, sends, when, _empty(plotted, flow)])
    return found


def _probes(plotted: PlottedRun) -> list[list[str]]:
    return [
        [
            probe.name, f"{probe.from_} > {probe.to}", f"{probe.proto}, {probe.size} bytes",
            f"{probe.every_s * 1e3:g} ms", f"{probe.start_s:.4g} s to {probe.stop_s:.4g} s",
            _empty(plotted, probe),
        ]
        for probe in plotted.run.probes
    ]  # fmt: skip


def _empty(plotted: PlottedRun, flow: Traffic) -> str:
    """The round-trip time of its path while all queues are empty."""
    try:
        return f"{plotted.base_rtt_s(flow) * 1e3:.4g} ms"
    except MeasureError:
        return ""


def _source(source: Source) -> str:
    """What a flow sends."""
    match source:
        case Bulk():
            return "always more data"
        case Bytes(bytes=size):
            return f"{size:,} bytes"
        case ConstantRate(rate_bps=rate, size=size):
            return f"{rate / 1e6:g} Mbit/s in pieces of {size} bytes"
        case Periodic(size=size, count=count, every_s=every_s):
            return f"{count} × {size} bytes every {every_s * 1e3:g} ms"
        case Short(objects=objects):
            return f"{len(objects):,} objects, each in a connection of its own"
        case Video(rates_bps=rates, segment_s=segment_s):
            return f"video at {'/'.join(f'{rate / 1e6:g}' for rate in rates)} Mbit/s in segments of {segment_s:g} s"


def _queues(plotted: PlottedRun) -> list[list[str]]:
    return [[name, queue.qdisc] for name, queue in plotted.result.counters.queues.items()]


def _interfaces(run: Run) -> list[list[str]]:
    known = {(one.node, one.peer): one for one in run.interfaces}
    found = []
    for link in run.links:
        for node, peer in (link.ends, link.ends[::-1]):
            one = known.get((node, peer)) or Interface(node=node, peer=peer)
            leaving, arriving = _tree(one.egress), _tree(one.ingress)
            rules = "; ".join(mangle_words(rule) for rule in one.mangle)
            found.append([f"{node}>{peer}", leaving, arriving, ", ".join(cable_words(link)), rules])
    return found


def _tree(tree: Qdisc | None) -> str:
    return "" if tree is None else " → ".join(qdisc_words(tree))


def _changes(run: Run) -> list[list[str]]:
    from bakeoff.plots.panels import action_words

    return [
        [f"{change.at_s:g} s", f"{change.node}>{change.peer}", action_words(change.action)] for change in run.changes
    ]


def _tunnels(run: Run) -> list[list[str]]:
    found = []
    for tunnel in run.tunnels:
        window = tunnel.replay_window
        checked = "" if window is None else f"{window} packets" if window else "none"
        found.append([tunnel.name, tunnel.kind, " – ".join(tunnel.ends), checked])
    return found


def _nodes(run: Run) -> list[list[str]]:
    return [
        [
            node.name, node.kind, _pairs(node.sysctls.items()),
            f"{node.hz} Hz", "on" if node.offloads else "off",
        ]
        for node in run.nodes
    ]  # fmt: skip


def _pairs(several: Iterable[tuple[str, object]]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in several)
