"""The queues of the repository's kernel modules: what the plan makes of them, and the queues in a kernel."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import polars as pl
import pytest

import bakeoff
from bakeoff import replay
from bakeoff.engines.kernel import check
from bakeoff.engines.kernel.boot import read_console
from bakeoff.engines.kernel.console import trouble
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.engines.lab import module_qdiscs, plan, tc_show
from bakeoff.scenario import Run
from kernel_boots import guest
from lab_runs import action, egress, in_virtual_time, network

CNQ = "cnq_codel_af bandwidth 20mbit sce-thresh 4"
SHAPED = {
    "qdisc": "htb default 1",
    "classes": [{"id": "1", "class": "rate 20mbit", "child": {"qdisc": "cnq_codel_af sce"}}],
}


def commands(run: Run, *offered: str) -> list[str]:
    """Those about queues at mid, without the node."""
    made = plan(run, qdiscs_offered=offered)
    lines = [command.line() for command in (*made.setup, *made.changes, *made.statistics)]
    return [line.removeprefix("mid: ") for line in lines if "mid.srv" in line and "qdisc" in line]


def has(kernel: BuiltKernel, *kinds: str) -> None:
    """Skips where the kernel was built without."""
    if lacking := set(kinds) - module_qdiscs.offered(kernel.modules):
        pytest.skip(f"kernel {kernel.name} was built without {min(lacking)}: 'make kernel' builds it in")


# The plan


def test_a_kernel_offers_what_its_modules_have():
    paths = [Path("/k/modules/sch_cnq_codel_af.ko"), Path("/k/modules/tcp_sce.ko")]
    assert module_qdiscs.offered(paths) == {"cnq_codel_af"}
    assert module_qdiscs.offered([]) == frozenset()


def test_the_agent_makes_changes_and_shows_them():
    slower = action(kind="qdisc-change", side="egress", handle="", qdisc="cnq_codel_af bandwidth 5mbit")
    run = network(interfaces=egress({"qdisc": CNQ}), changes=[slower])
    assert commands(run, "cnq_codel_af") == [
        f"bakeoff-agent qdisc add dev mid.srv root handle 1: {CNQ}",
        "tc -d qdisc show dev mid.srv",
        "bakeoff-agent qdisc show -s dev mid.srv",
        "bakeoff-agent qdisc change dev mid.srv root handle 1: cnq_codel_af bandwidth 5mbit",
        "tc -s -d qdisc show dev mid.srv",
        "bakeoff-agent qdisc show -s dev mid.srv",
    ]
    # A kernel with a tc that knows it, as the SCE project has them.
    assert not [line for line in commands(run) if line.startswith("bakeoff-agent")]


def test_tc_makes_what_stands_above_and_what_follows():
    fq = action(kind="qdisc-replace", side="egress", handle="1", qdisc={"qdisc": "fq_codel"})
    lines = commands(network(interfaces=egress(SHAPED), changes=[fq]), "cnq_codel_af")
    assert "tc qdisc add dev mid.srv root handle 1: htb default 1" in lines
    assert "bakeoff-agent qdisc add dev mid.srv parent 1:1 handle 2: cnq_codel_af sce" in lines
    assert "tc qdisc replace dev mid.srv parent 1:1 handle 3: fq_codel" in lines


def test_a_queue_with_a_kind_of_its_own_there_is_called_by_it():
    assert module_qdiscs.line("cake@sce sce flows", {"cake_sce"}) == "cake_sce sce flows"
    assert module_qdiscs.line("cake@sce sce flows", ()) == "cake sce flows"
    run = network(interfaces=egress({"qdisc": "cake@sce bandwidth 20mbit sce"}))
    assert commands(run, "cake_sce")[0] == (
        "bakeoff-agent qdisc add dev mid.srv root handle 1: cake_sce bandwidth 20mbit sce"
    )
    assert plan(run, qdiscs_offered=["cake_sce"]).notes == ()
    assert "'cake@sce' asked for: the kernel's own 'cake' is in effect" in plan(run).notes[0]


def test_what_the_agent_shows_is_read_as_tcs():
    text = (
        "qdisc cnq_codel_af 1: root refcnt 2 bandwidth 20Mbit rtt 100ms sce-thresh 4\n"
        " Sent 1514 bytes 1 pkt (dropped 3, overlimits 4 requeues 0)\n backlog 0b 0p requeues 0\n"
    )
    assert tc_show.configured(text, "root") == "cnq_codel_af bandwidth 20Mbit rtt 100ms sce-thresh 4"


# In a kernel

# BLUE, which draws random numbers, begins at four times the rtt: 4 s.
LOW_LATENCY = """
scenario: low
duration: 30s
network: {{path: [cli, mid, srv], rtt: 20ms, delay: {{at: mid}}, bottleneck: {{rate: 20mbit, qdisc: "{qdisc}"}}}}
hosts: {{sysctl: {{net.ipv4.tcp_ecn: 1}}, hz: 1000, offloads: false}}
flows: [{{name: usual, cc: cubic}}, {{name: low, cc: cubic, dscp: 4}}]
"""
QUEUES = (
    "cnq_codel_af bandwidth 10mbit rtt 1s sce-thresh 1024",
    "cnq_codel_af bandwidth 9mbit rtt 1s pppoe-llcsnap",
    "cnq_cobalt bandwidth 10mbit rtt 1s sce-thresh 1024",
    "lfq_cobalt bandwidth 9mbit rtt 1s sce-thresh 100 docsis",
    "twin_codel_af bandwidth 10mbit limit 50",
)


def test_they_do_in_a_kernel_what_they_do_in_the_simulator(real_kernel):
    has(real_kernel, *(words.split()[0] for words in QUEUES))
    # Four flows with one ECN field each, and a step of twice the rate.
    patterns = [replay.pattern(name, rate_bps=10_000_000) for name in ("ecn", "step")]
    jobs = [(replay.port(words), arrivals) for words in QUEUES for arrivals in patterns]
    # Alone and below htb.
    jobs.append((replay.port("cnq_codel_af sce"), patterns[0]))
    recorded = replay.record(jobs, kernel=real_kernel.name)
    for (port, arrivals), theirs in zip(jobs, recorded.replays, strict=True):
        assert not isinstance(theirs, str), theirs
        found = replay.compare(arrivals, replay.simulate(port, arrivals, hz=recorded.hz, like=theirs), theirs)
        assert found.identical, f"{port.qdisc}, {arrivals.name}: {found.first}"


def test_the_kernels_check_names_them(real_kernel):
    has(real_kernel, "cnq_codel_af")
    report = check.check_kernel(real_kernel)
    assert module_qdiscs.offered(real_kernel.modules) <= report.names("qdisc") & set(report.adds["qdisc"])


def test_a_run_counts_their_marks_and_changes_them(real_kernel, built_agent, tmp_path, monkeypatch):
    has(real_kernel, "cnq_codel_af")
    # The agent, which does this, may be a file of any name.
    monkeypatch.setenv("BAKEOFF_AGENT", str(shutil.copy(built_agent, tmp_path / "agent-new")))
    slower = action(kind="qdisc-change", side="egress", handle="", qdisc="cnq_codel_af bandwidth 5mbit")
    run = network(interfaces=egress({"qdisc": CNQ}), changes=[slower])
    run = run.model_copy(
        update={"nodes": [node.model_copy(update={"sysctls": {"net.ipv4.tcp_ecn": "1"}}) for node in run.nodes]}
    )
    result = in_virtual_time(f"kernel:{real_kernel.name}", run, tmp_path / "r")
    queue = result.all_counters()["queues"]["mid>srv"]
    assert queue["qdisc"] == "cnq_codel_af bandwidth 5Mbit rtt 100ms sce-thresh 4"
    # 20 Mbit/s for the first second, 5 Mbit/s for the other: 25 Mbit in all are 3.1 MB.
    assert 2_500_000 < queue["sent_bytes"] < 3_300_000
    assert queue["sce_marks"] > 0
    metrics = set(result.series.filter(name="mid>srv")["metric"])
    assert {"marks", "sce_marks", "sojourn"} <= metrics
    assert trouble(read_console(result.path / "console.log")) is None


# Attribute, value: sce.h's range is left by each. 5 is no attribute of theirs, and a rate has 64 bits.
REFUSED = {
    "cells of no kind": (4, 3),
    "overhead": (6, 257),
    "rtt of 0": (7, 0),
    "mpu": (14, 257),
    "sce-thresh": (20, 1025),
    "limit of 0": (21, 0),
    "an unknown one": (5, 1),
    "half a rate": (2, 1),
}


def counts(text):
    """Packets sent, dropped and queued of each qdisc that tc shows."""
    found = re.findall(r"Sent \d+ bytes (\d+) pkt \(dropped (\d+),.*\n backlog \S+ (\d+)p", text)
    return [tuple(map(int, one)) for one in found]


@pytest.mark.parametrize("kind", [kind for kind in module_qdiscs.modules() if kind != "cake_sce"])
def test_what_a_module_refuses_and_what_becomes_of_its_packets(real_kernel, tmp_path, kind):
    has(real_kernel, kind)
    [path] = [path for path in real_kernel.modules if path.stem == module_qdiscs.modules()[kind]]
    refused = [(number, value.to_bytes(4, "little").hex()) for number, value in REFUSED.values()]
    done = guest(real_kernel, tmp_path, do="qdisc", module=str(path), kind=kind, refused=refused, simulated_s=200.0)
    said = done["answer"]
    assert [what for what, answer in zip(REFUSED, said["refused"], strict=True) if not answer] == []
    assert said["refused"][list(REFUSED).index("overhead")].endswith("integer out of range")
    assert said["made"] == ["", "", ""]
    assert (said["in use"], said["unload"]) == ("Resource temporarily unavailable", "")
    # 3000 packets in a second at half of their rate: some stand, some were dropped, and htb knows of both.
    (_, dropped, queued), below = counts(said["standing"])
    assert below[1:] == (dropped, queued)
    assert dropped > 0
    assert queued > 500
    above, (sent, dropped, queued) = counts(said["drained"])
    assert (above[0], above[2]) == (sent, queued) == (3000 - dropped, 0)
    assert trouble(read_console(done["outcome"].console)) is None


@pytest.mark.parametrize("kind", ["twin_codel_af sce-thresh 4", "lfq_cobalt sce-thresh 8"])
def test_packets_of_low_latency_do_as_in_the_simulator(real_kernel, tmp_path, kind):
    """A flow with DSCP 4 beside one without: a queue of a fifth for it, and an equal share of 20 Mbit/s."""
    has(real_kernel, kind.split()[0])
    path = tmp_path / "low.yaml"
    path.write_text(LOW_LATENCY.format(qdisc=kind))
    rates = []
    for number, engine in enumerate(("sim", f"kernel:{real_kernel.name}")):
        [result] = bakeoff.run(str(path), engine=engine, out=tmp_path / str(number))
        late = result.series.filter(pl.col("metric") == "goodput", pl.col("time") > 10)
        rates.append([late.filter(name=name)["value"].mean() / 1e6 for name in ("usual", "low")])
    assert rates[1] == pytest.approx(rates[0], rel=0.15)
