"""Temporary folders are this user's alone, and no name in a shared folder is guessed before it is made."""

import ast
import os
import re
import stat
from pathlib import Path

import pytest

import bakeoff
from bakeoff.api import do_runs
from bakeoff.engines.kernel import build
from bakeoff.engines.ssh import connection
from bakeoff.errors import BakeoffError

PACKAGE = Path(bakeoff.__file__).parent


@pytest.mark.parametrize("make", [connection.private_folder, do_runs._temporary.__wrapped__])
def test_a_temporary_folder_is_this_users_alone(tmp_path, monkeypatch, make):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    before = os.umask(0)
    try:
        folder = make()
    finally:
        os.umask(before)
    assert folder.parent == tmp_path
    assert (stat.S_IMODE(folder.stat().st_mode), folder.stat().st_uid) == (0o700, os.geteuid())


def test_temporary_folders_are_made_in_no_other_way():
    """`mkdtemp` and `TemporaryDirectory` make a new folder of mode 0700, and a `TemporaryFile` has no name.

    `gettempdir` only tells where others may have written; what else `tempfile` has is not used.
    """
    used = set()
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "tempfile":
                used.add(node.attr)
        assert not re.search(r"from tempfile import", text), path
    assert used <= {"mkdtemp", "TemporaryDirectory", "TemporaryFile", "gettempdir"}


@pytest.mark.parametrize("what", ["link", "pipe"])
def test_the_lock_of_a_kernels_folder_follows_nothing_and_waits_for_nothing(tmp_path, what):
    victim = tmp_path / "victim"
    victim.write_text("precious")
    if what == "link":
        (tmp_path / ".lock").symlink_to(victim)
    else:
        os.mkfifo(tmp_path / ".lock")
    with pytest.raises(BakeoffError, match="expected a lock file of this user"), build._locked(tmp_path):
        pass
    assert victim.read_text() == "precious"
