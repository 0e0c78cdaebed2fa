"""Topology of the lab: segments, addresses, routes and names; what no plan can do is refused by its place."""

import re
from itertools import pairwise

import pytest

from bakeoff.engines.lab import plan
from bakeoff.engines.lab.topology import topology
from bakeoff.errors import RefusedError
from bakeoff.scenario import Run
from lab_runs import HTB, NETEM, action, egress, flow, lines, network, nodes, probe

# Topology


def chain(*kinds: str) -> Run:
    names = [f"n{i}" for i in range(len(kinds))]
    return network(
        nodes=[
            {"name": name, "kind": kind, "hz": 1000, "offloads": False} for name, kind in zip(names, kinds, strict=True)
        ],
        links=[{"ends": pair} for pair in pairwise(names)],
        flows=[{"name": "a", "from": "n0", "to": names[-1], "cc": "cubic", "start_s": 0.0, "stop_s": 1.0}],
    )


def test_bridges_join_and_routers_part_segments():
    net = topology(chain("host", "bridge", "router", "router", "bridge", "host"))
    assert [[end[0] for end in segment] for segment in net.segments] == [["n0", "n2"], ["n2", "n3"], ["n3", "n5"]]
    assert net.address("n0") == "10.9.0.1"
    assert net.address("n5") == "10.9.2.2"
    assert [(number, out.dev, via) for number, out, via in net.routes("n0")] == [
        (1, "n0.n1", "10.9.0.2"),
        (2, "n0.n1", "10.9.0.2"),
    ]
    assert [(number, out.dev, via) for number, out, via in net.routes("n3")] == [(0, "n3.n2", "10.9.1.1")]
    assert len({end.mac for end in net.interfaces.values() if end.mac}) == 6


def test_hosts_do_not_forward():
    run = chain("host", "host", "host")
    assert topology(run).routes("n0") == []
    with pytest.raises(RefusedError, match=r"flows\[0\]: no path from 'n0' to 'n2'"):
        plan(run)


@pytest.mark.parametrize(
    ("letters", "dev", "ifb"),
    [
        (11, "aaaaaaaaaaa.b", "ifb.aaaaaaaaaaa"),
        (12, "aaaaaaaaaaaa.b", "ifb1"),
        (13, "aaaaaaaaaaaaa.b", "ifb1"),
        (14, "e0", "ifb1"),
    ],
)
def test_long_names_become_numbers(letters, dev, ifb):
    # 15 characters fit: 13 and ".b", "ifb." and 11.
    long = "a" * letters
    run = network(
        nodes=[{"name": name, "kind": "host", "hz": 1000, "offloads": True} for name in (long, "b")],
        links=[{"ends": [long, "b"]}],
        flows=[{"name": "a", "from": "b", "to": long, "cc": "cubic", "start_s": 0.0, "stop_s": 1.0}],
    )
    ends = topology(run).interfaces
    assert ends[long, "b"].dev == dev
    assert ends["b", long].ifb == ifb


# Refusals


