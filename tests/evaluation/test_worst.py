"""`bakeoff evaluate --worst`: the space, the goals, the search, the shrinking, and a short real search."""

import json
import random
import sys
from math import inf, log2
from pathlib import Path

import pytest

import bakeoff
from bakeoff import campaign
from bakeoff.api import do_worst
from bakeoff.campaign import Done
from bakeoff.claims.expression import parse
from bakeoff.errors import UsageError
from bakeoff.evaluation.adversary import document, space
from bakeoff.evaluation.adversary.document import Contest
from bakeoff.evaluation.adversary.goal import ITSELF, WORST, Goal, goal
from bakeoff.evaluation.adversary.hunt import FRESH, Hunt
from bakeoff.evaluation.adversary.search import Best, Found, search
from bakeoff.evaluation.adversary.shrink import shrink
from bakeoff.evaluation.adversary.space import Choice, Niche, Range
from bakeoff.evaluation.seats import Asked
from bakeoff.scenario import catalog

SMALL = (
    Choice("queue", ("a", "b", "c")),
    Range("rate", 1e6, 100e6, usual=20e6),
    Range("loss", 1e-5, 0.1, usual=None),
    Range("start", -5.0, 5.0, usual=None, logarithmic=False),
)
USUAL = {"queue": "pfifo", "rate": 20e6, "rtt": 0.04, "buffer": 1.0, "loss": None, "jitter": None, "step": None,
         "cross": None, "crowd": None, "start": None, "other_rtt": None}  # fmt: skip


def driven(tries, score):
    """Answer a generator of tries by a function of the point and the seed; all that was tried."""
    tried = []
    try:
        batch = next(tries)
        while True:
            tried += batch
            batch = tries.send([score(each) for each in batch])
    except StopIteration:
        return tried


def test_values_of_a_range():
    rate = Range("rate", 1e6, 100e6, usual=20e6)
    assert [rate.at(share) for share in (0, 0.5, 1)] == [1e6, 10e6, 100e6]
    assert Range("start", -5.0, 5.0, usual=None, logarithmic=False).at(0.75) == 2.5
    assert Range("crowd", 1.0, 8.0, usual=None, whole=True).at(0.5) == 3.0  # the root of 8 is 2.83
    assert [space.preferred(value) for value in (0.017, 1.3e7, 0.03, -4.0)] == [0.02, 1e7, 0.02, -5.0]
    assert space.rounded(23456.0, 2) == 23000.0


def test_simpler_values_come_first_and_stay_in_the_range():
    assert SMALL[0].simpler("c") == ["a", "b"]
    assert SMALL[1].simpler(33e6) == [20e6, 50e6, 30e6]
    # None, 0.033 over 30, 10 and 3 as 1, 2 or 5, and the value itself: 0.001, 0.005 (or 0.002), 0.01, 0.05 and 0.03.
    assert SMALL[2].simpler(0.033) == [None, 0.001, 0.005, 0.01, 0.05, 0.03]
    assert SMALL[2].simpler(2e-5) == [None]
    assert SMALL[2].simpler(None) == []


def test_the_score_is_the_logarithm_of_the_ratio_above_a_floor():
    starved = goal("starvation", "bbr", ["bbr", "cubic"])
    assert starved.competitors == ("cubic",)
    # 2 % of 20 Mbit/s is 0.4 Mbit/s: (9.6 + 0.4) / (0.85 + 0.4) = 8.
    assert starved.score(0.85e6, 9.6e6, 20e6) == pytest.approx(3)
    assert starved.score(9.6e6, 0.85e6, 20e6) == pytest.approx(-3)
    assert starved.score(None, 1e6, 20e6) is None
    delay = goal("delay", "bbr", ["cubic"])
    assert delay.competitors == (None, "cubic")
    assert delay.score(0.031, 0.007, 20e6) == pytest.approx(log2(32 / 8))
    assert delay.score(inf, 0.007, 20e6) == WORST
    assert delay.score(inf, inf, 20e6) == 0


