"""Scenarios resolved: network, rewriting, sources, timed changes, window."""

import hashlib
import math
import pickle
from statistics import NormalDist

import pytest

from bakeoff.cli.warn import warnings
from bakeoff.scenario import catalog
from bakeoff.scenario.error import DocumentError
from bakeoff.scenario.language import Measure, SteadyState
from bakeoff.scenario.resolve import window
from scenario_texts import FLOW, HEAD, interface, one, runs, write

# The network


def test_the_plain_dumbbell(tmp_path):
    run = one(tmp_path, HEAD + FLOW)
    assert [(node.name, node.kind) for node in run.nodes] == [("cli", "host"), ("mid", "bridge"), ("srv", "host")]
    for peer in ("cli", "srv"):
        end = interface(run, "mid", peer)
        assert end.ingress.qdisc == "netem delay 10ms limit 1000000"
        assert end.egress.qdisc == "htb default 1"
        assert [(c.id, c.class_, c.child.qdisc) for c in end.egress.classes] == [
            ("1", "rate 50mbit ceil 50mbit", "fq_codel")
        ]
    assert run.window_s == (20.0, 60.0)
    assert (run.flows[0].from_, run.flows[0].to) == ("cli", "srv")


def test_shape_in_tc_words_is_the_same_as_rate(tmp_path):
    plain = one(tmp_path, HEAD + FLOW)
    shaped = one(tmp_path, HEAD.replace("rate: 50mbit, qdisc", "shape: htb rate 50mbit, qdisc") + FLOW)
    assert shaped == plain


@pytest.mark.parametrize(
    ("qdisc", "root"),
    [
        ("cake flows", "cake bandwidth 50mbit flows"),
        ("cnq_codel_af", "cnq_codel_af bandwidth 50mbit"),
        ("cake bandwidth 1mbit", "cake bandwidth 50mbit"),
    ],
)
def test_a_qdisc_that_shapes_is_the_root(tmp_path, qdisc, root):
    run = one(tmp_path, HEAD.replace("fq_codel", qdisc) + FLOW)
    assert interface(run, "mid", "cli").egress.model_dump() == {"qdisc": root}


def test_a_chain_of_middleboxes(tmp_path):
    # suite A, scenario 5: three bottlenecks, delay at the second
    run = one(
        tmp_path,
        """
        duration: 60s
        network:
          path: [c2, m1, m2, m4, s2]
          nodes: {m1: router, m2: router, m4: router}
          rtt: 80ms
          delay: {at: m2}
          bottleneck:
            - {at: m1, shape: htb rate 100mbit, qdisc: dualpi2}
            - {at: m2, shape: htb rate 50mbit, qdisc: pfifo_fast}
            - {at: m4, shape: htb rate 47.5mbit, qdisc: fq_codel}
        flows: [{name: a}]
        """,
    )
    rates = {(i.node, i.peer): i.egress.classes[0].class_.split()[1] for i in run.interfaces}
    assert rates == {
        ("m1", "m2"): "100mbit", ("m1", "c2"): "100mbit",
        ("m2", "m4"): "50mbit", ("m2", "m1"): "50mbit",
        ("m4", "s2"): "47.5mbit", ("m4", "m2"): "47.5mbit",
    }  # fmt: skip
    delayed = {(i.node, i.peer): i.ingress.qdisc for i in run.interfaces if i.ingress}
    assert delayed == dict.fromkeys([("m2", "m1"), ("m2", "m4")], "netem delay 40ms limit 1000000")


