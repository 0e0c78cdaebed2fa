"""`import bakeoff`: duel, run, load, and what they return."""

import json
from pathlib import Path

import polars as pl
import pytest

import bakeoff


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, fake_engine):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_duel_returns_samples_measures_and_a_figure(folder):
    settings = {"qdisc": "fq_codel flows 1", "rate": "50mbit", "rtt": "20ms", "duration": "2s", "seed": 2}
    result = bakeoff.duel("prague", "cubic", **settings)
    assert result.run.run == "prague-vs-cubic-fq_codel_flows_1-50mbit-20ms"
    assert isinstance(result.series, pl.DataFrame)
    received = result.series.filter(name="prague", metric="received")
    window = received.filter(pl.col("time").is_between(*result.summary.window_s))
    # Two thirds of the run: the last two samples of a window can be a sample interval outside of it.
    rate_bps = 8 * (window["value"][-1] - window["value"][0]) / (window["time"][-1] - window["time"][0])
    assert result.summary.flows["prague"].steady_state.goodput_bps == pytest.approx(rate_bps, rel=0.1)
    assert len(result.plot("cwnd").axes) > 0
    goodput = f"{result.summary.flows['prague'].steady_state.goodput_bps / 1e6:.2f}"
    assert goodput in repr(result)
    assert goodput in result._repr_html_()
    # Without `out` nothing is left in the working directory.
    assert list(folder.iterdir()) == []
    again = bakeoff.duel("prague", "cubic", **settings)
    assert again.path != result.path
    assert again.record.digest == result.record.digest


def test_duel_into_a_folder(folder):
    result = bakeoff.duel("prague", "cubic", duration="2s", out="d")
    assert result.path == Path("d/local/duel/prague-vs-cubic-fq_codel_flows_1-50mbit-20ms")


BROKEN = """
class Mine:
    def ssthresh(self, sk):
        return 2

    def cong_avoid(self, sk, acked):
        raise ValueError("no window")
"""


def test_a_failed_duel_raises():
    Path("mine.py").write_text(BROKEN)
    with pytest.raises(RuntimeError, match=r"Mine-vs-cubic.*: Mine.cong_avoid failed\n(.*\n)*ValueError: no window"):
        bakeoff.duel("./mine.py:Mine", "cubic", duration="2s")


def test_run_returns_a_collection(folder):
    several = bakeoff.run(["fake/s1*", "*/violates"], seeds=2, jobs=1, engine="fake", out="x")
    names = [f"{name}{seed}" for name in "abc" for seed in ("", "~seed2")]
    assert [result.key.split("/")[-1] for result in several] == [*names, "violates", "violates~seed2"]
    assert len(several) == 8
    assert [result.key for result in several[2:4]] == ["fake/s1-first/b", "fake/s1-first/b~seed2"]
    assert len(several.failed) == 2
    assert several.table()["run"].to_list() == ["a", "b", "c"]
    assert several.table()["n"].to_list() == [2, 2, 2]
    assert repr(several) == "<Results: 8 runs, 2 failed, fake/s1-first/a … fake/s2-second/violates~seed2>"
    assert "failed: fake/s2-second/violates: conservation" in several._repr_html_()
    assert [result.key for result in bakeoff.load("x")] == [result.key for result in several]
    listed = several.list()
    assert listed.columns[:5] == ["run", "status", "engine", "seed", "wall_s"]
    assert listed["status"].to_list() == ["ok"] * 6 + ["failed"] * 2
    assert (folder / "results" / "latest").resolve() == folder / "x"


def test_what_the_engine_cannot_do_is_told_and_the_rest_is_done():
    several = bakeoff.run(["fake/s1-first/a", "fake/s2-second/refused"], jobs=1, engine="fake")
    assert [result.key for result in several] == ["fake/s1-first/a"]
    why = "flows[0].cc: unknown congestion control 'pragu'; did you mean 'prague'?"
    assert several.refused == {"fake/s2-second/refused": why}
    assert "1 more cannot be run here" in repr(several)
    for words in ({"strict": True}, {}):
        patterns = ["fake/s1-first/a", "fake/s2-second/refused"] if words else ["fake/s2-second/refused"]
        with pytest.raises(bakeoff.BakeoffError, match="unknown congestion control 'pragu'"):
            bakeoff.run(patterns, jobs=1, engine="fake", **words)


