"""The lab: plans, refusals, conversion, and the engines that use them (real kernels where there are some)."""
# A command stands on one line, as it does in the logs.
# ruff: noqa: E501

import json
import math
import os
import re
import signal
import struct
import threading
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest
from inline_snapshot import snapshot

from bakeoff import campaign, engines, results
from bakeoff.cli.options import with_kernel
from bakeoff.engines import netns
from bakeoff.engines.kernel import programs, virtual
from bakeoff.engines.kernel.standstill import standstill
from bakeoff.engines.lab import Queue, agent, convert, pcapng, plan, tc_show
from bakeoff.engines.lab.refused import RefusedError
from bakeoff.engines.lab.topology import topology
from bakeoff.engines.lab.tree import Tree
from bakeoff.errors import BakeoffError
from bakeoff.results.series import read_series
from bakeoff.scenario import Run, catalog
from bakeoff.scenario.run import Class, Match, Qdisc

PRAGUE_BLEACHED = "ns-prague-vs-cubic-noecn-fq_codel(1q)-50Mbit-20ms"
UNLIKE_RTTS = "ns-cubic-vs-cubic-dualpi2-50Mbit-20ms-10ms"


def published(pattern: str) -> Run:
    [run] = catalog.select([f"l4s-tests/{pattern}"])
    return run


def network(**changes: object) -> Run:
    """cli - mid - srv, a bridge in the middle, one cubic flow, nothing else."""
    host = {"kind": "host", "sysctls": {}, "hz": 1000, "offloads": False}
    document = {
        "format": 1, "suite": "local", "scenario": "lab", "run": "x", "seed": 1, "duration_s": 2.0,
        "sample_interval_s": 0.05, "window_s": [0.5, 2.0],
        "nodes": [{"name": "cli", **host}, {"name": "mid", **host, "kind": "bridge"}, {"name": "srv", **host}],
        "links": [{"ends": ["cli", "mid"]}, {"ends": ["mid", "srv"]}],
        "flows": [{"name": "a", "from": "cli", "to": "srv", "cc": "cubic", "start_s": 0.0, "stop_s": 2.0}],
    }  # fmt: skip
    return Run.from_json(json.dumps(document | changes))


def egress(tree: dict, **others: object) -> list[dict]:
    return [{"node": "mid", "peer": "srv", "egress": tree, **others}]


HTB = {"qdisc": "htb default 1", "classes": [{"id": "1", "class": "rate 20mbit", "child": {"qdisc": "fq_codel"}}]}


def lines(commands, *words: str) -> list[str]:
    return [command.line() for command in commands if all(word in command.argv for word in words)]


# Plans


def test_the_plan_of_a_bleached_flow_in_a_shared_queue():
    made = plan(published(f"s6-rfc3168/{PRAGUE_BLEACHED}"))
    assert made.notes == ("flows[0].cc: 'prague@2020-08' asked for: the kernel's own 'prague' is in effect",)
    assert lines(made.setup) == snapshot(
        [
            "cli: ip netns add cli",
            "cli: sysctl -e -w net.ipv6.conf.all.disable_ipv6=1",
            "cli: sysctl -e -w net.ipv6.conf.default.disable_ipv6=1",
            "cli: sysctl -w 'net.ipv4.tcp_rmem=4096 131072 6291456'",
            "cli: sysctl -w 'net.ipv4.tcp_wmem=4096 16384 4194304'",
            "cli: sysctl -w net.ipv4.tcp_ecn=3",
            "cli: sysctl -w net.ipv4.tcp_ecn_option=1",
            "cli: ip link set dev lo up",
            "mid: ip netns add mid",
            "mid: sysctl -e -w net.ipv6.conf.all.disable_ipv6=1",
            "mid: sysctl -e -w net.ipv6.conf.default.disable_ipv6=1",
            "mid: ip link set dev lo up",
            "srv: ip netns add srv",
            "srv: sysctl -e -w net.ipv6.conf.all.disable_ipv6=1",
            "srv: sysctl -e -w net.ipv6.conf.default.disable_ipv6=1",
            "srv: sysctl -w 'net.ipv4.tcp_rmem=4096 131072 6291456'",
            "srv: sysctl -w 'net.ipv4.tcp_wmem=4096 16384 4194304'",
            "srv: sysctl -w net.ipv4.tcp_ecn=3",
            "srv: sysctl -w net.ipv4.tcp_ecn_option=1",
            "srv: ip link set dev lo up",
            "cli: ip link add name cli.mid netns cli mtu 1500 address 02:00:0a:09:00:01 type veth peer name mid.cli netns mid mtu 1500",
            "mid: ip link add name mid.srv netns mid mtu 1500 type veth peer name srv.mid netns srv mtu 1500 address 02:00:0a:09:00:02",
            "cli: ethtool -K cli.mid rx off tx off sg off tso off gso off gro off rxvlan off txvlan off",
            "mid: ethtool -K mid.cli rx off tx off sg off tso off gso off gro off rxvlan off txvlan off",
            "mid: ethtool -K mid.srv rx off tx off sg off tso off gso off gro off rxvlan off txvlan off",
            "mid: ip link add br0 type bridge stp_state 0 mcast_snooping 0",
            "mid: ip link set dev mid.cli master br0",
            "mid: ip link set dev mid.srv master br0",
            "srv: ethtool -K srv.mid rx off tx off sg off tso off gso off gro off rxvlan off txvlan off",
            "mid: ip link set dev mid.cli txqueuelen 1000",
            "mid: tc qdisc add dev mid.cli root handle 1: htb default 1",
            "mid: tc class add dev mid.cli parent 1: classid 1:1 htb rate 50mbit ceil 50mbit",
            "mid: tc qdisc add dev mid.cli parent 1:1 handle 2: fq_codel flows 1",
            "mid: ip link add ifb.cli type ifb",
            "mid: ip link set dev ifb.cli txqueuelen 1000",
            "mid: tc qdisc add dev ifb.cli root handle 100: netem delay 10ms limit 1000000",
            "mid: ip link set dev ifb.cli up",
            "mid: tc qdisc add dev mid.cli handle ffff: ingress",
            "mid: tc filter add dev mid.cli parent ffff: protocol ip prio 1 u32 match ip protocol 6 0xff match ip dsfield 0x8c 0xfc action pedit munge ip dsfield set 0x00 retain 0xff pipe action csum ip4h continue",
            "mid: tc filter add dev mid.cli parent ffff: protocol all prio 2 u32 match u32 0 0 action mirred egress redirect dev ifb.cli",
            "mid: ip link set dev mid.srv txqueuelen 1000",
            "mid: tc qdisc add dev mid.srv root handle 1: htb default 1",
            "mid: tc class add dev mid.srv parent 1: classid 1:1 htb rate 50mbit ceil 50mbit",
            "mid: tc qdisc add dev mid.srv parent 1:1 handle 2: fq_codel flows 1",
            "mid: ip link add ifb.srv type ifb",
            "mid: ip link set dev ifb.srv txqueuelen 1000",
            "mid: tc qdisc add dev ifb.srv root handle 100: netem delay 10ms limit 1000000",
            "mid: ip link set dev ifb.srv up",
            "mid: tc qdisc add dev mid.srv handle ffff: ingress",
            "mid: tc filter add dev mid.srv parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev ifb.srv",
            "cli: ip addr add 10.9.0.1/24 dev cli.mid",
            "cli: ip link set dev cli.mid up",
            "cli: ip neigh replace 10.9.0.2 lladdr 02:00:0a:09:00:02 dev cli.mid nud permanent",
            "mid: ip link set dev mid.cli up",
            "mid: ip link set dev mid.srv up",
            "mid: ip link set dev br0 up",
            "srv: ip addr add 10.9.0.2/24 dev srv.mid",
            "srv: ip link set dev srv.mid up",
            "srv: ip neigh replace 10.9.0.1 lladdr 02:00:0a:09:00:01 dev srv.mid nud permanent",
            "cli: sleep 3",
            "mid: tc -d qdisc show dev mid.cli",
            "mid: tc -d class show dev mid.cli",
            "mid: tc -d qdisc show dev ifb.cli",
            "mid: tc -d class show dev ifb.cli",
            "mid: tc -d qdisc show dev mid.srv",
            "mid: tc -d class show dev mid.srv",
            "mid: tc -d qdisc show dev ifb.srv",
            "mid: tc -d class show dev ifb.srv",
            "mid: tc -d filter show dev mid.cli parent ffff:",
            "cli: ip tcp_metrics show",
            "srv: ip tcp_metrics show",
        ]
    )
    assert made.changes == ()
    assert [dict(role) for role in made.roles] == snapshot(
        [
            {
                "role": "tcp-sink",
                "name": "prague",
                "node": "srv",
                "netns": "srv",
                "port": 5201,
                "dscp": 19,
                "cc": "prague",
            },
            {
                "role": "tcp-sink",
                "name": "cubic",
                "node": "srv",
                "netns": "srv",
                "port": 5202,
                "dscp": 35,
                "cc": "cubic",
            },
            {
                "role": "tcp-source",
                "name": "prague",
                "node": "cli",
                "netns": "cli",
                "to": "10.9.0.2:5201",
                "cc": "prague",
                "dscp": 19,
                "start_s": 0.004373,
                "stop_s": 60.0,
                "source": {"kind": "bulk"},
                "local_port": 53572,
            },
            {
                "role": "tcp-source",
                "name": "cubic",
                "node": "cli",
                "netns": "cli",
                "to": "10.9.0.2:5202",
                "cc": "cubic",
                "dscp": 35,
                "start_s": 0.001669,
                "stop_s": 60.0,
                "source": {"kind": "bulk"},
                "local_port": 51319,
            },
            {
                "role": "icmp-probe",
                "name": "ping",
                "node": "cli",
                "netns": "cli",
                "to": "10.9.0.2",
                "every_s": 0.05,
                "size": 84,
                "dscp": 0,
                "ecn": "not-ect",
                "start_s": 0.0,
                "stop_s": 60.0,
            },
        ]
    )
    assert made.queues == snapshot(
        (
            Queue(
                name="mid>cli",
                node="mid",
                netns="mid",
                dev="mid.cli",
                at="parent 1:1",
                qdisc="fq_codel flows 1",
                sampled=True,
            ),
            Queue(
                name="mid<cli",
                node="mid",
                netns="mid",
                dev="ifb.cli",
                at="root",
                qdisc="netem delay 10ms limit 1000000",
                sampled=False,
            ),
            Queue(
                name="mid>srv",
                node="mid",
                netns="mid",
                dev="mid.srv",
                at="parent 1:1",
                qdisc="fq_codel flows 1",
                sampled=True,
            ),
            Queue(
                name="mid<srv",
                node="mid",
                netns="mid",
                dev="ifb.srv",
                at="root",
                qdisc="netem delay 10ms limit 1000000",
                sampled=False,
            ),
        )
    )
    assert lines(made.statistics) == snapshot(
        [
            "cli: uname -a",
            "mid: tc -s -d qdisc show dev mid.cli",
            "mid: tc -s -d class show dev mid.cli",
            "mid: tc -s -d qdisc show dev ifb.cli",
            "mid: tc -s -d class show dev ifb.cli",
            "mid: tc -s -d qdisc show dev mid.srv",
            "mid: tc -s -d class show dev mid.srv",
            "mid: tc -s -d qdisc show dev ifb.srv",
            "mid: tc -s -d class show dev ifb.srv",
            "mid: tc -s -d filter show dev mid.cli parent ffff:",
            "cli: ip -s link show",
            "cli: sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_ecn net.ipv4.tcp_ecn_option",
            "cli: ip tcp_metrics show",
            "mid: ip -s link show",
            "srv: ip -s link show",
            "srv: sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_ecn net.ipv4.tcp_ecn_option",
            "srv: ip tcp_metrics show",
        ]
    )
    assert lines(made.teardown) == snapshot(["srv: ip netns del srv", "mid: ip netns del mid", "cli: ip netns del cli"])


