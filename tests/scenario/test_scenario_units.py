"""Words of the scenario language: quantities with their units, YAML's words."""

import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff.errors import BakeoffError
from bakeoff.scenario import load, units
from bakeoff.scenario.yaml_file import parse_yaml

# Quantities


@pytest.mark.parametrize(
    ("parse", "text", "value"),
    [
        (units.parse_rate, "50mbit", 50_000_000),
        (units.parse_rate, "47.5Mbit", 47_500_000),
        (units.parse_rate, "1 gbit", 10**9),
        (units.parse_rate, "10kibit", 10_240),
        (units.parse_time, "20ms", 0.02),
        (units.parse_time, "0.1s", 0.1),
        (units.parse_time, "200us", 0.0002),
        (units.parse_time, "200µs", 0.0002),
        (units.parse_time, "2min", 120.0),
        (units.parse_time, 0, 0.0),
        (units.parse_time, "-0s", 0.0),
        (units.parse_size, "1448B", 1448),
        (units.parse_size, "64KiB", 65536),
        (units.parse_size, "2MB", 2_000_000),
        (units.parse_percentage, "2%", 0.02),
        (units.parse_dscp, 19, 19),
        (units.parse_dscp, "0x13", 19),
        (units.parse_dscp, "AF11", 10),
        (units.parse_dscp, "ef", 46),
    ],
)
def test_quantities(parse, text, value):
    assert parse(text) == value


@pytest.mark.parametrize(
    ("parse", "text", "message"),
    [
        (units.parse_rate, "50", "'50' has no unit; expected a rate such as '50mbit'"),
        (
            units.parse_rate,
            "50Mbit/s",
            "'50Mbit/s' has an unknown unit 'Mbit/s'; expected a rate",
        ),
        (units.parse_rate, "50 mbits", "did you mean '50mbit'"),
        (units.parse_rate, "2.5MB/s", "did you mean '2.5mbit' or, of bytes, '20mbit'"),
        (units.parse_rate, "50m", "did you mean '50mbit'"),
        (units.parse_rate, "50x", "unknown unit 'x'; expected a rate"),
        (units.parse_time, "20msec", "did you mean '20ms'"),
        (units.parse_time, "2 Minutes", "did you mean '2min'"),
        (units.parse_size, "3 bytes", "did you mean '3B'"),
        (units.parse_rate, 50, "'50' has no unit; expected a rate such as '50mbit'"),
        (
            units.parse_rate,
            "50mbps",
            "'50mbps' is ambiguous: tc's mbps is bytes per second; expected bits, such as '50mbit'",
        ),
        (units.parse_rate, "50ms", "unknown unit 'ms'; expected a rate"),
        (units.parse_rate, "0.3bit", "is not an integer number of bit per second"),
        (units.parse_time, "-5ms", "'-5ms' is negative; expected a time such as '20ms'"),
        (units.parse_time, "20", "'20' has no unit; expected a time"),
        (units.parse_time, "20mbit", "unknown unit 'mbit'; expected a time"),
        (units.parse_time, "soon", "'soon': invalid quantity; expected a time"),
        (units.parse_time, True, "true: invalid quantity"),
        (units.parse_time, None, "null: invalid quantity"),
        (units.parse_size, "1.5B", "is not an integer number of byte"),
        (units.parse_percentage, "120%", "is above 100%"),
        (units.parse_dscp, 64, "64 is not a DSCP; expected a codepoint from 0 to 63"),
        (units.parse_dscp, "AF55", "not a DSCP"),
    ],
)
def test_quantities_that_are_none(parse, text, message):
    with pytest.raises(ValueError, match=r"expected|integer") as error:
        parse(text)
    assert message in str(error.value)


@given(st.integers(min_value=0, max_value=10**13))
def test_rates_survive_a_round_trip(bps):
    assert units.parse_rate(units.format_rate(bps)) == bps


