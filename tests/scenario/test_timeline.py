"""The state of links and qdiscs after timed changes: from known changes, and as the simulator has it."""

import sys
from collections import Counter

import pytest

import bakeoff
from bakeoff import measure
from bakeoff.measure.bottleneck import capacity, rates
from bakeoff.measure.delays import base_rtt, base_rtt_at, mean_base_rtt
from bakeoff.plots.plotted_run import PlottedRun
from bakeoff.scenario import timeline as timelines
from bakeoff.scenario.run import Qdisc
from bakeoff.scenario.timeline import Timeline
from scenario_texts import write
from synthetic import as_run, made, resolved

SRV = "mid", "srv"


def with_changes(*changes, end=SRV, side="egress"):
    """The document of the stand-in's run with (time, action) at one end."""
    document = resolved()
    document["changes"] = [
        {
            "at_s": at,
            "node": end[0],
            "peer": end[1],
            "action": action if action["kind"] == "link" else {"side": side, **action},
        }
        for at, action in changes
    ]
    return document


def change(words, handle=""):
    return {"kind": "qdisc-change", "handle": handle, "qdisc": words}


def put(tree, handle=""):
    return {"kind": "qdisc-replace", "handle": handle, "qdisc": tree}


def test_a_change_is_in_effect_from_its_time_on_and_none_touches_the_document():
    link = {"kind": "link", "rate_bps": 10_000_000, "delay_s": 0.003, "up": False}
    run = as_run(with_changes((20.0, link), (10.0, change("x"))))
    before = run.to_json()
    line = Timeline(run)
    state = line.at(SRV, 19.9)
    assert (state.rate_bps, state.delay_s, state.up, state.egress.qdisc) == (float("inf"), 0.0, True, "x")
    state = line.at(SRV, 20.0)
    assert (state.rate_bps, state.delay_s, state.up, state.egress.qdisc) == (10e6, 0.003, False, "x")
    assert line.at(("srv", "mid"), 20.0).delay_s == 0.0
    assert line.at(SRV, 5.0).egress == run.interfaces[1].egress
    assert run.model_dump_json() == before
    assert line.times([SRV], (10.0, 30.0)) == [10.0, 20.0, 30.0]


def test_of_two_changes_at_once_the_later_in_the_document_counts():
    links = [{"kind": "link", "rate_bps": rate} for rate in (1_000_000, 2_000_000)]
    run = as_run(with_changes(*((10.0, link) for link in links)))
    assert Timeline(run).at(SRV, 10.0).rate_bps == 2e6


def test_handles_lead_below_classes_and_children():
    run = with_changes(
        (1.0, {"kind": "class-change", "id": "1", "class": "rate 7mbit"}),
        (2.0, put({"qdisc": "netem delay 5ms", "child": {"qdisc": "pfifo"}}, "1")),
        (3.0, change("pfifo limit 9", "1/child")),
        (4.0, put({"qdisc": "fq_codel"})),
        (5.0, change("pfifo limit 7", "1/child")),
    )
    line = Timeline(as_run(run))
    [only] = line.at(SRV, 3.0).egress.classes
    assert (only.class_, only.child) == (
        "rate 7mbit",
        Qdisc(qdisc="netem delay 5ms", child=Qdisc(qdisc="pfifo limit 9")),
    )
    assert line.at(SRV, 5.0).egress == Qdisc(qdisc="fq_codel")


@pytest.mark.parametrize(
    ("before", "words", "rate"),
    [
        ("cake bandwidth 50mbit", "cake rtt 50ms", 50e6),
        ("cake bandwidth 50mbit", "cake unlimited", float("inf")),
        ("cake bandwidth 50mbit", "cake bandwidth 20mbit", 20e6),
        ("netem rate 50mbit delay 5ms", "netem delay 9ms", 50e6),
        ("netem rate 50mbit", "netem rate 20mbit", 20e6),
        ("netem rate 50mbit 20 48 5 delay 5ms", "netem delay 9ms", 50e6),
    ],
)
def test_a_change_without_a_rate_keeps_the_one_that_there_was(before, words, rate):
    run = with_changes((30.0, change(words)))
    run["interfaces"][1]["egress"] = {"qdisc": before}
    assert [piece[2] for piece in rates(as_run(run), "mid>srv", (29.0, 31.0))][-1] == rate