def test_delays_by_dscp_hang_below_an_htb_on_the_ifb():
    made = plan(published(f"s1-rttfair/{UNLIKE_RTTS}"))
    assert [line for line in lines(made.setup, "tc") if "ifb.cli" in line and "show" not in line] == snapshot(
        [
            "mid: tc qdisc add dev ifb.cli root handle 100: htb default 10",
            "mid: tc class add dev ifb.cli parent 100: classid 100:10 htb rate 2gbps ceil 2gbps",
            "mid: tc qdisc add dev ifb.cli parent 100:10 handle 101: netem delay 10ms limit 10000",
            "mid: tc class add dev ifb.cli parent 100: classid 100:11 htb rate 2gbps ceil 2gbps",
            "mid: tc qdisc add dev ifb.cli parent 100:11 handle 102: netem delay 5ms limit 10000",
            "mid: tc filter add dev ifb.cli parent 100: protocol ip prio 1 u32 match ip dsfield 0x4c 0xfc flowid 100:10",
            "mid: tc filter add dev ifb.cli parent 100: protocol ip prio 2 u32 match ip dsfield 0x8c 0xfc flowid 100:11",
            "mid: tc filter add dev mid.cli parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred egress redirect dev ifb.cli",
        ]
    )
    assert [(queue.name, queue.dev, queue.at, queue.sampled) for queue in made.queues] == snapshot(
        [
            ("mid>cli", "mid.cli", "parent 1:1", True),
            ("mid<cli/10", "ifb.cli", "parent 100:10", False),
            ("mid<cli/11", "ifb.cli", "parent 100:11", False),
            ("mid>srv", "mid.srv", "parent 1:1", True),
            ("mid<srv/10", "ifb.srv", "parent 100:10", False),
            ("mid<srv/11", "ifb.srv", "parent 100:11", False),
        ]
    )
    assert made.notes == snapshot(
        ("interfaces[0].egress.classes[0].child: 'dualpi2@2020' asked for: the kernel's own 'dualpi2' is in effect",)
    )


def many_runs() -> list[Run]:
    long = [{"name": f"a-node-with-a-long-name-{i}", "kind": kind, "hz": 1000, "offloads": False, "sysctls": {}}
            for i, kind in enumerate(("host", "router", "bridge", "host"))]  # fmt: skip
    names = [node["name"] for node in long]
    flow = {"name": "a", "from": names[0], "to": names[3], "cc": "reno", "start_s": 0.0, "stop_s": 2.0}
    odd = network(
        nodes=long,
        links=[{"ends": pair} for pair in pairwise(names)],
        interfaces=[{"node": names[1], "peer": names[2], "egress": HTB, "ingress": {"qdisc": "netem delay 1ms"}}],
        flows=[flow],
        probes=[{"name": "p", "proto": "udp", "from": names[0], "to": names[3], "every_s": 0.1, "size": 84,
                 "start_s": 0.0, "stop_s": 2.0}],
    )  # fmt: skip
    return [*catalog.select(["*"]), odd]


