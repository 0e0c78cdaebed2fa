"""What is measured over time, each by numbers that can be computed by hand."""

from dataclasses import replace
from math import inf

import msgspec
import numpy as np
import polars as pl
import pytest

import synthetic
from bakeoff.claims.evaluate import measure as measured
from bakeoff.measure import MeasureError, summarise, summary_of
from bakeoff.measure.delays import induced_latency_above, ipdv
from bakeoff.measure.over_time import (
    convergence,
    meeting,
    oscillations,
    overshoot,
    recovery,
    rise,
    smoothed,
    spike,
    spike_after,
    starvation,
)
from bakeoff.measure.rates import harm, harm_less, under_utilisation
from bakeoff.results.summary import Pair, Spike


def array(*values):
    return np.array(values, dtype=float)


def rate(*values):
    """One sample a second, from 1 s on."""
    return np.arange(1.0, len(values) + 1), array(*values)


def test_a_smoothed_rate_is_that_of_the_bytes_around_it():
    # 1000 bytes a second until 2 s, then 3000; the flow starts at 0.
    time, received = array(1, 2, 3, 4), array(1000, 2000, 5000, 8000)
    times, rates = smoothed(time, received, 0.0, 2.0)
    assert times.tolist() == [1, 2, 3, 4]
    # Around 1 s: 2000 bytes of 2 s; around 2 s: 1000 to 5000 in 2 s; around 3 s: 6000 in 2 s; around 4 s, cut: 3000.
    assert rates.tolist() == [8 * 1000, 8 * 2000, 8 * 3000, 8 * 3000]
    with pytest.raises(MeasureError, match="fewer than two"):
        smoothed(time, received, 3.5)


def test_convergence_is_when_the_rates_stay_within_the_ratio():
    one = rate(9, 9, 9, 6, 9, 6, 6, 6, 6, 6)
    two = rate(1, 1, 1, 5, 1, 4, 4, 5, 6, 7)
    # Even (ratio 1.5) at 4 s, for one sample, and from 6 s on: 6/4, 6/4, 6/5, 6/6, 7/6.
    assert convergence(one, two, 0.5, 1.5, 0.0) == 4 - 0.5
    assert convergence(one, two, 0.5, 1.5, 4.0) == 6 - 0.5
    # Nobody knows what comes after 10 s.
    assert convergence(one, two, 0.5, 1.5, 5.0) == inf
    assert convergence(one, two, 0.5, 1.1, 1.0) == inf
    # Two flows that get nothing do not share evenly.
    assert convergence(rate(0, 0, 0), rate(0, 0, 0), 0.0, 1.5, 1.0) == inf
    with pytest.raises(MeasureError, match="no samples in common"):
        convergence(one, two, 11.0)


def test_meeting_is_when_the_later_flow_first_has_as_much():
    one, two = rate(9, 8, 6, 4, 6), rate(1, 3, 5, 6, 2)
    assert meeting(one, two, 1.0) == 4 - 1
    assert meeting(one, rate(1, 1, 1, 1, 1), 1.0) == inf


def test_the_rise_is_when_the_rate_is_reached_and_kept():
    # Bytes in each second until 10 s: 0, 90, 100, 20, 60, 90, 100, 100, 100, 100, from the flow's start at 0.
    counted = np.arange(1.0, 11), np.cumsum(array(0, 90, 100, 20, 60, 90, 100, 100, 100, 100))
    target = 8 * 90
    # The second from 1 to 2 s has 90, the next one 100, that after it 20: 90 is kept from 1 to 2 s, and from 5 to 9 s.
    assert rise(counted, 0.0, target, 1.0, 0.0) == 1
    assert rise(counted, 0.0, target, 1.0, 1.0) == 1
    assert rise(counted, 0.0, target, 1.0, 1.5) == 5
    assert rise(counted, 0.0, target, 1.0, 4.0) == 5
    assert rise(counted, 0.0, target, 1.0, 4.5) == inf
    assert rise(counted, 0.0, 8 * 101, 1.0, 0.0) == inf
    # Over two seconds: 95 from 1 to 3 s, 60 from 2 to 4 s.
    assert rise(counted, 0.0, target, 2.0, 0.0) == 1
    assert rise(counted, 0.0, target, 2.0, 1.0) == 5
    # Counted from 1 s on, of what came since.
    assert rise(counted, 1.0, target, 1.0, 0.0) == 0
    with pytest.raises(MeasureError, match="no 11 s of 'received' samples after 0 s"):
        rise(counted, 0.0, target, 11.0, 0.0)


