"""The engines there are, and what each returns is what it wrote."""

import json
from pathlib import Path

import pytest

from bakeoff import engines, results
from bakeoff.duels import Duel
from bakeoff.engines.kernel import virtual
from bakeoff.errors import BakeoffError
from bakeoff.results.counters import Counters
from bakeoff.results.series import read_series
from bakeoff.scenario import duel


@pytest.mark.parametrize("name", ["sim", "kernel", "kernel:linux-7.3", "netns", "ssh:bed.yaml"])
def test_every_engine_is_what_a_campaign_calls(name):
    engine: engines.Engine = engines.get(name)
    assert isinstance(engine.one_at_a_time, bool)
    assert all(callable(getattr(engine, part)) for part in ("check", "execute", "versions", "estimate_s"))
    assert name.partition(":")[0] in engines.MODULES


@pytest.mark.parametrize("name", ["sim:fast", "netns:other"])
def test_an_engine_of_one_make_has_no_other(name):
    with pytest.raises(BakeoffError, match="comes in one make only; expected --engine"):
        engines.get(name)


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
    assert "is written in Python; only the engine sim runs it" in err
    words = ("run", "linux/single", "-k", "reno-pie-*", "--engine", "kernel")
    code, out, err = cli(*words, "--dry-run")
    assert (code, out.partition(",")[0]) == (0, "4 runs")
    assert "not checked: no virtual-time kernel was built yet" in err
    code, _, err = cli(*words)
    assert code == 2
    assert err.startswith("bakeoff: no virtual-time kernel was built yet; 'bakeoff kernel build")
