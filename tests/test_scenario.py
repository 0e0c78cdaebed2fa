import json
import math
import re
from fractions import Fraction
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bakeoff.errors import BakeoffError
from bakeoff.scenario import Run, duel, expand, json_schema, load, units
from bakeoff.scenario.duels import flow_names
from bakeoff.scenario.language import Measure, SteadyState
from bakeoff.scenario.matrix import ScenarioError, points
from bakeoff.scenario.resolve import jitter, window
from bakeoff.scenario.yaml_file import parse_yaml

HEAD = """
duration: 60s
start_jitter: 0s
network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 50mbit, qdisc: fq_codel}}
"""
FLOW = "flows: [{name: a, cc: cubic}]\n"


def write(tmp_path, text, name="x.yaml"):
    path = tmp_path / name
    path.write_text(dedent(text))
    return path


def runs(tmp_path, text, **kwargs):
    return expand(load(write(tmp_path, text)), **kwargs)


def one(tmp_path, text):
    (run,) = runs(tmp_path, text)
    return run


def interface(run, node, peer):
    return next(i for i in run.interfaces if (i.node, i.peer) == (node, peer))


def refused(tmp_path, text):
    with pytest.raises(BakeoffError) as error:
        runs(tmp_path, text)
    message = str(error.value)
    assert message.startswith(str(tmp_path / "x.yaml") + ": ")
    return message.removeprefix(str(tmp_path / "x.yaml") + ": ")


# Quantities


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_rate, "50mbit", 50_000_000),
        (units.parse_rate, "47.5Mbit", 47_500_000),
        (units.parse_rate, "1 gbit", 10**9),
        (units.parse_rate, "10kibit", 10_240),
        (units.parse_time, "20ms", 0.02),
        (units.parse_time, "0.1s", 0.1),
        (units.parse_time, "200us", 0.0002),
        (units.parse_time, "200µs", 0.0002),
        (units.parse_time, "2min", 120.0),
        (units.parse_time, 0, 0.0),
        (units.parse_time, "-0s", 0.0),
        (units.parse_size, "1448B", 1448),
        (units.parse_size, "64KiB", 65536),
        (units.parse_size, "2MB", 2_000_000),
        (units.parse_percentage, "2%", 0.02),
        (units.parse_dscp, 19, 19),
        (units.parse_dscp, "0x13", 19),
        (units.parse_dscp, "AF11", 10),
        (units.parse_dscp, "ef", 46),
    ],
)
def test_quantities(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (units.parse_rate, "50", "'50' has no unit; expected a rate such as '50mbit'"),
        (units.parse_rate, 50, "'50' has no unit; expected a rate such as '50mbit'"),
        (
            units.parse_rate,
            "50mbps",
            "'50mbps' is ambiguous: tc's mbps is bytes per second; expected bits, such as '50mbit'",
        ),
        (units.parse_rate, "50ms", "unknown unit 'ms'; expected a rate"),
        (units.parse_rate, "0.3bit", "no whole number of bit per second"),
        (units.parse_time, "-5ms", "'-5ms' is negative; expected a time such as '20ms'"),
        (units.parse_time, "20", "'20' has no unit; expected a time"),
        (units.parse_time, "20mbit", "unknown unit 'mbit'; expected a time"),
        (units.parse_time, "soon", "'soon' is no quantity; expected a time"),
        (units.parse_time, True, "True is no quantity"),
        (units.parse_time, None, "None is no quantity"),
        (units.parse_size, "1.5B", "no whole number of byte"),
        (units.parse_percentage, "120%", "more than everything"),
        (units.parse_dscp, 64, "64 is no DSCP; expected a codepoint from 0 to 63"),
        (units.parse_dscp, "AF55", "no DSCP"),
    ],
)
def test_quantities_that_are_none(parse, text, message):
    with pytest.raises(ValueError, match=r"expected|whole number") as error:
        parse(text)
    assert message in str(error.value)


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**15))
def test_rates_survive_a_round_trip(bps):
    assert units.parse_rate(units.format_rate(bps)) == bps


