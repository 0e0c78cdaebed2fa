"""The queues of the repository's kernel modules: what the plan makes of them, and the queues in a kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from bakeoff import replay
from bakeoff.engines.kernel import check
from bakeoff.engines.kernel.boot import read_console
from bakeoff.engines.kernel.console import trouble
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.engines.lab import module_qdiscs, plan, tc_show
from bakeoff.scenario import Run
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
        "  flows 1 sparse 1 ecn_mark 5 sce_marks 6 drop_overlimit 1\n"
    )
    [shown] = tc_show.qdiscs(text)
    assert (shown.at, shown.words) == ("root", "cnq_codel_af bandwidth 20Mbit rtt 100ms sce-thresh 4")
    assert (shown.marks(), shown.sce_marks()) == (5, 6)
    assert (shown.drops()["aqm"], shown.drops()["overlimit"]) == (2, 1)


# In a kernel

# BLUE, which draws random numbers, begins at four times the rtt: 4 s.
QUEUES = (
    "cnq_codel_af bandwidth 10mbit rtt 1s sce-thresh 1024",
    "cnq_codel_af bandwidth 9mbit rtt 1s pppoe-llcsnap",
)


def test_they_do_in_a_kernel_what_they_do_in_the_simulator(real_kernel):
    has(real_kernel, *(words.split()[0] for words in QUEUES))
    # Bursts and a step of twice the rate: marks of both kinds.
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


def test_a_run_counts_their_marks_and_changes_them(real_kernel, tmp_path):
    has(real_kernel, "cnq_codel_af")
    slower = action(kind="qdisc-change", side="egress", handle="", qdisc="cnq_codel_af bandwidth 5mbit")
    run = network(interfaces=egress({"qdisc": CNQ}), changes=[slower])
    run = run.model_copy(
        update={"nodes": [node.model_copy(update={"sysctls": {"net.ipv4.tcp_ecn": "1"}}) for node in run.nodes]}
    )
    result = in_virtual_time(f"kernel:{real_kernel.name}", run, tmp_path / "r")
    queue = result.counters["queues"]["mid>srv"]
    assert queue["qdisc"] == "cnq_codel_af bandwidth 5Mbit rtt 100ms sce-thresh 4"
    # 20 Mbit/s for the first second, 5 Mbit/s for the other: 25 Mbit in all are 3.1 MB.
    assert 2_500_000 < queue["sent_bytes"] < 3_300_000
    assert queue["sce_marks"] > 0
    metrics = set(result.series.filter(name="mid>srv")["metric"])
    assert {"marks", "sce_marks", "sojourn"} <= metrics
    assert trouble(read_console(result.path / "console.log")) is None
