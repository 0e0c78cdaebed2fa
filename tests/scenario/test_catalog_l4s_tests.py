"""Every run of l4s-tests' lab, held row by row against the suite's batch files."""

import re

import pytest

from bakeoff.scenario import catalog, expand, load
from run_matrix import IDLE_S, rows, words_of

RATE_BPS = {f"{mbit}Mbit": mbit * 10**6 for mbit in (1, 5, 10, 20, 50, 100)}

S1_QDISC = {
    "dualpi2": "dualpi2@2020",
    "pfifo(200)": "pfifo limit 200",
    "pfifo(1000)": "pfifo limit 1000",
    "fq_codel": "fq_codel",
}
S6_QDISC = {
    "fq_codel(1q)": "fq_codel flows 1",
    "fq_codel(1q,1ms/20ms)": "fq_codel flows 1 target 1ms interval 20ms",
    "pie": "pie@5.4 ecn",
    "pie(100p/5ms)": "pie@5.4 limit 100 target 5ms tupdate 32ms alpha 2 beta 20 ecn",
    "red(400000b)": "red@5.4 limit 400000 avpkt 1000 adaptive bandwidth 50Mbit ecn",
    "red(150000b)": "red@5.4 limit 150000 avpkt 1000 adaptive bandwidth 50Mbit ecn",
}
CC = {"prague": "prague@2020-08", "cubic": "cubic@5.4", "reno": "reno"}


def runs_of(name):
    """The runs that the suite made, without those that it meant."""
    return {run.run: run for run in catalog.select(f"l4s-tests/{name}") if "-meant-" not in run.run}


def ends_of_mid(run):
    """(towards srv, towards cli); nothing else is configured."""
    assert {(i.node, i.peer) for i in run.interfaces} == {("mid", "cli"), ("mid", "srv")}
    by_peer = {i.peer: i for i in run.interfaces}
    return by_peer["srv"], by_peer["cli"]


def milliseconds(text):
    return int(text.removesuffix("ms"))


def netem_ms(line):
    words = line.split()
    assert words[:2] == ["netem", "delay"]
    value, unit = re.fullmatch(r"([0-9]+)(ms|us|s)", words[2]).groups()
    return int(value) * {"s": 1000, "ms": 1, "us": 0.001}[unit]


def check_lab(run):
    """What the suite says of every run of its lab: AccECN on both hosts, no offloads, samples and pings of 50 ms."""
    assert [(n.name, n.kind, n.hz, n.offloads) for n in run.nodes] == [
        ("cli", "host", 250, False),
        ("mid", "bridge", 250, False),
        ("srv", "host", 250, False),
    ]
    # AccECN's option a few times per round trip, as those trees sent it.
    host = {"net.ipv4.tcp_ecn": "3", "net.ipv4.tcp_ecn_option": "1"}
    assert [n.sysctls for n in run.nodes] == [host, {}, host]
    assert [(link.ends, link.rate_bps, link.delay_s, link.mtu) for link in run.links] == [
        (("cli", "mid"), None, 0.0, 1500),
        (("mid", "srv"), None, 0.0, 1500),
    ]
    assert run.sample_interval_s == 0.05
    (ping,) = run.probes
    assert (ping.proto, ping.every_s, ping.ecn, ping.dscp, ping.stop_s) == ("icmp", 0.05, "not-ect", 0, run.duration_s)
    assert ping.start_s == 0
    assert len({flow.name for flow in run.flows} | {"ping"}) == 3
    for flow in run.flows:
        assert (flow.from_, flow.to, flow.transport, flow.source.kind) == ("cli", "srv", "tcp", "bulk")
        assert IDLE_S <= flow.start_s < IDLE_S + 0.01
        assert flow.stop_s == run.duration_s - IDLE_S


