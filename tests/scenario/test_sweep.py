"""What a sweep varies: the words of --over, grids, samples, and the runs at their points."""

from __future__ import annotations

from pathlib import Path

import pytest

from bakeoff.errors import BakeoffError
from bakeoff.scenario import units
from bakeoff.scenario.sweep_points import Parameter, grid, parse_over, sample
from bakeoff.scenario.sweep_runs import SweepRuns

TWO = """
scenario: two
duration: 2s
network:
  path: [cli, mid, srv]
  rtt: 10ms
  bottleneck: {rate: 5mbit, qdisc: "codel target {target}"}
flows:
  - {name: prague, cc: prague}
  - {name: cubic, cc: "{other}"}
vary:
  target: [5ms]
  other: [cubic, reno]
"""


def values(*words: str) -> tuple:
    return parse_over(words)[0].values


@pytest.fixture
def two(tmp_path: Path) -> str:
    path = tmp_path / "two.yaml"
    path.write_text(TWO)
    return str(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5mbit, 20mbit", ("5mbit", "20mbit")),
        ("lin:10ms..40ms:4", ("10ms", "20ms", "30ms", "40ms")),
        ("lin:500us..2ms:4", ("500us", "1ms", "1.5ms", "2ms")),
        ("log:1ms..1s:4", ("1ms", "10ms", "100ms", "1s")),
        ("log:1mbit..8mbit:4", ("1mbit", "2mbit", "4mbit", "8mbit")),
        # 200^(1/3) = 5.8480, 200^(2/3) = 34.1995: four digits that count
        ("log:1ms..200ms:4", ("1ms", "5.848ms", "34.2ms", "200ms")),
        # 100^(1/4) = 3.16, 100^(3/4) = 31.6: counts are whole
        ("log:1..100:5", (1, 3, 10, 32, 100)),
        ("lin:0.0..1.0:3", (0.0, 0.5, 1.0)),
        ("lin:0%..2%:3", ("0%", "1%", "2%")),
        ("[cubic, {kind: bulk}]", ("cubic", {"kind": "bulk"})),
    ],
)
def test_values(text, expected):
    assert values(f"key={text}") == expected


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("network.rtt", "expected KEY=VALUES"),
        ("a=log:1ms", "'log:1ms': invalid range; expected for example log:1ms..200ms:12"),
        ("a=log:0ms..9ms:3", "a logarithmic range from '0ms'"),
        ("a=lin:1ms..9mbit:3", "'1ms' and '9mbit' have different units"),
        ("a=lin:9ms..1ms:3", "'9ms' is not below '1ms'"),
        ("a=lin:1ms..fast:3", "'fast': invalid number"),
        ("a=lin:1..4:9", "9 values are not distinct in 4 digits"),
        ("a=lin:1ms..4ms:1", "1 values; expected 2 or more"),
        ("a=1ms,,2ms", "contains an empty value"),
        ("a=1ms,1ms", "duplicate value .*1ms"),
    ],
)
def test_a_wrong_word_is_named(word, why):
    with pytest.raises(BakeoffError, match=why):
        parse_over([word])


def test_a_parameter_stands_once():
    with pytest.raises(BakeoffError, match="duplicate parameter 'a'"):
        parse_over(["a=1", "a=2"])


def test_numbers_come_back_in_si_units():
    assert units.si("40ms") == (0.04, "s")
    assert units.si("50Mbit") == (5e7, "bit/s")
    assert units.si("1KiB") == (1024.0, "B")
    assert units.si("2%") == (0.02, "1")
    assert units.si(64) == (64.0, "")
    assert units.si("fq_codel") is None
    assert units.si(True) is None
    assert [units.written(*found) for found in [(0.0016, "s"), (1234567, "bit/s"), (1500, "B"), (0.0, "s")]] == [
        "1.6ms", "1.235mbit", "1.5kB", "0ns",
    ]  # fmt: skip


def test_a_grid_begins_coarse():
    points = grid(parse_over(["a=lin:1..5:5", "b=x,y"]))
    assert len(points) == 10
    # The ends with both words, then the middle, then what halves the rest.
    assert {point["a"] for point in points[:4]} == {1, 5}
    assert {point["a"] for point in points[4:6]} == {3}
    assert {point["a"] for point in points[6:]} == {2, 4}
    assert points == grid(parse_over(["a=lin:1..5:5", "b=x,y"]))


