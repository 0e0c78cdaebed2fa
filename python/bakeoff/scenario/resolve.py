"""From a checked document to a resolved run: every default filled in, every name looked up, everything in SI."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import count, pairwise
from pathlib import Path
from typing import Final, Literal

from bakeoff.scenario import bounds, cc_words
from bakeoff.scenario import run as resolved
from bakeoff.scenario.changes import resolve_changes
from bakeoff.scenario.dumbbell import Ends, Placed, put_bottlenecks, put_delay, put_mangling
from bakeoff.scenario.error import DocumentError, did_you_mean
from bakeoff.scenario.language import Document, FlowSpec, ProbeSpec
from bakeoff.scenario.machines import machine
from bakeoff.scenario.mangling import mangling
from bakeoff.scenario.matrix import COPY
from bakeoff.scenario.media import features, loss, outages
from bakeoff.scenario.programs import made, resolve_programs
from bakeoff.scenario.sources import source
from bakeoff.scenario.stimuli import resolve_stimuli
from bakeoff.scenario.window import window

# In packets: what IPsec's key exchange daemons ask for, and what WireGuard has had since May 2020.
_REPLAY_WINDOW: Final = {"ipsec": 32, "wireguard": 8128}
# Linux derives their source port from the inner hash, or looks inside (gre).
_HASHED_INSIDE: Final = ("fou", "gre", "vxlan")
_SAMPLE_S: Final = 0.05
_MOST_FLOWS: Final = 1000
"""Flows that are sampled every 50 ms."""
_MOST_SAMPLES: Final = 1_500_000
"""Of all flows and queues in a run: a table of 10 to 20 million rows, for which a run takes less than 1 GB."""


def resolve(
    doc: Document,
    scheduled: Mapping[int, str],
    *,
    suite: str,
    run: str,
    seed: int,
    point: dict[str, str],
    folder: Path,
    written_s: float | None = None,
) -> resolved.Run:
    """The resolved run of `doc`, whose files are named from `folder`; DocumentError names the place of what does not
    fit together. `scheduled` has the places of those changes that stand for schedules, and `written_s` is the duration
    in the file where another one was set.
    """
    flows = _copies(doc.flows)
    nodes, links = _graph(doc, folder)
    ends = Ends()
    put_delay(doc, flows, ends)
    put_bottlenecks(doc, ends)
    put_mangling(doc, flows, ends)
    _put_interfaces(doc, ends)
    _check_matches(doc, {flow.name for _, flow in flows})
    known = {end for link in links for end in (link.ends, link.ends[::-1])}
    interfaces = _interfaces(ends, known)
    hosts = [node.name for node in nodes if node.kind == "host"]
    programs = resolve_programs(doc, [node.name for node in nodes if node.kind != "bridge"], folder)
    tunnels = _tunnels(doc, hosts)
    probes = _probes(doc, hosts, tunnels, {flow.name for _, flow in flows})
    taken = {*(flow.name for _, flow in flows), *(probe.name for probe in probes)}
    flows_made, probes_made = made(doc, programs, hosts, taken)
    if not flows and not programs:
        if "flows" not in doc.model_fields_set:
            raise DocumentError(
                "flows",
                "missing; expected for example 'flows: [{name: a, cc: cubic}]', or programs ('programs:')",
            )
        raise DocumentError("flows", "empty; expected a flow, or a program ('programs:')")
    changes = [*resolve_changes(doc, scheduled, interfaces, known), *outages(doc)]
    when = resolve_stimuli(doc, [flow for _, flow in flows], interfaces)
    sample_interval_s = doc.sample_interval or _sample_interval(len(flows), interfaces, _end(doc))
    start, stop = window(doc.measure, doc.duration, sample_interval_s, written_s)
    return resolved.Run(
        suite=suite,
        scenario=doc.scenario,
        run=run,
        title=doc.title,
        seed=seed,
        duration_s=_end(doc),
        sample_interval_s=sample_interval_s,
        window_s=(_at(doc, start), _at(doc, stop)),
        nodes=nodes,
        links=links,
        interfaces=interfaces,
        tunnels=tunnels,
        flows=[*_flows(doc, flows, hosts, tunnels, seed), *flows_made],
        probes=[*probes, *probes_made],
        changes=[
            change.model_copy(update={"at_s": _at(doc, change.at_s)})
            for change in sorted(changes, key=lambda change: change.at_s)
        ],
        when=when,
        captures=_captures(doc, known),
        tools=resolved.Tools(flows=doc.tools.flows, probes=doc.tools.probes) if doc.tools is not None else None,
        programs=programs,
        point=point,
        present=_present(doc),
    )


def _sample_interval(flows: int, interfaces: list[resolved.Interface], duration_s: float) -> float:
    """A multiple of 50 ms that bounds the samples of a second and of the run: `_MOST_FLOWS` and `_MOST_SAMPLES`."""
    queues = sum(_queues(interface.egress) for interface in interfaces if interface.egress is not None)
    samples = (flows + queues) * duration_s / _SAMPLE_S
    return round(_SAMPLE_S * max(1, math.ceil(flows / _MOST_FLOWS), math.ceil(samples / _MOST_SAMPLES)), 9)


def _queues(tree: resolved.Qdisc) -> int:
    """The leaves of a tree."""
    below = [class_.child for class_ in tree.classes] or [tree.child]
    return sum(1 if child is None else _queues(child) for child in below)


def _at(doc: Document, written_s: float) -> float:
    """When something happens in the run: what is written counts from the end of the idle time."""
    return round(doc.idle + written_s, 9)


def _end(doc: Document) -> float:
    return round(doc.idle + doc.duration + doc.idle, 9)


def jitter(seed: int, name: str, below_s: float) -> float:
    """Uniform in [0, below_s), in whole microseconds, from (seed, flow name) and nothing else."""
    digest = hashlib.sha256(f"{seed}/{name}".encode()).digest()
    share = int.from_bytes(digest[:8], "big") / 2**64
    return math.floor(share * below_s * 10**6) / 10**6


def _copies(specs: list[FlowSpec]) -> list[Placed]:
    flows: list[Placed] = []
    many = sum((spec.count or 1) * (spec.source.short.count if spec.source.short else 1) for spec in specs)
    too_many = bounds.too_many_flows(many, within="one run")
    if too_many is not None:
        raise DocumentError("flows", too_many)
    taken: set[str] = set()
    own = _own_names(specs)
    for index, spec in enumerate(specs):
        ccs = [spec.cc] if isinstance(spec.cc, str) else spec.cc
        counted = "{" + COPY + "}"
        if spec.count is None:
            if len(ccs) != 1:
                raise DocumentError(f"flows[{index}].cc", "a list without 'count'; expected one congestion control")
            if counted in spec.name:
                raise DocumentError(f"flows[{index}].name", f"'{counted}' without 'count'")
        elif not ccs:
            raise DocumentError(f"flows[{index}].cc", "an empty list; expected at least one congestion control")
        for number in range(1, (spec.count or 1) + 1):
            control = ccs[(number - 1) % len(ccs)]
            name = _copy_name(spec, number) or next(own)
            if name in taken:
                raise DocumentError(f"flows[{index}].name", f"duplicate name '{name}'; expected unique names")
            taken.add(name)
            copy = spec.model_copy(update={"name": name, "cc": control, "count": None})
            flows.append(Placed(f"flows[{index}]", copy))
    return flows


def _copy_name(spec: FlowSpec, number: int) -> str:
    """The name of a flow, or of one of its copies; empty if it has none."""
    counted = "{" + COPY + "}"
    if spec.count is None or not spec.name:
        return spec.name
    return spec.name.replace(counted, str(number)) if counted in spec.name else f"{spec.name}-{number}"


def _own_names(specs: list[FlowSpec]) -> Iterator[str]:
    """Names for the flows and copies that have none, in order: what each runs, with a number where it stands twice."""
    wanted, given = [], set()
    for spec in specs:
        ccs = [spec.cc] if isinstance(spec.cc, str) else spec.cc
        for number in range(1, (spec.count or 1) + 1):
            if spec.name:
                given.add(_copy_name(spec, number))
                continue
            control = cc_words.parse(ccs[(number - 1) % len(ccs)]).name if ccs else ""
            wanted.append("udp" if spec.transport == "udp" else re.sub(r"[\s/<>]", "_", control) or "flow")
    numbers = {name: count(1) for name, times in Counter(wanted).items() if times > 1 or name in given}
    for name in wanted:
        numbered = (f"{name}-{number}" for number in numbers.get(name, ()))
        yield next((other for other in numbered if other not in given), name)


def _graph(doc: Document, folder: Path) -> tuple[list[resolved.Node], list[resolved.Link]]:
    net = doc.network
    path = net.path or []
    for name in path:
        if path.count(name) > 1:
            raise DocumentError("network.path", f"duplicate name '{name}'; expected unique names")
    kinds: dict[str, Literal["host", "bridge", "router"]] = {}
    for name in path:
        kinds[name] = "host" if name in (path[0], path[-1]) else "bridge"
    kinds |= {name: spec.kind for name, spec in net.nodes.items()}
    if not kinds:
        raise DocumentError("network", "missing nodes; expected 'path: [cli, mid, srv]', or 'nodes' and 'links'")
    nodes = []
    for name, kind in kinds.items():
        spec = net.nodes.get(name)
        sysctls = {**(doc.hosts.sysctl if kind == "host" else {}), **(spec.sysctl if spec else {})}
        nodes.append(
            resolved.Node(
                name=name,
                kind=kind,
                sysctls={key: str(value) for key, value in sorted(sysctls.items())},
                hz=spec.hz if spec and spec.hz is not None else doc.hosts.hz,
                offloads=spec.offloads if spec and spec.offloads is not None else doc.hosts.offloads,
                **machine(doc.hosts, spec, kind, name),
            )
        )
    links = [resolved.Link(ends=(left, right)) for left, right in pairwise(path)]
    plain = [set(link.ends) for link in links]
    for index, link in enumerate(net.links):
        left, right = link.ends
        place = f"network.links[{index}].ends"
        for name in (left, right):
            if name not in kinds:
                raise DocumentError(place, f"'{name}': unknown node{did_you_mean(name, list(kinds))}")
        of_path = {left, right} in plain
        if left == right or (not of_path and any({left, right} == set(other.ends) for other in links)):
            raise DocumentError(
                place,
                f"duplicate link between {left} and {right}" if left != right else f"a link from '{left}' to itself",
            )
        made = resolved.Link(
            ends=(left, right),
            rate_bps=link.rate,
            delay_s=link.delay,
            mtu=link.mtu,
            loss=loss(link, f"network.links[{index}].loss"),
            features=features(link, folder, f"network.links[{index}]"),
        )
        if of_path:
            links[[set(other.ends) for other in links].index({left, right})] = made
            plain.remove({left, right})
        else:
            links.append(made)
    _check_connected(list(kinds), links)
    return nodes, links


def _check_connected(names: list[str], links: list[resolved.Link]) -> None:
    reached, edge = {names[0]}, [names[0]]
    while edge:
        here = edge.pop()
        for link in links:
            for left, right in (link.ends, link.ends[::-1]):
                if left == here and right not in reached:
                    reached.add(right)
                    edge.append(right)
    lost = [name for name in names if name not in reached]
    if lost:
        raise DocumentError(
            "network", f"not connected: no path from '{names[0]}' to '{lost[0]}'; expected a connected network"
        )


def _put_interfaces(doc: Document, ends: Ends) -> None:
    for index, spec in enumerate(doc.network.interfaces):
        place = f"network.interfaces[{index}]"
        end = (spec.node, spec.peer)
        ends.name(end, place)
        if spec.egress is not None:
            ends.put("egress", end, spec.egress.resolved(), place)
        if spec.ingress is not None:
            ends.put("ingress", end, spec.ingress.resolved(), place)
        for number, rule in enumerate(spec.mangle):
            ends.mangle.setdefault(end, []).extend(mangling(rule, f"{place}.mangle[{number}]"))
        if end in ends.tx_queue_len:
            raise DocumentError(place, f"duplicate interface {spec.node}>{spec.peer}; expected one entry per interface")
        ends.tx_queue_len[end] = spec.tx_queue_len


def _check_matches(doc: Document, flows: set[str]) -> None:
    """DocumentError for a match or a filter that names a flow which is not there: it would never match."""
    known = {*flows, *(probe.name for probe in doc.probes)}
    matches = [(f"network.mangle[{number}].match", rule.match) for number, rule in enumerate(doc.network.mangle)]
    for number, spec in enumerate(doc.network.interfaces):
        place = f"network.interfaces[{number}]"
        matches += [(f"{place}.mangle[{index}].match", rule.match) for index, rule in enumerate(spec.mangle)]
        for side, tree in (("egress", spec.egress), ("ingress", spec.ingress)):
            matches += tree.filters(f"{place}.{side}") if tree is not None else []
    for place, match in matches:
        if match.flow is not None and match.flow not in known:
            raise DocumentError(
                f"{place}.flow", f"'{match.flow}': unknown flow or probe{did_you_mean(match.flow, sorted(known))}"
            )


def _interfaces(ends: Ends, known: set[tuple[str, str]]) -> list[resolved.Interface]:
    used = dict.fromkeys([*ends.ingress, *ends.egress, *ends.mangle, *ends.tx_queue_len])
    for node, peer in used:
        if (node, peer) not in known:
            near = did_you_mean(f"{node}>{peer}", sorted(f"{a}>{b}" for a, b in known))
            raise DocumentError(ends.named.get((node, peer), "network"), f"unknown interface '{node}>{peer}'{near}")
    return [
        resolved.Interface(
            node=end[0],
            peer=end[1],
            egress=ends.egress.get(end),
            ingress=ends.ingress.get(end),
            mangle=ends.mangle.get(end, []),
            tx_queue_len=ends.tx_queue_len.get(end, 1000),
        )
        for end in used
    ]


def _tunnels(doc: Document, hosts: list[str]) -> list[resolved.Tunnel]:
    tunnels: list[resolved.Tunnel] = []
    for index, spec in enumerate(doc.network.tunnels):
        place = f"network.tunnels[{index}]"
        first, last = spec.ends or _ends_of_path(doc, place)
        for name in (first, last):
            _check_host(name, hosts, f"{place}.ends")
        if any(spec.name == other.name for other in tunnels):
            raise DocumentError(place, f"duplicate name '{spec.name}'; expected unique names")
        tunnels.append(
            resolved.Tunnel(
                name=spec.name,
                kind=spec.kind,
                ends=(first, last),
                replay_window=_REPLAY_WINDOW.get(spec.kind) if spec.replay_window is None else spec.replay_window,
                cipher=spec.cipher or ("aes-gcm" if spec.kind == "ipsec" else None),
                inner_hash=spec.kind in _HASHED_INSIDE if spec.inner_hash is None else spec.inner_hash,
            )
        )
    return tunnels


def _ends_of_path(doc: Document, place: str) -> tuple[str, str]:
    if doc.network.path is None:
        raise DocumentError(place, "the network has no 'path'; expected 'from' and 'to'")
    return doc.network.path[0], doc.network.path[-1]


def _check_host(name: str, hosts: list[str], place: str) -> None:
    if name not in hosts:
        raise DocumentError(place, f"'{name}': no such host in the network{did_you_mean(name, hosts)}")


def _from_to(doc: Document, spec: FlowSpec | ProbeSpec, hosts: list[str], place: str) -> tuple[str, str]:
    sender, receiver = spec.from_, spec.to
    if sender is None or receiver is None:
        first, last = _ends_of_path(doc, place)
        if getattr(spec, "direction", "up") == "down":
            first, last = last, first
        sender, receiver = sender or first, receiver or last
    _check_host(sender, hosts, f"{place}.from")
    _check_host(receiver, hosts, f"{place}.to")
    if sender == receiver:
        raise DocumentError(place, f"from '{sender}' to itself; expected two hosts")
    return sender, receiver


def _during(start: float, stop: float | None, duration_s: float, place: str) -> tuple[float, float]:
    stop = duration_s if stop is None else stop
    if not 0 <= start < stop <= duration_s:
        raise DocumentError(
            place, f"runs from {start:g} s to {stop:g} s; expected start < stop within the run of {duration_s:g} s"
        )
    return start, stop


def _flows(
    doc: Document, specs: list[Placed], hosts: list[str], tunnels: list[resolved.Tunnel], seed: int
) -> list[resolved.Flow]:
    flows = []
    for place, spec in specs:
        sender, receiver = _from_to(doc, spec, hosts, place)
        late = jitter(seed, spec.name, doc.start_jitter)
        start, stop = _during(round(spec.start + late, 9), spec.stop, doc.duration, place)
        flows.append(
            resolved.Flow(
                name=spec.name,
                from_=sender,
                to=receiver,
                cc=spec.cc if isinstance(spec.cc, str) else spec.cc[0],
                transport=spec.transport,
                dscp=spec.dscp,
                start_s=_at(doc, start),
                stop_s=_at(doc, stop),
                source=source(spec.source, seed, spec.name),
                max_pacing_rate_bps=spec.max_pacing_rate,
                tunnel=_tunnel(spec.tunnel, tunnels, place),
            )
        )
    return flows


def _tunnel(name: str | None, tunnels: list[resolved.Tunnel], place: str) -> str | None:
    names = [tunnel.name for tunnel in tunnels]
    if name is not None and name not in names:
        near = did_you_mean(name, names) if names else "; the network has no 'tunnels'"
        raise DocumentError(f"{place}.tunnel", f"'{name}': unknown tunnel{near}")
    return name


def _probes(doc: Document, hosts: list[str], tunnels: list[resolved.Tunnel], taken: set[str]) -> list[resolved.Probe]:
    probes = []
    for index, spec in enumerate(doc.probes):
        place = f"probes[{index}]"
        if spec.name in taken:
            raise DocumentError(
                f"{place}.name", f"duplicate name '{spec.name}'; expected unique names among flows and probes"
            )
        taken = taken | {spec.name}
        sender, receiver = _from_to(doc, spec, hosts, place)
        start, stop = _during(spec.start or 0.0, spec.stop, doc.duration, place)
        probes.append(
            resolved.Probe(
                name=spec.name,
                proto=spec.type,
                from_=sender,
                to=receiver,
                every_s=spec.every,
                size=spec.size or (84 if spec.type == "icmp" else 60),
                dscp=spec.dscp,
                ecn=spec.ecn,
                start_s=0.0 if spec.start is None else _at(doc, start),
                stop_s=_end(doc) if spec.stop is None else _at(doc, stop),
                tunnel=_tunnel(spec.tunnel, tunnels, place),
            )
        )
    return probes


def _captures(doc: Document, known: set[tuple[str, str]]) -> list[str]:
    if not doc.captures:
        return []
    names = sorted(f"{node}>{peer}" for node, peer in known)
    for index, capture in enumerate(doc.captures):
        if capture not in names:
            raise DocumentError(f"captures[{index}]", f"'{capture}': unknown interface{did_you_mean(capture, names)}")
    return doc.captures


def _present(doc: Document) -> dict[str, object]:
    hints = doc.present
    present: dict[str, object] = {}
    if hints.rate_axis is not None:
        present["rate_axis_bps"] = hints.rate_axis
    if hints.rtt_axis is not None:
        present["rtt_axis_s"] = hints.rtt_axis
    if hints.colours:
        present["colours"] = hints.colours
    return present
