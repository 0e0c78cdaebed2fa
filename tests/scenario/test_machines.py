"""Hosts that are not ideal: what a scenario says of them, and which engine can do it."""

import json

import pytest

from bakeoff.engines.lab import plan
from bakeoff.errors import BakeoffError
from lab_runs import network, nodes
from scenario_texts import FLOW, HEAD, one, refused

KEYS = ("stall", "timer_slack_s", "receive_coalescing_s")


def test_hosts_and_only_hosts_get_what_is_said_of_all(tmp_path):
    said = "hosts: {stall: 5ms every 1s, timer_slack: 50us, receive_coalescing: 100us}\n"
    cli, mid, srv = json.loads(one(tmp_path, HEAD + FLOW + said).to_json())["nodes"]
    expected = {"stall": {"length_s": 0.005, "every_s": 1.0}, "timer_slack_s": 5e-5, "receive_coalescing_s": 1e-4}
    assert [{key: node[key] for key in KEYS} for node in (cli, srv)] == [expected, expected]
    assert not mid.keys() & set(KEYS)


def test_an_ideal_host_is_written_as_before(tmp_path):
    for node in json.loads(one(tmp_path, HEAD + FLOW).to_json())["nodes"]:
        assert not node.keys() & set(KEYS)


def test_a_node_has_its_own(tmp_path):
    own = HEAD.replace("network: {", "network: {nodes: {cli: {kind: host, stall: 20ms every 2s}}, ")
    cli, _, srv = one(tmp_path, own + FLOW + "hosts: {stall: 5ms every 1s}\n").nodes
    assert [(node.stall.length_s, node.stall.every_s) for node in (cli, srv)] == [(0.02, 2.0), (0.005, 1.0)]
    other = HEAD.replace("network: {", "network: {nodes: {mid: {kind: bridge, timer_slack: 1ms}}, ")
    assert refused(tmp_path, other + FLOW) == "network.nodes.mid.timer_slack: 'mid' is a bridge; expected a host"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("5ms", "'5ms': invalid stall; expected a length and a longer period such as '5ms every 1s'"),
        ("1s every 5ms", "'1s every 5ms': the stall takes nothing or the whole period"),
        ("0ms every 1s", "'0ms every 1s': the stall takes nothing or the whole period"),
        ("5 every 1s", "'5' has no unit"),
        ("100ns every 200ns", "expected a period of at least 1us"),
        ("2000s every 3000s", "expected a length of at most 1000s"),
    ],
)
def test_what_is_no_stall_is_refused(tmp_path, words, message):
    assert message in refused(tmp_path, f"{HEAD}{FLOW}hosts: {{stall: {words}}}\n")


@pytest.mark.parametrize("key", KEYS)
def test_real_hosts_refuse_it(key):
    value = {"length_s": 0.005, "every_s": 1.0} if key == "stall" else 0.001
    cli, *others = nodes()
    with pytest.raises(BakeoffError, match=rf"nodes\[0\]\.{key}: 'cli': only simulated"):
        plan(network(nodes=[cli | {key: value}, *others]))
