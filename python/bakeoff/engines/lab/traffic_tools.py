"""Traffic tools that a scenario names instead of the agent's roles, as commands: iperf3, netperf, flent, irtt.

The agent starts them: a server on the receiving node before the run, a client on the sending node at its time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bakeoff.engines.lab.match import ECN
from bakeoff.engines.lab.plan import Program
from bakeoff.engines.lab.roles import PROBE_PORT, TCP_PORT, local_port
from bakeoff.engines.lab.topology import Topology
from bakeoff.errors import RefusedError
from bakeoff.scenario import Run
from bakeoff.scenario.headers import IP_UDP
from bakeoff.scenario.run import Flow

_NETPERF_PORT: Final = 12865
# flent's own: it waits so long before its streams, and measures as long after them.
FLENT_LEAD_S: Final = 5
# netperf's TCP_STREAM tells what was asked for after `-k` in this order.
NETPERF_KEYS: Final = "ELAPSED_TIME,LOCAL_BYTES_SENT,REMOTE_BYTES_RECVD,LOCAL_TRANSPORT_RETRANS"


def notes(run: Run) -> list[str]:
    """Where what a tool does differs from what the run asks for."""
    if run.tools is None:
        return []
    notes = []
    tool = run.tools.flows
    if tool is not None:
        notes.append(f"tools.flows: flows are made by {tool}")
        if any(flow.dscp for flow in run.flows) and tool != "netperf":
            notes.append(f"tools.flows: {tool} does not mark ACKs: they have DSCP 0")
        if tool == "flent":
            notes.append(f"tools.flows: flent's streams start together, {FLENT_LEAD_S} s after the run")
        notes += [
            f"flows[{index}]: {tool} takes whole seconds: {_seconds(flow)} s, not {flow.stop_s - flow.start_s:g} s"
            for index, flow in enumerate(run.flows)
            if tool != "flent"
            and flow.source.kind != "bytes"
            and abs(_seconds(flow) - flow.stop_s + flow.start_s) > 0.1
        ]
    if run.tools.probes is not None:
        notes.append(f"tools.probes: probes are made by {run.tools.probes}")
    return notes


def programs(run: Run, net: Topology, folder: str) -> Iterator[Program]:
    """Servers and clients of the run's tools; files that a tool names itself go to `folder`.

    RefusedError names what a tool cannot make.
    """
    if run.tools is None:
        return
    if run.tools.flows == "flent":
        yield from _flent(run, net, folder)
    made = run.by_programs("flow")
    for index, flow in enumerate(run.flows):
        if flow.name in made:
            continue
        if run.tools.flows == "iperf3":
            yield from _iperf3(run, net, index, flow)
        elif run.tools.flows == "netperf":
            yield from _netperf(run, net, index, flow)
    if run.tools.probes == "irtt":
        yield from _irtt(run, net)


def _seconds(flow: Flow) -> int:
    return max(1, round(flow.stop_s - flow.start_s))


def _server(net: Topology, node: str, name: str, file: str, *argv: str) -> Program:
    return Program(node, argv, net.namespaces[node], name=name, file=file)


def _client(net: Topology, node: str, name: str, file: str, start_s: float, *argv: str) -> Program:
    return Program(node, argv, net.namespaces[node], name=name, file=file, start_s=start_s)


def _iperf3(run: Run, net: Topology, index: int, flow: Flow) -> Iterator[Program]:
    place = f"flows[{index}]"
    source = flow.source
    if flow.tunnel is not None:
        raise RefusedError(f"{place}.tunnel: '{flow.tunnel}': tunnels are not supported by traffic tools")
    if source.kind not in ("bulk", "bytes", "rate") or (flow.transport == "udp" and source.kind != "rate"):
        raise RefusedError(f"{place}.source: '{source.kind}' over {flow.transport}: not supported by iperf3")
    address, port = net.address(flow.to), str(TCP_PORT + index)
    # Its shortest interval is 0.1 s.
    every = f"{max(run.sample_interval_s, 0.1):g}"
    yield _server(
        net, flow.to, f"{flow.name} server", f"{flow.name}.iperf3-server.json",
        "iperf3", "-s", "-B", address, "-p", port, "-i", every, "-J",
    )  # fmt: skip
    words = ["iperf3", "-c", address, "-p", port, "-i", every, "-J", "--get-server-output"]
    words += ["--dscp", str(flow.dscp), "--cport", str(local_port(run.seed, flow.name))]
    words += ["-n", str(source.bytes)] if source.kind == "bytes" else ["-t", str(_seconds(flow))]
    if source.kind == "rate":
        words += ["-b", str(source.rate_bps), "-l", str(source.size)]
    words += ["-u"] if flow.transport == "udp" else ["-C", flow.cc]
    words += ["--fq-rate", str(flow.max_pacing_rate_bps)] if flow.max_pacing_rate_bps is not None else []
    yield _client(net, flow.from_, flow.name, f"{flow.name}.iperf3.json", flow.start_s, *words)


def _netperf(run: Run, net: Topology, index: int, flow: Flow) -> Iterator[Program]:
    place = f"flows[{index}]"
    _only_bulk(flow, place, "netperf")
    address, port = net.address(flow.to), str(_NETPERF_PORT + index)
    yield _server(
        net, flow.to, f"{flow.name} server", f"{flow.name}.netserver.txt",
        "netserver", "-D", "-4", "-L", address, "-p", port,
    )  # fmt: skip
    tos = f"0x{flow.dscp << 2:02x}"
    words = ["netperf", "-4", "-H", address, "-p", port, "-t", "TCP_STREAM", "-l", str(_seconds(flow)), "-P", "0"]
    words += ["-D", f"-{run.sample_interval_s:g}", "-f", "m", "-Y", f"{tos},{tos}", "--"]
    words += ["-K", f"{flow.cc},{flow.cc}", "-P", f"{local_port(run.seed, flow.name)},{TCP_PORT + index}"]
    words += ["-k", NETPERF_KEYS]
    yield _client(net, flow.from_, flow.name, f"{flow.name}.netperf.txt", flow.start_s, *words)


def _flent(run: Run, net: Topology, folder: str) -> Iterator[Program]:
    for index, flow in enumerate(run.flows):
        _only_bulk(flow, f"flows[{index}]", "flent")
        if (flow.from_, flow.to) != (run.flows[0].from_, run.flows[0].to):
            raise RefusedError(f"flows[{index}]: flent's tcp_nup needs one sender and one receiver for all flows")
    length = int(run.duration_s) - 2 * FLENT_LEAD_S
    if length < 1:
        raise RefusedError(
            f"duration_s: {run.duration_s:g}: flent measures {FLENT_LEAD_S} s before and after; expected 11 s or more"
        )
    first = run.flows[0]
    address = net.address(first.to)
    yield _server(net, first.to, "flent server", "netserver.txt", "netserver", "-D", "-4", "-L", address)
    words = ["flent", "tcp_nup", "-4", "-H", address, "-l", str(length), "-s", f"{max(run.sample_interval_s, 0.05):g}"]
    words += ["-D", folder, "--socket-stats", "-t", run.run.replace("/", "_")]
    words += ["--test-parameter", f"upload_streams={len(run.flows)}"]
    words += ["--test-parameter", "cc_algos=" + ",".join(flow.cc for flow in run.flows)]
    words += ["--test-parameter", "markings=" + ",".join(f"0x{flow.dscp << 2:02x}" for flow in run.flows)]
    yield _client(net, first.from_, "flent", "flent.txt", 0.0, *words)


def _only_bulk(flow: Flow, place: str, tool: str) -> None:
    if flow.transport != "tcp" or flow.source.kind != "bulk" or flow.tunnel is not None or flow.max_pacing_rate_bps:
        raise RefusedError(f"{place}: not supported by {tool}; expected bulk TCP without a pacing rate, 'source: bulk'")


def _irtt(run: Run, net: Topology) -> Iterator[Program]:
    for index, probe in enumerate(run.probes):
        if probe.proto != "udp":
            raise RefusedError(f"probes[{index}].proto: '{probe.proto}': not supported by irtt; expected 'udp'")
        address = f"{net.address(probe.to)}:{PROBE_PORT + index}"
        yield _server(
            net,
            probe.to,
            f"{probe.name} server",
            f"{probe.name}.irtt-server.txt",
            "irtt",
            "server",
            "-i",
            "0",
            "-b",
            address,
        )
        words = ["irtt", "client", "-4", "-Q", "-o", "-", "-i", f"{probe.every_s * 1e6:.0f}us"]
        words += ["-d", f"{(probe.stop_s - probe.start_s) * 1e6:.0f}us", "-l", str(max(0, probe.size - IP_UDP))]
        words += [f"--dscp={probe.dscp << 2 | ECN[probe.ecn]}", "--wait=2s", address]
        yield _client(net, probe.from_, probe.name, f"{probe.name}.irtt.json", probe.start_s, *words)