def test_run_without_out_goes_to_results(folder):
    [result] = bakeoff.run("*/a", jobs=1, engine="fake")
    assert result.path.is_relative_to("results")
    assert (folder / "results" / "latest").resolve() == (folder / result.path).parents[2]


def test_resume_keeps_what_is_there():
    [first] = bakeoff.run("*/a", jobs=1, engine="fake", out="x")
    stamp = (first.path / "run.json").stat().st_mtime_ns
    assert [
        (result.path / "run.json").stat().st_mtime_ns
        for result in bakeoff.run("*/a", jobs=1, engine="fake", out="x", resume=True)
    ] == [stamp]


def test_last_failed_does_the_failed_runs_of_the_latest_campaign_again():
    bakeoff.run(["*/a", "*/violates"], jobs=1, engine="fake", out="x")
    [again] = bakeoff.run(last_failed=True, jobs=1)
    assert (again.key, again.record.engine, str(again.path)) == (
        "fake/s2-second/violates", "fake", "x/fake/s2-second/violates",
    )  # fmt: skip
    assert list(bakeoff.run("*/a", last_failed=True, jobs=1)) == []


def test_mistakes_are_named():
    with pytest.raises(bakeoff.BakeoffError, match="'50' has no unit"):
        bakeoff.duel("prague", "cubic", rate="50")
    with pytest.raises(bakeoff.BakeoffError, match="no such run in the catalog"):
        bakeoff.run("nothing*")
    with pytest.raises(bakeoff.BakeoffError, match="nowhere: no such results folder"):
        bakeoff.load("nowhere")
    with pytest.raises(AttributeError, match="no attribute 'dual'"):
        bakeoff.dual  # noqa: B018


def test_repetitions_begin_at_a_seed(cli):
    words = {"duration": "2s", "seed": 5}
    several = bakeoff.duel("cubic", "reno", **words, seeds=2, jobs=1)
    assert [result.run.seed for result in several] == [5, 6]
    assert bakeoff.duel("cubic", "reno", **words).record.digest == several[0].record.digest
    assert [one.run.seed for one in bakeoff.run("*/a", seed=3, seeds=2, jobs=1, engine="fake", out="x")] == [3, 4]
    # A campaign that is continued keeps its seeds.
    assert [one.run.seed for one in bakeoff.run("*/a", resume=True, jobs=1, engine="fake", out="x")] == [3, 4]
    told = cli("duel", "cubic", "reno", "--duration", "2s", "--seed", "5", "--seeds", "2", "--json", "-j", "1")
    assert [one["run"].rpartition("~")[2] for one in json.loads(told[1])] == ["seed5", "seed6"]
    with pytest.raises(bakeoff.BakeoffError, match="seed: 0; expected at least 1"):
        bakeoff.run("*/a", seed=0)
    with pytest.raises(bakeoff.BakeoffError, match="duel: seeds: 2, seed: 0; expected both at least 1"):
        bakeoff.duel("cubic", "reno", seed=0, seeds=2)


def test_runs_are_selected_by_name(cli):
    bakeoff.run(["fake/s1-first/a", "fake/s1-first/b"], jobs=1, engine="fake", out="x")
    # A word in the name, a glob on its last part, an expression on all of it.
    for only in ("first/b", "b", "re:/b$"):
        assert [result.key for result in bakeoff.load("x", only=only)] == ["fake/s1-first/b"]
        rows = cli("table", "x", "-k", only, "-f", "csv", "--columns", "run")[1].splitlines()
        assert rows == ["run", "b"]
    assert len(bakeoff.load("x").select("s2")) == 0
    assert "-k: 's2' matches none of 2 runs in x, such as fake/s1-first/a" in cli("table", "x", "-k", "s2")[2]
