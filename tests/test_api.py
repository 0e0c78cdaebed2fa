"""`import bakeoff`: duel, run, load, and what they return."""

from pathlib import Path

import polars as pl
import pytest

import bakeoff
import fakes


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with fakes.in_place():
        yield tmp_path


def test_duel_returns_samples_measures_and_a_figure(folder):
    result = bakeoff.duel("prague", "cubic", qdisc="fq_codel flows 1", rate="50mbit", rtt="20ms", seed=2)
    assert result.run.point["qdisc"] == "fq_codel flows 1"
    assert isinstance(result.series, pl.DataFrame)
    assert result.series.filter(name="prague")["value"].to_list() == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert result.summary.utilisation == 104.0
    assert result.plot("cwnd").get_suptitle() == "cwnd of prague-vs-cubic"
    assert repr(result) == "shares of prague-vs-cubic"
    assert "shares of prague-vs-cubic" in result._repr_html_()
    # Without `out` nothing is left in the working directory.
    assert list(folder.iterdir()) == []
    again = bakeoff.duel("prague", "cubic", qdisc="fq_codel flows 1", rate="50mbit", rtt="20ms", seed=2)
    assert again.path != result.path
    assert again.record.digest == result.record.digest


def test_duel_into_a_folder(folder):
    result = bakeoff.duel("prague", "cubic", out="d")
    assert result.path == Path("d/fake/duel/prague-vs-cubic")


def test_a_failed_duel_raises():
    with pytest.raises(RuntimeError, match="fake/duel/violates-vs-cubic: conservation"):
        bakeoff.duel("violates", "cubic")


def test_run_returns_a_collection(folder):
    several = bakeoff.run(["fake/s1*", "*/violates"], seeds=2, jobs=1, out="x")
    names = [f"{name}{seed}" for name in "abc" for seed in ("", "~seed2")]
    assert [result.key.split("/")[-1] for result in several] == [*names, "violates", "violates~seed2"]
    assert len(several) == 8
    assert [result.key for result in several[2:4]] == ["fake/s1-first/b", "fake/s1-first/b~seed2"]
    assert len(several.failed) == 2
    assert several.table().rows() == [(run, seed) for run in ("a", "b", "c", "violates") for seed in (1, 2)]
    assert repr(several) == "<Results: 8 runs, 2 failed, fake/s1-first/a … fake/s2-second/violates~seed2>"
    assert "failed: fake/s2-second/violates: conservation" in several._repr_html_()
    assert [result.key for result in bakeoff.load("x")] == [result.key for result in several]
    listed = several.list()
    assert listed.columns[:5] == ["run", "status", "engine", "seed", "wall_s"]
    assert listed["status"].to_list() == ["ok"] * 6 + ["failed"] * 2
    assert (folder / "results" / "latest").resolve() == folder / "x"


def test_what_the_engine_cannot_do_is_told_and_the_rest_is_done():
    several = bakeoff.run(["fake/s1-first/a", "fake/s2-second/refused"], jobs=1)
    assert [result.key for result in several] == ["fake/s1-first/a"]
    why = "flows[0].cc: unknown congestion control 'pragu'; did you mean 'prague'?"
    assert several.refused == {"fake/s2-second/refused": why}
    assert "1 more cannot be run here" in repr(several)
    for words in ({"strict": True}, {}):
        patterns = ["fake/s1-first/a", "fake/s2-second/refused"] if words else ["fake/s2-second/refused"]
        with pytest.raises(bakeoff.BakeoffError, match="unknown congestion control 'pragu'"):
            bakeoff.run(patterns, jobs=1, **words)


def test_run_without_out_goes_to_results(folder):
    [result] = bakeoff.run("*/a", jobs=1)
    assert result.path.is_relative_to("results")
    assert (folder / "results" / "latest").resolve() == (folder / result.path).parents[2]


def test_resume_keeps_what_is_there():
    [first] = bakeoff.run("*/a", jobs=1, out="x")
    stamp = (first.path / "run.json").stat().st_mtime_ns
    assert [
        (result.path / "run.json").stat().st_mtime_ns for result in bakeoff.run("*/a", jobs=1, out="x", resume=True)
    ] == [stamp]


def test_mistakes_are_named():
    with pytest.raises(bakeoff.BakeoffError, match="'50' has no unit"):
        bakeoff.duel("prague", "cubic", rate="50")
    with pytest.raises(bakeoff.BakeoffError, match="names no run of the catalog"):
        bakeoff.run("nothing*")
    with pytest.raises(bakeoff.BakeoffError, match="nowhere: no such results folder"):
        bakeoff.load("nowhere")
    with pytest.raises(AttributeError, match="no attribute 'dual'"):
        bakeoff.dual  # noqa: B018
