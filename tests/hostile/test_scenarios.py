"""A scenario of a stranger executes nothing unasked and reads nothing that is not its own."""

import json
import os
import shutil
from pathlib import Path

import pytest

import bakeoff
from bakeoff import campaign, files, results
from bakeoff.campaign import Execution
from bakeoff.errors import BakeoffError
from bakeoff.scenario import catalog

CODE = """
from pathlib import Path
Path({seen!r}).touch()
class Mine:
    def ssthresh(self, sk):
        return 2
    def cong_avoid(self, sk, acked):
        pass
"""
SCENARIO = {
    "duration": "1s",
    "network": {"path": ["cli", "mid", "srv"], "rtt": "10ms", "bottleneck": {"rate": "5mbit", "qdisc": "pfifo"}},
    "flows": [{"name": "f", "cc": "reno"}],
}
LINKED = {
    "duration": "1s",
    "network": {"nodes": {"c": "host", "s": "host"}, "links": [{"ends": ["c", "s"]}]},
    "flows": [{"name": "f", "cc": "reno", "from": "c", "to": "s"}],
}


class Sent:
    """A folder with a scenario that somebody sent, beside a private one."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.seen = root / "seen"
        for name in ("sent", "private"):
            (root / name).mkdir()
            (root / name / "mine.py").write_text(CODE.format(seen=str(self.seen)))

    def scenario(self, cc: str) -> str:
        document = SCENARIO | {"flows": [{"name": "f", "cc": cc}]}
        (self.root / "sent" / "x.yaml").write_text(json.dumps(document))
        return str(self.root / "sent" / "x.yaml")

    def traced(self, trace: str) -> str:
        network = LINKED["network"] | {"links": [{"ends": ["c", "s"], "trace": trace}]}
        (self.root / "sent" / "x.yaml").write_text(json.dumps(LINKED | {"network": network}))
        return str(self.root / "sent" / "x.yaml")

    def executed(self) -> bool:
        was = self.seen.exists()
        self.seen.unlink(missing_ok=True)
        return was


@pytest.fixture
def sent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Sent(tmp_path)


# Code.


@pytest.mark.parametrize("cc", ["./mine.py:Mine", "../private/mine.py:Mine"])
@pytest.mark.parametrize("command", [["show"], ["list"], ["run", "--dry-run"], ["run", "--dry-run", "--json"]])
def test_who_only_looks_executes_nothing_and_is_told(sent, cli, command, cc):
    code, _, err = cli(*command, sent.scenario(cc))
    assert code == 0
    assert not sent.executed()
    path = (sent.root / "sent" / cc.partition(":")[0]).resolve()
    assert f"will execute {path} (SHA-256 " in err
    assert ("needs --allow-code" in err) == ("private" in cc)


def test_code_beside_the_scenario_runs(sent, cli):
    assert cli("run", sent.scenario("./mine.py:Mine"), "--out", "out", "-j", "1")[0] == 0
    assert sent.executed()


@pytest.mark.parametrize("way", ["dots", "absolute", "link", "folder"])
def test_code_elsewhere_needs_permission(sent, cli, way):
    elsewhere = sent.root / "private" / "mine.py"
    (sent.root / "sent" / "link.py").symlink_to(elsewhere)
    (sent.root / "sent" / "folder").symlink_to(elsewhere.parent)
    cc = {"dots": "../private/mine.py", "absolute": str(elsewhere), "link": "./link.py", "folder": "folder/mine.py"}
    scenario = sent.scenario(f"{cc[way]}:Mine")
    code, _, err = cli("run", scenario, "--out", "out", "-j", "1")
    assert (code, sent.executed(), Path("out").exists()) == (2, False, False)
    assert f"flows[0].cc: not allowed to execute {elsewhere}; expected a file in {sent.root / 'sent'}" in err
    with pytest.raises(BakeoffError, match="not allowed to execute"):
        bakeoff.run(scenario, out="out", jobs=1)
    assert not sent.executed()
    assert cli("run", scenario, "--out", "out", "-j", "1", "--allow-code")[0] == 0
    assert sent.executed()
    assert bakeoff.run(scenario, out="out2", jobs=1, allow_code=True)[0].ok


def test_worker_processes_keep_what_was_allowed(sent):
    runs = catalog.select(sent.scenario("../private/mine.py:Mine"), 2)
    assert not campaign.run(runs, Path("out"), Execution(jobs=2, allow_code=True)).failed
    assert sent.executed()


@pytest.mark.parametrize("typed", ["duel", "--set"])
def test_a_path_that_the_user_typed_is_asked_for(sent, cli, typed):
    path = sent.root / "private" / "mine.py"
    words = ["duel", f"{path}:Mine", "reno", "--duration", "1s"]
    if typed == "--set":
        words = ["run", sent.scenario("reno"), "--set", f"flows.0.cc={path}:Mine"]
    assert cli(*words, "--out", "out", "-j", "1")[0] == 0
    assert sent.executed()


def test_results_of_others_execute_nothing(sent, cli):
    """Their run.json names a file of this machine; their campaign.json names a scenario beside it."""
    assert cli("run", sent.scenario("./mine.py:Mine"), "--out", "theirs", "-j", "1")[0] == 0
    [stored] = results.scan("theirs")
    assert sent.executed()
    assert cli("reproduce", str(stored))[0] == 2
    assert not sent.executed()
    record = json.loads((stored / "run.json").read_text())
    (stored / "run.json").write_text(json.dumps(record | {"status": "failed", "error": "x", "digest": None}))
    code, _, err = cli("run", "--last-failed", "--out", "theirs")
    assert (code, sent.executed()) == (2, False)
    assert "campaign.json names runs that would execute" in err
    assert cli("run", "--last-failed", "--out", "theirs", "--allow-code", "-j", "1")[0] == 0
    assert sent.executed()


# Traces.


def test_a_trace_below_the_scenario_is_read(sent):
    (sent.root / "sent" / "traces").mkdir()
    (sent.root / "sent" / "traces" / "one").write_text("1\n2\n")
    [run] = catalog.select(sent.traced("traces/one"))
    assert run.links[0].features["trace"]["c"]["ms"] == [1, 2]


def test_a_trace_of_the_catalog_is_read(sent, monkeypatch):
    mine = sent.root / "catalog"
    shutil.copytree(catalog.root(), mine)
    (mine / "traces").mkdir()
    (mine / "traces" / "one").write_text("1\n2\n")
    monkeypatch.setenv("BAKEOFF_CATALOG", str(mine))
    [run] = catalog.select(sent.traced("../catalog/traces/one"))
    assert run.links[0].features["trace"]["s"]["ms"] == [1, 2]


@pytest.mark.parametrize("trace", ["/etc/passwd", "../private/mine.py", "/dev/zero", "link", "/proc/self/environ"])
def test_a_trace_elsewhere_is_not_read(sent, trace):
    (sent.root / "sent" / "link").symlink_to("/etc/passwd")
    with pytest.raises(BakeoffError, match=r"links\[0\].trace: '.*' is outside the scenario's folder") as told:
        catalog.select(sent.traced(trace))
    assert "root" not in str(told.value).replace(str(sent.root), "")


def test_a_trace_that_is_no_trace_is_not_shown(sent):
    (sent.root / "sent" / "notes").write_text("1\nsecret\n")
    with pytest.raises(BakeoffError, match="notes: line 2: invalid or decreasing") as told:
        catalog.select(sent.traced("notes"))
    assert "secret" not in str(told.value)


def test_what_never_ends_is_not_waited_for(sent, monkeypatch):
    os.mkfifo(sent.root / "sent" / "pipe")
    (sent.root / "sent" / "zeroes").touch()
    os.truncate(sent.root / "sent" / "zeroes", 1 << 40)
    for trace, why in (("pipe", "is not a regular file"), ("zeroes", "is 1,099,511,627,776 bytes; at most 67,108,864")):
        with pytest.raises(BakeoffError, match=f"{trace}: cannot be read: {why}"):
            catalog.select(sent.traced(trace))
    (sent.root / "sent" / "pipe.py").symlink_to(sent.root / "sent" / "pipe")
    with pytest.raises(BakeoffError, match=r"pipe: is not a regular file|pipe.py"):
        catalog.select(sent.scenario("./pipe.py:Mine"))


def test_a_file_that_grows_is_bounded(tmp_path):
    (tmp_path / "f").write_bytes(b"12345")
    assert files.read(tmp_path / "f", 5) == b"12345"
    with pytest.raises(OSError, match="is 5 bytes; at most 4"):
        files.read(tmp_path / "f", 4)
    with pytest.raises(OSError, match="is not a regular file"):
        files.read("/dev/zero", 4)
    with pytest.raises(OSError, match="zero byte"):
        files.read("a\0b", 4)