def htb_leaf(egress, rate):
    mbit = f"{RATE_BPS[rate] // 10**6}mbit"
    assert egress.qdisc == "htb default 1"
    (only,) = egress.classes
    assert (only.id, only.class_) == ("1", f"rate {mbit} ceil {mbit}")
    return only.child.qdisc


def test_every_run_of_s1_as_published():
    published, ours = rows("l4s-s1-rttfair"), runs_of("s1-rttfair")
    assert ours.keys() == published.keys()
    assert len(ours) == 192
    for name, row in published.items():
        run = ours[name]
        check_lab(run)
        assert run.duration_s == float(row["length_s"]) + 2 * IDLE_S == 190
        assert run.window_s == (118.0 + IDLE_S, 178.0 + IDLE_S)
        ccs = row["test_parameters"].split(";")[0].removeprefix("cc_algos=").split(",")
        markings = [int(m, 16) for m in row["test_parameters"].split("markings=")[1].split(",")]
        assert [flow.cc for flow in run.flows] == [CC[cc] for cc in ccs]
        assert [flow.name for flow in run.flows] == [f"{ccs[0]}-1", f"{ccs[1]}-2"]
        assert [flow.dscp << 2 for flow in run.flows] == markings
        rtts = [milliseconds(row["rtt"]), milliseconds(row["rtt2"])]
        for end in ends_of_mid(run):
            assert not end.mangle
            if row["qdisc"] == "cnq_codel_af":
                mbit = RATE_BPS[row["bandwidth"]] // 10**6
                assert end.egress.model_dump() == {"qdisc": f"cnq_codel_af bandwidth {mbit}mbit"}
            else:
                assert htb_leaf(end.egress, row["bandwidth"]) == S1_QDISC[row["qdisc"]]
            # the ping, in no class, takes the first delay
            assert end.ingress.qdisc == "htb default 10"
            assert [c.id for c in end.ingress.classes] == ["10", "11"]
            assert [c.filters[0].dscp << 2 for c in end.ingress.classes] == markings
            assert [2 * netem_ms(c.child.qdisc) for c in end.ingress.classes] == rtts
            assert all(c.child.qdisc.endswith("limit 10000") for c in end.ingress.classes)
        assert run.present["rate_axis_bps"] == [0, {"10Mbit": 12_000_000, "50Mbit": 55_000_000}[row["bandwidth"]]]
        assert run.present["rtt_axis_s"] == [0, 2.0 if row["qdisc"].startswith("pfifo") else 1.0]


def test_every_run_of_s6_as_published():
    published, ours = rows("l4s-s6-rfc3168"), runs_of("s6-rfc3168")
    assert ours.keys() == published.keys()
    assert len(ours) == 24
    for name, row in published.items():
        run = ours[name]
        check_lab(run)
        assert run.duration_s == float(row["length_s"]) + 2 * IDLE_S == 70
        assert run.window_s == (18.0 + IDLE_S, 58.0 + IDLE_S)
        other, ecn = row["cc_or_vs"].removeprefix("prague-vs-").split("-")
        markings = [int(m, 16) for m in row["test_parameters"].split("markings=")[1].split(",")]
        assert [(flow.name, flow.cc) for flow in run.flows] == [("prague", "prague@2020-08"), (other, CC[other])]
        assert [flow.dscp << 2 for flow in run.flows] == markings
        ahead, back = ends_of_mid(run)
        for end in (ahead, back):
            assert htb_leaf(end.egress, row["bandwidth"]) == S6_QDISC[row["qdisc"]]
            assert end.ingress.model_dump() == {"qdisc": "netem delay 10ms limit 1000000"}
            assert 2 * netem_ms(end.ingress.qdisc) == milliseconds(row["rtt"])
        assert not ahead.mangle
        bleached = [(rule.match.proto, rule.match.dscp, rule.set_dscp, rule.set_ecn) for rule in back.mangle]
        assert bleached == ([("tcp", 0x8C >> 2, 0, "not-ect")] if ecn == "noecn" else [])
        assert run.point == {"other": other, "ecn": ecn, "qdisc": row["qdisc"]}
        assert run.present["rtt_axis_s"] == [0.02, 0.07]
        assert run.present["rate_axis_bps"] == [0, 55_000_000]


