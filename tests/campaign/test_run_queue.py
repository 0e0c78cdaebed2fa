"""Campaigns that grow as they go on, that keep measures alone, and that take further numbers of each run."""

import json

import pytest

from bakeoff import results
from bakeoff.campaign import Execution
from bakeoff.errors import BakeoffError
from bakeoff.results import Request
from fakes.runs import make, run_campaign


def first_goodput(result):
    """The rate of the fake's first flow in its last sample: 4 + its seed (series 0, sample 4)."""
    return {"last": float(result.series.filter(name="prague", metric="goodput")["value"][-1]), "none": None}


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_calls_for_others(tmp_path, jobs):
    def more(done, waiting):
        seed = int(done.key.partition("~seed")[2] or 1)
        return [make("pie", seed=seed + 1)] if seed < 4 else []

    report = run_campaign([make("pie")], tmp_path / "c", Execution(jobs=jobs), more=more)
    assert [done.key.partition("pie")[2] for done in report.runs] == ["", "~seed2", "~seed3", "~seed4"]
    assert [results.read(done.path).record.order for done in report.runs] == [0, 1, 2, 3]
    again = run_campaign([make("pie")], tmp_path / "c", Execution(jobs=jobs), more=more, resume=True)
    assert {done.status for done in again.runs} == {"skipped"}
    assert len(again.runs) == 4


def test_who_is_asked_for_further_runs_is_told_how_many_wait(tmp_path):
    told = []

    def more(done, waiting):
        told.append(waiting)
        return [make("pie", seed=2), make("pie", seed=3)] if len(told) == 1 else []

    run_campaign([make("pie"), make("red")], tmp_path / "c", Execution(jobs=1), more=more)
    # Red waits while pie has ended; then the two seeds of pie as well.
    assert told == [1, 2, 1, 0]
    told.clear()
    run_campaign([make("pie"), make("red")], tmp_path / "c", Execution(jobs=1), more=more, resume=True)
    assert told == [1, 2, 1, 0]


def test_a_run_that_was_called_for_twice_is_done_once(tmp_path):
    runs = [make("pie"), make("red")]
    report = run_campaign(
        runs, tmp_path / "c", Execution(jobs=1), more=lambda done, waiting: [*runs, make("pie", seed=2)]
    )
    assert len(report.runs) == 3
    assert report.not_begun == 0


def test_measures_alone_are_kept(tmp_path):
    [done] = run_campaign(
        [make("pie")], tmp_path / "c", Execution(jobs=1), request=Request(kept="measures"), also=first_goodput
    ).runs
    assert sorted(path.name for path in done.path.iterdir()) == ["measured.json", "run.json", "summary.json"]
    assert json.loads((done.path / "run.json").read_text())["kept"] == "measures"
    [path] = results.scan(tmp_path / "c")
    result = results.read(path)
    assert result.summary is not None
    assert results.measured(result) == done.numbers == {"last": 5.0, "none": None}
    with pytest.raises(BakeoffError, match="only measures were kept"):
        _ = result.series
    with pytest.raises(BakeoffError, match="has no counters"):
        _ = result.counters
    (path / "summary.json").unlink()
    assert results.scan(tmp_path / "c") == []


def test_numbers_come_from_the_folder_when_a_campaign_goes_on(tmp_path):
    root = tmp_path / "c"
    asked = {"request": Request(kept="measures"), "also": first_goodput}
    run_campaign([make("pie")], root, Execution(jobs=1), **asked)
    [done] = run_campaign([make("pie")], root, Execution(jobs=1), resume=True, **asked).runs
    assert (done.status, done.numbers["last"]) == ("skipped", 5.0)


def test_a_run_without_its_series_is_made_again_where_these_are_wanted(tmp_path):
    root = tmp_path / "c"
    run_campaign([make("pie")], root, Execution(jobs=1), request=Request(kept="measures"))
    [done] = run_campaign([make("pie")], root, Execution(jobs=1), resume=True).runs
    assert done.status == "ok"
    assert len(results.read(done.path).series) > 0


def test_a_failed_run_keeps_its_logs(tmp_path):
    [done] = run_campaign(
        [make("pie", does="violates")],
        tmp_path / "c",
        Execution(jobs=1),
        request=Request(kept="measures"),
        also=first_goodput,
    ).runs
    assert (done.status, done.numbers) == ("failed", {})
    assert "teardown.log" in {path.name for path in done.path.iterdir()}


@pytest.mark.parametrize(("text", "why"), [("[]", "Expected `object`"), ('{"a": "b"}', "Expected `float | null`")])
def test_a_broken_file_of_numbers_is_named(tmp_path, text, why):
    [done] = run_campaign([make("pie")], tmp_path / "c", Execution(jobs=1), also=first_goodput).runs
    (done.path / "measured.json").write_text(text)
    with pytest.raises(BakeoffError, match=why):
        results.measured(results.read(done.path))
