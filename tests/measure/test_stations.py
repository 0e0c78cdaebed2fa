"""Every queue with a rate, phases of a window in which something changes, datagrams: from results that are known."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import bakeoff
from bakeoff import measure
from bakeoff.measure.bottleneck import rates
from bakeoff.measure.functions import CATALOGUE
from bakeoff.measure.measured_run import MeasuredRun
from bakeoff.measure.stations import frames
from bakeoff.results.counters import FlowAtQueue, Queue
from bakeoff.results.summary import Summary
from synthetic import as_run, frame, made

TREE = {
    "qdisc": "htb default 2",
    "classes": [
        {"id": "f", "class": "rate 20mbit ceil 20mbit"},
        {
            "id": "1",
            "parent": "f",
            "class": "rate 5mbit ceil 30mbit",
            "child": {"qdisc": "pie"},
            "filters": [{"dscp": 19}],
        },
        {"id": "2", "parent": "f", "class": "rate 15mbit ceil 15mbit", "child": {"qdisc": "fq_codel"}},
    ],
}
STEP = {"kind": "class-change", "side": "egress", "id": "1", "class": "rate 10mbit ceil 10mbit"}


def with_sent(result, **bps):
    """The stand-in, whose queues send so much from 0 s on."""
    rows = [
        (i * 0.05, "queue", name.replace("_", "/"), "sent", rate / 8 * i * 0.05)
        for name, rate in bps.items()
        for i in range(1, 1201)
    ]
    return replace(result, series=result.series.extend(frame(rows)))


def at_mid(result, **bps):
    return with_sent(result, **{f"mid>srv{leaf}": rate for leaf, rate in bps.items()})


def step(result):
    result.resolved["changes"] = [{"at_s": 38.0, "node": "mid", "peer": "srv", "action": STEP}]
    return result


def test_what_left_a_queue_is_held_against_its_rate():
    summary = measure.summarise(at_mid(made(), **{"": 40e6}))
    forward, back = summary.rated
    assert (forward.queue, forward.flows, forward.rate_bps) == ("mid>srv", ["prague", "cubic"], 50e6)
    assert forward.utilisation == pytest.approx(0.8) == summary.utilisation
    # ACKs alone pass the other direction, and its queue was not sampled.
    assert (back.queue, back.flows, back.utilisation) == ("mid>cli", [], None)
    assert summary.missing == []


def test_the_share_of_a_rate_that_changes_is_that_of_its_integral():
    # 18 s to 38 s at 50 Mbit/s and on to 58 s at 10: 30 Mbit/s in the mean, of which 24 left.
    [forward, _] = measure.summarise(step(at_mid(made(), **{"": 24e6}))).rated
    assert forward.rate_bps == pytest.approx(30e6)
    assert forward.utilisation == pytest.approx(0.8, abs=1e-3)


def test_a_bucket_is_no_more_than_all_and_more_than_that_is_told():
    assert measure.summarise(at_mid(made(), **{"": 50.04e6})).utilisation == 1  # 0.08 %: a bucket
    summary = measure.summarise(at_mid(made(), **{"": 51e6}))
    [failed] = [check for check in summary.checks if check.check == "capacity"]
    assert (failed.flow, failed.requested, failed.effective, failed.ok) == (
        "mid>srv",
        "at most 50 Mbit/s",
        "51 Mbit/s",
        False,
    )


SEEN = {"marks": 0, "drops": 0, "sce_marks": 0}


def counted_as(result, qdisc, **packets):
    """The stand-in behind another qdisc, which sent full frames of prague and, of what else is named, other lengths."""
    result.resolved["interfaces"][1]["egress"] = {"qdisc": qdisc}
    flows = {name: {"packets": count, **SEEN} for name, count in packets.items()}
    lengths = {"prague": 1514, "ping": 98, "call": 214}
    size = sum(lengths[name] * count for name, count in packets.items())
    result.counted["queues"]["mid>srv"] |= {"sent": sum(packets.values()), "sent_bytes": size, "flows": flows}
    return result


@pytest.mark.parametrize(
    ("qdisc", "rate", "packets", "share"),
    [
        ("cake bandwidth 50mbit", 50e6, {"prague": 1000}, 1.0),
        # 1500 bytes are charged for a frame of 1514: at 50 Mbit/s frames of 50.47 Mbit/s leave.
        ("cake bandwidth 50mbit overhead 0", 50e6 * 1514 / 1500, {"prague": 1000}, 1.0),
        ("cake bandwidth 50mbit overhead -20", 50e6 * 1514 / 1480, {"prague": 1000}, 1.0),
        # 1500 + 44 bytes are 33 cells of 53: 1749 bytes for 1514.
        ("cake bandwidth 50mbit atm overhead 44", 50e6 * 1514 / 1749, {"prague": 1000}, 1.0),
        ("cake bandwidth 50mbit atm overhead 44", 25e6 * 1514 / 1749, {"prague": 1000}, 0.5),
        # a probe of 84 bytes of IP is 98 of Ethernet: 84 + 44 = 128 bytes, 3 cells, 159; of each kind one half
        (
            "cake bandwidth 50mbit atm overhead 44",
            50e6 * (1514 + 98) / (1749 + 159),
            {"prague": 1000, "ping": 1000},
            1.0,
        ),
        ("cake bandwidth 50mbit overhead 0 mpu 120", 50e6 * 98 / 120, {"ping": 1000}, 1.0),
        ("cake bandwidth 50mbit ptm overhead 30", 50e6 * 1514 / 1554, {"prague": 1000}, 1.0),
        # tbf adds to the 14 bytes: 1544 are 33 cells
        (
            "tbf rate 50mbit burst 50kb latency 50ms overhead 30 linklayer atm",
            50e6 * 1514 / 1749,
            {"prague": 1000},
            1.0,
        ),
    ],
)
def test_the_capacity_is_counted_as_the_shaper_charges_it(qdisc, rate, packets, share):
    result = counted_as(at_mid(made(), **{"": rate}), qdisc, **packets)
    summary = measure.summarise(result)
    assert summary.utilisation == pytest.approx(share, rel=1e-6)
    assert summary.rated[0].rate_bps == 50e6  # as it is written
    assert [check for check in summary.checks if check.check == "capacity"] == []


def test_more_than_what_is_charged_for_is_told():
    # 1 % more frames than 1749 bytes for each 1514 allow
    result = counted_as(at_mid(made(), **{"": 50.5e6 * 1514 / 1749}), "cake bandwidth 50mbit atm overhead 44", prague=9)
    [failed] = [check for check in measure.summarise(result).checks if check.check == "capacity"]
    assert failed.flow == "mid>srv"


def queue(sent, sent_bytes, packets=None):
    flows = {name: FlowAtQueue(packets=count, marks=0, drops=0) for name, count in (packets or {}).items()}
    return Queue(qdisc="pfifo", marks=0, drops={}, sent=sent, sent_bytes=sent_bytes, flows=flows)


def test_lengths_follow_from_counts():
    document = made().resolved
    document["flows"][1] |= {
        "transport": "udp",
        "source": {"kind": "periodic", "size": 172, "every_s": 0.02, "count": 1},
    }
    run = as_run(document)
    udp = run.flows[1].name
    one = {"prague": 100, "ping": 10, udp: 50}
    # 90 full frames and 10 empty segments of prague; 10 probes of 84 + 14 bytes; 50 datagrams of 172 + 42
    size = 90 * 1514 + 10 * 66 + 10 * 98 + 50 * 214
    sent = frames(run, "mid>srv", [queue(160, size, one)])
    assert sent == pytest.approx({1514: 90, 66: 10, 98: 10, 214: 50})
    # the other way what is left is ACKs: 7150 bytes of 100, half of them of 71 and half of 72 bytes
    back = {"prague": 100}
    assert frames(run, "mid>cli", [queue(100, 7150, back)]) == {71: 50, 72: 50}
    # buffers of 10 segments, and an engine that does not tell flows
    assert frames(run, "mid>srv", [queue(10, 151400, back)]) == {1514: 100}
    assert frames(run, "mid>srv", [queue(20, 10 * 1580)]) == pytest.approx({1514: 10, 66: 10})
    assert frames(run, "mid>srv", [Queue(qdisc="pfifo", marks=0, drops={})]) == {}


def test_each_class_has_a_station_and_all_together_have_one():
    result = made()
    result.resolved["interfaces"][1]["egress"] = TREE
    counted = result.counted["queues"].pop("mid>srv")
    seen = {"packets": 10, "marks": 3, "drops": 0}
    result.counted["queues"] = {
        "mid>srv/1": counted | {"flows": {"prague": seen, "cubic": {**seen, "packets": 0}}},
        "mid>srv/2": counted | {"flows": {"cubic": seen}, "sce_marks": 7},
    }
    result = replace(result, series=result.series.filter(result.series["name"] != "mid>srv"))
    summary = measure.summarise(with_sent(result, **{"mid>srv_1": 4e6, "mid>srv_2": 12e6}))
    found = {one.queue: (one.rate_bps, one.flows, round(one.utilisation, 3)) for one in summary.rated if one.queues}
    assert found == {
        "mid>srv/1": (20e6, ["prague"], 0.2),  # its parent's ceil is lower than its own
        "mid>srv/2": (15e6, ["cubic"], 0.8),
        "mid>srv": (20e6, ["prague", "cubic"], 0.8),
    }
    assert summary.queues["mid>srv/2"].sce_marks == 7
    assert summary.queues["mid>srv/1"].sce_marks == 0  # written by an engine that does not count them


def test_a_class_of_htb_never_has_less_than_its_own_rate():
    # Rates of 15 and 10 Mbit/s below a ceil of 20: htb does not ask the class above for what is assured.
    document = made().resolved
    tree = json.loads(json.dumps(TREE))
    tree["classes"][1]["class"] = "rate 10mbit ceil 12mbit"
    document["interfaces"][1]["egress"] = tree
    run = as_run(document)
    assert measure.bottleneck(run, run.flows[0], (18, 58)).rate_bps == 12e6
    assert [rate for _, _, rate in rates(run, "mid>srv", (18, 58))] == [25e6]
    tree["classes"][0]["class"] = "rate 1mbit ceil 1mbit"
    assert [rate for _, _, rate in rates(as_run(document), "mid>srv", (18, 58), class_id="2")] == [15e6]


def test_an_ingress_that_shapes_may_be_the_bottleneck():
    result = made()
    result.resolved["interfaces"].append(
        {"node": "srv", "peer": "mid", "tx_queue_len": 1000, "ingress": {"qdisc": "cake bandwidth 10mbit"}}
    )
    summary = measure.summarise(result)
    assert (summary.bottleneck.queue, summary.bottleneck.rate_bps) == ("srv<mid", 10e6)


def test_a_window_is_cut_where_something_changes():
    result = step(at_mid(made((40e6, 5e6)), **{"": 10e6}))
    result.resolved["flows"][1]["stop_s"] = 50.0
    result.resolved["flows"][1]["start_s"] = 18.03  # within one sample of the beginning: with the window
    summary = measure.summarise(result)
    assert summary.changes == [
        "at 38 s mid>srv: class 1: rate 10mbit ceil 10mbit",
        "at 50 s cubic stops",
    ]
    assert [(one.from_s, one.to_s) for one in summary.phases] == [(18, 38), (38, 50), (50, 58)]
    assert [one.changes for one in summary.phases][::2] == [[], ["cubic stops"]]
    before, after, _ = summary.phases
    assert (before.queues["mid>srv"].rate_bps, after.queues["mid>srv"].rate_bps) == (50e6, 10e6)
    assert before.queues["mid>srv"].utilisation == pytest.approx(0.2)
    assert after.queues["mid>srv"].utilisation == 1
    assert before.queues["mid>srv"].marks == 200  # 10 a second for 20 s
    assert after.flows["cubic"].goodput_bps == pytest.approx(5e6)
    assert after.probes["ping"].rtt_s.mean == pytest.approx(0.0255)
    assert Summary.from_json(json.dumps(summary.to_json()), "x") == summary


def test_a_schedule_of_very_many_steps_is_not_told_apart_but_said():
    result = made()
    result.resolved["changes"] = [
        {"at_s": 20 + i, "node": "mid", "peer": "srv", "action": {**STEP, "class": f"rate {10 + i}mbit"}}
        for i in range(30)
    ]
    summary = measure.summarise(result)
    assert (len(summary.changes), summary.phases) == (30, [])
    assert summary.missing == ["phases: 30 changes in the window; expected at most 19"]


def test_nothing_changes_in_most_windows():
    summary = measure.summarise(made())
    assert (summary.changes, summary.phases) == ([], [])


def test_jitter_by_hand():
    # 10, 12, 9 ms on the way: J is 2 / 16 = 0.125 ms, then 0.125 + (3 - 0.125) / 16 = 0.3046875 ms.
    sent, took = np.array([0.0, 0.02, 0.04]), np.array([0.010, 0.012, 0.009])
    assert measure.jitter(sent, took) == pytest.approx((0.125e-3 + 0.3046875e-3) / 2)
    # An offset between the clocks changes nothing, the order of arrival does: the second overtakes the first.
    assert measure.jitter(sent, took + 5) == pytest.approx(measure.jitter(sent, took))
    overtaken = measure.jitter(np.array([0.0, 0.001, 0.02]), np.array([0.005, 0.001, 0.005]))
    assert overtaken == pytest.approx((4e-3 / 16 + 4e-3 / 16 * 15 / 16) / 2)  # 1, 5, 5 ms: D is 4 and 0
    assert measure.jitter(sent[:1], took[:1]) is None


def test_what_the_datagrams_of_a_call_met():
    result = made()
    call = {**result.resolved["flows"][0], "name": "call", "transport": "udp", "cc": "none"}
    call["source"] = {"kind": "periodic", "size": 160, "count": 1, "every_s": 0.02}
    result.resolved["flows"].append(call)
    rows = [(20 + i * 0.02, "flow", "call", "delay", 0.03) for i in range(95)]
    rows += [(1.0, "flow", "call", "missing", 1.0)]  # ahead of the window
    rows += [(30 + i, "flow", "call", "missing", 1.0) for i in range(5)]
    rows += [(i * 0.05, "flow", "call", "received", 400.0 * i) for i in range(1200)]
    summary = measure.summarise(replace(result, series=result.series.extend(frame(rows))))
    seen = summary.flows["call"]
    assert (seen.delay_s.n, seen.delay_s.p99, seen.jitter_s, seen.loss) == (95, 0.03, 0, 0.05)
    # Of two machines' clocks only what the unknown difference leaves alone is told, and why the rest is not.
    apart = result.series.with_columns(metric=pl.col("metric").replace("delay", "delay_variation"))
    summary = measure.summarise(replace(result, series=apart))
    seen = summary.flows["call"]
    assert (seen.delay_s, seen.jitter_s, seen.loss) == (None, 0, 0.05)
    assert "flows.call.delay_s: its ends are two machines, whose clocks differ" in " ".join(summary.missing)
    assert summary.jain is not None  # of prague and cubic: a call takes what it needs, and is no competitor
    assert summary.jain_delivery_rate == pytest.approx(summary.jain)


def test_a_claim_may_ask_for_the_utilisation_of_either_direction(tmp_path):
    (tmp_path / "both.yaml").write_text(
        "scenario: both\ntitle: A download that is held back beside an upload\nduration: 12s\n"
        "network:\n  path: [cli, mid, srv]\n  rtt: 20ms\n  bottleneck:\n"
        "    - {at: mid, up: {rate: 10mbit, qdisc: fq_codel}, direction: up}\n"
        "    - {at: mid, down: {rate: 20mbit, qdisc: fq_codel}, direction: down}\n"
        "flows:\n  - {name: upload, cc: cubic}\n"
        "  - {name: download, transport: udp, direction: down, source: {periodic: {size: 1000B, every: 1ms}}}\n"
        "measure: {steady_state: {window: 8s, ends: at end}}\n"
    )
    [ran] = bakeoff.run(str(tmp_path / "both.yaml"), jobs=1, out=tmp_path / "r")
    run = MeasuredRun(ran, ("sent",))
    utilisation = CATALOGUE["utilisation"].take
    # 1000 bytes and 42 of headers each ms are 8.336 Mbit/s, and the upload's ACKs are some permille besides
    assert utilisation(run, "mid>cli") == pytest.approx(8.336 / 20, abs=0.02)
    assert utilisation(run, "mid>cli", begin=5.0) == pytest.approx(8.336 / 20, abs=0.02)
    assert utilisation(run) == utilisation(run, "mid>srv") > 0.98
    with pytest.raises(
        measure.MeasureError, match=r"no queue with a rate 'mid>x' in .*; expected one of: mid>srv, mid>cli"
    ):
        utilisation(run, "mid>x")
