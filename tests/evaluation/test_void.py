"""Cases about a control's own state: stimuli that never come, and controls that do not trace it."""

import re

import pytest

import bakeoff
from bakeoff.claims.verdict import HOLDS, NOT
from bakeoff.errors import EvaluationError
from bakeoff.evaluation import battery
from bakeoff.evaluation.as_text import record
from bakeoff.evaluation.assess import JUDGEMENT, NOT_APPLICABLE, VOID

CASES = """\
battery: {name: mine, title: t, source: RFC 1}
cases:
  - id: comes
    clause: "1"
    says: s
    variables: [mode]
    holds: every
    scenario:
      duration: 2s
      network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 10mbit, qdisc: pfifo limit 40}}
      flows: [{name: one, cc: "{cc}"}]
      when: [{name: loss, state: cc.mode == drain, drop: next 2}]
    void_unless: stimulated("loss") == 2
    number: spells("one", "cc.mode == drain")
    direction: spells("one", "cc.mode == drain") == 1
"""
# Never in 2 s: BBR's PROBE_RTT comes after 5 s, or 10.
NEVER = CASES.replace("cc.mode == drain, drop", "cc.mode == probe_rtt, drop")
WRONG = CASES.replace('drain") == 1', 'drain") == 2')

OWN = """\
class Own:
    def init(self, sk):
        self.acks = 0

    def ssthresh(self, sk):
        return max(sk.snd_cwnd // 2, 2)

    def cong_avoid(self, sk, acked):
        self.acks += 1
        sk.tcp_cong_avoid_ai(sk.snd_cwnd, acked)

    def trace(self):
        return {"mode": 1 if 50 < self.acks < 100 else 0}


class Silent(Own):
    def trace(self):
        return {}
"""


@pytest.fixture
def judged(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "batteries").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(battery, "folder", lambda: tmp_path / "batteries")

    def of(cc, text):
        (tmp_path / "batteries" / "mine.yaml").write_text(text)
        found = bakeoff.evaluate(cc, battery=["mine"], seeds=2, store="none", jobs=1)
        [case] = found.cases
        assert record(found)["counts"] == {case.verdict.word: 1}
        return case, found

    return of


def test_a_stimulus_that_came_leads_to_a_verdict_without_a_baseline(judged):
    case, found = judged("bbr", CASES)
    assert (case.verdict.word, case.cc.mean, case.baseline, found.runs) == (HOLDS, 1, None, 2)
    assert judged("bbr", WRONG)[0].verdict.word == NOT


def test_one_that_never_came_is_void_and_not_passed(judged):
    case, _ = judged("bbr", NEVER)
    assert (case.verdict.word, case.verdict.why) == (VOID, 'in no run: stimulated("loss") == 2')


def test_a_control_that_does_not_trace_the_state_is_not_run(judged):
    case, found = judged("reno", CASES)
    assert (case.verdict.word, case.verdict.why, found.runs) == (NOT_APPLICABLE, "it traces no 'mode'", 0)


def test_a_question_about_another_control_is_left_out(judged, tmp_path):
    text = CASES[: CASES.index("    holds")] + "    kind: needs judgement\n    question: q\n"
    assert judged("bbr", text)[0].verdict.word == JUDGEMENT
    assert bakeoff.evaluate("reno", battery=["mine"], store="none", jobs=1).cases == []


def test_a_control_in_python_is_run_to_see_what_it_traces(judged):
    assert judged("./own.py:Own", CASES)[0].verdict.word == HOLDS
    assert judged("./own.py:Silent", CASES)[0].verdict.word == NOT_APPLICABLE


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('stimulated("loss") == 2', 'stimulated("los") == 2', "no stimulus 'los'; did you mean 'loss'?"),
        ('stimulated("loss") == 2', 'stimulated("loss")', "void_unless: 'stimulated(\"loss\")'; expected a comparison"),
        ("cc.mode == drain, drop", "cc.mode == drian, drop", "'drian': no value of cc.mode; did you mean 'drain'?"),
        ('== 1\n', '== fired("loss", of="cc")\n', "refers to the run 'cc'"),
    ],
)  # fmt: skip
def test_an_invalid_case_is_named(judged, old, new, message):
    with pytest.raises(EvaluationError, match=re.escape(message)):
        judged("bbr", CASES.replace(old, new))
