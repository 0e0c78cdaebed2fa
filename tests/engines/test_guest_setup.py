"""What PID 1 of a guest does with the commands of a set-up: one process for many, and a log as if each had its own."""

from __future__ import annotations

import json
from pathlib import Path

from bakeoff.engines.kernel import boot, host_programs
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.engines.kernel.virtual import _covered, _mount
from bakeoff.engines.lab import agent

GUEST = "/tmp/out"


def set_up(kernel: BuiltKernel, folder: Path, *lines: str) -> tuple[dict, str]:
    """Boots a guest with these commands, which begin with their namespace or '-'; its status and its log."""
    results = folder / "results"
    results.mkdir()
    steps = []
    for line in lines:
        netns, *argv = line.split()
        name = None if netns == "-" else netns
        steps.append({"node": "n", "netns": name, "argv": [str(host_programs.need(argv[0])), *argv[1:]]})
    plan = {"format": 1, "sample_interval_s": 1.0, "duration_s": 1.0, "output": f"{GUEST}/agent.tsv", "roles": []}
    script = folder / "script.json"
    mounts = [_mount(GUEST, results), *_covered([step["argv"][0] for step in steps])]
    told = {"mounts": mounts, "log": f"{GUEST}/setup.log", "setup": steps, "plan": plan, "status": f"{GUEST}/status"}
    script.write_text(json.dumps({"format": 1, **told}))
    outcome = boot.boot(kernel, script, results=results, init=agent.find(), simulated_s=10.0)
    assert outcome.status == "ok", outcome.reason
    log = (results / "setup.log").read_text()
    for program in {step["argv"][0] for step in steps}:
        log = log.replace(program, Path(program).name)
    return json.loads((results / "status").read_text()), log


def test_every_command_is_done_in_its_namespace_and_logged(real_kernel, tmp_path):
    status, log = set_up(
        real_kernel,
        tmp_path,
        "- ip netns add a",
        "- sysctl -w net.ipv4.tcp_mem=1000",
        "a sysctl -w net.ipv4.ip_default_ttl=77",
        "a ip link add x type dummy",
        "a ip link set dev x txqueuelen 5",
        "a ip addr add 10.1.2.3/24 dev x",
        "a tc qdisc add dev x root handle 1: htb default 1",
        "a tc class add dev x parent 1: classid 1:1 htb rate 8mbit",
        "a ip -br addr show dev x",
        "a tc class show dev x",
        "a sysctl net.ipv4.ip_default_ttl",
        "- sysctl net.ipv4.ip_default_ttl",
    )
    assert status["status"] == "ok", status
    printed = [line for line in log.splitlines() if not line.startswith("+ ")]
    assert [line for line in log.splitlines() if line.startswith("+ ")][3:8] == [
        "+ n: ip link add x type dummy",
        "+ n: ip link set dev x txqueuelen 5",
        "+ n: ip addr add 10.1.2.3/24 dev x",
        "+ n: tc qdisc add dev x root handle 1: htb default 1",
        "+ n: tc class add dev x parent 1: classid 1:1 htb rate 8mbit",
    ]
    assert "10.1.2.3/24" in log
    assert "class htb 1:1 root prio 0 rate 8Mbit" in log
    assert printed[:2] == ["net.ipv4.tcp_mem = 1000", "net.ipv4.ip_default_ttl = 77"]
    # 64 is Linux's own.
    assert printed[-2:] == ["net.ipv4.ip_default_ttl = 77", "net.ipv4.ip_default_ttl = 64"]


def test_the_command_that_fails_is_named(real_kernel, tmp_path):
    status, log = set_up(
        real_kernel,
        tmp_path,
        "- ip link add x type dummy",
        "- ip link add y type no-such-kind",
        "- ip link add z type dummy",
    )
    assert (status["status"], status["phase"]) == ("failed", "setup")
    assert "n: ip link add y type no-such-kind: exit code " in status["error"].replace(
        str(host_programs.need("ip")), "ip"
    )
    assert "Unknown device type" in status["error"]
    assert [line.split(":")[0] for line in log.splitlines()] == ["+ n", "+ n", "! n"]


def test_a_sysctl_that_the_kernel_refuses_fails_the_set_up(real_kernel, tmp_path):
    status, _ = set_up(real_kernel, tmp_path, "- sysctl -e -w net.no.such.key=1", "- sysctl -w net.no.such.key=1")
    assert status["phase"] == "setup"
    assert "net.no.such.key=1: exit code 1" in status["error"]
