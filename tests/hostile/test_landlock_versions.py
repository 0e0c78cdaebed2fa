"""Older versions of Landlock: what a version knows of is asked for, accepted by this kernel, and enforced."""

import ctypes
import os
import sys

import pytest

from bakeoff.engines.kernel import boot, launch

ABI = launch.landlock_abi(ctypes.CDLL(None, use_errno=True))


@pytest.mark.parametrize("abi", range(1, 7))
def test_the_rules_of_each_version_are_accepted_and_hold(tmp_path, monkeypatch, abi):
    if abi > ABI:
        pytest.skip(f"this kernel has version {ABI} of Landlock")
    monkeypatch.setattr(launch, "landlock_abi", lambda libc: abi)
    results = tmp_path / "results"
    results.mkdir()
    (tmp_path / "secret").write_text("kept")
    child = os.fork()
    if child == 0:
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            libc.prctl(38, 1, 0, 0, 0)  # PR_SET_NO_NEW_PRIVS
            if not launch.restrict_files(libc, str(results), [], []):
                os._exit(1)
            (results / "log").write_text("x")
            for what in ((tmp_path / "secret").read_text, lambda: (tmp_path / "made").write_text("")):
                try:
                    what()
                    os._exit(2)
                except PermissionError:
                    pass
            try:
                (results / "link").symlink_to("/")
                os._exit(3)
            except PermissionError:
                os._exit(0)
        except BaseException as error:
            sys.stderr.write(repr(error))
            os._exit(4)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sorted(path.name for path in results.iterdir()) == ["log"]
    assert (tmp_path / "secret").read_text() == "kept"


@pytest.mark.parametrize("abi", range(7))
def test_doctor_says_what_a_version_does_not_refuse(monkeypatch, abi):
    """Version 3 brought truncate(2), version 6 signals; sockets are seccomp's at every version."""
    monkeypatch.setattr(launch, "landlock_abi", lambda libc: abi)
    said = boot.confinement()
    found = [words in said for words in ("has no Landlock", "truncate(2)", "signal scope")]
    assert found == [abi == 0, 1 <= abi < 3, abi < 6]
