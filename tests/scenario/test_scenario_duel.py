"""The duel: its run, its names, its mistakes."""

import pytest

from bakeoff.duels import Duel
from bakeoff.errors import BakeoffError
from bakeoff.scenario import catalog
from bakeoff.scenario.duel_runs import duels, flow_names
from scenario_texts import duel, interface

# The duel


def test_a_duel():
    run = duel("prague@2020-08", "cubic", qdisc="fq_codel flows 1", rate="10mbit", rtt="40ms", duration="20s", seed=2)
    assert run.key == "local/duel/prague-vs-cubic-fq_codel_flows_1-10mbit-40ms~seed2"
    assert [(f.name, f.cc) for f in run.flows] == [("prague", "prague@2020-08"), ("cubic", "cubic")]
    assert interface(run, "mid", "srv").egress.classes[0].model_dump() == {
        "id": "1", "class": "rate 10mbit ceil 10mbit", "child": {"qdisc": "fq_codel flows 1"},
    }  # fmt: skip
    assert interface(run, "mid", "cli").ingress.qdisc == "netem delay 20ms limit 1000000"
    assert run.nodes[0].sysctls == run.nodes[2].sysctls == {"net.ipv4.tcp_ecn": "3"}
    assert (run.probes[0].every_s, run.probes[0].proto, run.sample_interval_s) == (0.05, "icmp", 0.05)
    assert (run.duration_s, run.seed) == (20.0, 2)


@pytest.mark.parametrize(
    ("ccs", "expected"),
    [
        (("prague", "cubic"), ("prague", "cubic")),
        (("cubic", "cubic"), ("cubic-1", "cubic-2")),
        (("prague@2020-08", "prague"), ("prague@2020-08", "prague")),
        (("prague rtt_target 25ms", "reno"), ("prague", "reno")),
    ],
)
def test_flow_names_of_a_duel(ccs, expected):
    assert flow_names(*ccs) == expected


def test_a_scenario_without_hosts_negotiates_what_a_duel_does(tmp_path):
    text = """
duration: 20s
network: {path: [cli, mid, srv], rtt: 40ms, bottleneck: {rate: 10mbit, qdisc: codel}}
flows: [{name: cubic, cc: cubic}, {name: reno, cc: reno}]
"""
    fought = duel("cubic", "reno", qdisc="codel", rate="10mbit", rtt="40ms", duration="20s")
    written = tmp_path / "own.yaml"
    written.write_text(text)
    ecn = {"net.ipv4.tcp_ecn": "3"}
    [own] = catalog.select([str(written)])
    assert [node.sysctls for node in own.nodes] == [node.sysctls for node in fought.nodes] == [ecn, {}, ecn]
    # One more sysctl from outside leaves it; a mapping in the file takes its place.
    [more] = catalog.select([str(written)], settings={"hosts.sysctl.net.ipv4.tcp_sack": 0})
    assert more.nodes[0].sysctls == {**ecn, "net.ipv4.tcp_sack": "0"}
    written.write_text(text + "hosts: {sysctl: {}}")
    assert [node.sysctls for node in catalog.select([str(written)])[0].nodes] == [{}, {}, {}]


def test_a_duel_of_unlike_rtts():
    run = duel("reno", "cubic", rtt="10ms", rtt2="160ms")
    ingress = interface(run, "mid", "cli").ingress
    assert [c.child.qdisc.split()[2] for c in ingress.classes] == ["5ms", "80ms", "5ms"]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"rate": "50"}, "duel: network.bottleneck.rate: '50' has no unit; expected a rate"),
        ({"rtt": "-5ms"}, "duel: network.rtt: '-5ms' is negative"),
        ({"duration": "0s"}, "duel: duration: '0s'; expected more than 0"),
        ({"qdisc": " "}, "duel: qdisc: empty"),
        ({"rate": "{x}"}, "duel: network.bottleneck.rate: '{x}': invalid quantity"),
    ],
)
def test_duels_that_are_none(kwargs, message):
    with pytest.raises(BakeoffError) as error:
        duel("reno", "cubic", **kwargs)
    assert str(error.value).startswith(message)


def test_a_duel_takes_names_as_they_are_written():
    run = duel("prague rtt_target 25ms", "prague@2020-08")
    assert [flow.cc for flow in run.flows] == ["prague rtt_target 25ms", "prague@2020-08"]


# Several values


def test_commas_make_a_matrix():
    every = Duel(cc1="cubic", cc2="reno,bbr", rtt="10ms, 40ms", qdisc="pie ecn,fq_codel flows 1")
    runs = duels(every, seeds=2)
    assert every.count() == 8
    assert len(runs) == 16
    assert [run.key for run in runs[:3]] == [
        "local/duel/cubic-vs-reno-pie_ecn-50mbit-10ms",
        "local/duel/cubic-vs-reno-pie_ecn-50mbit-10ms~seed2",
        "local/duel/cubic-vs-reno-pie_ecn-50mbit-40ms",
    ]
    assert runs[-1].point == {
        "cc1": "cubic", "cc2": "bbr", "qdisc": "fq_codel flows 1", "rate": "50mbit", "rtt": "40ms",
    }  # fmt: skip
    # a comma that belongs to a value
    assert [each.cc1 for each in Duel(cc1="./a\\,b.py:C,reno", cc2="x").each()] == ["./a,b.py:C", "reno"]


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"rtt": "10ms,"}, "duel: rtt: '10ms,' contains an empty value; expected comma-separated values"),
        ({"rtt": "10ms,10ms"}, "duel: rtt: '10ms,10ms': duplicate value '10ms'; expected unique values"),
        ({"rtt": "10ms,50"}, "duel: network.rtt: '50' has no unit"),
        ({"qdisc": "pie  ecn,pie ecn"}, "duel: duplicate name 'reno-vs-cubic-pie_ecn-50mbit-20ms' of"),
        ({"duration": "1s,2s"}, "duel: duration: '1s,2s': invalid quantity"),
    ],
)
def test_matrices_that_are_none(parts, message):
    with pytest.raises(BakeoffError) as error:
        duels(Duel(cc1="reno", cc2="cubic", **parts))
    assert str(error.value).startswith(message)


def test_very_many_duels_are_refused():
    with pytest.raises(BakeoffError, match=r"duel: 200,000 runs; at most 100,000 without --yes"):
        duels(Duel(cc1="reno", cc2="cubic,bbr"), seeds=100_000)
