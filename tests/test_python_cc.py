"""Congestion controls written in Python: the same as ours where they say the same, and errors for their author."""

import hashlib
import json
import re
import sys
from pathlib import Path

import polars as pl
import pytest

import bakeoff
from bakeoff import campaign
from bakeoff.cc import CaState
from bakeoff.engines import sim
from bakeoff.engines.lab.planner import plan
from bakeoff.errors import BakeoffError
from bakeoff.results.series import read_series
from bakeoff.scenario import Run, load
from bakeoff.scenario.observe import observe
from bakeoff.scenario.python_cc import permitted
from scenario_texts import duel

EXAMPLE = Path(__file__).parent.parent / "examples" / "reno.py"
HEAD = "class Mine:\n    def ssthresh(self, sk):\n        return max(sk.snd_cwnd // 2, 2)\n"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def mine(body: str = "", name: str = "mine.py") -> str:
    """A file with Reno's decrease and `body` in class Mine; without body, a window that never grows."""
    Path(name).write_text(HEAD + (body or "    def cong_avoid(self, sk, acked): pass\n"))
    return f"./{name}:Mine"


def samples(run: Run, path: Path) -> list[pl.DataFrame]:
    path.mkdir()
    sim.Simulator().execute(run, path)
    return [read_series(path / name) for name in ("series.parquet", "trace.parquet")]


# The same as ours.


@pytest.mark.parametrize(
    ("qdisc", "rate", "passed"),
    [
        ("pfifo limit 30", "20mbit", "RECOVERY"),
        ("pfifo limit 2", "1mbit", "LOSS"),
        ("fq_codel flows 1", "20mbit", "CWR"),
        ("netem delay 10ms loss 5%", "20mbit", "DISORDER"),
    ],
)
def test_the_example_is_our_reno_sample_for_sample(folder, qdisc, rate, passed):
    ours = duel("reno", "cubic", qdisc=qdisc, rate=rate, duration="10s")
    ours = observe(ours, trace=["cc"])
    theirs = json.loads(ours.to_json())
    theirs["flows"][0]["cc"] = f"{EXAMPLE}:Reno"
    series, trace = samples(ours, folder / "ours")
    allowed = permitted(Run.from_json(json.dumps(theirs)), allow_code=True)
    other_series, other_trace = samples(allowed, folder / "theirs")
    assert series.equals(other_series)
    assert trace.equals(other_trace)
    reno = trace.filter(name="reno")
    assert reno.filter(metric="cc.cwnd")["value"].n_unique() > 3
    # What the queue is there for was passed through, or the comparison says little.
    states = set(reno.filter(metric="cc.state")["value"].to_list())
    assert CaState[passed] in states


# The hooks.

SPY = """
from bakeoff.cc import CaEvent, CaState
CALLS = {}
class Spy:
    needs_ecn = True
    ect1 = True
    def __init__(self):
        CALLS.clear()
    def note(self, hook, *values):
        CALLS.setdefault(hook, []).append(values)
    def init(self, sk):
        self.note("init", sk.snd_cwnd, sk.snd_ssthresh, sk.mss_cache, sk.accecn, sk.hz)
    def ssthresh(self, sk):
        self.note("ssthresh", sk.snd_cwnd)
        return max(sk.snd_cwnd * 7 // 10, 2)
    def cong_avoid(self, sk, acked):
        self.note("cong_avoid", acked)
        sk.snd_cwnd += 1
    def set_state(self, sk, state):
        self.note("set_state", CaState(sk.ca_state).name, CaState(state).name)
    def cwnd_event(self, sk, event):
        self.note("cwnd_event", CaEvent(event).name)
    def in_ack_event(self, sk, ece):
        self.note("in_ack_event", ece)
    def pkts_acked(self, sk, acked, rtt_us):
        self.note("pkts_acked", acked, rtt_us, sk.tcp_mstamp)
    def min_tso_segs(self, sk):
        return 1
    def trace(self):
        return {"calls": len(CALLS["in_ack_event"]) if "in_ack_event" in CALLS else 0}
"""


