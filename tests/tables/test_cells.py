"""Numbers as people see them: units from names, digits that say something, intervals inside of what is possible."""

import math

import pytest

from bakeoff.claims.evaluate import number_of
from bakeoff.measure import Mean, ends, interval, partly
from bakeoff.plots import axes
from bakeoff.results.series_units import unit_in
from bakeoff.tables import cells
from bakeoff.tables.cells import limits
from bakeoff.tables.label_order import by_value
from bakeoff.tables.records import interval_of, without_unit
from bakeoff.text import columns
from bakeoff.text.columns import Column


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("goodput_bps", "bit/s"),
        ("flow1_srtt_p99_s", "s"),
        ("flows.a.srtt_s.mean", "s"),
        ("flows.a.fct.fct_s.geometric_mean", "s"),
        ("queues.mid>srv.parts.L.p99", "s"),
        ("oscillations_per_s", "1/s"),  # a rate, and no time of "oscillations per"
        ("flows.a.oscillations_per_s", "1/s"),
        ("flows.a.srtt_s.n", None),  # a count of samples
        ("flows.rtt_s.marks", None),  # of a flow with the name rtt_s
        ("marks", None),
    ],
)
def test_the_unit_in_a_name(name, unit):
    assert unit_in(name) == unit


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("oscillations_per_s", 0.5564, "0.5564"),
        ("goodput_bps", 46.19e6, "46.19"),
        ("goodput_bps", 1000.0, "0.0010"),  # 1 kbit/s
        ("goodput_bps", 0.0, "0.00"),
        ("srtt_mean_s", 0.0203, "20.3"),
        ("srtt_mean_s", 12e-6, "0.012"),
        ("convergence_s", 21.7, "21.7"),
        ("mark_fraction", 1e-6, "0.00010%"),
        ("utilisation", 0.9995, "100.0%"),
        ("jain", 0.5, "0.5"),
        ("marks", 12124.0, "12124"),
    ],
)
def test_digits(name, value, text):
    assert cells.formatted(name, value) == text


def test_the_axis_of_a_measure_has_its_unit():
    assert axes.axis_of("flows.*.oscillations_per_s").text == "flows.*.oscillations_per_s [1/s]"
    assert axes.axis_of("flows.*.srtt_s.max").unit == "ms"
    assert axes.axis_of("flows.*.srtt_s.n").unit == "1"
    assert axes.axis_of("flows.*.loss").unit == "%"


def test_the_interval_of_a_column_stands_beside_it():
    assert interval_of("goodput_bps") == "goodput_ci95_bps"
    assert interval_of("oscillations_per_s") == "oscillations_per_s_ci95"
    assert without_unit("oscillations_per_s") == "oscillations_per_s"


@pytest.mark.parametrize(
    ("name", "mean", "half", "text"),
    [
        ("loss", 0.568, 1.212, "56.80% [0.00%, 100.00%]"),
        ("loss", 0.5, 0.1, "50.00%±10.00%"),
        ("jitter_s", 0.0063, 0.0102, "6.3 [0.0, 16.5]"),
        ("share", 0.98, 0.05, "98% [93%, 100%]"),
        ("ratio", 1.2, 0.5, "1.2 [1, 1.7]"),  # the larger over the smaller
        ("goodput_bps", 1e6, 3e6, "1.00 [0.00, 4.00]"),
        ("goodput_bps", 46e6, 100.0, "46.00±0.00"),
        ("flow1_log_ratio", 0.1, 0.5, "0.1±0.5"),
        ("utilisation", 1.0, 1e-6, "100.0%±0.0%"),  # no digit that is shown is cut
    ],
)
def test_an_interval_lies_where_numbers_can_be(name, mean, half, text):
    assert cells.with_interval(name, mean, half) == text


def test_ends_of_intervals():
    found = interval([0.9, 1.0, 1.0])
    half = 4.3027 * math.sqrt((0.0667**2 + 2 * 0.0333**2) / 2) / math.sqrt(3)  # 0.143: above 1 with the mean of 0.967
    assert ends(found) == pytest.approx((0.9667 - half, 0.9667 + half), abs=1e-3)
    assert ends(found, limits("jain")) == pytest.approx((0.9667 - half, 1.0), abs=1e-3)
    assert ends(interval([0.5]), limits("jain")) is None
    assert ends({"n": 2, "mean": -0.1, "ci95": 0.2}, (0.0, math.inf))[0] == -0.1  # the mean itself is never cut


def test_what_an_expression_can_be():
    assert number_of("jain").limits == (0.0, 1.0)
    assert number_of('share("a")').limits == (0.0, 1.0)
    assert number_of('min(share("a"), share("b"))').limits == (0.0, 1.0)
    assert number_of('goodput("a") / goodput("b")').limits == (0.0, math.inf)
    assert number_of('goodput("a") - goodput("b")').limits == (-math.inf, math.inf)
    assert number_of("ratio").limits == (1.0, math.inf)


