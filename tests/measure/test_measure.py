"""Measures: rates, bottleneck, delays, marks, self-checks, summaries and repetitions, from a result that is known."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bakeoff import measure
from bakeoff.errors import BakeoffError
from bakeoff.measure import MeasureError, Samples
from bakeoff.measure.delays import quantile
from bakeoff.measure.functions import CATALOGUE
from bakeoff.measure.marks import resent_share
from bakeoff.measure.measured_run import MeasuredRun
from bakeoff.results import parts
from bakeoff.results.counters import Counters, Flow, Histogram, Queue
from bakeoff.results.summary import Summary
from synthetic import as_run, frame, made, resolved


def series(*pairs):
    time, value = zip(*pairs, strict=True)
    return np.array(time, dtype=float), np.array(value, dtype=float)


class TestRates:
    def test_steady_state_is_the_mean_of_the_non_zero_samples_strictly_inside(self):
        time, rate = series((1, 100), (2, 10), (3, 0), (4, 30), (5, 1000))
        # 1 s and 5 s are the edges of the open window and out, the zero is no estimate: (10 + 30) / 2
        assert measure.steady_state_rate(time, rate, (1, 5)) == 20

    def test_steady_state_without_samples_says_which_window(self):
        with pytest.raises(MeasureError, match="no sample other than zero between 1 s and 5 s"):
            measure.steady_state_rate(*series((2, 0), (5, 7)), (1, 5))

    def test_the_text_ends_two_seconds_before_the_end_the_code_one_before_the_last_sample(self):
        run = made().run  # 60 s, W = 40 s
        assert measure.window_of(run) == (18, 58)
        assert measure.window_of(run, end="code", last_s=59.95) == (pytest.approx(18.95), pytest.approx(58.95))

    def test_goodput_is_a_difference_of_counters(self):
        # 3000 bytes from 1 s to 4 s: 8 * 3000 / 3; what lies outside of the window does not count
        assert measure.goodput(*series((0, 0), (1, 1000), (2, 1500), (4, 4000), (6, 90000)), (1, 5)) == 8000

    def test_goodput_needs_two_samples(self):
        with pytest.raises(MeasureError, match="fewer than two 'received' samples"):
            measure.goodput(*series((2, 5)), (1, 5))

    def test_jain(self):
        assert measure.jain([1, 1, 1]) == 1
        assert measure.jain([5, 0]) == 0.5
        # published row of l4s-tests s1: 14.94 and 32.39 Mbit/s give 0.880
        assert round(measure.jain([14.94, 32.39]), 3) == 0.880
        with pytest.raises(MeasureError):
            measure.jain([0, 0])
        with pytest.raises(MeasureError):
            measure.jain([1e200, 1e200])  # their squares are infinite

    def test_ratio(self):
        assert measure.ratio([2, 8, 4]) == 4
        with pytest.raises(MeasureError, match="above zero"):
            measure.ratio([0, 8])

    def test_utilisation_is_one_at_the_ceiling_of_payload(self):
        # full frames of 1514 bytes with 1448 of payload: two flows that share 50 Mbit/s * 1448 / 1514
        ceiling = 50e6 * 1448 / 1514
        shares = [(0.25 * ceiling, 1448 / 1514), (0.75 * ceiling, 1448 / 1514)]
        assert measure.utilisation(shares, 50e6) == pytest.approx(1)

    @given(st.lists(st.floats(1e-3, 1e12), min_size=1, max_size=20), st.floats(1e-3, 1e3))
    def test_jain_has_no_scale_and_lies_between_one_nth_and_one(self, rates, scale):
        index = measure.jain(rates)
        assert 1 / len(rates) - 1e-9 <= index <= 1 + 1e-9
        assert measure.jain([rate * scale for rate in rates]) == pytest.approx(index)


def narrow(document, flow=0):
    run = as_run(document)
    return measure.bottleneck(run, run.flows[flow], (18, 58))


CAKE = {"kind": "qdisc-replace", "side": "egress", "qdisc": {"qdisc": "cake bandwidth 10mbit"}}


class TestBottleneck:
    def test_the_shaped_interface_towards_the_receiver(self):
        run = resolved()
        found = narrow(run)
        assert (found.queue, found.rate_bps) == ("mid>srv", 50e6)
        run["flows"][0] |= {"from": "srv", "to": "cli"}
        assert narrow(run).queue == "mid>cli"

    def test_a_qdisc_that_shapes_by_itself_and_a_word_that_only_looks_like_it(self):
        run = resolved()
        run["interfaces"][1]["egress"] = {"qdisc": "cnq_codel_af bandwidth 10mbit"}
        assert narrow(run).rate_bps == 10e6
        run["interfaces"][1]["egress"] = {"qdisc": "red limit 150000 avpkt 1000 bandwidth 50mbit"}
        with pytest.raises(MeasureError, match="no rate on its path"):
            narrow(run)

    def test_the_class_of_the_flow(self):
        run = resolved()
        run["interfaces"][1]["egress"] = {
            "qdisc": "htb default 1",
            "classes": [
                {"id": "1", "class": "rate 50mbit"},
                {"id": "a", "class": "rate 5mbit", "filters": [{"dscp": 35}]},
            ],
        }
        rates = [narrow(run, flow).rate_bps for flow in (0, 1)]  # dscp 19, 35
        assert rates == [50e6, 5e6]

    def test_a_timed_change_counts_from_when_it_is_made(self):
        run = resolved()
        action = {"kind": "class-change", "side": "egress", "id": "1", "class": "rate 10mbit ceil 10mbit"}
        run["changes"] = [{"at_s": 48.0, "node": "mid", "peer": "srv", "action": action}]
        # window 18 to 58: 30 s at 50 and 10 s at 10 Mbit/s
        assert narrow(run).rate_bps == pytest.approx((30 * 50e6 + 10 * 10e6) / 40)

    @pytest.mark.parametrize(
        ("action", "before", "after"),
        [
            ({"kind": "link", "rate_bps": 10_000_000}, 50e6, 10e6),
            ({"kind": "link", "rate_bps": 60_000_000}, 50e6, 50e6),
            (CAKE | {"handle": ""}, 50e6, 10e6),
            (CAKE | {"handle": "1"}, 50e6, 50e6),
        ],
    )
    def test_a_change_of_the_link_or_of_the_root_is_one_of_the_rate(self, action, before, after):
        run = resolved()
        run["changes"] = [{"at_s": 48.0, "node": "mid", "peer": "srv", "action": action}]
        found = narrow(run).rate_bps
        assert found == pytest.approx((30 * before + 10 * after) / 40)

    def test_a_root_that_shapes_may_be_told_another_rate(self):
        run = resolved()
        run["interfaces"][1]["egress"] = {"qdisc": "cake bandwidth 50mbit"}
        action = {"kind": "qdisc-change", "side": "egress", "handle": "", "qdisc": "cake bandwidth 10mbit"}
        run["changes"] = [{"at_s": 48.0, "node": "mid", "peer": "srv", "action": action}]
        found = narrow(run).rate_bps
        assert found == pytest.approx((30 * 50e6 + 10 * 10e6) / 40)

    def test_payload_fraction_is_that_of_a_full_ethernet_frame(self):
        run = made().run
        assert measure.payload_fraction(run, run.flows[0], 1448) == 1448 / 1514


class TestDelays:
    def test_quantiles_interpolate(self):
        # 0 10 20 30: position 0.5 * 3 = 1.5; position 0.99 * 3 = 2.97
        assert quantile([30, 0, 20, 10], 0.5) == 15
        assert quantile([30, 0, 20, 10], 0.99) == pytest.approx(29.7)

    @given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50), st.floats(0, 1))
    def test_quantiles_agree_with_numpy(self, values, q):
        assert quantile(values, q) == pytest.approx(float(np.quantile(values, q)), abs=1e-6)

    def test_distribution(self):
        assert measure.distribution(np.array([1.0, 2.0, 3.0])).to_json() == {
            "n": 3,
            "mean": 2,
            "p50": 2,
            "p99": pytest.approx(2.98),
            "max": 3,
        }

    def test_an_empty_histogram_is_named(self):
        with pytest.raises(MeasureError, match=r"queues\.mid>srv\.sojourn has no samples"):
            measure.histogram(Histogram(n=0), "queues.mid>srv.sojourn")

    def test_probe_loss_counts_requests_sent_in_the_window(self):
        rows = [(t, "probe", "ping", "rtt", 0.02) for t in (1, 2, 3)] + [
            (4.0, "probe", "ping", "lost", 1.0),
            (9.0, "probe", "ping", "lost", 1.0),
        ]
        assert measure.lost_share(Samples(parts(frame(rows))), "probe", "ping", (0, 5)) == 0.25
        with pytest.raises(MeasureError, match="no requests of probe 'ping' between 5 s and 6 s"):
            measure.lost_share(Samples(parts(frame(rows))), "probe", "ping", (5, 6))

    def test_missing_samples_are_named(self):
        samples = Samples(parts(frame([(1.0, "flow", "cubic", "srtt", 0.02)])))
        with pytest.raises(MeasureError, match=r"no 'cwnd' samples of flow 'cubic'$"):
            samples.of("flow", "cubic", "cwnd")
        with pytest.raises(MeasureError, match="no 'srtt' samples of flow 'cubic' between 2 s and 3 s"):
            samples.of("flow", "cubic", "srtt", (2, 3))


class TestMarks:
    def test_of_a_queue_and_of_a_flow_in_it(self):
        counters = made().counters
        assert measure.marks(counters, "mid>srv") == 600
        assert measure.marks(counters, "mid>srv", "cubic") == 300
        assert measure.drops(counters, "mid>srv") == 2  # 1 overlimit + 1 aqm
        assert measure.drops(counters, "mid>srv", "prague") == 1
        with pytest.raises(MeasureError, match=r"queues\.mid>cli is missing"):
            measure.marks(counters, "mid>cli")

    def test_a_real_queue_does_not_count_by_flow(self):
        counters = Counters(queues={"mid>srv": Queue(qdisc="cake", marks=0, drops={"aqm": 6})})
        assert measure.drops(counters, "mid>srv") == 6
        with pytest.raises(MeasureError, match=r"queues\.mid>srv\.flows is missing; only the simulator counts by flow"):
            measure.drops(counters, "mid>srv", "cubic")

    def test_the_fraction_is_delivered_ce_only_with_accecn(self):
        result = made()
        prague, cubic = result.run.flows
        # both report 10 000 of 200 000 delivered_ce; with RFC 3168 feedback that is no mark fraction: 300 of 10 000
        # at the queue
        assert measure.mark_fraction(result.run, result.counters, prague) == (0.05, "delivered_ce / delivered")
        assert measure.mark_fraction(result.run, result.counters, cubic) == (0.03, "marks / packets at the queues")


class TestChecks:
    def failed(self, result):
        return [(c.check, c.flow) for c in measure.checks(result.run, result.counters) if not c.ok]

    def test_all_is_well_when_everything_is_as_asked(self):
        result = made()
        result.counted["flows"]["cubic"]["ecn"] = "accecn"  # tcp_ecn 3 on both ends
        assert self.failed(result) == []

    def test_two_flows_that_ran_the_same(self):
        result = made()
        for flow in result.counted["flows"].values():
            flow |= {"cc": "prague@2020-08", "ecn": "accecn"}
        assert self.failed(result) == [("cc", "cubic"), ("unlike", "prague, cubic")]

    def test_of_many_flows_there_is_a_check_per_pair_of_controls(self):
        asked = [(f"{cc}-{n}", cc) for n in range(3) for cc in ("prague", "cubic", "reno")]
        result = made((1e6,) * len(asked), flows=asked)
        result.counted["flows"]["reno-2"]["cc"] = "cubic"
        unlike = [c for c in measure.checks(result.run, result.counters) if c.check == "unlike"]
        # three controls are three pairs, and nine flows would be 27
        assert [(c.flow, c.requested, c.ok) for c in unlike] == [
            ("prague-0, cubic-0", "prague, cubic", True),
            ("prague-0, reno-0", "prague, reno", True),
            ("cubic-0, reno-2", "cubic, reno", False),
        ]

    def test_feedback_that_was_not_negotiated(self):
        assert self.failed(made()) == [("ecn", "cubic")]  # the stand-in's cubic reports rfc3168

    def test_a_plain_name_asks_for_any_version_and_a_version_for_itself(self):
        result = made(flows=(("prague", "prague"), ("cubic", "cubic")))
        result.counted["flows"]["cubic"]["ecn"] = "accecn"
        result.counted["flows"]["prague"]["cc"] = "prague@2020-08"
        assert self.failed(result) == []
        result.resolved["flows"][0]["cc"] = "prague@2023"
        assert ("cc", "prague") in self.failed(result)

    def test_packets_that_vanish(self):
        result = made()
        result.counted["conservation"]["queued"] = 0
        assert ("conservation", None) in self.failed(result)

    @pytest.mark.parametrize(
        ("client", "server", "ecn"),
        [("1", "1", "rfc3168"), ("3", "2", "rfc3168"), ("2", "3", "off"), ("3", "0", "off")],
    )
    def test_what_the_sysctls_negotiate(self, client, server, ecn):
        result = made()
        result.resolved["nodes"][0]["sysctls"]["net.ipv4.tcp_ecn"] = client
        result.resolved["nodes"][2]["sysctls"]["net.ipv4.tcp_ecn"] = server
        found = {c.flow: c.requested for c in measure.checks(result.run, result.counters) if c.check == "ecn"}
        assert found == {"prague": "accecn", "cubic": ecn}  # prague is a classic flow without

    def test_dctcp_asks_for_ecn_by_itself(self):
        result = made(flows=(("dctcp", "dctcp"), ("cubic", "cubic")))
        result.resolved["nodes"][0]["sysctls"]["net.ipv4.tcp_ecn"] = "2"
        found = [c.requested for c in measure.checks(result.run, result.counters) if c.check == "ecn"]
        assert found == [None, "off"]


class TestSummary:
    def test_options_that_come_and_go_are_no_payload(self):
        result = made((40e6, 5e6))
        for name in ("prague", "cubic"):  # 1448 - 12 bytes of AccECN's option with every segment
            result.counted["flows"][name] |= {"received_bytes": 1436 * 1000, "delivered": 1000}
        assert measure.summarise(result).utilisation == pytest.approx(45 / 50 * 1514 / 1436)

    def test_resent_share(self):
        # 3 of 12 segments had been sent before
        assert resent_share(Counters(flows={"a": Flow(retransmits=3, sent_packets=12)}), "a") == 0.25
        with pytest.raises(MeasureError, match="flow 'a' sent nothing"):
            resent_share(Counters(flows={"a": Flow(retransmits=0, sent_packets=0)}), "a")

    def test_numbers_of_a_known_run(self):
        summary = measure.summarise(made((40e6, 5e6)))
        flow = summary.flows["cubic"]
        assert flow.steady_state.delivery_rate_bps == flow.steady_state.goodput_bps == pytest.approx(5e6)
        assert flow.srtt_s.mean == pytest.approx(0.026, abs=1e-6)
        assert flow.rtt_s.p99 == 0.032
        assert flow.retransmissions == 3
        assert (summary.bottleneck.queue, summary.bottleneck.rate_bps) == ("mid>srv", 50e6)
        assert summary.jain == pytest.approx(45**2 / (2 * (40**2 + 5**2)))
        assert summary.ratio == pytest.approx(8)
        assert summary.utilisation == pytest.approx(45 / 50 * 1514 / 1448)
        assert summary.queues["mid>srv"].sojourn_s.p50 == 0.005
        assert summary.queues["mid>srv"].sojourn_mean_s.mean == pytest.approx(0.005)
        ping = summary.probes["ping"]
        assert ping.loss == 0
        assert (ping.rtt_s.n, ping.rtt_s.mean, ping.rtt_s.p50, ping.rtt_s.p99) == (1000, 0.0255, 0.0255, 0.033)
        assert summary.missing == []

    def test_what_is_written_is_what_is_read(self):
        summary = measure.summarise(made((40e6, 5e6)))
        text = json.dumps(summary.to_json(), allow_nan=False)
        assert Summary.from_json(text, "summary.json") == summary
        # Absent parts are not written: no flow here is short or a video.
        assert "fct" not in json.loads(text)["flows"]["cubic"]

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"format": 99}, r"s\.json: format: 99"),
            ({"window_s": "long"}, r"s\.json: window_s: Expected `array`, got `str`; remove this file"),
            ({"flows": {"a": {}}}, r"s\.json: flows\.a\.cc: Object missing required field `cc`"),
        ],
    )
    def test_a_summary_of_another_shape_is_named(self, change, message):
        document = measure.summarise(made()).to_json() | change
        with pytest.raises(BakeoffError, match=message):
            Summary.from_json(json.dumps(document), "s.json")

    def test_the_code_of_the_suite_takes_another_window(self):
        result = made((40e6, 5e6))
        # the last sample (60 s) stands at twice the rate of the rest, and so does the one at 58.5 s, which only the
        # code takes
        rows = result.series.rows()
        cut = frame(
            [(t, k, n, m, 2 * v if m == "delivery_rate" and abs(t - 58.5) < 0.01 else v) for t, k, n, m, v in rows]
        )
        run = made((40e6, 5e6)).__class__(result.path, result.meta, result.resolved, cut, result.counted)
        assert measure.summarise(run).flows["cubic"].steady_state.delivery_rate_bps == pytest.approx(5e6)
        inside = 40 / 0.05 - 1  # samples strictly between 19 s and 59 s
        shown = measure.summarise(run, end="code").flows["cubic"].steady_state.delivery_rate_bps
        assert shown == pytest.approx(5e6 * (inside + 1) / inside)

    def test_a_starved_flow_is_shown_not_hidden(self):
        summary = measure.summarise(made((40e6, 0.0)))
        steady = summary.flows["cubic"].steady_state
        assert (steady.delivery_rate_bps, steady.goodput_bps) == (None, 0)
        assert summary.jain_delivery_rate is None  # one flow alone would look perfectly fair
        assert summary.jain == 0.5
        assert summary.ratio is None
        assert summary.missing == [
            "flows.cubic.steady_state.delivery_rate_bps: no sample other than zero between 18 s and 58 s",
            "ratio: a ratio needs rates above zero",
            "jain_delivery_rate: a flow has no delivery rate",
            "ratio_delivery_rate: a flow has no delivery rate",
        ]

    def test_a_probe_whose_every_answer_in_the_window_is_lost_has_no_delay_but_a_loss(self):
        result = made()
        answered = pl.col("kind").eq("probe") & pl.col("metric").eq("rtt") & pl.col("time").ge(10)
        lost = result.series.with_columns(metric=pl.when(answered).then(pl.lit("lost")).otherwise("metric"))
        counters = {**result.counted, "probes": {"ping": {"sent": 1200, "received": 200, "rtt": {"n": 0}}}}
        summary = measure.summarise(result.__class__(result.path, result.meta, result.resolved, lost, counters))
        assert summary.probes["ping"].to_json() == {"rtt_s": None, "loss": 1.0, "jitter_s": None}
        assert summary.missing == ["probes.ping.rtt_s: counters: probes.ping.rtt has no samples"]

    def with_a_third(self, received_bytes: int, **about: float):
        """The run with a flow that has no samples."""
        result = made()
        result.resolved["flows"].append({**result.resolved["flows"][0], "name": "third", **about})
        result.counted["flows"]["third"] = {
            "cc": "prague@2020-08", "ecn": "off", "mss": 1448, "sent_packets": 0, "received_bytes": received_bytes,
            "rtt": {"n": 0},
        }  # fmt: skip
        return measure.summarise(result)

    def test_a_flow_that_gets_nothing_through_has_a_goodput_of_zero_and_no_rtt(self):
        summary = self.with_a_third(0)
        third = summary.flows["third"]
        assert third.steady_state.to_json() == {"delivery_rate_bps": None, "goodput_bps": 0.0}
        assert (third.srtt_s, third.rtt_s, third.mark_fraction, third.retransmissions) == (None, None, None, None)
        # The goodputs of the two others are a and b; x + 0 leaves both sums as they are: (a + b)^2 / (3 (a^2 + b^2)).
        a, b = (summary.flows[name].steady_state.goodput_bps for name in ("prague", "cubic"))
        assert summary.jain == pytest.approx((a + b) ** 2 / (3 * (a * a + b * b)))
        assert summary.jain_delivery_rate is None
        assert summary.missing == [
            "flows.third: no samples: no packet arrived; no rate, RTT and marks",
            "ratio: a ratio needs rates above zero",
            "jain_delivery_rate: a flow has no delivery rate",
            "ratio_delivery_rate: a flow has no delivery rate",
        ]
        assert not any(check.check == "ecn" and check.flow == "third" for check in summary.checks)

    def test_a_flow_that_is_not_there_in_the_window_is_not_starved(self):
        # The window is 18 s to 58 s, and there is a sample every 50 ms: from 57.95 s on nothing could be seen.
        for about, there in (({"start_s": 57.9}, 0.0), ({"start_s": 57.96}, None), ({"stop_s": 18.0}, None)):
            assert self.with_a_third(0, **about).flows["third"].steady_state.goodput_bps == there, about
        said = "flow 'third' sends from 59 s to 60 s, outside the window of 18 s to 58 s"
        assert f"flows.third.steady_state.goodput_bps: {said}" in self.with_a_third(0, start_s=59.0).missing

    def test_samples_that_are_lost_are_no_zero(self):
        summary = self.with_a_third(1448)
        assert summary.flows["third"].steady_state.goodput_bps is None
        assert "flows.third.steady_state.goodput_bps: no 'received' samples of flow 'third'" in summary.missing

    def test_a_flow_that_is_opened_behind_the_window_got_nothing_in_it(self):
        result = made()
        late = pl.col("name").ne("cubic") | pl.col("kind").ne("flow") | pl.col("time").gt(58.5)
        summary = measure.summarise(replace(result, series=result.series.filter(late)))
        assert summary.flows["cubic"].steady_state.goodput_bps == 0
        # From the first sample on it is as always: 58.55 s to 60 s.
        rates = Samples(parts(result.series)).of("flow", "cubic", "received", (58.5, 60.0))
        assert measure.goodput(*rates, (58.5, 60.0)) > 0

    def test_no_series_at_all(self):
        empty = replace(made(), series=frame([]))
        # Of flows that got nothing through there is nothing to sample.
        assert [flow.steady_state.goodput_bps for flow in measure.summarise(empty).flows.values()] == [0, 0]
        empty.counted["flows"]["cubic"]["received_bytes"] = 1448
        with pytest.raises(MeasureError, match="the run has no series"):
            measure.summarise(empty)


class TestRepetitions:
    def test_interval_by_hand(self):
        # 4 values, mean 5, s = sqrt((9 + 1 + 1 + 9) / 3), t(0.975, 3) = 3.1824
        found = measure.interval([2, 4, 6, 8])
        assert found["mean"] == 5
        assert found["ci95"] == pytest.approx(3.1824 * math.sqrt(20 / 3) / 2)

    def test_one_value_has_no_interval(self):
        assert measure.interval([3]) == {"n": 1, "mean": 3, "ci95": None}

    def within(self, t, freedom):
        """What lies between -t and t of Student's distribution: with x = sqrt(freedom) tan(a), its density is
        proportional to cos(a) ^ (freedom - 1).
        """

        def area(end):
            # Simpson's rule
            angles = np.linspace(0, end, 20001)
            heights = np.cos(angles) ** (freedom - 1)
            return (heights[0] + 4 * heights[1:-1:2].sum() + 2 * heights[2:-1:2].sum() + heights[-1]) * angles[1] / 3

        return area(math.atan(t / math.sqrt(freedom))) / area(math.pi / 2)

    def test_the_quantile_is_students(self):
        # Student's t with 2 degrees of freedom has the closed form (2p - 1) sqrt(2 / (4 p (1 - p))) at p = 0.975
        exact = 0.95 * math.sqrt(2 / (4 * 0.975 * 0.025))
        assert measure.interval([0, 1, 2])["ci95"] == pytest.approx(exact / math.sqrt(3), rel=1e-4)
        # Above 30 the next lower number of degrees of freedom counts: 50 are taken as 40.
        above = [(39, 30), (40, 40), (50, 40), (119, 60), (999, 120)]
        for freedom, taken in [*((n, n) for n in range(1, 31)), *above]:
            n = freedom + 1
            deviation = math.sqrt((1 - 1 / n) / freedom)
            quantile = measure.interval([0.0] * freedom + [1.0])["ci95"] / deviation * math.sqrt(n)
            # The table has four digits: 5e-5 times twice the density, which is below 0.06 there.
            assert self.within(quantile, taken) == pytest.approx(0.95, abs=6e-6), taken

    def test_every_number_of_a_summary(self):
        found = measure.repetitions([measure.summarise(made((rate, 5e6))) for rate in (30e6, 40e6, 50e6)])
        rate = found["flows.prague.steady_state.delivery_rate_bps"]
        assert (rate["n"], rate["mean"]) == (3, pytest.approx(40e6))
        assert rate["ci95"] == pytest.approx(4.3027 * 10e6 / math.sqrt(3))
        assert found["flows.cubic.steady_state.goodput_bps"]["ci95"] == pytest.approx(0, abs=1)
        assert "seed" not in found
        assert found["queues.mid>srv.marks"]["mean"] == 600

    def test_a_number_that_some_lack(self):
        found = measure.repetitions([measure.summarise(made((40e6, rate))) for rate in (5e6, 0.0)])
        assert found["flows.cubic.steady_state.delivery_rate_bps"]["n"] == 1
        assert found["flows.cubic.steady_state.goodput_bps"]["n"] == 2


def test_drops_of_a_flow_where_queues_are_counted_as_a_whole():
    def dropped(result, probes):
        queue = result.counted["queues"]["mid>srv"]
        result.resolved["probes"] = result.resolved["probes"][:probes]
        return queue, lambda: CATALOGUE["drops"].take(MeasuredRun(result), result.run.flows[0].name)

    alone = made((45e6,), flows=(("one", "cubic"),))
    queue, take = dropped(alone, 0)
    assert take() == 1
    # Linux counts no flows; the 1 + 1 drops of the queue are those of its only flow.
    queue |= {"flows": {}, "sent": 5}
    assert take() == 2
    for result, probes in ((made((45e6,), flows=(("one", "cubic"),)), 1), (made(), 0)):
        queue, take = dropped(result, probes)
        queue |= {"flows": {}, "sent": 5}
        # As a real engine writes them.
        del result.counted["conservation"]
        with pytest.raises(MeasureError, match=r"queues\.mid>srv\.flows is missing; only the simulator counts by flow"):
            take()
