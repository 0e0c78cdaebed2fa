"""bakeoff sweep: the command, its data set, its budget, and points chosen by what came out."""

from __future__ import annotations

import json
from collections import deque
from pathlib import Path
from types import SimpleNamespace

import duckdb
import polars as pl
import pytest
from typer.testing import CliRunner

import bakeoff
from bakeoff import results
from bakeoff.campaign.adaptive import Adaptive
from bakeoff.campaign.sweep_schedule import Budget, Listed, Sweep
from bakeoff.cli.app import app
from bakeoff.errors import BakeoffError
from bakeoff.results import dataset
from bakeoff.results.storage import remove
from bakeoff.scenario.sweep_points import parse_over

SHORT = """
scenario: short
title: Two flows
duration: 1s
network:
  path: [cli, mid, srv]
  rtt: 10ms
  bottleneck: {rate: 1mbit, qdisc: "{qdisc}"}
flows:
  - {name: reno, cc: reno}
  - {name: cubic, cc: cubic}
vary: {qdisc: [pfifo, fq_codel]}
"""
RATES = "network.bottleneck.rate=1mbit,2mbit"


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("short.yaml").write_text(SHORT)


def swept(*words: str, code: int = 0):
    outcome = CliRunner().invoke(app, ["sweep", "short.yaml", "-j", "1", *words])
    assert outcome.exit_code == code, outcome.output
    return outcome


def test_a_grid_becomes_a_data_set_that_duckdb_reads():
    told = swept("--over", "network.rtt=lin:10ms..30ms:3", "--over", RATES, "--measure", "utilisation", "--name", "s")
    assert "12 runs at 6 points" in told.stderr
    files = "results/s/sweep/**/*.parquet"
    sql = f"""SELECT "network.rtt", "network.bottleneck.rate", qdisc, "utilisation", scenario, engine, status
              FROM '{files}' ORDER BY ALL"""
    rows = duckdb.sql(sql).fetchall()
    assert [row[:3] for row in rows[:4]] == [
        (0.01, 1e6, "fq_codel"), (0.01, 1e6, "pfifo"), (0.01, 2e6, "fq_codel"), (0.01, 2e6, "pfifo")
    ]  # fmt: skip
    assert len(rows) == 12
    assert {row[4:] for row in rows} == {("short", "sim", "ok")}
    schema = json.loads(Path("results/s/sweep/schema.json").read_text())
    assert schema["columns"]["network.rtt"] == {"kind": "parameter", "unit": "s"}
    assert schema["columns"]["qdisc"] == {"kind": "parameter", "unit": "text"}
    assert schema["columns"]["flows.reno.steady_state.goodput_bps"]["unit"] == "bit/s"
    [low] = duckdb.sql(f"SELECT min(utilisation) FROM '{files}'").fetchall()[0]
    assert 0.5 < low <= 1


