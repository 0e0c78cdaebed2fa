"""The run that a data file of Flent was recorded of, as a resolved run: hosts, flows, probes, and what is known of the
network.

The client is one node and each remote host another. With several remote hosts there is a node between them and the
client, so that the client's interface is one. Flent records no path: the propagation delay to a host is half of the
least round trip to it in the file. The qdisc of the client's interface, where the file has it, is what uploads pass.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bakeoff.imports.flent_qdisc import told_of, tree_of
from bakeoff.imports.flent_series import STEP_S, Series, number
from bakeoff.imports.recording import UNKNOWN
from bakeoff.scenario.run import Bulk, ConstantRate, Flow, Interface, Link, Node, Probe, Run

if TYPE_CHECKING:
    from bakeoff.measure import Samples

SUITE: Final = "flent"
CLIENT: Final = "client"
_HUB: Final = "network"
_HERE: Final = ("localhost", "127.0.0.1", "::1")
"""How Flent names the client among the hosts whose queues it samples."""
_PROBE_BYTES: Final = {"icmp": 84, "udp": 88}
"""Of the IP packets of ping, and of irtt as it is without options."""
_DATAGRAM: Final = 1470
"""Bytes of payload of iperf's datagrams."""


class Network:
    """What the series of a file were recorded in. `facts` are the file's metadata."""

    def __init__(self, series: Sequence[Series], facts: Mapping[str, Any]) -> None:
        self.series = series
        self.facts = facts
        self.client = _word(facts.get("LOCAL_HOST")) or CLIENT
        self.host_of = _hosts(series, facts, self.client)
        hosts = list(dict.fromkeys(self.host_of.values()))
        self.first_hop = hosts[0] if len(hosts) == 1 else _HUB
        """Where the client's interface leads to."""

    def queue_name(self, host: str) -> str:
        """The name of a queue that was sampled on a host: the client's interface, or the host's own name."""
        return f"{self.client}>{self.first_hop}" if host in (*_HERE, self.client) else host

    def run(self, samples: Samples, *, title: str, run: str) -> tuple[Run, list[str]]:
        """The resolved run, and what a reader of it has to know."""
        client, facts = self.client, self.facts
        nodes = [_node(client, facts.get("SYSCTLS"))]
        links, notes = [], []
        if self.first_hop == _HUB:
            nodes.append(Node(name=_HUB, kind="router", hz=250, offloads=True))
            links.append(Link(ends=(client, _HUB)))
        for host in dict.fromkeys(self.host_of.values()):
            nodes.append(_node(host, _inside(facts, "REMOTE_METADATA", host, "SYSCTLS")))
            rtt = _least_rtt([one for one in self.series if self.host_of.get(one.key) == host], samples)
            links.append(Link(ends=(client if host == self.first_hop else _HUB, host), delay_s=min(rtt / 2, 1000.0)))
            least = f"half of its least round trip in the file, {rtt * 1e3:g} ms" if rtt else "unknown, and taken as 0"
            notes.append(f"the propagation delay to {host} is {least}")
        flows = [_flow(one, client, self.host_of[one.key], samples, facts) for one in self.series if one.kind == "flow"]
        probes = [_probe(one, client, self.host_of[one.key], samples) for one in self.series if one.kind == "probe"]
        duration = max(samples.end_s, number(facts.get("TOTAL_LENGTH")) or 0.0, 1e-3)
        tree = tree_of(facts.get("EGRESS_INFO"))
        remote = facts.get("REMOTE_METADATA")
        for host in remote if isinstance(remote, dict) else ():
            words = told_of(_inside(facts, "REMOTE_METADATA", host, "EGRESS_INFO"))
            if words:
                notes.append(f"qdiscs of {_word(host)}: {'; '.join(words)}"[:2000])
        return (
            Run(
                suite=SUITE,
                scenario=file_word(str(facts["NAME"])),
                run=run,
                title=title,
                seed=1,
                duration_s=min(duration, 1e9),
                sample_interval_s=min(max(number(facts.get("STEP_SIZE")) or STEP_S, 1e-4), 1e9),
                window_s=_window(flows, duration),
                nodes=nodes,
                links=links,
                interfaces=[Interface(node=client, peer=self.first_hop, egress=tree)] if tree is not None else [],
                flows=flows,
                probes=probes,
            ),
            notes,
        )


def file_word(words: str) -> str:
    """The words as a part of a run's name."""
    word = re.sub(r"[^\w.()+~@=,%-]+", "_", words).strip("._")
    return word.encode()[:120].decode(errors="ignore") or UNKNOWN


def _inside(facts: Mapping[str, Any], *keys: str) -> Any:  # noqa: ANN401 (any JSON value)
    """What stands at the keys, one inside of the other; None if nothing does."""
    found: Any = facts
    for key in keys:
        found = found.get(key) if isinstance(found, dict) else None
    return found


