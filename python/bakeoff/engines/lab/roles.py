"""Flows and probes as roles of the agent (crates/agent/src/plan.rs)."""

from __future__ import annotations

import hashlib
from typing import Final

from bakeoff.engines.lab import plan, tunnels
from bakeoff.engines.lab.match import PROTOCOLS
from bakeoff.engines.lab.plan import Role, Sending, TcpSink, UdpReflector, UdpSink
from bakeoff.engines.lab.topology import Topology
from bakeoff.errors import RefusedError
from bakeoff.scenario import Run
from bakeoff.scenario.run import ConstantRate, Flow, Periodic, Probe, Tools

TCP_PORT: Final = 5201
UDP_PORT: Final = 15201
PROBE_PORT: Final = 25201
LEAST_DATAGRAM: Final = 16
"""Bytes of payload that the agent needs of a UDP flow."""
# Linux's own range (net.ipv4.ip_local_port_range).
_LOCAL_PORTS: Final = range(32768, 61000)


def roles(run: Run, topology: Topology) -> list[Role]:
    """Receivers first, then senders, then probes. Refused names what the agent does not do."""
    receivers: list[Role] = []
    senders: list[Role] = []
    tools = run.tools or Tools()
    made, asked = run.by_programs("flow"), run.by_programs("probe")
    for index, flow in enumerate(run.flows if tools.flows is None else ()):
        if flow.name in made:
            continue
        place = f"flows[{index}]"
        kind = flow.source.kind
        if flow.transport == "udp" and kind not in ("rate", "periodic"):
            raise RefusedError(f"{place}.source: '{kind}' over udp; expected 'rate' or 'periodic'")
        if (
            isinstance(flow.source, ConstantRate | Periodic)
            and flow.transport == "udp"
            and flow.source.size < LEAST_DATAGRAM
        ):
            had = f"{place}.source.size: {flow.source.size} bytes"
            raise RefusedError(f"{had}; expected at least {LEAST_DATAGRAM}, for the sequence number and timestamp")
        receiver, sender = _flow(run, topology, index, flow)
        receivers.append(receiver)
        senders.append(sender)
    for index, probe in enumerate(run.probes if tools.probes is None else ()):
        if probe.name in asked:
            continue
        receivers += [_reflector(topology, index, probe)] if probe.proto == "udp" else []
        senders.append(_probe(run, topology, index, probe))
    return receivers + senders


def packets(run: Run, topology: Topology) -> dict[str, list[str]]:
    """The words of u32 that pick the packets of each flow and probe, on their way there.

    Not of those in a tunnel, nor of those that programs make, whose ports nobody knows.
    RefusedError if an end is no host.
    """
    found = {}
    made, asked = run.by_programs("flow"), run.by_programs("probe")
    for index, flow in enumerate(run.flows):
        _ends(topology, flow, f"flows[{index}]")
        port = (TCP_PORT if flow.transport == "tcp" else UDP_PORT) + index
        if flow.tunnel is None and flow.name not in made:
            found[flow.name] = _towards(topology, flow, flow.transport, port)
    for index, probe in enumerate(run.probes):
        _ends(topology, probe, f"probes[{index}]")
        port_of_probe = PROBE_PORT + index if probe.proto == "udp" else None
        if probe.tunnel is None and probe.name not in asked:
            found[probe.name] = _towards(topology, probe, probe.proto, port_of_probe)
    return found


def _towards(topology: Topology, ends: Flow | Probe, proto: str, port: int | None) -> list[str]:
    words = ["match", "ip", "protocol", str(PROTOCOLS[proto]), "0xff"]
    words += ["match", "ip", "src", f"{topology.address(ends.from_)}/32"]
    words += ["match", "ip", "dst", f"{topology.address(ends.to)}/32"]
    return words + (["match", "ip", "dport", str(port), "0xffff"] if port is not None else [])


def _ends(topology: Topology, ends: Flow | Probe, place: str) -> None:
    for key, name in (("from", ends.from_), ("to", ends.to)):
        if topology.kinds.get(name) not in ("host", "router"):
            hosts = ", ".join(node for node, kind in topology.kinds.items() if kind == "host")
            raise RefusedError(f"{place}.{key}: '{name}': unknown host; expected one of {hosts}")
    if not topology.reaches(ends.from_, ends.to):
        raise RefusedError(
            f"{place}: no path from '{ends.from_}' to '{ends.to}'; expected bridges or routers between them"
        )


def _flow(run: Run, topology: Topology, index: int, flow: Flow) -> tuple[Role, Role]:
    """Its receiver and its sender."""
    udp = flow.transport == "udp"
    port = (UDP_PORT if udp else TCP_PORT) + index
    at, offered = topology.namespaces[flow.to], flow.source.model_dump()
    stop_s = min(flow.stop_s, run.duration_s)
    sending = Sending(
        name=flow.name,
        node=flow.from_,
        netns=topology.namespaces[flow.from_],
        to=f"{tunnels.address(run, topology, flow)}:{port}",
        dscp=flow.dscp,
        start_s=flow.start_s,
        stop_s=stop_s,
        source=offered,
        local_port=local_port(run.seed, flow.name),
    )
    if udp:
        receives = UdpSink(
            role="udp-sink", name=flow.name, node=flow.to, netns=at, port=port, start_s=flow.start_s, stop_s=stop_s,
            source=offered,
        )  # fmt: skip
        return receives, {"role": "udp-source", **sending}
    sink = TcpSink(role="tcp-sink", name=flow.name, node=flow.to, netns=at, port=port, dscp=flow.dscp, cc=flow.cc)
    if flow.source.kind == "short":
        sink["answers"] = "objects"
    elif flow.source.kind == "video":
        sink["answers"] = "segments"
    rate_bps = flow.max_pacing_rate_bps
    return sink, {"role": "tcp-source", "cc": flow.cc, "max_pacing_rate_bps": rate_bps, **sending}


def local_port(seed: int, name: str) -> int:
    """Which queue of a hashed qdisc a flow falls into varies with the seed, and is the same on every machine."""
    digest = hashlib.sha256(f"{seed} {name}".encode()).digest()
    return _LOCAL_PORTS[int.from_bytes(digest[:8], "big") % len(_LOCAL_PORTS)]


def _reflector(topology: Topology, index: int, probe: Probe) -> UdpReflector:
    return UdpReflector(
        role="udp-reflector", node=probe.to, netns=topology.namespaces[probe.to], port=PROBE_PORT + index
    )


def _probe(run: Run, topology: Topology, index: int, probe: Probe) -> plan.Probe:
    udp = probe.proto == "udp"
    address = tunnels.address(run, topology, probe)
    return {
        "role": "udp-probe" if udp else "icmp-probe",
        "name": probe.name,
        "node": probe.from_,
        "netns": topology.namespaces[probe.from_],
        "to": f"{address}:{PROBE_PORT + index}" if udp else address,
        "every_s": probe.every_s,
        "size": probe.size,
        "dscp": probe.dscp,
        "ecn": probe.ecn,
        "start_s": probe.start_s,
        "stop_s": probe.stop_s,
    }
