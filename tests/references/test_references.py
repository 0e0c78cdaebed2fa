"""References: reading them, distances from them, what several seeds come to."""

from __future__ import annotations

import math
from dataclasses import replace

import polars as pl
import pytest

from bakeoff import references
from bakeoff.errors import BakeoffError
from synthetic import made

HEAD = "suite,scenario,run,flow,measure,value,unit,source"
RUN = "ns-prague-vs-cubic-ecn-pie-50Mbit-20ms"


def write(folder, name, *lines, head=HEAD):
    (folder / f"{name}.csv").write_text("\n".join((head, *lines)) + "\n")
    return folder


def line(flow, value, measure="steady_state.delivery_rate", unit="bit/s", run=RUN):
    return f"l4s-tests,s6-rfc3168,{run},{flow},{measure},{value},{unit},README"


def test_load_names_the_reference_by_its_file(tmp_path):
    write(tmp_path, "l4s-tests", line("prague", "45690000"))
    write(tmp_path, "linux-7.3", line("prague", "44e6", "steady_state.goodput") + ",2", head=HEAD + ",seed")
    first, second = references.load(tmp_path)
    assert (first.reference, first.flow, first.value, first.seed) == ("l4s-tests", "prague", 45.69e6, None)
    assert (second.reference, second.measure, second.seed) == ("linux-7.3", "goodput", 2)


def test_a_folder_without_files_has_no_references(tmp_path):
    assert references.load(tmp_path) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (line("prague", "fast"), "l4s-tests.csv:2: could not convert string to float: 'fast'"),
        (line("prague", "0"), "l4s-tests.csv:2: value: '0'; expected a number above zero"),
        (
            line("prague", "45.7", unit="Mbit/s"),
            "l4s-tests.csv:2: unit: 'Mbit/s' for delivery_rate; expected bit/s",
        ),
        (
            line("prague", "1", measure="rate"),
            "l4s-tests.csv:2: measure: unknown 'rate'; expected one of delivery_rate",
        ),
    ],
)
def test_mistakes_are_named_with_their_line(tmp_path, text, message):
    with pytest.raises(BakeoffError) as error:
        references.load(write(tmp_path, "l4s-tests", text))
    assert message in str(error.value)


def test_a_missing_column(tmp_path):
    with pytest.raises(BakeoffError, match=r"l4s-tests.csv: missing column 'unit'"):
        references.load(write(tmp_path, "l4s-tests", "a", head=HEAD.replace("unit,", "")))


def test_log_ratio():
    assert references.log_ratio(2, 1) == pytest.approx(math.log(2))
    assert references.log_ratio(1, 2) == pytest.approx(-math.log(2))
    assert references.log_ratio(0, 2) == -math.inf
    with pytest.raises(BakeoffError):
        references.log_ratio(1, 0)


def test_several_seeds_are_compared_with_their_geometric_mean(tmp_path):
    rows = references.load(write(tmp_path, "r", line("cubic", "1e6"), line("cubic", "4e6")))
    (found,) = references.expected(rows).values()
    assert (found.value, found.n) == (pytest.approx(2e6), 2)
    # ln 1 and ln 4 stand ln 2 from their mean: sqrt(2 ln(2)^2 / 1)
    assert found.spread == pytest.approx(math.sqrt(2) * math.log(2))


def test_deviation_is_over_all_flows_of_a_qdisc(tmp_path):
    rows = references.load(
        write(tmp_path, "r", line("prague", "40e6"), line("cubic", "10e6"), line("cubic", "1e6", run="x"))
    )
    # ours 40 and 5: |ln| are 0 and ln 2, so the median is half of ln 2 and p90 nine tenths of it
    (found,) = references.deviation([made((40e6, 5e6))], rows)
    assert (found.reference, found.scenario, found.qdisc, found.n) == ("r", "s6-rfc3168", "pie", 2)
    assert (found.median, found.p90, found.max) == pytest.approx((0.5 * math.log(2), 0.9 * math.log(2), math.log(2)))


