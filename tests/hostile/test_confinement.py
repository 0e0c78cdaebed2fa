"""What a kernel's process and a guest can do to the host: nothing but what docs/kernel-engine.md says is left.

A program takes the kernel's place and tries; beside it, the same program runs unconfined, so that each attempt is known
to be one that this machine would let happen.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from bakeoff.engines.kernel import boot, launch
from bakeoff.engines.kernel.virtual import VirtualTime
from bakeoff.errors import BakeoffError
from kernel_boots import BANNER, HAS_LANDLOCK, POWER_OFF, boot_fake, fake_linux, guest, needs_landlock
from scenario_texts import duel

PROGRAM = Path(__file__).with_name("confined.py")
LIBC = ctypes.CDLL(None, use_errno=True)
confined = pytest.mark.skipif(
    bool(boot.confinement()), reason=f"this host cannot withhold everything: {boot.confinement()}"
)


@pytest.fixture
def targets(tmp_path):
    """A file, sockets and a process of the host, as the program wants to know them."""
    folder = tmp_path / "home"
    folder.mkdir()
    (folder / "secret").write_text("private")
    for results in ("free", "results"):
        (tmp_path / results).mkdir()
    name = f"bakeoff-test-{os.getpid()}-{tmp_path.name}"
    process = subprocess.Popen(["sleep", "1000"])
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as unix,
        socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as abstract,
        tempfile.TemporaryDirectory() as short,
    ):
        unix.bind(f"{short}/s")
        abstract.bind(f"\0{name}")
        unix.listen()
        abstract.listen()
        yield {
            "secret": str(folder / "secret"),
            "folder": str(folder),
            "results": str(tmp_path / "free"),
            "tcp": tcp.getsockname()[1],
            "path": f"{short}/s",
            "abstract": name,
            "process": process.pid,
        }
    process.kill()
    process.wait()


@confined
def test_a_kernels_process_can_do_nothing_to_the_host(targets, tmp_path):
    free = tmp_path / "free.json"
    asked = tmp_path / "free-targets.json"
    asked.write_text(json.dumps(targets))
    subprocess.run([sys.executable, PROGRAM, asked, free], check=True)
    unconfined = json.loads(free.read_text())
    # Where this machine refuses something to everybody (a sandbox), nothing can be said about it.
    possible = {name for name, said in unconfined.items() if said == "done"}
    assert possible >= {
        "read",
        "list",
        "write",
        "chmod",
        "utime",
        "tcp",
        "unix",
        "abstract",
        "signal",
        "leave the group",
    }

    secret = Path(targets["secret"])
    secret.chmod(0o600)
    secret.write_text("private")
    os.utime(secret, (5, 5))
    asked = tmp_path / "targets.json"
    asked.write_text(json.dumps(targets | {"results": str(tmp_path / "results")}))
    command = f"{sys.executable} {PROGRAM} {asked} {tmp_path}/results/answer.json"
    outcome = boot_fake(tmp_path, BANNER + command + POWER_OFF, readable=[*boot.python_files(), PROGRAM, asked])
    assert outcome.status == "ok", outcome.reason
    answer = json.loads((tmp_path / "results" / "answer.json").read_text())
    assert {name: said for name, said in answer.items() if said == "done"} == {}
    assert set(answer.values()) <= {"EPERM", "EACCES", "EXDEV"}
    assert (secret.read_text(), secret.stat().st_mode & 0o777, secret.stat().st_mtime) == ("private", 0o600, 5)
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["answer.json", "console.log"]


@needs_landlock
def test_a_guest_reads_system_files_and_its_own_and_no_others(real_kernel, tmp_path):
    # The guest has a tmpfs of its own on /tmp, but sees the host's /var/tmp.
    with tempfile.TemporaryDirectory(dir="/var/tmp") as home:
        secret = Path(home) / "secret"
        secret.write_text("private")
        secret.chmod(0o600)
        files = [str(secret), "/etc/shadow", "/etc/passwd", "/usr/bin/env"]
        answer = guest(real_kernel, tmp_path / "run", do="reach", files=files)["answer"]
        refused = "Permission denied"
        assert answer[:4] == [refused, refused, "done", "done"]
        # The folder listed, chmod and utime, through a mount that the guest's kernel takes for writable.
        assert answer[4] == refused
        if launch.has_seccomp(LIBC):
            assert answer[5:] == ["Operation not permitted"] * 2
        assert secret.stat().st_mode & 0o777 == 0o600
        assert secret.stat().st_mtime > 1


@pytest.fixture
def foreign(tmp_path):
    """A kernel of somebody else that would leave a trace, with all that a duel of cubic and reno asks for."""
    options = "CONFIG_UML=y\nCONFIG_UML_TIME_TRAVEL_SUPPORT=y\nCONFIG_HZ=1000\nCONFIG_TCP_CONG_CUBIC=y\n" + "\n".join(
        f"CONFIG_NET_SCH_{kind}=y" for kind in ("FQ_CODEL", "FIFO", "HTB", "NETEM", "INGRESS")
    )
    return fake_linux(tmp_path / "linux", f"echo executed > {tmp_path}/executed", options)


def test_a_dry_run_executes_no_foreign_kernel(foreign, tmp_path):
    told = VirtualTime(str(foreign)).check(duel("cubic", "reno"))
    assert told.startswith(f"# will execute {foreign} (SHA-256 ")
    with pytest.raises(BakeoffError, match="CONFIG_TCP_CONG_BBR is not set"):
        VirtualTime(str(foreign)).check(duel("cubic", "bbr"))
    assert not (tmp_path / "executed").exists()


def test_a_foreign_kernel_is_asked_confined_before_its_run(foreign, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(BakeoffError, match="kernel linux"):
        VirtualTime(str(foreign)).execute(duel("cubic", "reno"), folder)
    if HAS_LANDLOCK:
        assert not (tmp_path / "executed").exists()


def test_what_is_not_withheld_is_said(monkeypatch):
    monkeypatch.setattr(launch, "has_seccomp", lambda _: True)
    said = {}
    for abi in (0, 1, 2, 3, 5, 6, 7):
        monkeypatch.setattr(launch, "landlock_abi", lambda _, abi=abi: abi)
        said[abi] = boot.confinement()
    assert (said[6], said[7]) == ("", "")
    assert "reading and writing all files" in said[0]
    for abi in (1, 2):
        assert "truncate(2)" in said[abi]
    for abi in (3, 5):
        assert said[abi] == "has no signal scope (Landlock 6): ending other processes of this user"
    monkeypatch.setattr(launch, "has_seccomp", lambda _: False)
    assert boot.confinement() == "has no seccomp: changing modes and times of files, and sockets"


def test_no_rule_names_a_place_of_secrets():
    for path in launch.SYSTEM:
        assert not path.startswith(
            ("/home", "/root", "/var", "/run", "/srv", "/opt", "/tmp", "/mnt", "/media", "/boot")
        )
    assert not {"/", "/etc", "/proc", "/sys", "/dev", "/etc/ssl", "/etc/shadow"} & set(launch.SYSTEM)