def test_a_grid_needs_numbers_of_values_and_few_points():
    with pytest.raises(BakeoffError, match="--over a: missing number of values"):
        grid(parse_over(["a=log:1ms..2ms"]))
    many = [Parameter(key, tuple(range(400))) for key in "ab"]
    with pytest.raises(BakeoffError, match="160,000 runs; at most 100,000 without --yes"):
        grid(many)


@pytest.mark.parametrize("how", ["lhs:8", "sobol:8"])
def test_a_sample_fills_each_range_evenly(how):
    points = sample(parse_over(["a=lin:0.0..8.0", "b=log:1ms..256ms"]), how)
    # One of eight points lies in each eighth of each range; of the logarithmic one they begin at 1, 2, 4 … 128 ms.
    assert sorted(int(point["a"]) for point in points) == list(range(8))
    found = sorted(units.si(point["b"])[0] * 1e3 for point in points)
    assert all(2**n <= value <= 2 ** (n + 1) for n, value in enumerate(found))


def test_a_sample_is_done_with_each_value_of_a_list():
    points = sample(parse_over(["a=lin:0.0..1.0", "q=pie,red"]), "lhs:3")
    assert len(points) == 6
    assert len({point["a"] for point in points}) == 3


@pytest.mark.parametrize(
    ("how", "over", "why"),
    [
        ("lhs", "a=lin:1..2", "expected lhs:N or sobol:N"),
        ("sobol:200", "a=lin:1..2", "expected a power of two for a Sobol sequence, such as sobol:256"),
        ("lhs:9", "a=1,2", "missing range; expected for example"),
        ("lhs:9", "a=lin:1..9:3", "chooses the values of 'a'; expected the range without ':3'"),
    ],
)
def test_a_wrong_sample_is_named(how, over, why):
    with pytest.raises(BakeoffError, match=why):
        sample(parse_over([over]), how)


def test_runs_at_the_points(two):
    parameters = parse_over(["network.rtt=20ms,40ms", "target=1ms,2ms"])
    points = grid(parameters)
    swept = SweepRuns(two, parameters)
    swept.check(parameters, points)
    runs = [run for point in points for run in swept.runs(point, range(1, 3))]
    assert len(runs) == 4 * 2 * 2  # points, the axis that stays, seeds
    assert len({run.key for run in runs}) == 16
    one = next(run for run in runs if run.key == "local/two/1ms-reno+network.rtt=20ms~seed2")
    assert one.point == {"target": "1ms", "other": "reno", "network.rtt": "20ms"}
    assert one.seed == 2


def test_some_runs_of_a_scenario_alone(two):
    parameters = parse_over(["target=1ms,2ms"])
    swept = SweepRuns(two, parameters, only="*reno", settings={"network.rtt": "30ms"})
    [run] = swept.runs({"target": "2ms"})
    assert run.key == "local/two/2ms-reno+network.rtt=30ms"


@pytest.mark.parametrize(
    ("over", "why"),
    [
        ("title=a,b", "--over title: no effect"),
        ("vary.target=1ms,2ms", "not an axis; the axes are: target, other"),
        ("network.bottleneck.speed=1mbit", "speed"),
    ],
)
def test_a_parameter_that_is_none_is_named(two, over, why):
    parameters = parse_over([over])
    with pytest.raises(BakeoffError, match=why):
        SweepRuns(two, parameters).check(parameters, grid(parameters))


def test_a_parameter_that_changes_nothing_is_named(two):
    parameters = parse_over(["source=one,other"])
    with pytest.raises(
        BakeoffError, match="--over source: no effect: the runs with 'one' and 'other' differ only in name"
    ):
        SweepRuns(two, parameters).check(parameters, grid(parameters))


def test_one_scenario_at_a_time():
    with pytest.raises(BakeoffError, match="matches runs of 2 scenarios; expected one of: linux/"):
        SweepRuns("re:linux/(single|pairs)/", parse_over(["network.rtt=1ms,2ms"]))