@given(st.integers(min_value=0, max_value=10**15))
def test_times_survive_a_round_trip_to_the_nanosecond(nanoseconds):
    seconds = float(Fraction(nanoseconds, 10**9))
    assert units.parse_time(units.format_time(seconds)) == seconds


def test_formatting_takes_the_largest_whole_unit():
    assert [units.format_time(t) for t in (0, 0.01, 0.0075, 1.0, 90.0)] == ["0ms", "10ms", "7500us", "1s", "90s"]
    assert [units.format_rate(r) for r in (0, 1, 47_500_000, 10**9)] == ["0bit", "1bit", "47500kbit", "1gbit"]


# YAML


def test_words_stay_words():
    data = parse_yaml("{a: on, b: off, c: true, d: 2020-08-01, e: 1:30, f: 0x13, g: 010, h: 1.5, i: yes, j: -3}", "x")
    assert data == {
        "a": "on", "b": "off", "c": True, "d": "2020-08-01", "e": "1:30", "f": 19, "g": "010", "h": 1.5,
        "i": "yes", "j": -3,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2\nb: 3\n", "x: line 2, column 2: not YAML: "),
        ("\tkey: 1", "x: line 1, column 1: not YAML: "),
        ("a: 1\nb: 2\na: 3\n", "x: line 3, column 1: not YAML: duplicate key 'a'"),
        ("", "x: found nothing; expected a mapping"),
        ("- a\n- b\n", "x: found a list; expected a mapping"),
        ("a: 1\n---\nb: 2\n", "x: line 2, column 1: not YAML: "),
        ("a: \x00", "x: not YAML: "),
        ("a: !!python/object:os.system x", "not YAML: could not determine a constructor"),
    ],
)
def test_no_yaml(text, message):
    with pytest.raises(BakeoffError) as error:
        parse_yaml(text, "x")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("pattern", "parse", "samples"),
    [
        (
            units.RATE_PATTERN,
            units.parse_rate,
            ["50mbit", "50Mbit", "1.5 gbit", "7bit", "10kibit", "1tbit", "5", "5mbps", "5ms"],
        ),
        (units.TIME_PATTERN, units.parse_time, ["20ms", "1.5s", "3ns", "2min", "1 h", "5", "-5ms", "5mbit", "5 MS"]),
        (units.SIZE_PATTERN, units.parse_size, ["1448B", "64KiB", "2mb", "1 GB", "5", "5x", "5bit"]),
        (units.PERCENTAGE_PATTERN, units.parse_percentage, ["2%", "0.5 %", "5", "5ms"]),
    ],
)
def test_the_schema_takes_what_the_parser_takes(pattern, parse, samples):
    def parsed(text):
        try:
            parse(text)
        except ValueError:
            return False
        return True

    assert [bool(re.match(pattern, text)) for text in samples] == [parsed(text) for text in samples]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "{H}, qdisc: {qdisc}}}}}",
            'network.bottleneck.qdisc: {qdisc} without quotes is a mapping in YAML; expected "{qdisc}"',
        ),
        (
            "{H}, qdisc: pie}}}}\nstart_jitter: {t}",
            'start_jitter: {t} without quotes is a mapping in YAML; expected "{t}"',
        ),
        ("{H}, qdisc: pie}}}}\ntitle: {t}", 'title: {t} without quotes is a mapping in YAML; expected "{t}"'),
        ("{H}, qdisc: pie}}}}\ntitle: {t} and more", 'a text with {t} in it needs quotes: "…{t}…"'),
        ("{H}, qdisc: fq_codel flows {n}}}}}", 'a text with {n} in it needs quotes: "…{n}…"'),
    ],
)
def test_a_placeholder_without_quotes_is_explained(tmp_path, text, message):
    head = "flows: [{cc: cubic}]\nduration: 1s\nnetwork: {path: [a, b, c], rtt: 1ms, bottleneck: {rate: 1mbit"
    path = tmp_path / "a.yaml"
    path.write_text(text.replace("{H}", head).replace("}}}}", "}}"))
    with pytest.raises(BakeoffError, match=re.escape(message)):
        load(path)