def test_unlike_directions(tmp_path):
    # suite B, scenario 4: up 1, down 10 Mbit/s with unlike limits, traffic both ways
    run = one(
        tmp_path,
        """
        duration: 60s
        network:
          path: [cli, mid, srv]
          rtt: 20ms
          bottleneck:
            up: {rate: 1mbit, qdisc: pfifo limit 20}
            down: {rate: 10mbit, qdisc: pfifo limit 200}
        flows: [{name: up, count: 4}, {name: "down{n}", count: 4, direction: down, cc: [reno, cubic]}]
        """,
    )
    up, down = (interface(run, "mid", peer).egress.classes[0] for peer in ("srv", "cli"))
    assert (up.class_, up.child.qdisc) == ("rate 1mbit ceil 1mbit", "pfifo limit 20")
    assert (down.class_, down.child.qdisc) == ("rate 10mbit ceil 10mbit", "pfifo limit 200")
    assert [(f.name, f.from_, f.cc) for f in run.flows[3:6]] == [
        ("up-4", "cli", "cubic"),
        ("down1", "srv", "reno"),
        ("down2", "srv", "cubic"),
    ]


def test_one_direction_and_asymmetric_delay(tmp_path):
    # suite F: the bottleneck stands in one direction, netem at one side
    run = one(
        tmp_path,
        """
        duration: 60s
        network:
          path: [left, mid, right]
          delay: {up: 30ms, down: 10ms}
          bottleneck: {direction: up, rate: 100mbit, qdisc: deltic_polya}
          interfaces:
            - {node: left, peer: mid, egress: fq}
        flows: [{name: a}]
        """,
    )
    assert {(i.node, i.peer) for i in run.interfaces if i.egress} == {("mid", "right"), ("left", "mid")}
    assert interface(run, "mid", "left").ingress.qdisc == "netem delay 30ms limit 1000000"
    assert interface(run, "mid", "right").ingress.qdisc == "netem delay 10ms limit 1000000"


def test_netem_extras(tmp_path):
    delay = (
        "delay: {jitter: 1ms 10%, extra: loss 1%, limit: 100000, child: netem delay 200us slot 800us 5ms packets 16}"
    )
    run = one(tmp_path, HEAD.replace("rtt: 20ms", f"rtt: 15ms, {delay}") + FLOW)
    ingress = interface(run, "mid", "cli").ingress
    assert ingress.qdisc == "netem delay 7500us 1ms 10% limit 100000 loss 1%"
    assert ingress.child.qdisc == "netem delay 200us slot 800us 5ms packets 16"


def test_per_flow_delays_are_classes_by_dscp(tmp_path):
    flows = "flows: [{name: a, rtt: 20ms, dscp: 0x13}, {name: b, rtt: 160ms, dscp: 0x23}]"
    run = one(tmp_path, HEAD.replace(" rtt: 20ms,", " delay: {limit: 10000},") + flows)
    for peer in ("cli", "srv"):
        ingress = interface(run, "mid", peer).ingress
        assert ingress.qdisc == "htb default 10"
        assert [(c.id, c.filters[0].dscp, c.child.qdisc) for c in ingress.classes] == [
            ("10", 19, "netem delay 10ms limit 10000"),
            ("11", 35, "netem delay 80ms limit 10000"),
        ]
        assert {c.class_ for c in ingress.classes} == {"rate 2gbps ceil 2gbps"}


def test_the_path_rtt_is_for_what_no_class_takes(tmp_path):
    run = one(tmp_path, HEAD + "flows: [{name: a, rtt: 160ms, dscp: 4}, {name: b}]")
    ingress = interface(run, "mid", "cli").ingress
    assert ingress.qdisc == "htb default 1"
    assert {c.id: (c.filters, c.child.qdisc) for c in ingress.classes}["1"] == ([], "netem delay 10ms limit 1000000")


@pytest.mark.parametrize(
    ("ecn", "rules"),
    [
        ("on", []),
        ("bleached", [{"match": {"proto": "tcp", "dscp": 35}, "set_dscp": 0, "set_ecn": "not-ect"}]),
        ("ect1", [{"match": {"proto": "tcp", "dscp": 35, "syn": False}, "set_dscp": 0, "set_ecn": "ect1"}]),
        ("not-negotiated", [{"match": {"proto": "tcp", "dscp": 35, "syn": True}, "clear_syn_ecn": True}]),
        (
            "not-negotiated-ect1",
            [
                {"match": {"proto": "tcp", "dscp": 35, "syn": True}, "clear_syn_ecn": True},
                {"match": {"proto": "tcp", "dscp": 35}, "set_dscp": 0, "set_ecn": "ect1"},
            ],
        ),
    ],
)
def test_ecn_of_a_flow_at_the_middlebox(tmp_path, ecn, rules):
    run = one(tmp_path, HEAD + f"flows: [{{name: a}}, {{name: b, dscp: 0x23, ecn: {ecn}}}]")
    assert [rule.model_dump() for rule in interface(run, "mid", "cli").mangle] == rules
    assert interface(run, "mid", "srv").mangle == []


