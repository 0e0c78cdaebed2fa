"""`bakeoff evaluate --baseline`: two versions, and what is better of each case."""

import json

import pytest

import bakeoff
from bakeoff.evaluation import battery
from own_controls import CONTROLS

MINE = f"""{CONTROLS}

class Never(Reno):
    def ssthresh(self, sk):
        return sk.snd_cwnd
"""

CASE = """\
battery: {name: mine, title: t, source: RFC 1}
cases:
  - id: a
    clause: "1"
    says: s
    scenario:
      duration: 2s
      network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 10mbit, qdisc: pfifo limit 20}}
      flows: [{name: one, cc: "{cc}"}]
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(MINE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def evaluated(cc, case, **more):
    return bakeoff.evaluate(cc, case=[case], seeds=2, store="none", jobs=1, **more)


def test_two_versions_are_told_in_words(here, cli):
    words = ("--baseline", "./mine.py:Reno", "--case", "loss-0.25", "--case", "attackers", "--seeds", "3", "-q")
    code, out, err = cli("evaluate", "./mine.py:Never", *words, "--store", "none", "--json", "--html", "a.html")
    assert code == 0, err
    report = json.loads(out)
    [changed] = report["changes"]
    case = next(case for case in report["cases"] if case["cc"])
    means = [case[seat]["mean"] for seat in ("cc", "baseline")]
    assert (changed["case"], changed["word"]) == ("rfc9743/loss-0.25", "worse")
    assert changed["difference"] == pytest.approx(means[0] - means[1])
    assert changed["relative"] == pytest.approx(means[0] / means[1] - 1)
    assert changed["interval"][0] < changed["difference"] < changed["interval"][1]
    # One comparison needs no correction.
    assert changed["p"] == changed["p_corrected"] < 0.05
    assert case["command"].endswith("--baseline ./mine.py:Reno --seeds 3")
    assert changed["words"].startswith("rfc9743/loss-0.25: resent share, mean of four flows: ")
    assert "<h2>Changed from ./mine.py:Reno: 1 worse</h2>" in (here / "a.html").read_text()


def test_without_a_given_baseline_nothing_changed(here):
    found = evaluated("reno", "wired")
    assert found.changes == []
    assert "Changed from" not in str(found)


@pytest.mark.parametrize(
    ("new", "old", "word", "words"),
    [
        ("./mine.py:Raises", "./mine.py:Reno", "worse", "fails now"),
        ("./mine.py:Reno", "./mine.py:Raises", "better", "fails no longer"),
        ("reno", "reno", "same", "the same"),
    ],
)
def test_a_version_that_fails(here, new, old, word, words):
    found = evaluated(new, "wired", baseline=old)
    [changed] = found.changes
    assert (changed.word, changed.words) == (word, words)
    assert changed.sentence == f'rfc9743/wired: goodput("one"): {words}'


@pytest.mark.parametrize(
    ("number", "direction", "more", "better"),
    [
        ('goodput("one")', 'goodput("one", of="cc") > 1mbit', "", "higher"),
        ('goodput("one")', '1mbit >= goodput("one", of="cc")', "", "lower"),
        ('goodput("one")', 'goodput("one", of="cc") < 2 * goodput("one", of="baseline")', "", "lower"),
        ('goodput("one")', 'goodput("one", of="baseline") < 1mbit', "", "neither"),
        ('goodput("one")', '1mbit < goodput("one", of="cc") < 2mbit', "", "neither"),
        ('goodput("one")', 'not goodput("one", of="cc") < 2mbit', "", "neither"),
        ('goodput("one", begin="1s")', 'goodput("one", of="cc") > 1mbit', "", "neither"),
        ('jain()', 'goodput("one", of="cc") > 1mbit', "    better: lower\n", "lower"),
    ],
)  # fmt: skip
def test_which_way_is_better_follows_from_the_predicate(tmp_path, number, direction, more, better):
    path = tmp_path / "mine.yaml"
    text = CASE + f"    number: {number}\n    direction: {direction}\n{more}"
    path.write_text(text)
    [case] = battery.read(path)
    assert case.test.better == better


def test_the_schema_has_every_key_of_a_case_and_every_reference(cli):
    code, out, _ = cli("schema", "evaluation")
    assert code == 0
    schema = json.loads(out)
    assert {part.split('"')[0] for part in out.split('"#/$defs/')[1:]} <= schema["$defs"].keys()
    assert schema["$defs"]["CaseText"]["properties"].keys() == battery.CaseText.model_fields.keys()
    assert {"network", "flows"} <= schema["$defs"]["Scenario"]["properties"].keys()
