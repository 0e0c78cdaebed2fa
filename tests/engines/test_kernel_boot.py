"""Kernels by name and path, and boots of a fake one: verdicts from the console, kills, Landlock, arguments."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bakeoff.engines.kernel import boot, registry
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.errors import BakeoffError
from kernel_boots import BANNER, boot_fake, executable, fake_linux, gone, needs_landlock

# Registry


def test_a_kernel_by_path_says_what_it_is(tmp_path):
    kernel = registry.get(fake_linux(tmp_path / "linux", ""))
    assert (kernel.release, kernel.options["HZ"]) == ("7.3.4", "1000")
    assert re.fullmatch("[0-9a-f]{64}", kernel.fingerprint)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("CONFIG_UML=y", "no virtual time (CONFIG_UML_TIME_TRAVEL_SUPPORT is not set)"),
        ("CONFIG_X86=y", "not a User-Mode-Linux kernel"),
        ("hello", "not a User-Mode-Linux kernel"),
    ],
)
def test_a_kernel_without_virtual_time_is_refused(tmp_path, options, message):
    with pytest.raises(BakeoffError, match=re.escape(message)):
        registry.get(fake_linux(tmp_path / "linux", "", options))


def test_an_unknown_kernel_is_refused_with_those_there_are(tmp_path, cache_folder):
    with pytest.raises(BakeoffError, match="no kernel 'mine'"):
        registry.get("mine")
    with pytest.raises(BakeoffError, match="no such kernel"):
        registry.get(tmp_path / "linux")
    (tmp_path / "text").write_text("x")
    with pytest.raises(BakeoffError, match="not executable"):
        registry.get(tmp_path / "text")


def test_a_damaged_kernel_is_named_and_not_listed(cache_folder):
    folder = cache_folder / "kernels" / "mine"
    folder.mkdir(parents=True)
    (folder / "build.json").write_text('{"format": 1}')
    with pytest.raises(BakeoffError, match=r"build\.json: damaged"):
        registry.get("mine")
    assert registry.list_kernels() == []


# Boots of a fake kernel: a shell script that says on the console what the real one would


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        (BANNER + "echo 'reboot: Power down'", "ok", ""),
        (
            BANNER + "echo 'Kernel panic - not syncing: Fatal exception in interrupt'; kill -ABRT $$",
            "panic",
            "kernel panic: Fatal exception in interrupt",
        ),
        (
            BANNER + "echo 'bakeoff-agent: no plan'; "
            "echo 'Kernel panic - not syncing: Attempted to kill init! exitcode=0x00000200'; kill -ABRT $$",
            "init-ended",
            "PID 1 (the agent) ended with exit code 2: 'bakeoff-agent: no plan'",
        ),
        (
            "echo 'Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b'; kill -ABRT $$",
            "init-ended",
            "PID 1 (the agent) was killed by SIGSEGV",
        ),
        (
            BANNER + "echo 'Kernel panic - not syncing: Requested init /x failed (error -8).'; kill -ABRT $$",
            "failed",
            "PID 1 cannot be executed in the guest: Requested init /x failed (error -8).",
        ),
        (
            BANNER + "echo 'write: No space left on device'; echo 'reboot: Power down'",
            "disk-full",
            "no space left where the results are written",
        ),
        (BANNER + "kill -BUS $$", "disk-full", "no space left for the guest's memory"),
        (BANNER + "exit 3", "failed", "the kernel process ended with exit code 3 without powering off"),
        (BANNER + "kill -SEGV $$", "failed", "the kernel process was killed by SIGSEGV"),
        (
            "echo 'ptrace: Operation not permitted'; exit 1",
            "not-started",
            "this machine does not let the kernel start; last line: 'ptrace: Operation not permitted'",
        ),
    ],
)
def test_how_a_boot_ended_is_read_from_the_console(tmp_path, body, status, reason):
    outcome = boot_fake(tmp_path, body)
    assert outcome.status == status
    # What follows is the console's last line.
    assert outcome.reason.startswith(reason)
    assert bool(outcome.reason) == (status != "ok")
    assert outcome.console == tmp_path / "results" / "console.log"
    assert outcome.console.stat().st_size > 0


def test_a_hang_is_killed_with_all_its_processes(tmp_path, monkeypatch):
    monkeypatch.setattr(boot, "_STARTUP_S", 2.0)
    # 4 s of wall time = 2 s + 1 simulated second × 2 s, in which a busy machine comes to its last line too
    outcome = boot_fake(tmp_path, BANNER + f"sleep 1000 & echo $! $$ > {tmp_path}/results/pids; echo waiting; wait")
    assert outcome.status == "hang"
    assert (
        "did not end within its budget of 4 s (60 s + 1 simulated seconds × 2 s); last console line: 'waiting'"
        in outcome.reason
    )
    for pid in map(int, (tmp_path / "results" / "pids").read_text().split()):
        assert gone(pid)


def test_a_kernel_that_checks_itself_has_ten_times_the_time(monkeypatch, tmp_path):
    monkeypatch.setattr(boot, "_STARTUP_S", -1.97)
    # 10 × (-1.97 s + 1 simulated second × 2 s) = 0.3 s
    outcome = boot_fake(tmp_path, BANNER + "sleep 1000", PROVE_LOCKING="y")
    assert "its budget of 0 s (60 s + 1 simulated seconds × 2 s, × 10 because it checks itself)" in outcome.reason


def test_a_flood_on_the_console_is_stopped(monkeypatch, tmp_path):
    monkeypatch.setattr(boot, "_CONSOLE_LIMIT", 1 << 20)
    outcome = boot_fake(tmp_path, BANNER + "yes flood | head -c 2000000; sleep 1000")
    assert (outcome.status, outcome.reason[:28]) == ("failed", "more than 1 MiB on the conso")


INTERRUPTED = """
import sys
from pathlib import Path
from bakeoff.engines.kernel import boot, registry
here = Path(sys.argv[1])
kernel = registry.get(here / "linux")
boot.boot(kernel, here / "script.json", results=here / "results", init=here / "init", simulated_s=100)
"""


def start_and_signal(folder: Path, number: int) -> list[int]:
    """Boot in a process of its own, signal it as soon as the fake kernel has written its process ids, return them."""
    (folder / "results").mkdir()
    (folder / "script.json").write_text("{}")
    executable(folder / "init", "#!/bin/sh\n")
    environment = os.environ | {"PYTHONPATH": str(Path(boot.__file__).parents[3])}
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(folder)], env=environment, stderr=subprocess.DEVNULL
    )
    written = folder / "results" / "pids"
    for _ in range(1000):
        if written.is_file() and written.read_text().endswith("\n"):
            break
        time.sleep(0.01)
    process.send_signal(number)
    process.wait(timeout=10)
    return [int(word) for word in written.read_text().split()]


def test_ctrl_c_leaves_no_process(tmp_path):
    fake_linux(tmp_path / "linux", f"sleep 1000 & echo $! $$ > {tmp_path}/results/pids; wait")
    for pid in start_and_signal(tmp_path, signal.SIGINT):
        assert gone(pid)


def test_the_kernel_dies_with_a_parent_that_was_killed(tmp_path):
    fake_linux(tmp_path / "linux", f"echo $$ > {tmp_path}/results/pids; exec sleep 1000")
    for pid in start_and_signal(tmp_path, signal.SIGKILL):
        assert gone(pid)


@needs_landlock
def test_landlock_keeps_the_kernel_process_to_its_folders(tmp_path):
    outcome = boot_fake(
        tmp_path,
        BANNER + f"echo in > {tmp_path}/results/inside; echo out > {tmp_path}/outside; rm {tmp_path}/script.json; "
        f"echo m > $TMPDIR/memory && echo 'memory is writable'; echo x > /dev/null && echo 'reboot: Power down'",
    )
    assert outcome.status == "ok"
    assert outcome.confined
    assert (tmp_path / "results" / "inside").read_text() == "in\n"
    assert not (tmp_path / "outside").exists()
    assert (tmp_path / "script.json").exists()
    assert "memory is writable" in outcome.console.read_text()


def test_the_command_line_is_the_same_for_every_run(tmp_path):
    kernel = BuiltKernel("x", tmp_path / "linux", "7.3.4", "", {})
    first = boot.command_line(kernel, memory="256M", uml_dir=tmp_path / "a")
    second = boot.command_line(kernel, memory="256M", uml_dir=tmp_path / "b")
    # uml_dir= is the one word that UML takes out before the guest sees its command line.
    assert [word for word in first if not word.startswith("uml_dir=")] == [
        word for word in second if not word.startswith("uml_dir=")
    ]
    assert {"time-travel=inf-cpu", "seccomp=auto", "ro", "rootfstype=hostfs"} <= set(first)
    old = BuiltKernel("x", tmp_path / "linux", "6.6.8", "", {})
    assert "seccomp=auto" not in boot.command_line(old, memory="256M", uml_dir=tmp_path)


@pytest.mark.parametrize(
    ("options", "clock", "left_out"),
    [
        ({"CRYPTO_JITTERENTROPY": "y"}, "virtual", True),
        ({"CRYPTO_JITTERENTROPY": "y"}, "real", False),
        ({"CRYPTO_JITTERENTROPY": "n"}, "virtual", False),
        ({}, "virtual", False),
    ],
)
def test_what_never_ends_in_virtual_time_is_left_out(tmp_path, options, clock, left_out):
    kernel = BuiltKernel("x", tmp_path / "linux", "6.12.95", "", options)
    words = boot.command_line(kernel, memory="256M", uml_dir=tmp_path, clock=clock)
    assert ("initcall_blacklist=jent_mod_init" in words[: words.index("--")]) == left_out


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"memory": "256"}, "memory '256': expected a number and K, M or G"),
        ({"results": Path("/nonexistent")}, "no such results folder"),
        ({"init": Path("/etc/passwd")}, "not executable"),
    ],
)
def test_bad_arguments_of_a_boot_are_refused(tmp_path, change, message):
    (tmp_path / "script.json").write_text("{}")
    arguments = {"results": tmp_path, "init": Path("/bin/sh"), "simulated_s": 1.0} | change
    kernel = registry.get(fake_linux(tmp_path / "linux", ""))
    with pytest.raises(BakeoffError, match=re.escape(message)):
        boot.boot(kernel, tmp_path / "script.json", **arguments)
