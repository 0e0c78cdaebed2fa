"""The catalog: every run as its source publishes it, selection by name, the references that come with it."""

import csv
import os
import re
from collections import Counter
from pathlib import Path

import pytest

import bakeoff.scenario
from bakeoff.errors import BakeoffError
from bakeoff.scenario import Run, catalog, expand, load

ROOT = Path(__file__).parents[1]
MATRIX = Path(os.environ.get("BAKEOFF_SHARED", ROOT.parent / "shared")) / "reference" / "run_matrix.csv"
REFERENCES = ROOT / "catalog" / "references"

RATE_BPS = {"10Mbit": 10_000_000, "20Mbit": 20_000_000, "50Mbit": 50_000_000, "100Mbit": 100_000_000}

S1_QDISC = {
    "dualpi2": "dualpi2@2020",
    "pfifo(200)": "pfifo limit 200",
    "pfifo(1000)": "pfifo limit 1000",
    "fq_codel": "fq_codel",
}
S6_QDISC = {
    "fq_codel(1q)": "fq_codel flows 1",
    "fq_codel(1q,1ms/20ms)": "fq_codel flows 1 target 1ms interval 20ms",
    "pie": "pie ecn",
    "pie(100p/5ms)": "pie limit 100 target 5ms tupdate 32ms alpha 2 beta 20 ecn",
    "red(400000b)": "red limit 400000 avpkt 1000 adaptive bandwidth 50Mbit ecn",
    "red(150000b)": "red limit 150000 avpkt 1000 adaptive bandwidth 50Mbit ecn",
}
CC = {"prague": "prague@2020-08", "cubic": "cubic", "reno": "reno"}


def rows(batch):
    if not MATRIX.is_file():
        pytest.skip(f"the published run matrix is not here: {MATRIX}")
    with MATRIX.open(newline="") as stream:
        return {row["run_name"]: row for row in csv.DictReader(stream) if row["batch"] == batch}


def runs_of(name):
    return {run.run: run for run in catalog.select(f"l4s-tests/{name}")}


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
    assert len({flow.name for flow in run.flows} | {"ping"}) == 3
    for flow in run.flows:
        assert (flow.from_, flow.to, flow.transport, flow.source.kind) == ("cli", "srv", "tcp", "bulk")
        assert 0 <= flow.start_s < 0.01
        assert flow.stop_s == run.duration_s


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
        assert run.duration_s == float(row["length_s"]) == 180
        assert run.window_s == (118.0, 178.0)
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
        assert run.present["colours"].keys() == {flow.name for flow in run.flows}


def test_every_run_of_s6_as_published():
    published, ours = rows("l4s-s6-rfc3168"), runs_of("s6-rfc3168")
    assert ours.keys() == published.keys()
    assert len(ours) == 24
    for name, row in published.items():
        run = ours[name]
        check_lab(run)
        assert run.duration_s == float(row["length_s"]) == 60
        assert run.window_s == (18.0, 58.0)
        other, ecn = row["cc_or_vs"].removeprefix("prague-vs-").split("-")
        markings = [int(m, 16) for m in row["test_parameters"].split("markings=")[1].split(",")]
        assert [(flow.name, flow.cc) for flow in run.flows] == [("prague", "prague@2020-08"), (other, other)]
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
        assert run.duration_s == float(row["length_s"]) == 60
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
        assert run.duration_s == float(row["length_s"]) == 60
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
    assert {run.window_s for run in expand(load(tmp_path / "s6.yaml"))} == {(19.0, 59.0)}


def test_every_scenario_of_the_catalog_expands():
    for entry in catalog.scenarios():
        runs = expand(load(entry.path), seeds=2)
        assert len(runs) == 2 * entry.n_runs
        assert all(run.suite == entry.suite and run.scenario == entry.scenario == entry.path.stem for run in runs)
        assert len({run.key for run in runs}) == len(runs)
        assert all(len(run.key.split("/")) == 3 for run in runs)
        assert all(Run.from_json(run.to_json()) == run for run in runs)


def test_the_list():
    assert [(e.suite, e.scenario, e.n_runs) for e in catalog.scenarios()] == [
        ("l4s-tests", "s1-rttfair", 192),
        ("l4s-tests", "s5-tunnel", 4),
        ("l4s-tests", "s6-rfc3168", 24),
        ("l4s-tests", "s9-tunnel-reordering", 11),
        ("linux", "pairs", 280),
        ("linux", "single", 112),
    ]
    assert all(entry.title for entry in catalog.scenarios())


@pytest.mark.parametrize(
    ("patterns", "n"),
    [
        ("*", 623),
        ("linux", 392),
        ("l4s-tests", 231),
        ("l4s-tests/", 231),
        (["l4s-tests/s6*"], 24),
        ("l4s-tests/s6-rfc3168", 24),
        ("l4s-tests/s6*/*reno*", 12),
        ("l4s-tests/s6*/*-pie(100p/5ms)-*", 4),
        ("l4s-tests/s6*/*-pie(100p_5ms)-*", 4),
        ("*/*/*-10Mbit-*", 99),
        (r"re:s1.*cubic-vs-cubic.*160ms-10ms$", 8),
        ("re:^l4s-tests/s6", 24),
        (["l4s-tests/s6*", "l4s*/*/*-pie-*"], 24),
        (["l4s*/*/*-pie-*", "*/*/*fq_codel(1q)*"], 8),
    ],
)
def test_select(patterns, n):
    runs = catalog.select(patterns)
    assert len(runs) == len({run.key for run in runs}) == n


