"""What others wrote reaches a terminal as text: every command that prints names, and every way to print."""

import io
import json
import os
import shutil
import subprocess
import sys

import pytest
from rich.console import Console

from bakeoff.cli import output
from bakeoff.errors import printable

# A colour, "clear the screen", a title of the window, a return to the line's start, 8-bit CSI, right to left, a bell.
ODD = "a\x1b[31mb\x1b[2Jc\x1b]0;t\x07d\re\x9b1mf\u202eg"


def shown(*texts: str) -> None:
    for text in texts:
        assert printable(text) == text, ascii(text)


def test_the_border_shows_what_a_terminal_would_obey():
    beneath = io.StringIO()
    stream = output.Shown(beneath)
    assert stream.write(f"{ODD}\n\tx,y\r\n") == len(ODD) + 7
    assert beneath.getvalue() == r"a\x1b[31mb\x1b[2Jc\x1b]0;t\x07d\re\x9b1mf\u202eg" + "\n\tx,y\r\n"
    assert output.beneath(stream) is beneath


def test_typer_takes_nothing_out_and_a_console_draws_beneath(monkeypatch):
    """Where nobody has a terminal typer removes what looks like a colour, unless it is told not to."""
    code = (
        "import typer; from bakeoff.cli import app, main\n"
        "@app.app.command('odd')\n"
        f"def odd(): typer.echo({ODD!r}); typer.echo({ODD!r}, err=True); print({ODD!r})\n"
        "import sys; sys.argv = ['bakeoff', 'odd']; main()"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    line = rb"a\x1b[31mb\x1b[2Jc\x1b]0;t\x07d\re\x9b1mf\u202eg" + b"\n"
    assert (ended.stdout, ended.stderr, ended.returncode) == (line * 2, line, 0)
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", output.Shown(out))
    drawing = output.console()
    assert isinstance(drawing, Console)
    assert drawing.file is out


@pytest.mark.parametrize("content", ["0 nonsense\n", "\xff", f"0 {ODD}\n"])
def test_packetdrill_names_scripts_on_one_line_each(tmp_path, cli, content):
    (tmp_path / f"{ODD}\nFAILED other.pkt").write_text(content, encoding="latin-1" if "\xff" in content else "utf-8")
    code, out, err = cli("packetdrill", str(tmp_path))
    assert code == 2
    shown(out, err)
    assert [line.split()[0] for line in out.splitlines()] == ["UNREADABLE", "0"]


def test_packetdrill_waits_for_no_pipe_and_reads_no_endless_file(tmp_path, cli):
    os.mkfifo(tmp_path / "pipe.pkt")
    (tmp_path / "zero.pkt").symlink_to("/dev/zero")
    (tmp_path / "long.pkt").touch()
    os.truncate(tmp_path / "long.pkt", 1 << 40)
    code, out, _ = cli("packetdrill", str(tmp_path))
    assert code == 2
    assert out.count("UNREADABLE") == 3
    assert out.count("is not a regular file") == 2


def test_qdisc_replay_names_its_file_on_one_line(tmp_path, cli):
    path = tmp_path / f"{ODD}\nx: identical.csv"
    path.write_text("time_s,bytes,flow,ecn\n0,60,0,ce\n")
    code, out, err = cli("qdisc-replay", "pfifo", "--arrivals", str(path))
    assert code == 0
    shown(out, err)
    assert "\nx: " not in out


COMMANDS = {
    "list": ("list", "{odd}"),
    "show": ("show", "{odd}"),
    "run": ("run", "{odd}"),
    "run --out": ("run", "*/s6*", "--dry-run", "--out", "{odd}"),
    "table": ("table", "{odd}"),
    "table --where": ("table", "{results}", "--where", "{odd} == 1"),
    "report": ("report", "{odd}"),
    "plot": ("plot", "{results}", "--kind", "{odd}"),
    "compare": ("compare", "{results}", "{odd}"),
    "diff": ("diff", "{results}", "{odd}"),
    "reproduce": ("reproduce", "{odd}"),
    "results": ("results", "{odd}"),
    "logs": ("logs", "{results}"),
    "rm": ("rm", "{odd}"),
    "push": ("push", "{results}", "{odd}"),
    "pull": ("pull", "{odd}"),
    "duel": ("duel", "{odd}", "cubic"),
    "packetdrill": ("packetdrill", "{odd}"),
    "qdisc-replay": ("qdisc-replay", "{odd}"),
    "kernel check": ("kernel", "check", "{odd}"),
    "kernel build": ("kernel", "build", "{odd}"),
}


@pytest.mark.usefixtures("cache_folder")
@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_no_command_prints_what_a_terminal_would_obey(done, tmp_path, monkeypatch, cli, words):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(done, "c")
    [path] = (tmp_path / "c").rglob("setup.log")
    path.write_text(ODD)
    _, out, err = cli(*(word.format(odd=ODD, results="c") for word in words))
    shown(out, err)


FORMS = ("markdown", "csv", "json", "latex", "html")


@pytest.mark.parametrize(
    "command",
    [
        *("table", "report", "compare", "diff", "plot", "results", "reproduce"),
        *(f"{command} --format {form}" for command in ("table", "compare") for form in FORMS),
        "table --rows flows --format csv",
    ],
)
def test_names_that_stored_results_hold_are_shown(done, tmp_path, cli, monkeypatch, command):
    """The engine, a note, a version and a congestion control are plain words of run.json."""
    shutil.copytree(done, tmp_path / "c")
    [path] = (tmp_path / "c").rglob("run.json")
    record = json.loads(path.read_text())
    record |= {"engine": ODD, "versions": {ODD: ODD}, "effective": [ODD]}
    record["resolved"]["flows"][0]["cc"] = ODD
    record["resolved"]["title"] = ODD
    path.write_text(json.dumps(record))
    [path] = (tmp_path / "c").rglob("summary.json")
    summary = json.loads(path.read_text())
    summary["missing"] = [ODD]
    for flow in summary["flows"].values():
        flow["cc"] = ODD
    path.write_text(json.dumps(summary))
    command, *options = command.split()
    other = [str(done)] if command in ("compare", "diff") else []
    monkeypatch.chdir(tmp_path)
    _, out, err = cli(command, str(tmp_path / "c"), *other, *options)
    shown(out.replace("\r\n", "\n"), err)
    assert command != "plot" or list(tmp_path.rglob("*.svg"))
    for picture in tmp_path.rglob("*.svg"):
        shown(picture.read_text())
