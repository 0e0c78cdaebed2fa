"""Every run of sce-l4s-bakeoff (November 2019), held row by row against the suite's batch files."""

import itertools
import re

import pytest

from bakeoff.scenario import catalog
from run_matrix import IDLE_S, rows, words_of

CC = {
    "cubic": "cubic@5.4",
    "dctcp": "dctcp",
    "dctcp-sce": "dctcp-sce@2019",
    "prague": "prague@2019-11",
    "reno": "reno",
    "reno-sce": "reno-sce@2019",
}
# One batch for one flow, one for two; together a scenario.
BATCHES = {
    "s1-basics": 21,
    "s2-fq-codel": 21,
    "s3-codel": 21,
    "s4-gaming": 21,
    "s5-three-bottlenecks": 21,
    "s6-fifo-fq-codel": 21,
}
# What the batch's label says of each machine on the way, in order.
QUEUE = {
    "dualpi2": "dualpi2@2019",
    "fq_codel": "fq_codel",
    "fq_codel(1q)": "fq_codel flows 1",
    "pfifo": "pfifo_fast",
    "cake(fq)": "cake@sce sce flows besteffort",
}
SCE_ENDS = {
    "c1": {"net.ipv4.tcp_ecn": "1", "net.ipv4.tcp_pacing_ca_ratio": "40", "net.ipv4.tcp_pacing_ss_ratio": "100"},
    "s1": {"net.ipv4.tcp_sce": "1"},
}
ENDS = {
    "l4s": {name: {"net.ipv4.tcp_ecn": "3", "net.ipv4.tcp_ecn_option": "1"} for name in ("c2", "s2")},
    "sce": SCE_ENDS,
}
DELAY_AT = {
    "l4s": {"s1": "m3", "s2": "m2", "s3": "m2", "s4": "m3", "s5": "m2", "s6": "m1"},
    "sce": {"s1": "m2", "s2": "m1", "s3": "m1", "s4": "m2", "s5": "m3", "s6": "m1"},
}


def both(scenario):
    """(half, number, published rows, our runs) of the L4S and of the SCE half."""
    number = scenario.partition("-")[0]
    for half in ("l4s", "sce"):
        published = {}
        for flows in "12":
            published |= rows(f"{half}-{number}-{flows}", "sce-l4s-bakeoff")
        runs = catalog.select(f"sce-l4s-bakeoff/{half}-{scenario}")
        ran = (run for run in runs if run.point.get("m2") != "as meant" and run.point["cc"] != "dctcp-sce_paced")
        yield half, number, published, {run.run: run for run in ran}


def expected(label, rate):
    """(class's rate, leaf) or (none, root) of each queue that the batch names, in the order of the path."""
    found = []
    for part in label.split("→"):
        shaped = re.fullmatch(r"htb\((.+)Mbit\)\+(.+)", part)
        cake = re.fullmatch(r"cake\((\d+)Mbit (fq|1q)\)", part)
        if shaped:
            found.append((round(float(shaped[1]) * 1e6), QUEUE[shaped[2]]))
        elif cake:
            words = "flowblind besteffort" if cake[2] == "1q" else "flows besteffort"
            found.append((None, f"cake@sce bandwidth {cake[1]}mbit sce {words}"))
        else:
            found.append((None, QUEUE[part]))
    assert rate == "50Mbit"
    return found


def test_the_cake_that_tc_refused_is_there_as_it_was_meant():
    runs = {run.run: run for run in catalog.select("sce-l4s-bakeoff/sce-s5*")}
    assert len(runs) == 2 * 21
    for name, meant in runs.items():
        if name.endswith("-meant"):
            ran = runs[name.removesuffix("-meant")]
            cake = [i for i in meant.interfaces if i.node == "m2"]
            assert [i.egress.qdisc for i in cake] == ["cake@sce bandwidth 100mbit sce flows besteffort"] * 2
            assert [i for i in meant.interfaces if i.node != "m2"] == ran.interfaces
            # the same flows at the same times
            assert (meant.flows, meant.nodes) == (ran.flows, ran.nodes)


def queue_of(egress):
    if not egress.classes:
        return None, egress.qdisc
    assert egress.qdisc == "htb default 1"
    [only] = egress.classes
    number, unit = re.fullmatch(r"rate (\S+?)(mbit|kbit) ceil \1\2", only.class_).groups()
    return int(number) * {"mbit": 10**6, "kbit": 10**3}[unit], only.child.qdisc