def test_every_run_of_s5_as_published():
    published, ours = rows("l4s-s5-tunnel"), runs_of("s5-tunnel")
    assert ours.keys() == published.keys()
    assert len(ours) == 4
    for name, row in published.items():
        run = ours[name]
        assert [(n.name, n.kind, n.offloads) for n in run.nodes] == [
            ("c2", "host", False),
            ("m1", "bridge", False),
            ("s2", "host", False),
        ]
        assert run.duration_s == float(row["length_s"]) + 2 * IDLE_S == 70
        ccs = row["test_parameters"].split(";")[0].removeprefix("cc_algos=").split(",")
        markings = [int(m, 16) for m in row["test_parameters"].split("markings=")[1].split(",")]
        assert [(flow.cc, flow.dscp << 2) for flow in run.flows] == [
            (CC[cc], mark) for cc, mark in zip(ccs, markings, strict=True)
        ]
        (tunnel,) = run.tunnels
        assert tunnel.name == row["tunnel"]
        assert tunnel.kind == {"wireguard": "wireguard", "ipfou": "fou"}[row["tunnel"]]
        # machines of their own: the middlebox sees one flow each way
        assert (tunnel.ends, tunnel.inner_hash) == (("c2", "s2"), False)
        assert {traffic.tunnel for traffic in (*run.flows, *run.probes)} == {tunnel.name}
        by_peer = {end.peer: end for end in run.interfaces}
        assert by_peer.keys() == {"c2", "s2"}
        for end in by_peer.values():
            assert end.node == "m1"
            assert htb_leaf(end.egress, row["bandwidth"]) == row["qdisc"] == "fq_codel"
            assert 2 * netem_ms(end.ingress.qdisc) == milliseconds(row["rtt"])
        # bleach_ecn left 0x23
        assert [(rule.match.proto, rule.match.dscp, rule.set_ecn) for rule in by_peer["c2"].mangle] == [
            ("tcp", 0x23, "not-ect")
        ]
        assert not by_peer["s2"].mangle


def test_every_run_of_s9_as_published():
    published, ours = rows("l4s-s9-tunnel-reordering"), runs_of("s9-tunnel-reordering")
    assert ours.keys() == published.keys()
    assert len(ours) == 11
    for name, row in published.items():
        run = ours[name]
        check_lab(run)
        assert run.duration_s == float(row["length_s"]) + 2 * IDLE_S == 70
        ccs = row["test_parameters"].removesuffix(";").removeprefix("cc_algos=").split(",")
        assert [(flow.name, flow.cc, flow.dscp) for flow in run.flows] == [(cc, CC[cc], 0) for cc in ccs]
        (tunnel,) = run.tunnels
        assert tunnel.kind == row["tunnel"] == "ipsec"
        assert name.startswith(f"ns-ipsec-replay-win-{tunnel.replay_window}-")
        assert (tunnel.ends, tunnel.cipher) == (("cli", "srv"), "aes-cbc-hmac-sha256")
        assert {traffic.tunnel for traffic in (*run.flows, *run.probes)} == {"ipsec"}
        for end in ends_of_mid(run):
            assert htb_leaf(end.egress, row["bandwidth"]) == "dualpi2@2020"
            assert 2 * netem_ms(end.ingress.qdisc) == milliseconds(row["rtt"])
            assert not end.mangle
        assert run.present["rtt_axis_s"] == [0.02, 0.5]


