"""Plans of the lab: set-up, rewriting, timed changes and teardown as plain commands; no privileges are needed."""
# A command stands on one line, as it does in the logs.
# ruff: noqa: E501

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise

import pytest
from inline_snapshot import snapshot

from bakeoff.engines.lab import plan
from bakeoff.engines.lab.tree import Tree
from bakeoff.errors import RefusedError
from bakeoff.scenario import Run, catalog
from bakeoff.scenario.run import Class, Match, Qdisc
from lab_runs import HTB, egress, flow, lines, network, probe

PRAGUE_BLEACHED = "ns-prague-vs-cubic-noecn-fq_codel(1q)-50Mbit-20ms"
UNLIKE_RTTS = "ns-cubic-vs-cubic-dualpi2-50Mbit-20ms-10ms"


def published(pattern: str) -> Run:
    [run] = catalog.select([f"l4s-tests/{pattern}"])
    return run


# Plans


def test_the_plan_of_a_bleached_flow_in_a_shared_queue():
    made = plan(published(f"s6-rfc3168/{PRAGUE_BLEACHED}"))
    assert made.notes == (
        "flows[0].cc: 'prague@2020-08' asked for: the kernel's own 'prague' is in effect",
        "flows[1].cc: 'cubic@5.4' asked for: the kernel's own 'cubic' is in effect",
    )
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
            "cli: ip link add name cli.mid netns cli mtu 1500 address 02:00:0a:09:00:01 type veth peer name "
            "mid.cli netns mid mtu 1500",
            "mid: ip link add name mid.srv netns mid mtu 1500 type veth peer name srv.mid netns srv mtu 1500 "
            "address 02:00:0a:09:00:02",
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
            "mid: tc filter add dev mid.cli parent ffff: protocol ip prio 1 u32 match ip protocol 6 0xff "
            "match ip dsfield 0x8c 0xfc action pedit munge ip dsfield set 0x00 retain 0xff pipe action csum "
            "ip4h continue",
            "mid: tc filter add dev mid.cli parent ffff: protocol all prio 2 u32 match u32 0 0 action mirred "
            "egress redirect dev ifb.cli",
            "mid: ip link set dev mid.srv txqueuelen 1000",
            "mid: tc qdisc add dev mid.srv root handle 1: htb default 1",
            "mid: tc class add dev mid.srv parent 1: classid 1:1 htb rate 50mbit ceil 50mbit",
            "mid: tc qdisc add dev mid.srv parent 1:1 handle 2: fq_codel flows 1",
            "mid: ip link add ifb.srv type ifb",
            "mid: ip link set dev ifb.srv txqueuelen 1000",
            "mid: tc qdisc add dev ifb.srv root handle 100: netem delay 10ms limit 1000000",
            "mid: ip link set dev ifb.srv up",
            "mid: tc qdisc add dev mid.srv handle ffff: ingress",
            "mid: tc filter add dev mid.srv parent ffff: protocol all prio 1 u32 match u32 0 0 action mirred "
            "egress redirect dev ifb.srv",
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
    assert [json.dumps(role) for role in made.roles] == snapshot(
        [
            '{"role": "tcp-sink", "name": "prague", "node": "srv", "netns": "srv", "port": 5201, "dscp": 19, "cc": "prague"}',
            '{"role": "tcp-sink", "name": "cubic", "node": "srv", "netns": "srv", "port": 5202, "dscp": 35, "cc": "cubic"}',
            '{"role": "tcp-source", "cc": "prague", "max_pacing_rate_bps": null, "name": "prague", "node": "cli", "netns": "cli", "to": "10.9.0.2:5201", "dscp": 19, "start_s": 5.004373, "stop_s": 65.0, "source": {"kind": "bulk"}, "local_port": 53572}',
            '{"role": "tcp-source", "cc": "cubic", "max_pacing_rate_bps": null, "name": "cubic", "node": "cli", "netns": "cli", "to": "10.9.0.2:5202", "dscp": 35, "start_s": 5.001669, "stop_s": 65.0, "source": {"kind": "bulk"}, "local_port": 51319}',
            '{"role": "icmp-probe", "name": "ping", "node": "cli", "netns": "cli", "to": "10.9.0.2", "every_s": 0.05, "size": 84, "dscp": 0, "ecn": "not-ect", "start_s": 0.0, "stop_s": 70.0}',
        ]
    )
    assert [(q.name, q.netns, q.dev, q.at, q.qdisc, q.sampled) for q in made.queues] == snapshot(
        [
            ("mid>cli", "mid", "mid.cli", "parent 1:1", "fq_codel flows 1", True),
            ("mid<cli", "mid", "ifb.cli", "root", "netem delay 10ms limit 1000000", False),
            ("mid>srv", "mid", "mid.srv", "parent 1:1", "fq_codel flows 1", True),
            ("mid<srv", "mid", "ifb.srv", "root", "netem delay 10ms limit 1000000", False),
        ]
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
            "cli: sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_ecn net.ipv4.tcp_ecn_option",
            "cli: ip tcp_metrics show",
            "srv: sysctl net.ipv4.tcp_rmem net.ipv4.tcp_wmem net.ipv4.tcp_ecn net.ipv4.tcp_ecn_option",
            "srv: ip tcp_metrics show",
            "cli: ip -s link show",
            "cli: cat /proc/net/netstat /proc/net/snmp",
            "mid: ip -s link show",
            "srv: ip -s link show",
            "srv: cat /proc/net/netstat /proc/net/snmp",
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
        (
            "flows[0].cc: 'cubic@5.4' asked for: the kernel's own 'cubic' is in effect",
            "flows[1].cc: 'cubic@5.4' asked for: the kernel's own 'cubic' is in effect",
            "interfaces[0].egress.classes[0].child: 'dualpi2@2020' asked for: the kernel's own 'dualpi2' is in effect",
        )
    )