@settings(deadline=None)
@given(st.integers(min_value=0, max_value=10**15))
def test_times_survive_a_round_trip_to_the_nanosecond(nanoseconds):
    seconds = float(Fraction(nanoseconds, 10**9))
    assert units.parse_time(units.format_time(seconds)) == seconds


def test_formatting_takes_the_largest_whole_unit():
    assert [units.format_time(t) for t in (0, 0.01, 0.0075, 1.0, 90.0)] == ["0ms", "10ms", "7500us", "1s", "90s"]
    assert [units.format_rate(r) for r in (0, 1, 47_500_000, 10**9)] == ["0bit", "1bit", "47500kbit", "1gbit"]


# YAML


def test_words_stay_words():
    data = parse_yaml("{a: on, b: off, c: true, d: 2020-08-01, e: 1:30, f: 0x13, g: 010, h: 1.5, i: yes, j: -3}", "x")
    assert data == {
        "a": "on", "b": "off", "c": True, "d": "2020-08-01", "e": "1:30", "f": 19, "g": "010", "h": 1.5,
        "i": "yes", "j": -3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2\nb: 3\n", "x: line 2, column 2: not YAML: "),
        ("\tkey: 1", "x: line 1, column 1: not YAML: "),
        ("a: 1\nb: 2\na: 3\n", "x: line 3, column 1: not YAML: the key 'a' stands twice"),
        ("", "x: holds nothing; expected a mapping"),
        ("- a\n- b\n", "x: holds list; expected a mapping"),
        ("a: 1\n---\nb: 2\n", "x: line 2, column 1: not YAML: "),
        ("a: \x00", "x: not YAML: "),
        ("a: !!python/object:os.system x", "not YAML: could not determine a constructor"),
    ],
)
def test_no_yaml(text, message):
    with pytest.raises(BakeoffError) as error:
        parse_yaml(text, "x")
    assert message in str(error.value)


