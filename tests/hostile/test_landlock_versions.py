"""Older versions of Landlock: what a version knows of is asked for, accepted by this kernel, and enforced."""

import ctypes
import subprocess
import sys

import pytest

from bakeoff.engines.kernel import boot, launch

ABI = launch.landlock_abi(ctypes.CDLL(None, use_errno=True))
# Who restricts itself stays restricted.
PROGRAM = """
import ctypes, sys
from pathlib import Path
from bakeoff.engines.kernel import launch

abi, folder = int(sys.argv[1]), Path(sys.argv[2])
launch.landlock_abi = lambda libc: abi
libc = ctypes.CDLL(None, use_errno=True)
libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
assert launch.restrict_files(libc, str(folder / "results"), [], [])
(folder / "results/log").write_text("x")
for refused in (
    (folder / "secret").read_text,
    lambda: (folder / "made").write_text(""),
    lambda: (folder / "results/link").symlink_to("/"),
):
    try:
        refused()
    except PermissionError:
        print("refused")
"""


@pytest.mark.parametrize("abi", range(1, 7))
def test_the_rules_of_each_version_are_accepted_and_hold(tmp_path, abi):
    if abi > ABI:
        pytest.skip(f"this kernel has version {ABI} of Landlock")
    (tmp_path / "results").mkdir()
    (tmp_path / "secret").write_text("kept")
    command = [sys.executable, "-c", PROGRAM, str(abi), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "refused\n" * 3, "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["results", "secret"]
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["log"]
    assert (tmp_path / "secret").read_text() == "kept"


@pytest.mark.parametrize("abi", range(7))
def test_doctor_says_what_a_version_does_not_refuse(monkeypatch, abi):
    """Version 3 brought truncate(2), version 6 signals; sockets are seccomp's at every version."""
    monkeypatch.setattr(launch, "landlock_abi", lambda libc: abi)
    said = boot.confinement()
    found = [words in said for words in ("has no Landlock", "truncate(2)", "signal scope")]
    assert found == [abi == 0, 1 <= abi < 3, abi < 6]
