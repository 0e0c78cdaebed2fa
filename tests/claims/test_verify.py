"""`bakeoff verify` on a small catalog: what it does, prints and keeps, and that it turns red when something breaks."""

import json
import re
import shutil
from pathlib import Path

import pytest

import bakeoff

SCENARIO = """
scenario: one
title: "{cc} at {rtt}"
duration: 4s
network: {path: [cli, mid, srv], rtt: "{rtt}", bottleneck: {rate: 5mbit, qdisc: fq_codel flows 1}}
flows: [{name: a, cc: "{cc}"}, {name: b, cc: reno}]
probes: [{name: ping, type: icmp, every: 50ms}]
vary: {cc: {cubic: cubic, nosuch: nosuch}, rtt: [10ms, 40ms]}
measure: {steady_state: {window: 3s, ends: at end}}
"""
CLAIMS = """
document: {name: tiny, title: A tiny document}
claims:
  - id: rtt
    says: The base RTT is 10 ms, and CoDel adds less than 30 ms to it.
    where: {section: 1}
    runs: tiny/one/cubic-10ms
    direction: 0 < tcp_delay_p50("a") < "30ms"
    size: {of: ping_mean() - ping_delay_mean(), published: 10ms, tolerance: 10%, because: It is what was set.}
  - id: full
    says: Both flows together fill the line at any RTT.
    where: {section: 2}
    runs: tiny/one/cubic-*
    direction: total_goodput() > "4 Mbit/s"
    mutation: {set: {network.bottleneck.rate: 3mbit}}
  - id: longer
    says: The longer path has half the RTT of the shorter one.
    where: {section: 3}
    runs: {short: tiny/one/cubic-10ms, long: tiny/one/cubic-40ms}
    size: {of: ping_mean(of="long") / ping_mean(of="short"), published: 0.5, tolerance: 10%, because: It says half.}
    cause:
      kind: measure
      source: The figure has the axes the other way round.
      says: The other way round it is true that it is shorter.
      direction: ping_mean(of="long") > ping_mean(of="short")
  - id: refused
    says: An unheard-of congestion control wins.
    where: {section: 4}
    runs: tiny/one/nosuch-10ms
    direction: goodput("a") > goodput("b")
  - id: line
    says: It works on a real line.
    where: {section: 5}
    needs: a real line
"""


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    """A catalog, and a working directory in which its runs may stay."""
    top = tmp_path_factory.mktemp("verify")
    for name, text in {"suites/tiny/one.yaml": SCENARIO, "claims/tiny.yaml": CLAIMS}.items():
        path = top / "catalog" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (top / "work").mkdir()
    return top


@pytest.fixture
def verify(catalog, cli, monkeypatch):
    """Call `bakeoff verify` there."""
    monkeypatch.chdir(catalog / "work")
    monkeypatch.setenv("BAKEOFF_CATALOG", str(catalog / "catalog"))
    return lambda *words: cli("verify", *(() if "--seeds" in words else ("--seeds", "3")), *words, "-j", "1")


@pytest.fixture
def recorded(verify, catalog):
    """The verdicts of the catalog as it is are recorded."""
    path = catalog / "catalog/claims/expected.csv"
    if not path.exists():
        assert verify("--record", "--quiet")[0] == 0
    return path


