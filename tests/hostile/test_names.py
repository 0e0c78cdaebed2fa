"""Names of others are neither patterns nor paths nor commands of a terminal; and YAML makes plain data only."""

import json
import shutil
import subprocess

import pytest

from bakeoff import results
from bakeoff.engines.lab.plan import Command
from bakeoff.engines.ssh.connection import Connection
from bakeoff.engines.ssh.inventory import Machine
from bakeoff.errors import BakeoffError, printable
from bakeoff.results.series import read_series
from bakeoff.scenario.yaml_file import parse_value

ESCAPE = "a\x1b[31mb"


@pytest.mark.parametrize("name", ["p*", "a[b]", "?", "{a,b}"])
def test_a_folder_of_results_is_no_pattern(done, tmp_path, cli, name):
    """Beside it lies one that the name would match, with samples of its own, which may not come out."""
    for other in (name, "pother", "ab", "x", "a"):
        shutil.copytree(done, tmp_path / other, dirs_exist_ok=True)
        if other != name:
            [path] = (tmp_path / other).rglob("series.parquet")
            path.write_bytes(b"PAR1 nothing PAR1")
    [run] = results.scan(tmp_path / name)
    [original] = results.scan(done)
    assert read_series(run / "series.parquet").equals(read_series(original / "series.parquet"))
    assert cli("table", str(tmp_path / name))[0] == 0


@pytest.mark.parametrize("command", ["table", "plot", "results", "logs"])
@pytest.mark.parametrize("place", ["error", "folder", "broken"])
def test_what_others_wrote_is_shown_and_not_obeyed(done, tmp_path, cli, command, place):
    shutil.copytree(done, tmp_path / "c")
    if place == "folder":
        shutil.copytree(tmp_path / "c" / "local", tmp_path / "c" / ESCAPE)
        for path in (tmp_path / "c" / ESCAPE).rglob("counters.json"):
            path.unlink()
    else:
        [path] = (tmp_path / "c").rglob("run.json")
        bad = {"status": "failed", "digest": None, "error": ESCAPE} if place == "error" else {"status": ESCAPE}
        path.write_text(json.dumps(json.loads(path.read_text()) | bad))
    _, out, err = cli(command, str(tmp_path / "c"))
    assert printable(err) == err
    assert "\x1b[31mb" not in out


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system [id]", "!!python/name:os.system", "!<x> a"])
def test_yaml_makes_no_objects(tag):
    with pytest.raises(BakeoffError, match="could not determine a constructor"):
        parse_value(tag, "x")


def test_words_of_a_command_are_quoted_where_a_shell_would_see_them():
    shown = Command("n", ("tc", "$(id)", "; rm x", "a'b")).line()
    assert shown == """n: tc '$(id)' '; rm x' 'a'"'"'b'"""


def test_a_login_shell_on_a_machine_gets_each_word_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/ssh")
    words = ["$(id)", "; rm x", "a'b", "*", "", "~", "`id`", "a\\b"]
    machine = Machine(host="h", become="env A=b", interfaces={})
    told = Connection("n", machine, None, tmp_path)._command(["printf", "%s\\0", *words], root=True)[-1]
    said = subprocess.run(["sh", "-c", told], capture_output=True, text=True, check=True).stdout
    assert said.split("\0")[:-1] == words