def test_the_code_of_the_suite_ends_its_window_before_the_last_sample(tmp_path):
    path = catalog.root() / "suites" / "l4s-tests" / "s6-rfc3168.yaml"
    (tmp_path / "s6.yaml").write_text(path.read_text().replace("ends: 2s before end", "ends: 1s before last sample"))
    assert {run.window_s for run in expand(load(tmp_path / "s6.yaml"))} == {(19.0 + IDLE_S, 59.0 + IDLE_S)}


def check_flows(run, row):
    """Congestion controls, marks and starts of one or two flows."""
    ccs = words_of(row, "cc_algos") or words_of(row, "cc_algo")
    marks = [int(mark, 16) for mark in words_of(row, "markings")] or [0] * len(ccs)
    assert [flow.cc for flow in run.flows] == [CC[cc] for cc in ccs]
    assert [flow.dscp << 2 for flow in run.flows] == marks
    starts = [0.0, 10.0][: len(ccs)] if "stream_delays" in row["test_parameters"] else [0.0] * len(ccs)
    assert [int(flow.start_s * 10) / 10 - IDLE_S for flow in run.flows] == starts  # up to 10 ms later
    assert {flow.stop_s for flow in run.flows} == {run.duration_s - IDLE_S} == {IDLE_S + float(row["length_s"])}


def changed_rates(run):
    """(time, rate) of the class changes, which are the same towards both hosts."""
    ahead, back = ([c for c in run.changes if c.peer == peer] for peer in ("srv", "cli"))
    assert [(c.at_s, c.action.class_) for c in ahead] == [(c.at_s, c.action.class_) for c in back]
    return [(c.at_s, c.action.class_.split()[1]) for c in ahead]


BURST = "netem delay 200us slot 800us 5ms packets {} limit 10000"


@pytest.mark.parametrize("scenario", ["s2-codel-rate-step", "s3-codel-variable-rate"])
def test_every_run_with_a_changing_rate_as_in_the_batch(scenario):
    published, ours = rows(f"l4s-{scenario}"), runs_of(scenario)
    assert ours.keys() == published.keys()
    step = scenario.startswith("s2")
    for name, row in published.items():
        run = ours[name]
        check_flows(run, row)
        # The suite's script counts from the set-up, as the run does: 5 s before the flow.
        expected = (
            [(30.0, row["bandwidth1"])] if step else [(25, "50mbit"), (30, "10mbit"), (35, "90mbit"), (50, "5mbit")]
        )
        assert changed_rates(run) == expected
        for end in ends_of_mid(run):
            leaf = htb_leaf(end.egress, row["bandwidth"])
            if row["qdisc"] == "dualpi2":
                assert leaf == "dualpi2@2020"
            else:
                assert leaf == ("fq_codel" if step else f"fq_codel {'ecn' if row['cc_or_vs'] == 'prague' else 'noecn'}")
            assert 2 * netem_ms(end.ingress.qdisc) == milliseconds(row["rtt"])
            assert end.ingress.qdisc.endswith("limit 100000")
            child = BURST.format(16 if step else 32) if name.startswith("ns-bursty") else None
            assert (end.ingress.child and end.ingress.child.qdisc) == child


def test_every_run_of_s4_as_in_the_batch():
    published, ours = rows("l4s-s4-bidir-asym"), runs_of("s4-bidir-asym")
    assert ours.keys() == published.keys()
    for name, row in published.items():
        run = ours[name]
        # rrul_be: four flows each way, three UDP probes and a ping
        assert [(flow.from_, flow.to) for flow in run.flows] == [("cli", "srv")] * 4 + [("srv", "cli")] * 4
        assert {flow.cc for flow in run.flows} == {CC[row["cc_or_vs"]]}
        assert [probe.proto for probe in run.probes] == ["icmp", "udp", "udp", "udp"]
        limits = re.findall(r"[0-9]+", row["qdisc"]) if row["qdisc"].startswith("pfifo") else [None, None]
        for end, rate, limit in zip(ends_of_mid(run), row["bandwidth"].split("/"), limits, strict=True):
            line = {"fq_codel": "fq_codel", "dualpi2": "dualpi2@2020"}.get(row["qdisc"], f"pfifo limit {limit}")
            assert htb_leaf(end.egress, rate) == line
            assert 2 * netem_ms(end.ingress.qdisc) == milliseconds(row["rtt"])