def test_what_the_page_says_of_polars_and_duckdb_works():
    page = (Path(__file__).parents[2] / "docs" / "sweeps.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith(("duckdb.", "pl."))]
    assert len(lines) == 2
    swept("--over", "network.rtt=10ms,20ms", "-k", "pfifo", "--name", "mine")
    by_duckdb = eval(lines[0], {"duckdb": duckdb}).fetchall()
    by_polars = eval(lines[1], {"pl": pl}).sort("network.rtt").rows()
    assert [row[0] for row in by_duckdb] == [0.01, 0.02]
    assert by_duckdb == by_polars


def test_only_measures_are_kept_unless_asked():
    swept("--over", RATES, "-k", "pfifo", "--name", "s")
    swept("--over", RATES, "-k", "pfifo", "--name", "whole", "--keep", "series")
    lean, whole = (results.survey(Path("results") / name).results for name in ("s", "whole"))
    assert len(lean) == len(whole) == 2
    assert not any((result.path / "series.parquet").exists() for result in lean)
    assert [result.record.digest for result in lean] == [result.record.digest for result in whole]
    assert [result.summary for result in lean] == [result.summary for result in whole]


def test_a_budget_of_runs_leaves_out_points_and_resume_does_them():
    words = ["--over", "network.rtt=lin:10ms..90ms:9", "-k", "pfifo", "--out", "s"]
    told = swept(*words, "--budget", "5")
    assert "5 runs at 5 points" in told.stderr
    assert "the budget excludes 4 points" in told.stderr
    assert len(results.scan("s")) == 5
    told = swept(*words, "--resume")
    assert "9 runs: 4 done, 5 skipped" in told.stdout
    assert len(results.scan("s")) == 9


def test_a_time_as_budget():
    # One core, 100 runs of 0.1 s at one run per point: 10 s have room for all of them, 1 s for ten.
    assert Budget.parse("10s").points(1, 0.1, 1) == 100
    assert Budget.parse("1s").points(1, 0.1, 1) == 10
    assert Budget.parse("1s").points(2, 0.1, 2) == 10
    assert Budget.parse("500").points(2, None, 1) == 250
    assert Budget.parse(None).points(1, 0.1, 1) is None
    with pytest.raises(BakeoffError, match="runs, but each point takes 4; expected 4 or more"):
        Budget.parse("3").points(4, None, 1)
    for wrong in ("10mbit", "much", "0", "1.5"):
        with pytest.raises(BakeoffError, match="expected a number of runs such as 500, or a time such as 10min"):
            Budget.parse(wrong)


def test_the_first_points_of_a_list_come_from_all_over():
    chooser = Listed([{"a": n} for n in range(80)])
    assert [point["a"] for point in chooser.first()] == list(range(0, 80, 10))
    assert chooser.room(10) == 10
    assert [[p["a"] for p in chooser.next({})] for _ in range(3)] == [[1], [2], []]


@pytest.mark.parametrize("jobs", [2, 40])
def test_runs_are_made_sixteen_at_a_time_while_fewer_wait(jobs):
    chooser = Listed([{"a": n} for n in range(136)])
    sweep = Sweep(chooser, lambda point: [SimpleNamespace(key=f"{point['a']}")], 136, Budget(), jobs)
    under_way = deque(sweep.first())

    def made(waiting: int) -> int:
        """One run ends while so many wait."""
        further = sweep.more(SimpleNamespace(key=under_way.popleft().key, wall_s=0.02, numbers={}), waiting)
        under_way.extend(further)
        return len(further)

    # Nobody knows what the others cost before all of the first eight have ended. Then each job may have two runs.
    assert [made(waiting=0) for _ in range(8)] == [0, 0, 0, 0, 0, 0, 0, 80 if jobs == 40 else 64]
    assert [made(waiting) for waiting in (40, 16, 15)] == [0, 0, 16]
    # It does not matter how many are under way: a hundred workers are kept busy as two are.
    assert [made(waiting=0) for _ in range(3)] == [16, 16, 0 if jobs == 40 else 16]


def chosen(rate, budget: int, over: tuple[str, ...]) -> list[tuple[float, ...]]:
    """Where points are put if each gives what `rate` says of its place."""
    chooser = Adaptive(parse_over(over), budget)
    places = [tuple(point.values()) for point in chooser.first()]
    while further := chooser.next({n: (rate(*place),) for n, place in enumerate(places)}):
        places += [tuple(point.values()) for point in further]
    return places


def test_points_gather_at_a_step():
    # A step at 0.3: a grid of 64 points has it between two that are 1/63 apart.
    places = [x for [x] in chosen(lambda x: float(x > 0.3), 64, ("a=lin:0.0..1.0",))]
    assert len(places) == len(set(places)) == 64
    assert min(x for x in places if x > 0.3) - max(x for x in places if x <= 0.3) < 1 / 63 / 3
    assert max(b - a for a, b in zip(sorted(places), sorted(places)[1:], strict=False)) <= 0.2  # nowhere is it blind


def test_points_gather_at_a_step_in_two_dimensions():
    def step(x, y):
        return float(x + y > 1)

    places = chosen(step, 150, ("a=lin:0.0..1.0", "b=lin:0.0..1.0"))
    near = [abs(x + y - 1) < 0.1 for x, y in places]
    assert len(places) == 150
    # That band takes 1 - 0.9^2 = 0.19 of the square.
    assert sum(near) / 150 > 0.4


def test_counts_run_out():
    # Between 1 and 5 there are five whole numbers, however large the budget is.
    assert sorted(x for [x] in chosen(float, 40, ("a=lin:1..5",))) == [1, 2, 3, 4, 5]


def test_what_gives_no_number_is_gone_around():
    places = [x for [x] in chosen(lambda x: None if x < 0.5 else 1.0, 20, ("a=lin:0.0..1.0",))]
    assert len(places) == 20


def test_an_adaptive_sweep_goes_on_where_it_was(tmp_path):
    words = ["--over", "network.rtt=log:5ms..100ms", "-k", "pfifo", "--adaptive", "utilisation", "--out", "s"]
    told = swept(*words, "--budget", "12")
    assert "12 runs: 12 done" in told.stdout
    first = sorted(path.name for path in results.scan("s"))
    told = swept(*words, "--budget", "20", "--resume")
    assert "skipped" in told.stdout
    assert len(results.scan("s")) >= 20
    assert set(first) <= {path.name for path in results.scan("s")}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--over", RATES, "--adaptive", "jain"], "--adaptive: missing range"),
        (["--over", "network.rtt=lin:1ms..9ms", "--adaptive", "jain"], "--adaptive: missing --budget"),
        (["--over", "network.rtt=lin:1ms..9ms", "--adaptive", "jain", "--budget", "4"], "the budget allows 2"),
        (
            ["--over", "network.rtt=lin:1ms..9ms", "--adaptive", "jane", "--budget", "40"],
            "unknown measure 'jane'; did you mean 'jain'",
        ),
        (["--over", RATES, "--measure", "jain() > 1"], "a boolean; expected a number"),
        (["--over", RATES, "--keep", "all"], "expected measures or series"),
        (["--over", RATES, "--sample", "lhs:9"], "missing range"),
        (["--over", "network.rtt=1ms,fast"], "'fast'"),
        (["--over", RATES, "--measure", "jain is 1"], "'jain is 1': syntax error at 'is'"),
        (["--over", RATES, "--measure", "[1]"], "'[1]' is not supported here"),
        (["--over", RATES, "--measure", 'goodput("nobody")'], "--measure: 'goodput(\"nobody\")': no flow 'nobody'"),
        (["--over", "network.rtt=lin:1ms..9ms:3", "--seeds", "99999"], "599,994 runs; at most 100,000 without --yes"),
        (["--over", f"network.rtt=lin:1ms..9ms:{'9' * 5000}"], "values; expected 2 or more, and at most 100,000"),
        (["--over", "network.rtt=lin:1ms..9ms", "--sample", f"lhs:{'9' * 5000}"], "expected lhs:N or sobol:N"),
        (
            ["--over", "network.rtt=lin:1ms..9ms", "--over", RATES, "--sample", "lhs:60000"],
            "120,000 runs; at most 100,000 without --yes",
        ),
        *(
            (["--over", "network.rtt=lin:1ms..9ms", "--adaptive", "jain", "--budget", budget], "runs; at most 100,000")
            for budget in ("100002", "99999999999", "99999999999h")
        ),
    ],
)
def test_a_wrong_word_writes_nothing(words, why):
    outcome = CliRunner().invoke(app, ["sweep", "short.yaml", *words])
    assert isinstance(outcome.exception, BakeoffError)
    assert why in str(outcome.exception)
    assert not Path("results").exists()