def test_reverse_flows_are_rewritten_where_they_arrive(tmp_path):
    run = one(tmp_path, HEAD + "flows: [{name: b, dscp: 0x23, ecn: bleached, direction: down}]")
    assert len(interface(run, "mid", "srv").mangle) == 1
    assert interface(run, "mid", "cli").mangle == []


@pytest.mark.parametrize(
    ("rule", "match", "actions"),
    [
        ("set_tos, tos: 0x01", {"proto": "tcp", "syn": False}, {"set_dscp": 0, "set_ecn": "ect1"}),
        (
            "dscp_to_tos, dscp: 1, tos: 0x01",
            {"proto": "tcp", "dscp": 1, "syn": False},
            {"set_dscp": 0, "set_ecn": "ect1"},
        ),
        ("set_tos, tos: 0x4e", {"proto": "tcp", "syn": False}, {"set_dscp": 19, "set_ecn": "ect0"}),
        ("bleach_ce", {"ecn": "ce"}, {"set_ecn": "not-ect"}),
        ("ect1_to_ect0", {"ecn": "ect1"}, {"set_ecn": "ect0"}),
        ("ect0_to_ect1", {"ecn": "ect0"}, {"set_ecn": "ect1"}),
    ],
)
def test_rewriting_verbs(tmp_path, rule, match, actions):
    run = one(tmp_path, HEAD.replace("rtt:", f"mangle: [{{at: mid, from: cli, rule: {rule}}}], rtt:") + FLOW)
    (made,) = interface(run, "mid", "cli").mangle
    assert made.match.model_dump() == match
    assert {k: v for k, v in made.model_dump().items() if k in ("set_dscp", "set_ecn")} == actions


def test_the_graph_form(tmp_path):
    # suite F: two leaves behind a fork, the whole RTT on the limbs
    run = one(
        tmp_path,
        """
        duration: 300s
        hosts: {sysctl: {net.ipv4.tcp_ecn: 1}, offloads: true}
        network:
          nodes:
            leaf1: {kind: host, sysctl: {net.ipv4.tcp_ecn: 0}, hz: 1000, offloads: false}
            leaf2: host
            fork: router
            trunk: host
          links:
            - {ends: [leaf1, fork], delay: 5ms, rate: 1gbit, loss: 1%}
            - {ends: [leaf2, fork]}
            - {ends: [fork, trunk], mtu: 9000, rate: 1gbit, wifi: {access: 1ms}}
          interfaces:
            - node: fork
              peer: trunk
              tx_queue_len: 100
              egress: {qdisc: htb default 1, classes: [{id: "1", words: rate 100mbit, child: deltic_polya}]}
              mangle: [{match: {ecn: ce}, set_ecn: ect0}]
          tunnels: [{name: t, kind: ipsec, ends: [leaf2, trunk], replay_window: 64}]
        flows:
          - {name: a, from: leaf1, to: trunk, cc: bbr}
          - {name: b, from: leaf2, to: trunk, start: 150s, tunnel: t}
        probes: [{name: p, type: udp, from: leaf2, to: trunk, every: 10ms, ecn: ect1, dscp: EF}]
        captures: [fork>trunk]
        """,
    )
    assert [(n.name, n.sysctls, n.hz, n.offloads) for n in run.nodes] == [
        ("leaf1", {"net.ipv4.tcp_ecn": "0"}, 1000, False),
        ("leaf2", {"net.ipv4.tcp_ecn": "1"}, 250, True),
        ("fork", {}, 250, True),
        ("trunk", {"net.ipv4.tcp_ecn": "1"}, 250, True),
    ]
    assert (run.links[0].delay_s, run.links[0].rate_bps, run.links[0].loss) == (0.005, 10**9, 0.01)
    assert (run.links[2].mtu, run.links[2].features) == (
        9000,
        {"wifi": {"access_s": [0.001, 0.001], "packets": 64, "bytes": 65535}},
    )
    assert interface(run, "fork", "trunk").egress.classes[0].child.qdisc == "deltic_polya"
    assert interface(run, "fork", "trunk").tx_queue_len == 100
    assert run.tunnels[0].model_dump() == {
        "name": "t", "kind": "ipsec", "ends": ("leaf2", "trunk"), "replay_window": 64, "cipher": "aes-gcm",
        "inner_hash": False,
    }  # fmt: skip
    assert 150 <= run.flows[1].start_s < 150.01
    assert run.probes[0].model_dump() == {
        "name": "p", "proto": "udp", "from": "leaf2", "to": "trunk", "every_s": 0.01, "size": 60, "dscp": 46,
        "ecn": "ect1", "start_s": 0.0, "stop_s": 300.0, "tunnel": None,
    }  # fmt: skip
    assert run.captures == ["fork>trunk"]


