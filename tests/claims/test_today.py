"""Which code decides a claim: the versions that it names, or those of today (`bakeoff verify --today`)."""

from types import SimpleNamespace

import pytest

from bakeoff import campaign, engines
from bakeoff.claims.stored import replaced
from bakeoff.engines.lab import versions
from bakeoff.results import Result
from bakeoff.scenario.scenario import from_document

SCENARIO = """
scenario: one
title: "{cc}"
duration: 4s
network: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 5mbit, qdisc: "{qdisc}"}}
flows: [{name: a, cc: "{cc}"}, {name: b, cc: reno}]
vary: {cc: {old: cubic@5.4, plain: cubic}, qdisc: {pie: "pie@5.4 limit 100", fifo: "pfifo limit 100"}}
measure: {steady_state: {window: 3s, ends: at end}}
"""
CLAIMS = """
document: {name: tiny, title: A tiny document}
claims:
  - {id: queue, says: It flows., where: {section: 1}, runs: tiny/one/plain-pie, direction: total_goodput() > 4e6}
  - {id: none, says: It flows., where: {section: 1}, runs: tiny/one/plain-fifo, direction: total_goodput() > 4e6}
  - id: compared
    says: The older CUBIC is faster.
    where: {section: 1}
    runs: {old: tiny/one/old-fifo, new: tiny/one/plain-fifo}
    direction: goodput("a", of="old") > goodput("a", of="new")
"""


def a_run(*ccs: str, qdisc: str = "fq_codel"):
    document = {
        "title": "x", "run": "x", "duration": "4s",
        "network": {"path": ["cli", "mid", "srv"], "rtt": "20ms", "bottleneck": {"rate": "5mbit", "qdisc": qdisc}},
        "flows": [{"name": f"f{at}", "cc": cc} for at, cc in enumerate(ccs)],
    }  # fmt: skip
    return from_document(document, path="test", suite="local", default_name="x").resolve({}, 1)


def queues(run) -> set[str]:
    found = set()
    versions.renamed(run, lambda cc: cc, lambda words: found.add(words) or words)
    return found


def test_versions_of_flows_and_queues_are_dropped_and_their_parameters_stay():
    run = a_run("prague@2020-08 rtt_target 25ms", "cubic", qdisc="dualpi2@2020 target 15ms")
    assert versions.named(run) == ["dualpi2@2020", "prague@2020-08"]
    now = versions.today(run)
    assert [flow.cc for flow in now.flows] == ["prague rtt_target 25ms", "cubic"]
    assert any("dualpi2 target 15ms" in words for words in queues(now))
    assert versions.named(now) == []
    assert versions.today(now) == now


def test_a_queue_of_a_module_is_no_version():
    run = a_run("reno-sce", qdisc="cake@sce sce")
    assert versions.named(run) == []
    assert versions.today(run) == run


def test_what_a_kernel_lacks_is_named():
    run = a_run("prague@2020-04", "prague@2020-04", "cubic@5.4 hystart 0", "reno", qdisc="cake@sce sce")
    noted = "\n".join(f"# {note}" for note in versions.notes(run, {}))
    assert versions.lacking(noted) == "the kernel has no cake@sce, cubic@5.4, prague@2020-04"
    given = {"prague@2020-04": versions.Parameter("tcp_prague", "prague_form", "9")}
    noted = "\n".join(versions.notes(run, given, ["cake_sce"]))
    assert versions.lacking(noted) == "the kernel has no cubic@5.4"
    assert versions.lacking("nodes[].hz: 250 asked for: the kernel's HZ is 1000") is None


def test_a_tunnel_that_a_kernel_cannot_have_is_named():
    note = "tunnels[0].inner_hash: false asked for: nodes that share a kernel share the inner flow's hash"
    assert versions.lacking(note) == "the kernel has no inner_hash: false"


def test_only_an_exact_engine_refuses_another_version(monkeypatch):
    class Kernel:
        def check(self, run) -> str:
            return "\n".join(["# set-up", *(f"# {note}" for note in versions.notes(run, {}))])

    monkeypatch.setattr(engines, "get", lambda _: Kernel())
    run = a_run("prague@2020-04")
    assert campaign.accepted([run], "kernel") == ([run], {})
    assert campaign.accepted([run], "kernel", exact=True) == ([], {run.key: "the kernel has no prague@2020-04"})


@pytest.fixture
def verify(tmp_path, cli, monkeypatch):
    for name, text in {"suites/tiny/one.yaml": SCENARIO, "claims/tiny.yaml": CLAIMS}.items():
        path = tmp_path / "catalog" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("BAKEOFF_CATALOG", str(tmp_path / "catalog"))
    return lambda *words: cli("verify", *words, "-j", "1")


def test_claims_that_name_a_version_are_decided_by_those_of_today(verify, tmp_path):
    assert verify("--record", "--quiet")[0] == 0
    assert verify("--today", "--record", "--quiet")[0] == 0
    lines = (tmp_path / "catalog/claims/expected.csv").read_text().splitlines()
    # `none` names no version: its verdict is that of `sim`. Without versions both runs of `compared` are one.
    assert [line for line in lines if ",sim-today," in line] == [
        "tiny/queue,sim-today,holds,",
        "tiny/compared,sim-today,cannot be run here,cannot be run here",
    ]
    assert len([line for line in lines if ",sim," in line]) == 3
    records = sorted((tmp_path / "work/results/verify/sim-today").rglob("run.json"))
    assert {record.parent.name.partition("~")[0] for record in records} == {"plain-pie"}
    assert versions.named(Result.read(records[0].parent).run) == []


def test_where_no_claim_names_a_version_there_is_nothing_to_do(verify):
    code, _, err = verify("tiny/none", "--today")
    assert (code, err.count("no claim names a version")) == (0, 1)


def test_findings_are_not_written_from_verdicts_of_today(verify):
    code, _, err = verify("--today", "--write-docs")
    assert (code, "--today: not valid with --write-docs" in err) == (2, True)


def test_a_stored_run_of_another_version_decides_nothing():
    def result(*effective):
        return SimpleNamespace(record=SimpleNamespace(effective=effective))

    notes = versions.notes(a_run("prague@2020-04"), {})
    assert replaced({"a": result(*notes), "b": result("netns: 1 CPU")}) == {"a": "the kernel has no prague@2020-04"}
