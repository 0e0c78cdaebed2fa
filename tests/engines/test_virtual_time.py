"""Engine `kernel`: which kernel, how a boot is judged, and runs of real Linux in virtual time (where one was built)."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from bakeoff import campaign, engines
from bakeoff.campaign import Execution
from bakeoff.cli.options import with_kernel
from bakeoff.engines.kernel import virtual
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.engines.kernel.stall import stall_reason
from bakeoff.engines.lab import plan
from bakeoff.errors import BakeoffError
from bakeoff.scenario import Run
from lab_runs import HTB, action, ecn_nodes, egress, flow, in_virtual_time, network, nodes, probe

# Engines


def test_an_engine_may_come_in_several_makes():
    assert engines.get("kernel:other") == virtual.VirtualTime("other")
    with pytest.raises(BakeoffError, match="unknown variant 'other' of the engine 'sim'; expected exact"):
        engines.get("sim:other")
    assert with_kernel("kernel", "linux-7.3.4") == "kernel:linux-7.3.4"
    assert with_kernel("kernel", "./linux") == f"kernel:{Path.cwd() / 'linux'}"
    assert with_kernel("sim", None) == "sim"
    with pytest.raises(BakeoffError, match="--kernel: only valid with"):
        with_kernel("sim", "x")


def test_without_a_kernel_the_engine_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(BakeoffError, match="bakeoff kernel build --source DIR"):
        virtual.VirtualTime().check(network())
    with pytest.raises(BakeoffError, match="no kernel 'nix'"):
        virtual.VirtualTime("nix").check(network())


def test_a_kernel_that_can_looks_for_lost_memory_when_the_run_is_over(monkeypatch, tmp_path):
    monkeypatch.setattr(virtual.host_programs, "need", Path)
    (tmp_path / "linux").write_bytes(b"")
    looked = []
    for options in ({}, {"DEBUG_KMEMLEAK": "y"}):
        engine = virtual.VirtualTime("made")
        engine.__dict__["kernel"] = BuiltKernel("made", tmp_path / "linux", "7.3.4", "0", options)
        last = engine._script(network(), engine.plan(network()), tmp_path)["teardown"][-1]
        looked.append("kmemleak" in " ".join(last["argv"]))
    assert looked == [False, True]


@pytest.mark.parametrize(
    ("told", "status", "message"),
    [
        (
            '{"status": "failed", "phase": "setup", "error": "mid: tc: exit code 2: Error"}',
            "ok",
            "setup: mid: tc: exit",
        ),
        (None, "ok", "no status from the agent"),
        (None, "panic", "kernel: panic: why"),
        ('{"status": "ok", "phase": null, "error": null}', "hang", "kernel: hang: why"),
        # A kernel of somebody else writes what it likes.
        ("[]", "ok", "agent-status.json: Expected `object`, got `array`"),
        ("{}", "ok", "agent-status.json: Object missing required field `status`"),
        ('{"status": "fine"}', "ok", "agent-status.json: Invalid enum value 'fine'"),
        ('{"status": "failed", "phase": {}}', "ok", r"agent-status.json: Expected `str \| null`, got `object`"),
        ("[" * 100_000, "ok", "agent-status.json: "),
        ("no JSON", "ok", "agent-status.json: JSON is malformed"),
        ('"' + "x" * (1 << 20) + '"', "ok", "agent-status.json: .*1,?048,?576"),
    ],
)
def test_a_boot_that_did_not_end_well_fails_the_run(tmp_path, told, status, message):
    if told is not None:
        (tmp_path / "agent-status.json").write_text(told)
    with pytest.raises(RuntimeError, match=message):
        virtual.judge(tmp_path, status, "why", [])


def test_what_lies_below_the_guests_own_tmp_is_mounted_again(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "/tmp/cache")
    mounts = virtual._covered(["/usr/sbin/ip", "/tmp/cache/bakeoff/programs/bin/tc"])
    assert [mount["target"] for mount in mounts] == ["/tmp/cache/bakeoff", "/tmp/cache/bakeoff/programs/bin"]
    assert all(mount["target"] == mount["options"] for mount in mounts)
    assert virtual._covered(["/usr/sbin/ip"]) == []


# Real Linux in virtual time


def test_a_flow_that_nothing_slows_down_would_stop_time():
    message = "flows[0]: 'a' is bulk and nothing in the network has a rate or a delay"
    for tree in ({"qdisc": "fq_codel target 5ms"}, {"qdisc": "netem delay 0ms limit 9"}, {"qdisc": "netem rate 0"}):
        assert str(stall_reason(network(interfaces=egress(tree)))).startswith(message)
    for tree in (HTB, {"qdisc": "cake bandwidth 5mbit"}, {"qdisc": "fq", "child": {"qdisc": "netem delay 0.1ms"}}):
        assert stall_reason(network(interfaces=egress(tree))) is None
    assert stall_reason(network(flows=[flow(max_pacing_rate_bps=1000)])) is None
    assert stall_reason(network(flows=[flow(source={"kind": "bytes", "bytes": 9})])) is None


def delayed(delay: str, **changes: object) -> Run:
    queue = {"qdisc": f"netem delay {delay} limit 100000"}
    ends = [{"node": "mid", "peer": peer, "ingress": queue, "egress": HTB} for peer in ("cli", "srv")]
    usual = {"interfaces": ends, "duration_s": 4.0, "probes": [probe(every_s=0.1, stop_s=4.0)]}
    return network(**(usual | changes))


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
    assert "net.ipv4.tcp_mem = 49152 49152 49152" in log
    assert sorted(path.name for path in result.path.iterdir()) == [
        "console.log", "counters.json", "plan.json", "run.json", "series.parquet", "setup.log", "summary.json",
        "teardown.log",
    ]  # fmt: skip
    assert "kernel fingerprint" in result.record.versions


def test_the_same_seed_gives_the_same_bytes(kernel, tmp_path):
    # Which packets are lost is drawn by the kernel: of 20 Mbit/s in 2 s about 33.
    run = delayed("5ms loss 1%", duration_s=2.0, probes=[probe(every_s=0.1, stop_s=2.0)])
    again = [in_virtual_time(kernel, run, tmp_path / str(i)).record.digest for i in (1, 2)]
    assert again[0] == again[1]
    other = in_virtual_time(kernel, run.model_copy(update={"seed": 2}), tmp_path / "3").record.digest
    assert other != again[0]


def test_a_queue_is_followed_to_another_place(kernel, tmp_path):
    slower = {**HTB, "classes": [{"id": "1", "class": "rate 5mbit", "child": {"qdisc": "pfifo limit 50"}}]}
    change = action(kind="qdisc-replace", side="egress", handle="", qdisc=slower)
    run = network(interfaces=egress({"qdisc": "tbf rate 20mbit burst 5kb limit 75700"}), changes=[change])
    result = in_virtual_time(kernel, run, tmp_path / "r")
    sent = result.series.filter((pl.col("name") == "mid>srv") & (pl.col("metric") == "sent"))
    before, after = (sent.filter(pl.col("time").is_between(*times))["value"] for times in ((0.5, 0.98), (1.5, 1.98)))
    # 0.45 s of 20 Mbit/s are 1,125,000 bytes and 0.45 s of 5 Mbit/s 281,250; give or take two packets.
    assert abs(before[-1] - before[0] - 1_125_000) < 3028
    assert abs(after[-1] - after[0] - 281_250) < 3028
    # As in the simulator: the counters are those of the queue that stands at the end.
    counted = result.all_counters()["queues"]["mid>srv"]
    assert counted["qdisc"] == "pfifo limit 50p"
    assert 0 < counted["sent_bytes"] < 5e6 / 8 * 1.05 + 50 * 1514


def test_marks_are_rewritten_on_the_way(kernel, tmp_path):
    clear = {"match": {"proto": "tcp", "dscp": 4, "syn": True}, "clear_syn_ecn": True}
    bleach = {"match": {"proto": "tcp", "dscp": 5}, "set_dscp": 0, "set_ecn": "not-ect"}
    ends = [
        {"node": "mid", "peer": "cli", "mangle": [clear, bleach]},
        {"node": "mid", "peer": "srv", "egress": HTB},
    ]
    flows = [flow(name=name, dscp=dscp, stop_s=4.0) for name, dscp in (("on", 0), ("off", 4), ("bleached", 5))]
    run = network(nodes=ecn_nodes(), interfaces=ends, flows=flows, duration_s=4.0, captures=["mid>srv"])
    result = in_virtual_time(kernel, run, tmp_path / "r")
    flows = result.all_counters()["flows"]
    assert [flows[name]["ecn"] for name in ("on", "off", "bleached")] == ["accecn", "off", "accecn"]
    # What cannot be marked is dropped.
    assert flows["on"]["delivered_ce"] > 0
    assert flows["bleached"]["delivered_ce"] == 0
    assert flows["bleached"]["retransmits"] > 0
    assert (result.path / "mid-to-srv.pcapng.gz").stat().st_size > 1000
    assert not list(result.path.glob("*.pcap"))


def test_an_unknown_qdisc_or_congestion_control_is_refused_by_name(kernel, tmp_path):
    for changes, message in (
        (
            {"interfaces": egress({"qdisc": "deltic_boroshne bandwidth 20mbit"})},
            "interfaces[0].egress.qdisc: 'deltic_boroshne'",
        ),
        ({"interfaces": egress(HTB), "flows": [flow(cc="nix@1")]}, "flows[0].cc: 'nix' is not in kernel"),
    ):
        with pytest.raises(BakeoffError) as refused:
            campaign.run([network(**changes)], tmp_path / "r", Execution(engine=kernel, jobs=1))
        assert message in str(refused.value)
    assert not (tmp_path / "r").exists()


def test_words_that_tc_does_not_know_fail_the_run(kernel, tmp_path):
    run = network(interfaces=egress(HTB | {"qdisc": "htb defalt 1"}))
    [done] = campaign.run([run], tmp_path / "r", Execution(engine=kernel, jobs=1)).runs
    assert done.status == "failed"
    assert "htb defalt 1: exit code" in done.error
    assert done.error.startswith("setup: mid: ")


def test_an_agent_that_is_lost_fails_the_run(kernel, tmp_path, monkeypatch):
    lost = tmp_path / "agent"
    lost.write_text("#!/bin/sh\nexit 3\n")
    lost.chmod(0o755)
    monkeypatch.setenv("BAKEOFF_AGENT", str(lost))
    [done] = campaign.run([network(interfaces=egress(HTB))], tmp_path / "r", Execution(engine=kernel, jobs=1)).runs
    assert done.status == "failed"
    assert "kernel: init-ended: PID 1 (the agent) ended with exit code 3" in done.error
    assert (done.path / "console.log").exists()


def test_notes_of_what_differs_stand_in_run_json(kernel, tmp_path):
    run = network(nodes=[node | {"hz": 250} for node in nodes()], interfaces=egress(HTB), flows=[flow(cc="cubic@7.3")])
    result = in_virtual_time(kernel, run, tmp_path / "r")
    assert [*result.record.effective] == [
        "flows[0].cc: 'cubic@7.3' asked for: the kernel's own 'cubic' is in effect",
        "nodes[].hz: 250 asked for: the kernel's HZ is 1000",
    ]


def test_the_plan_is_what_dry_run_shows(kernel):
    text = engines.get(kernel).check(network(interfaces=egress(HTB)))
    assert "mid: tc class add dev mid.srv parent 1: classid 1:1 htb rate 20mbit" in text.splitlines()
    # The least guest, 512 MiB: half of what is left beyond 128 MiB, in pages of 4096 bytes, for TCP.
    assert text == replace(plan(network(interfaces=egress(HTB)), tcp_pages=49_152), notes=()).text()


def test_a_run_that_comes_to_the_limit_of_tcps_memory_fails(kernel, tmp_path):
    # A processor takes 1 MiB before the limit is looked at; a sender fills 4 MiB at once. In pages of 4096 bytes.
    small = {"net.ipv4.tcp_mem": "300 300 300", "net.ipv4.tcp_wmem": "4096 4194304 4194304"}
    run = network(interfaces=egress(HTB), nodes=nodes(cli=small), duration_s=1.0, window_s=[0.5, 1.0])
    [done] = campaign.run([run], tmp_path, Execution(engine=kernel, jobs=1)).runs
    assert "cli: TcpExt TCPMemoryPressures" in str(done.error)
    assert "TCP came to the limit of its memory (net.ipv4.tcp_mem)" in str(done.error)


@pytest.mark.parametrize("real", [True, False])
def test_a_link_loses_in_the_direction_that_is_named(kernel, tmp_path, real):
    # 2000 datagrams each way, of what cli sends one in ten is lost: 200, with a standard deviation of
    # sqrt(2000 * 0.1 * 0.9) = 13.4; four of them are 54. The last ones need not have arrived.
    source = {"kind": "rate", "rate_bps": 4_000_000, "size": 1000}
    flows = [
        flow(name="there", transport="udp", source=source, stop_s=4.0),
        flow(name="back", transport="udp", source=source, stop_s=4.0, **{"from": "srv", "to": "cli"}),
    ]
    links = [{"ends": ["cli", "mid"], "delay_s": 0.001, "loss": {"cli": 0.1}}, {"ends": ["mid", "srv"]}]
    changes = {"links": links, "flows": flows, "interfaces": egress(HTB), "duration_s": 4.0, "window_s": [0.0, 4.0]}
    result = in_virtual_time(kernel if real else "sim", network(**changes), tmp_path / "r")
    lost = {
        name: result.series.filter((pl.col("name") == name) & (pl.col("metric") == "missing")).height
        for name in ("there", "back")
    }
    arrived = {name: result.all_counters()["flows"][name]["received_bytes"] // 1000 for name in lost}
    assert abs(lost["there"] - 200) < 54
    assert lost["back"] == 0
    assert 1998 <= arrived["back"] <= 2000
    assert 2000 - lost["there"] - 2 <= arrived["there"] <= 2000 - lost["there"]
    if real:
        drops = {name: queue["drops"]["loss"] for name, queue in result.all_counters()["queues"].items()}
        assert drops["mid<cli"] == lost["there"]
        assert sum(drops.values()) == lost["there"]


def test_a_queue_in_a_bridge_does_not_hold_its_sender_back(kernel, tmp_path):
    # The only delay is behind the bottleneck, where nothing would let go of what waits in it: without help Reno has
    # 18 packets under way, the 13 of 5 Mbit/s and 30 ms and what Linux lets a host's own queue have. With it the queue
    # gets as long as it may be: 50 packets of 1514 bytes take 121 ms.
    tree = {
        "qdisc": "htb default 1",
        "classes": [{"id": "1", "class": "rate 5mbit", "child": {"qdisc": "pfifo limit 50"}}],
    }
    ends = [
        {"node": "mid", "peer": "srv", "egress": tree},
        {"node": "srv", "peer": "mid", "ingress": {"qdisc": "netem delay 30ms limit 1000000"}},
    ]
    run = network(interfaces=ends, flows=[flow(cc="reno", stop_s=6.0)], duration_s=6.0, window_s=[1.0, 6.0])
    result = in_virtual_time(kernel, run, tmp_path / "r")
    longest = result.series.filter(pl.col("metric") == "qlen")["value"].max()
    assert longest == 50
    assert result.all_counters()["queues"]["mid>srv"]["drops"]["overlimit"] > 0


def test_datagrams_leave_on_time_and_the_hosts_queue_decides_what_is_dropped(kernel, tmp_path):
    child = {"qdisc": "pfifo limit 1000"}
    tree = {"qdisc": "htb default 1", "classes": [{"id": "1", "class": "rate 10mbit", "child": child}]}
    source = {"kind": "rate", "rate_bps": 20_000_000, "size": 1200}
    run = network(
        interfaces=[{"node": "cli", "peer": "mid", "egress": tree}],
        flows=[flow(transport="udp", source=source, stop_s=1.0)], duration_s=1.0, window_s=[0.0, 1.0],
    )  # fmt: skip
    result = in_virtual_time(kernel, run, tmp_path / "r")
    counters = result.all_counters()
    # One every 0.48 ms, the first at 0: none waits for the 212,992 bytes that its socket would have.
    assert counters["flows"]["a"]["sent_packets"] == 2084
    # Of 1242 bytes each 1006 leave in a second, 1000 wait: 78 are too many, give or take the first and the last.
    assert 74 <= counters["queues"]["cli>mid"]["drops"]["overlimit"] <= 82
    # Number n leaves at 0.48 n ms, and gets through at 0.9936 n ms or, by what the shaper saves up, two packets sooner.
    delay = result.series.filter(pl.col("metric") == "delay")
    assert delay.height == counters["flows"]["a"]["received_bytes"] // 1200
    waited = delay["value"] - (0.9936 - 0.48) / 0.48 * delay["time"]
    assert waited.min() > -2 * 0.0009936
    assert waited.max() < 0.0009936
    # The rest still waits: who asks at the end does not know what becomes of it.
    assert result.series.filter(pl.col("metric") == "missing").is_empty()