def test_every_hook_is_called_with_what_it_says(folder):
    Path("spy.py").write_text(SPY)
    result = bakeoff.duel("spy.py:Spy", "reno", duration="4s", rate="10mbit", qdisc="fq_codel flows 1", trace=["cc"])
    assert result.ok
    assert result.resolved["flows"][0]["name"] == "Spy"
    calls = vars(sys.modules["bakeoff_cc_spy"])["CALLS"]
    # Ethernet's 1500 less 20 of IPv4, 20 of TCP and 12 of timestamps; AccECN by tcp_ecn=3.
    assert calls["init"] == [(10, 0x7FFFFFFF, 1448, True, result.resolved["nodes"][0]["hz"])]
    assert ("OPEN", "CWR") in calls["set_state"]
    assert ("TX_START",) in calls["cwnd_event"]
    assert ("COMPLETE_CWR",) in calls["cwnd_event"]
    assert (True,) in calls["in_ack_event"]
    # Nothing is lost and nothing is sent twice: every ACK has an RTT, of which 20 ms are the path's.
    assert result.counters["flows"]["Spy"]["retransmits"] == 0
    assert all(rtt_us >= 20_000 for _, rtt_us, _ in calls["pkts_acked"])
    stamps = [stamp for *_, stamp in calls["pkts_acked"]]
    assert stamps == sorted(stamps)
    # Linux counts the SYN as delivered.
    assert sum(acked for acked, *_ in calls["pkts_acked"]) + 1 == result.counters["flows"]["Spy"]["delivered"]
    own = result.trace.filter(name="Spy", metric="cc.calls")["value"].to_list()
    assert own == sorted(own)
    assert own[-1] == len(calls["in_ack_event"])


def test_cong_control_takes_over_window_and_pacing(folder):
    body = """    def cong_control(self, sk, rs):
        sk.snd_cwnd = 20
        sk.sk_pacing_needed = True
        sk.sk_pacing_rate = 500_000
        assert rs.acked_sacked >= 0 and rs.rtt_us is not None
"""
    result = bakeoff.duel(mine(body), "reno", duration="5s", rate="50mbit", qdisc="fq_codel", trace=["cc"])
    assert set(result.trace.filter(name="Mine", metric="cc.cwnd")["value"].to_list()[1:]) == {20.0}
    # Linux paces payload: 500 kB/s are 4 Mbit/s.
    goodput_bps = result.summary.flows["Mine"].steady_state.goodput_bps
    assert goodput_bps == pytest.approx(4e6, rel=0.01)


# Class objects.


class Frozen:
    """A window that never grows."""

    def ssthresh(self, sk):
        return max(sk.snd_cwnd, 2)

    def cong_avoid(self, sk, acked):
        pass


def test_a_class_object_will_do(folder):
    result = bakeoff.duel(Frozen, "reno", duration="3s")
    flow = result.resolved["flows"][0]
    assert (flow["name"], flow["cc"]) == ("Frozen", f"python:{__name__}.Frozen")
    assert re.fullmatch("[0-9a-f]{64}", flow["cc_sha256"])
    cwnd = result.series.filter(name="Frozen", metric="cwnd")["value"]
    assert set(cwnd.to_list()) == {10.0}
    with pytest.raises(BakeoffError, match=r"was a class object of the Python that made this run; expected a file"):
        sim.Simulator().check(Run.from_json(json.dumps(result.resolved)))


# Records.


def test_the_resolved_run_holds_path_and_sum(folder):
    Path("sub").mkdir()
    cc = mine(name="sub/mine.py")
    digest = hashlib.sha256(Path("sub/mine.py").read_bytes()).hexdigest()
    run = duel(cc, "reno")
    assert (run.flows[0].cc, run.flows[0].cc_sha256) == (f"{folder}/sub/mine.py:Mine", digest)
    assert "cc_sha256" not in json.loads(run.to_json())["flows"][1]
    # In a scenario the path is relative to the file.
    Path("sub/s.yaml").write_text(
        "scenario: s\nduration: 1s\nnetwork: {path: [cli, mid, srv], rtt: 20ms, "
        "bottleneck: {rate: 10mbit, qdisc: fq_codel}}\nflows: [{name: a, cc: '{cc}'}]\n"
        "vary: {cc: ['./mine.py:Mine', reno]}\n"
    )
    [flow] = load("sub/s.yaml").resolve(load("sub/s.yaml").points[0], 1).flows
    assert (flow.cc, flow.cc_sha256) == (run.flows[0].cc, digest)


def test_resume_notices_a_change_of_the_file(folder):
    def go() -> int:
        run = duel(mine_cc, "reno", duration="1s")
        return len(campaign.run([run], folder / "out", jobs=1, resume=True).skipped)

    mine_cc = mine()
    assert [go(), go()] == [0, 1]
    stale = duel(mine_cc, "reno", duration="1s")
    Path("mine.py").write_text(Path("mine.py").read_text() + "\n")
    assert [go(), go()] == [0, 1]
    with pytest.raises(BakeoffError, match=r"mine.py: has changed since this run was made from it"):
        sim.Simulator().check(permitted(stale))


