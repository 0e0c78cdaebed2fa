"""tc's language as Python reads it, held against the simulator, which reads the same words."""

import re

import pytest

from bakeoff import _sim, tc
from bakeoff.errors import BakeoffError


@pytest.mark.parametrize(
    ("word", "bps"),
    [("50mbit", 50e6), ("50Mbit", 50e6), ("1gbps", 8e9), ("2Kibit", 2048), ("1000", 1000), ("2.5mbit", 2.5e6)],
)
def test_a_rate_has_tcs_units(word, bps):
    assert tc.rate(word) == bps
    assert tc.rate(shown("tbf rate {} burst 5kb limit 60000", word, "rate")) == pytest.approx(bps, rel=0.01)


@pytest.mark.parametrize("unit", tc.RATES)
def test_the_simulator_knows_each_unit_of_a_rate_and_means_the_same(unit):
    word = f"{round(1e9 / tc.RATES[unit], 6):f}{unit}"
    assert tc.rate(shown("tbf rate {} burst 5kb limit 60000", word, "rate")) == pytest.approx(1e9, rel=0.01)


@pytest.mark.parametrize(
    ("word", "seconds"), [("10ms", 0.01), ("1.5s", 1.5), ("250us", 250e-6), ("5000", 5e-3), ("2msecs", 2e-3)]
)
def test_a_time_without_a_unit_is_in_microseconds(word, seconds):
    assert tc.time(word) == pytest.approx(seconds)
    assert tc.time(shown("codel target {}", word, "target")) == pytest.approx(seconds, rel=0.01)


def test_a_time_of_netem_without_a_unit_is_in_nanoseconds():
    assert tc.time("5000000", bare="ns") == pytest.approx(0.005)
    assert tc.time(shown("netem delay {}", "5000000", "delay")) == pytest.approx(0.005)


@pytest.mark.parametrize(("word", "size"), [("1600b", 1600), ("10Kb", 10240), ("3000", 3000), ("8kbit", 1024)])
def test_a_size_is_counted_in_powers_of_1024(word, size):
    assert tc.size(word) == size
    assert tc.size(shown("bfifo limit {}", word, "limit")) == size


@pytest.mark.parametrize(
    ("read", "what"), [(tc.rate, "rate"), (tc.time, "time"), (tc.size, "size")], ids=["rate", "time", "size"]
)
@pytest.mark.parametrize("word", ["fast", "", "5 mbit", "-1ms", "5mbits"])
def test_other_words_are_refused_with_an_example(read, what, word):
    with pytest.raises(BakeoffError, match=f"'{word}': invalid {what} in tc syntax; expected for example '"):
        read(word)


@pytest.mark.parametrize(
    ("read", "word"),
    [
        (tc.rate, "1e999bit"), (tc.rate, f"1e{'9' * 5000}bit"), (tc.rate, f"{'9' * 400}"), (tc.time, "1e999ms"),
        (tc.size, "1e400kb"),
    ],
)  # fmt: skip
def test_a_number_beyond_64_bits_is_refused(read, word):
    with pytest.raises(BakeoffError, match=r"too large; expected at most 2"):
        read(word)


def test_a_long_number_is_read_once():
    # A pattern that splits the digits in every way takes hours here, and the time limit of tests ends it.
    for read in (tc.rate, tc.time, tc.size):
        with pytest.raises(BakeoffError, match=r"invalid|too large"):
            read("9" * 1_000_000 + "!")


def test_a_word_is_found_and_replaced_by_what_stands_before_it():
    shape = "htb rate 50mbit  ceil 60mbit"
    assert tc.value(shape, "ceil") == "60mbit"
    assert tc.value(shape, "burst") is None
    assert tc.value("htb rate", "rate") is None
    assert tc.with_value(shape, "rate", "1mbit") == "htb rate 1mbit ceil 60mbit"
    assert tc.with_bandwidth("cake sce bandwidth 1mbit nat", "2mbit") == "cake bandwidth 2mbit sce nat"


def test_a_version_belongs_to_the_kind_of_the_simulator_and_not_to_that_of_the_kernel():
    assert tc.kind("dualpi2@2020 target 1ms") == "dualpi2@2020"
    assert tc.kernel_kind("dualpi2@2020 target 1ms") == "dualpi2"
    assert tc.kind("") == tc.kernel_kind(" ") == ""


def test_each_qdisc_that_the_simulator_calls_a_shaper_is_limited_by_its_bandwidth():
    # It is parsed with that word behind it.
    shaping = [name for name in _sim.qdiscs() if tc.shapes_itself(name)]
    assert "cake@sce" in shaping
    assert all("bandwidth 5Mbit" in _sim.check_qdisc(f"{name} bandwidth 5mbit") for name in shaping)
    assert tc.limiting_word("tbf rate 5mbit burst 5kb limit 60000") == "rate"
    assert tc.limiting_word("red limit 150000 avpkt 1000 bandwidth 50mbit") is None


def shown(line: str, word: str, key: str) -> str:
    """What the simulator shows behind `key`, as `tc -d qdisc show` does, for a qdisc with this word in its line."""
    text = _sim.check_qdisc(line.format(word))
    found = tc.value(re.sub(r"^qdisc ", "", text), key)
    assert found is not None, text
    return found
