"""run --until: seeds until an interval is narrow, a cap, a minimum, and what is said."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import bakeoff
from bakeoff.campaign.until import Goal, Repetitions
from bakeoff.claims.goal import goal_of
from bakeoff.cli.app import app
from bakeoff.errors import BakeoffError
from bakeoff.scenario.run import run_key

SHORT = """
scenario: short
duration: 1s
network: {path: [cli, mid, srv], rtt: 10ms, bottleneck: {rate: 2mbit, qdisc: "{qdisc}"}}
flows: [{name: reno, cc: reno}, {name: cubic, cc: cubic}]
vary: {qdisc: [pfifo, fq_codel]}
"""


def of(name, seeds):
    made = (("s", "s", name, seed) for seed in range(1, seeds + 1))
    return [SimpleNamespace(suite=a, scenario=b, run=c, seed=d, key=run_key(a, b, c, d)) for a, b, c, d in made]


def done(run, value):
    return SimpleNamespace(key=run.key, numbers={"x": value})


def finished(repetitions, value_of):
    """Do all runs that are called for, one after the other."""
    waiting = repetitions.first()
    while waiting:
        run = waiting.pop(0)
        waiting += repetitions.more(done(run, value_of(run)), len(waiting))
    return repetitions.all


def test_what_is_narrow_ends_after_three_seeds():
    [one] = finished(Repetitions(of("a", 30), Goal("x", 0.02, relative=True)), lambda run: 10.0)
    assert (one.ended, one.reached, one.found["ci95"]) == (3, True, 0)


def test_a_run_is_repeated_until_its_interval_is_narrow():
    # Values alternate between 11 and 9. The interval's half is t s / sqrt(n): with 11 of them
    # 2.2281 * 1.0445 / 3.3166 = 0.7017, with 12 of them 2.2010 * 1.0445 / 3.4641 = 0.6637.
    [one] = finished(Repetitions(of("a", 30), Goal("x", 0.7, relative=False)), lambda run: 9.0 + 2 * (run.seed % 2))
    assert one.ended == 12
    assert one.reached
    assert one.found["ci95"] <= 0.7


def test_the_cap_is_kept_and_said():
    several = Repetitions([*of("a", 5), *of("b", 5)], Goal("x", 0.01, relative=True))
    a, b = finished(several, lambda run: 1.0 if run.run == "b" else float(run.seed))
    assert (a.ended, a.reached) == (5, False)
    assert (b.ended, b.reached) == (3, True)


def test_a_run_without_a_number_is_not_repeated_for_ever():
    [one] = finished(Repetitions(of("a", 30), Goal("x", 0.01, relative=True)), lambda run: None)
    assert (one.ended, one.lost, one.reached, one.found) == (3, 3, False, None)


def test_seeds_that_were_asked_for_are_done_in_any_case():
    [one] = finished(Repetitions(of("a", 30), Goal("x", 0.5, relative=True), least=7), lambda run: 1.0)
    assert one.ended == 7


@pytest.mark.parametrize(
    ("text", "goal"),
    [
        ("jain ±2%", Goal("jain", 0.02, relative=True)),
        ("goodput(1) +-0.5mbit", Goal("goodput(1)", 5e5, relative=False)),
        ("ping_p99() +/- 1ms", Goal("ping_p99()", 0.001, relative=False)),
        ("utilisation±0.01", Goal("utilisation", 0.01, relative=False)),
    ],
)
def test_what_is_asked_for(text, goal):
    assert goal_of(text) == goal


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("jain", "expected a measure, ± and the half-width of the interval, such as"),
        ("jane ±2%", "unknown measure 'jane'"),
        ("jain ±much", "'much': invalid quantity"),
        ("jain ±0%", "expected more than 0"),
        ("goodput(1) ±5ms", "unit of '5ms' does not match"),
        ("goodput(1) ±2", r"'2' has no unit; expected bit/s, for example 'goodput\(1\) ±2mbit'"),
        ("ping_p99 ±2", "'2' has no unit; expected s, for example 'ping_p99 ±2ms'"),
        ("jain ±2", "wider than the range of jain, 0 to 1; expected for example 'jain ±2%'"),
        ("jain ±1e999", "'1e999': invalid quantity"),
        ("jain is 1 ±2%", "syntax error at 'is'"),
    ],
)
def test_what_cannot_be_asked_for(text, why):
    with pytest.raises(BakeoffError, match=why):
        goal_of(text)


def test_the_command_says_how_many_seeds_each_run_took(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("short.yaml").write_text(SHORT)
    words = ["run", "short.yaml", "-j", "1", "--out", "r", "--until", "goodput(1) ±0.1%", "--max-seeds", "4"]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 0, told.output
    assert "goodput(1): mean over seeds with its 95 % interval by Student's t" in told.stdout
    again = CliRunner().invoke(app, [*words, "--resume", "--json"])
    until = json.loads(again.stdout)["until"]
    assert [row["run"] for row in until["runs"]] == ["local/short/pfifo", "local/short/fq_codel"]
    for row in until["runs"]:
        assert row["seeds"] == 4 or row["reached"]
        assert row["reached"] is (row["ci95"] <= 0.001 * row["mean"])
    assert json.loads(again.stdout)["not_begun"] == 0


@pytest.mark.parametrize(
    ("number", "why"), [('goodput("nobody")', "no flow 'nobody' in pfifo"), ("ping_p99", "no probe in pfifo")]
)
def test_a_name_that_no_run_has_is_refused_before_any_run(tmp_path, monkeypatch, number, why):
    monkeypatch.chdir(tmp_path)
    Path("short.yaml").write_text(SHORT)
    told = CliRunner().invoke(app, ["run", "short.yaml", "--until", f"{number} ±1%"])
    assert isinstance(told.exception, BakeoffError)
    assert why in str(told.exception)
    assert not Path("results").exists()


def test_the_function_repeats_runs_and_says_how_often(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("short.yaml").write_text(SHORT)
    words = {"only": "pfifo", "jobs": 1, "out": "r"}
    several = bakeoff.run("short.yaml", **words, until="goodput(1) ±1gbit", seeds=4, max_seeds=6)
    # No interval of a flow at 2 Mbit/s is wider than 1 Gbit/s: the four seeds that were asked for are enough.
    assert [result.run.seed for result in several] == [1, 2, 3, 4]
    [one] = several.repetitions
    assert (one.name, one.ended, one.reached) == ("local/short/pfifo", 4, True)
    with pytest.raises(BakeoffError, match="expected a measure, ± and the half-width of the interval, such as"):
        bakeoff.run("short.yaml", until="jain")
