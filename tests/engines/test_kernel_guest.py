"""A real kernel with kernel_guest.py as its PID 1: delays, timers, read-only files, seeds, ends and hangs.

Skipped where no kernel was built (BAKEOFF_TEST_KERNEL names another) and where the sandbox does not let one start.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from bakeoff.engines.kernel import boot
from kernel_boots import GUEST, executable, gone, guest


@pytest.mark.parametrize(("nodes", "delay_ms"), [(3, None), (3, 0), (3, 1), (3, 150), (16, 10)])
def test_an_idle_path_shows_its_configured_delay(real_kernel, tmp_path, nodes, delay_ms):
    words = "" if delay_ms is None else f"{delay_ms}ms"
    answer = guest(real_kernel, tmp_path, do="ping", nodes=nodes, delay=words)
    assert answer["outcome"].status == "ok"
    # netem at both ports of the middle delays each direction once.
    expected_ns = 2 * (delay_ms or 0) * 1_000_000
    assert len(answer["answer"]) == 5
    for rtt_ns in answer["answer"]:
        assert 0 <= rtt_ns - expected_ns <= 10_000


def test_htb_computes_its_burst_for_high_resolution_timers(real_kernel, tmp_path):
    answer = guest(real_kernel, tmp_path, do="htb")
    # With nanosecond timers tc takes one packet (1600 B); with a coarse clock it would be 7850 B.
    assert "rate 50Mbit ceil 50Mbit burst 1600b cburst 1600b" in answer["answer"]


def test_the_guest_cannot_write_host_files(real_kernel, tmp_path):
    # The guest has a tmpfs of its own on /tmp, but sees the host's /var/tmp.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as outside:
        (Path(outside) / "marker").write_text("host")
        answer = guest(real_kernel, tmp_path / "run", do="write", outside=outside)
        assert answer["answer"][0] == "OSError: Read-only file system"
        if answer["outcome"].confined:
            # The host's kernel refuses what the guest's own kernel would allow.
            assert answer["answer"][1] == "PermissionError: Permission denied"
            assert [path.name for path in Path(outside).iterdir()] == ["marker"]


def test_the_same_seed_gives_the_same_random_numbers(real_kernel, tmp_path):
    seeds = [5, 5, 6]
    with ThreadPoolExecutor(2) as pool:
        answers = list(
            pool.map(lambda job: guest(real_kernel, tmp_path / str(job[0]), do="random", seed=job[1]), enumerate(seeds))
        )
    if not answers[0]["outcome"].seeded:
        pytest.skip("no C compiler for kernel/seed.c, or a statically linked kernel")
    first, again, other = (answer["answer"] for answer in answers)
    assert first == again
    assert first != other


def test_an_agent_that_ends_is_reported(real_kernel, tmp_path):
    outcome = guest(real_kernel, tmp_path, do="exit", code=3)["outcome"]
    assert (outcome.status, outcome.reason) == ("init-ended", "PID 1 (the agent) ended with exit code 3")


def test_a_guest_that_spins_is_killed(real_kernel, tmp_path, monkeypatch):
    monkeypatch.setattr(boot, "_STARTUP_S", 3.0)
    begun: list[subprocess.Popen] = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *words, **more: begun.append(popen(*words, **more)) or begun[-1])
    outcome = guest(real_kernel, tmp_path, do="hang", simulated_s=0)["outcome"]
    assert outcome.status == "hang"
    # The kernel leads a session of its own, in which its stubs and the guest's programs are.
    sessions = {process.pid for process in begun}
    assert sessions
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            session = int(path.read_text().rsplit(")", 1)[1].split()[3])
            assert session not in sessions or gone(int(path.parent.name))


RUNS_ITSELF = (
    "import hashlib, subprocess, sys; hashlib.file_digest; subprocess.run([sys.executable, '-c', ''], check=True)"
)
AS_NOBODY = """
import sys
from pathlib import Path
from bakeoff.engines.kernel import boot, registry
here = Path(sys.argv[1])
kernel = registry.get(here / "linux")
outcome = boot.boot(kernel, here / "script.json", results=here / "home", init=here / "init", simulated_s=20)
print(outcome.status, outcome.exit_code)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: the other tests are unprivileged already")
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="setpriv is not installed")
def test_no_root_is_needed(real_kernel):
    """As user 65534 without capabilities, in a folder that this user can read, with one that it can write."""
    user = [
        "setpriv",
        "--reuid",
        "65534",
        "--regid",
        "65534",
        "--clear-groups",
        "--inh-caps=-all",
        "--bounding-set=-all",
    ]
    pythons = [
        python
        for python in (sys.executable, "/usr/bin/python3")
        if subprocess.run([*user, python, "-c", RUNS_ITSELF], capture_output=True, check=False).returncode == 0
    ]
    if not pythons:
        pytest.skip("no Python 3.11 that another user can execute")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copy(real_kernel.binary, folder / "linux")
        for part in ("python", "kernel"):
            shutil.copytree(
                Path(__file__).parents[2] / part, folder / part, ignore=shutil.ignore_patterns("__pycache__")
            )
        home = folder / "home"
        home.mkdir()
        home.chmod(0o777)
        cache = folder / "cache"
        cache.mkdir()
        cache.chmod(0o777)
        script = {
            "results": str(home),
            "path": "/usr/sbin:/usr/bin:/sbin:/bin",
            "do": "ping",
            "nodes": 3,
            "delay": "10ms",
        }
        (folder / "script.json").write_text(json.dumps(script))
        executable(folder / "init", f"#!{pythons[0]} -IS\n{GUEST.read_text()}")
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": f"{folder}/python",
            "XDG_CACHE_HOME": str(cache),
        }
        done = subprocess.run(
            [*user, pythons[0], "-B", "-c", AS_NOBODY, str(folder)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stdout.split() == ["ok", "0"], done.stderr
        rtts_ns = json.loads((home / "answer.json").read_text())["answer"]
        # 2 × 10 ms
        assert all(20_000_000 <= rtt_ns <= 20_010_000 for rtt_ns in rtts_ns)
