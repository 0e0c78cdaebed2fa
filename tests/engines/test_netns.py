"""Engine `netns`: what the host lacks is named; runs in the host's namespaces (root), with tools of others too."""

import json
from pathlib import Path

import pytest

from bakeoff import campaign, results
from bakeoff.campaign import Execution
from bakeoff.engines import netns
from bakeoff.engines.kernel import host_programs
from bakeoff.errors import BakeoffError
from bakeoff.scenario import Run
from lab_runs import NETEM, SHORT, by_tools, check_slowed, ctrl_c, egress, flow, meanwhile, network, slowed


def test_netns_names_a_missing_capability(monkeypatch):
    monkeypatch.setattr(netns, "missing_capabilities", lambda: ["CAP_NET_ADMIN", "CAP_SYS_ADMIN"])
    with pytest.raises(BakeoffError, match="engine netns: missing capabilities CAP_NET_ADMIN, CAP_SYS_ADMIN"):
        netns.Namespaces().check(network())


def test_netns_names_a_missing_module(monkeypatch):
    monkeypatch.setattr(netns, "missing_capabilities", list)
    monkeypatch.setattr(netns, "_tried", lambda argv: "Error: Specified qdisc kind is unknown." * ("netem" in argv))
    monkeypatch.setattr(host_programs, "need", Path)
    with pytest.raises(BakeoffError, match=r"has no netem: module sch_netem \(CONFIG_NET_SCH_NETEM\)"):
        netns.Namespaces().check(network(interfaces=[{"node": "mid", "peer": "cli", "ingress": NETEM}]))
    with pytest.raises(BakeoffError, match="flow 'a': cc 'nix' is not in this host's kernel; module tcp_nix"):
        netns.Namespaces().check(network(flows=[flow(cc="nix")]))


def test_a_missing_tool_is_named_with_its_package(monkeypatch):
    monkeypatch.setattr(netns, "missing_capabilities", list)
    find = host_programs.find
    monkeypatch.setattr(
        host_programs, "find", lambda name: None if name == "irtt" else find(name) or Path("/bin", name)
    )
    with pytest.raises(BakeoffError, match="irtt is not installed; install: irtt"):
        netns.Namespaces().check(by_tools("iperf3", "irtt"))


# The host's own kernel


@pytest.fixture
def host(alone, built_agent):
    if lacking := netns.missing_capabilities():
        pytest.skip(f"no {', '.join(lacking)}: the host's namespaces cannot be used")
    for name in ("ip", "tc"):
        if host_programs.find(name) is None:
            pytest.skip(f"{name} is not installed")
    yield
    assert list(Path("/run/netns").glob("bakeoff-*")) == []


def on_host(run: Run) -> Run:
    try:
        netns.Namespaces().check(run)
    except BakeoffError as error:
        pytest.skip(str(error))
    return run


def test_a_run_on_the_hosts_own_kernel(host, tmp_path):
    [done] = campaign.run([on_host(slowed())], tmp_path / "r", Execution(engine="netns", jobs=1)).runs
    assert done.error is None
    check_slowed(results.read(done.path))
    assert "ip netns del bakeoff-mid" in (done.path / "teardown.log").read_text()
    assert json.loads((done.path / "plan.json").read_text())["namespaces"] == [
        "bakeoff-cli",
        "bakeoff-mid",
        "bakeoff-srv",
    ]


def test_a_failed_setup_command_fails_the_run_and_cleans_up(host, tmp_path):
    run = on_host(network(interfaces=egress({"qdisc": "pfifo limit many"})))
    [done] = campaign.run([run], tmp_path / "r", Execution(engine="netns", jobs=1)).runs
    assert done.status == "failed"
    assert "setup: mid: tc qdisc add dev mid.srv root handle 1: pfifo limit many: exit code" in done.error
    assert not (done.path / "series.parquet").exists()


def test_ctrl_c_leaves_no_namespace(host, tmp_path):
    run = on_host(network(interfaces=egress(SHORT), duration_s=60.0))
    at_work = meanwhile(ctrl_c, once=lambda: any(tmp_path.rglob("agent.tsv")))
    with at_work, pytest.raises(KeyboardInterrupt):
        campaign.run([run], tmp_path / "r", Execution(engine="netns", jobs=1))
    assert list(tmp_path.rglob("run.json")) == []


@pytest.mark.parametrize(("tool", "duration_s"), [("iperf3", 4.0), ("netperf", 4.0), ("flent", 12.0)])
def test_tools_of_others_make_the_traffic(host, tmp_path, tool, duration_s):
    run = on_host(by_tools(tool, "irtt", duration_s))
    [done] = campaign.run([run], tmp_path / "r", Execution(engine="netns", jobs=1)).runs
    assert done.error is None
    result = results.read(done.path)
    of = dict(iter(result.series.group_by("kind", "name", "metric")))
    # Of what left the queue, 1448 of 1514 bytes are payload; a few are sent again or come after the tool has stopped.
    received_bytes = result.all_counters()["flows"]["a"]["received_bytes"]
    assert 0.9 < received_bytes / result.all_counters()["queues"]["mid>srv"]["sent_bytes"] <= 1448 / 1514
    # 20 Mbit/s for the whole time, and what the sender's buffer and the queue take up.
    assert 8 * received_bytes < 20e6 * (duration_s + 2) + 8 * 4194304
    received = of["flow", "a", "received"]["value"]
    assert received.is_sorted()
    assert received[0] == 0 < received[-1]
    assert result.all_counters()["flows"]["a"]["cc"] == "reno"
    # A sample for each interval, the 0 at the start, and the two ends of the window.
    assert 1 <= len(received) - len(of["flow", "a", "goodput"]) <= 3
    asked = result.all_counters()["probes"]["u"]
    assert asked["sent"] >= asked["received"] > 0
    assert of["probe", "u", "rtt"]["value"].min() > 0
    assert f"tools.flows: flows are made by {tool}" in result.record.effective
    kept = {"iperf3": "a.iperf3.json", "netperf": "a.netperf.txt", "flent": "*.flent.gz"}[tool]
    assert list(done.path.glob(kept))
    assert (done.path / "u.irtt.json").is_file()