def test_a_dry_run_says_the_cost():
    told = swept("--over", "network.rtt=lin:10ms..30ms:3", "--seeds", "4", "--dry-run")
    assert told.stdout.startswith("24 runs at 3 points, about ")
    assert not Path("results").exists()


def test_a_number_that_some_runs_lack_is_missing_in_their_rows_only():
    swept("--over", "network.rtt=lin:10ms..40ms:4", "-k", "pfifo", "--out", "s")
    runs = results.scan("s")
    # Each number stands in these runs alone: at the beginning, in the middle, at the end.
    for name, having in {"a": [0], "b": [1, 2], "c": [3], "d": [0, 2]}.items():
        for number in having:
            summary = json.loads((runs[number] / "summary.json").read_text())
            summary["flows"]["reno"][name] = number + 0.5
            (runs[number] / "summary.json").write_text(json.dumps(summary))
    # What a campaign took besides has the last word, over a measure of that name too.
    (runs[2] / "measured.json").write_text(json.dumps({"flows.reno.b": 7, "jain": None, "e": 1}))
    folder, rows = dataset.write(Path("s"), runs)
    assert rows == 4
    read = pl.read_parquet(folder / "**/*.parquet")
    assert read["jain"].null_count() == 0
    assert [read[f"flows.reno.{name}"].to_list() for name in "abcd"] == [
        [0.5, None, None, None],
        [None, 1.5, 7.0, None],
        [None, None, None, 3.5],
        [0.5, None, 2.5, None],
    ]
    assert read["e"].to_list() == [None, None, 1.0, None]