def drawn(count: int, mean_gap_s: float, p5: int, p95: int) -> list[tuple[float, int]]:
    """Objects of seed 1 and the flow 'a': from two uniform draws each, an exponential gap and a lognormal size."""
    objects, ns = [], 0
    for n in range(count):
        digest = hashlib.sha256(f"1/a/object/{n}".encode()).digest()
        gap, size = ((int.from_bytes(digest[at : at + 8]) // 2**11 + 0.5) / 2**53 for at in (0, 8))
        ns += round(-math.log(1 - gap) * mean_gap_s * 1e9)
        # The 5th and the 95th percentile lie 1.645 sigma from the middle of their logarithms.
        z = NormalDist().inv_cdf(size) / NormalDist().inv_cdf(0.95)
        objects.append((ns / 1e9, round(math.sqrt(p5 * p95) * (p95 / p5) ** (z / 2))))
    return objects


@pytest.mark.parametrize(
    ("source", "resolved"),
    [
        ("bulk", {"kind": "bulk"}),
        ("{bytes: 10MB}", {"kind": "bytes", "bytes": 10_000_000}),
        ("{rate: 40mbit, size: 1472B}", {"kind": "rate", "rate_bps": 40_000_000, "size": 1472}),
        (
            "{periodic: {size: 900B, count: 8, every: 50ms}}",
            {"kind": "periodic", "size": 900, "count": 8, "every_s": 0.05},
        ),
        (
            "{short: {count: 2, mean_gap: 200ms, size_p5: 64KiB, size_p95: 2MiB}}",
            {"kind": "short", "objects": drawn(2, 0.2, 64 * 1024, 2 * 1024**2)},
        ),
        (
            "{video: {rates: [1mbit, 5mbit], segment: 4s, buffer: 30s}}",
            {"kind": "video", "rates_bps": [1_000_000, 5_000_000], "segment_s": 4.0, "buffer_s": 30.0},
        ),
    ],
)
def test_sources(tmp_path, source, resolved):
    run = one(tmp_path, HEAD + f"flows: [{{name: a, transport: udp, max_pacing_rate: 50mbit, source: {source}}}]")
    assert run.flows[0].source.model_dump() == resolved
    assert run.flows[0].max_pacing_rate_bps == 50_000_000


# Changes


def changes(tmp_path, text, head=HEAD):
    run = one(tmp_path, head + FLOW + "changes:\n" + text)
    return [(c.at_s, f"{c.node}>{c.peer}", c.action.model_dump()) for c in run.changes]


def test_rate_steps(tmp_path):
    # suite B, scenario 3, given out of order
    made = changes(tmp_path, "- {at: 30s, rate: 10mbit}\n- {at: 25s, rate: 25mbit, direction: up}\n")
    step = {"kind": "class-change", "side": "egress", "id": "1"}
    assert made == [
        (25.0, "mid>srv", {**step, "class": "rate 25mbit ceil 25mbit"}),
        (30.0, "mid>srv", {**step, "class": "rate 10mbit ceil 10mbit"}),
        (30.0, "mid>cli", {**step, "class": "rate 10mbit ceil 10mbit"}),
    ]


def test_a_bottleneck_shift_knows_what_stands(tmp_path):
    # suite C, scenario 3: cake as root, then htb over pie, then cake again; a rate step in between
    made = changes(
        tmp_path,
        "- {at: 10s, rate: 40mbit, direction: up}\n"
        "- {at: 20s, replace: {rate: 50mbit, qdisc: pie noecn}, direction: up}\n"
        "- {at: 30s, change: pie noecn target 5ms, direction: up}\n"
        "- {at: 35s, replace: fq_codel, direction: up}\n"
        "- {at: 40s, replace: {rate: 50mbit, qdisc: cake sce}, direction: up}\n"
        "- {at: 50s, change: cake sce bandwidth 20mbit, direction: up}\n",
        HEAD.replace("fq_codel", "cake sce"),
    )
    htb = {
        "qdisc": "htb default 1",
        "classes": [{"id": "1", "class": "rate 50mbit ceil 50mbit", "child": {"qdisc": "pie noecn"}}],
    }
    assert [action for _, _, action in made] == [
        {"kind": "qdisc-change", "side": "egress", "handle": "", "qdisc": "cake bandwidth 40mbit sce"},
        {"kind": "qdisc-replace", "side": "egress", "handle": "", "qdisc": htb},
        {"kind": "qdisc-change", "side": "egress", "handle": "1", "qdisc": "pie noecn target 5ms"},
        {"kind": "qdisc-replace", "side": "egress", "handle": "1", "qdisc": {"qdisc": "fq_codel"}},
        {"kind": "qdisc-replace", "side": "egress", "handle": "", "qdisc": {"qdisc": "cake bandwidth 50mbit sce"}},
        {"kind": "qdisc-change", "side": "egress", "handle": "", "qdisc": "cake sce bandwidth 20mbit"},
    ]


def test_an_rtt_step(tmp_path):
    made = changes(tmp_path, "- {at: 30s, rtt: 80ms}\n")
    line = {"kind": "qdisc-change", "side": "ingress", "handle": "", "qdisc": "netem delay 40ms limit 1000000"}
    assert made == [(30.0, "mid>cli", line), (30.0, "mid>srv", line)]


def test_changes_at_any_interface(tmp_path):
    made = changes(
        tmp_path,
        "- {at: 1s, interface: mid>srv, handle: '1', change: fq_codel target 1ms}\n"
        "- {at: 2s, interface: mid>srv, set_class: {id: '1', words: rate 5mbit}}\n"
        "- {at: 3s, interface: mid<srv, link: {up: false}}\n".replace("<", ">")
        + "- {at: 4s, interface: mid>cli, side: ingress, replace: netem delay 1ms}\n",
    )
    assert [action for _, _, action in made] == [
        {"kind": "qdisc-change", "side": "egress", "handle": "1", "qdisc": "fq_codel target 1ms"},
        {"kind": "class-change", "side": "egress", "id": "1", "class": "rate 5mbit"},
        {"kind": "link", "rate_bps": None, "delay_s": None, "loss": None, "up": False},
        {"kind": "qdisc-replace", "side": "ingress", "handle": "", "qdisc": {"qdisc": "netem delay 1ms"}},
    ]


# The window


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ("at end", (20.0, 60.0)),
        ("2s before end", (18.0, 58.0)),
        ("at 58s", (18.0, 58.0)),
        # samples every 7 s: the last is at 56 s
        ("1s before last sample", (15.0, 55.0)),
    ],
)
def test_window(ends, expected):
    measure = Measure(steady_state=SteadyState.model_validate({"window": "40s", "ends": ends}))
    assert window(measure, 60.0, 7.0) == expected