def test_goals():
    assert goal("fairness", "bbr", ["cubic"]).competitors == (ITSELF,)
    assert goal('goodput("other")', "bbr", ["cubic", "reno"]).competitors == ("cubic", "reno")
    assert goal('srtt_p99("one")', "bbr", ["cubic"]).competitors == (None, "cubic")
    assert [goal(text, "bbr", ["reno"]).bad for text in ('goodput("one")', "jain()", "drops()")] == [
        "low",
        "low",
        "high",
    ]
    assert goal("high:jain() - 0.5", "bbr", ["reno"]).bad == "high"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("starvatoin", "did you mean 'starvation'"),
        ("goodput('one') > 1mbit", "expected a measure"),
        ("jain() / 2", "'low:EXPRESSION' or 'high:EXPRESSION'"),
        ("1 + 1", "expected a measure"),
    ],
)
def test_what_is_no_goal(text, problem):
    with pytest.raises(UsageError, match=problem):
        goal(text, "bbr", ["cubic"])


def test_the_search_finds_the_peak_of_each_niche():
    """Of a score that is highest at the queue b, at 10 Mbit/s, and with a loss of 1 %."""

    def score(each):
        point = each.point
        if point["loss"] is None:
            return 0.0
        distance = abs(log2(point["rate"] / 10e6)) + abs(log2(point["loss"] / 0.01))
        return (5.0 if point["queue"] == "b" else 3.0) + (each.other == "x") - distance

    found = Found()
    tried = driven(search({Niche("x"): SMALL, Niche("y"): SMALL}, 300, found), score)
    assert 280 <= len(tried) <= 300
    # At most 3 of a niche in a batch, two more seeds each; 16 points of each come first.
    assert len([each for each in tried[: 2 * 16 + 2 * 3 * 2] if each.seed > 1]) == 2 * 3 * 2
    for other, peak in (("x", 6.0), ("y", 5.0)):
        best = found.best[Niche(other)]
        assert best.score > peak - 1.5
        assert best.point["queue"] == "b"
    again = Found()
    assert driven(search({Niche("x"): SMALL, Niche("y"): SMALL}, 300, again), score) == tried
    assert driven(search({Niche("x"): SMALL}, 40, Found(), seed=2), score)[0] != tried[0]


def test_luck_with_one_seed_is_not_the_worst():
    """The score of seed 1 is 5 for the queue a, whose other seeds give 0: a mean of 5/3; the queue b always has 3."""
    score = {"a": (5.0, 0.0), "b": (3.0, 3.0), "c": (0.0, 0.0)}
    found = Found()
    driven(search({Niche(None): (SMALL[0],)}, 30, found), lambda each: score[each.point["queue"]][each.seed > 1])
    assert (found.best[Niche(None)].point, found.best[Niche(None)].score) == ({"queue": "b"}, 3.0)


def test_scores_that_are_missing_are_no_finding():
    found = Found()
    driven(search({Niche(None): SMALL}, 30, found), lambda _: None)
    assert found.best == {}


def test_shrinking_keeps_only_what_the_score_needs():
    """The score needs a loss of at least 0.1 % at 30 Mbit/s or more: 20 Mbit/s is too little, 50 Mbit/s is rounder."""
    best = Best("x", {"queue": "c", "rate": 37.3e6, "loss": 0.0234, "start": 1.7}, 4.0)
    driven(
        shrink(best, SMALL, alone=True, seeds=(1,)),
        lambda each: 4.0 if (each.point["loss"] or 0) >= 0.001 and each.point["rate"] >= 30e6 else 0.0,
    )
    assert best == Best(None, {"queue": "a", "rate": 50e6, "loss": 0.001, "start": None}, 4.0, shrunk=True)


def test_shrinking_drops_one_of_two_that_replace_each_other():
    """Each alone has 3.9, as much as 90 % of 4; without both there is nothing."""
    point = {"queue": "a", "rate": 20e6, "loss": 0.01, "start": 2.0}
    best = Best("x", point, 4.0)
    tried = driven(
        shrink(best, SMALL, alone=False, seeds=(1,)),
        lambda each: 0.0 if each.point["loss"] is None and each.point["start"] is None else 3.9,
    )
    assert (best.point["loss"] is None) != (best.point["start"] is None)
    assert best.other == "x"
    assert {"queue": "a", "rate": 20e6, "loss": None, "start": None} in [each.point for each in tried]