def test_the_overshoot_is_what_is_dropped_until_an_rtt_after_slow_start():
    drops = np.arange(1.0, 7), array(3, 3, 40, 55, 56, 90)
    # ssthresh has its first sample at 3.5 s: with an RTT of 1 s 55 are dropped by then, 3 of them before the flow.
    ends = array(3.5, 4), array(20, 20)
    never = array(), array()
    assert overshoot(ends, drops, 0.0, 1.0) == 55
    assert overshoot(ends, drops, 1.0, 1.0) == 52
    assert overshoot(ends, drops, 1.0, 2.0) == 53
    # What was known before the flow is of another one; without an end all counts.
    assert overshoot((array(0.5), array(20)), drops, 1.0, 1.0) == 87
    assert overshoot(never, drops, 0.0, 1.0) == 90
    with pytest.raises(MeasureError, match=r"no 'drops' samples up to 0\.7 s"):
        overshoot((array(0.5), array(20)), drops, 0.0, 0.2)


def test_rise_and_overshoot_of_a_run():
    # 25 Mbit/s are the fair share of two flows of 50 Mbit/s: 45.7 has it at once, 1.9 never. 2 packets were dropped.
    run = synthetic.made((45.7e6, 1.9e6))
    assert measured(run, 'rise("prague")') == 0
    assert measured(run, 'rise("cubic")') == inf
    assert measured(run, 'rise("cubic", ratio=0.075)') == 0  # 1.875 Mbit/s
    assert measured(run, 'overshoot("cubic")') == 2
    alone = synthetic.made((45.7e6,), flows=(("cubic", "cubic"),))
    assert measured(alone, "rise(1)") == 0  # 45 of 50
    assert measured(alone, "rise(1, ratio=0.92)") == inf  # 46


def test_a_spike_is_the_highest_stretch_without_a_break():
    time = np.arange(10) / 10
    delay = array(20, 45, 20, 35, 70, 60, 30, 31, 20, 40) / 1000
    # Above 20 + 10 ms: 45; 35, 70, 60; 31; 40. The highest is 70, from 0.3 s until 0.6 s, where it is 30 and not above.
    found = spike(time, delay, 0.020, 0.010)
    assert (found.height_s, found.duration_s, found.begin_s) == pytest.approx((0.050, 0.3, 0.3))
    assert spike(time, delay, 0.020, 0.060) == Spike(height_s=0, duration_s=0, begin_s=0)
    # Until the last sample, if nothing ends it.
    assert spike(time[:6], delay[:6], 0.020, 0.010).duration_s == pytest.approx(0.2)
    with pytest.raises(MeasureError, match="no samples"):
        spike(array(), array(), 0.02)


def test_a_spike_after_a_step_is_above_the_mean_before():
    time = np.arange(8.0)
    delay = array(20, 30, 20, 30, 125, 60, 36, 34) / 1000
    # Mean 25 ms before 4 s, so 100 ms high, until it is at most 25 + 10 % of 100 ms: from 4 s to 7 s.
    found = spike_after(time, delay, 4.0)
    assert (found.height_s, found.duration_s, found.begin_s) == pytest.approx((0.1, 3, 4))
    # 10 ms high: over once it is within 5 ms, as 28 ms are and 31 would not be.
    low = spike_after(time, array(20, 30, 20, 30, 35, 31, 28, 25) / 1000, 4.0)
    assert (low.height_s, low.duration_s) == pytest.approx((0.01, 2))
    assert spike_after(time, delay, 4.0, base_s=0.02, over_s=0.03).duration_s == 2
    with pytest.raises(MeasureError, match="before 0 s"):
        spike_after(time, delay, 0.0)
    with pytest.raises(MeasureError, match="after 8 s"):
        spike_after(time, delay, 8.0)


def test_recovery_is_over_when_it_stays_low():
    time, delay = array(0, 1, 2, 3, 4, 5), array(90, 50, 25, 45, 28, 22) / 1000
    # From the step at 1 s; above 20 + 10 ms for the last time at 3 s.
    assert recovery(time, delay, 1.0, 0.020, 0.010) == 4 - 1
    assert recovery(time, delay, 4.0, 0.020, 0.010) == 0
    assert recovery(time, delay, 1.0, 0.020, 0.001) == inf
    with pytest.raises(MeasureError, match="after 6 s"):
        recovery(time, delay, 6.0, 0.020)


