"""--trace and --capture: what is kept besides samples, and what is refused."""

import json
from pathlib import Path

import pytest

import bakeoff
from bakeoff import engines
from bakeoff.engines.lab.planner import plan
from bakeoff.errors import BakeoffError
from bakeoff.scenario import Run
from bakeoff.scenario.observe import observe
from scenario_texts import duel

ENDS = "cli>mid, mid>cli, mid>srv, srv>mid"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_trace_has_a_row_per_ack_and_changes_nothing_else():
    plain = bakeoff.duel("cubic", "prague", duration="8s", rate="10mbit", qdisc="pie ecn")
    traced = bakeoff.duel("cubic", "prague", duration="8s", rate="10mbit", qdisc="pie ecn", trace=["cc"])
    assert traced.record.digest == plain.record.digest
    assert plain.run.trace == []
    assert traced.run.trace == ["cc"]
    for name, own in (("cubic", "cc.last_max_cwnd"), ("prague", "cc.alpha")):
        rows = traced.trace.filter(name=name)
        # One row for the SYN-ACK, one per ACK, one per timeout; the receiver counts also the ACKs under way at the end.
        counted = traced.all_counters()["flows"][name]
        most = 1 + counted["acks"] + counted["rtos"]
        for metric in ("cc.cwnd", "cc.srtt", "cc.state", own):
            assert 0 <= most - len(rows.filter(metric=metric)) < 40, metric
    # The last value before a sample is what the sample says.
    for metric in ("cwnd", "srtt", "ssthresh", "pacing_rate"):
        sampled = traced.series.filter(name="cubic", metric=metric).drop("metric")
        internal = traced.trace.filter(name="cubic", metric=f"cc.{metric}").select("time", then="value")
        both = sampled.join_asof(internal, on="time").drop_nulls()
        assert len(both) > 40
        assert both["value"].to_list() == both["then"].to_list()
    alpha = traced.trace.filter(name="prague", metric="cc.alpha")["value"]
    assert 0 <= alpha.min() < alpha.max() <= 1


def test_a_timeout_is_in_the_trace():
    result = bakeoff.duel("reno", "cubic", duration="10s", rate="1mbit", qdisc="pfifo limit 2", trace=["cc"])
    assert result.all_counters()["flows"]["reno"]["rtos"] > 0
    lost = result.trace.filter(name="reno", metric="cc.state", value=4.0)["time"]
    cwnd = result.trace.filter(name="reno", metric="cc.cwnd").filter(time=lost[0])["value"]
    # tcp_enter_loss: what is in flight and one more; nothing is left in flight by a timeout.
    assert cwnd[0] == 1.0


def test_without_a_trace_there_is_none():
    result = bakeoff.duel("reno", "cubic", duration="1s")
    assert not (result.path / "trace.parquet").exists()
    with pytest.raises(BakeoffError, match=r"no trace; expected a run with --trace cc"):
        result.trace  # noqa: B018


def test_load_gives_it_as_a_frame(cli):
    code, _, _ = cli("duel", "reno", "cubic", "--duration", "1s", "--trace", "cc", "--capture", "all", "--out", "x")
    assert code == 0
    [result] = bakeoff.load("x")
    assert result.trace.columns == ["time", "kind", "name", "metric", "value"]
    assert sorted(path.name for path in result.path.glob("*.pcapng.gz")) == sorted(
        f"{name.replace('>', '-to-')}.pcapng.gz" for name in ENDS.split(", ")
    )


def test_run_takes_both(cli, folder):
    run = "l4s-tests/s6-rfc3168/ns-prague-vs-cubic-ecn-pie-50Mbit-20ms"
    code, _, err = cli("run", run, "--trace", "cc", "--capture", "mid>srv", "--capture", "mid<cli", "--out", "x")
    assert code == 0, err
    [result] = bakeoff.load("x")
    assert result.run.captures == ["mid>srv", "mid<cli"]
    assert sorted(path.name for path in result.path.glob("*.pcapng.gz")) == [
        "mid-from-cli.pcapng.gz",
        "mid-to-srv.pcapng.gz",
    ]
    assert result.trace.filter(metric="cc.alpha")["name"].unique().to_list() == ["prague"]


@pytest.mark.parametrize(
    "what", [("duel", "reno", "cubic"), ("run", "l4s-tests/s6-rfc3168/*cubic-ecn-pie-50Mbit-20ms")]
)
def test_a_wrong_name_is_refused_with_the_right_ones(cli, what):
    code, _, err = cli(*what, "--capture", "mid>nix", "--out", "x")
    assert code == 2
    assert "capture: 'mid>nix': no such interface in" in err
    assert ENDS in err
    code, _, err = cli(*what, "--trace", "nix", "--out", "x")
    assert code == 2
    assert "trace: 'nix'; expected cc" in err
    assert not Path("x").exists()


def test_a_real_kernel_captures_and_does_not_trace():
    run = duel("reno", "cubic")
    assert dict(plan(observe(run, capture=["all"])).captures).keys() == set(ENDS.split(", "))
    with pytest.raises(BakeoffError, match=r"trace\[0\]: 'cc': not available on a kernel"):
        plan(observe(run, trace=["cc"]))


def test_the_simulator_names_an_unknown_trace():
    document = json.loads(observe(duel("reno", "cubic"), trace=["cc"]).to_json())
    assert Run.from_json(json.dumps(document)).trace == ["cc"]
    with pytest.raises(BakeoffError, match=r"trace"):
        Run.from_json(json.dumps(document | {"trace": ["nix"]}))
    assert engines.get("sim").check(Run.from_json(json.dumps(document)))
