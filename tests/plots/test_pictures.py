"""Pictures of runs that are known: what is drawn, in which colour, with which limits and words."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from bakeoff.errors import BakeoffError
from bakeoff.plots import bars, colours, draw
from bakeoff.plots.distributions import steps
from bakeoff.plots.kinds import KINDS
from bakeoff.plots.panels import changes
from bakeoff.plots.plotted_run import PlottedRun, direction, lines, means
from bakeoff.plots.style import plain, save
from bakeoff.references import Reference
from picture_words import entries, words
from synthetic import frame, made
from synthetic import of_controls as run

OF_RUNS = [kind.name for kind in KINDS if kind.of == "run"]


def rich():
    """A run with TCP, web, a call and a probe, so that every kind has something to show."""
    result = run("prague", "cubic", "cubic", names=["prague", "web", "call"], rates=(4e7, 2e6, 64e3))
    _, web, call = result.resolved["flows"]
    web["source"] = {"kind": "short", "objects": [[30.0, 1000], [31.0, 1000]]}
    call |= {"transport": "udp", "source": {"kind": "periodic", "size": 160, "count": 1, "every_s": 0.02}}
    done = frame([(30.0, "flow", "web", "fct", 0.1), (31.0, "flow", "web", "fct", 0.4)])
    keep = (pl.col("name") != "call") | pl.col("metric").is_in(["goodput", "received"])
    series = pl.concat([result.series.filter(keep), done])
    return result.__class__(result.path, result.meta, result.resolved, series, result.counted)


def lines_of(axes, width=1.8):
    """The thick lines."""
    return [line for line in axes.lines if line.get_linewidth() == width]


@pytest.mark.parametrize("kind", OF_RUNS)
def test_every_kind_draws_and_the_same_result_gives_the_same_bytes(tmp_path, kind):
    first, second = (draw.draw(rich(), tmp_path / f"{name}.svg", kind).read_bytes() for name in "ab")
    assert first == second
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svg", "b.svg"]
    root = ET.fromstring(first)
    assert root.get("width") == "864pt"  # 12 inches of 72 points
    assert not [node for node in root.iter() if node.tag.endswith("date")]


@pytest.mark.parametrize("suffix", ["png", "pdf"])
def test_other_formats_have_the_same_bytes_too(tmp_path, suffix):
    first, second = (draw.draw(rich(), tmp_path / f"{name}.{suffix}", "ping_cdf").read_bytes() for name in "ab")
    assert first == second
    assert first.startswith({"png": b"\x89PNG", "pdf": b"%PDF"}[suffix])


def test_a_notebook_shows_the_figure():
    assert draw.figure(rich(), "ping_cdf")._repr_png_().startswith(b"\x89PNG")


class TestColours:
    def test_a_control_has_one_colour_whatever_its_version_and_place(self):
        for ccs in (("prague@2020-08", "cubic"), ("cubic", "prague"), ("reno", "bbr", "prague@2019-09 alpha_mode 0")):
            drawn = lines([PlottedRun(run(*ccs))])
            assert {line.colour for line in drawn if "prague" in line.label} == {"#D55E00"}

    def test_no_two_known_controls_look_alike(self):
        assert len(set(colours.CONTROLS.values())) == len(colours.CONTROLS)

    def test_a_class_of_the_users_own_has_a_colour_of_its_own(self):
        assert colours.control("./mycc.py:MyCC") == "MyCC"
        alone = colours.control_styles(["MyCC"])["MyCC"]
        assert colours.control_styles(["MyCC", "cubic"])["MyCC"] == alone
        assert alone[0] not in {colour for colour, _ in colours.CONTROLS.values()}

    def test_the_scenario_has_the_last_word(self):
        result = rich()
        result.resolved["present"]["colours"] = {"prague": "teal", "ping": "#ff0000"}
        rates, delays = draw.figure(result, "tcp_delivery_with_rtt").axes
        assert lines_of(rates)[0].get_color() == "teal"
        assert lines_of(delays)[-1].get_color() == "#ff0000"
        result.resolved["present"]["colours"] = {"prague": "teel"}
        with pytest.raises(BakeoffError, match=r"present.colours.prague: 'teel': invalid colour"):
            draw.figure(result)

    def test_flows_of_one_control_have_shades_and_dashes(self):
        drawn = lines([PlottedRun(run("cubic", "cubic", "prague"))])
        # The first has the control's own colour, the second 65 % of each part: 0.65 * (0, 114, 178) = (0, 74, 116).
        assert [line.colour for line in drawn] == ["#0072B2", "#004a74", "#D55E00"]
        assert drawn[0].dash != drawn[1].dash

    def test_four_flows_each_way_have_a_look_each_in_their_direction(self):
        result = run(*["prague"] * 8)
        for flow in result.resolved["flows"][4:]:
            flow["from"], flow["to"] = "srv", "cli"
        drawn = lines([PlottedRun(result)])
        assert len(drawn) == 8
        for way in (drawn[:4], drawn[4:]):
            assert len({line.colour for line in way}) == 4
            assert len({str(line.dash) for line in way}) == 4
        assert drawn[0].colour == drawn[4].colour == colours.CONTROLS["prague"][0]

    def test_a_name_stands_at_the_end_of_lines_of_one_control(self):
        picture = draw.figure(run("cubic", "cubic", "prague", names=["c1", "c2", "p"], rates=(20e6, 20e6, 5e6)))
        ends = {text.get_text(): text.get_position() for text in picture.axes[0].texts}
        assert set(ends) == {"c1", "c2"}
        assert abs(ends["c1"][1] - ends["c2"][1]) > 0.02  # though both end at 20 Mbit/s

    def test_a_control_has_one_colour_over_time_and_in_bars_of_every_scenario_of_the_catalog(self):
        """None of the suites gives a flow a colour of its own."""
        for path in Path("catalog").rglob("*.yaml"):
            assert "colours:" not in path.read_text(), path


class TestManyFlows:
    def test_twenty_flows_are_two_lines(self):
        shown = PlottedRun(run(*["cubic", "prague"] * 10))
        assert [line.label for line in lines([shown])] == ["cubic: 10 flows", "prague: 10 flows"]

    def test_five_alike_share_a_line_and_four_do_not(self):
        assert len(lines([PlottedRun(run(*["cubic"] * 4))])) == 4
        assert len(lines([PlottedRun(run(*["cubic"] * 5))])) == 1

    def test_directions_are_told_apart(self):
        result = run(*["cubic"] * 10)
        for flow in result.resolved["flows"][5:]:
            flow["from"], flow["to"] = "srv", "cli"
        shown = PlottedRun(result)
        assert [direction(shown, flow) for flow in shown.flows] == ["up"] * 5 + ["down"] * 5
        assert [line.label for line in lines([shown])] == ["cubic, up: 5 flows", "cubic, down: 5 flows"]
        rates_up, rates_down, _ = draw.figure(result).axes
        assert "mid>srv" in rates_up.get_ylabel()
        assert "mid>cli" in rates_down.get_ylabel()

    def test_the_line_of_a_group_is_its_mean(self):
        rates, _ = draw.figure(run(*["cubic"] * 6, rates=(1e6, 2e6, 3e6, 4e6, 5e6, 9e6))).axes
        [mean] = lines_of(rates)
        assert mean.get_ydata()[30] == pytest.approx(4.0)  # (1 + 2 + 3 + 4 + 5 + 9) / 6 Mbit/s

    def test_far_below_the_capacity_the_line_is_an_equal_share(self):
        picture = draw.figure(without_axes(run(*["cubic"] * 20, rates=(2e6,) * 20)))
        assert picture.axes[0].get_ylim()[1] < 5
        assert "dashed: 2.5 Mbit/s, a 20th of the capacity of 50 Mbit/s" in words(picture)


def without_axes(result):
    result.resolved["present"] = {}
    return result


class TestEnds:
    def test_nothing_is_drawn_after_the_end_of_a_flow(self):
        result = run("prague", "cubic", rates=(20e6, 10e6))
        result.resolved["flows"][0]["stop_s"] = 30.0
        rates, delays = draw.figure(result).axes
        for axes in (rates, delays):
            ended, other = lines_of(axes)[:2]
            # The last mean is that of 29 s to 30 s.
            assert ended.get_xdata()[np.isfinite(ended.get_ydata())].max() == 29.5
            assert other.get_xdata()[np.isfinite(other.get_ydata())].max() == 59.5

    def test_a_transfer_ends_with_its_last_byte(self):
        result = run("cubic", rates=(8e6,))  # 1 MB/s
        result.resolved["flows"][0]["source"] = {"kind": "bytes", "bytes": 12_000_000}
        time, _ = PlottedRun(result).samples.of("flow", "cubic-0", "delivery_rate")
        assert time[-1] == pytest.approx(12.0)


class TestBoxes:
    @pytest.mark.parametrize(("up", "panels"), [(1e6, 3), (30e6, 2)])
    def test_directions_of_unlike_size_have_axes_of_their_own(self, up, panels):
        result = run("cubic", "cubic", rates=(up, 40e6))
        result.resolved["flows"][1] |= {"from": "srv", "to": "cli"}
        picture = draw.figure(result, "box_totals")
        assert len(picture.axes) == panels  # rates up, down and delays; or all rates and delays
        assert picture.axes[0].get_ylim()[1] < 3 * up / 1e6


class TestGamed:
    def gamed(self, **match):
        result = run("cubic", "prague", "cubic", names=["one", "prague", "other"])
        rule = {"match": {"proto": "tcp", **match}, "set_ecn": "ect1"}
        result.resolved["interfaces"][0]["mangle"] = [rule]  # at mid, of what comes from cli
        return {line.label for line in lines([PlottedRun(result)])}

    def test_a_flow_whose_packets_are_made_ect1_is_labelled(self):
        assert self.gamed(flow="other") == {"one (cubic)", "prague", "other (cubic, gamed: ECT(1) forced on it)"}

    def test_what_is_ect1_anyway_is_not(self):
        found = self.gamed()
        assert "prague" in found
        assert sum("gamed" in label for label in found) == 2


class TestColumns:
    def runs(self):
        one, other = (run("cubic", cc, rates=(30e6, 10e6), run=cc) for cc in ("prague", "reno"))
        return [one, other]

    def test_each_run_has_a_column_that_says_which_and_the_same_axes(self):
        picture = draw.overlay(self.runs(), names=["SCE: Cake", "L4S: DualPI2"], title="Who wins", columns=True)
        first, second, *delays = picture.axes
        assert [axes.get_title(loc="left") for axes in (first, second)] == ["SCE: Cake", "L4S: DualPI2"]
        assert first.get_ylim() == second.get_ylim()
        assert delays[0].get_ylim() == delays[1].get_ylim()
        assert picture.heading.title == "Who wins"
        assert entries(picture)[:3] == ["cubic-0", "prague-1", "ping (ICMP probe)"]

    def test_other_kinds_have_none(self):
        with pytest.raises(BakeoffError, match="columns: 'queue' has none; expected one of tcp_delivery_with_rtt"):
            draw.overlay(self.runs(), "queue", columns=True)
        with pytest.raises(BakeoffError, match="columns: 1 runs; expected 2 to 3"):
            draw.overlay(self.runs()[:1], columns=True)


class TestOverTime:
    def test_axes_are_the_suites_and_units_are_scaled(self):
        rates, delays = draw.figure(run("prague", "cubic", rates=(45e6, 2e6))).axes
        assert (rates.get_ylim(), delays.get_ylim(), rates.get_xlim()) == ((0, 55), (20, 70), (0, 60))
        time, rate = lines_of(rates)[0].get_data()
        assert list(time[:3]) == [0.5, 1.5, 2.5]
        assert rate[30] == pytest.approx(45)

    def test_a_cut_axis_says_what_is_not_seen(self):
        result = run("cubic", rates=(60e6,))
        picture = draw.figure(result)
        assert "the axis is cut: data go up to 60 Mbit/s" in [axes.get_title(loc="right") for axes in picture.axes]
        assert not [text for text in words(draw.figure(without_axes(result))) if "cut" in text]

    def test_files_of_two_scales_have_names_of_their_own(self):
        names = [draw.file_name("tcp_delivery_with_rtt", scale) for scale in draw.SCALES]
        assert names[0] == "tcp_delivery_with_rtt"
        assert len(set(names)) == len(names)

    def test_all_of_the_data_is_seen_whatever_the_scenario_asks_for(self):
        result = run("cubic", rates=(60e6,))
        rates, delays = draw.figure(result, scale="data").axes
        assert rates.get_ylim()[1] > 60  # where it asks for 55
        assert delays.get_ylim()[0] == 0  # where it asks for 20
        assert not any("cut" in axes.get_title(loc="right") for axes in (rates, delays))

    def test_fixed_and_variable_scales(self):
        result = without_axes(run("cubic", rates=(45e6,)))
        rates, delays = draw.figure(result, "upload_with_ping_and_tcp_rtt", scale="fixed").axes
        # 1.2 times 50 Mbit/s, and the two netem of 10 ms and 100 ms more
        assert (rates.get_ylim(), delays.get_ylim()) == ((0, 60), (20, 120))
        _, delays = draw.figure(result, "upload_with_ping_and_tcp_rtt", scale="var").axes
        # srtt is 25 ms + 20 ms exp(-t): the first sample, after 50 ms, is 44.02 ms, so 24.02 ms above the base
        assert delays.get_ylim() == pytest.approx((20, 20 + 3 * (5 + 20 * math.exp(-0.05))))
        with pytest.raises(BakeoffError, match="scale: 'cwnd' has no scales; expected one of: tcp_delivery_with_rtt"):
            draw.figure(result, "cwnd", scale="var")

    def test_the_capacity_follows_timed_changes_and_the_legend_names_them(self):
        result = stepped()
        assert PlottedRun(result).capacity("mid>srv") == ([0.0, 30.0, 60.0], [50e6, 10e6])
        assert changes(PlottedRun(result)) == ["30 s: rate 10mbit at mid>srv"]
        assert "30 s: rate 10mbit at mid>srv" in entries(draw.figure(result))
        said = "a timed change lies in the steady state, 18 s to 58 s: what is taken there averages over it"
        assert said in "\n".join(words(draw.figure(result, "ping_cdf")))

    def test_totals_are_sums(self):
        rates, _ = draw.figure(run("cubic", "reno", rates=(1e6, 2e6)), "totals_with_tcp_rtt").axes
        assert lines_of(rates)[0].get_ydata()[30] == pytest.approx(3.0)

    def test_it_shows_what_ran_and_not_what_was_asked_for(self):
        result = run("prague@2020-08", "cubic", names=["prague", "cubic"])
        result.counted["flows"]["prague"]["cc"] = "cubic"
        text = "\n".join(words(draw.figure(result)))
        assert "mid>srv: 50 Mbit/s, pie limit 1000p target 15ms" in text
        assert "check 'cc' of prague failed: asked for prague@2020-08, got cubic" in text
        assert lines_of(draw.figure(result).axes[0])[0].get_color() == "#0072B2"

    def test_of_a_call_the_share_that_arrived(self):
        result = rich()
        arrived, *_ = draw.figure(result, "call").axes
        [line] = lines_of(arrived)
        assert line.get_ydata()[30] == pytest.approx(100)  # 160 bytes every 20 ms are 64 kbit/s
        assert draw.default_kind([result]) == "call"
        with pytest.raises(BakeoffError, match="no call; expected a UDP flow with a rate"):
            draw.figure(run("cubic"), "call")

    def test_of_a_run_without_flows_its_queue_and_its_pings(self):
        result = made((), flows=(), point={})
        assert draw.default_kind([result]) == draw.default_kind([result, result]) == "queue"
        delay, *_, rtt = draw.figure(result, "queue").axes
        # A queue of 5 ms, and pings of 25.5 ms
        assert lines_of(delay)[0].get_ydata()[30] == pytest.approx(5.0)
        assert lines_of(rtt)[0].get_ydata()[30] == pytest.approx(25.5)

    @pytest.mark.parametrize("count", [9, 40])
    def test_scaled_axes_hold_each_of_alike_flows(self, count):
        rates = [2e6] * (count - 1) + [30e6]
        picture = draw.figure(run(*["cubic"] * count, rates=rates), "all_scaled_delivery")
        # One line for all, at their mean; the fast flow's is pale, or the upper edge of a band.
        assert len(lines_of(picture.axes[0])) == 1
        assert picture.axes[0].get_ylim()[1] > 30

    @pytest.mark.parametrize("kind", ["tcp_delivery_with_rtt", "totals_with_tcp_rtt", "all_scaled_delivery"])
    def test_without_flows_and_pings_there_are_no_rates_to_draw(self, kind):
        result = made((), flows=(), point={})
        quiet = result.series.filter(pl.col("kind") == "queue")
        with pytest.raises(BakeoffError, match="neither flows nor answered probes; --kind queue draws"):
            draw.figure(replace(result, series=quiet), kind)

    def test_of_a_call_what_became_of_each_datagram(self):
        result = rich()
        # One datagram in ten is lost from 40 s on; those that come take 20 and 30 ms in turn, so that J goes to 10 ms.
        sent = [(n * 0.02, 0.03 if n % 2 else 0.02) for n in range(3000)]
        lost = set(range(2000, 3000, 10))
        rows = [(at, "flow", "call", "delay", took) for n, (at, took) in enumerate(sent) if n not in lost]
        rows += [(sent[n][0], "flow", "call", "missing", 1.0) for n in lost]
        told = replace(result, series=pl.concat([result.series, frame(rows)]))
        picture = draw.figure(told, "call")
        delay, jitter, loss, *_ = picture.axes
        labels = [" ".join(axes.get_ylabel().split()) for axes in (delay, jitter, loss)]
        assert labels == ["one-way delay [ms]", "jitter [ms]", "lost [%]"]
        assert lines_of(delay)[-1].get_ydata()[30] == pytest.approx(25)
        assert lines_of(jitter)[0].get_ydata()[30] == pytest.approx(10, rel=0.01)
        [stairs] = [patch for patch in loss.patches if hasattr(patch, "get_data")]
        assert stairs.get_data().values[[30, 50]] == pytest.approx([0, 10])
        assert "1\u00a0% over 30\u00a0ms" in " ".join(words(picture))
        # Two machines: only differences are known.
        apart = told.series.with_columns(metric=pl.col("metric").replace("delay", "delay_variation"))
        picture = draw.figure(replace(told, series=apart), "call")
        assert " ".join(picture.axes[0].get_ylabel().split()) == "one-way delay above the quickest [ms]"
        assert "took over" not in " ".join(words(picture))

    def test_a_mean_stands_for_the_samples_that_end_in_its_interval(self):
        found = means(np.array([0.5, 1.0, 1.5, 3.5]), np.array([1.0, 3.0, 5.0, 7.0]), np.array([0.0, 1, 2, 3, 4]))
        assert found[[0, 1, 3]].tolist() == [2.0, 5.0, 7.0]
        assert math.isnan(found[2])


def stepped():
    result = run("cubic")
    action = {"kind": "class-change", "side": "egress", "id": "1", "class": "rate 10mbit ceil 10mbit"}
    result.resolved["changes"] = [{"at_s": 30.0, "node": "mid", "peer": "srv", "action": action}]
    return result


class TestQueues:
    def test_marks_per_second_are_differences_of_the_counter(self):
        panel = draw.figure(run("cubic"), "queue").axes[2]
        assert panel.patches[0].get_data().values == pytest.approx(
            [10.0] * 60
        )  # the stand-in marks 10 packets a second

    def test_the_leaves_of_a_tree_are_lines_of_their_own(self):
        result = run("cubic")
        ours = pl.col("kind") == "queue"
        both = [result.series.filter(ours).with_columns(name=pl.lit(f"mid>srv/{leaf}")) for leaf in (1, 2)]
        # A real kernel knows no delay of a queue, and some that only their backlog.
        bare = both[1].filter(pl.col("metric").is_in(["qlen", "backlog", "drops"]))
        series = pl.concat([result.series.filter(~ours), both[0], bare])
        picture = draw.figure(
            result.__class__(result.path, result.meta, result.resolved, series, result.counted), "queue"
        )
        assert entries(picture)[:2] == ["mid>srv/1", "mid>srv/2"]
        assert [len(lines_of(axes)) for axes in picture.axes[:2]] == [1, 2]

    def test_no_queue_at_all_is_an_error_that_says_so(self):
        result = run("cubic")
        series = result.series.filter(pl.col("kind") != "queue")
        bare = result.__class__(result.path, result.meta, result.resolved, series, result.counted)
        with pytest.raises(BakeoffError, match="no queue samples"):
            draw.figure(bare, "queue")


class TestDistributions:
    def test_shares_at_and_above(self):
        values, share = steps(np.array([3.0, 1.0, 2.0, 2.0]))
        assert (values.tolist(), share.tolist()) == ([1, 2, 2, 3], [0.25, 0.5, 0.75, 1.0])
        # of four values all are at or above the least, and one of them is the greatest
        assert steps(np.array([3.0, 1.0, 2.0, 2.0]), reverse=True)[1].tolist() == [1.0, 0.75, 0.5, 0.25]

    def test_short_flows(self):
        picture = draw.figure(rich(), "fct_cdf")
        assert lines_of(picture.axes[0])[0].get_data()[0].tolist() == [0.1, 0.4]
        assert entries(picture) == ["web (cubic), n = 2"]
        with pytest.raises(BakeoffError, match="no finished short flows, which fct_cdf needs"):
            draw.figure(run("cubic"), "fct_cdf")

    def test_induced_latency_is_above_the_empty_path(self):
        [axes] = draw.figure(rich(), "induced_latency_cdf").axes
        # the stand-in's ping takes 25.5 ms on a path of 20 ms
        assert set(np.round(lines_of(axes)[0].get_xdata(), 6)) == {5.5}
        assert axes.get_yscale() == "log"


class TestSeveralRuns:
    def test_an_overlay_has_a_panel_for_each_runs_own_bottleneck(self):
        one, other = (run("cubic", run=name) for name in ("one", "two"))
        for interface, (node, peer) in zip(other.resolved["interfaces"], (("mid", "cli"), ("cli", "mid")), strict=True):
            interface |= {"node": node, "peer": peer}
        # Both flows go through both interfaces, and only one of them is the bottleneck of each.
        picture = draw.overlay([one, other])
        assert [axes.get_ylabel().split()[-1] for axes in picture.axes[:2]] == ["cli>mid", "mid>srv"]
        totals = draw.overlay([one, other], "totals_with_tcp_rtt").axes[0].get_ylabel()
        assert totals == "sum of goodputs\n[Mbit/s] at cli>mid"
        [[second], [first]] = [lines_of(axes) for axes in picture.axes[:2]]
        assert first.get_linestyle() != second.get_linestyle()

    def test_an_overlay_tells_runs_by_their_dashes(self):
        several = [run("cubic", run=name) for name in ("one", "two")]
        picture = draw.overlay(several)
        assert [text for text in entries(picture) if "cubic" in text] == ["one: cubic-0", "two: cubic-0"]
        first, second = lines_of(picture.axes[0])
        assert first.get_color() == second.get_color() == "#0072B2"
        assert first.get_linestyle() != second.get_linestyle()
        with pytest.raises(BakeoffError, match="9 runs in one picture; expected at most 8"):
            draw.overlay(several[:1] * 9)

    def test_pictures_that_are_compared_have_the_same_limits(self):
        several = [without_axes(run("cubic", rates=(rate,))) for rate in (20e6, 70e6)]
        alike = [picture.axes[0].get_ylim() for _, picture in draw.compared(several)]
        assert alike[0] == alike[1]
        assert alike[0][1] > 70
        slow = without_axes(run("cubic", rates=(5e6,), rate="10mbit"))
        limits = [picture.axes[0].get_ylim()[1] for _, picture in draw.compared([several[1], slow])]
        assert limits[1] < 15  # another capacity is not a comparison of rates

    def test_labels_are_the_axes_that_differ(self):
        several = [run("cubic", seed=seed) for seed in (1, 2)]
        assert draw.labels(several) == ["seed 1", "seed 2"]
        for result, qdisc in zip(several, ("pie", "red"), strict=True):
            result.resolved.update(point={"qdisc": qdisc, "rate": "50mbit"}, seed=1)
        assert draw.labels(several) == ["pie", "red"]
        for result, alpha in zip(several, ("0", "0.5"), strict=True):
            result.resolved["point"] = {"alpha": alpha}
        assert draw.labels(several) == ["alpha 0", "alpha 0.5"]

    @pytest.mark.parametrize("cc", ["prague", "cubic", "reno", "bbr"])
    def test_flows_of_one_control_have_markers_of_their_own(self, cc):
        several = [run(cc, cc, run=name) for name in ("one", "two")]
        looks = {(line.get_marker(), line.get_linestyle()) for line in lines_of(draw.overlay(several).axes[0])}
        assert len(looks) == 4

    def test_the_markers_of_lines_that_lie_on_each_other_stand_apart(self):
        drawn = lines_of(draw.overlay([run("cubic", run=name) for name in ("one", "two", "three")]).axes[0])
        first = [every[0] for every in (line.get_markevery() for line in drawn)]
        [step] = {every[1] for every in (line.get_markevery() for line in drawn)}
        # Of a step of n samples the second line begins at 0.618 n, the third at 1.236 n - n.
        assert first == [0, round(0.618 * step), round(1.236 * step) - step]
        assert len(set(first)) == 3


class TestWords:
    def test_hostile_names_are_drawn_as_they_are(self, tmp_path):
        name = "$x$ <b>&\x1b[31m\nnew --> ../"
        result = run("cubic", names=[name], run=name)
        ET.fromstring(draw.draw(result, tmp_path / "a.svg").read_bytes())
        assert plain(name) == "$x$ <b>&\N{REPLACEMENT CHARACTER}[31m\N{REPLACEMENT CHARACTER}new --> ../"

    def test_mistakes(self, tmp_path):
        with pytest.raises(
            BakeoffError, match="plot kind: unknown 'pie'; expected one of tcp_delivery_with_rtt, totals"
        ):
            draw.figure(rich(), "pie")
        with pytest.raises(BakeoffError, match=r"a.jpg: unknown picture format '.jpg'; expected .svg, .png, .pdf"):
            draw.draw(rich(), tmp_path / "a.jpg")
        (tmp_path / "file").write_text("")
        with pytest.raises(BakeoffError, match=r"file: a file; expected a folder for a.svg"):
            draw.draw(rich(), tmp_path / "file" / "a.svg")

    def test_nothing_is_clipped_and_no_words_lie_on_each_other(self):
        long = run(*["cubic", "prague", "bbr", "reno"] * 2, names=[f"a-flow-with-a-long-name-{i}" for i in range(8)],
                   run="a-run-with-a-name-" * 9)  # fmt: skip
        for kind in ("tcp_delivery_with_rtt", "box_totals"):
            picture = draw.figure(long, kind)
            picture.draw_without_rendering()
            [width, height] = picture.get_size_inches() * picture.dpi
            ticks = [label for axes in picture.axes for label in (*axes.get_xticklabels(), *axes.get_yticklabels())]
            inside = [axes.yaxis.label for axes in picture.axes] + list(picture.texts) + picture.legends + ticks
            boxes = [one.get_window_extent() for one in inside]
            assert all(box.x0 >= -1 and box.x1 <= width + 1 for box in boxes)
            assert all(box.y0 >= -1 and box.y1 <= height + 1 for box in boxes)
            title, caption, *_ = (text.get_window_extent() for text in picture.texts)
            assert title.y0 >= caption.y1
            assert caption.y0 >= picture.axes[0].get_window_extent().y1


class TestBars:
    def charts(self, *results, references=()):
        return bars.charts(results, reference=references)

    def of(self, rate, qdisc, rtts, pair=("prague", "cubic"), rates=(4e6, 4e6), **words):
        flows = tuple((f"{cc}-{i}", cc) for i, cc in enumerate(pair, start=1))
        point = {"rate": rate, "rtt1": rtts[0], "rtt2": rtts[1], "cc": "-".join(pair), "qdisc": qdisc}
        name = f"ns-{'-vs-'.join(pair)}-{qdisc}-{rate}-{'-'.join(rtts)}"
        return made(rates, scenario="s1-rttfair", run=name, point=point, flows=flows, rate=rate, **words)

    def test_one_chart_per_rate_and_pair_of_round_trip_times(self, tmp_path):
        runs = [
            self.of(rate, qdisc, rtts)
            for rate in ("50Mbit", "10Mbit")
            for qdisc in ("dualpi2", "fq_codel")
            for rtts in (("20ms", "20ms"), ("160ms", "10ms"))
        ]
        paths = bars.bars(runs, tmp_path, reference=())
        assert [path.name for path in paths] == [
            "rttfair_cc_qdisc_10Mbit_20ms_20ms.svg",
            "rttfair_cc_qdisc_10Mbit_160ms_10ms.svg",
            "rttfair_cc_qdisc_50Mbit_20ms_20ms.svg",
            "rttfair_cc_qdisc_50Mbit_160ms_10ms.svg",
        ]

    def test_heights_intervals_names_and_the_published_value(self):
        seeds = [self.of("10Mbit", "dualpi2", ("20ms", "20ms"), rates=(4e6 + 1e5 * n, 5e6), seed=n) for n in (1, 2, 3)]
        at = seeds[0].resolved
        published = [
            Reference("l4s-tests", at["suite"], at["scenario"], at["run"], flow["name"], "delivery_rate",
                      rate, "bit/s", "a test")
            for flow, rate in zip(at["flows"], (3e6, 6e6), strict=True)
        ]  # fmt: skip
        [picture] = self.charts(*seeds, references=published).values()
        [axes] = picture.axes
        assert [bar.get_height() for bar in axes.patches] == pytest.approx([4.2, 5.0])
        # every name stands below the middle of its bar
        middles = [bar.get_x() + bar.get_width() / 2 for bar in axes.patches]
        assert list(axes.get_xticks()) == pytest.approx(middles)
        assert [label.get_text() for label in axes.get_xticklabels()] == ["prague-1", "cubic-2"]
        assert [bar.get_facecolor() for bar in axes.patches] == [
            pytest.approx((0xD5 / 255, 0x5E / 255, 0, 1)),
            pytest.approx((0, 0x72 / 255, 0xB2 / 255, 1)),
        ]
        diamonds = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "D"]
        assert diamonds == pytest.approx([3, 6])
        low, high = axes.containers[1].get_children()[-1].get_segments()[0][:, 1]
        assert (high - low) / 2 == pytest.approx(4.3027 * 0.1 / math.sqrt(3))  # s = 0.1 Mbit/s over 3 seeds

    def test_twenty_flows_are_a_bar_per_control_with_their_range(self):
        rates = tuple(1e6 * (1 + i % 2 + i // 2 / 10) for i in range(20))
        [picture] = self.charts(run(*["cubic", "reno"] * 10, rates=rates)).values()
        [axes] = picture.axes
        assert [label.get_text() for label in axes.get_xticklabels()] == ["cubic ×10", "reno ×10"]
        # (1 + 1.1 + … + 1.9) / 10 and (2 + 2.1 + … + 2.9) / 10
        assert [bar.get_height() for bar in axes.patches] == pytest.approx([1.45, 2.45])
        low, high = axes.containers[1].get_children()[-1].get_segments()[0][:, 1]
        assert (low, high) == pytest.approx((1.0, 1.9))

    def test_more_charts_than_anybody_looks_at(self, monkeypatch):
        monkeypatch.setattr(bars, "MOST_CHARTS", 1)
        many = [self.of(rate, qdisc, ("20ms", "20ms")) for rate in ("10Mbit", "50Mbit") for qdisc in ("pie", "red")]
        with pytest.raises(BakeoffError, match="2 bar charts of 4 runs; expected at most 1"):
            self.charts(*many)


def test_an_unknown_folder_is_made(tmp_path):
    assert save(draw.figure(rich(), "ping_cdf"), tmp_path / "new" / "a.svg").exists()