def test_unreadable_files(tmp_path):
    with pytest.raises(BakeoffError, match=r"none.yaml: cannot be read: No such file"):
        load(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(BakeoffError, match=r"bytes.yaml: cannot be read: not UTF-8 text"):
        load(tmp_path / "bytes.yaml")


# The matrix


def names(tmp_path, vary, run="", extra=""):
    text = f"{HEAD}{FLOW}{extra}\nvary: {vary}\n" + (f"run: '{run}'\n" if run else "")
    return [run.run for run in runs(tmp_path, text)]


def test_the_last_axis_moves_fastest_and_names_are_labels(tmp_path):
    vary = "{q: {one: fq_codel flows 1, pie: pie}, r: [1mbit, 2mbit]}"
    assert names(tmp_path, vary) == ["one-1mbit", "one-2mbit", "pie-1mbit", "pie-2mbit"]
    assert names(tmp_path, vary, "a-{r}-{q}-{{x}}")[0] == "a-1mbit-one-{x}"


def test_linked_axes_move_together(tmp_path):
    vary = "{rtts: [{a: 10ms, b: 20ms}, {a: 80ms, b: 10ms}], c: [x, y]}"
    assert names(tmp_path, vary) == ["10ms-20ms-x", "10ms-20ms-y", "80ms-10ms-x", "80ms-10ms-y"]


def test_labels_may_depend_on_other_axes(tmp_path):
    text = (
        HEAD.replace("rate: 50mbit, qdisc: fq_codel", "rate: '{rate.label}', qdisc: '{q}'")
        + FLOW
        + "vary: {rate: {10mbit: {limit: 200}, 50mbit: {limit: 1000}},"
        + " q: {'pfifo({rate.limit})': 'pfifo limit {rate.limit}'}}"
    )
    found = {run.run: interface(run, "mid", "srv").egress.classes[0] for run in runs(tmp_path, text)}
    assert {name: (c.class_, c.child.qdisc) for name, c in found.items()} == {
        "10mbit-pfifo(200)": ("rate 10mbit ceil 10mbit", "pfifo limit 200"),
        "50mbit-pfifo(1000)": ("rate 50mbit ceil 50mbit", "pfifo limit 1000"),
    }


def test_exclude(tmp_path):
    vary = "{a: [1, 2], b: [x, y]}"
    assert names(tmp_path, vary, extra="exclude: [{a: 1, b: [x]}]") == ["1-y", "2-x", "2-y"]
    assert names(tmp_path, vary, extra="exclude: [{a: 1}, {b: x}]") == ["2-y"]


def test_a_whole_placeholder_becomes_the_value_itself(tmp_path):
    text = """
    duration: 10s
    network: {path: [cli, mid, srv], bottleneck: "{b}"}
    hosts: {hz: "{hz}"}
    flows: [{name: a}]
    vary: {b: {plain: {qdisc: pfifo}, shaped: {rate: 5mbit, qdisc: pie}}, hz: [100, 1000]}
    """
    found = runs(tmp_path, text)
    assert [run.nodes[0].hz for run in found] == [100, 1000, 100, 1000]
    assert [interface(run, "mid", "srv").egress.qdisc for run in found[1:3]] == ["pfifo", "htb default 1"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("vary: {a: []}", "vary.a: the matrix is empty; expected at least one value"),
        ("vary: {a: {}}", "vary.a: the matrix is empty"),
        ("vary: {a: [1]}\nexclude: [{a: 1}]", "exclude: excludes every point of the matrix; expected at least one run"),
        ("vary: {a: [1]}\nexclude: [{b: 1}]", "exclude[0].b: no such axis; expected one of a"),
        ("vary: {a: [one]}\nexclude: [{a: on}]", "exclude[0].a: no label 'on'; did you mean 'one'?"),
        ("vary: {a: [1, 1]}", "vary.a: the value '1' stands twice"),
        ("vary: {a: 5}", "vary.a: 5; expected a list or a mapping label -> value"),
        ("vary: {a: [{x: 1}, {y: 2}]}", "vary.a[1]: has the keys ['y']; expected those of the first entry, ['x']"),
        ("vary: {a: [1], b: [{a: 2}]}", "vary: the axis 'a' stands twice"),
        ("vary: {n: [1]}", "vary.n: 'n' cannot name an axis"),
        ("vary: {qdisc: [1]}\ntitle: '{qdsic}'", "title: unknown placeholder '{qdsic}'; did you mean 'qdisc'?"),
        ("vary: {a: {x: {f: 1}}}\ntitle: '{a.g}'", "title: unknown placeholder '{a.g}'; expected one of label, f"),
        ("vary: {a: {x: '{b}'}, b: {y: '{a}'}}\nsource: '{a}'", "source: the placeholder '{a}' refers to itself"),
        (
            "vary: {a: [1, 2]}\nrun: same",
            "run: two points of the matrix are named 'same'; expected a template that holds {a}",
        ),
    ],
)
def test_matrices_that_are_none(tmp_path, lines, message):
    assert refused(tmp_path, HEAD + FLOW + lines).startswith(message)


@settings(deadline=None)
@given(
    st.dictionaries(
        st.from_regex(r"\A[a-m][a-z]{0,3}\Z"), st.lists(st.integers(), min_size=1, max_size=4, unique=True), max_size=4
    )
)
def test_the_matrix_is_the_product_of_its_axes(vary):
    spanned = points(vary)
    assert len(spanned) == math.prod(map(len, vary.values()))
    assert len({tuple(choice.label for choice in point.values()) for point in spanned}) == len(spanned)


# Repetitions


def test_repetitions_have_the_same_seeds_for_every_variant(tmp_path):
    text = HEAD.replace("start_jitter: 0s\n", "") + FLOW + "vary: {a: [x, y]}"
    found = runs(tmp_path, text, seeds=3)
    assert [run.key for run in found] == [
        "local/x/x", "local/x/x~seed2", "local/x/x~seed3",
        "local/x/y", "local/x/y~seed2", "local/x/y~seed3",
    ]  # fmt: skip
    starts = [run.flows[0].start_s for run in found]
    assert starts[:3] == starts[3:]
    assert len(set(starts)) == 3
    assert all(0 <= start < 0.01 for start in starts)


@settings(deadline=None)
@given(st.integers(min_value=1, max_value=2**63), st.text(max_size=8), st.sampled_from([0.0, 1e-6, 0.01, 2.0]))
def test_jitter_is_a_function_of_seed_and_name_below_its_bound(seed, name, below):
    drawn = jitter(seed, name, below)
    assert drawn == jitter(seed, name, below)
    assert drawn == 0 if below == 0 else 0 <= drawn < below


