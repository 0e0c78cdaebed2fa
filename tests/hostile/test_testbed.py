"""Root on machines and folders of others: nothing planted there is executed, followed, emptied or waited for."""

import os
import re
from pathlib import Path

import pytest

from bakeoff.campaign import lock
from bakeoff.engines.ssh import session, testbed
from bakeoff.errors import BakeoffError
from ssh_fakes import behind_fake


@pytest.fixture
def machine(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "FOLDER", str(tmp_path / "bakeoff-{node}"))
    made = behind_fake(tmp_path, monkeypatch)
    yield made
    made.close()


def test_only_root_can_make_names_where_a_machine_keeps_what_puts_it_back():
    # /var/tmp is everybody's: its mode ends in 7.
    assert Path(session.FOLDER).parent.stat().st_mode & 0o022 == 0


@pytest.mark.parametrize("planted", ["others", "readable", "link"])
def test_nobody_is_told_to_execute_what_another_user_planted(machine, tmp_path, planted):
    if os.geteuid() != 0:
        pytest.skip("not root")
    folder = tmp_path / "bakeoff-mid"
    if planted == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    else:
        folder.mkdir()
        folder.chmod(0o755 if planted == "readable" else 0o700)
        os.chown(folder, 1000 if planted == "others" else 0, -1)
    with pytest.raises(BakeoffError, match="is there and not bakeoff's") as refused:
        session.need_free(machine)
    assert str(refused.value).startswith("node 'mid' (h-mid): ")
    assert session.RESTORE not in str(refused.value)


def test_a_machine_that_a_killed_run_left_is_told_as_before(machine, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("not root")
    (tmp_path / "bakeoff-mid").mkdir(mode=0o700)
    with pytest.raises(
        BakeoffError, match=re.escape(f"put the machine back with: sh {tmp_path}/bakeoff-mid/restore.sh")
    ):
        session.need_free(machine)


def planted_at(path: Path, what: str, folder: Path) -> Path:
    """Something of this kind at `path`, and the file that would suffer."""
    victim = folder / "victim"
    victim.write_text("precious\n")
    match what:
        case "link":
            path.symlink_to(victim)
        case "second name":
            path.hardlink_to(victim)
        case "pipe":
            os.mkfifo(path)
        case "others":
            path.write_text("precious\n")
            os.chown(path, 1000, -1)
    return path if what == "others" else victim


@pytest.mark.parametrize("what", ["link", "second name", "pipe", "others"])
def test_a_lock_in_a_received_folder_is_neither_followed_nor_emptied_nor_waited_for(tmp_path, what):
    if what == "others" and os.geteuid() != 0:
        pytest.skip("not root")
    root = tmp_path / "results"
    root.mkdir()
    victim = planted_at(root / lock.NAME, what, tmp_path)
    with pytest.raises(BakeoffError, match=r"results/\.lock: .*; expected a lock file of this user"), lock.locked(root):
        pass
    assert victim.read_text() == "precious\n"
    # It is not ours to delete.
    assert os.path.lexists(root / lock.NAME)


@pytest.mark.parametrize("what", ["link", "pipe"])
def test_the_lock_of_a_testbed_is_in_the_users_own_folder_and_follows_nothing(tmp_path, monkeypatch, what):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "everybodys"))
    (tmp_path / "everybodys").mkdir()
    bed = testbed.Testbed(str(tmp_path / "bed.yaml"))
    with bed._alone():
        pass
    assert list((tmp_path / "everybodys").iterdir()) == []
    [path] = (tmp_path / "bakeoff" / "locks").iterdir()
    path.unlink()
    victim = planted_at(path, what, tmp_path)
    with pytest.raises(BakeoffError, match="expected a lock file of this user"), bed._alone():
        pass
    assert victim.read_text() == "precious\n"