def _hosts(series: Sequence[Series], facts: Mapping[str, Any], client: str) -> dict[str, str]:
    """The remote host of each flow and probe, by the name of its series: one whose name the series' ends in.

    Where none does, the test's HOST. A host of the client's own name gets another one.
    """
    hosts = facts.get("HOSTS")
    several = [word for one in (hosts if isinstance(hosts, list) else []) if (word := _word(one))]
    first = _word(facts.get("HOST")) or (several[0] if several else "server")
    found = {}
    for one in series:
        if one.kind == "queue":
            continue
        ends = [host for host in several if re.search(rf"[ :]{re.escape(host)}(?: \(extra\))?$", one.key)]
        host = max(ends, key=len, default=first)
        found[one.key] = f"{host} (remote)" if host in (client, _HUB) else host
    return found


def _node(name: str, sysctls: object) -> Node:
    """A host with the sysctls that the file tells of it."""
    pairs = sysctls.items() if isinstance(sysctls, dict) else ()
    known = {
        str(key): str(value)
        for key, value in pairs
        if isinstance(value, str | int | float) and str(value).isprintable() and str(key).isprintable()
    }
    return Node(name=name, kind="host", sysctls=known, hz=250, offloads=True)


def _least_rtt(several: Sequence[Series], samples: Samples) -> float:
    """The least round trip [s] of these: of the probes, or else of the flows; 0 if the file has none."""
    for kind, metric in (("probe", "rtt"), ("flow", "srtt")):
        known = [
            float(samples.of(kind, one.name, metric)[1].min())
            for one in several
            if one.kind == kind and (kind, one.name, metric) in samples
        ]
        if any(value > 0 for value in known):
            return min(value for value in known if value > 0)
    return 0.0


def _flow(one: Series, client: str, host: str, samples: Samples, facts: Mapping[str, Any]) -> Flow:
    known = [metric for metric in ("goodput", "delivery_rate", "srtt", "cwnd") if ("flow", one.name, metric) in samples]
    time, values = samples.of("flow", one.name, known[0])
    _, lasted, _ = next(one.intervals(0.0), (0.0, 0.0, 0.0))
    mean_bps = int(values.mean()) if known[0] == "goodput" else 0
    datagrams = ConstantRate(rate_bps=min(max(1, mean_bps), 10**13), size=_DATAGRAM)
    tos = one.meta.count("DATA_TOS") or one.meta.count("UPSTREAM_TOS") or 0
    return Flow(
        name=one.name,
        from_=host if one.is_download else client,
        to=client if one.is_download else host,
        cc=control_of(one, facts) or UNKNOWN if one.transport == "tcp" else "none",
        transport=one.transport,
        dscp=min(tos, 255) >> 2,
        start_s=max(0.0, float(time[0]) - lasted),
        stop_s=float(time[-1]),
        source=Bulk() if one.transport == "tcp" else datagrams,
    )


def control_of(one: Series, facts: Mapping[str, Any]) -> str | None:
    """The congestion control of a flow: what the series says, or of an upload the client's default; None if neither."""
    recorded = one.meta.CONG_CONTROL
    sysctls = facts.get("SYSCTLS")
    if not recorded and not one.is_download and isinstance(sysctls, dict):
        recorded = sysctls.get("net.ipv4.tcp_congestion_control")
    return recorded if isinstance(recorded, str) and re.fullmatch(r"[\w-]{1,40}", recorded) else None


def _probe(one: Series, client: str, host: str, samples: Samples) -> Probe:
    import numpy as np

    known = [metric for metric in ("rtt", "lost") if ("probe", one.name, metric) in samples]
    times = np.concatenate([samples.of("probe", one.name, metric)[0] for metric in known])
    gaps = np.diff(np.sort(times))
    proto: Any = "udp" if "UDP" in one.key else "icmp"
    return Probe(
        name=one.name,
        proto=proto,
        from_=client,
        to=host,
        every_s=min(max(float(np.median(gaps)), 1e-6), 1e9) if len(gaps) else STEP_S,
        size=_PROBE_BYTES[proto],
        start_s=max(0.0, float(times.min())),
        stop_s=max(0.0, float(times.max())),
    )


def _window(flows: Sequence[Flow], duration: float) -> tuple[float, float]:
    """While all flows last, if that is most of the time in which any does; else while any does, or the whole run.

    Programs that are started together begin some tenths of a second apart.
    """
    start, end = min((f.start_s for f in flows), default=0.0), max((f.stop_s for f in flows), default=duration)
    all_begun, first_ended = max((f.start_s for f in flows), default=start), min((f.stop_s for f in flows), default=end)
    if first_ended - all_begun > (end - start) / 2:
        start, end = all_begun, first_ended
    return (start, min(end, duration)) if start < min(end, duration) else (0.0, duration)


def _word(recorded: object) -> str | None:
    """A host's name, as it can stand for a node."""
    if not isinstance(recorded, str):
        return None
    return (
        re.sub(r"[<>/]|[^\x20-\U0010ffff]", "_", "".join(c if c.isprintable() else "_" for c in recorded)).strip()[:100]
        or None
    )
