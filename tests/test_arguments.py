"""Arguments of other types, as a notebook gives them."""

import re

import pytest

import bakeoff
from bakeoff.errors import BakeoffError


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rate": 50e6}, "duel: rate: 50000000.0; expected text with a unit, such as '50mbit'"),
        ({"rtt": 20}, "duel: rtt: 20; expected text with a unit, such as '20ms'"),
        ({"duration": 5}, "duel: duration: 5; expected text with a unit"),
        ({"cc2": 3}, "duel: cc2: 3; expected a name such as 'cubic'"),
        ({"qdisc": ["pie"]}, "duel: qdisc: ['pie']; expected text"),
        ({"trace": "cc"}, "duel: trace: 'cc'; expected a list of texts"),
        ({"seed": "1"}, "duel: seed: '1'; expected a whole number"),
        ({"seed": -1}, "duel: seed: -1; expected 0 or more"),
        ({"engine": None}, "duel: engine: None; expected text"),
        ({"fresh": 1}, "duel: fresh: 1; expected True or False"),
        ({"out": 3}, "duel: out: 3; expected a path"),
    ],
)
def test_an_argument_of_another_type_is_named(arguments, message):
    with pytest.raises(BakeoffError, match=re.escape(message)):
        bakeoff.duel(**{"cc1": "cubic", "cc2": "reno"} | arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"patterns": {"a": 1}}, "run: patterns: {'a': 1}; expected a text or a list of texts"),
        ({"patterns": "linux/single", "settings": ["a"]}, "run: settings: ['a']; expected a dictionary"),
        ({"patterns": "linux/single", "seeds": "3"}, "run: seeds: '3'; expected a whole number"),
        ({"patterns": "linux/single", "jobs": 0}, "run: jobs: 0; expected at least 1"),
    ],
)
def test_an_argument_of_run_is_named_too(arguments, message):
    with pytest.raises(BakeoffError, match=re.escape(message)):
        bakeoff.run(**arguments)


def test_a_measure_alone_needs_no_parentheses():
    result = bakeoff.duel("cubic", "reno", duration="1s", store="none")
    assert result.measure("jain") == result.measure("jain()") == bakeoff.measured("jain", result)
    with pytest.raises(BakeoffError, match="measured: results: expected a Result, or a dictionary"):
        bakeoff.measured("jain", {"a": 3})
    with pytest.raises(BakeoffError, match=r"table: columns: 'run'; expected a list of texts"):
        bakeoff.Results([result]).table(columns="run")
