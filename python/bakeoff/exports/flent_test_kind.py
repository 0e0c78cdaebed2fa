"""Which of Flent's tests a run is said to be: the test decides how series are called and which plots there are.

| our run                                     | test              | series                                      |
|---------------------------------------------|-------------------|---------------------------------------------|
| uploads that are alike                      | `tcp_nup`         | `TCP upload::1`, …                          |
| uploads that differ in control, source, RTT | `rtt_fair_var_up` | `TCP upload BE NAME`, with the flows' names |
| both ways, alike in each                    | `rrul_be_nflows`  | `TCP upload BE::1`, `TCP download BE::1`, … |
| both ways otherwise                         | `rtt_fair_var`    | as `rtt_fair_var_up`, and `TCP download …`  |
| probes only                                 | `ping`            | `Ping (ms) ICMP`, `Ping (ms) UDP`           |

Upload is the way of the first flow. The name of a test's series is a host's, in `rtt_fair_var…`: the flow's name
stands there, because that is what Flent's legends show. Queues are `qdisc_stats_NAME` in every test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bakeoff.measure import path
from bakeoff.measure.delays import base_rtt

if TYPE_CHECKING:
    from bakeoff.scenario.run import Flow, Probe, Run


@dataclass
class Claim:
    """A test, and what stands for what in it."""

    test: str
    parameters: dict[str, str] = field(default_factory=dict)
    """TEST_PARAMETERS, without which Flent does not know how many series the test has."""
    hosts: list[str] = field(default_factory=list)
    """HOSTS; empty where the test has one."""
    series: dict[tuple[str, str], str] = field(default_factory=dict)
    """From (kind, name) to the series."""


def claim(run: Run, queues: Sequence[str]) -> Claim:
    """The test for a run, whose sampled queues are named `queues`."""
    flows = [flow for flow in run.flows if flow.transport == "tcp"]
    ways = {flow.name: _way(run, flow) for flow in flows}
    up = [flow for flow in flows if ways[flow.name] == "upload"]
    down = [flow for flow in flows if ways[flow.name] == "download"]
    alike = all(_is_alike(run, way) for way in (up, down))
    if not flows:
        found = Claim("ping")
    elif down and alike:
        found = Claim("rrul_be_nflows", {"upload_streams": str(len(up)), "download_streams": str(len(down))})
    elif alike:
        found = Claim("tcp_nup", {"upload_streams": str(len(up))})
    else:
        found = Claim("rtt_fair_var" if down else "rtt_fair_var_up", hosts=[_token(flow.name) for flow in flows])
    for way, several in (("upload", up), ("download", down)):
        for number, flow in enumerate(several, start=1):
            name = f"{'' if found.test == 'tcp_nup' else ' BE'}::{number}"
            if found.hosts:
                name = f" BE {_token(flow.name)}"
            found.series["flow", flow.name] = f"TCP {way}{name}"
    for flow in run.flows:
        found.series.setdefault(("flow", flow.name), f"UDP {_way(run, flow)} {_token(flow.name)}")
    _name_probes(found, run.probes)
    _name_queues(found, queues)
    return found


def _way(run: Run, flow: Flow) -> str:
    """`upload` for what goes the way of the first flow, `download` for what comes back."""
    there = path(run, run.flows[0])
    back = {(peer, node) for node, peer in there}
    return "download" if back & set(path(run, flow)) else "upload"


def _is_alike(run: Run, flows: Sequence[Flow]) -> bool:
    kinds = {(flow.cc, flow.source.kind, round(base_rtt(run, flow), 6)) for flow in flows}
    return len(kinds) <= 1


def _name_probes(found: Claim, probes: Sequence[Probe]) -> None:
    """The first of a kind has the test's own name, the others are what Flent calls extra ping hosts."""
    own = {} if found.hosts else {"icmp": "Ping (ms) ICMP"}
    if found.test in ("rrul_be_nflows", "ping"):
        own["udp"] = "Ping (ms) UDP BE" if found.test == "rrul_be_nflows" else "Ping (ms) UDP"
    extra = []
    for probe in probes:
        series = own.pop(probe.proto, None)
        if series is None:
            extra.append(_token(probe.name))
            series = f"Ping (ms) ICMP {extra[-1]} (extra)"
        found.series["probe", probe.name] = series
    if extra:
        found.parameters["ping_hosts"] = ",".join(extra)


def _name_queues(found: Claim, queues: Sequence[str]) -> None:
    for queue in queues:
        found.series["queue", queue] = f"qdisc_stats_{_token(queue)}"
    if queues:
        found.parameters["qdisc_stats_hosts"] = ",".join(_token(queue) for queue in queues)
        found.parameters["qdisc_stats_interfaces"] = ",".join("queue" for _ in queues)


def _token(name: str) -> str:
    """A name as it can stand in a list of Flent's, which ends words at these signs."""
    return "".join("_" if c in ",;\"'\\#" else c for c in name)