def test_idle_time_goes_before_the_load_and_after_it(tmp_path):
    rest = """
flows: [{name: a}, {name: b, start: 10s, stop: 40s}]
probes: [{name: ping, every: 50ms}, {name: load, every: 50ms, start: 0s, stop: 60s}]
changes: [{at: 30s, rate: 10mbit}]
measure: {steady_state: {window: 40s, ends: 2s before end}}
"""
    plain = one(tmp_path, HEAD + rest)
    idle = one(tmp_path, "idle: 5s\n" + HEAD + rest)
    # 60 s of load, 5 s on either side
    assert (plain.duration_s, idle.duration_s) == (60, 70)
    assert [round(i.start_s - p.start_s, 9) for i, p in zip(idle.flows, plain.flows, strict=True)] == [5, 5]
    assert [(flow.stop_s) for flow in idle.flows] == [65, 45]
    # probes go on all the time unless somebody says otherwise
    assert [(probe.start_s, probe.stop_s) for probe in idle.probes] == [(0, 70), (5, 65)]
    assert [change.at_s for change in idle.changes] == [35, 35]
    # 40 s up to 2 s before the end of the load
    assert (plain.window_s, idle.window_s) == ((18, 58), (23, 63))
    assert (idle.nodes, idle.interfaces) == (plain.nodes, plain.interfaces)