def test_a_mean_says_of_how_many_repetitions_it_is():
    some = Mean.over([4.14, None, None])
    assert (some, some.n, some.of) == (4.14, 1, 3)
    assert partly(some) == " (1 of 3)"
    assert cells.formatted("delay_p99_s", some) == "4140.0 (1 of 3)"
    assert cells.with_interval("delay_p99_s", Mean.over([1.0, 3.0, None]), 0.5) == "2000.0±500.0 (2 of 3)"
    assert partly(Mean.over([1.0, 2.0])) == ""
    assert Mean.over([None, None]) is None
    assert cells.rate(interval([4e6, 6e6]), of=3).endswith(" (2 of 3)")


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        ([0.475, 0.525], ["48%", "52%"]),  # rounded half up each alone they are 48 and 53
        ([1 / 6] * 6, ["17%", "17%", "17%", "17%", "16%", "16%"]),  # and six times 17 are 102
        ([0.997, 0.003], ["100%", "<1%"]),
        ([0.485, 0.51, 0.005], ["49%", "51%", "<1%"]),
        ([1.0, 0.0], ["100%", "0%"]),
        ([0.0, 0.0], ["0%", "0%"]),
    ],
)
def test_parts_of_a_whole_add_up(parts, text):
    assert cells.percent(parts) == text


@pytest.mark.parametrize(
    "ordered",
    [
        ["5", "10.57", "22.36", "47.29", "100"],
        ["5kbit", "20mbit", "100mbit", "1gbit"],
        ["500us", "20ms", "160ms", "1s"],
        ["5 Mbit/s", "10.57 Mbit/s", "1 Gbit/s"],
        ["s2-codel", "s10-gaming"],
        ["fq_codel", "fq_codel flows 1", "fq_codel flows 16", "pie"],
        ["20ms/20ms", "20ms/160ms", "80ms/20ms"],
        ["1%", "10%"],
        ["-5ms", "0ms", "5ms"],
    ],
)
def test_labels_stand_by_the_size_of_their_numbers(ordered):
    assert sorted(sorted(ordered), key=by_value) == ordered


QDISC = "fq_codel limit 10240p flows 1 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64"
TABLE = [
    Column("queue", ["mid>srv", "srv>mid"], text=True),
    Column("delay ms\nmean/p99", ["71.7/184.2", "0.0/0.0"]),
    Column("marks", ["6734", "0"], keep=8),
    Column("qdisc", [QDISC, "pfifo"], keep=2, text=True),
]


@pytest.mark.parametrize("width", [*range(24, 180, 7), 100_000])
def test_a_table_is_never_wider_than_the_terminal(width):
    lines, left = columns.fitted(TABLE, width)
    text = [line.plain for line in lines]
    assert max(map(len, text)) <= width
    whole = "".join("".join(text).split())
    assert "71.7/184.2" in whole  # what always stays is there, whatever the width
    assert ("6734" in whole) == (TABLE[2] not in left)


def test_a_long_text_is_folded_between_words():
    [text] = [QDISC]
    lines, left = columns.fitted([TABLE[0], TABLE[3]], 60)
    assert left == []
    cells_of = [line.plain[9:] for line in lines[2:]]
    assert " ".join(cell.strip() for cell in cells_of) == f"{text} pfifo"


def test_a_path_is_not_folded():
    path = "results/duels/2026-11-27T04-10-27"
    found = [Column("campaign", [path], text=True, whole=True), Column("what", [QDISC], text=True)]
    assert any(path in line.plain for line in columns.fitted(found, 60)[0])


def test_a_folded_line_keeps_its_indent():
    assert columns.fold("  99 of 100 arrive within [ms]", 20) == ["  99 of 100 arrive", "    within [ms]"]


def test_a_number_with_its_interval_may_be_folded():
    found = [Column("a", ["1.49 [0.98, 100.0]"], soft=True), Column("b", ["12"])]
    lines, left = columns.fitted(found, 17)
    assert left == []
    assert [line.plain.rstrip() for line in lines[2:]] == ["         1.49  12", "[0.98, 100.0]"]


def test_what_the_advice_says_of_an_interval():
    from bakeoff.advice import quantities as advised
    from bakeoff.advice.numbers import MEASURES

    by_key = {measure.key: measure for measure in MEASURES}
    loss, stalled, rate = (by_key[key] for key in ("call_loss", "video_stalled_s", "downloads_bps"))
    assert advised.around(loss, {"n": 2, "mean": 0.568, "ci95": 1.212}) == " [0, 100.0]"
    assert advised.around(stalled, {"n": 2, "mean": 7.8, "ci95": 12.78}) == " [0, 20.58]"
    assert advised.around(loss, {"n": 2, "mean": 0.5, "ci95": 0.1}) == " ±10.0"
    assert advised.around(rate, {"n": 1, "mean": 1e6, "ci95": None}) == ""


def test_two_campaigns_side_by_side_have_digits():
    from bakeoff.tables.distances import written

    assert written("goodput", 1000.0, unit=True) == "0.0010 Mbit/s"
    assert written("goodput", 45.678e6) == "45.68"
    assert written("tcp_delay_mean", 3e-6, unit=True) == "0.0030 ms"
    assert written("marks", 12.0) == "12"
