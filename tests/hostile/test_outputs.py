"""Where files are written: every option that names one takes a regular file or a new one, and nothing else changes."""

import os
import shutil
import socket
import stat
from pathlib import Path

import pytest

from bakeoff import files
from bakeoff.errors import BakeoffError

KINDS = (
    "device",
    "fifo",
    "socket",
    "link to a file",
    "link to a device",
    "dangling link",
    "folder",
    "here",
    "parent",
    "root",
)


@pytest.fixture
def here(tmp_path, monkeypatch, done):
    """The working directory: it has the results of a duel, and a file that links lead to."""
    monkeypatch.chdir(tmp_path)
    shutil.copytree(done, "c")
    Path("target").write_text("kept")
    Path("page.md").write_text("{{ runs() | length }}\n")
    return tmp_path


def made(kind: str, name: str) -> str:
    """What a user names instead of a file, with an end as the option wants it."""
    path = Path(name)
    if kind == "device":
        try:
            os.mknod(path, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
        except PermissionError:
            pytest.skip("only root makes devices")
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as there:
            there.bind(name)
    elif kind == "folder":
        path.mkdir()
    elif "link" in kind:
        path.symlink_to({"link to a file": "target", "link to a device": "/dev/null"}.get(kind, "missing"))
    else:
        return {"here": ".", "parent": "..", "root": "/"}[kind]
    return name


OPTIONS = {
    "plot": ("plot.svg", ["plot", "c", "--out"]),
    "advise": ("page.html", ["advise", "--up", "1mbit", "--down", "1mbit", "--rtt", "20ms", "--html"]),
    "qdisc-replay": ("arrivals.csv", ["qdisc-replay", "pfifo", "--arrivals", "bursts", "--write"]),
    "render": ("page.txt", ["render", "page.md", "--results", "c", "--out"]),
}
"""A name for the file, and the command without it."""


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("option", OPTIONS)
def test_an_output_is_a_regular_file(cli, here, kind, option):
    name, words = OPTIONS[option]
    given = made(kind, name)
    if option in ("plot", "render") and kind in ("folder", "here", "parent", "root"):
        pytest.skip("names a folder for the files")
    before = {str(path): path.lstat() for path in here.rglob("*")}
    code, out, err = cli(*words, given)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1, err
    assert given in err
    after = {str(path): path.lstat() for path in here.rglob("*")}
    assert after.keys() == before.keys()
    for path, was in before.items():
        now = after[path]
        assert (now.st_mode, now.st_ino, now.st_size, now.st_mtime_ns) == (
            was.st_mode, was.st_ino, was.st_size, was.st_mtime_ns,
        ) or stat.S_ISDIR(was.st_mode), path  # fmt: skip


@pytest.mark.parametrize("kind", ["device", "fifo", "socket", "link to a file", "dangling link", "folder"])
@pytest.mark.parametrize("form", ["--flent", "--csv", "--parquet"])
def test_what_stands_at_the_place_of_an_export_stays(cli, here, kind, form):
    code, out, _ = cli("export", "c", form, "--out", "first")
    assert code == 0
    names = [Path(line).name for line in out.splitlines()]
    Path("second").mkdir()
    made(kind, f"second/{names[0]}")
    before = Path("second", names[0]).lstat()
    code, _, err = cli("export", "c", form, "--out", "second", "--replace")
    assert (code, f"second/{names[0]}: a " in err) == (2, True)
    assert Path("second", names[0]).lstat() == before
    assert [path.name for path in Path("second").iterdir()] == [names[0]]


@pytest.mark.parametrize("folder", ["plots", "exports"])
def test_a_link_in_a_strangers_folder_is_not_written_through(cli, here, folder):
    """Several runs: their pictures and exports go to folders of the campaign."""
    run = next(Path("c").glob("*/*/*"))
    again = shutil.copytree(run, run.with_name(f"{run.name}~seed2")) / "run.json"
    again.write_text(again.read_text().replace('"seed": 1', '"seed": 2'))
    Path("elsewhere").mkdir()
    Path("c", folder).symlink_to("../elsewhere")
    words = ["plot", "c", "--kind", "bars"] if folder == "plots" else ["export", "c", "--csv", "--flent"]
    code, _, err = cli(*words)
    assert (code, f"c/{folder}: a link" in err) == (2, True)
    assert list(Path("elsewhere").iterdir()) == []
    assert cli(*words, "--out", "elsewhere/")[0] == 0  # which the user named


def test_a_log_that_is_a_link_is_not_read(cli, here):
    [run] = Path("c").glob("*/*/*")
    (run / "setup.log").unlink()
    (run / "setup.log").symlink_to(Path("target").absolute())
    code, out, err = cli("logs", str(run))
    assert (code, "kept" in out + err) == (2, False)
    assert "setup.log: cannot be read: is a symbolic link" in err


def test_files_are_written_whole_or_not_at_all(tmp_path):
    (tmp_path / "a").write_bytes(b"before")
    os.mkfifo(tmp_path / "b")
    with pytest.raises(BakeoffError, match=r"b: a FIFO; expected a regular"):
        files.write_all({tmp_path / "a": b"after", tmp_path / "b": b"after"})
    with pytest.raises(BakeoffError, match=r"a: a file; expected a folder for c"):
        files.write_all({tmp_path / "a": b"after", tmp_path / "a/c": b"after"})
    with pytest.raises(FileExistsError):
        files.write(tmp_path / "a", b"after", replace=False)
    assert (tmp_path / "a").read_bytes() == b"before"
    planted = tmp_path / f".a.{os.getpid()}.partial"  # a name that can be foreseen
    planted.symlink_to(tmp_path / "elsewhere")
    files.write(tmp_path / "a", b"after")
    assert (tmp_path / "a").read_bytes() == b"after"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    with pytest.raises(BakeoffError, match="File name too long"):
        files.write(tmp_path / ("n" * 300), b"")
    with pytest.raises(BakeoffError, match="null"):
        files.write(tmp_path / "a\0", b"")