def named(name: str) -> list[dict]:
    return [{"name": each, "kind": "host", "hz": 1000, "offloads": False} for each in ("cli", name, "srv")]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": named("a b")}, "nodes[1].name: 'a b': invalid name of a namespace"),
        ({"nodes": named("../x")}, "nodes[1].name: '../x': invalid name of a namespace"),
        ({"nodes": named("-n")}, "nodes[1].name: '-n': invalid"),
        ({"nodes": named("x" * 65)}, "at most 64 characters"),
        ({"links": [{"ends": ["cli", "nix"]}]}, "links[0].ends: 'nix': unknown node; expected one of cli, mid, srv"),
        ({"links": [{"ends": ["cli", "srv"]}] * 2}, "links[1].ends: cli-srv; expected one link between two nodes"),
        ({"links": [{"ends": ["cli", "srv"], "rate_bps": 1}]}, "links[0].rate_bps: not supported on a veth"),
        ({"links": [{"ends": ["cli", "srv"], "features": {"aggregate": 1}}]}, "links[0].features.aggregate"),
        ({"interfaces": [{"node": "cli", "peer": "srv"}]}, "interfaces[0]: cli>srv: no such link"),
        ({"interfaces": egress({"qdisc": " "})}, "interfaces[0].egress.qdisc: empty"),
        ({"flows": [flow(transport="udp")]}, "flows[0].source: 'bulk' over udp"),
        ({"flows": [flow(transport="udp", source={"kind": "rate", "rate_bps": 9, "size": 15})]},
         "flows[0].source.size: 15 bytes; expected at least 16"),
        ({"flows": [flow(to="mid")]}, "flows[0].to: 'mid': unknown host; expected one of cli, srv"),
        ({"probes": [probe(to="mid")]}, "probes[0].to: 'mid': unknown host"),
        ({"captures": ["mid>nix"]}, "captures[0]: 'mid>nix': unknown interface; expected one of cli>mid, mid>cli"),
        ({"changes": [action(kind="link", rate_bps=1)]}, "changes[0].action.rate_bps: not supported on a veth"),
        ({"changes": [action(kind="qdisc-change", side="egress", handle="", qdisc="pie")]},
         "changes[0].action.side: no egress queue at mid>srv"),
        ({"interfaces": egress(HTB), "changes": [action(kind="class-change", side="egress", id="2", **{"class": "x"})]},
         "changes[0].action.id: unknown class '2'; expected one of: 1"),
        ({"interfaces": egress(HTB),
          "changes": [action(kind="qdisc-change", side="egress", handle="9", qdisc="pie")]},
         "changes[0].action.handle: no qdisc at '9'; expected one of '', '1'"),
        ({"interfaces": egress(HTB, mangle=[{"match": {"flow": "b"}, "set_dscp": 1}])},
         "interfaces[0].mangle[0].match.flow: 'b': not a flow or probe outside tunnels; expected one of a"),
        ({"interfaces": egress(HTB, mangle=[{"match": {}, "clear_syn_ecn": True}])},
         "interfaces[0].mangle[0].clear_syn_ecn: expected 'syn: true'"),
        ({"interfaces": egress(HTB, mangle=[{"match": {"proto": "udp", "syn": True}, "set_dscp": 1}])},
         "interfaces[0].mangle[0].match.syn: not valid with proto"),
        ({"interfaces": [{"node": "mid", "peer": "srv", "mangle": [{"match": {}, "set_dscp": 1}], "ingress": {
            "qdisc": "prio", "classes": [{"id": "1", "child": {"qdisc": "htb", "classes": [
                {"id": "2", "class": "rate 1mbit", "filters": [{"dscp": 1}]}]}}]}}]},
         "interfaces[0].ingress: filters below the root would match after 'mangle'"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_named_by_its_place(changes, message):
    with pytest.raises(RefusedError) as refused:
        plan(network(**changes))
    assert message in str(refused.value)


def test_a_loop_of_bridges_is_refused():
    names = ["a", "b", "c"]
    with pytest.raises(RefusedError, match=r"links\[2\].ends: c-a closes a loop of bridges"):
        plan(
            network(
                nodes=[{"name": name, "kind": "bridge", "hz": 1000, "offloads": False} for name in names],
                links=[{"ends": [one, other]} for one, other in zip(names, "bca", strict=True)],
            )
        )


def test_a_sysctl_of_the_whole_machine_is_refused():
    with pytest.raises(RefusedError, match=r"nodes\[0\].sysctls: 'kernel.hostname': not a sysctl"):
        plan(network(nodes=nodes(cli={"kernel.hostname": "x"})))


def test_a_links_delay_is_a_netem_where_it_arrives():
    links = [{"ends": ["cli", "mid"], "delay_s": 0.01, "loss": 0.005}, {"ends": ["mid", "srv"]}]
    made = plan(network(links=links))
    assert lines(made.setup, "netem", "delay") == [
        "cli: tc qdisc add dev ifb.mid root handle 100: netem delay 10ms loss 0.5% limit 1000000",
        "mid: tc qdisc add dev ifb.cli root handle 100: netem delay 10ms loss 0.5% limit 1000000",
    ]
    with pytest.raises(RefusedError, match=r"links\[0\]: has a delay or loss, and mid<cli an ingress queue"):
        plan(network(links=links, interfaces=[{"node": "mid", "peer": "cli", "ingress": NETEM}]))


def test_a_link_loses_in_the_direction_that_is_named():
    """What mid sends to cli arrives at cli's side of the cable; the other side has no netem where there is no delay."""
    links = [{"ends": ["cli", "mid"], "loss": {"mid": 0.005}}, {"ends": ["mid", "srv"]}]
    assert lines(plan(network(links=links)).setup, "netem", "delay") == [
        "cli: tc qdisc add dev ifb.mid root handle 100: netem delay 0ms loss 0.5% limit 1000000",
    ]
    links[0]["delay_s"] = 0.01
    assert lines(plan(network(links=links)).setup, "netem", "delay") == [
        "cli: tc qdisc add dev ifb.mid root handle 100: netem delay 10ms loss 0.5% limit 1000000",
        "mid: tc qdisc add dev ifb.cli root handle 100: netem delay 10ms limit 1000000",
    ]


def test_parameters_of_a_congestion_control_are_refused_by_place():
    message = "flows[0].cc: 'prague@2020-08 rtt_target 25ms': parameters per flow need --engine sim"
    with pytest.raises(RefusedError, match=re.escape(message)):
        plan(network(flows=[flow(cc="prague@2020-08 rtt_target 25ms")]))


def test_what_tools_cannot_make_is_refused_by_place():
    def refused(message: str, **changes: object) -> None:
        with pytest.raises(RefusedError, match=re.escape(message)):
            plan(network(**changes))

    short = flow(source={"kind": "periodic", "size": 100, "count": 1, "every_s": 0.1})
    refused("flows[0].source: 'periodic' over tcp: not supported by iperf3", flows=[short], tools={"flows": "iperf3"})
    refused("flows[0]: not supported by netperf", flows=[short], tools={"flows": "netperf"})
    refused("duration_s: 2: flent measures 5 s before and after", tools={"flows": "flent"})
    refused("probes[0].proto: 'icmp': not supported by irtt", probes=[probe()], tools={"probes": "irtt"})
