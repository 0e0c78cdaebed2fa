"""The delays of DualPI2's two queues: series, measures, tables and claims have them under one name on every engine."""

import json

import pytest

import bakeoff
from bakeoff import results
from bakeoff.measure.functions import CATALOGUE
from bakeoff.measure.measured_run import MeasuredRun


@pytest.fixture(scope="module")
def duel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("duel")
    bakeoff.duel("prague", "cubic", qdisc="dualpi2", rate="50mbit", rtt="20ms", duration="20s", out=folder)
    [path] = results.scan(folder)
    return folder, path


def test_l_waits_for_a_millisecond_and_c_for_the_target(duel):
    queue = results.read(duel[1]).summary.queues["mid>srv"]
    # RFC 9332: a step at 1 ms for L, a target of 15 ms for C.
    assert queue.parts["L"].mean < 0.002
    assert 0.010 < queue.parts["C"].mean < 0.020
    assert queue.parts["L"].mean < queue.sojourn_mean_s.mean < queue.parts["C"].mean


def test_a_queue_that_nothing_passed_in_the_window_has_no_delay(tmp_path):
    (tmp_path / "stops.yaml").write_text(
        "scenario: stops\ntitle: Prague stops before the window\nduration: 12s\n"
        "network: {path: [cli, mid, srv], rtt: 10ms, bottleneck: {rate: 10mbit, qdisc: dualpi2}}\n"
        "flows: [{name: prague, cc: prague, stop: 3s}, {name: cubic, cc: cubic}]\n"
        "measure: {steady_state: {window: 4s, ends: at end}}\n"
    )
    [run] = bakeoff.run(str(tmp_path / "stops.yaml"), jobs=1, out=tmp_path / "r")
    assert run.ok
    assert run.summary.queues["mid>srv"].parts.keys() == {"C"}


def test_a_claim_asks_for_either(duel):
    run = MeasuredRun(results.read(duel[1]), ("sojourn", "sojourn_l", "sojourn_c"))
    mean = CATALOGUE["queue_delay_over_time_mean"].take
    parts = run.summary.queues["mid>srv"].parts
    assert mean(run, "L") == mean(run, "mid>srv/L") == parts["L"].mean
    assert mean(run, "C") == parts["C"].mean
    assert mean(run, "C", begin=5.0, end=15.0) == pytest.approx(parts["C"].mean, rel=0.5)
    assert mean(run, "L") < mean(run) < mean(run, "C")


def test_the_table_of_queues_has_a_column_for_each(duel, cli):
    code, out, _ = cli("table", str(duel[0]), "--rows", "queues", "-f", "json")
    assert code == 0
    [row] = [row for row in json.loads(out)["rows"] if row["queue"] == "mid>srv"]
    assert row["l_delay_mean_s"] < 0.002
    assert 0.010 < row["c_delay_mean_s"] < 0.020


def test_real_linux_tells_them_under_the_same_name(kernel, tmp_path):
    # Nobody sends ECT(1): all stands in C, and L is empty at every sample.
    ran = bakeoff.duel("cubic", "reno", qdisc="dualpi2", rate="10mbit", duration="8s", engine=kernel, out=tmp_path)
    parts = ran.summary.queues["mid>srv"].parts
    assert parts["L"].max == 0.0
    assert 0.005 < parts["C"].mean < 0.030