def test_deviation_of_repetitions_is_that_of_their_mean(tmp_path):
    rows = references.load(write(tmp_path, "r", line("cubic", "5e6")))
    seeds = [made((40e6, 4e6), seed=1), made((40e6, 6e6), seed=2)]
    (found,) = references.deviation(seeds, rows)
    assert (found.n, found.max) == (1, pytest.approx(0, abs=1e-9))


def test_a_starved_flow_is_infinitely_far_from_what_was_published(tmp_path):
    rows = references.load(write(tmp_path, "r", line("cubic", "5e6", "steady_state.goodput")))
    (found,) = references.deviation([made((40e6, 0.0))], rows)
    assert found.max == math.inf


def test_a_flow_that_got_something_and_has_no_delivery_rate_is_not_compared(tmp_path):
    rows = references.load(write(tmp_path, "r", line("prague", "40e6"), line("cubic", "5e6")))
    whole = made((40e6, 5e6))
    without = whole.series.filter((pl.col("metric") != "delivery_rate") | (pl.col("name") != "cubic"))
    (found,) = references.deviation([replace(whole, series=without)], rows)
    assert (found.n, found.max) == (1, pytest.approx(0, abs=1e-9))


def test_round_trip_times(tmp_path):
    rows = references.load(write(tmp_path, "r", line("prague", "0.050", "steady_state.srtt", "s")))
    (found,) = references.deviation([made()], rows)
    assert found.median == pytest.approx(math.log(2), abs=1e-6)  # 25 ms here, 50 ms there


# Means of trials


def test_noise_of_trials_with_one_scatter():
    # ln of two trials differs by a normal of sqrt(2) 0.1: |ln| has its median at 0.6745, p90 at 1.6449 of that
    found = references.noise_of([0.1, 0.1])
    assert found == pytest.approx((0.6745 * math.sqrt(2) * 0.1, 1.6449 * math.sqrt(2) * 0.1), rel=1e-4)
    assert references.noise_of([]) is None


def test_noise_of_trials_with_unlike_scatter():
    # half of the pairs are equal, so that the median is 0 and p90 the 80th percentile of the others: 1.2816
    assert references.noise_of([0.0, 0.1]) == pytest.approx((0, 1.2816 * math.sqrt(2) * 0.1), rel=1e-4, abs=1e-9)


def test_a_mean_of_trials_has_their_spread(tmp_path):
    head = HEAD + ",sd,n,licence"
    rows = references.load(write(tmp_path, "r", line("cubic", "4e6") + ",1e6,10,MIT", head=head))
    assert (rows[0].sd, rows[0].n, rows[0].licence) == (1e6, 10, "MIT")
    (found,) = references.expected(rows).values()
    assert (found.value, found.spread, found.n) == (4e6, pytest.approx(0.25), 10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (line("cubic", "4e6") + ",-1,10", "sd, n: '-1', '10'; expected sd >= 0 and n >= 1"),
        (line("cubic", "4e6") + ",1,0", "sd, n: '1', '0'; expected sd >= 0 and n >= 1"),
        (line("c*", "0.05", "srtt_mean", "s") + ",1,1", "flow: 'c*' for srtt_mean; expected one flow"),
    ],
)
def test_mistakes_in_trials(tmp_path, text, message):
    with pytest.raises(BakeoffError) as error:
        references.load(write(tmp_path, "r", text, head=HEAD + ",sd,n"))
    assert f"r.csv:2: {message}" in str(error.value)


def test_a_pattern_is_the_sum_of_its_flows(tmp_path):
    rows = references.load(write(tmp_path, "r", line("*", "22.5e6", "goodput")))
    (found,) = references.deviation([made((40e6, 5e6))], rows)
    assert found.median == pytest.approx(math.log(2))  # 40 + 5 here


def test_a_reference_in_a_file_of_ones_own(tmp_path):
    write(tmp_path, "mine", line("prague", "45690000"))
    assert [row.reference for row in references.named(str(tmp_path / "mine.csv"))] == ["mine"]
    assert references.named("nobody") == []