def test_a_link_may_come_back_in_the_idle_time_behind_the_load(tmp_path):
    down = "network: {path: [a, b], links: [{ends: [a, b], down: [[58s, 62s]]}]}\nduration: 60s\n" + FLOW
    ups = [(c.at_s, c.action.up) for c in one(tmp_path, "idle: 5s\n" + down).changes if c.node == "a"]
    assert ups == [(63, False), (67, True)]
    # without it the run ends first
    assert [c.action.up for c in one(tmp_path, down).changes] == [False, False]


@pytest.mark.parametrize(
    ("ends", "duration_s", "expected"),
    [
        ("2s before end", 60.0, (18, 58)),
        ("2s before end", 57.0, (18, 55)),  # 18 s before it, as in the file
        ("2s before end", 30.0, (10, 28)),  # a third of the run before it
        ("2s before end", 90.0, (48, 88)),  # a longer run has the whole window
        ("2s before end", 3.0, (1, 3)),  # from 1 s to 1 s it would have no length
        ("at 58s", 30.0, (10, 30)),
        ("at end", 20.0, (round(20 / 3, 9), 20)),
    ],
)
def test_a_run_that_is_shorter_than_its_file_says_has_a_shorter_window(ends, duration_s, expected):
    measure = Measure(steady_state=SteadyState.model_validate({"window": "40s", "ends": ends}))
    assert window(measure, duration_s, 0.05, 60.0) == expected


def test_a_shorter_duration_from_outside_shortens_the_window_and_says_so(tmp_path):
    path = write(tmp_path, HEAD + FLOW + "measure: {steady_state: {window: 40s}}")

    def made(**settings):
        [run] = catalog.select([str(path)], settings=settings)
        return run.window_s, run.notices

    assert made(duration="30s") == (
        (10, 30),
        (
            "duration=30s shortens the steady state of 40 s: it is from 10 s to 30 s; "
            "--set measure.steady_state.window sets another one",
        ),
    )
    assert made(duration="70s") == ((30, 70), ())
    assert made(duration="30s", **{"measure.steady_state.window": "30s"}) == ((0, 30), ())