def test_shrinking_uses_the_mean_over_seeds():
    """Without the loss two seeds of three stay bad: (4 + 4 + 0) / 3 is less than 3.6."""
    best = Best(None, {"queue": "a", "rate": 20e6, "loss": 1e-5, "start": None}, 4.0)
    driven(shrink(best, SMALL, alone=True), lambda each: 0.0 if each.point["loss"] is None and each.seed == 3 else 4.0)
    assert best.point["loss"] == 1e-5


def test_a_scenario_file_has_at_most_15_lines():
    every = USUAL | {
        "loss": 0.01,
        "jitter": 0.1,
        "step": 5e6,
        "cross": 0.2,
        "crowd": 3.0,
        "start": -1.0,
        "other_rtt": 0.08,
    }
    contest = Contest("bbr", "cubic", goal("ping_p99()", "bbr", ["reno"]))
    written = document.text(contest, every, "reno")
    assert len(written.splitlines()) == 15
    assert "limit 67}  # 1 BDP" in written  # 20 Mbit/s x 40 ms / 12,000 bit = 66.7
    [(ours, theirs)] = document.runs(contest, written, "p1", [7])
    assert [flow.cc for flow in ours.flows] == ["bbr", "reno", "reno", "reno", "reno", "cubic"]
    assert [flow.cc for flow in theirs.flows][:2] == ["cubic", "reno"]
    assert (ours.seed, ours.key) == (7, "local/p1/bbr~seed7")
    assert ours.flows[0].start_s == pytest.approx(1, abs=0.01)


def test_the_competitor_may_be_the_control_itself():
    contest = Contest("bbr", "cubic", goal("fairness", "bbr", ["reno"]))
    written = document.text(contest, USUAL | {"other_rtt": 0.08}, ITSELF)
    [(ours, theirs)] = document.runs(contest, written, "p1", [1])
    assert [flow.cc for flow in ours.flows] == ["bbr", "bbr"]
    assert [flow.cc for flow in theirs.flows] == ["cubic", "cubic"]


def test_fairness_is_searched_with_equal_and_with_unlike_rtts():
    found = goal("fairness", "bbr", ["reno"])
    assert found.rtts == (False, True)
    assert goal("own", "bbr", ["reno"]).rtts == (None,)
    names = {unlike: [each.name for each in space.dimensions(Niche(ITSELF, "FIFO", unlike))] for unlike in found.rtts}
    assert "other_rtt" not in names[False]
    rtt = space.dimensions(Niche(ITSELF, "FIFO", True))[-1]
    assert (rtt.name, rtt.optional) == ("other_rtt", False)


def hunted(order):
    """A search with made-up numbers, whose runs end in some order: the findings, and how many runs there were."""
    contest = Contest("bbr", "cubic", Goal("own", parse('goodput("one")', ()), "low", (None, "cubic")))
    hunt = Hunt(contest, 1000, seeds=4)
    waiting = hunt.first()
    asked = []
    while waiting:
        asked += waiting
        order.shuffle(waiting)
        following = []
        for run in waiting:
            assert not following
            lossy = isinstance(run.links[1].loss, dict)
            value = 1e6 if lossy and run.flows[0].cc == "bbr" else 9e6
            numbers = {'goodput("one")': value}
            following = hunt.more(Done(run.key, Path(), "ok", numbers=numbers))
        waiting = following
    assert len({run.key for run in asked}) == len(asked) == hunt.used == hunt.expected <= 1000
    return hunt.confirmed, asked


def test_the_order_in_which_runs_end_does_not_matter():
    one, asked = hunted(random.Random(1))
    other, asked_again = hunted(random.Random(2))
    assert one == other
    assert [run.key for run in sorted(asked, key=str)] == [run.key for run in sorted(asked_again, key=str)]
    first = one[0]
    assert first.best.shrunk
    assert first.best.other is None  # the competitor is not needed
    assert {name for name, value in first.best.point.items() if value is not None and USUAL[name] is None} == {"loss"}
    assert len(first.values) == 4