def test_a_netem_keeps_what_its_rate_charges_for_a_packet():
    run = with_changes((30.0, change("netem delay 9ms")))
    run["interfaces"][1]["egress"] = {"qdisc": "netem rate 50mbit 1514 delay 5ms"}
    # each frame of 1514 bytes counts twice
    assert rates(as_run(run), "mid>srv", (29.0, 31.0), frame=1514) == [(29.0, 31.0, 25e6)]


def test_classes_of_a_tree_that_was_replaced_are_gone():
    run = with_changes(
        (20.0, {"kind": "class-change", "id": "1", "class": "rate 10mbit"}),
        (30.0, put({"qdisc": "htb default 1", "classes": [{"id": "1", "class": "rate 30mbit"}]})),
    )
    assert rates(as_run(run), "mid>srv", (10.0, 40.0)) == [(10.0, 20.0, 50e6), (20.0, 30.0, 10e6), (30.0, 40.0, 30e6)]


def test_the_delay_of_a_netem_below_a_class_counts_from_its_change_on():
    run = as_run(with_changes((30.0, put({"qdisc": "netem delay 30ms"}, "1"))))
    flow = run.flows[0]
    assert [base_rtt_at(run, flow, at) for at in (0.0, 30.0)] == pytest.approx([0.020, 0.050])
    # window 18 s to 58 s
    assert mean_base_rtt(run, flow) == pytest.approx((12 * 0.020 + 28 * 0.050) / 40)
    assert base_rtt(run, flow) == pytest.approx(0.020)


def test_the_capacity_is_that_of_the_narrowest_place_at_each_time():
    document = with_changes((20.0, {"kind": "class-change", "id": "1", "class": "rate 10mbit"}))
    link = {"kind": "link", "rate_bps": 30_000_000}
    document["changes"].append({"at_s": 10.0, "node": "cli", "peer": "mid", "action": link})
    run = as_run(document)
    assert capacity(run, run.flows[0], (0.0, 60.0)) == ([0.0, 10.0, 20.0, 60.0], [50e6, 30e6, 10e6])


def many(n):
    steps = [{"kind": "class-change", "id": "1", "class": f"rate {5 + i % 7}mbit"} for i in range(n)]
    result = made()
    result.resolved["changes"] = with_changes(*((50.0 * i / n, step) for i, step in enumerate(steps, 1)))["changes"]
    return result


def test_the_work_grows_with_the_number_of_changes_and_not_faster(monkeypatch):
    counted = Counter()

    def counting(module, name):
        real = getattr(module, name)

        def call(*args):
            counted[name] += 1
            return real(*args)

        monkeypatch.setattr(module, name, call)

    counting(timelines, "_after")
    counting(sys.modules["bakeoff.measure.bottleneck"], "_shaper")
    work = []
    for n in (100, 400):
        counted.clear()
        result = many(n)
        measure.summarise(result)
        shown = PlottedRun(result)
        assert len(shown.capacity("mid>srv")[0]) > n
        mean_base_rtt(result.run, result.run.flows[0])
        work.append(sum(counted.values()))
    assert 0 < work[1] <= 4.1 * work[0]


@pytest.mark.parametrize(
    ("actions", "after_s"),
    [
        ('{at: 2s, interface: "mid>srv", link: {delay: 30ms}}', 0.050),
        ('{at: 2s, interface: "srv>mid", link: {delay: 1ms}}', 0.021),
        ("{at: 2s, rtt: 40ms}", 0.040),
        ('{at: 2s, interface: "mid>srv", side: ingress, change: netem delay 3ms}', 0.013),
    ],
)
def test_the_base_rtt_is_what_the_simulator_has(tmp_path, actions, after_s):
    path = write(
        tmp_path,
        f"""
        scenario: x
        title: x
        duration: 4s
        start_jitter: 0s
        network: {{path: [cli, mid, srv], rtt: 20ms, bottleneck: {{at: mid, rate: 100mbit, qdisc: pfifo}}}}
        flows: [{{name: a, cc: cubic, source: {{rate: 10kbit, size: 100B}}}}]
        probes: [{{name: ping, type: icmp, every: 100ms}}]
        changes: [{actions}]
        """,
    )
    [result] = bakeoff.run(str(path), out=tmp_path / "out")
    at, rtt = result.parts["probe", "ping", "rtt"]
    probe = result.run.probes[0]
    assert base_rtt_at(result.run, probe, 3.0) == pytest.approx(after_s)
    # two frames of 98 bytes at 100 Mbit/s take 16 us
    assert rtt[at > 3.0] == pytest.approx(after_s, abs=30e-6)
    assert base_rtt(result.run, probe) == pytest.approx(rtt[0], abs=30e-6)
