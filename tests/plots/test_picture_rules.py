"""What holds for all pictures: sizes, fonts, colours, and what they say of seeds, directions and recordings."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import pytest

from bakeoff.errors import BakeoffError
from bakeoff.plots import against_axis, bars, draw, heatmap, points
from bakeoff.plots.flow_styles import flow_styles
from bakeoff.plots.plotted_run import PlottedRun, lines, short_names
from bakeoff.plots.style import save
from picture_words import entries, words
from synthetic import of_controls as run


class TestSizes:
    @pytest.mark.parametrize("size", [(3.5, 2.6), (2.5, 7.0), (6.0, 4.0), (20.0, 5.0)])
    def test_a_resized_picture_keeps_its_panels_apart_and_its_words_inside(self, size):
        picture = draw.figure(run("prague", "cubic"))
        picture.set_size_inches(*size)
        picture.draw_without_rendering()
        boxes = [axes.get_window_extent() for axes in picture.axes]
        assert all(box.height > 0.3 * 100 for box in boxes)  # 0.3 inches of 100 dots
        assert boxes[0].y0 >= boxes[1].y1
        for text in picture.texts:
            box = text.get_window_extent()
            assert box.y0 >= boxes[0].y1 - 1
            assert box.x1 <= size[0] * 100 + 1
        assert picture.legends[0].get_window_extent().y1 <= boxes[-1].y0 + 1

    def test_a_journals_column(self, tmp_path):
        picture = draw.sized(draw.figure(run("prague", "cubic")), "88.9mm", heading=False)
        assert picture.get_figwidth() == pytest.approx(3.5)
        assert picture.texts == []
        sizes = {label.get_fontsize() for axes in picture.axes for label in (axes.xaxis.label, axes.yaxis.label)}
        assert min(sizes) == pytest.approx(0.7 * 11)  # points
        path = save(picture, tmp_path / "a.png")
        header = path.read_bytes()[16:24]
        assert int.from_bytes(header[:4]) >= 1190  # dots, however few inches

    @pytest.mark.parametrize("text", ["3.5", "0.1in", "100in", "3,5in", "in", "-3in", "3.5 in wide"])
    def test_a_width_has_a_unit(self, text):
        with pytest.raises(BakeoffError, match=r"--width: '.*'; expected 2in to 40in"):
            draw.width_of(text)

    def test_pdf_has_no_type_3_fonts_and_svg_has_text(self, tmp_path):
        picture = draw.figure(run("prague", "cubic"))
        assert b"/Type3" not in save(picture, tmp_path / "a.pdf").read_bytes()
        tree = ET.parse(save(picture, tmp_path / "a.svg"))
        texts = [node.text for node in tree.iter("{http://www.w3.org/2000/svg}text")]
        assert "time [s]" in texts

    def test_a_note_on_a_cut_axis_lies_outside_of_it(self):
        picture = draw.figure(run("cubic", rates=(60e6,)))
        picture.draw_without_rendering()
        [axes] = [axes for axes in picture.axes if "cut" in axes.get_title(loc="right")]
        title = axes._right_title.get_window_extent()
        assert title.y0 >= axes.get_window_extent().y1

    def test_an_axis_made_for_seconds_is_not_for_milliseconds(self):
        result = run("cubic")
        # 25 to 45 ms: all of an axis of 20 to 70 ms, and no quarter of one up to a second
        result.resolved["present"]["rtt_axis_s"] = [0.0, 1.0]
        assert draw.figure(result).axes[1].get_ylim()[1] < 60
        result.resolved["present"]["rtt_axis_s"] = [0.02, 0.07]
        assert draw.figure(result).axes[1].get_ylim() == (20, 70)

    def test_a_kilobit_has_a_unit_of_its_own(self):
        result = run("cubic", rates=(1000.0,))
        result.resolved["present"] = {}
        result.resolved["interfaces"] = []
        rates = draw.figure(result).axes[0]
        assert "[kbit/s]" in " ".join(rates.get_ylabel().split())
        assert rates.yaxis.get_major_formatter()(0.0005) == "0.5"


class TestColours:
    def test_they_are_one_assignment_for_all_kinds(self):
        """Of a scenario with colours of its own, as those of l4s-tests have them."""
        point = {"qdisc": "pie", "rtt": "10ms"}
        result = run("prague", "cubic", names=["prague", "cubic"], point=point)
        other = run("prague", "cubic", names=["prague", "cubic"], point=point | {"rtt": "20ms"}, run="other")
        for one in (result, other):
            one.resolved["present"]["colours"] = {"prague": "#1f5fa8", "cubic": "#b8332a"}
        over_time = {line.label: line.colour for line in lines([PlottedRun(result)])}
        [drawn] = bars.charts([result]).values()
        in_bars = dict(
            zip(["prague", "cubic"], (patch.get_facecolor() for patch in drawn.axes[0].patches), strict=True)
        )
        [matrix] = points.matrices([result, other])
        in_sweep = {
            line.get_label(): line.get_color()
            for line in against_axis.sweep(matrix).entries
            if line.get_label() in over_time
        }
        assert over_time == {"prague": "#1f5fa8", "cubic": "#b8332a"}
        assert in_sweep == over_time
        assert {name: tuple(round(255 * part) for part in colour[:3]) for name, colour in in_bars.items()} == {
            "prague": (0x1F, 0x5F, 0xA8),
            "cubic": (0xB8, 0x33, 0x2A),
        }

    def test_classes_of_the_users_own_have_the_colours_of_their_campaign(self, tmp_path):
        """Alone in a picture or together: as if all of the campaign were in it."""
        ccs = [f"./aimd.py:Aimd{number}" for number in range(70, 78)]
        (tmp_path / "campaign.json").touch()
        found = []
        for cc in ccs:
            path = tmp_path / "local" / "s" / cc[-6:]
            path.mkdir(parents=True)
            (path / "run.json").write_text(json.dumps({"resolved": {"flows": [{"cc": cc}, {"cc": "cubic"}]}}))
            found.append(run(cc, path=path))
        together = flow_styles(found).controls
        assert len({together[cc[-6:]] for cc in ccs}) == len(ccs)
        for one, cc in zip(found, ccs, strict=True):
            assert flow_styles([one]).controls[cc[-6:]] == together[cc[-6:]]


def captured(*names, sizes, rates):
    """What `bakeoff trace --out` makes of a capture with these connections."""
    result = run(*["unknown"] * len(names), names=names, rates=rates, scenario="capture")
    for name, size in zip(names, sizes, strict=True):
        result.counted["flows"][name] |= {"received_bytes": int(size), "cc": None}
    series = result.series.filter(result.series["metric"] != "delivery_rate")
    return replace(result, series=series, meta=result.meta | {"engine": "capture"})


class TestCaptures:
    NAMES = ("10.0.0.1:40000>10.0.0.3:5201", "10.0.0.1:40001>10.0.0.3:5201", "10.0.0.1:39999>10.0.0.3:5201")

    def capture(self):
        # A control connection of 2 kB beside 9.4 and 4.7 Mbit/s.
        return captured(*self.NAMES, sizes=(7e7, 3.5e7, 2e3), rates=(9.4e6, 4.7e6, 300.0))

    def test_a_control_connection_is_neither_drawn_nor_averaged(self):
        shown = PlottedRun(self.capture())
        assert [name for name, _ in shown.left_out] == [self.NAMES[2]]
        picture = draw.figure(self.capture())
        rates = picture.axes[0]
        tops = sorted(
            round(float(np.nanmax(line.get_ydata())), 1) for line in rates.lines if line.get_linewidth() == 1.8
        )
        assert tops == [4.7, 9.4]
        assert any("not drawn" in text and "2 kB" in text for text in words(picture))
        [drawn] = bars.charts([self.capture()]).values()
        assert [round(bar.get_height(), 1) for bar in drawn.axes[0].patches] == [9.4, 4.7]

    def test_a_starved_flow_of_a_run_is_drawn(self):
        result = run("prague", "cubic", rates=(45e6, 1e3))
        assert PlottedRun(result).left_out == []
        # And one of a capture that carries more than a tool says.
        assert PlottedRun(captured(*self.NAMES[:2], sizes=(7e7, 3e5), rates=(9e6, 4e4))).left_out == []

    def test_each_flow_has_a_colour_and_a_short_name_and_is_tcp(self):
        drawn = lines([PlottedRun(self.capture())])
        assert len({line.colour for line in drawn}) == 2
        assert [line.label for line in drawn] == ["40000 > 5201 (TCP)", "40001 > 5201 (TCP)"]
        [picture] = bars.charts([self.capture()]).values()
        assert any("ran: TCP" in text for text in words(picture))
        assert not any("UDP" in text for text in words(picture) + entries(picture))

    def test_goodput_is_called_so(self):
        assert "goodput" in draw.figure(self.capture()).axes[0].get_ylabel()
        [picture] = bars.charts([self.capture()]).values()
        assert picture.axes[0].get_ylabel().startswith("goodput")
        assert "delivery rate" in draw.figure(run("cubic")).axes[0].get_ylabel()

    @pytest.mark.parametrize(
        ("names", "short"),
        [
            (["[fd00::1]:40000>[fd00::2]:5201"], ["40000 > 5201"]),
            (["10.0.0.1:1>10.0.0.3:2", "10.0.0.2:1>10.0.0.3:2"], [".1:1 > .3:2", ".2:1 > .3:2"]),
            (["10.0.0.1:1>192.168.0.3:2", "10.0.0.2:1>192.168.0.3:2"],
             ["10.0.0.1:1 > 192.168.0.3:2", "10.0.0.2:1 > 192.168.0.3:2"]),
            (["10.0.0.1:1>10.0.0.3:2", "prague"], ["10.0.0.1:1>10.0.0.3:2", "prague"]),
            (["10.0.0.1:1>10.0.0.3:2", "10.0.0.1:1>10.0.0.3:2 (2)"], ["1 > 2", "1 > 2 (2)"]),
        ],
    )  # fmt: skip
    def test_short_names(self, names, short):
        assert list(short_names(names)[0].values()) == short


class TestBars:
    def both_ways(self):
        """Two uploads, a call and two downloads, through a queue each way."""
        result = run("cubic", "prague", "cubic", "cubic", "bbr", names=["u1", "u2", "call", "d1", "d2"],
                     rates=(5e6, 4e6, 1e5, 10e6, 86e6))  # fmt: skip
        for flow in result.resolved["flows"]:
            if flow["name"].startswith("d"):
                flow |= {"from": "srv", "to": "cli"}
            if flow["name"] == "call":
                flow |= {"transport": "udp", "source": {"kind": "rate", "rate_bps": 100_000, "size": 160}}
        return result

    def test_directions_stand_apart_and_udp_is_called_so(self):
        [picture] = bars.charts([self.both_ways()]).values()
        names = [label.get_text() for label in picture.axes[0].get_xticklabels()]
        assert names == ["↑ u1", "↑ u2", "↑ call", "↓ d1", "↓ d2"]
        assert "UDP" in entries(picture)
        assert not any("none" in text for text in words(picture) + entries(picture))

    def test_many_flows_are_bars_by_control_and_direction(self, monkeypatch):
        monkeypatch.setattr(bars, "_MOST_FLOWS", 2)
        [picture] = bars.charts([self.both_ways()]).values()
        names = [label.get_text() for label in picture.axes[0].get_xticklabels()]
        assert names == ["↑ u1", "↑ u2", "↑ call", "↓ d1", "↓ d2"]
        result = run("cubic", "cubic", "cubic", "cubic", names=["u1", "u2", "d1", "d2"], rates=(5e6, 3e6, 20e6, 10e6))
        for flow in result.resolved["flows"][2:]:
            flow |= {"from": "srv", "to": "cli"}
        [picture] = bars.charts([result]).values()
        axes = picture.axes[0]
        assert [label.get_text() for label in axes.get_xticklabels()] == ["↑ cubic ×2", "↓ cubic ×2"]
        assert [bar.get_height() for bar in axes.patches] == pytest.approx([4.0, 15.0])

    def test_an_index_stands_above_the_flows_that_it_is_of(self):
        [picture] = bars.charts([self.both_ways()]).values()
        axes = picture.axes[0]
        # (5 + 4)² / (2 (25 + 16)) = 0.988 of the two uploads alone; the call and the downloads have no part in it
        index, *_ = [text for text in axes.texts if re.fullmatch(r"\d\.\d\d", text.get_text())]
        assert index.get_text() == "0.99"
        first, second = (bar.get_x() + bar.get_width() / 2 for bar in axes.patches[:2])
        assert index.get_position()[0] == pytest.approx((first + second) / 2)

    def test_no_interval_leaves_what_the_link_carries(self):
        seeds = [run("cubic", rates=(rate,), seed=seed) for seed, rate in enumerate((2e6, 48e6), 1)]
        [picture] = bars.charts(seeds).values()
        axes = picture.axes[0]
        low, high = axes.containers[1].get_children()[-1].get_segments()[0][:, 1]
        assert (low, high) == pytest.approx((0.0, 50.0))  # 25 ± 292 Mbit/s by Student's t, on a link of 50

    def test_a_bar_over_some_seeds_says_of_how_many_it_is(self):
        def silent(result):
            """Nothing of the second flow arrived."""
            return replace(result, series=result.series.filter(result.series["name"] != "reno"))

        def two(seed):
            return run("cubic", "reno", names=["cubic", "reno"], rates=(4e6, 2e6), seed=seed)

        [picture] = bars.charts([two(1), silent(two(2)), two(3)]).values()
        assert "2/3" in [text.get_text() for text in picture.axes[0].texts]
        assert any("n/N" in label for label in entries(picture))

    def duels(self):
        return [
            run("cubic", cc, point={"cc2": cc, "rate": rate, "rtt": rtt, "qdisc": qdisc},
                names=["cubic", cc], run=f"{cc}-{rate}-{rtt}-{qdisc}", rate=rate)
            for cc in ("reno", "bbr") for rate in ("100mbit", "20mbit") for rtt in ("10ms", "40ms")
            for qdisc in ("pie", "fq_codel")
        ]  # fmt: skip

    def test_panels_and_groups_can_be_chosen(self):
        assert len(bars.charts(self.duels())) == 4  # a picture for each rate and round-trip time
        [picture] = bars.charts(self.duels(), panels=["all"]).values()
        titles = [axes.get_title(loc="left") for axes in picture.axes]
        assert titles == [f"rate {rate}, rtt {rtt}" for rate in ("20mbit", "100mbit") for rtt in ("10ms", "40ms")]
        made_ = bars.charts(self.duels(), panels=["rtt"], x="rate")
        assert len(made_) == 2  # for pie and fq_codel
        [picture, _] = made_.values()
        above = [text.get_text() for text in picture.axes[0].texts if text.get_position()[1] > 1]
        assert above == ["20mbit", "100mbit"]
        with pytest.raises(
            BakeoffError, match="bars: 'colour' is not an axis of l4s-tests/s6-rfc3168; expected one of: cc2, rate"
        ):
            bars.charts(self.duels(), panels=["colour"])

    def test_runs_of_one_flow_stand_in_one_picture_with_their_delays(self):
        runs = [
            run("cubic", names=["f"], point={"rate": rate, "qdisc": qdisc, "rtt": rtt}, run=f"{rate}{qdisc}{rtt}")
            for rate in ("10mbit", "5mbit") for qdisc in ("pie", "red") for rtt in ("10ms", "20ms")
        ]  # fmt: skip
        [picture] = bars.charts(runs).values()
        rates, delays = picture.axes
        names = [label.get_text() for label in rates.get_xticklabels()]
        assert names == ["5mbit, 10ms", "5mbit, 20ms", "10mbit, 10ms", "10mbit, 20ms"] * 2
        assert "queue delay" in delays.get_ylabel()
        assert [bar.get_height() for bar in delays.patches] == pytest.approx([5.0] * 8)  # the stand-in's median


def swept(values, labels=("5ms", "10ms", "20ms"), seeds=3, **point):
    """Runs along one axis, and the values of a measure for each of their seeds; None for a run that gave none."""
    runs, told = [], {}
    for label, of in zip(labels, values, strict=True):
        for seed in range(1, seeds + 1):
            one = run("cubic", "reno", names=["cubic", "reno"], run=f"r{label}", seed=seed,
                      point={"rtt": label, **point})  # fmt: skip
            told[id(one)] = of[seed - 1]
            runs.append(one)
    return runs, told


class TestSweeps:
    @pytest.fixture
    def drawn(self, monkeypatch):
        def draw(values, measure="convergence()", **words):
            runs, told = swept(values, **words)
            monkeypatch.setattr(points, "_taken", lambda result, text: told[id(result)])
            [matrix] = points.matrices(runs)
            return against_axis.sweep(matrix, measure)

        return draw

    INF = float("inf")

    def test_a_mean_over_some_seeds_says_of_how_many_it_is(self, drawn):
        picture = drawn([(4.0, 5.0, 6.0), (4.14, self.INF, self.INF), (self.INF,) * 3])
        [axes] = picture.axes
        whole = next(line for line in axes.lines if line.get_linewidth() == 1.8)
        # The line has the point of all seeds alone: in ms, as the axis would have them below ten seconds.
        assert list(whole.get_ydata()) == [
            5000.0,
            pytest.approx(np.nan, nan_ok=True),
            pytest.approx(np.nan, nan_ok=True),
        ]
        [hollow] = [line for line in axes.lines if line.get_markerfacecolor() == "white"]
        assert list(hollow.get_xydata()[0]) == pytest.approx([10.0, 4140.0])
        assert [text.get_text() for text in axes.texts] == ["1/3"]
        [cross] = [line for line in axes.lines if line.get_marker() == "x"]
        assert cross.get_xdata()[0] == 20.0
        said = " ".join(entries(picture))
        assert "n/N" in said
        assert "at the top" in said

    def test_where_nothing_ever_converges_there_is_a_picture_that_says_so(self, drawn):
        picture = drawn([(self.INF,) * 3] * 3)
        assert sum(line.get_marker() == "x" for line in picture.axes[0].lines) == 3

    def test_what_no_run_has_is_an_error(self, drawn):
        with pytest.raises(BakeoffError, match="no run has the measure"):
            drawn([(None,) * 3] * 3)

    def test_bands_end_where_numbers_do(self, drawn):
        picture = drawn([(0.9, 1.0, 1.0), (1.0, 1.0, 1.0), (0.2, 0.9, 1.0)], 'share("cubic")')
        [axes] = picture.axes
        band = axes.collections[0].get_paths()[0].vertices[:, 1]
        assert band.max() == 1.0
        assert band.min() == 0.0
        assert axes.get_ylim() == (0.0, 1.05)
        assert axes.get_title(loc="right") == ""  # nothing is cut

    def test_a_heat_map_says_it_too(self, monkeypatch):
        told = {}
        runs = []
        for qdisc in ("pie", "red"):
            some, values = swept([(4.0, 5.0, 6.0), (4.14, self.INF, self.INF), (self.INF,) * 3], qdisc=qdisc)
            runs += [replace(one, resolved=one.resolved | {"run": one.resolved["run"] + qdisc}) for one in some]
            told |= {(one.resolved["run"] + qdisc, one.resolved["seed"]): values[id(one)] for one in some}
        monkeypatch.setattr(
            points, "_taken", lambda result, text: told[result.resolved["run"], result.resolved["seed"]]
        )
        [matrix] = points.matrices(runs)
        texts = [text.get_text() for text in heatmap.heatmap(matrix, "convergence()").axes[0].texts]
        assert sorted(texts) == sorted(["5000", "4140\n1 of 3", "never"] * 2)

    def test_lines_stand_by_the_size_of_their_labels(self):
        rates = ("10.57mbit", "100mbit", "22.36mbit", "47.29mbit", "5mbit")
        runs = [
            run("cubic", "reno", names=["cubic", "reno"], run=f"{rate}-{rtt}", point={"rtt": rtt, "rate": rate})
            for rate in rates for rtt in ("5ms", "10ms", "20ms", "40ms", "50ms", "100ms")
        ]  # fmt: skip
        [matrix] = points.matrices(runs)
        said = entries(against_axis.sweep(matrix, "jain", "rtt"))[:5]
        assert said == [f"rate {rate}" for rate in ("5mbit", "10.57mbit", "22.36mbit", "47.29mbit", "100mbit")]
        picture = against_axis.sweep(matrix, "goodput", "rtt")
        assert [axes.get_title(loc="left") for axes in picture.axes[:5]] == said
        # The sixth place of the grid has the legend.
        assert [text.get_text() for text in picture.axes[5].legend_.get_texts()][:2] == ["cubic", "reno"]
        assert picture.legends == []

    def test_panels_of_unlike_size_have_axes_of_their_own(self):
        runs = [
            run("cubic", "reno", names=["cubic", "reno"], rates=(size, size), run=f"{rate}-{rtt}",
                point={"network.rtt": rtt, "network.bottleneck[0].rate": rate}, rate=rate)
            for rate, size in (("5mbit", 2.4e6), ("20mbit", 3e6), ("100mbit", 45e6)) for rtt in ("5ms", "10ms", "20ms")
        ]  # fmt: skip
        [matrix] = points.matrices(runs)
        picture = against_axis.sweep(matrix, "goodput", "network.rtt")
        few, more, many = (axes.get_ylim()[1] for axes in picture.axes)
        assert few == more
        assert many > 10 * few
        assert picture.axes[0].get_title(loc="left") == "bottleneck rate 5mbit"
        assert picture.axes[0].get_xlabel() == "round-trip time [ms]"

    def test_lines_and_panels_can_be_chosen(self):
        runs = [
            run("cubic", "reno", names=["cubic", "reno"], run=f"{a}{b}{rtt}", point={"rtt": rtt, "a": a, "b": b})
            for a in ("x", "y") for b in ("v", "w") for rtt in ("5ms", "10ms")
        ]  # fmt: skip
        [matrix] = points.matrices(runs)
        assert len(against_axis.sweep(matrix, "jain").axes) == 1
        assert len(against_axis.sweep(matrix, "jain", lines=["a"]).axes) == 2
        assert len(against_axis.sweep(matrix, "jain", panels=["a", "b"]).axes) == 4
        assert len(against_axis.sweep(matrix, "goodput", lines=["all"]).axes) == 1
        with pytest.raises(BakeoffError, match="panels: 'rtt' is along x; expected one of: a, b"):
            against_axis.sweep(matrix, "jain", panels=["rtt"])

    @pytest.mark.parametrize(
        ("axis", "words"),
        [
            ("rtt1", "rtt1"),
            ("network.rtt", "round-trip time"),
            ("network.bottleneck[0].rate", "bottleneck rate"),
            ("network.bottleneck.0.rate", "bottleneck rate"),
            ("network.bottleneck[1].rate", "bottleneck 2 rate"),
            ("flows[0].cc", "flow congestion control"),
            ("flows.0.count", "flow number"),
        ],
    )
    def test_axes_in_words(self, axis, words):
        assert points.axis_words(axis) == words


def test_the_site_shows_what_a_call_feels():
    from bakeoff.site import overview
    from bakeoff.tables.rows import rows
    from synthetic import honest, made, with_call

    [row] = rows([with_call(honest(made()))])
    # The stand-in's datagrams took 30 ms, its pings 33 at most of 99 in a hundred.
    assert {name: round(1e3 * late, 3) for name, late in overview._felt(row)} == {"call": 30.0, "ping": 33.0}
    [row] = rows([made()])
    assert overview._felt(row) == []