def test_classes_that_borrow_are_added_below_their_parents():
    tree = Tree("eth0", 1, {}, 1000)
    commands = tree.install(
        Qdisc(
            qdisc="htb default 10",
            classes=[
                Class(id="10", parent="1", class_="rate 30mbit ceil 100mbit", child=Qdisc(qdisc="fq_codel")),
                Class(id="1", class_="rate 100mbit"),
            ],
        ),
        "egress",
    )
    assert [" ".join(words) for words in commands] == [
        "tc qdisc add dev eth0 root handle 1: htb default 10",
        "tc class add dev eth0 parent 1: classid 1:1 htb rate 100mbit",
        "tc class add dev eth0 parent 1:1 classid 1:10 htb rate 30mbit ceil 100mbit",
        "tc qdisc add dev eth0 parent 1:10 handle 2: fq_codel",
    ]
    assert tree.change_class("10", "rate 5mbit", "changes[0]") == [
        "tc class change dev eth0 parent 1:1 classid 1:10 htb rate 5mbit".split()  # noqa: SIM905
    ]
    assert [leaf.path for leaf in tree.leaves] == ["10"]


def test_the_bands_of_prio_are_not_added():
    tree = Tree("eth0", 1, {}, 1000)
    classes = [Class(id="1", filters=[Match(dscp=46)]), Class(id="2", child=Qdisc(qdisc="codel"))]
    commands = [" ".join(words) for words in tree.install(Qdisc(qdisc="prio bands 2", classes=classes), "egress")]
    assert commands == [
        "tc qdisc add dev eth0 root handle 1: prio bands 2",
        "tc qdisc add dev eth0 parent 1:1 handle 2: pfifo limit 1000",
        "tc qdisc add dev eth0 parent 1:2 handle 3: codel",
        "tc filter add dev eth0 parent 1: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 1:1",
    ]


def test_every_plan_is_plain_words_short_names_and_undone():
    runs = many_runs()
    assert len(runs) > 200
    for run in runs:
        made = plan(run, prefix="bakeoff-")
        for command in (*made.setup, *made.changes, *made.statistics, *made.teardown):
            assert all(type(word) is str and word for word in command.argv), command
            assert not set(command.argv) & {"sh", "bash", "-c"}
        devices = {command.argv[command.argv.index("dev") + 1] for command in made.setup if "dev" in command.argv}
        devices |= {command.argv[i + 1] for command in made.setup for i, w in enumerate(command.argv) if w == "name"}
        assert max(map(len, devices)) <= 15
        # Every namespace is made once and taken away once, in reverse.
        added = [command.argv[3] for command in made.setup if command.argv[:3] == ("ip", "netns", "add")]
        deleted = [command.argv[3] for command in made.teardown]
        assert deleted == added[::-1] == list(made.namespaces)[::-1]
        assert all(name.startswith("bakeoff-") for name in added)
        # All else is in one of them, and goes with it.
        outside = {c.argv[0] for c in (*made.setup, *made.statistics) if c.netns is None}
        assert outside <= {"ip", "sleep", "uname"}
        assert json.loads(json.dumps(made.to_json()))["format"] == 1
        assert plan(run, prefix="bakeoff-") == made


def test_nothing_of_a_scenario_reaches_a_shell():
    evil = "; rm -rf $HOME 'x"
    made = plan(network(interfaces=egress({"qdisc": f"pfifo {evil}"})))
    [line] = [command for command in made.setup if command.argv[:3] == ("tc", "qdisc", "add")]
    assert line.argv[-6:] == ("pfifo", ";", "rm", "-rf", "$HOME", "'x")
    assert line.line().endswith("""pfifo ';' rm -rf '$HOME' ''"'"'x'""")


def test_versions_are_the_simulators():
    tree = {"qdisc": "dualpi2@2020", "child": None}
    replaced = {"kind": "qdisc-replace", "side": "egress", "handle": "", "qdisc": {"qdisc": "pie@5.4 ecn"}}
    change = {"at_s": 1.0, "node": "mid", "peer": "srv", "action": replaced}
    made = plan(network(interfaces=egress(tree), changes=[change]))
    assert made.notes == (
        "interfaces[0].egress: 'dualpi2@2020' asked for: the kernel's own 'dualpi2' is in effect",
        "changes[0].action.qdisc: 'pie@5.4' asked for: the kernel's own 'pie' is in effect",
    )
    assert lines(made.setup, "dualpi2") == ["mid: tc qdisc add dev mid.srv root handle 1: dualpi2"]
    assert lines(made.changes) == [
        "mid: tc qdisc del dev mid.srv root",
        "mid: tc qdisc add dev mid.srv root handle 1: pie ecn",
    ]


def test_without_ethtool_senders_build_no_large_packets():
    made = plan(network(), ethtool=False)
    assert "cli: ip link set dev cli.mid gso_max_segs 1" in lines(made.setup)
    assert not lines(made.setup, "ethtool")
    assert made.notes == (
        "nodes[].offloads: ethtool is not installed: instead, senders build no large packets (gso_max_segs 1)",
    )


def test_local_ports_follow_from_seed_and_name():
    ports = {
        seed: [role["local_port"] for role in plan(network(seed=seed)).roles if "local_port" in role]
        for seed in (1, 1, 2)
    }
    assert ports[1] != ports[2]
    assert all(32768 <= port < 61000 for [port] in ports.values())


# Rewriting


def test_rules_run_in_order_ahead_of_the_ifb():
    rules = [
        {"match": {"proto": "tcp", "dscp": 35, "syn": True}, "clear_syn_ecn": True},
        {"match": {"ecn": "ce"}, "set_ecn": "not-ect"},
        {"match": {"flow": "a"}, "set_dscp": 5},
    ]
    ends = [{"node": "mid", "peer": "cli", "ingress": {"qdisc": "netem delay 1ms"}, "mangle": rules}]
    assert lines(plan(network(interfaces=ends)).setup, "filter", "add") == snapshot(
        [
            "mid: tc filter add dev mid.cli parent ffff: protocol ip prio 1 u32 match ip protocol 6 0xff match ip dsfield 0x8c 0xfc match u8 0x02 0x02 at 33 action pedit munge offset 32 u8 set 0x00 retain 0x01 munge offset 33 u8 set 0x00 retain 0xc0 pipe action csum ip4h and tcp continue",
            "mid: tc filter add dev mid.cli parent ffff: protocol ip prio 2 u32 match ip dsfield 0x03 0x03 action pedit munge ip dsfield set 0x00 retain 0x03 pipe action csum ip4h continue",
            "mid: tc filter add dev mid.cli parent ffff: protocol ip prio 3 u32 match ip protocol 6 0xff match ip src 10.9.0.1/32 match ip dst 10.9.0.2/32 match ip dport 5201 0xffff action pedit munge ip dsfield set 0x14 retain 0xfc pipe action csum ip4h continue",
            "mid: tc filter add dev mid.cli parent ffff: protocol all prio 4 u32 match u32 0 0 action mirred egress redirect dev ifb.cli",
        ]
    )


