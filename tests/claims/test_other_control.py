"""Campaigns whose runs are equal but for one congestion control: pairs, and what changed."""

import json

import pytest

import bakeoff
from bakeoff.api import Results
from bakeoff.api.do_compare import compared
from bakeoff.claims.comparison import side_of
from bakeoff.claims.other_control import Controls, changed, matched
from bakeoff.errors import BakeoffError
from synthetic import made


def runs(*controls, goodput=40e6, run="a", **words):
    """Three seeds; the first flow has 1 % more or less of its goodput by the seed, the second 5 Mbit/s."""
    flows = tuple(
        (control if controls.count(control) == 1 else f"{control}{i}", control) for i, control in enumerate(controls)
    )
    rates = [(goodput * scatter, 5e6)[: len(flows)] for scatter in (0.99, 1.0, 1.01)]
    return [made(rate, flows=flows, run=run, seed=seed, **words) for seed, rate in enumerate(rates, 1)]


def sides(ours, theirs):
    return side_of("new", ours), side_of("old", theirs)


def test_runs_that_differ_in_the_control_of_a_flow_are_pairs_under_our_names():
    ours, theirs = sides(runs("bbr", "reno", run="bbr-reno"), runs("cubic", "reno", run="cubic-reno", goodput=50e6))
    found = matched(ours, theirs)
    assert found.controls == Controls("bbr", "cubic")
    assert found.pairs == 1
    every = {each.key[2:]: each for each in changed(ours, found.theirs)}
    # 40 beside 50 Mbit/s, of each seed 20 % less: -9.9, -10, -10.1; half = 4.3027 * 0.1 / sqrt(3) = 0.248 of 50.
    one = every["bbr-reno", "bbr", "goodput"]
    assert (one.change.pairs, one.change.word) == (3, "worse")
    assert one.change.relative == pytest.approx(-0.2, abs=1e-3)
    assert one.sentence.startswith("l4s-tests/s6-rfc3168/bbr-reno, bbr: goodput: 20.0 % less, interval 19.5 to 20.5 %")
    assert every["bbr-reno", "reno", "goodput"].change.word == "same"


@pytest.mark.parametrize(
    "other",
    [
        runs("cubic", "cubic"),  # two controls are replaced
        runs("cubic", "reno", rate="20mbit"),
        runs("cubic", "reno", child="pfifo"),
        runs("cubic"),
        runs("bbr", "reno"),  # equal: nothing is replaced
    ],
)
def test_what_differs_in_more_than_a_control_is_no_pair(other):
    assert matched(*sides(runs("bbr", "reno"), other)) is None


def test_the_replacement_that_pairs_most_runs_counts():
    ours = [*runs("bbr", run="1"), *runs("bbr", run="2", child="pfifo"), *runs("vegas", run="3", rate="20mbit")]
    theirs = [*runs("cubic", run="4"), *runs("cubic", run="5", child="pfifo"), *runs("reno", run="6", rate="20mbit")]
    found = matched(*sides(ours, theirs))
    assert (found.controls, found.pairs) == (Controls("bbr", "cubic"), 2)
    assert {key.run for key in found.theirs.values} == {"1", "2"}
    notes = compared(("new", ours), ("old", theirs)).comparison.notes
    assert notes == ["1 runs of new have no pair that differs in this control only"]
    with pytest.raises(BakeoffError, match="several controls differ"):
        matched(*sides([*runs("bbr", run="1"), *runs("vegas", run="2")], runs("cubic", run="3")))


def test_of_two_pairs_that_counts_which_replaces_more_flows():
    theirs = [*runs("bbr", "cubic", run="half"), *runs("bbr", "bbr", run="all")]
    _, other = sides_ = sides(runs("cubic", "cubic", run="mine"), theirs)
    found = matched(*sides_)
    assert found.controls == Controls("cubic", "bbr")
    [goodput] = {
        tuple(values.values()) for key, values in other.values.items() if key[2:] == ("all", "bbr1", "goodput")
    }
    [mine] = {
        tuple(values.values())
        for key, values in found.theirs.values.items()
        if key[2:] == ("mine", "cubic1", "goodput")
    }
    assert mine == goodput


def test_compare_says_what_changed_and_agrees_if_nothing_is_worse():
    new, old = runs("bbr", run="x"), runs("cubic", run="y", goodput=30e6)
    found = bakeoff.compare(Results(new), Results(old))
    # 40 beside 30 Mbit/s: 9.9, 10, 10.1, so 33.3 ± 0.248 / 30.
    assert (found.controls, found.agrees) == (("bbr", "cubic"), True)
    assert "33.3 % more, interval 32.5 to 34.2 %" in str(found)
    assert bakeoff.compare(Results(old), Results(new)).agrees is False
    told = json.loads(found.text("json"))
    assert told["controls"] == {"ours": "bbr", "theirs": "cubic"}
    assert len(told["changes"]) == len(found.frame()) == len(found.changes)
    assert r"\begin{table}" in found.text("latex")
    with pytest.raises(BakeoffError, match="differ in the congestion control; expected none of by"):
        bakeoff.compare(Results(new), Results(old), own=True)


def test_common_runs_come_first():
    ours = [*runs("reno", run="same"), *runs("bbr", run="x", rate="20mbit")]
    theirs = [*runs("reno", run="same"), *runs("cubic", run="y", rate="20mbit")]
    found = bakeoff.compare(Results(ours), Results(theirs))
    assert found.controls is None
    assert {one.key.run for one in found.differences} == {"same"}