def test_jitter_is_uniform():
    drawn = [jitter(seed, "a", 1.0) for seed in range(4000)]
    # mean 1/2 with standard error sqrt(1/12/4000) = 0.0046; four of them
    assert abs(sum(drawn) / 4000 - 0.5) < 0.0183
    assert abs(sum(x < 0.25 for x in drawn) / 4000 - 0.25) < 4 * math.sqrt(0.25 * 0.75 / 4000)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(["cubic", "reno", "prague"]), min_size=1, max_size=3, unique=True),
    st.integers(min_value=1, max_value=3),
    st.integers(min_value=0, max_value=200),
)
def test_expansion_is_deterministic_and_survives_json(tmp_path_factory, ccs, seeds, rtt):
    text = f"""
    duration: 10s
    network: {{path: [cli, mid, srv], rtt: {rtt}ms, bottleneck: {{rate: 5mbit, qdisc: pie ecn}}}}
    flows: [{{name: "{{cc}}", cc: "{{cc}}", dscp: 4, ecn: bleached}}, {{name: other, rtt: 7ms, dscp: 9}}]
    vary: {{cc: {json.dumps(ccs)}}}
    """
    path = write(tmp_path_factory.mktemp("expansion"), text)
    first, second = expand(load(path), seeds=seeds), expand(load(path), seeds=seeds)
    assert [run.to_json() for run in first] == [run.to_json() for run in second]
    assert [Run.from_json(run.to_json()) for run in first] == first
    assert len({run.key for run in first}) == len(ccs) * seeds


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


# Exponential gaps and lognormal sizes, drawn from seed 1 and the name 'a'.
OBJECTS = [(0.130509386, 269964), (0.524338543, 328878)]


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
            {"kind": "short", "objects": OBJECTS},
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


def test_a_window_outside_the_run():
    measure = Measure(steady_state=SteadyState.model_validate({"window": "59s", "ends": "2s before end"}))
    with pytest.raises(ScenarioError, match=r"measure.steady_state: the window from -1 s to 58 s is not within"):
        window(measure, 60.0, 0.05)


# Bad input