def test_a_class_is_chosen_before_the_packet_is_rewritten():
    tree = {
        "qdisc": "htb default 10",
        "classes": [
            {"id": "10", "class": "rate 1gbit", "filters": [{"dscp": 19}], "child": {"qdisc": "netem delay 1ms"}},
            {"id": "11", "class": "rate 1gbit", "filters": [{"proto": "tcp"}], "child": {"qdisc": "netem delay 2ms"}},
        ],
    }
    ends = [{"node": "mid", "peer": "cli", "ingress": tree, "mangle": [{"match": {"dscp": 19}, "set_dscp": 0}]}]
    at_hook = [line.split(" u32 ", 1)[1] for line in lines(plan(network(interfaces=ends)).setup, "ffff:", "u32")]
    # The first filter of the document comes last: it overrides the other one.
    assert at_hook == [
        "match ip protocol 6 0xff action skbedit priority 100:11 continue",
        "match ip dsfield 0x4c 0xfc action skbedit priority 100:10 continue",
        "match ip dsfield 0x4c 0xfc action pedit munge ip dsfield set 0x00 retain 0xfc pipe action csum ip4h continue",
        "match u32 0 0 action mirred egress redirect dev ifb.cli",
    ]


# Changes


def changed(*actions: dict, tree: dict = HTB) -> list[str]:
    changes = [{"at_s": 0.5 * i, "node": "mid", "peer": "srv", "action": action} for i, action in enumerate(actions)]
    return lines(plan(network(interfaces=egress(tree), changes=changes)).changes)


def test_changes_in_tcs_words():
    side = {"side": "egress"}
    assert changed(
        {"kind": "class-change", **side, "id": "1", "class": "rate 5mbit ceil 5mbit"},
        {"kind": "qdisc-change", **side, "handle": "1", "qdisc": "fq_codel target 1ms"},
        {"kind": "qdisc-replace", **side, "handle": "1", "qdisc": {"qdisc": "pie ecn"}},
        {"kind": "qdisc-change", **side, "handle": "1", "qdisc": "pie target 5ms"},
        {"kind": "link", "up": False},
    ) == snapshot(
        [
            "mid: tc class change dev mid.srv parent 1: classid 1:1 htb rate 5mbit ceil 5mbit",
            "mid: tc qdisc change dev mid.srv parent 1:1 handle 2: fq_codel target 1ms",
            "mid: tc qdisc replace dev mid.srv parent 1:1 handle 3: pie ecn",
            "mid: tc qdisc change dev mid.srv parent 1:1 handle 3: pie target 5ms",
            "mid: ip link set dev mid.srv down",
        ]
    )


def test_a_host_gets_neighbours_and_routes_back_with_its_link():
    change = {"at_s": 1.0, "node": "cli", "peer": "mid", "action": {"kind": "link", "up": True}}
    assert lines(plan(network(changes=[change])).changes) == [
        "cli: ip link set dev cli.mid up",
        "cli: ip neigh replace 10.9.0.2 lladdr 02:00:0a:09:00:02 dev cli.mid nud permanent",
    ]


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
    with pytest.raises(RefusedError, match=r"flows\[0\]: no way from 'n0' to 'n2'; only bridges and routers forward"):
        plan(run)


@pytest.mark.parametrize(("letters", "dev", "ifb"), [(11, "aaaaaaaaaaa.b", "ifb.aaaaaaaaaaa"), (12, "aaaaaaaaaaaa.b", "ifb1"),
                                                     (13, "aaaaaaaaaaaaa.b", "ifb1"), (14, "e0", "ifb1")])  # fmt: skip
def test_long_names_become_numbers(letters, dev, ifb):
    # 15 characters fit: 13 and ".b", "ifb." and 11.
    long = "a" * letters
    run = network(
        nodes=[{"name": name, "kind": "host", "hz": 1, "offloads": True} for name in (long, "b")],
        links=[{"ends": [long, "b"]}],
        flows=[{"name": "a", "from": "b", "to": long, "cc": "cubic", "start_s": 0.0, "stop_s": 1.0}],
    )
    ends = topology(run).interfaces
    assert ends[long, "b"].dev == dev
    assert ends["b", long].ifb == ifb


# Refusals


def probe(**words: object) -> dict:
    return {"name": "p", "proto": "icmp", "from": "cli", "to": "srv", "every_s": 1, "size": 84, "start_s": 0.0,
            "stop_s": 1.0, **words}  # fmt: skip


def flow(**words: object) -> dict:
    return {"name": "a", "from": "cli", "to": "srv", "cc": "cubic", "start_s": 0.0, "stop_s": 2.0, **words}


def action(**words: object) -> dict:
    return {"at_s": 1.0, "node": "mid", "peer": "srv", "action": words}


def named(name: str) -> list[dict]:
    return [{"name": each, "kind": "host", "hz": 1, "offloads": False} for each in ("cli", name, "srv")]


NETEM = {"qdisc": "netem delay 1ms"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"nodes": named("a b")}, "nodes[1].name: 'a b' cannot name a namespace"),
        ({"nodes": named("../x")}, "nodes[1].name: '../x' cannot name a namespace"),
        ({"nodes": named("-n")}, "nodes[1].name: '-n' cannot"),
        ({"nodes": named("x" * 65)}, "at most 64 characters"),
        ({"links": [{"ends": ["cli", "nix"]}]}, "links[0].ends: 'nix' is no node; expected one of cli, mid, srv"),
        ({"links": [{"ends": ["cli", "srv"]}] * 2}, "links[1].ends: cli-srv; expected one link between two nodes"),
        ({"links": [{"ends": ["cli", "srv"], "rate_bps": 1}]}, "links[0].rate_bps: a veth has no rate"),
        ({"links": [{"ends": ["cli", "srv"], "features": {"aggregate": 1}}]}, "links[0].features.aggregate"),
        ({"interfaces": [{"node": "cli", "peer": "srv"}]}, "interfaces[0]: cli>srv: there is no such link"),
        ({"interfaces": egress({"qdisc": " "})}, "interfaces[0].egress.qdisc: is empty"),
        ({"flows": [flow(transport="udp")]}, "flows[0].source: 'bulk' over udp"),
        ({"flows": [flow(to="mid")]}, "flows[0].to: 'mid' is no host; expected one of cli, srv"),
        ({"probes": [probe(to="mid")]}, "probes[0].to: 'mid' is no host"),
        ({"captures": ["mid>nix"]}, "captures[0]: 'mid>nix' is no interface; expected one of cli>mid, mid>cli"),
        ({"changes": [action(kind="link", rate_bps=1)]}, "changes[0].action.rate_bps: a veth cannot change it"),
        ({"changes": [action(kind="qdisc-change", side="egress", handle="", qdisc="pie")]},
         "changes[0].action.side: there is no egress queue at mid>srv"),
        ({"interfaces": egress(HTB), "changes": [action(kind="class-change", side="egress", id="2", **{"class": "x"})]},
         "changes[0].action.id: there is no class '2'; there is: 1"),
        ({"interfaces": egress(HTB),
          "changes": [action(kind="qdisc-change", side="egress", handle="9", qdisc="pie")]},
         "changes[0].action.handle: there is no qdisc at '9'; expected one of '', '1'"),
        ({"interfaces": egress(HTB),
          "changes": [action(kind="qdisc-replace", side="egress", handle="", qdisc={"qdisc": "cake"})]},
         "the new tree has its queues elsewhere"),
        ({"interfaces": egress(HTB, mangle=[{"match": {"flow": "b"}, "set_dscp": 1}])},
         "interfaces[0].mangle[0].match.flow: 'b' is no flow or probe outside tunnels; expected one of a"),
        ({"interfaces": egress(HTB, mangle=[{"match": {}, "clear_syn_ecn": True}])},
         "interfaces[0].mangle[0].clear_syn_ecn: expected 'syn: true'"),
        ({"interfaces": egress(HTB, mangle=[{"match": {"proto": "udp", "syn": True}, "set_dscp": 1}])},
         "interfaces[0].mangle[0].match.syn: only TCP packets have this flag"),
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
                nodes=[{"name": name, "kind": "bridge", "hz": 1, "offloads": False} for name in names],
                links=[{"ends": [one, other]} for one, other in zip(names, "bca", strict=True)],
            )
        )


