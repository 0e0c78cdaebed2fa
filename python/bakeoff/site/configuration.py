"""What was in effect in a run, as tables of words: flows, probes, queues, interfaces, changes, hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bakeoff.measure.samples import MeasureError
from bakeoff.site.interfaces import cable_words, mangle_words, qdisc_words
from bakeoff.tables import run_labels

if TYPE_CHECKING:
    from bakeoff.plots.plotted_run import PlottedRun
    from bakeoff.site.long_tables import Whole


@dataclass(frozen=True)
class Words:
    """A table of words; each row begins with what it is of."""

    caption: str
    heads: Sequence[str]
    rows: list[list[str]]
    whole: Whole | None = None
    """Where all rows are, if these are not all."""


def of(shown: PlottedRun) -> list[Words]:
    """The tables of a run; those without rows are left out."""
    resolved = shown.resolved
    made = [
        Words("Flows", ("flow", "from > to", "control", "feedback", "sends", "when", "empty path"), _flows(shown)),
        Words("Probes", ("probe", "from > to", "kind", "every", "when", "empty path"), _probes(shown)),
        Words("Queues, as the engine reported them", ("queue", "qdisc in effect"), _queues(shown)),
        Words(
            "Interfaces and cables, as asked for",
            ("interface", "leaving", "arriving", "cable", "rules"),
            _interfaces(resolved),
        ),
        Words("Timed changes", ("at", "interface", "change"), _changes(resolved)),
        Words("Tunnels", ("tunnel", "kind", "ends", "replay window"), _tunnels(resolved)),
        Words("Hosts", ("node", "kind", "sysctls", "timer", "offloads"), _nodes(resolved)),
    ]
    return [table for table in made if table.rows]


def _flows(shown: PlottedRun) -> list[list[str]]:
    found = []
    for flow in shown.flows:
        ran, ecn = shown.ran(flow)
        if flow["transport"] != "tcp":
            control, feedback = "UDP", ""
        else:
            control = flow["cc"] if ran in (None, flow["cc"]) else f"{ran} (asked for {flow['cc']})"
            feedback = run_labels.ecn_words(ecn)
        extra = [f"DSCP {flow['dscp']}"] if flow.get("dscp") else []
        extra += [f"in the tunnel {flow['tunnel']}"] if flow.get("tunnel") else []
        sends = ", ".join([_source(flow["source"]), *extra])
        when = f"{flow['start_s']:.4g} s to {flow['stop_s']:.4g} s"
        way = f"{flow['from']} > {flow['to']}"
        found.append([flow["name"], way, control, feedback, sends, when, _empty(shown, flow)])
    return found


def _probes(shown: PlottedRun) -> list[list[str]]:
    return [
        [
            probe["name"], f"{probe['from']} > {probe['to']}", f"{probe['proto']}, {probe['size']} bytes",
            f"{probe['every_s'] * 1e3:g} ms", f"{probe['start_s']:.4g} s to {probe['stop_s']:.4g} s",
            _empty(shown, probe),
        ]
        for probe in shown.resolved["probes"]
    ]  # fmt: skip


def _empty(shown: PlottedRun, flow: Mapping[str, Any]) -> str:
    """The round-trip time of its path while all queues are empty."""
    try:
        return f"{shown.base_rtt_s(flow) * 1e3:.4g} ms"
    except MeasureError:
        return ""


def _source(source: Mapping[str, Any]) -> str:
    """What a flow sends."""
    match source["kind"]:
        case "bulk":
            said = "always more data"
        case "bytes":
            said = f"{source['bytes']:,} bytes"
        case "rate":
            said = f"{source['rate_bps'] / 1e6:g} Mbit/s in pieces of {source['size']} bytes"
        case "periodic":
            said = f"{source['count']} × {source['size']} bytes every {source['every_s'] * 1e3:g} ms"
        case "short":
            said = f"{len(source['objects']):,} objects, each in a connection of its own"
        case "video":
            rates = "/".join(f"{rate / 1e6:g}" for rate in source["rates_bps"])
            said = f"video at {rates} Mbit/s in segments of {source['segment_s']:g} s"
        case kind:
            said = str(kind)
    return said


def _queues(shown: PlottedRun) -> list[list[str]]:
    return [[name, queue.qdisc] for name, queue in shown.result.counters.queues.items()]


def _interfaces(resolved: Mapping[str, Any]) -> list[list[str]]:
    known = {(one["node"], one["peer"]): one for one in resolved.get("interfaces", ())}
    found = []
    for link in resolved["links"]:
        for node, peer in (tuple(link["ends"]), tuple(reversed(link["ends"]))):
            one = known.get((node, peer), {})
            leaving, arriving = (_tree(one.get(side)) for side in ("egress", "ingress"))
            rules = "; ".join(mangle_words(rule) for rule in one.get("mangle", ()))
            found.append([f"{node}>{peer}", leaving, arriving, ", ".join(cable_words(link)), rules])
    return found


def _tree(tree: Mapping[str, Any] | None) -> str:
    return "" if tree is None else " → ".join(qdisc_words(tree))


def _changes(resolved: Mapping[str, Any]) -> list[list[str]]:
    from bakeoff.plots.panels import action_words

    return [
        [f"{change['at_s']:g} s", f"{change['node']}>{change['peer']}", action_words(change["action"])]
        for change in resolved.get("changes", ())
    ]


def _tunnels(resolved: Mapping[str, Any]) -> list[list[str]]:
    found = []
    for tunnel in resolved.get("tunnels", ()):
        window = tunnel.get("replay_window")
        checked = "" if window is None else f"{window} packets" if window else "none"
        found.append([tunnel["name"], tunnel["kind"], " – ".join(tunnel["ends"]), checked])
    return found


def _nodes(resolved: Mapping[str, Any]) -> list[list[str]]:
    return [
        [
            node["name"], node["kind"], _pairs(node["sysctls"].items()),
            f"{node['hz']} Hz", "on" if node["offloads"] else "off",
        ]
        for node in resolved["nodes"]
    ]  # fmt: skip


def _pairs(several: Iterable[tuple[str, object]]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in several)
