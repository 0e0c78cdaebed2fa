"""Bad input is refused with one message by its place."""

import pytest

from bakeoff.cli.warn import warnings
from bakeoff.duels import Duel
from bakeoff.errors import BakeoffError
from bakeoff.scenario import Run, duel, load
from scenario_texts import FLOW, HEAD, refused, runs


def test_unreadable_files(tmp_path):
    with pytest.raises(BakeoffError, match=r"none.yaml: cannot be read: No such file"):
        load(tmp_path / "none.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(BakeoffError, match=r"bytes.yaml: cannot be read: not UTF-8 text"):
        load(tmp_path / "bytes.yaml")


# Bad input


NET = "network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 50mbit, qdisc: pie}}\n"
T = "duration: 60s\n" + NET


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("duration: 60\n" + NET + FLOW, "duration: '60' has no unit; expected a time such as '20ms'"),
        (T.replace("50mbit", "50") + FLOW, "network.bottleneck.rate: '50' has no unit; expected a rate"),
        (
            T.replace("rate: 50mbit", "shape: htb rate 50") + FLOW,
            "network.bottleneck: shape: '50' has no unit; expected a rate such as '50mbit'",
        ),
        (T.replace("rate: 50mbit", "shape: htb") + FLOW, "network.bottleneck: shape: 'htb' has no rate"),
        (T.replace("20ms", "-20ms") + FLOW, "network.rtt: '-20ms' is negative; expected a time"),
        (
            T,
            "flows: missing",
        ),
        (T + "flows: []", "flows: empty"),
        ("duration: 0s\n" + NET + FLOW, "duration: '0s'; expected more than 0"),
        (T + "flows: [{name: a, to: srw}]", "flows[0].to: 'srw': no such host in the network; did you mean 'srv'?"),
        (T + "flows: [{name: a, from: mid}]", "flows[0].from: 'mid': no such host in the network"),
        (T + "flows: [{name: a, to: cli}]", "flows[0]: from 'cli' to itself"),
        (T + "flows: [{name: a}, {name: a}]", "flows[1].name: duplicate name 'a'; expected unique names"),
        (T + FLOW + "probes: [{name: a, every: 1s}]", "probes[0].name: duplicate name 'a'"),
        (T + "flows: [{name: a, dcsp: 3}]", "flows[0]: unknown key 'dcsp'; did you mean 'dscp'?"),
        ("duration: 60s\nflow: []\n" + NET, "unknown key 'flow'; did you mean 'flows'?"),
        (T.replace("qdisc:", "qdsc:") + FLOW, "network.bottleneck: unknown key 'qdsc'; did you mean 'qdisc'?"),
        (T + "flows: [{name: a, ecn: bleach, dscp: 1}]", "flows[0].ecn: 'bleach'; did you mean 'bleached'?"),
        (T + "flows: [{name: a, ecn: bleached}]", "flows[0].ecn: 'bleached' is selected by DSCP, but the flow has 0,"),
        (
            T + "flows: [{name: a, dscp: 3, rtt: 1ms}, {name: b, dscp: 3}]",
            "flows[0].rtt: selected by DSCP, but 'b' has the same DSCP 3 and another rtt",
        ),
        (T + "flows: [{name: a, start: 61s}]", "flows[0]: runs from 61.00"),
        (T + "flows: [{name: a b}]", "flows[0].name: 'a b'; expected a name without spaces"),
        (T + "flows: [{name: a, cc: [x, y]}]", "flows[0].cc: a list without 'count'"),
        (T + "flows: [{name: a, tunnel: t}]", "flows[0].tunnel: 't': unknown tunnel"),
        (T + "flows: [{name: a, source: {bytes: 1MB, rate: 1mbit}}]", "flows[0].source: has bytes and rate"),
        (T + "flows: [a]", "flows[0]: 'a'; expected a mapping"),
        (T.replace("[cli, mid, srv]", "[cli, mid, cli]") + FLOW, "network.path: duplicate name 'cli'"),
        (
            T.replace("[cli, mid, srv]", "[cli, srv]") + FLOW,
            "network.rtt: needs a node between the hosts of 'network.path', which is [cli, srv]; expected for example",
        ),
        (
            T.replace("[cli, mid, srv]", "[c, m, n, s]") + FLOW,
            "network.rtt: ambiguous node; expected 'network.delay.at' with one of m, n",
        ),
        ("duration: 60s\nnetwork: {}\n" + FLOW, "network: missing nodes"),
        (
            "duration: 60s\nnetwork: {nodes: {a: host, b: host}}\n" + FLOW,
            "network: not connected: no path from 'a' to 'b'",
        ),
        (
            "duration: 60s\nnetwork: {nodes: {a: host, b: host}, links: [{ends: [a, c]}]}\n" + FLOW,
            "network.links[0].ends: 'c': unknown node; expected one of a, b",
        ),
        ("duration: 60s\nnetwork: {nodes: {a: hots}}\n" + FLOW, "network.nodes.a: 'hots'; did you mean 'host'?"),
        (
            T.replace("rtt:", "interfaces: [{node: mid, peer: srv, egress: fq}], rtt:") + FLOW,
            "network.interfaces[0]: the egress of mid>srv already has a qdisc, 'htb default 1'",
        ),
        (
            T.replace("rtt:", "interfaces: [{node: mid, peer: svr, egress: fq}], rtt:") + FLOW,
            "network.interfaces[0]: unknown interface 'mid>svr'; did you mean 'mid>srv'?",
        ),
        (T + FLOW + "captures: [mid>dst]", "captures[0]: 'mid>dst': unknown interface"),
        (T + FLOW + "captures: [mid]", "captures[0]: 'mid'; expected an interface such as 'mid>srv'"),
        (T + FLOW + "changes: [{at: 70s, rate: 1mbit}]", "changes[0].at: 70 s is after the end"),
        (T + FLOW + "changes: [{at: 7s}]", "changes[0]: has no action; expected one of rate"),
        (T + FLOW + "changes: [{at: 7s, node: x, rate: 1mbit}]", "changes[0].node: 'x': unknown bottleneck"),
        (T + FLOW + "changes: [{at: 7s, link: {up: false}}]", "changes[0]: 'link' needs 'interface'"),
        (T + FLOW + "profile: none", "profile: 'none': unknown profile"),
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
    text = duel(Duel(cc1="reno", cc2="cubic")).to_json().replace('"seed":1,', '"seed":1,"sead":2,')
    with pytest.raises(BakeoffError, match=r"resolved run: sead: Extra inputs"):
        Run.from_json(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("probes: ping", "probes: 'ping'; expected a list such as [{name: ping, type: icmp, every: 50ms}]"),
        ("vary: {rtt: 10ms}", "vary.rtt: '10ms'; expected a list or a mapping label -> value, such as ['10ms']"),
        ("rtt: 5ms", "unknown key 'rtt'; did you mean 'network.rtt'?"),
        ("rate: 5mbit", "unknown key 'rate'; did you mean 'network.bottleneck.rate'?"),
        ("measure: {window: 5s}", "measure: unknown key 'window'; did you mean 'steady_state: {window: …}'?"),
        ("\tduration: 5s", "; a line starts with a tab; expected spaces"),
    ],
)
def test_where_a_key_belongs_and_how_a_list_is_written(tmp_path, text, message):
    assert message in refused(tmp_path, f"{HEAD}{FLOW}{text}")


def test_a_source_is_not_a_flow_nor_a_network_a_bottleneck(tmp_path):
    said = refused(tmp_path, HEAD + FLOW.replace("cubic", "cubic, bytes: 10MB"))
    assert said == "flows[0]: unknown key 'bytes'; did you mean 'source: {bytes: …}'?"
    said = refused(tmp_path, HEAD.replace("rtt: 20ms", "rtt: 20ms, bandwidth: 5mbit") + FLOW)
    assert said == "network: unknown key 'bandwidth'; did you mean 'bottleneck: {rate: …}'?"


def test_a_way_without_a_rate_is_warned_of(tmp_path):
    [said] = warnings(runs(tmp_path, HEAD.replace("rate: 50mbit, ", "") + FLOW))
    assert "no link has a rate" in said
    rated = "rtt: 20ms, links: [{ends: [mid, srv], rate: 5mbit}]"
    assert warnings(runs(tmp_path, HEAD.replace("rate: 50mbit, ", "").replace("rtt: 20ms", rated) + FLOW)) == []
    assert (
        warnings(runs(tmp_path, HEAD.replace("rate: 50mbit, qdisc: fq_codel", "qdisc: cake bandwidth 5mbit") + FLOW))
        == []
    )