@pytest.fixture
def many_runs(every_run) -> list[Run]:
    long = [{"name": f"a-node-with-a-long-name-{i}", "kind": kind, "hz": 1000, "offloads": False, "sysctls": {}}
            for i, kind in enumerate(("host", "router", "bridge", "host"))]  # fmt: skip
    names = [node["name"] for node in long]
    odd = network(
        nodes=long,
        links=[{"ends": pair} for pair in pairwise(names)],
        interfaces=[{"node": names[1], "peer": names[2], "egress": HTB, "ingress": {"qdisc": "netem delay 1ms"}}],
        flows=[flow(cc="reno", **{"from": names[0], "to": names[3]})],
        probes=[probe(proto="udp", every_s=0.1, stop_s=2.0, **{"from": names[0], "to": names[3]})],
    )  # fmt: skip
    return [*of_each_label(every_run), odd]


def of_each_label(runs: Iterable[Run]) -> Iterator[Run]:
    """Of every scenario enough runs that each label of each of its axes is among them."""
    seen: set[tuple[str, ...]] = set()
    for run in runs:
        labels = {(run.suite, run.scenario, *pair) for pair in [(), *run.point.items()]}
        if not labels <= seen:
            seen |= labels
            yield run


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


def test_classes_stand_below_a_band_too():
    tree = Tree("eth0", 1, {}, 1000)
    below = Qdisc(qdisc="htb default 20", classes=[Class(id="20", class_="rate 2mbit", filters=[Match(dscp=46)])])
    classes = [Class(id="1", child=Qdisc(qdisc="codel")), Class(id="2", child=below)]
    commands = [" ".join(words) for words in tree.install(Qdisc(qdisc="prio bands 2", classes=classes), "egress")]
    assert commands == [
        "tc qdisc add dev eth0 root handle 1: prio bands 2",
        "tc qdisc add dev eth0 parent 1:1 handle 2: codel",
        "tc qdisc add dev eth0 parent 1:2 handle 3: htb default 20",
        "tc class add dev eth0 parent 3: classid 3:20 htb rate 2mbit",
        "tc qdisc add dev eth0 parent 3:20 handle 4: pfifo limit 1000",
        "tc filter add dev eth0 parent 3: protocol ip prio 1 u32 match ip dsfield 0xb8 0xfc flowid 3:20",
    ]
    assert [(leaf.path, leaf.at) for leaf in tree.leaves] == [("1", "parent 1:1"), ("2/20", "parent 3:20")]
    # A change of a class is one of the root's.
    with pytest.raises(RefusedError, match="unknown class '20'"):
        tree.change_class("20", "rate 5mbit", "changes[0]")


def test_every_plan_is_plain_words_short_names_and_undone(many_runs):
    assert len(many_runs) > 300
    refused, planned = {}, set()
    for run in many_runs:
        try:
            made = plan(run, prefix="bakeoff-")
        except RefusedError as error:
            refused.setdefault(run.scenario, []).append(str(error))
            continue
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
        # Made again it is the same: seen at one run of each scenario.
        if run.scenario not in planned:
            planned.add(run.scenario)
            assert plan(run, prefix="bakeoff-") == made
    own_parameters = "parameters per flow need --engine sim, a kernel module has one set in /sys/module"
    reasons = {
        "prague-pairs": own_parameters,
        "prague-one-queue": own_parameters,
        "sce-s4-gaming": own_parameters,
        "rtt-independence": own_parameters,
        "alpha": own_parameters,
        "detection": own_parameters,
        "jitter": own_parameters,
        "one-flow": own_parameters,
        "paths": own_parameters,
        "10ms": own_parameters,
        "2ms": own_parameters,
        "extend": own_parameters,
        "reproduce": own_parameters,
        # media and rates of links that only the simulator has
        "bursty-link": "not supported on a veth",
        "multipath": "not supported on a veth",
        "wifi-sender": "not supported on a veth",
    }
    assert refused.keys() == reasons.keys()
    assert all(reasons[scenario] in message for scenario, messages in refused.items() for message in messages)


