"""Measures against the axes of a matrix: sweeps and heat maps."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from bakeoff.errors import BakeoffError
from bakeoff.plots import against_axis, axes, contours, draw, heatmap, points
from bakeoff.tables import label_order
from synthetic import made


def matrix(rtts=("10ms", "20ms", "100ms"), qdiscs=("pie", "red"), seeds=(1,), goodput=lambda rtt, qdisc, seed: 4e6):
    """Runs of Prague beside CUBIC; the first gets what `goodput` says, the other 2 Mbit/s."""
    return [
        made((goodput(rtt, qdisc, seed), 2e6), scenario="s", run=f"{rtt}-{qdisc}", seed=seed,
             point={"rtt": rtt, "qdisc": qdisc, "flows": "two"})
        for rtt in rtts for qdisc in qdiscs for seed in seeds
    ]  # fmt: skip


def one(results):
    [found] = points.matrices(results)
    return found


def points_of(axes):
    return {line.get_color(): line.get_data() for line in axes.lines}


def test_numbers_of_labels():
    assert label_order.number("40ms") == (40.0, "ms")
    assert label_order.number("0.5s") == (500.0, "ms")
    assert label_order.number("1Gbit") == (1000.0, "Mbit/s")
    assert (label_order.number("5%"), label_order.number("64 kB"), label_order.number("20p")) == (
        (5.0, "%"),
        (64.0, "kB"),
        (20.0, "packets"),
    )
    assert label_order.number("64") == (64.0, "")
    assert label_order.number("fq_codel") is None


def test_a_panel_per_qdisc_a_line_per_flow():
    picture = against_axis.sweep(one(matrix(goodput=lambda rtt, qdisc, seed: 1e6 * len(rtt) * len(qdisc))))
    pie, red = picture.axes
    assert (pie.get_title(loc="left"), red.get_title(loc="left")) == ("qdisc pie", "qdisc red")
    at, mbit = points_of(pie)["#D55E00"]
    assert list(at) == [10.0, 20.0, 100.0]
    assert list(mbit) == pytest.approx([12.0, 12.0, 15.0])  # 3 letters of pie times 4 or 5 of the label
    assert points_of(pie)["#0072B2"][1] == pytest.approx([2.0] * 3)
    assert pie.get_xlabel() == "rtt [ms]"
    assert pie.get_xscale() == "log"  # 100 ms are ten times 10 ms
    assert pie.get_ylim() == red.get_ylim()


def test_bands_are_intervals_over_seeds():
    picture = against_axis.sweep(
        one(matrix(qdiscs=("pie",), seeds=(1, 2, 3), goodput=lambda r, q, seed: 4e6 + 1e5 * seed))
    )
    [axes] = picture.axes
    band = axes.collections[0].get_paths()[0].vertices[:, 1]
    half = 4.3027 * 0.1 / math.sqrt(3)  # s = 0.1 Mbit/s, n = 3
    assert (band.min(), band.max()) == pytest.approx((4.2 - half, 4.2 + half))


def test_one_number_per_run_makes_lines_of_the_other_axis():
    picture = against_axis.sweep(one(matrix()), "queue_delay_p99")
    [axes] = picture.axes
    assert len(axes.lines) == 2
    assert list(axes.lines[0].get_ydata()) == pytest.approx([12.5] * 3)  # the stand-in's 99th percentile
    [legend] = picture.legends
    assert [text.get_text() for text in legend.get_texts()][:2] == ["pie", "red"]
    # A number needs the name of its axis, and then all labels of that axis have it.
    picture = against_axis.sweep(one(matrix(qdiscs=("5ms", "none"))), "queue_delay_p99", "rtt")
    [legend] = picture.legends
    assert [text.get_text() for text in legend.get_texts()][:2] == ["qdisc 5ms", "qdisc none"]


def test_a_measure_with_times_of_its_own_is_not_said_to_be_of_the_steady_state(monkeypatch):
    monkeypatch.setattr(points, "_taken", lambda result, text: 0.1)
    asked = (None, 'ping_max(begin="0s", end="60s")')
    said = [" ".join(text.get_text() for text in against_axis.sweep(one(matrix()), measure).texts) for measure in asked]
    assert [("steady state" in text, "names no other time" in text) for text in said] == [(True, False), (True, True)]


def test_a_heat_map_has_a_cell_per_point():
    picture = heatmap.heatmap(one(matrix(goodput=lambda rtt, qdisc, seed: 2e6 if qdisc == "pie" else 6e6)))
    axes = picture.axes[0]
    # Jain of 2 and 2 is 1, of 6 and 2 (6 + 2)^2 / (2 (36 + 4)) = 0.8
    assert {text.get_text() for text in axes.texts} == {"1.00", "0.800"}
    assert [label.get_text() for label in axes.get_xticklabels()] == ["10ms", "20ms", "100ms"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["pie", "red"]


def test_a_missing_point_is_an_empty_cell():
    assert "none" in {text.get_text() for text in heatmap.heatmap(one(matrix()[:-1])).axes[0].texts}


def test_several_measures_have_a_panel_each(monkeypatch):
    taken = {"overshoot(1)": {"pie": 0.0, "red": 24756.0}, "rise(1)": {"pie": 0.0349, "red": 8.47}}
    monkeypatch.setattr(points, "_taken", lambda result, text: taken[text][result.run.point["qdisc"]])
    picture = heatmap.heatmap(one(matrix()), "overshoot(1), rise(1)", "rtt", "qdisc")
    titles = [axes.get_title(loc="left") for axes in picture.axes]
    assert titles == ["overshoot of slow start [packets]", "time to the fair share [s]"]
    # A single wide range is logarithmic; colours of 0.0349 and 8.47 s are the ends.
    assert [{text.get_text() for text in axes.texts} for axes in picture.axes] == [{"0", "25k"}, {"0.035", "8.5"}]
    drops, rise = (axes.images[0].norm for axes in picture.axes)
    assert (drops(0.0), drops(24756.0)) == pytest.approx((0.0, 1.0))
    assert rise(math.sqrt(0.0349 * 8.47)) == pytest.approx(0.5)
    with pytest.raises(BakeoffError, match="'goodput': several values per run; expected one, as 'goodput"):
        heatmap.heatmap(one(matrix()), "goodput,rise(1)")
    third = [made(run=f"{a}{b}{c}", point={"a": a, "b": b, "c": c}) for a in "12" for b in "12" for c in "12"]
    with pytest.raises(BakeoffError, match="several measures: 'c' varies too; expected two axes"):
        heatmap.heatmap(one(third), "overshoot(1),rise(1)", "a", "b")
    monkeypatch.setattr(contours, "MOST_NUMBERS", 5)
    with pytest.raises(BakeoffError, match="3 x 2 points; expected at most 5"):
        heatmap.heatmap(one(matrix()), "overshoot(1),rise(1)", "rtt", "qdisc")


def test_measures_by_name_and_by_place():
    summary = {"flows": {"a": {"srtt_s": {"max": 0.5}}, "b": {"srtt_s": None}}, "jain": 0.5}
    assert axes.values(summary, axes.axis_of("flows.*.srtt_s.max")) == {"a": 500.0}
    assert axes.values(summary, axes.axis_of("jain")) == {"": 0.5}
    with pytest.raises(BakeoffError, match="measure: unknown 'fairness'; expected one of goodput, delivery_rate"):
        axes.axis_of("fairness")


def test_measures_are_found_in_a_summary_and_others_are_of_what_the_run_has_not():
    # Of short flows, videos and UDP, of a kernel's AccECN, of dualpi2, of sampled departures, and of three flows
    absent = ("fct", "unfinished", "video", "startup", "stall", "switches", "udp", "seen")
    absent += ("l_delay", "c_delay", "little_delay")
    summary = points.Point({}, (matrix()[0],)).summaries[0]
    for name in axes.names():
        assert bool(axes.values(summary, axes.axis_of(name))) == (not name.startswith(absent)), name


def test_mistakes_name_the_axes(monkeypatch):
    found = one(matrix())
    with pytest.raises(BakeoffError, match="s: unknown axis 'rate'; expected one of: rtt, qdisc"):
        against_axis.sweep(found, x="rate")
    with pytest.raises(BakeoffError, match="labels of 'qdisc' are not numbers of one unit"):
        against_axis.sweep(found, x="qdisc")
    with pytest.raises(BakeoffError, match="a heatmap needs two axes; the axes are: rtt"):
        heatmap.heatmap(one(matrix(qdiscs=("pie",))))
    with pytest.raises(BakeoffError, match="no axis with numeric labels"):
        against_axis.sweep(one(matrix(rtts=("near", "far"))))
    monkeypatch.setattr(against_axis, "MOST_PANELS", 1)
    with pytest.raises(BakeoffError, match="2 panels for qdisc"):
        against_axis.sweep(found)


def test_what_is_drawn_when_nothing_is_said():
    assert draw.default_kind(matrix()) == "bars"
    assert draw.default_kind(matrix(rtts=("1ms", "2ms", "3ms", "4ms", "5ms"))) == "sweep"
    assert draw.default_kind(matrix()[:1]) == "tcp_delivery_with_rtt"


def test_mixed_epochs_stand_on_every_picture_that_shows_them():
    results = matrix(rtts=("10ms", "20ms"), qdiscs=("pie",))
    for epoch, result in zip((1, 2), results, strict=True):
        result.meta["provenance"] = SimpleNamespace(model_epoch=epoch)
    pictures = [draw.overlay(results), *draw.campaign(results).values()]
    pictures.append(draw.campaign(results, "sweep").popitem()[1])
    said = "the runs come from different model epochs (1 from epoch 1, 1 from epoch 2)"
    assert [sum(said in text.get_text() for text in picture.texts) for picture in pictures] == [1, 1, 1]
    for result in results:
        result.meta["provenance"] = SimpleNamespace(model_epoch=2)
    assert not any("epoch" in text.get_text() for text in draw.overlay(results).texts)


def test_bars_stand_in_the_order_of_the_matrix():
    """And, of older results that do not say it, by the names of the controls."""
    results = [
        made((4e6, 2e6), run=f"{pair}-{qdisc}", flows=((pair, pair), ("reno", "reno")),
             point={"pair": f"{pair}-reno", "qdisc": qdisc})
        for qdisc in ("red", "pie") for pair in ("prague", "cubic")
    ]  # fmt: skip

    def drawn():
        [picture] = draw.campaign(results, "bars").values()
        axes = picture.axes[0]
        above = [text.get_text() for text in axes.texts if text.get_position()[1] > 1]
        return above, [label.get_text() for label in axes.get_xticklabels()]

    assert drawn() == (["pie", "red"], ["cubic", "reno", "prague", "reno"] * 2)
    for place, result in enumerate(results):
        result.meta["order"] = place
    assert drawn() == (["red", "pie"], ["prague", "reno", "cubic", "reno"] * 2)