def test_a_short_search_finds_that_bbr_starves_cubic(tmp_path):
    found = bakeoff.worst(
        "bbr", "starvation", runs=140, against=["cubic"], seeds=2, kernel=False, jobs=1, out=tmp_path / "out"
    )
    assert found.runs <= 140
    first = found.findings[0]
    assert first.other == "cubic"
    assert first.measured is not None
    assert first.measured.factor > 2
    assert len(first.path.read_text().splitlines()) <= 15
    # The file gives the same numbers.
    done = bakeoff.run(str(first.path), seed=FRESH, seeds=1, out=tmp_path / "again", store="none")
    assert done[0].measure('goodput("other")') == first.measured.cc.values[0][0]
    assert done[1].measure('goodput("other")') == first.measured.baseline.values[0][0]
    assert "worst case of starvation" in repr(found)


MINE = """\
class Broken:
    def ssthresh(self, sk):
        return 1 // 0

    def cong_avoid(self, sk, acked):
        sk.snd_cwnd += 1
"""


def test_a_control_that_fails_is_a_finding_of_two_runs(tmp_path):
    (tmp_path / "mine.py").write_text(MINE)
    found = bakeoff.worst(f"{tmp_path}/mine.py:Broken", "own", jobs=1, out=tmp_path / "out")
    assert found.runs == 2
    [finding] = found.findings
    assert (finding.verdict, finding.failure) == (
        "fails",
        "mine.py:3: ZeroDivisionError: integer division or modulo by zero",
    )
    assert finding.path.name == "broken-own-alone-pfifo.yaml"
    assert len(finding.path.read_text().splitlines()) == 9
    assert [flow.cc for run in catalog.select([str(finding.path)]) for flow in run.flows] == [
        f"{tmp_path}/mine.py:Broken", "cubic"
    ]  # fmt: skip


@pytest.mark.parametrize("most", [24, 60])
def test_an_interrupted_search_writes_the_best_so_far(tmp_path, most):
    """In the first batch, and after it: it has 2 runs of the simplest scenario and 54 of 27 points."""
    plan = do_worst.planned(
        Asked(cc="bbr", against=("cubic",), seeds=2), "starvation", campaign.Execution(jobs=1), runs=140
    )

    def do(doing):
        waiting, done = list(doing.runs), 0
        while done < most:
            run, done = waiting.pop(0), done + 1
            numbers = {'goodput("other")': 1e5 if run.flows[0].cc == "bbr" and done < 10 else 1e6}
            waiting += doing.more(Done(run.key, Path(), "ok", numbers=numbers), 0)

    found = do_worst.searched(plan, tmp_path, do)
    assert found.interrupted
    assert found.runs == most
    [finding] = found.findings
    assert finding.verdict == "interrupted"
    assert catalog.select([str(finding.path)])


def test_the_command_prints_json(cli, tmp_path):
    words = ("bbr", "--worst", "own", "--runs", "120", "--against", "cubic", "--seeds", "2", "--jobs", "1", "--json")
    code, out, err = cli("evaluate", *words, "--out", str(tmp_path / "out"), "-q")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["runs"] <= 120
    assert all((tmp_path / "out" / Path(each["file"]).name).is_file() for each in found["findings"])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--worst", "own", "--quick"), "--quick: not valid with --worst"),
        (("--worst", "own", "--qdisc", "pie"), "--qdisc: not valid with --worst"),
        (("--worst", "own", "--case", "a"), "--case: not valid with --worst"),
        (("--runs", "200"), "--runs: only valid with --worst"),
    ],
)
def test_options_that_do_not_fit(cli, words, problem):
    code, out, err = cli("evaluate", "bbr", *words)
    assert (code, out) == (2, "")
    assert problem in err


def test_without_optuna_one_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(UsageError, match=r"needs optuna.*bakeoff\[adversary\]"):
        bakeoff.worst("bbr", "own")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"cc": "cubic"}, "is the evaluated control"),
        ({"runs": 5}, "expected at least 100"),
        ({"seeds": 1}, "expected at least 2"),
        ({"measure": 'goodput("two")'}, "two"),
        ({"cc": "bbbr"}, "bbbr"),
        ({"measure": "starvation", "against": ["bbr"]}, "expected another control"),
    ],
)
def test_invalid_input(given, problem):
    with pytest.raises(bakeoff.BakeoffError, match=problem):
        bakeoff.worst(**{"cc": "bbr", "measure": "own", **given})