def test_worker_processes_run_it_too(folder):
    runs = [duel(mine(), "reno", duration="1s", seed=seed) for seed in (1, 2)]
    report = campaign.run(runs, folder / "two", jobs=2)
    assert [done.error for done in report.runs] == [None, None]


# Errors.


def test_an_error_fails_the_run_with_the_users_lines_only(folder):
    body = """    def cong_avoid(self, sk, acked):
        self.grow(sk)
    def grow(self, sk):
        if sk.tcp_mstamp > 1_000_000:
            sk.snd_cwnd /= sk.no_such_name
"""
    with pytest.raises(RuntimeError) as caught:
        bakeoff.duel(mine(body), "reno", duration="30s", out="out")
    path = folder / "mine.py"
    # Without the carets, which depend on Python's version.
    lines = [line for line in str(caught.value).splitlines() if set(line.strip()) - set("~^")]
    assert lines[0].endswith(": Mine.cong_avoid failed")
    assert lines[1:] == [
        f'  File "{path}", line 5, in cong_avoid',
        "    self.grow(sk)",
        f'  File "{path}", line 8, in grow',
        "    sk.snd_cwnd /= sk.no_such_name",
        "AttributeError: 'bakeoff._sim.TcpSock' object has no attribute 'no_such_name'",
    ]
    [failed] = bakeoff.load("out")
    assert not failed.ok
    log = (failed.path / "teardown.log").read_text()
    assert "no_such_name" in log
    assert "engines/sim.py" not in log


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("    def cong_avoid(self, sk, acked):\n        sk.snd_cwnd = 0\n", "ValueError: snd_cwnd: 0 is not between 1"),
        ("    def cong_avoid(self, sk, acked):\n        sk.snd_cwnd *= 1.5\n", "TypeError: "),
        ("    def cong_avoid(self, sk):\n        pass\n", "TypeError: Mine.cong_avoid()"),
        ("    def cong_avoid(self, sk, acked):\n        sk.tcp_cong_avoid_ai(0, 1)\n", "ValueError: w: 0 is not"),
        ("    def cong_avoid(self, sk, acked):\n        sk.srtt_us = 1\n", "AttributeError: "),
        ("    def cong_avoid(self, sk, acked): pass\n    def init(self, sk):\n        1 / 0\n", "ZeroDivisionError"),
        (
            "    def cong_avoid(self, sk, acked): sk.snd_cwnd += acked\n    def ssthresh(self, sk): return 1\n",
            "Mine.ssthresh failed\nValueError: returned 1; expected a whole number of packets, at least 2",
        ),
        ("    def cong_avoid(self, sk, acked): raise SystemExit(3)\n", "SystemExit: 3"),
        ("    def cong_avoid(self, sk, acked): pass\n    def trace(self): return 3\n", "TypeError: "),
    ],
)
def test_what_cannot_be_is_an_error(folder, body, expected):
    with pytest.raises(RuntimeError) as caught:
        bakeoff.duel(mine(body), "reno", duration="5s", rate="5mbit", qdisc="pfifo limit 20", trace=["cc"])
    assert expected in str(caught.value)
    assert "panick" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "cc", "expected"),
    [
        ("x", "nix.py:Mine", r"flows\[0\].cc: './nix.py:Mine': .*/nix.py: No such file or directory"),
        ("class A: pass", "mine.py:Mine", "has no class 'Mine'; there is: A"),
        ("class Mine:\n    pass", "mine.py:Mine", "Mine has no method ssthresh"),
        (HEAD, "mine.py:Mine", "Mine has no method cong_avoid or cong_control"),
        ("class Mine:\n  def\n", "mine.py:Mine", r"cannot be loaded\n.*line 2(.|\n)*SyntaxError"),
        ("import nix_nix", "mine.py:Mine", r"line 1, in <module>\n    import nix_nix\nModuleNotFoundError"),
        (
            HEAD + "    def cong_avoid(self, sk, a): pass\n    def __init__(self):\n        boom\n",
            "mine.py:Mine",
            r"Mine\(\) failed\n.*line 6, in __init__\n    boom\n(.*\n)?NameError",
        ),
    ],
)
def test_mistakes_are_found_before_anything_is_written(folder, text, cc, expected):
    Path("mine.py").write_text(text)
    with pytest.raises(BakeoffError, match=expected):
        bakeoff.duel(f"./{cc}", "cubic", out="out")
    assert not Path("out").exists()


def test_a_real_kernel_refuses_it_by_name(folder):
    with pytest.raises(
        BakeoffError, match=r"flows\[0\].cc: '.*mine.py:Mine' is written in Python; only the engine sim"
    ):
        plan(duel(mine(), "cubic"))
