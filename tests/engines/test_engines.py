"""The engines there are, and what each returns is what it wrote."""

import json
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from bakeoff import engines, results
from bakeoff.duels import Duel
from bakeoff.engines import sim
from bakeoff.engines.kernel import virtual
from bakeoff.errors import BakeoffError
from bakeoff.results.counters import Counters
from bakeoff.results.series import read_series
from bakeoff.scenario import duel
from fakes import engine
from lab_runs import network


@pytest.mark.parametrize("name", ["sim", "kernel", "kernel:linux-7.3", "netns", "ssh:bed.yaml"])
def test_every_engine_is_what_a_campaign_calls(name):
    found: engines.Engine = engines.get(name)
    assert isinstance(found.one_at_a_time, bool)
    assert all(callable(getattr(found, part)) for part in ("check", "execute", "versions", "estimate_s"))
    assert name.partition(":")[0] in engines.MODULES


def test_a_make_that_an_engine_does_not_have_is_refused():
    with pytest.raises(BakeoffError, match="has no variants; expected --engine"):
        engines.get("netns:other")
    with pytest.raises(BakeoffError, match="unknown variant 'fast' of the engine 'sim'; expected exact"):
        engines.get("sim:fast")


def test_an_exact_simulation_gives_the_same_by_more_events(tmp_path):
    # Four devices, which are two lanes: there and back.
    cables = [
        {"ends": ["cli", "mid"], "rate_bps": 10_000_000, "delay_s": 0.005},
        {"ends": ["mid", "srv"], "rate_bps": 100_000_000, "delay_s": 0.005},
    ]
    run = network(links=cables)
    found = {}
    for name in ("sim", "sim:exact"):
        folder = tmp_path / name
        folder.mkdir()
        outcome = engines.get(name).execute(run, folder)
        found[name] = results.digest(outcome.parts), json.loads((folder / "counters.json").read_text())
    (digest, counters), (exact_digest, exact_counters) = found.values()
    assert digest == exact_digest
    assert exact_counters.pop("events") > 1.5 * counters.pop("events")
    assert exact_counters == counters


def test_exact_is_of_the_simulator(cli, tmp_path):
    words = ("duel", "cubic", "reno", "--duration", "2s", "--out", str(tmp_path / "out"), "--exact")
    code, _, err = cli(*words, "--engine", "kernel")
    assert code == 2
    assert "--exact: only valid with --engine sim, not with 'kernel'" in err
    assert cli(*words)[0] == 0
    assert results.read_campaign(tmp_path / "out").engine == "sim:exact"


def test_another_package_registers_an_engine_and_replaces_none(monkeypatch):
    assert engines.names() == [*engines.MODULES, "fake"]
    assert isinstance(engines.get("fake"), engine.Fake)
    with pytest.raises(BakeoffError, match="engine 'fake' has no variants"):
        engines.get("fake:other")
    with pytest.raises(BakeoffError, match=r"unknown engine 'fame'; expected one of: sim, kernel, netns, ssh, fake$"):
        engines.get("fame")
    [plugin] = entry_points(group=engines.GROUP)
    monkeypatch.setattr(engines, "_plugins", lambda: {"sim": plugin})
    assert isinstance(engines.get("sim"), sim.Simulator)
    assert engines.names() == [*engines.MODULES]


def test_what_a_run_gave_is_what_lies_in_its_folder(tmp_path):
    run = duel(Duel(cc1="reno", cc2="cubic", qdisc="pfifo", rate="10mbit", duration="2s"))
    outcome = engines.get("sim").execute(run, tmp_path)
    assert results.table(outcome.parts).equals(read_series(tmp_path / "series.parquet"))
    written = json.loads((tmp_path / "counters.json").read_text())
    assert outcome.counters == Counters.of(written, "counters.json")
    assert outcome.counters.flows["reno"].sent_packets == written["flows"]["reno"]["sent_packets"] > 0


def test_without_a_kernel_the_real_obstacle_comes_first_and_a_dry_run_estimates(tmp_path, monkeypatch, cli):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    virtual.choose.cache_clear()  # an earlier test may have found a kernel
    Path("mine.py").write_text(
        "class Mine:\n    def ssthresh(self, sk): return 2\n    def cong_avoid(self, sk, a): pass\n"
    )
    code, _, err = cli("duel", "./mine.py:Mine", "cubic", "--engine", "kernel")
    assert code == 2
    assert "flows[0].cc: '" in err
    assert "written in Python; expected --engine sim" in err
    words = ("run", "linux/single", "-k", "reno-pie-*", "--engine", "kernel")
    code, out, err = cli(*words, "--dry-run")
    assert (code, out.partition(",")[0]) == (0, "4 runs")
    assert "not checked: no virtual-time kernel" in err
    code, _, err = cli(*words)
    assert code == 2
    assert err.startswith("bakeoff: no virtual-time kernel")
