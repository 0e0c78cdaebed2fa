"""Stimuli of the scenario language (`when`), and what is refused of them."""

import re

import pytest
import yaml

from bakeoff.engines import get
from bakeoff.errors import BakeoffError
from bakeoff.scenario import conditions
from bakeoff.scenario.scenario import expand, from_document

DOCUMENT = """
scenario: s
duration: 9s
network: {path: [cli, mid, srv], rtt: 40ms, bottleneck: {rate: 50mbit, qdisc: pfifo limit 333}}
flows: [{name: one, cc: bbr3}, {name: call, transport: udp, source: {rate: 1mbit, size: 1000B}}]
"""


def resolved(*when, **more):
    document = yaml.safe_load(DOCUMENT) | {"when": [yaml.safe_load(each) for each in when]} | more
    [run] = expand(from_document(document, path="x.yaml", suite="local", default_name="s"), seeds=1)
    return run


def test_a_condition_has_comparisons_with_words_numbers_and_quantities():
    text = "cc.mode == probe_bw and cc.phase != refill and cc.in_flight>100 and time >= 4s and cc.srtt < 50ms"
    assert [tuple(term) for term in conditions.parse(text)] == [
        ("cc.mode", "eq", 2), ("cc.phase", "ne", 3), ("cc.in_flight", "gt", 100), ("time", "ge", 4),
        ("cc.srtt", "lt", 0.05),
    ]  # fmt: skip
    assert tuple(conditions.parse("cc.pacing_rate <= 5mbit")[0]) == ("cc.pacing_rate", "le", 5e6)
    assert tuple(conditions.parse("cc.state == loss")[0]) == ("cc.state", "eq", 4)


def test_a_stimulus_is_resolved():
    run = resolved(
        "{flow: one, state: cc.mode == drain, after: 60ms, for: 80ms, drop: every 10, times: each}",
        "{flow: one, state: time >= 1s, mark: next 3}",
        "{flow: one, state: time >= 2s, for: 1s, rate: 25mbit, direction: up}",
        "{flow: one, state: time >= 2s, source: none}",
        idle="5s",
    )
    drop, mark, rate, source = run.when
    assert (drop.name, drop.after_s, drop.for_s, drop.each) == ("drop", 0.06, 0.08, True)
    assert (drop.effect.every, drop.effect.most) == (10, None)
    assert (mark.effect.every, mark.effect.most, mark.for_s) == (1, 3, None)
    # Times count from the end of the idle time.
    assert mark.state[0].value == 6
    [begin], [end] = rate.effect.begin, rate.effect.end
    assert (begin.node, begin.peer) == ("mid", "srv")
    assert begin.action.class_ == "rate 25mbit ceil 25mbit"
    assert end.action.class_ == "rate 50mbit ceil 50mbit"
    assert source.effect.source is None
    assert get("sim").check(run)
    with pytest.raises(BakeoffError, match="when\\[0\\]: 'drop': the sender's state is not known on a kernel"):
        get("kernel").check(run)


def test_a_run_without_stimuli_says_nothing_of_them():
    assert "when" not in resolved().to_json()


def test_the_round_trip_time_changes_and_changes_back():
    [rtt] = resolved("{flow: one, state: time >= 2s, for: 1s, rtt: 80ms}").when
    delays = [[placed.action.qdisc.split()[2] for placed in each] for each in (rtt.effect.begin, rtt.effect.end)]
    assert delays == [["40ms", "40ms"], ["20ms", "20ms"]]


@pytest.mark.parametrize(
    ("when", "wrong"),
    [
        ("{flow: one, state: cc.mode == drain}", "when[0]: has no effect; expected one of drop, mark, delay"),
        ("{flow: one, state: cc.mode == drain, drop: next 1, hold: true}", "when[0]: has drop and hold; expected one"),
        ("{flow: one, state: cc.mode == drane, drop: next 1}", "when[0].state: 'drane': no value of cc.mode; did you"),
        ("{flow: one, state: cc.mod == 1, drop: next 1}", "when[0].state: 'cc.mod': unknown variable; did you mean"),
        ("{flow: one, state: drain, drop: next 1}", "when[0].state: 'drain'; expected comparisons such as"),
        ("{flow: onee, state: time > 1s, drop: next 1}", "when[0].flow: 'onee': unknown flow; did you mean 'one'?"),
        ("{state: time > 1s, drop: next 1}", "when[0]: ambiguous flow; expected 'flow' with one of one, call"),
        ("{flow: call, state: time > 1s, drop: next 1}", "when[0].flow: 'call': expected a flow with one TCP"),
        ("{flow: one, state: time > 1s, drop: all}", "when[0].drop: 'all'"),
        ("{flow: one, state: time > 1s, hold: true}", "when[0]: 'hold' without an end; expected 'for'"),
        ("{flow: one, state: time > 1s, node: mid, drop: next 1}", "when[0].node: only valid with rate or rtt"),
        ("{flow: one, state: time > 1s, node: m, rate: 1mbit}", "when[0].node: 'm'"),
        ("{flow: one, state: time > 1s, source: {video: {rates: [1mbit], segment: 1s, buffer: 2s}}}",
         "when[0].source: expected bulk, none"),
        ("{flow: one, stat: time > 1s, drop: next 1}", "did you mean 'state'?"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(when, wrong):
    with pytest.raises(BakeoffError, match=re.escape(wrong)):
        resolved(when)


def test_names_are_unique():
    with pytest.raises(BakeoffError, match=re.escape("when[1].name: duplicate name 'drop'; expected unique names")):
        resolved(*["{flow: one, state: time > 1s, drop: next 1}"] * 2)