def test_what_is_valid_and_probably_not_meant_is_warned_of(tmp_path):
    text = HEAD.replace("fq_codel", "'{q}'") + FLOW + "vary: {q: [%s]}\n"
    lines = ["codel target 5", "codel target 5ms interval 100.5", "sfq perturb 10", "pie target 0ms", "cake rtt 100us"]
    said = warnings(runs(tmp_path, text % ", ".join(lines)))
    assert [each.partition(" is ")[0] for each in said] == [
        "local/x/codel target 5: 'target 5' in 'codel target 5'",
        "local/x/codel target 5ms interval 100.5: 'interval 100.5' in 'codel target 5ms interval 100.5'",
    ]
    assert "is 5 us, as in tc; expected a unit, such as 'target 5ms' or 'target 5us'" in said[0]
    # netem's are nanoseconds; one warning for both directions
    delay = HEAD.replace("rtt: 20ms", "rtt: 20ms, delay: {child: netem slot 800 900}")
    assert [each.partition("' in ")[0] for each in warnings(runs(tmp_path, delay + FLOW))] == [
        "local/x/x: 'slot 800",
        "local/x/x: 'slot 800 900",
    ]


@pytest.mark.parametrize(
    ("path", "rate", "said"),
    [
        (
            "delay: {child: netem delay 5ms 2ms 10%}",
            50,
            "the jitter '2ms' in 'netem delay 5ms 2ms 10%' reorders packets",
        ),
        ("delay: {child: netem delay 5ms 0ms}", 50, None),
        ("delay: {child: netem delay 5ms 2ms rate 1gbit}", 50, None),
        ("delay: {child: netem slot 800us 900us}", 50, None),
        ("delay: {jitter: 1ms}", 50, "the jitter '1ms' in 'netem delay 10ms 1ms limit"),
        # 100 Mbit/s * 121.12 ms / 8 / 1514 B = 1000 packets: as many as netem holds unasked.
        ("delay: {child: netem delay 121.12ms}", 100, None),
        (
            "delay: {child: netem delay 122ms}",
            100,
            "netem's default limit of 1000 packets in 'netem delay 122ms' is less",
        ),
        ("delay: {child: netem delay 122ms limit 2016}", 100, None),
        ("delay: {limit: 40}", 50, "'limit 40' in 'netem delay 10ms limit 40' is less than the 42 packets"),
    ],
)
def test_a_netem_that_reorders_or_overflows_is_warned_of(tmp_path, path, rate, said):
    text = HEAD.replace("rtt: 20ms", f"rtt: 20ms, {path}").replace("50mbit", f"{rate}mbit")
    found = warnings(runs(tmp_path, text + FLOW))
    assert len(found) == (said is not None)
    assert all(said in each for each in found)


@pytest.mark.parametrize(
    ("burst", "hz", "least"),
    # 50 Mbit/s / 8 / HZ.
    [("6250b", 1000, None), ("6249", 1000, 6250), ("20k/8", 250, 25_000), ("25000", 250, None)],
)
def test_a_tbf_whose_burst_is_less_than_a_tick_of_its_rate_is_warned_of(tmp_path, burst, hz, least):
    text = HEAD.replace("rate: 50mbit, qdisc: fq_codel", f"qdisc: tbf rate 50mbit burst {burst} limit 100k")
    said = warnings(runs(tmp_path, f"{text}{FLOW}hosts: {{hz: {hz}}}\n"))
    assert [each.partition("expected ")[2] for each in said] == ([] if least is None else [f"'burst {least}b' or more"])


def test_the_catalog_has_delays_and_shapers_as_its_sources_have_them(every_run):
    said = warnings(run for run in every_run if run.suite in ("today", "sce-l4s-ect1"))
    assert not [each for each in said if "reorders" in each]
    jittery = next(run for run in every_run if run.suite == "today" and "jitter" in run.scenario)
    assert any("reorders" in each for each in warnings([jittery.model_copy(update={"suite": "local"})]))


@pytest.mark.parametrize(("start", "window", "warned"), [("0s", "60s", 1), ("0s", "59s", 0), ("5s", "58s", 1)])
def test_a_window_that_holds_all_slow_starts_is_warned_of(tmp_path, start, window, warned):
    flow = FLOW.replace("cubic", f"cubic, start: {start}")
    said = warnings(runs(tmp_path, f"{HEAD}{flow}measure: {{steady_state: {{window: {window}}}}}"))
    assert len(said) == warned
    assert all("starts before the flows" in each for each in said)