def test_a_sysctl_of_the_whole_machine_is_refused():
    nodes = json.loads(network().to_json())["nodes"]
    nodes[0]["sysctls"] = {"kernel.hostname": "x"}
    with pytest.raises(RefusedError, match=r"nodes\[0\].sysctls: 'kernel.hostname': only those of the network"):
        plan(network(nodes=nodes))


def test_a_links_delay_is_a_netem_where_it_arrives():
    links = [{"ends": ["cli", "mid"], "delay_s": 0.01, "loss": 0.005}, {"ends": ["mid", "srv"]}]
    made = plan(network(links=links))
    assert lines(made.setup, "netem") == [
        "cli: tc qdisc add dev ifb.mid root handle 100: netem delay 10ms loss 0.5% limit 1000000",
        "mid: tc qdisc add dev ifb.cli root handle 100: netem delay 10ms loss 0.5% limit 1000000",
    ]
    with pytest.raises(RefusedError, match=r"links\[0\]: has a delay or loss, and mid<cli an ingress queue"):
        plan(network(links=links, interfaces=[{"node": "mid", "peer": "cli", "ingress": NETEM}]))


# What tc shows

SHOWN = """\
qdisc htb 1: root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 ver 3.17 direct_qlen 1000
 Sent 1125509260 bytes 746770 pkt (dropped 2, overlimits 746762 requeues 0)
 backlog 3028b 2p requeues 0
qdisc fq_codel 2: dev mid.srv parent 1:1 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms ecn
 Sent 1125506232 bytes 746768 pkt (dropped 7, overlimits 0 requeues 0)
 backlog 3028b 2p requeues 0
  maxpacket 1514 drop_overlimit 3 new_flow_count 9 ecn_mark 428
  new_flows_len 0 old_flows_len 1
qdisc pie 3: parent 1:2 limit 1000p target 15ms tupdate 16ms alpha 2 beta 20 ecn
 Sent 10 bytes 1 pkt (dropped 5, overlimits 9 requeues 0)
 backlog 0b 0p requeues 0
  prob 0.000000 delay 0us avg_dq_rate 0
  pkts_in 1 overlimit 1 dropped 4 maxq 1 ecn_mark 6
"""


def test_statistics_are_read_back():
    root, codel, pie = tc_show.qdiscs(SHOWN)
    assert (root.kind, root.at, root.queued) == ("htb", "root", 2)
    assert (codel.at, codel.sent_bytes, codel.sent_packets, codel.marks()) == ("parent 1:1", 1125506232, 746768, 428)
    assert codel.words.startswith("fq_codel limit 10240p flows 1024")
    # 7 dropped, of which 3 for want of room
    assert codel.drops() == {"overlimit": 3, "aqm": 4, "overload": 0, "loss": 0}
    assert pie.drops() == {"overlimit": 1, "aqm": 4, "overload": 0, "loss": 0}
    assert root.drops()["overlimit"] == 2


def test_a_log_is_split_by_command():
    log = "+ mid: /usr/sbin/tc qdisc show dev a\none\n+ mid: /bin/tcpdump -w x &\n+ cli: sleep 3\n"
    assert tc_show.sections(log) == {"mid: tc qdisc show dev a": "one\n", "mid: tcpdump -w x": "", "cli: sleep 3": ""}


@pytest.mark.parametrize(
    ("shown", "asked", "wrong"),
    [
        # One packet and what a nanosecond brings, 0 bytes.
        ("rate 50Mbit ceil 50Mbit linklayer ethernet burst 1600b/1mpu 0b", "rate 50mbit", False),
        ("rate 50Mbit ceil 50Mbit burst 1599b cburst 1599b", "rate 50mbit", False),
        # 1600 B and 6250 B in a millisecond.
        ("rate 50Mbit ceil 50Mbit burst 7850b cburst 7850b", "rate 50mbit", True),
        ("rate 50Mbit ceil 50Mbit burst 15Kb cburst 15Kb", "rate 50mbit burst 15k", False),
        # 64 ns at 2 GB/s are 128 B.
        ("rate 16Gbit ceil 16Gbit linklayer ethernet burst 1664b/1mpu", "rate 2gbps ceil 2gbps", False),
        # 1602 B take 0.8 us: none in a tc that counts whole ones.
        ("rate 16Gbit ceil 16Gbit linklayer ethernet burst 0b/1mpu", "rate 2gbps ceil 2gbps", False),
        ("rate 10Mbit ceil 10Mbit burst 2850b cburst 2850b", "rate 10mbit", True),
        # At 50 Mbit/s those 64 ns are not a byte.
        ("rate 50Mbit ceil 50Mbit burst 1604b cburst 1604b", "rate 50mbit", True),
    ],
)
def test_a_burst_for_a_coarse_clock_is_found(shown, asked, wrong):
    text = f"class htb 1:1 root leaf 2: prio 0 quantum 200000 {shown}\nclass fq_codel 2:1 parent 2: \n"
    assert bool(tc_show.coarse_bursts({"1:1": asked}, text)) is wrong
    assert tc_show.coarse_bursts({}, text) == []


def test_a_run_with_a_coarse_clock_fails():
    made = plan(network(interfaces=egress(HTB)))
    show = "+ mid: tc -d class show dev mid.srv\n"
    fine = f"{show}class htb 1:1 root leaf 2: prio 0 rate 20Mbit ceil 20Mbit burst 1600b cburst 1600b\n"
    convert.check_bursts(made, fine)
    # 20 Mbit/s × 1 ms = 2500 B
    with pytest.raises(RuntimeError, match=r"mid: mid.srv: class 1:1: burst 4100b instead of 1600b at rate 20Mbit"):
        convert.check_bursts(made, fine.replace("burst 1600b", "burst 4100b"))


# Conversion

SUMMARY = {
    "format": 1, "complete": True, "error": None, "duration_s": 2.0,
    "sources": {"a": {"cc": "cubic", "ecn": "accecn", "connected_s": 0.02, "mss": 1448, "sent_packets": 9,
                      "sent_bytes": 13032, "delivered": 8, "delivered_ce": 1, "retransmits": 2, "local_port": 4}},
    "sinks": {"a": {"received_bytes": 11584}},
    "probes": {"p": {"sent": 4, "received": 3, "ce_out": None, "ce_back": 0}},
    "queues": {"mid>srv": {"kind": "fq_codel", "marks": 430}},
}  # fmt: skip
ROWS = """\
time\tkind\tname\tmetric\tvalue
0.05\tflow\ta\tcwnd\t10
0.1\tflow\ta\tcwnd\t20
0.4\tprobe\tp\trtt\t0.9
1.2\tprobe\tp\trtt\t0.03
1.0\tprobe\tp\trtt\t0.02
1.5\tprobe\tp\tlost\t1
"""