def test_starvation_is_the_share_of_time_below_a_part_of_the_fair_share():
    # Fair shares: 5, 5, 5, and alone at 4 s, where the other flow has ended, 1.
    own, other = rate(0.4, 0.5, 5, 1), rate(9.6, 9.5, 5)
    assert starvation(own, [other], (0, 10), 0.1) == 1 / 4
    assert starvation(own, [other], (0, 10), 0.11) == 2 / 4
    assert starvation(own, [other], (2, 10), 0.1) == 0
    with pytest.raises(MeasureError, match="between 20 s and 30 s"):
        starvation(own, [other], (20, 30))


def test_harm_is_what_is_lost_of_what_there_was_alone():
    assert harm(10, 40) == 0.75
    assert harm_less(0.040, 0.010) == pytest.approx(0.75)
    assert under_utilisation(2.29, 18.27) == pytest.approx(15.98)  # l4s-tests prints 15.97, of unrounded numbers
    with pytest.raises(MeasureError, match="above zero"):
        harm(1, 0)
    with pytest.raises(MeasureError, match="above zero"):
        harm_less(0, 1)


def test_induced_latency_is_what_is_above_the_base():
    # 10, 2, 6 and 0 ms above the base of 20 ms: two of four are above 5 ms.
    assert induced_latency_above(array(30, 22, 26, 20) / 1000, 0.020, 0.005) == 0.5
    with pytest.raises(MeasureError, match="no round-trip times"):
        induced_latency_above(array(), 0, 0)


def test_oscillations_are_crossings_of_the_mean_per_second():
    # Mean 5; above, below, above, above, below: three crossings in 4 s.
    assert oscillations(*rate(8, 2, 7, 7, 1), (1, 5)) == 3 / 4
    assert oscillations(*rate(5, 5, 5), (1, 3)) == 0
    with pytest.raises(MeasureError, match="fewer than two"):
        oscillations(*rate(1, 2, 3), (3, 9))


def test_ipdv_is_of_answers_in_a_row():
    # The request at 0.2 s was lost: nothing stands beside it.
    sent, rtt = array(0, 0.1, 0.3, 0.4), array(20, 25, 60, 58) / 1000
    assert ipdv(sent, rtt, 0.1).tolist() == pytest.approx([0.005, 0.002])
    with pytest.raises(MeasureError, match="no two consecutive"):
        ipdv(array(0, 0.2), array(1, 2), 0.1)


def test_the_summary_tells_how_flows_share_and_what_delays_did():
    # 45.7 and 1.9 Mbit/s: a tenth of the fair share is 2.38 Mbit/s, and the rates never come within 1.5 of each other.
    unfair = summarise(synthetic.made((45.7e6, 1.9e6)))
    assert [flow.starvation for flow in unfair.flows.values()] == [0, 1]
    assert unfair.pair == Pair(flows=("prague", "cubic"), convergence_s=None, meet_s=None)
    # 8 and 10 Mbit/s from the first sample on; the second to be named is the one that was there later, or as soon.
    fair = summarise(synthetic.made((8e6, 10e6)))
    assert [flow.starvation for flow in fair.flows.values()] == [0, 0]
    assert fair.pair == Pair(flows=("prague", "cubic"), convergence_s=0.05, meet_s=0.05)
    # Round trips of 25.5 ms over a path of 20 ms.
    ping = fair.probes["ping"]
    assert ping.induced_s is not None
    assert ping.induced_s.p99 == pytest.approx(0.0055)
    assert ping.ipdv_s is not None
    assert ping.ipdv_s.max == 0
    assert ping.spike == Spike(height_s=0, duration_s=0, begin_s=0)
    assert fair.flows["cubic"].echoed_marks == 10_000
    # What arrived is told where an engine counts it, and by no other.
    assert fair.flows["cubic"].seen_marks is None
    counted = synthetic.made((8e6, 10e6))
    counted.counted["flows"]["cubic"] |= {"received_ce": 10_002, "received_ect1": 3}
    assert (summarise(counted).flows["cubic"].seen_marks, summarise(counted).flows["cubic"].seen_ect1) == (10_002, 3)
    # A video beside them is no long flow of the two.
    flows = (("prague", "prague"), ("cubic", "cubic"), ("tv", "cubic"))
    beside = synthetic.made((8e6, 10e6, 1e6), flows=flows)
    beside.resolved["flows"][2]["source"] = {
        "kind": "video", "rates_bps": [500_000, 1_000_000], "segment_s": 0.5, "buffer_s": 1.0,
    }  # fmt: skip
    assert summarise(beside).pair == fair.pair
    # One flow has nobody to share with.
    alone = summarise(synthetic.made((8e6,), flows=(("cubic", "cubic"),)))
    assert alone.pair is None
    assert alone.flows["cubic"].starvation is None