def test_a_window_outside_the_run():
    measure = Measure(steady_state=SteadyState.model_validate({"window": "59s", "ends": "2s before end"}))
    with pytest.raises(
        DocumentError, match=r"measure.steady_state: the window from -1 s to 58 s is outside the run of"
    ):
        window(measure, 60.0, 0.05)


@pytest.mark.parametrize(
    ("flows", "names"),
    [
        ("[{cc: prague@2020-08 rtt_target 25ms}, {}]", ["prague", "cubic"]),
        ("[{}, {cc: reno}, {}]", ["cubic-1", "reno", "cubic-2"]),
        ("[{count: 3, cc: [bbr, reno]}, {transport: udp, source: {rate: 1mbit}}]", ["bbr-1", "reno", "bbr-2", "udp"]),
        ("[{name: cubic}, {}, {name: cubic-1}]", ["cubic", "cubic-2", "cubic-1"]),
        ("[{name: cubic, count: 2}, {}]", ["cubic-1", "cubic-2", "cubic"]),
    ],
)
def test_a_flow_without_a_name_has_that_of_its_control(tmp_path, flows, names):
    assert [flow.name for flow in one(tmp_path, HEAD + f"flows: {flows}").flows] == names


@pytest.mark.parametrize(
    ("flows", "asked", "interval_s"),
    # 50 ms for each thousand that is begun: ceil(1000 / 1000) = 1, ceil(1001 / 1000) = 2, ceil(2501 / 1000) = 3.
    [(1, "", 0.05), (1000, "", 0.05), (1001, "", 0.1), (2501, "", 0.15), (2501, "sample_interval: 50ms", 0.05)],
)
def test_many_flows_are_sampled_less_often_if_nobody_says_how_often(tmp_path, flows, asked, interval_s):
    run = one(tmp_path, HEAD + f"flows: [{{cc: cubic, count: {flows}}}]\n{asked}\n")
    assert (len(run.flows), run.sample_interval_s) == (flows, interval_s)


@pytest.mark.parametrize(
    ("duration", "flows", "asked", "interval_s"),
    [
        # a flow and the two queues of the bottleneck: 3 x 25,000 s / 50 ms = 1.5 million samples
        ("25000s", 1, "", 0.05),
        ("25001s", 1, "", 0.1),
        ("86400s", 1, "", 0.2),  # 5.2 million, ceil(5.2 / 1.5) = 4
        ("86400s", 1, "sample_interval: 50ms", 0.05),
        ("600s", 1000, "", 0.45),  # 1,002 x 12,000 = 12.02 million, ceil(8.02) = 9
    ],
)
def test_a_long_run_is_sampled_less_often_if_nobody_says_how_often(tmp_path, duration, flows, asked, interval_s):
    head = HEAD.replace("duration: 60s", f"duration: {duration}")
    run = one(tmp_path, head + f"flows: [{{cc: cubic, count: {flows}}}]\n{asked}\n")
    assert run.sample_interval_s == interval_s


# The document of a run


def test_a_run_that_another_process_gets_is_the_same(tmp_path):
    run = one(tmp_path, HEAD + FLOW).with_own_code(["x.py:X"]).as_executable()
    sent = pickle.loads(pickle.dumps(run))
    assert (sent, sent.to_json()) == (run, run.to_json())
    assert (sent.source, sent.own_code, sent.executable) == (run.source, frozenset({"x.py:X"}), True)


def test_a_run_that_is_changed_has_a_document_of_its_own(tmp_path):
    run = one(tmp_path, HEAD + FLOW)
    assert '"seed":1,' in run.to_json()
    assert run.model_copy(update={"seed": 2}).to_json() == run.to_json().replace('"seed":1,', '"seed":2,')
    assert run.model_copy().to_json() == run.to_json()