def test_select_repeats_each_run_with_every_seed():
    runs = catalog.select("*/s6*/*-pie-*", seeds=3)
    assert Counter(run.seed for run in runs) == {1: 4, 2: 4, 3: 4}
    assert [run.key.partition("~")[2] for run in runs[:3]] == ["", "seed2", "seed3"]


def test_select_takes_a_file(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "duration: 5s\n"
        "network: {path: [a, m, b], rtt: 10ms, bottleneck: {rate: 10mbit, qdisc: fq_codel}}\n"
        "flows: [{name: f}]\n"
    )
    assert [run.key for run in catalog.select(str(path), seeds=2)] == ["local/mine/mine", "local/mine/mine~seed2"]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("l4s-tests/s66*", "'l4s-tests/s66*' names no run of the catalog; did you mean 'l4s-tests/s6-rfc3168'"),
        ("l4stests", "'l4stests' names no run of the catalog; did you mean 'l4s-tests'"),
        ("re:rfc3168$", "'re:rfc3168$' names no run of the catalog; 'bakeoff list'"),
        ("zzz", "'zzz' names no run of the catalog; 'bakeoff list' shows what there is"),
        ("re:(", "'re:(' is no regular expression: "),
        ("none.yaml", "none.yaml: cannot be read: No such file"),
        ([], "no pattern; expected for example"),
        (["l4s-tests", "zzz"], "'zzz' names no run"),
    ],
)
def test_select_nothing(pattern, message):
    with pytest.raises(BakeoffError) as error:
        catalog.select(pattern)
    assert str(error.value).startswith(message)


def test_the_root(monkeypatch, tmp_path):
    assert catalog.root() == ROOT / "catalog"
    monkeypatch.setenv("BAKEOFF_CATALOG", str(tmp_path))
    with pytest.raises(BakeoffError, match="holds no folder 'suites'"):
        catalog.root()
    (tmp_path / "suites").mkdir()
    assert catalog.root() == tmp_path
    assert catalog.scenarios() == []
    monkeypatch.delenv("BAKEOFF_CATALOG")
    monkeypatch.setattr(catalog, "__file__", "/nowhere/bakeoff/scenario/catalog.py")
    with pytest.raises(BakeoffError, match="not found"):
        catalog.root()


# References


def lines(name):
    with (REFERENCES / name).open(newline="") as stream:
        return list(csv.DictReader(stream))


@pytest.mark.parametrize(
    ("name", "n", "units"),
    [
        ("l4s-tests.csv", 76 * 2, {"steady_state.delivery_rate": "bit/s"}),
        ("linux-7.3.csv", 288, {"steady_state.goodput": "bit/s", "steady_state.srtt": "s"}),
        (
            "linux.csv",
            112 * (3 + 2) + 280 * (2 * 3 + 2) - 2,  # two flows got nothing
            {
                "steady_state.goodput": "bit/s",
                "steady_state.srtt": "s",
                "steady_state.srtt_p99": "s",
                "marks": "packet",
                "drops": "packet",
            },
        ),
        ("runs/l4s-tests.csv", 76, {"jain": "1", "ratio": "1"}),
    ],
)
def test_references_name_what_the_catalog_has(name, n, units):
    flows = {run.run: {flow.name for flow in run.flows} for run in catalog.select(["l4s-tests", "linux"])}
    found = lines(name)
    assert len(found) == n
    assert {line["measure"]: line["unit"] for line in found} == units
    for line in found:
        assert line["flow"] in (flows[line["run"]] if line["flow"] else {""})
        assert line["source"]
    keys = Counter((line["run"], line["flow"], line["measure"], line.get("seed")) for line in found)
    assert set(keys.values()) == {1}


def test_published_rates_agree_with_the_published_index():
    rates = {}
    for line in lines("l4s-tests.csv"):
        rates.setdefault(line["run"], []).append(float(line["value"]))
    for line in lines("runs/l4s-tests.csv"):
        x, y = rates[line["run"]]
        # no more than the payload share of a full frame can arrive
        assert x + y <= 50e6 * 1448 / 1514
        if line["measure"] == "jain":
            # (x+y)^2 / (2 (x^2+y^2)) of rates rounded to 0.01 Mbit/s
            assert (x + y) ** 2 / (2 * (x**2 + y**2)) == pytest.approx(float(line["value"]), abs=0.0015)
        else:
            # the loser is known to 0.005 in about 2 Mbit/s: a quarter of a per cent, and the ratio is rounded
            assert max(x, y) / min(x, y) == pytest.approx(float(line["value"]), abs=0.6)


def test_kernel_references_have_four_seeds_of_what_was_repeated():
    seeds = {}
    for line in lines("linux-7.3.csv"):
        if line["measure"] == "steady_state.goodput":
            seeds.setdefault((line["run"], line["flow"]), set()).add(int(line["seed"]))
            assert 1e6 < float(line["value"]) < 47.83e6
        else:
            assert 0.009 < float(line["value"]) < 0.5
    assert set(map(len, seeds.values())) == {1, 4}


def test_the_api_that_other_rooms_use():
    assert set(bakeoff.scenario.__all__) == {"Run", "Scenario", "catalog", "duel", "expand", "json_schema", "load"}


def test_a_plain_word_selects_every_run_whose_name_holds_it():
    assert {run.scenario for run in catalog.select("rttfair")} == {"s1-rttfair"}
    assert len(catalog.select("s6")) == 24


def test_a_run_remembers_its_file_for_messages_only():
    [run] = catalog.select("l4s-tests/s6-rfc3168/ns-prague-vs-cubic-ecn-pie-50Mbit-20ms")
    assert run.source.endswith("s6-rfc3168.yaml")
    assert run.source not in run.to_json()