@pytest.mark.parametrize(("scenario", "n"), BATCHES.items())
def test_every_run_as_in_the_batches(scenario, n):
    for half, number, published, ours in both(scenario):
        assert ours.keys() == published.keys()
        assert len(ours) == (18 if (half, number) == ("sce", "s4") else n)
        for name, row in published.items():
            run = ours[name]
            client, server = ENDS[half]
            path = [client, "m1", "m2", "m3", "m4", server]
            assert [node.name for node in run.nodes] == path
            assert all(node.offloads for node in run.nodes)  # no script of the suite calls ethtool
            assert {node.name: node.sysctls for node in run.nodes if node.kind == "host"} == ENDS[half]
            assert (run.duration_s - 2 * IDLE_S, run.sample_interval_s) == (float(row["length_s"]), 0.1) == (60, 0.1)
            # away from the client and back, each machine has the same queue
            onward = dict(itertools.pairwise(path))
            back = dict(zip(path[1:], path, strict=False))
            for way in (onward, back):
                queues = [
                    queue_of(i.egress) for node in path for i in run.interfaces
                    if i.node == node and i.peer == way.get(node) and i.egress
                ]  # fmt: skip
                meant = expected(row["qdisc"], row["bandwidth"])
                # tc refused the first queue of this batch
                assert queues == (meant[1:] if (half, number) == ("sce", "s5") else meant)
            half_rtt = int(row["rtt"].removesuffix("ms")) * 500
            delays = {(i.node, i.peer): i.ingress.qdisc for i in run.interfaces if i.ingress}
            at = DELAY_AT[half][number]
            assert delays.keys() == {(at, onward[at]), (at, back[at])}
            for line in delays.values():
                value, unit = re.fullmatch(r"netem delay (\d+)(ms|us|s) limit 1000000", line).groups()
                assert int(value) * {"s": 10**6, "ms": 1000, "us": 1}[unit] == half_rtt


@pytest.mark.parametrize("scenario", BATCHES)
def test_flows_and_probes_as_in_the_batches(scenario):
    for _, number, published, ours in both(scenario):
        for name, row in published.items():
            run = ours[name]
            ccs = words_of(row, "cc_algos") or words_of(row, "tcp_cong_control")
            assert [flow.cc for flow in run.flows] == [CC[cc] for cc in ccs]
            assert [int(flow.start_s) - IDLE_S for flow in run.flows] == [0, 10][: len(ccs)]
            marks = [int(mark) for mark in words_of(row, "markings")] or [0] * len(ccs)
            assert [flow.dscp << 2 for flow in run.flows] == marks
            assert {(p.start_s, p.stop_s) for p in run.probes} == {(0, run.duration_s)}
            assert [(p.proto, p.every_s, p.ecn) for p in run.probes] == [
                ("icmp", 0.1, ecn) for ecn in ("not-ect", "ect1")[: len(ccs)]
            ]
            rules = [rule for i in run.interfaces for rule in i.mangle]
            assert len(rules) == (number == "s4")
            for rule in rules:
                # the whole ToS byte becomes 1, of everything but SYNs, or of what has ToS 4
                assert (rule.match.proto, rule.match.syn, rule.set_dscp, rule.set_ecn) == ("tcp", False, 0, "ect1")
                assert rule.match.dscp == (1 if len(ccs) == 2 else None)


def test_the_variant_that_paces_differs_by_that_alone():
    runs = {run.run: run.model_dump() for run in catalog.select("sce-l4s-bakeoff/sce-s4-gaming/dctcp-sce*")}
    assert len(runs) == 6
    for rtt in ("0ms", "10ms", "80ms"):
        plain, paced = (runs[f"dctcp-sce{suffix}-50Mbit-{rtt}"] for suffix in ("", "_paced"))
        assert [flow["cc"] for flow in plain["flows"]] == ["dctcp-sce@2019"]
        assert [flow["cc"] for flow in paced["flows"]] == ["dctcp-sce@2019 pacing on"]
        names = {key for key in plain if plain[key] != paced[key]}
        assert names <= {"run", "title", "flows", "point", "digest"}, names
