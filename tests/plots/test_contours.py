"""Heat maps over two axes of numbers: their scales, lines of equal value, and gaps."""

from __future__ import annotations

import json

import numpy as np
import pytest

from bakeoff import results
from bakeoff.errors import BakeoffError
from bakeoff.plots import axes, contours, heatmap, points
from synthetic import made

RTTS = ("1ms", "4ms", "16ms", "64ms")
RATES = ("10mbit", "20mbit", "30mbit", "40mbit")


def campaign(rtts=RTTS, rates=RATES, ok=lambda rtt, rate: True):
    """Runs of two flows: the first gets as many Mbit/s as the rate says, the other 10."""
    found = []
    for rtt in rtts:
        for rate in rates:
            run = made(
                (float(rate.removesuffix("mbit")) * 1e6, 1e7),
                scenario="s", run=f"{rtt}-{rate}", point={"rtt": rtt, "rate": rate},
            )  # fmt: skip
            if not ok(rtt, rate):
                run.meta["status"] = "failed"
            found.append(run)
    return found


def drawn(runs, measure="jain", **axes):
    [matrix] = points.matrices(runs)
    return heatmap.heatmap(matrix, measure, **axes)


def words(picture):
    return {text.get_text() for text in picture.axes[0].texts if text.get_visible()}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((1, 4, 16, 64), True),
        ((10, 20, 30, 40), False),
        ((1, 2, 3, 100), True),
        ((1, 50, 60, 100), False),
        ((0, 1, 10, 100), False),
        ((1, 2, 4), False),  # not a factor of eight
    ],
)
def test_which_axis_is_logarithmic(values, expected):
    assert contours.logarithmic(values) is expected


def test_axes_are_scaled_as_their_points_are_spread():
    axes = drawn(campaign(), x="rtt", y="rate").axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "linear")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("rtt [ms]", "rate [Mbit/s]")
    # Cells reach half-way to their neighbours, on a logarithmic scale: 1 and 4 ms meet at 2 ms, and the first begins
    # at 0.5 ms; on a linear one 10 and 20 meet at 15 Mbit/s.
    corners = np.asarray(axes.collections[0].get_coordinates())
    assert corners[0, :, 0].tolist() == pytest.approx([0.5, 2, 8, 32, 128])
    assert corners[:, 0, 1].tolist() == pytest.approx([5, 15, 25, 35, 45])


def test_lines_of_equal_value_say_it():
    # Jain of r and 10 is (r + 10)^2 / (2 (r^2 + 100)): 1, 0.9, 0.8 and 0.735.
    assert words(drawn(campaign(), x="rtt", y="rate")) >= {"0.8", "0.9"}


def test_a_failed_run_is_a_gap_with_a_sign():
    runs = campaign(ok=lambda rtt, rate: (rtt, rate) != ("4ms", "20mbit"))
    picture = drawn(runs, x="rtt", y="rate")
    mesh = picture.axes[0].collections[0].get_array()
    assert np.argwhere(np.ma.getmaskarray(mesh)).tolist() == [[1, 1]]
    assert [[4.0, 20.0]] in [np.asarray(one.get_offsets()).tolist() for one in picture.axes[0].collections]
    [legend] = picture.legends
    assert [text.get_text() for text in legend.get_texts()][1:] == ["the run failed"]


def test_a_point_of_which_one_seed_failed_is_none():
    runs = campaign()
    again = campaign(ok=lambda rtt, rate: False)
    [matrix] = points.matrices([*runs, *again])
    assert matrix.failed == []


def test_a_sample_is_drawn_between_its_points():
    chosen = [("1ms", "10mbit"), ("4ms", "30mbit"), ("16ms", "20mbit"), ("64ms", "40mbit"), ("2ms", "25mbit")]
    runs = [run for rtt, rate in chosen for run in campaign((rtt,), (rate,))]
    [legend] = drawn(runs, x="rtt", y="rate").legends
    assert "a run; between them interpolated" in [text.get_text() for text in legend.get_texts()]


def test_few_values_are_labels():
    assert words(drawn(campaign(rtts=RTTS[:3]), x="rtt", y="rate")) >= {"1.00", "0.900"}


def test_an_expression_is_what_was_taken(tmp_path):
    runs = campaign()
    for number, run in enumerate(runs):
        folder = tmp_path / str(number)
        folder.mkdir()
        (folder / "measured.json").write_text(json.dumps({'goodput("a")': number * 1e6}))
        object.__setattr__(run, "path", folder)
    assert results.measured(runs[3]) == {'goodput("a")': 3e6}
    [matrix] = points.matrices(runs)
    text = 'goodput("a")'
    measure = axes.axis_of(text)
    assert measure.unit == "Mbit/s"
    assert matrix.points[3].measured(measure)[""].found["mean"] == pytest.approx(3.0)
    with pytest.raises(BakeoffError, match="unknown measure 'goodputt'"):
        axes.axis_of("goodputt(1)")
