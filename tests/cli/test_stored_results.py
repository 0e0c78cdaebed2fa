"""results, logs, rm, diff, reproduce: what is stored, and what may be removed."""

import json
import shutil

import pytest
from typer.testing import CliRunner

import bakeoff
from bakeoff.cli.app import app
from bakeoff.errors import BakeoffError
from bakeoff.results import storage

RUN = "l4s-tests/s6-rfc3168/ns-prague-vs-cubic-ecn-fq_codel(1q)-50Mbit-20ms"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A working directory with one campaign of one run."""
    folder = tmp_path_factory.mktemp("made")
    bakeoff.run(RUN, out=folder / "results/a", jobs=1)
    return folder


@pytest.fixture
def here(made, tmp_path, monkeypatch):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(*words):
    """Exit status and standard output; a BakeoffError is raised as it is."""
    done = CliRunner().invoke(app, words)
    if isinstance(done.exception, BakeoffError):
        raise done.exception
    return done.exit_code, done.stdout


def test_campaigns_and_runs_are_listed_with_their_status_and_size(here):
    [campaign] = json.loads(call("results", "--json")[1])
    assert (campaign["campaign"], campaign["runs"], campaign["failed"]) == ("results/a", 1, 0)
    [run] = json.loads(call("results", "results/a", "--json")[1])
    assert (run["run"], run["status"]) == (RUN, "ok")
    files = [path for path in (here / "results/a" / RUN).rglob("*") if path.is_file()]
    assert run["size"] == sum(path.stat().st_size for path in files)
    assert campaign["size"] > run["size"]
    assert json.loads(call("results", "--status", "failed", "--json")[1]) == []
    assert json.loads(call("results", "results/a", "-k", "no such", "--json")[1]) == []


def test_logs_tell_the_end_of_the_queues(here):
    code, text = call("logs", f"results/a/{RUN}")
    assert code == 0
    assert "--- teardown.log\n" in text
    assert "fq_codel" in text


def test_a_copy_does_not_differ_and_a_change_is_one_line(here):
    shutil.copytree(here / "results/a", here / "results/b")
    assert call("diff", "results/a", "results/b") == (0, "0 of 10 numbers differ\n")
    summary = here / "results/b" / RUN / "summary.json"
    content = json.loads(summary.read_text())
    goodput = content["flows"]["cubic"]["steady_state"]["goodput_bps"]
    content["flows"]["cubic"]["steady_state"]["goodput_bps"] = 1.1 * goodput
    summary.write_text(json.dumps(content))
    code, text = call("diff", "results/a", "results/b")
    assert code == 1
    changed, count = text.splitlines()
    assert changed.startswith(f"{RUN} cubic  goodput: ")
    assert changed.endswith("bit/s (+10.00 %)")
    assert count == "1 of 10 numbers differ"
    # ln 1.1 = 0.0953
    assert call("diff", "results/a", "results/b", "--tolerance", "goodput=0.096")[0] == 0
    assert call("diff", "results/a", "results/b", "--tolerance", "goodput=0.095")[0] == 1
    with pytest.raises(BakeoffError, match=r"^--tolerance: 'goodput'; expected a measure and a number"):
        call("diff", "results/a", "results/b", "--tolerance", "goodput")


def test_a_run_is_reproduced_and_a_number_that_it_does_not_give_is_different(here):
    assert call("reproduce", f"results/a/{RUN}") == (0, f"{RUN}: identical\n")
    record = here / "results/a" / RUN / "run.json"
    content = json.loads(record.read_text()) | {"digest": "0" * 64}
    record.write_text(json.dumps(content))
    code, text = call("reproduce", f"results/a/{RUN}", "--seeds", "3", "--json")
    told = json.loads(text)
    assert (code, told["verdict"]) == (0, "within the interval")
    assert {row["measure"] for row in told["numbers"]} == {
        "goodput",
        "tcp_delay_mean",
        "tcp_delay_p99",
        "little_delay_mean",
        "little_delay_p99",
        "marks",
        "drops",
    }
    summary = here / "results/a" / RUN / "summary.json"
    content = json.loads(summary.read_text())
    content["flows"]["cubic"]["steady_state"]["goodput_bps"] = 25e6
    summary.write_text(json.dumps(content))
    code, text = call("reproduce", f"results/a/{RUN}", "--seeds", "3")
    assert code == 1
    assert text.endswith(f"{RUN}: different\n")
    assert "! cubic goodput: 2.5e+07, today" in text


def test_only_results_are_removed_and_only_when_told(here):
    with pytest.raises(BakeoffError, match=r"rm: .*; expected --yes"):
        call("rm", "results/a")
    (here / "results/a/mine.txt").write_text("not a result")
    with pytest.raises(BakeoffError, match=r"contains results/a/mine\.txt, which is not a result"):
        call("rm", "results/a", "--yes")
    (here / "results/a/mine.txt").unlink()
    (here / "results/link").symlink_to("a")
    with pytest.raises(BakeoffError, match=": a link"):
        call("rm", "results/link", "--yes")
    (here / "other").mkdir()
    for folder in ("other", ".", "results"):
        with pytest.raises(BakeoffError, match="not a results folder"):
            storage.removable(here / folder)
    assert (here / "results/a" / RUN).is_dir()
    assert call("rm", "results/a", "--yes") == (0, "")
    assert not (here / "results/a").exists()