def test_nothing_of_a_scenario_reaches_a_shell():
    evil = "; rm -rf $HOME 'x"
    made = plan(network(interfaces=egress({"qdisc": f"pfifo {evil}"})))
    [line] = [command for command in made.setup if command.argv[:3] == ("tc", "qdisc", "add") and command.node == "mid"]
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
    def port(seed: int, name: str) -> int:
        [found] = [role["local_port"] for role in plan(network(seed=seed, flows=[flow(name=name)])).roles
                   if "local_port" in role]  # fmt: skip
        return found

    ports = [port(seed, name) for seed in (1, 2) for name in ("a", "b")]
    assert ports == [port(seed, name) for seed in (1, 2) for name in ("a", "b")]
    assert len(set(ports)) == 4
    assert all(32768 <= port < 61000 for port in ports)


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


def replacing(*trees: dict, handle: str = "") -> list[dict]:
    return [{"kind": "qdisc-replace", "side": "egress", "handle": handle, "qdisc": tree} for tree in trees]


def test_a_queue_that_moves_keeps_its_handle():
    """A root that becomes a class's queue, and a root again: 1: all the time, and what is above it counts on from 2:."""
    cake, prio = {"qdisc": "cake"}, {"qdisc": "prio bands 2", "classes": [{"id": "1", "child": {"qdisc": "codel"}}]}
    moves = replacing(HTB, cake, prio)
    slower = {"kind": "class-change", "side": "egress", "id": "1", "class": "rate 5mbit"}
    moves.insert(1, slower)
    changes = [{"at_s": 0.5 * i, "node": "mid", "peer": "srv", "action": action} for i, action in enumerate(moves)]
    made = plan(network(interfaces=egress(cake), changes=changes))
    assert lines(made.changes) == snapshot(
        [
            "mid: tc qdisc del dev mid.srv root",
            "mid: tc qdisc add dev mid.srv root handle 2: htb default 1",
            "mid: tc class add dev mid.srv parent 2: classid 2:1 htb rate 20mbit",
            "mid: tc qdisc add dev mid.srv parent 2:1 handle 1: fq_codel",
            "mid: tc class change dev mid.srv parent 2: classid 2:1 htb rate 5mbit",
            "mid: tc qdisc del dev mid.srv root",
            "mid: tc qdisc add dev mid.srv root handle 1: cake",
            "mid: tc qdisc del dev mid.srv root",
            "mid: tc qdisc add dev mid.srv root handle 3: prio bands 2",
            "mid: tc qdisc add dev mid.srv parent 3:1 handle 1: codel",
        ]
    )
    [queue] = made.queues
    assert (queue.name, queue.at, queue.qdisc) == ("mid>srv", "handle 1:", "cake")


def test_a_root_with_its_queues_where_they_were_keeps_all_handles():
    made = changed(*replacing({**HTB, "qdisc": "htb default 1 r2q 20"}))
    assert [line for line in made if "fq_codel" in line] == [
        "mid: tc qdisc add dev mid.srv parent 1:1 handle 2: fq_codel"
    ]


def test_a_queue_that_cannot_be_followed_is_refused():
    cake, codel = {"qdisc": "cake"}, {"qdisc": "codel"}
    two = {"qdisc": "prio bands 2", "classes": [{"id": "1", "child": codel}, {"id": "2", "child": codel}]}
    with pytest.raises(RefusedError, match=r"changes\[0\]\.action\.qdisc: the new tree has 2 queues instead of 1"):
        changed(*replacing(two))
    with pytest.raises(RefusedError, match=r"changes\[0\]\.action\.qdisc: the new tree has 1 queues instead of 2"):
        changed(*replacing(cake), tree=two)
    # 2: became 3: in place, so that neither names the queue from start to end.
    with pytest.raises(RefusedError, match=r"changes\[1\]\.action\.qdisc: .* an earlier change replaced"):
        changed(*replacing(codel, handle="1"), *replacing(cake))
    with pytest.raises(RefusedError, match=r"changes\[2\]\.action\.qdisc: .* an earlier change replaced"):
        changed(*replacing(codel, handle="1"), *replacing(HTB, cake))
    with pytest.raises(RefusedError, match=r"changes\[1\]\.action\.handle: '1': an earlier change moved this queue"):
        changed(*replacing(HTB), *replacing(codel, handle="1"), tree=cake)


def test_a_host_gets_neighbours_and_routes_back_with_its_link():
    change = {"at_s": 1.0, "node": "cli", "peer": "mid", "action": {"kind": "link", "up": True}}
    assert lines(plan(network(changes=[change])).changes) == [
        "cli: ip link set dev cli.mid up",
        "cli: ip neigh replace 10.9.0.2 lladdr 02:00:0a:09:00:02 dev cli.mid nud permanent",
    ]