def left_behind(folder: Path, summary: dict = SUMMARY) -> tuple[Run, Path]:
    run = network(interfaces=egress(HTB), probes=[probe(every_s=0.5)])
    tsv = folder / "agent.tsv"
    tsv.write_text(f"{ROWS}#{json.dumps(summary)}\n")
    show = (
        "+ mid: /x/tc -d class show dev mid.srv\nclass htb 1:1 root rate 20Mbit ceil 20Mbit burst 1600b cburst 1600b\n"
    )
    (folder / "setup.log").write_text(show)
    (folder / "teardown.log").write_text(f"+ mid: /x/tc -s -d qdisc show dev mid.srv\n{SHOWN}")
    return run, tsv


def test_what_the_agent_left_becomes_a_results_folder(tmp_path):
    run, tsv = left_behind(tmp_path)
    convert.convert(run, plan(run), tmp_path, tsv)
    series = read_series(tmp_path / "series.parquet")
    assert series.filter(pl.col("metric") == "cwnd")["value"].to_list() == [10, 20]
    # Answers overtook each other; in the results they stand in order of time.
    assert series.filter(pl.col("metric") == "rtt")["time"].to_list() == [0.4, 1.0, 1.2]
    counters = json.loads((tmp_path / "counters.json").read_text())
    assert counters["flows"]["a"] == {
        "cc": "cubic", "ecn": "accecn", "mss": 1448, "sent_packets": 9, "sent_bytes": 13032, "delivered": 8,
        "delivered_ce": 1, "retransmits": 2, "received_bytes": 11584, "rtt": {"n": 0},
    }  # fmt: skip
    queue = counters["queues"]["mid>srv"]
    assert (queue["sent"], queue["marks"], queue["drops"]["overlimit"]) == (746768, 430, 3)
    rtt = counters["probes"]["p"]["rtt"]
    # The window is 0.5 s to 2 s: 20 and 30 ms, not 900.
    assert (rtt["n"], rtt["min_s"], rtt["max_s"]) == (2, 0.02, 0.03)
    assert math.isclose(rtt["mean_s"], 0.025)
    assert math.isclose(rtt["p95_s"], 0.0295)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error": "tcp-source 'a': connect: refused"}, "agent: tcp-source 'a': connect: refused"),
        ({"complete": False}, "ended before the run was over"),
        ({"sources": {"a": {"connected_s": None}}}, "flow 'a' never connected"),
    ],
)
def test_a_run_that_did_not_end_is_no_result(tmp_path, change, message):
    run, tsv = left_behind(tmp_path, SUMMARY | change)
    with pytest.raises(RuntimeError, match=message):
        convert.convert(run, plan(run), tmp_path, tsv)
    assert not (tmp_path / "series.parquet").exists()


def test_an_agent_that_was_killed_leaves_no_last_line(tmp_path):
    (tmp_path / "agent.tsv").write_text(ROWS)
    with pytest.raises(RuntimeError, match="half-way: its output has no last line"):
        convert.last_line(tmp_path / "agent.tsv")
    with pytest.raises(RuntimeError, match="the agent wrote nothing"):
        convert.last_line(tmp_path / "nothing.tsv")


def test_captures_become_pcapng(tmp_path):
    packets = [(1_700_000_000, 999_999_999, b"abcde", 1500), (1_700_000_001, 5, b"", 60)]
    records = b"".join(struct.pack("<IIII", s, ns, len(data), size) + data for s, ns, data, size in packets)
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 1)
    (tmp_path / "a.pcap").write_bytes(head + records + b"cut off")
    assert pcapng.convert(tmp_path / "a.pcap", tmp_path / "a.pcapng", "mid>srv") == 2
    data = (tmp_path / "a.pcapng").read_bytes()
    blocks = []
    while data:
        kind, length = struct.unpack_from("<II", data)
        # Blocks are multiples of four bytes, and end in their length again.
        assert length % 4 == 0
        assert struct.unpack_from("<I", data, length - 4) == (length,)
        blocks.append((kind, data[8 : length - 4]))
        data = data[length:]
    assert [kind for kind, _ in blocks] == [0x0A0D0D0A, 1, 6, 6]
    # if_name, seven characters and a byte to fill up; if_tsresol 10^-9
    assert blocks[1][1] == struct.pack(
        "<HHI", 1, 0, 128
    ) + b"\x02\0\x07\0mid>srv\0" + b"\x09\0\x01\0\x09\0\0\0" + bytes(4)
    _, high, low, kept, size = struct.unpack_from("<IIIII", blocks[2][1])
    assert (high << 32 | low, kept, size) == (1_700_000_000_999_999_999, 5, 1500)
    assert blocks[2][1][20:] == b"abcde\0\0\0"
    (tmp_path / "a.pcap").write_bytes(b"text")
    with pytest.raises(RuntimeError, match="no capture with nanosecond stamps"):
        pcapng.convert(tmp_path / "a.pcap", tmp_path / "b.pcapng", "x")


# Engines


def test_an_engine_may_come_in_several_makes():
    assert engines.get("kernel:other") == virtual.VirtualTime("other")
    with pytest.raises(BakeoffError, match="engine 'sim' comes in one make only"):
        engines.get("sim:other")
    assert with_kernel("kernel", "linux-7.3.4") == "kernel:linux-7.3.4"
    assert with_kernel("kernel", "./linux") == f"kernel:{Path.cwd() / 'linux'}"
    assert with_kernel("sim", None) == "sim"
    with pytest.raises(BakeoffError, match="--kernel is for --engine kernel; --engine sim has no choice"):
        with_kernel("sim", "x")


def test_without_a_kernel_the_engine_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(BakeoffError, match="bakeoff kernel build --source DIR"):
        virtual.VirtualTime().check(network())
    with pytest.raises(BakeoffError, match="no kernel 'nix'"):
        virtual.VirtualTime("nix").check(network())


@pytest.mark.parametrize(
    ("told", "status", "message"),
    [
        (
            '{"status": "failed", "phase": "setup", "error": "mid: tc: exit code 2: Error"}',
            "ok",
            "setup: mid: tc: exit",
        ),
        (None, "ok", "the agent left no status"),
        (None, "panic", "kernel: panic: why"),
        ('{"status": "ok", "phase": null, "error": null}', "hang", "kernel: hang: why"),
    ],
)
def test_a_boot_that_did_not_end_well_fails_the_run(tmp_path, told, status, message):
    if told is not None:
        (tmp_path / "agent-status.json").write_text(told)
    with pytest.raises(RuntimeError, match=message):
        virtual._judge(tmp_path, status, "why")


def test_what_lies_below_the_guests_own_tmp_is_mounted_again(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "/tmp/cache")
    mounts = virtual._covered(["/usr/sbin/ip", "/tmp/cache/bakeoff/programs/bin/tc"])
    assert [mount["target"] for mount in mounts] == ["/tmp/cache/bakeoff", "/tmp/cache/bakeoff/programs/bin"]
    assert all(mount["target"] == mount["options"] for mount in mounts)
    assert virtual._covered(["/usr/sbin/ip"]) == []


def test_netns_names_a_missing_capability(monkeypatch):
    monkeypatch.setattr(netns, "missing_capabilities", lambda: ["CAP_NET_ADMIN", "CAP_SYS_ADMIN"])
    with pytest.raises(BakeoffError, match="engine netns: this process has no CAP_NET_ADMIN, CAP_SYS_ADMIN; run it as"):
        netns.check(network())