def test_a_number_that_no_run_has_is_an_empty_column():
    swept("--over", "network.rtt=10ms,20ms", "-k", "pfifo", "--out", "s")
    runs = results.scan("s")
    for run in runs:
        summary = json.loads((run / "summary.json").read_text())
        summary["pair"] = {"flows": ["reno", "cubic"], "convergence_s": None, "meet_s": 1.5}
        (run / "summary.json").write_text(json.dumps(summary))
        (run / "measured.json").write_text(json.dumps({"convergence()": None}))
    folder, _ = dataset.write(Path("s"), runs)
    read = pl.read_parquet(folder / "**/*.parquet")
    for name in ("pair.convergence_s", "convergence()"):
        assert read[name].dtype == pl.Float64
        assert read[name].null_count() == 2
    assert read["pair.meet_s"].to_list() == [1.5, 1.5]
    about = json.loads((folder / "schema.json").read_text())["columns"]
    assert about["pair.convergence_s"] == {"kind": "measure", "unit": "s"}


def test_rows_of_failed_runs_and_of_names_that_no_path_takes(tmp_path):
    swept("--over", RATES, "-k", "pfifo", "--out", "s")
    one, other = results.scan("s")
    record = json.loads((one / "run.json").read_text())
    record |= {"status": "failed", "digest": None, "error": "why"}
    record["resolved"]["scenario"] = "a/b=c"
    (one / "run.json").write_text(json.dumps(record))
    folder, rows = dataset.write(Path("s"), [one, other])
    assert rows == 2
    found = duckdb.sql(f"SELECT scenario, status, error, jain IS NULL FROM '{folder}/**/*.parquet' ORDER BY ALL")
    assert found.fetchall() == [("a/b=c", "failed", "why", True), ("short", "ok", None, False)]


def test_a_sweep_is_removed_with_its_data_set():
    swept("--over", RATES, "-k", "pfifo", "--out", "s")
    remove(Path("s"))
    assert not Path("s").exists()


def test_workers_of_dask_do_the_same_runs():
    swept("--over", RATES, "-k", "pfifo", "--name", "here")
    swept("--over", RATES, "-k", "pfifo", "--name", "dask", "--dask", "local:1", "--run-timeout", "1min")
    here, there = (results.survey(Path("results") / name).results for name in ("here", "dask"))
    assert [result.record.digest for result in here] == [result.record.digest for result in there]
    assert len(there) == 2


def test_python_gets_the_same_data_set():
    found = bakeoff.sweep("short.yaml", ["network.rtt=10ms,20ms"], measures=["utilisation"], jobs=1, out="p")
    assert (found.rows, found.data_set, found.report.failed) == (4, Path("p/sweep"), [])
    swept("--over", "network.rtt=10ms,20ms", "--measure", "utilisation", "--name", "c")
    columns = ["network.rtt", "qdisc", "utilisation"]
    ours, theirs = found.frame(), pl.read_parquet("results/c/sweep/**/*.parquet")
    assert ours.columns == theirs.columns
    assert ours.select(columns).rows() == theirs.select(columns).rows()