def both_ways(*, recorded=False):
    """Two flows up with 1 and 3 Mbit/s, two down with 40 and 1.9, each pair in its own queue."""
    flows = tuple((name, "cubic") for name in ("up1", "up2", "down1", "down2"))
    run = synthetic.made((1e6, 3e6, 40e6, 1.9e6), flows=flows)
    for flow in run.resolved["flows"][2:]:
        flow |= {"from": "srv", "to": "cli"}
    if recorded:
        for interface in run.resolved["interfaces"]:
            interface["egress"] = interface["ingress"] = None
    return run


@pytest.mark.parametrize("recorded", [False, True])
def test_only_flows_of_one_queue_starve_each_other(recorded):
    run = both_ways(recorded=recorded)
    assert {flow.bottleneck is None for flow in summarise(run).flows.values()} == {recorded}
    # Tenths of fair shares: 0.2 of (1 + 3) / 2 and 2.095 of (40 + 1.9) / 2; over all four both would be 1.1475.
    starved = {"up1": 0, "up2": 0, "down1": 0, "down2": 1}
    assert {name: flow.starvation for name, flow in summarise(run).flows.items()} == starved
    for name, value in starved.items():
        assert measured(run, f'starvation("{name}")') == value
    # 40 s of window from 18 s on.
    assert measured(run, 'starved_time("down2")') == 40
    assert measured(run, 'share("up1")') == pytest.approx(1 / 4)
    assert measured(run, 'share("down2", begin="30s", end="40s")') == pytest.approx(1.9 / 41.9)
    # The last of a direction has nobody beside it.
    assert summarise(synthetic.made((1e6, 3e6))).pair is not None
    del run.resolved["flows"][3], run.resolved["flows"][1]
    assert summarise(run).pair is None
    assert summarise(run).flows["up1"].starvation is None
    with pytest.raises(MeasureError, match="shares its queue with no other"):
        measured(run, 'starvation("up1")')
    with pytest.raises(MeasureError, match="share no queue"):
        measured(run, "convergence()")


def test_a_flow_that_has_ended_has_no_share():
    run = synthetic.made((6e6, 2e6))
    run.resolved["flows"][1]["stop_s"] = 30.0
    ended = (pl.col("name") == "cubic") & (pl.col("time") > 30)
    run = replace(run, series=run.series.filter(~ended))
    assert measured(run, 'share("prague", begin="20s", end="25s")') == pytest.approx(6 / 8)
    assert measured(run, 'share("prague", begin="40s", end="50s")') == 1
    with pytest.raises(MeasureError):
        measured(run, 'share("cubic", begin="40s", end="50s")')


def test_a_stored_summary_is_not_believed_where_it_held_flows_against_all_others():
    run = both_ways()
    new = summarise(run)
    old = {name: msgspec.structs.replace(flow, starvation=0.5) for name, flow in new.flows.items()}
    stored = replace(run, summary=msgspec.structs.replace(new, format=5, flows=old))
    assert summary_of(stored).flows == new.flows
    # Of flows in one queue it was right.
    one = summarise(synthetic.made((45.7e6, 1.9e6)))
    stored = replace(synthetic.made((45.7e6, 1.9e6)), summary=msgspec.structs.replace(one, format=5))
    assert summary_of(stored) == one


def test_a_phase_tells_how_long_a_delay_took_to_settle():
    # At 30 s the round trip rises by 20 ms, and the queue that this fills has emptied after 2 s.
    run = synthetic.made((8e6,), flows=(("cubic", "cubic"),))
    link = {"kind": "link", "rate_bps": None, "delay_s": 0.02, "loss": None, "up": None}
    run.resolved["changes"] = [{"at_s": 30.0, "node": "mid", "peer": "srv", "action": link}]
    rtt = pl.when(pl.col("time") <= 30).then(0.021).when(pl.col("time") < 32).then(0.080).otherwise(0.045)
    series = run.series.with_columns(value=pl.when(pl.col("metric") == "srtt").then(rtt).otherwise(pl.col("value")))
    before, after = summarise(replace(run, series=series)).phases
    assert before.flows["cubic"].recovery_s == 0
    # 45 ms are within 10 ms of a base of 40 ms, and would not be of 20 ms.
    assert after.flows["cubic"].recovery_s == pytest.approx(2.0)