def test_netns_names_a_missing_module(monkeypatch):
    monkeypatch.setattr(netns, "missing_capabilities", list)
    monkeypatch.setattr(netns, "_tried", lambda argv: "Error: Specified qdisc kind is unknown." * ("netem" in argv))
    monkeypatch.setattr(programs, "need", Path)
    with pytest.raises(BakeoffError, match=r"has no netem: module sch_netem \(CONFIG_NET_SCH_NETEM\)"):
        netns.check(network(interfaces=[{"node": "mid", "peer": "cli", "ingress": NETEM}]))
    with pytest.raises(BakeoffError, match="flow 'a': cc 'nix' is not in this host's kernel; module tcp_nix"):
        netns.check(network(flows=[flow(cc="nix")]))


# The host's own kernel


@pytest.fixture
def host(alone):
    if lacking := netns.missing_capabilities():
        pytest.skip(f"no {', '.join(lacking)}: the host's namespaces cannot be used")
    try:
        agent.find()
    except BakeoffError as error:
        pytest.skip(str(error))
    for name in ("ip", "tc"):
        if programs.find(name) is None:
            pytest.skip(f"{name} is not installed")
    yield
    assert list(Path("/run/netns").glob("bakeoff-*")) == []


def on_host(run: Run) -> Run:
    try:
        netns.check(run)
    except BakeoffError as error:
        pytest.skip(str(error))
    return run


SHORT = {
    "qdisc": "htb default 1",
    "classes": [{"id": "1", "class": "rate 20mbit", "child": {"qdisc": "pfifo limit 50"}}],
}


def test_a_run_on_the_hosts_own_kernel(host, tmp_path):
    slower = action(kind="class-change", side="egress", id="1", **{"class": "rate 5mbit"})
    nodes = json.loads(network().to_json())["nodes"]
    nodes[0]["sysctls"] = {"net.ipv4.tcp_ecn": "0"}
    run = on_host(network(interfaces=egress(SHORT), nodes=nodes, changes=[slower], probes=[probe(every_s=0.1)]))
    [done] = campaign.run([run], tmp_path / "r", engine="netns", jobs=1).runs
    assert done.error is None
    result = results.read(done.path)
    received = result.series.filter((pl.col("metric") == "received") & (pl.col("kind") == "flow"))
    bits = 8 * float(received["value"].max())
    # At most 20 Mbit/s until the last sample, 1448 of 1514 bytes payload, and the burst of the queue; slower later. A busy
    # machine makes the change late, and carries less.
    assert 0 < bits < 20e6 * float(received["time"].max()) * 1448 / 1514 + 8 * 50 * 1448
    assert "rate 5Mbit" in (done.path / "teardown.log").read_text()
    assert result.counters["flows"]["a"]["ecn"] == "off"
    queue = result.counters["queues"]["mid>srv"]
    assert queue["sent_bytes"] * 8 > bits
    assert queue["qdisc"] == "pfifo limit 50p"
    assert result.counters["probes"]["p"]["sent"] == 10
    assert "ip netns del bakeoff-mid" in (done.path / "teardown.log").read_text()
    assert json.loads((done.path / "plan.json").read_text())["namespaces"] == [
        "bakeoff-cli",
        "bakeoff-mid",
        "bakeoff-srv",
    ]


def test_a_failed_setup_command_fails_the_run_and_cleans_up(host, tmp_path):
    run = on_host(network(interfaces=egress({"qdisc": "pfifo limit many"})))
    [done] = campaign.run([run], tmp_path / "r", engine="netns", jobs=1).runs
    assert done.status == "failed"
    assert "setup: mid: tc qdisc add dev mid.srv root handle 1: pfifo limit many: exit code" in done.error
    assert not (done.path / "series.parquet").exists()


def test_ctrl_c_leaves_no_namespace(host, tmp_path):
    run = on_host(network(interfaces=egress(SHORT), duration_s=60.0))

    def interrupt() -> None:
        while not list(tmp_path.rglob("agent.tsv")):
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        campaign.run([run], tmp_path / "r", engine="netns", jobs=1)
    thread.join()
    assert list(tmp_path.rglob("run.json")) == []


def by_tools(flows: str, probes: str, duration_s: float = 4.0) -> Run:
    one = {"name": "a", "from": "cli", "to": "srv", "cc": "reno", "start_s": 0.0, "stop_s": duration_s}
    return network(
        interfaces=egress(SHORT), duration_s=duration_s, window_s=[1.0, duration_s], flows=[one],
        probes=[probe(name="u", proto="udp", every_s=0.1, stop_s=duration_s)], tools={"flows": flows, "probes": probes},
    )  # fmt: skip


@pytest.mark.parametrize(("tool", "duration_s"), [("iperf3", 4.0), ("netperf", 4.0), ("flent", 12.0)])
def test_tools_of_others_make_the_traffic(host, tmp_path, tool, duration_s):
    run = on_host(by_tools(tool, "irtt", duration_s))
    [done] = campaign.run([run], tmp_path / "r", engine="netns", jobs=1).runs
    assert done.error is None
    result = results.read(done.path)
    of = dict(iter(result.series.group_by("kind", "name", "metric")))
    # 20 Mbit/s for the whole time, 1448 of 1514 bytes payload, and what the sender's buffer and the queue take up.
    bits = 8 * result.counters["flows"]["a"]["received_bytes"]
    assert 0 < bits < 20e6 * (duration_s + 2) + 8 * 4194304
    received = of["flow", "a", "received"]["value"]
    assert received.is_sorted()
    assert received.max() > 0
    assert (result.counters["flows"]["a"]["cc"], len(of["flow", "a", "goodput"])) == ("reno", len(received))
    asked = result.counters["probes"]["u"]
    assert asked["sent"] >= asked["received"] > 0
    assert of["probe", "u", "rtt"]["value"].min() > 0
    assert f"tools.flows: flows are made by {tool}" in result.meta["effective"]
    kept = {"iperf3": "a.iperf3.json", "netperf": "a.netperf.txt", "flent": "*.flent.gz"}[tool]
    assert list(done.path.glob(kept))
    assert (done.path / "u.irtt.json").is_file()


def test_parameters_of_a_congestion_control_are_refused_by_place():
    message = "flows[0].cc: 'prague@2020-08 rtt_target 25ms': only the engine sim gives a flow parameters of its own"
    with pytest.raises(RefusedError, match=re.escape(message)):
        plan(network(flows=[flow(cc="prague@2020-08 rtt_target 25ms")]))


def test_what_tools_cannot_make_is_refused_by_place():
    def refused(message: str, **changes: object) -> None:
        with pytest.raises(RefusedError, match=re.escape(message)):
            plan(network(**changes))

    short = flow(source={"kind": "periodic", "size": 100, "count": 1, "every_s": 0.1})
    refused("flows[0].source: 'periodic' over tcp: iperf3 does not", flows=[short], tools={"flows": "iperf3"})
    refused("flows[0]: netperf makes bulk TCP flows", flows=[short], tools={"flows": "netperf"})
    refused("duration_s: 2: flent measures 5 s before and after", tools={"flows": "flent"})
    refused("probes[0].proto: 'icmp': irtt sends UDP", probes=[probe()], tools={"probes": "irtt"})
    with pytest.raises(BakeoffError, match=r"tools\.flows: 'iperf3' is not run in virtual time"):
        virtual.VirtualTime().plan(by_tools("iperf3", "irtt"))


def test_a_missing_tool_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(netns, "missing_capabilities", list)
    find = programs.find
    monkeypatch.setattr(programs, "find", lambda name: None if name == "irtt" else find(name) or Path("/bin", name))
    with pytest.raises(BakeoffError, match="irtt is not installed; install: irtt"):
        netns.check(by_tools("iperf3", "irtt"))


