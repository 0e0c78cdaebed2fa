"""How the command line ends when the world is hostile: one message and no traceback."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bakeoff import results
from fakes.runs import words

PLAIN = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHONUTF8"))}


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, fake_engine):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(cli):
    """The command line, with the fake engine for what does runs."""
    return lambda *arguments: cli(*words(*arguments))


def start(*arguments: str, **options) -> subprocess.Popen:
    given = {name: os.environ[name] for name in ("PYTHONPATH", "BAKEOFF_CATALOG")}
    environment = PLAIN | given | options.pop("env", {})
    streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.Popen([sys.executable, *arguments], env=environment, text=True, encoding="utf-8", **streams)


def ended(*arguments: str, **options) -> tuple[int, str, str]:
    process = start(*arguments, **options)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
@pytest.mark.parametrize("command", [["list"], ["show", "*/a"], ["table", "x"], ["schema"], ["--help"]])
def test_output_that_cannot_be_written(cli, command):
    cli("run", "*/a", "--out", "x", "-j", "1")
    with Path("/dev/full").open("w") as full:
        code, _, err = ended("-m", "bakeoff", *words(*command), stdout=full)
    assert code == 2
    assert err.splitlines()[-1] == "bakeoff: standard output: No space left on device"
    assert "Traceback" not in err


@pytest.mark.parametrize("where", ["full disk", "reader that left"])
@pytest.mark.parametrize(
    "command", [["run", "*", "-v"], ["run", "*", "-j", "2"], ["duel", "cubic", "reno", "--duration", "2s"]]
)
def test_progress_that_cannot_be_written_ends_nothing(command, where):
    reader, writer = os.pipe()
    os.close(reader)
    if where == "full disk":
        if not Path("/dev/full").exists():
            pytest.skip("the system has no /dev/full")
        os.close(writer)
        writer = os.open("/dev/full", os.O_WRONLY)
    code, out, _ = ended("-m", "bakeoff", *words(*command), "--out", "x", stderr=writer)
    os.close(writer)
    told, _, _ = ended("-m", "bakeoff", *words(*command), "--out", "y")
    assert (code, out != "") == (told, True)
    done, expected = results.survey("x"), results.survey("y")
    assert [result.key for result in done.results] == [result.key for result in expected.results]
    assert done.half_written == []
    # Neither does it change how a mistake ends.
    with Path("/dev/full").open("w") as full:
        assert ended("-m", "bakeoff", "table", "nowhere", stderr=full)[0] == 2


@pytest.mark.parametrize(
    "command",
    [["list"], ["list", "--json"], ["table", "x"], ["duel", "cubic", "reno", "--duration", "2s", "--out", "y"]],
)
def test_a_reader_that_leaves_early_is_no_failure(cli, command):
    cli("run", "*/a", "--out", "x", "-j", "1")
    reader, writer = os.pipe()
    os.close(reader)
    code, _, err = ended("-m", "bakeoff", *words(*command), stdout=writer)
    os.close(writer)
    assert code == 0
    assert "Traceback" not in err
    assert "Exception" not in err


def test_a_closed_output_is_no_failure():
    closed = 'exec "$0" -m bakeoff list >&-'
    assert subprocess.run(["/bin/sh", "-c", closed, sys.executable], check=False, timeout=60).returncode == 0


INTERRUPTED = """
import os, signal, sys

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "bakeoff.cli.app":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Finder())
import bakeoff.__main__
bakeoff.__main__.main()
"""


def test_ctrl_c_while_the_commands_are_imported_ends_without_a_word():
    assert ended("-c", INTERRUPTED) == (-signal.SIGINT, "", "")


def test_names_beyond_ascii_under_an_ascii_locale(folder):
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0"}
    code, out, err = ended(
        "-m", "bakeoff", *words("run", "*/a"), "--out", "größe", "--note", "für später", "-j", "1", env=ascii_only
    )
    assert (code, "results: größe\n" in out) == (0, True), err
    [path] = results.scan(folder / "größe")
    assert results.read(path).record.provenance.note == "für später"
    code, out, err = ended("-m", "bakeoff", "table", "größe", "-f", "csv", "--columns", "run", env=ascii_only)
    assert (code, out.splitlines(), err) == (0, ["run", "a"], "")


def test_a_name_that_is_no_text(folder):
    name = os.fsdecode(b"x\xff")
    code, out, _ = ended("-m", "bakeoff", *words("run", "*/a"), "--out", name, "-j", "1", errors="surrogateescape")
    assert (code, f"results: {name}\n" in out) == (0, True)
    assert results.read_campaign(folder / name).provenance.command[-3] == "x\\udcff"


SCRIPT = """
import bakeoff
print("once")
print(bakeoff.run("fake/s1*", engine="fake", jobs=2))
"""


def test_a_script_without_a_main_guard_runs_once(folder):
    (folder / "script.py").write_text(SCRIPT)
    code, out, err = ended("script.py")
    assert (code, err) == (0, "")
    assert out.splitlines() == ["once", "<Results: 3 runs, fake/s1-first/a … fake/s1-first/c>"]
    assert len([path for path in (folder / "results").iterdir() if not path.is_symlink()]) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table", "a" * 300], "a" * 300 + ": File name too long"),
        (["--install-completion", "bash"], "/dev/null: File exists"),
    ],
)
def test_what_the_system_refuses_is_one_message(cli, monkeypatch, arguments, message):
    monkeypatch.setenv("HOME", "/dev/null")
    assert cli(*arguments) == (2, "", f"bakeoff: {message}\n")


@pytest.mark.parametrize(
    "words", ["bakeoff run l4", "bakeoff run x --kernel l", "bakeoff plot --kind c", "bakeoff table --columns ja"]
)
def test_completion_needs_no_home(words):
    asked = {"_BAKEOFF_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    nowhere = {"HOME": "/dev/null", "XDG_CACHE_HOME": "/dev/null", "XDG_DATA_HOME": "/dev/null"}
    code, _, err = ended("-m", "bakeoff", env=asked | nowhere)
    assert (code, err) == (0, "")


def test_no_room_for_temporary_files_is_told(cli, monkeypatch):
    # As tempfile.gettempdir() raises it: without a file's name.
    def full(**_: object) -> None:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp', '/']")

    monkeypatch.setattr("bakeoff.cli.app.app", full)
    status, _, err = cli("list")
    assert status == 2
    assert err.startswith(
        "bakeoff: No usable temporary directory found in ['/tmp', '/']; expected free space in one of them"
    )