NET = "network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 50mbit, qdisc: pie}}\n"
T = "duration: 60s\n" + NET


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("duration: 60\n" + NET + FLOW, "duration: '60' has no unit; expected a time such as '20ms'"),
        (T.replace("50mbit", "50") + FLOW, "network.bottleneck[0].rate: '50' has no unit; expected a rate"),
        (
            T.replace("rate: 50mbit", "shape: htb rate 50") + FLOW,
            "network.bottleneck: shape: '50' has no unit; expected a rate such as '50mbit'",
        ),
        (T.replace("rate: 50mbit", "shape: htb") + FLOW, "network.bottleneck: shape 'htb ' has no rate"),
        (T.replace("20ms", "-20ms") + FLOW, "network.rtt: '-20ms' is negative; expected a time"),
        (T, "flows: is missing"),
        (T + "flows: []", "flows: []; "),
        ("duration: 0s\n" + NET + FLOW, "duration: '0s'; expected greater than 0"),
        (T + "flows: [{name: a, to: srw}]", "flows[0].to: 'srw' is no host of the network; did you mean 'srv'?"),
        (T + "flows: [{name: a, from: mid}]", "flows[0].from: 'mid' is no host of the network"),
        (T + "flows: [{name: a, to: cli}]", "flows[0]: goes from 'cli' to itself"),
        (T + "flows: [{name: a}, {name: a}]", "flows[1].name: 'a' stands twice; expected unique names"),
        (T + FLOW + "probes: [{name: a, every: 1s}]", "probes[0].name: 'a' stands twice"),
        (T + "flows: [{name: a, dcsp: 3}]", "flows[0]: unknown key 'dcsp'; did you mean 'dscp'?"),
        ("duration: 60s\nflow: []\n" + NET, "unknown key 'flow'; did you mean 'flows'?"),
        (T.replace("qdisc:", "qdsc:") + FLOW, "network.bottleneck[0]: unknown key 'qdsc'; did you mean 'qdisc'?"),
        (T + "flows: [{name: a, ecn: bleach, dscp: 1}]", "flows[0].ecn: 'bleach'; did you mean 'bleached'?"),
        (T + "flows: [{name: a, ecn: bleached}]", "flows[0].ecn: 'bleached' is chosen by DSCP, but the flow has 0"),
        (
            T + "flows: [{name: a, dscp: 3, rtt: 1ms}, {name: b, dscp: 3}]",
            "flows[0].rtt: is chosen by DSCP, and 'b' has 3 too",
        ),
        (T + "flows: [{name: a, start: 61s}]", "flows[0]: runs from 61.00"),
        (T + "flows: [{name: a b}]", "flows[0].name: 'a b'; expected a name without spaces"),
        (T + "flows: [{name: a, cc: [x, y]}]", "flows[0].cc: a list without 'count'"),
        (T + "flows: [{name: a, tunnel: t}]", "flows[0].tunnel: 't' is no tunnel"),
        (T + "flows: [{name: a, source: {bytes: 1MB, rate: 1mbit}}]", "flows[0].source: has bytes and rate"),
        (T + "flows: [a]", "flows[0]: 'a'; expected a mapping"),
        (T.replace("[cli, mid, srv]", "[cli, mid, cli]") + FLOW, "network.path: 'cli' stands twice"),
        (T.replace("[cli, mid, srv]", "[cli, srv]") + FLOW, "network.delay.at: 'at' is missing"),
        (
            T.replace("[cli, mid, srv]", "[c, m, n, s]") + FLOW,
            "network.delay.at: 'at' is missing; expected one of m, n",
        ),
        ("duration: 60s\nnetwork: {}\n" + FLOW, "network: has no nodes"),
        ("duration: 60s\nnetwork: {nodes: {a: host, b: host}}\n" + FLOW, "network: no links lead from 'a' to 'b'"),
        (
            "duration: 60s\nnetwork: {nodes: {a: host, b: host}, links: [{ends: [a, c]}]}\n" + FLOW,
            "network.links[0].ends: 'c' is no node; expected one of a, b",
        ),
        ("duration: 60s\nnetwork: {nodes: {a: hots}}\n" + FLOW, "network.nodes.a.kind: 'hots'; did you mean 'host'?"),
        (
            T.replace("rtt:", "interfaces: [{node: mid, peer: srv, egress: fq}], rtt:") + FLOW,
            "network.interfaces[0]: the egress of mid>srv has a qdisc already, 'htb default 1'",
        ),
        (
            T.replace("rtt:", "interfaces: [{node: mid, peer: svr, egress: fq}], rtt:") + FLOW,
            "network: there is no interface mid>svr; did you mean 'mid>srv'?",
        ),
        (T + FLOW + "captures: [mid>dst]", "captures[0]: 'mid>dst' is no interface"),
        (T + FLOW + "captures: [mid]", "captures[0]: 'mid'; expected an interface such as 'mid>srv'"),
        (T + FLOW + "changes: [{at: 70s, rate: 1mbit}]", "changes[0].at: 70 s is after the end"),
        (T + FLOW + "changes: [{at: 7s}]", "changes[0]: has no action; expected one of rate"),
        (T + FLOW + "changes: [{at: 7s, node: x, rate: 1mbit}]", "changes[0].node: 'x' is no bottleneck"),
        (T + FLOW + "changes: [{at: 7s, link: {up: false}}]", "changes[0]: 'link' needs 'interface'"),
        (T + FLOW + "profile: none", "profile: 'none' is no profile"),
        (
            T + FLOW + "measure: {steady_state: {window: 10s, ends: soon}}",
            "measure.steady_state.ends: 'soon'; expected 'at end'",
        ),
    ],
)
def test_bad_input_is_one_clear_message(tmp_path, text, message):
    assert refused(tmp_path, text).startswith(message)


def test_further_mistakes_are_counted(tmp_path):
    assert refused(tmp_path, NET + FLOW + "sample_interval: 5").endswith("(and 1 more mistake)")