# Real Linux in virtual time


def test_a_flow_that_nothing_slows_down_would_stop_time():
    message = "flows[0]: 'a' is bulk and nothing in the network has a rate or a delay"
    for tree in ({"qdisc": "fq_codel target 5ms"}, {"qdisc": "netem delay 0ms limit 9"}, {"qdisc": "netem rate 0"}):
        assert str(standstill(network(interfaces=egress(tree)))).startswith(message)
    for tree in (HTB, {"qdisc": "cake bandwidth 5mbit"}, {"qdisc": "fq", "child": {"qdisc": "netem delay 0.1ms"}}):
        assert standstill(network(interfaces=egress(tree))) is None
    assert standstill(network(flows=[flow(max_pacing_rate_bps=1000)])) is None
    assert standstill(network(flows=[flow(source={"kind": "bytes", "bytes": 9})])) is None


def delayed(delay: str, **changes: object) -> Run:
    queue = {"qdisc": f"netem delay {delay} limit 100000"}
    ends = [{"node": "mid", "peer": peer, "ingress": queue, "egress": HTB} for peer in ("cli", "srv")]
    usual = {"interfaces": ends, "duration_s": 4.0, "probes": [probe(every_s=0.1, stop_s=4.0)]}
    return network(**(usual | changes))


def in_virtual_time(kernel: str, run: Run, folder: Path) -> results.Result:
    [done] = campaign.run([run], folder, engine=kernel, jobs=1).runs
    assert done.error is None, f"{done.error}\n{(done.path / 'console.log').read_text()}"
    return results.read(done.path)


def test_a_run_in_virtual_time(kernel, tmp_path):
    run = delayed("10ms", flows=[flow(start_s=2.0, stop_s=4.0)])
    result = in_virtual_time(kernel, run, tmp_path / "r")
    pings = result.series.filter((pl.col("metric") == "rtt") & (pl.col("time") < 1.9))
    # 2 × 10 ms of netem, and at most 10 µs for everything else while the path is idle.
    assert pings.height == 19
    assert pings["value"].min() >= 0.02
    assert pings["value"].max() <= 0.02001
    received = result.series.filter((pl.col("metric") == "received") & (pl.col("time") < 4.01))["value"].max()
    # Less than 2 s of 20 Mbit/s, more than half of it: slow start takes 0.2 s.
    assert 0.5 < received * 8 / (2 * 20e6 * 1448 / 1514) < 1
    log = (result.path / "setup.log").read_text()
    assert "rate 20Mbit ceil 20Mbit linklayer ethernet burst 1600b" in log
    assert sorted(path.name for path in result.path.iterdir()) == [
        "console.log", "counters.json", "plan.json", "run.json", "series.parquet", "setup.log", "summary.json",
        "teardown.log",
    ]  # fmt: skip
    assert "kernel fingerprint" in result.meta["versions"]


def test_the_same_seed_gives_the_same_bytes(kernel, tmp_path):
    # Which packets are lost is drawn by the kernel.
    run = delayed("5ms loss 1%")
    again = [in_virtual_time(kernel, run, tmp_path / str(i)).meta["digest"] for i in (1, 2)]
    assert again[0] == again[1]
    other = in_virtual_time(kernel, run.model_copy(update={"seed": 2}), tmp_path / "3").meta["digest"]
    assert other != again[0]


def test_marks_are_rewritten_on_the_way(kernel, tmp_path):
    nodes = json.loads(network().to_json())["nodes"]
    for node in nodes[::2]:
        node["sysctls"] = {"net.ipv4.tcp_ecn": "3"}
    clear = {"match": {"proto": "tcp", "dscp": 4, "syn": True}, "clear_syn_ecn": True}
    bleach = {"match": {"proto": "tcp", "dscp": 5}, "set_dscp": 0, "set_ecn": "not-ect"}
    ends = [
        {"node": "mid", "peer": "cli", "mangle": [clear, bleach]},
        {"node": "mid", "peer": "srv", "egress": HTB},
    ]
    flows = [flow(name=name, dscp=dscp, stop_s=4.0) for name, dscp in (("on", 0), ("off", 4), ("bleached", 5))]
    run = network(nodes=nodes, interfaces=ends, flows=flows, duration_s=4.0, captures=["mid>srv"])
    result = in_virtual_time(kernel, run, tmp_path / "r")
    flows = result.counters["flows"]
    assert [flows[name]["ecn"] for name in ("on", "off", "bleached")] == ["accecn", "off", "accecn"]
    # What cannot be marked is dropped.
    assert flows["on"]["delivered_ce"] > 0
    assert flows["bleached"]["delivered_ce"] == 0
    assert flows["bleached"]["retransmits"] > 0
    assert (result.path / "mid-to-srv.pcapng").stat().st_size > 1000
    assert not list(result.path.glob("*.pcap"))


def test_an_unknown_qdisc_or_congestion_control_is_refused_by_name(kernel, tmp_path):
    for changes, message in (
        (
            {"interfaces": egress({"qdisc": "cnq_codel_af bandwidth 20mbit"})},
            "interfaces[0].egress.qdisc: 'cnq_codel_af'",
        ),
        ({"interfaces": egress(HTB), "flows": [flow(cc="nix@1")]}, "flows[0].cc: 'nix' is not in kernel"),
    ):
        with pytest.raises(BakeoffError) as refused:
            campaign.run([network(**changes)], tmp_path / "r", engine=kernel, jobs=1)
        assert message in str(refused.value)
    assert not (tmp_path / "r").exists()


def test_words_that_tc_does_not_know_fail_the_run(kernel, tmp_path):
    run = network(interfaces=egress(HTB | {"qdisc": "htb defalt 1"}))
    [done] = campaign.run([run], tmp_path / "r", engine=kernel, jobs=1).runs
    assert done.status == "failed"
    assert "htb defalt 1: exit code" in done.error
    assert done.error.startswith("setup: mid: ")


def test_an_agent_that_is_lost_fails_the_run(kernel, tmp_path, monkeypatch):
    lost = tmp_path / "agent"
    lost.write_text("#!/bin/sh\nexit 3\n")
    lost.chmod(0o755)
    monkeypatch.setenv("BAKEOFF_AGENT", str(lost))
    [done] = campaign.run([network(interfaces=egress(HTB))], tmp_path / "r", engine=kernel, jobs=1).runs
    assert done.status == "failed"
    assert "kernel: init-ended: PID 1 (the agent) ended with exit code 3" in done.error
    assert (done.path / "console.log").exists()


def test_notes_of_what_differs_stand_in_run_json(kernel, tmp_path):
    nodes = [node | {"hz": 250} for node in json.loads(network().to_json())["nodes"]]
    run = network(nodes=nodes, interfaces=egress(HTB), flows=[flow(cc="cubic@7.3")])
    result = in_virtual_time(kernel, run, tmp_path / "r")
    assert result.meta["effective"] == [
        "flows[0].cc: 'cubic@7.3' asked for: the kernel's own 'cubic' is in effect",
        "nodes[].hz: 250 asked for: the kernel's HZ is 1000",
    ]


def test_the_plan_is_what_dry_run_shows(kernel):
    text = engines.get(kernel).check(network(interfaces=egress(HTB)))
    assert "mid: tc class add dev mid.srv parent 1: classid 1:1 htb rate 20mbit" in text.splitlines()
    assert text == replace(plan(network(interfaces=egress(HTB))), notes=()).text()