@pytest.mark.parametrize(
    "scenario", ["s7-oneflow", "s8-rfc3168-second", "s10-ect1-gaming", "s12-pacing", "s13-rfc3168-prague-second"]
)
def test_every_run_of_one_rate_as_in_the_batch(scenario):
    published, ours = rows(f"l4s-{scenario}"), runs_of(scenario)
    assert ours.keys() == published.keys()
    for name, row in published.items():
        run = ours[name]
        check_flows(run, row)
        for end in (i for i in run.interfaces if i.node == "mid"):
            line = S6_QDISC.get(row["qdisc"], S1_QDISC.get(row["qdisc"]))
            assert htb_leaf(end.egress, row["bandwidth"]) == line
            assert end.ingress.model_dump() == {"qdisc": f"netem delay {milliseconds(row['rtt']) // 2}ms limit 1000000"}


@pytest.mark.parametrize("scenario", ["s8-rfc3168-second", "s13-rfc3168-prague-second"])
def test_noecn_bleaches_the_conventional_flow_only(scenario):
    for name, run in runs_of(scenario).items():
        rules = [rule for i in run.interfaces for rule in i.mangle]
        found = [(rule.match.proto, rule.match.dscp, rule.set_dscp, rule.set_ecn) for rule in rules]
        assert found == ([("tcp", 0x23, 0, "not-ect")] if "-noecn-" in name else [])


@pytest.mark.parametrize("scenario", ["s10-ect1-gaming", "s11-ect1-gaming-latency"])
def test_gaming_sets_ect1_and_only_what_was_meant_takes_ecn_off_the_handshake(scenario):
    runs = catalog.select(f"l4s-tests/{scenario}")
    assert len(runs) == 12
    for run in runs:
        rules = [rule for i in run.interfaces for rule in i.mangle]
        assert {rule.match.dscp for rule in rules} <= {0x23}
        plain = scenario.startswith("s11") and "ect1" not in run.run
        assert any(rule.set_ecn == "ect1" for rule in rules) != plain
        assert any(rule.clear_syn_ecn for rule in rules) == ("-meant-" in run.run)
        # 'ecn' leaves SYNs alone, the others set the ToS byte of all packets
        alone = {rule.match.syn for rule in rules if rule.set_ecn == "ect1"}
        assert alone == (set() if plain else {False} if "-cubic-ecn-" in run.run else {None})


def test_every_run_of_s11_as_in_the_batch():
    published, ours = rows("l4s-s11-ect1-gaming-latency"), runs_of("s11-ect1-gaming-latency")
    assert ours.keys() == published.keys()
    for name, row in published.items():
        run = ours[name]
        check_flows(run, row)
        for end in ends_of_mid(run):
            if row["qdisc"] == "cake":
                assert end.egress.model_dump() == {"qdisc": "cake bandwidth 50mbit"}
            else:
                assert htb_leaf(end.egress, row["bandwidth"]) == "dualpi2@2020"


def test_paced_flows_have_netperfs_rates():
    # -q 6250000 and 5000000 bytes a second
    for scenario, rates in (("s10-ect1-gaming", [50, 50]), ("s11-ect1-gaming-latency", [50, 40])):
        for run in runs_of(scenario).values():
            assert [flow.max_pacing_rate_bps for flow in run.flows] == [mbit * 10**6 for mbit in rates]


def test_fq_stands_at_the_sender_where_the_name_says_so():
    for name, run in runs_of("s12-pacing").items():
        queues = [i.egress.qdisc for i in run.interfaces if i.node == "cli" and i.egress]
        assert queues == (["fq"] if "-fq-" in name else [])