def test_verdicts_are_computed_printed_and_kept(verify, recorded, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    code, out, err = verify()
    assert (code, "differs" in err) == (0, False)
    assert recorded.read_text().splitlines() == [
        "claim,engine,direction,size",
        "tiny/rtt,sim,holds,holds",
        "tiny/full,sim,holds,",
        "tiny/longer,sim,,does not hold",
        "tiny/refused,sim,cannot be run here,",
        "tiny/line,sim,cannot be run here,cannot be run here",
    ]
    assert re.search(r"size +holds +published 10ms \(accepted 9\.0 to 11\.0 ms\); ours 10\.0", out)
    assert "cause      measure, shown" in out
    assert "cannot be run here: flows[0].cc: cc 'nosuch': unknown congestion control 'nosuch'" in out
    assert "cannot be run here: it needs a real line" in out
    # Two claims hold, one does not, two cannot be run.
    assert out.splitlines()[-1].split() == ["tiny", "5", "2", "1", "0", "0", "2"]
    # Two runs, three seeds each; nothing was done a second time.
    assert err.count("skipped, already done") == 6


def test_what_another_verify_recorded_meanwhile_stays(recorded, monkeypatch):
    from bakeoff.claims import expected

    before = recorded.read_text()
    monkeypatch.setenv("BAKEOFF_CATALOG", str(recorded.parents[1]))
    recorded.write_text(before.replace("tiny/rtt,sim", "tiny/rtt,kernel,holds,holds\ntiny/rtt,sim"))
    try:
        expected.record([], "sim")
        assert "tiny/rtt,kernel,holds,holds" in recorded.read_text().splitlines()
    finally:
        recorded.write_text(before)


def test_suites_count_runs_by_engine_and_claims_by_verdict(verify, recorded, cli):
    code, out, _ = cli("suites", "--json")
    [tiny] = json.loads(out)["suites"]
    # Four runs; the two of 'nosuch' no engine can do. A claim about another line has no runs, and counts nowhere.
    assert (code, tiny["suite"], tiny["runs"], tiny["can_run"]["sim"]) == (0, "tiny", 4, 2)
    assert tiny["claims"]["sim"] == {"holds": 2, "does not hold": 1, "cannot be run here": 1}
    assert tiny["claims"]["kernel"] == {"not recorded": 4}
    lines = [line.split() for line in cli("suites")[1].splitlines()]
    assert ["suite", "runs", "sim", "kernel"] in [line[:4] for line in lines]
    assert lines[-1][:3] == ["tiny", "4", "2"]


def test_a_dry_run_says_what_is_missing_and_does_nothing(verify, recorded, catalog):
    work = catalog / "work"
    # Two runs of 4 s stand with seeds 1 to 3. Five seeds are two more of each: 4 runs, 16 s. What the engine refuses is
    # the three, or five, seeds of one run.
    code, out, _ = verify("--dry-run")
    assert (code, out.splitlines()[0].split(", about")[0]) == (0, "sim: 0 of 6 runs are missing: 0 s simulated")
    assert out.splitlines()[1].startswith("3 more cannot be run here: tiny/one/nosuch-10ms: flows[0].cc: cc 'nosuch'")
    before = sorted(work.rglob("*"))
    [cost] = json.loads(verify("--dry-run", "--seeds", "5", "--json")[1])["engines"]
    assert (cost["engine"], cost["runs"], cost["simulated_s"], len(cost["refused"])) == ("sim", 10, 16, 5)
    ours = [f"tiny/one/cubic-{rtt}~seed{seed}" for rtt in ("10ms", "40ms") for seed in (4, 5)]
    assert sorted(cost["missing"]) == ours
    # With another value no run may stand, and those that are there stay.
    [cost] = json.loads(verify("--dry-run", "--set", "duration=5s", "--json")[1])["engines"]
    assert (len(cost["missing"]), cost["simulated_s"]) == (6, 30)
    assert sorted(work.rglob("*")) == before


def test_json_has_all_numbers(verify, recorded):
    code, out, _ = verify("rtt", "--json")
    [claim] = json.loads(out)["claims"]
    assert (code, claim["claim"], claim["seeds"], claim["size"]["verdict"]) == (0, "tiny/rtt", 3, "holds")
    assert claim["accepted"] == {"from": pytest.approx(0.009), "to": pytest.approx(0.011), "tolerance": "10%"}
    assert len(claim["ours"]["values"][0]) == 3


@pytest.mark.parametrize(
    ("setting", "pattern", "turned"),
    [
        ("vary.rtt={10ms: 20ms, 40ms: 40ms}", "rtt", "tiny/rtt: size: 'does not hold'; recorded is 'holds'"),
        ("network.bottleneck.rate=3mbit", "full", "tiny/full: direction: 'does not hold'; recorded is 'holds'"),
        ("network.bottleneck.qdisc=pfifo limit 1000", "rtt", "tiny/rtt: direction: 'does not hold'; recorded is"),
    ],
)
def test_it_turns_red_when_something_is_broken(verify, recorded, setting, pattern, turned):
    code, _, err = verify(pattern, "--set", setting)
    assert code == 1
    assert f"differs: {turned}" in err


def test_a_change_counts_the_verdicts_that_turn(verify, recorded):
    # At 20 Mbit/s both flows fill more than 4 Mbit/s still; the base RTT is what was set.
    code, _, err = verify("rtt", "--set", "network.bottleneck.rate=20mbit")
    assert (code, err.splitlines()[-1]) == (0, "0 of 1 claims have another verdict than the recorded one")
    code, _, err = verify("full", "--set", "network.bottleneck.rate=3mbit")
    assert (code, err.splitlines()[-1]) == (1, "1 of 1 claims have another verdict than the recorded one")


def test_a_mutated_claim_must_not_hold(verify, recorded, catalog):
    before = recorded.read_text()
    code, out, _ = verify("--mutations", "--quiet")
    # 3 Mbit/s cannot carry 4: the one claim with a mutation does not hold any more.
    assert (code, out.splitlines()[-1].split()) == (0, ["tiny", "1", "0", "1", "0", "0", "0"])
    path = catalog / "catalog/claims/tiny.yaml"
    try:
        path.write_text(CLAIMS.replace("{network.bottleneck.rate: 3mbit}", "{network.bottleneck.rate: 6mbit}"))
        code, _, err = verify("--mutations", "--quiet")
        assert code == 1
        assert "mutation: tiny/full: 'holds'; expected 'does not hold'" in err
        assert json.loads(verify("--mutations", "--json")[1])["survivors"] == ["tiny/full"]
    finally:
        path.write_text(CLAIMS)
    assert recorded.read_text() == before


def test_python_gets_the_same_verdicts(verify, recorded):
    found = bakeoff.verify("tiny/longer", seeds=3, jobs=1)
    assert [(each.claim.name, each.outcome.size.word) for each in found.decided] == [("tiny/longer", "does not hold")]
    assert (found.differences, found.unrecorded) == ([], [])


def test_runs_of_other_models_are_done_again(verify, recorded, monkeypatch):
    from bakeoff.api import do_verify

    monkeypatch.setattr(do_verify, "_made_by", lambda _: "by another simulator")
    code, _, err = verify("full")
    assert code == 0
    assert "its runs are of other models or versions; they are done again" in err
    assert "skipped, already done" not in err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing-such"], "'nothing-such': no such claim; expected for example"),
        (["--seeds", "1"], "Invalid value for '--seeds'"),
        (["--set", "network.rtt=20ms", "--record"], "--set: not valid with --record"),
        (["--mutations", "--record"], "--mutations: not valid with --record"),
        (["tiny/rtt", "--mutations"], "--mutations: none of these claims has a mutation"),
        (["--dry-run", "--record"], "--dry-run: not valid with --record"),
        (["tiny/rtt", "--write-docs"], "--write-docs: needs all claims"),
        (["--engine", "none"], "unknown engine 'none'"),
    ],
)
def test_what_cannot_be_is_said(verify, words, message):
    code, _, err = verify(*words)
    assert code == 2
    assert message in err


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "tiny/one/cubic-*",
            "tiny/one/cubik-*",
            "claims[1] (full).runs: 'tiny/one/cubik-*': no such run in the catalog",
        ),
        ("long: tiny/one/cubic-40ms", "long: tiny/one/*", "runs.long: 'tiny/one/*' matches 4 runs, such as"),
        ('tcp_delay_p50("a")', 'tcp_delay_p50("c")', "no flow 'c' in cubic-10ms; expected one of: a, b"),
        ("ping_mean() -", 'ping_mean("echo") -', "no probe 'echo' in cubic-10ms; expected one of: ping"),
    ],
)
def test_runs_and_flows_that_are_not_there_are_told_before_anything_runs(verify, catalog, old, new, message):
    path = Path(catalog / "catalog/claims/tiny.yaml")
    try:
        path.write_text(CLAIMS.replace(old, new))
        code, _, err = verify()
    finally:
        path.write_text(CLAIMS)
    assert code == 2
    assert f"bakeoff: {path}: " in err
    assert message in err


def test_the_runs_of_verify_are_listed_with_the_other_campaigns(verify, recorded, cli):
    shutil.rmtree("results", ignore_errors=True)  # other tests change values, which makes runs of other names
    assert verify("--quiet")[0] == 0
    code, out, _ = cli("results", "--json")
    assert code == 0
    # Two runs of three seeds each.
    assert [(row["campaign"], row["runs"], row["failed"]) for row in json.loads(out)] == [("results/verify/sim", 6, 0)]
