"""ECN negotiation: every pair of `net.ipv4.tcp_ecn`, in the simulator and in a real kernel if there is one."""

import json

import pytest

from bakeoff import _sim, campaign, results
from bakeoff.campaign import Execution
from bakeoff.scenario import Run, catalog

VALUES = range(6)
NAMES = {"off": "-", "rfc3168": "r", "accecn": "A"}
# A row per tcp_ecn of the client, a column per tcp_ecn of the server: what the client ends up with. The same table
# stands in crates/sim/src/tcp/ecn.rs.
TABLE = {
    "cubic": ["------", "-rrrrr", "------", "-rrAAA", "-rrrrr", "------"],
    "dctcp": ["rrrrrr", "rrrrrr", "rrrrrr", "rrrAAA", "rrrrrr", "rrrrrr"],
}


def all_pairs(cc: str) -> Run:
    """Six clients and six servers around a router, a short transfer for every pair."""
    hosts = [(f"{side}{value}", value) for side in "cs" for value in VALUES]
    nodes = [
        {"name": name, "kind": "host", "sysctls": {"net.ipv4.tcp_ecn": str(value)}, "hz": 1000, "offloads": False}
        for name, value in hosts
    ]
    nodes.append({"name": "mid", "kind": "router", "sysctls": {}, "hz": 1000, "offloads": False})
    flows = [
        {
            "name": f"c{client}-s{server}",
            "from": f"c{client}",
            "to": f"s{server}",
            "cc": cc,
            "transport": "tcp",
            "dscp": 0,
            "start_s": 0.01 * (6 * client + server),
            "stop_s": 2.0,
            "source": {"kind": "bytes", "bytes": 20_000},
            "max_pacing_rate_bps": None,
            "tunnel": None,
        }
        for client in VALUES
        for server in VALUES
    ]
    document = {
        "format": 1,
        "suite": "test",
        "scenario": "ecn-negotiation",
        "run": cc,
        "title": "",
        "seed": 1,
        "duration_s": 2.0,
        "sample_interval_s": 0.05,
        "window_s": [0.5, 2.0],
        "nodes": nodes,
        "links": [
            {"ends": [name, "mid"], "rate_bps": None, "delay_s": 0.0, "mtu": 1500, "loss": 0.0, "features": {}}
            for name, _ in hosts
        ],
        "interfaces": [
            {"node": "mid", "peer": name, "tx_queue_len": 1000, "ingress": {"qdisc": "netem delay 5ms"}}
            for name, _ in hosts
        ],
        "tunnels": [],
        "flows": flows,
        "probes": [],
        "changes": [],
        "captures": [],
        "point": {},
        "present": {},
    }
    return Run.from_json(json.dumps(document))


def negotiated(cc: str, engine: str, folder) -> list[str]:
    [done] = campaign.run([all_pairs(cc)], folder, Execution(engine=engine, jobs=1)).runs
    assert done.error is None, done.error
    flows = results.read(done.path).all_counters()["flows"]
    modes = [flow["ecn"] for flow in (flows.values() if isinstance(flows, dict) else flows)]
    assert len(modes) == 36
    return ["".join(NAMES[mode] for mode in modes[row : row + 6]) for row in range(0, 36, 6)]


@pytest.mark.parametrize("cc", TABLE)
def test_all_pairs_of_tcp_ecn_in_the_simulator(cc, tmp_path):
    assert negotiated(cc, "sim", tmp_path) == TABLE[cc]


@pytest.mark.parametrize("cc", TABLE)
def test_all_pairs_of_tcp_ecn_in_a_real_kernel(cc, kernel, tmp_path):
    assert negotiated(cc, kernel, tmp_path) == TABLE[cc]


def test_a_syn_whose_cwr_and_ece_were_removed_still_asks_for_accecn():
    # iptables' --ecn-tcp-remove leaves AE. l4s-tests sets ECT(1) too: the SYN/ACK says 011 (RFC 9768, table 2).
    script = """\
`sysctl -q net.ipv4.tcp_ecn=3`
0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 bind(3, ..., ...) = 0
+0 listen(3, 1) = 0
+0 < [ect1] SA 0:0(0) win 32792 <mss 1050,nop,nop,sackOK,nop,wscale 8>
+0 > S{} 0:0(0) ack 1 <...>
"""
    verdicts = {flags: json.loads(_sim.packetdrill(script.format(flags)))["verdict"] for flags in ("EW.", "W.", ".")}
    assert verdicts == {"EW.": "passed", "W.": "failed", ".": "failed"}


@pytest.mark.parametrize(("name", "mode"), [("noecn", "accecn"), ("noecn-meant", "off")])
def test_a_flow_forced_into_ect1_hears_ce_unless_ecn_was_not_negotiated(name, mode, tmp_path):
    [run] = catalog.select(f"l4s-tests/s10-ect1-gaming/ns-prague-vs-cubic-{name}-dualpi2-50Mbit-20ms")
    [done] = campaign.run([run], tmp_path, Execution(jobs=1)).runs
    flow = results.read(done.path).all_counters()["flows"]["cubic-2"]
    assert flow["ecn"] == mode
    assert (flow["delivered_ce"] > 0) == (mode == "accecn")
