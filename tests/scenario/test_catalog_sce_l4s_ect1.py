"""Every run of sce-l4s-ect1 (April 2020), held row by row against the suite's batch files."""

import re

import pytest

from bakeoff.scenario import catalog
from run_matrix import IDLE_S, rows, words_of

CC = {"cubic": "cubic@5.4", "cubic-sce": "cubic-sce", "prague": "prague@2020-04", "reno-sce": "reno-sce"}
SCENARIOS = {
    "s1-oneflow": (9, 9),
    "s2-twoflow": (39, 42),
    "s3-bottleneck-shift": (2, 2),
    "s4-capacity-reduction": (4, 4),
    "s5-burstiness": (2, 4),
    "s6-jitter": (3, 3),
}
RED = "red@5.4 limit {} avpkt 1000 adaptive bandwidth 50Mbit ecn"
PIE = "pie@5.4 limit {} target {} tupdate 32ms alpha 2 beta 20 ecn"
LEAF = {
    "dualpi2": "dualpi2@2020",
    "pfifo(1000)": "pfifo limit 1000",
    "pfifo(50)": "pfifo limit 50",
    "codel1q": "fq_codel flows 1 ecn",
    "codel1q(40ms)": "fq_codel flows 1 ecn target 3ms interval 40ms",
    "codel1q(20ms)": "fq_codel flows 1 ecn target 1ms interval 20ms",
    "red(150000)": RED.format(150000),
    "red(400000)": RED.format(400000),
    "pie": "pie@5.4 ecn",
    "pie(noecn)": "pie@5.4 noecn",
    "pie(100p/5ms)": PIE.format(100, "5ms"),
    "pie(100p/20ms)": PIE.format(100, "20ms"),
    "pie(1000p/20ms)": PIE.format(1000, "20ms"),
}
# Shape by themselves: (kind, words).
ROOT = {
    "twin_codel_af": ("twin_codel_af", "sce-thresh 4"),
    "lfq_cobalt": ("lfq_cobalt", "sce-thresh 8"),
    "cake": ("cake@sce", "sce"),
}


def halves(scenario):
    """(half, published rows, our runs) of the L4S and of the SCE half."""
    for half in ("l4s", "sce"):
        name = f"{half}-{scenario}"
        yield half, rows(name, "sce-l4s-ect1"), {run.run: run for run in catalog.select(f"sce-l4s-ect1/{name}")}


def check_egress(egress, label, mbit):
    if label in ROOT:
        kind, words = ROOT[label]
        assert egress.model_dump() == {"qdisc": f"{kind} bandwidth {mbit}mbit {words}"}
        return
    [only] = egress.classes
    assert (egress.qdisc, only.class_, only.child.qdisc) == (
        "htb default 1",
        f"rate {mbit}mbit ceil {mbit}mbit",
        LEAF[label],
    )


@pytest.mark.parametrize(("scenario", "n"), SCENARIOS.items())
def test_every_run_as_in_the_batches(scenario, n):
    for (half, published, ours), count in zip(halves(scenario), n, strict=True):
        assert ours.keys() == published.keys()
        assert len(ours) == count
        for name, row in published.items():
            run = ours[name]
            assert run.duration_s == float(row["length_s"]) + 2 * IDLE_S
            ccs = words_of(row, "cc_algos") or words_of(row, "cc_algo")
            assert [flow.cc for flow in run.flows] == [CC[cc] for cc in ccs]
            assert [int(flow.start_s) - IDLE_S for flow in run.flows] == [0, 10][: len(ccs)]
            # ToS 0x10 is the low-latency class, in the SCE half at 20 ms
            marks = [int(m, 16) for m in words_of(row, "markings") or words_of(row, "marking")] or [0] * len(ccs)
            assert [flow.dscp << 2 for flow in run.flows] == marks
            assert not any(node.offloads for node in run.nodes)
            sysctls = {"l4s": ("3", None), "sce": ("1", "1")}[half]
            for node in run.nodes:
                if node.kind == "host":
                    found = tuple(node.sysctls.get(f"net.ipv4.{name}") for name in ("tcp_ecn", "tcp_sce"))
                    assert found == sysctls
            for end in run.interfaces:
                assert end.node == "mid"
                check_egress(end.egress, row["qdisc"], row["bandwidth"].removesuffix("Mbit"))
                delay = int(row["rtt"].removesuffix("ms")) // 2
                assert end.ingress.qdisc == f"netem delay {delay}ms limit 1000000"


@pytest.mark.parametrize("scenario", ["s5-burstiness", "s6-jitter"])
def test_bursts_and_jitter_are_a_second_netem(scenario):
    for _, _, ours in halves(scenario):
        for name, run in ours.items():
            jitter = re.search(r"netem delay .*", name)
            child = jitter[0] if jitter else "netem delay 200us slot 800us 10ms packets 42 limit 512"
            assert {end.ingress.child.qdisc for end in run.interfaces} == {child}


def test_the_bottleneck_shifts_to_pie_and_back():
    for half, published, ours in halves("s3-bottleneck-shift"):
        for name, row in published.items():
            # at a third and two thirds of the length, from the set-up on
            third = float(row["length_s"]) / 3
            for peer in ("cli", "srv"):
                away, back = (change for change in ours[name].changes if change.peer == peer)
                assert (away.at_s, back.at_s) == (third, 2 * third)
                check_egress(away.action.qdisc, "pie(noecn)", 50)
                check_egress(back.action.qdisc, "dualpi2" if half == "l4s" else "cake", 50)


def test_the_capacity_is_reduced_and_restored():
    for half, published, ours in halves("s4-capacity-reduction"):
        for name, row in published.items():
            third = float(row["length_s"]) / 3
            for peer in ("cli", "srv"):
                changes = [change for change in ours[name].changes if change.peer == peer]
                assert [change.at_s for change in changes] == [third, 2 * third]
                texts = [change.action.class_ if half == "l4s" else change.action.qdisc for change in changes]
                for text, rate in zip(texts, [row["bandwidth1"], "50mbit"], strict=True):
                    assert f" {rate} " in f"{text} "
