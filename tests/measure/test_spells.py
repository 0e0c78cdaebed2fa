"""Measures of a traced state by its spells, and of stimuli."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

import bakeoff
from bakeoff.claims.evaluate import measure
from bakeoff.claims.expression import parse
from bakeoff.errors import BakeoffError, MeasureError
from bakeoff.expressions.grammar import ExpressionError
from bakeoff.measure.samples import Samples
from bakeoff.measure.spells import Spells

# ACKs at 0, 1, ... 9 s. The mode is 1 from 2 to 5 s and from 7 s on; a bound exists from 4 s on.
TIME = np.arange(10.0)
TRACE = {
    "cc.cwnd": (TIME, TIME * 10),
    "cc.mode": (TIME, np.array([0, 0, 1, 1, 1, 2, 2, 1, 1, 1.0])),
    "cc.inflight_hi": (TIME[4:], np.full(6, 50.0)),
}


def spells(when, window=(0.0, 10.0)):
    parts = {("flow", "a", metric): rows for metric, rows in TRACE.items()}
    flow = SimpleNamespace(name="a", stop_s=10.0)
    run = SimpleNamespace(document=SimpleNamespace(flows=[flow], run="r"), traced=lambda _: Samples(parts))
    return Spells.of(run, "a", when, window)


def test_a_spell_lasts_from_the_ack_that_begins_it_to_the_one_that_ends_it():
    found = spells("cc.mode == drain")
    # From 2 s to 5 s; from 7 s to the end at 10 s.
    assert list(found.lengths()) == [3, 3]
    assert list(found.lengths(2)) == [3]
    assert list(found.lengths(ended=True)) == [3]
    assert not len(found.lengths(3))
    assert list(spells("cc.mode == drain", (3.0, 8.5)).lengths()) == [2, 1.5]


def test_values_of_a_spell_and_how_long_they_held():
    value, held = spells("cc.mode == drain").values("cwnd", 1)
    assert list(value) == [20, 30, 40]
    assert list(held) == [1, 1, 1]
    assert list(spells("cc.mode == drain and time >= 4s").values("cwnd", None)[0]) == [40, 70, 80, 90]
    # The bound is not there before 4 s: neither a value nor a comparison that holds.
    assert list(spells("cc.mode == drain").values("inflight_hi", 1)[0]) == [50]
    assert list(spells("cc.inflight_hi != 3").lengths()) == [6]
    assert not len(spells("cc.bw_lo > 0").lengths())
    with pytest.raises(MeasureError, match=r"'a' has no 'cwnd' in spell 3 of 'cc.mode == drain'"):
        spells("cc.mode == drain").values("cwnd", 3)


SCENARIO = """\
scenario: s
duration: 6s
network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 20mbit, qdisc: pfifo limit 200}}
flows: [{name: one, cc: bbr3}]
when:
  - {name: loss, state: cc.mode == probe_bw and cc.phase == up, for: 20ms, drop: every 5}
  - {name: never, state: cc.mode == drain, after: 100s, mark: next 1}
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("spells")
    (folder / "s.yaml").write_text(SCENARIO)
    [found] = bakeoff.run(str(folder / "s.yaml"), out=folder / "out", jobs=1, trace=["cc"])
    return found


def test_the_states_of_a_run(result):
    up = "cc.mode == probe_bw and cc.phase == up"
    for text in (
        'followed("one", "cc.mode == startup", by="cc.mode == drain") == 1',
        'followed("one", "cc.mode == startup", by="cc.mode == probe_rtt") == 0',
        'spell_start("one", "cc.mode == drain") < spell_start("one", "cc.mode == probe_bw")',
        'cc("one", "full_bw_reached", stat="max", when="cc.mode == startup") == 0',
        # The first ACK of DRAIN has the third round.
        'cc("one", "full_bw_rounds", stat="first", when="cc.mode == drain") == 3',
        'cc("one", "pacing_gain", stat="range", when="cc.mode == drain") == 0',
        f'abs(fired_at("loss") - spell_start("one", "{up}")) < 1us',
        'time_in("one", "cc.mode == drain", stat="max") == time_in("one", "cc.mode == drain", spell=1)',
        f'spells("one", "{up}") >= fired("loss")',
        'stimulated("loss") > 0',
        'fired("loss") == 1 and fired("never") == 0',
    ):
        assert measure(result, text), text
    assert measure(result, 'fired_at("never")') == np.inf
    with pytest.raises(BakeoffError, match="no stimulus 'los'; did you mean 'loss'"):
        measure(result, 'fired("los")')


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ('spells("a", "mode == drain") > 1', "when: 'mode': unknown variable; did you mean 'cc.mode'?"),
        ('spells("a", "cc.mode = drain") > 1', "when: 'cc.mode = drain'; expected comparisons such as"),
        ('spells("a", "cc.mode == drane") > 1', "when: 'drane': no value of cc.mode; did you mean 'drain'?"),
        ('cc("a", "cwnd", spell=1) > 1', "spell: expected 'when' with it"),
        ('time_in("a", "cc.mode == drain", spell=0) > "1s"', "spell: 0.0; expected 1 for the first"),
        ('time_in("a", "cc.mode == drain", stat="last") > "1s"', "stat: 'last'; expected one of sum"),
        ('followed("a", "cc.mode == drain", by="time > 3") > 0', "by: '3' has no unit"),
    ],
)
def test_a_call_that_makes_no_sense_is_refused(text, wrong):
    with pytest.raises(ExpressionError, match=re.escape(wrong)):
        parse(text, ())