def test_a_resolved_run_that_is_none():
    with pytest.raises(BakeoffError, match=r"resolved run: document: Invalid JSON"):
        Run.from_json("{")
    text = duel("reno", "cubic").to_json().replace('"seed":1,', '"seed":1,"sead":2,')
    with pytest.raises(BakeoffError, match=r"resolved run: sead: Extra inputs"):
        Run.from_json(text)


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


def test_a_duel_of_unlike_rtts():
    run = duel("reno", "cubic", rtt="10ms", rtt2="160ms")
    ingress = interface(run, "mid", "cli").ingress
    assert [c.child.qdisc.split()[2] for c in ingress.classes] == ["5ms", "80ms", "5ms"]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"rate": "50"}, "duel: network.bottleneck[0].rate: '50' has no unit; expected a rate"),
        ({"rtt": "-5ms"}, "duel: network.rtt: '-5ms' is negative"),
        ({"duration": "0s"}, "duel: duration: '0s'; expected greater than 0"),
        ({"qdisc": " "}, "duel: qdisc: is empty"),
        ({"rate": "{x}"}, "duel: network.bottleneck[0].rate: '{x}' is no quantity"),
    ],
)
def test_duels_that_are_none(kwargs, message):
    with pytest.raises(BakeoffError) as error:
        duel("reno", "cubic", **kwargs)
    assert str(error.value).startswith(message)


def test_a_duel_takes_names_as_they_are_written():
    run = duel("prague rtt_target 25ms", "prague@2020-08")
    assert [flow.cc for flow in run.flows] == ["prague rtt_target 25ms", "prague@2020-08"]


# The page about the language


def test_the_examples_of_the_page_expand(tmp_path):
    page = (Path(__file__).parents[1] / "docs" / "scenario-language.md").read_text()
    first, network, flows = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    assert [run.run for run in runs(tmp_path, first)] == [
        "cubic-fq_codel(1q)",
        "cubic-pie",
        "reno-fq_codel(1q)",
        "reno-pie",
    ]
    assert len(one(tmp_path, "duration: 60s\n" + network + flows).flows) == 12


# The schema


def test_the_schema_describes_every_key_of_the_top_level():
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"].startswith("urn:")
    assert schema["title"]
    assert schema["additionalProperties"] is False
    assert schema["required"] == []  # the file name and a profile may hold any of them
    described = {name for name, field in schema["properties"].items() if "description" in field}
    assert described >= {"duration", "vary", "title", "changes", "run", "start_jitter", "exclude"}
    json.dumps(schema)


@pytest.mark.parametrize(
    ("pattern", "parse", "samples"),
    [
        (
            units.RATE_PATTERN,
            units.parse_rate,
            ["50mbit", "50Mbit", "1.5 gbit", "7bit", "10kibit", "1tbit", "5", "5mbps", "5ms"],
        ),
        (units.TIME_PATTERN, units.parse_time, ["20ms", "1.5s", "3ns", "2min", "1 h", "5", "-5ms", "5mbit", "5 MS"]),
        (units.SIZE_PATTERN, units.parse_size, ["1448B", "64KiB", "2mb", "1 GB", "5", "5x", "5bit"]),
        (units.PERCENTAGE_PATTERN, units.parse_percentage, ["2%", "0.5 %", "5", "5ms"]),
    ],
)
def test_the_schema_takes_what_the_parser_takes(pattern, parse, samples):
    def parsed(text):
        try:
            parse(text)
        except ValueError:
            return False
        return True

    assert [bool(re.match(pattern, text)) for text in samples] == [parsed(text) for text in samples]


def test_every_reference_of_the_schema_exists():
    schema = json_schema()
    text = json.dumps(schema)
    named = {part.split('"')[0] for part in text.split('"#/$defs/')[1:]}
    assert named <= schema["$defs"].keys()


def test_a_placeholder_may_stand_for_any_value_in_the_schema():
    flow = json_schema()["$defs"]["FlowSpec"]["properties"]
    for key in ("rtt", "dscp", "ecn", "count", "source"):
        assert {"$ref": "#/$defs/placeholder"} in flow[key]["anyOf"], key
