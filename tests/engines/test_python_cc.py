"""Congestion controls written in Python: the same as ours where they say the same, and errors for their author."""

import hashlib
import json
import re
import signal
import sys
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import bakeoff
from bakeoff import campaign
from bakeoff.campaign import Execution
from bakeoff.cc import CaState
from bakeoff.cli.app import app
from bakeoff.engines import sim
from bakeoff.engines.lab.planner import plan
from bakeoff.engines.patience import patience_s
from bakeoff.errors import BakeoffError
from bakeoff.results.series import read_series
from bakeoff.scenario import Run, catalog, load
from bakeoff.scenario.observe import observe
from bakeoff.scenario.python_cc import permitted
from bakeoff.scenario.sweep_points import parse_over
from bakeoff.scenario.sweep_runs import SweepRuns
from scenario_texts import duel

EXAMPLE = Path(__file__).parents[2] / "examples" / "reno.py"
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
    assert result.run.flows[0].name == "Spy"
    calls = vars(sys.modules["bakeoff_cc_spy"])["CALLS"]
    # Ethernet's 1500 less 20 of IPv4, 20 of TCP and 12 of timestamps; AccECN by tcp_ecn=3.
    assert calls["init"] == [(10, 0x7FFFFFFF, 1448, True, result.run.nodes[0].hz)]
    assert ("OPEN", "CWR") in calls["set_state"]
    assert ("TX_START",) in calls["cwnd_event"]
    assert ("COMPLETE_CWR",) in calls["cwnd_event"]
    assert (True,) in calls["in_ack_event"]
    # Nothing is lost and nothing is sent twice: every ACK has an RTT, of which 20 ms are the path's.
    assert result.all_counters()["flows"]["Spy"]["retransmits"] == 0
    assert all(rtt_us >= 20_000 for _, rtt_us, _ in calls["pkts_acked"])
    stamps = [stamp for *_, stamp in calls["pkts_acked"]]
    assert stamps == sorted(stamps)
    # Linux counts the SYN as delivered.
    assert sum(acked for acked, *_ in calls["pkts_acked"]) + 1 == result.all_counters()["flows"]["Spy"]["delivered"]
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
    flow = result.run.flows[0]
    assert (flow.name, flow.cc) == ("Frozen", f"python:{__name__}.Frozen")
    assert re.fullmatch("[0-9a-f]{64}", flow.cc_sha256)
    cwnd = result.series.filter(name="Frozen", metric="cwnd")["value"]
    assert set(cwnd.to_list()) == {10.0}
    with pytest.raises(BakeoffError, match=r"the class object of another process; expected a file"):
        sim.Simulator().check(result.run)


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
        return len(campaign.run([run], folder / "out", Execution(jobs=1), resume=True).skipped)

    mine_cc = mine()
    assert [go(), go()] == [0, 1]
    stale = duel(mine_cc, "reno", duration="1s")
    Path("mine.py").write_text(Path("mine.py").read_text() + "\n")
    assert [go(), go()] == [0, 1]
    with pytest.raises(BakeoffError, match=r"mine.py: modified since this run was created"):
        sim.Simulator().check(permitted(stale))


def test_worker_processes_run_it_too(folder):
    runs = [duel(mine(), "reno", duration="1s", seed=seed) for seed in (1, 2)]
    report = campaign.run(runs, folder / "two", Execution(jobs=2))
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
        ("class A: pass", "mine.py:Mine", "unknown class 'Mine'; expected one of: A"),
        ("class Mine:\n    pass", "mine.py:Mine", "Mine: missing method ssthresh"),
        (HEAD, "mine.py:Mine", "Mine: missing method cong_avoid or cong_control"),
        ("class Mine:\n  def\n", "mine.py:Mine", r"cannot load\n.*line 2(.|\n)*SyntaxError"),
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
        BakeoffError, match=r"flows\[0\].cc: '.*mine.py:Mine': written in Python; expected --engine sim"
    ):
        plan(duel(mine(), "cubic"))


# Parameters, misspelt hooks, and hooks that would never run.

OWN = HEAD + "    def cong_avoid(self, sk, acked): pass\n"


def test_words_behind_the_class_are_arguments_of_its_init(folder):
    name = mine(
        "    def __init__(self, beta=0.7, fast=False, kind='a', *, n=1):\n"
        "        self.told = {'beta': beta, 'fast': fast + 0.25, 'kind': len(kind), 'n': n}\n"
        "    def cong_avoid(self, sk, acked): pass\n"
        "    def trace(self): return self.told\n"
    )
    result = bakeoff.duel(f"{name} beta 0.85 fast true kind abc", name, duration="1s", trace=["cc"], out="out")
    trace = read_series(result.path / "trace.parquet")

    def told(flow):
        of = trace.filter((pl.col("name") == flow) & pl.col("metric").is_in(["cc.beta", "cc.fast", "cc.kind", "cc.n"]))
        return dict(of.select("metric", "value").unique().iter_rows())

    assert told("Mine-1") == {"cc.beta": 0.85, "cc.fast": 1.25, "cc.kind": 3, "cc.n": 1}
    assert told("Mine-2") == {"cc.beta": 0.7, "cc.fast": 0.25, "cc.kind": 1, "cc.n": 1}
    assert result.summary.flows["Mine-1"].cc == f"{folder}/mine.py:Mine beta 0.85 fast true kind abc"
    assert all(check.ok for check in result.summary.checks)


@pytest.mark.parametrize(
    ("init", "words", "why"),
    [
        ("beta=1", "bta 2", "Mine: unknown parameter 'bta'; did you mean 'beta'?"),
        ("", "beta 2", "Mine: unknown parameter 'beta'; its __init__ takes none"),
        ("beta", "", "Mine needs 'beta'; expected it after the class, such as 'beta 0.85'"),
        ("beta=1", "beta", "parameter 'beta' has no value"),
        ("beta=1", "beta 1 beta 2", "parameter 'beta': duplicate"),
    ],
)
def test_parameters_that_a_class_does_not_have(folder, init, words, why):
    name = mine(f"    def __init__(self, {init}): pass\n    def cong_avoid(self, sk, acked): pass\n")
    with pytest.raises(BakeoffError, match=re.escape(why)):
        bakeoff.duel(f"{name} {words}", "cubic", out="out")
    assert not Path("out").exists()


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (
            "    def pkts_ackd(self, sk, acked, rtt): pass\n",
            "unknown hook 'pkts_ackd'; did you mean 'pkts_acked'?",
        ),
        ("    def pktsAcked(self, sk, acked, rtt): pass\n", "did you mean 'pkts_acked'?"),
        ("    def set_stat(self, sk, state): pass\n", "did you mean 'set_state'?"),
        ("    need_ecn = True\n", "did you mean 'needs_ecn'?"),
        ("    async def cong_avoid(self, sk, acked): pass\n", "Mine.cong_avoid is 'async def'"),
        ("    def cong_avoid(self, sk, acked): yield\n", "Mine.cong_avoid contains 'yield'"),
        ("    async def init(self, sk): yield\n", "Mine.init is 'async def'"),
        ("    init = 3\n", "Mine.init is not a method"),
    ],
)
def test_a_hook_that_would_never_run_is_refused(folder, body, why):
    for own in (OWN + body, f"{OWN.replace('Mine', 'Base')}class Mine(Base):\n{body}"):
        Path("mine.py").write_text(own)
        with pytest.raises(BakeoffError, match=re.escape(why)):
            bakeoff.duel("./mine.py:Mine", "cubic", out="out")
    assert not Path("out").exists()


def test_helpers_are_no_misspelt_hooks(folder):
    helpers = ("cong_avoid_ai", "ssthresh_of", "unit", "traces_of_rtt", "_pkts_ackd", "init_window_now", "reset")
    Path("mine.py").write_text(OWN + "".join(f"    def {name}(self): pass\n" for name in helpers))
    assert bakeoff.duel("./mine.py:Mine", "cubic", duration="1s").ok


@pytest.mark.parametrize(
    ("cc", "why"),
    [
        ("./two.py", "flows[0].cc: './two.py': the class is missing; expected './two.py:One'; further classes: Two"),
        ("two.py:", "'two.py:': the class is missing; expected 'two.py:One'"),
        ("./two.py:a.b", "'a.b': invalid class name; expected './two.py:One'"),
        ("./two", "'./two': unknown congestion control or Python file; expected './two.py:CLASS'"),
        ("./nix.py", "nix.py: No such file or directory"),
        ("./two.py:one", "unknown class 'one'; did you mean 'One'?; expected one of: One, Two"),
    ],
)
def test_a_file_without_its_class(folder, cc, why):
    Path("two.py").write_text("from bakeoff.cc import CaState\nclass One: pass\nclass Two: pass\n")
    with pytest.raises(BakeoffError, match=re.escape(why)):
        bakeoff.duel(cc, "cubic", out="out")


# In a scenario that lies elsewhere.

ELSEWHERE = """
run: "{cc}-{q}"
title: "{cc} alone"
duration: 2s
network: {path: [cli, mid, srv], rtt: 10ms, bottleneck: {rate: 5mbit, qdisc: "{q}"}}
flows: [{name: "{cc}", cc: "{cc}"}]
vary: {cc: [reno, cubic], q: [pfifo, fq_codel]}
"""


@pytest.fixture
def elsewhere(tmp_path_factory):
    path = tmp_path_factory.mktemp("elsewhere") / "a.yaml"
    path.write_text(ELSEWHERE)
    mine()
    return str(path)


@pytest.mark.parametrize(
    "settings",
    [
        {"flows.0.cc": "./mine.py:Mine"},
        {"flows[0].cc": "mine.py:Mine"},
        {"vary.cc": "./mine.py:Mine"},
        {"vary.cc": ["./mine.py:Mine"]},
        {"vary.cc": {"Mine": "./mine.py:Mine"}},
    ],
)
def test_a_path_from_outside_is_one_of_the_working_directory_and_names_the_run(folder, elsewhere, settings):
    runs = catalog.select(elsewhere, settings=settings)
    assert [run.run.partition("+")[0] for run in runs] == ["Mine-pfifo", "Mine-fq_codel"]
    assert {run.title for run in runs} == {"Mine alone"}
    assert {(flow.name, flow.cc) for run in runs for flow in run.flows} == {("Mine", f"{folder}/mine.py:Mine")}
    assert all(run.own_code for run in runs)  # the user typed it: it needs no --allow-code


def test_a_path_in_the_file_is_one_of_the_files_folder(folder, elsewhere):
    Path(elsewhere).write_text(ELSEWHERE.replace("[reno, cubic]", "[./mine.py:Mine, reno]"))
    with pytest.raises(BakeoffError, match=re.escape(f"{Path(elsewhere).parent}/mine.py: No such file or directory")):
        catalog.select(elsewhere)


def test_a_flow_has_the_name_of_what_it_runs_unless_something_names_it(folder, elsewhere):
    def names(text, **settings):
        Path(elsewhere).write_text(text)
        [run] = catalog.select(elsewhere, settings=settings)
        return [flow.name for flow in run.flows]

    plain = ELSEWHERE.partition("vary")[0].replace("{cc}", "prague").replace("-{q}", "").replace("{q}", "pfifo")
    assert names(plain, **{"flows.prague.cc": "bbr", "flows.prague.start": "1s"}) == ["bbr"]
    versioned = plain.replace('cc: "prague"', "cc: prague@2020-08")
    assert names(versioned, **{"flows.0.cc": "./mine.py:Mine"}) == ["Mine"]
    assert names(plain.replace('name: "prague"', "name: mine"), **{"flows.0.cc": "bbr"}) == ["mine"]
    mangled = plain.replace(
        "network: {", "network: {mangle: [{at: mid, from: cli, match: {flow: prague}, set_dscp: 1}], "
    )
    assert names(mangled, **{"flows.0.cc": "bbr"}) == ["prague"]


def test_a_sweep_over_own_classes_and_their_parameters(folder, elsewhere):
    mine("    def __init__(self, beta=0.5): pass\n    def cong_avoid(self, sk, acked): pass\n")
    over = parse_over(["cc=./mine.py:Mine beta 0.5,./mine.py:Mine beta 0.7,reno"])
    swept = SweepRuns(elsewhere, over)
    assert [run.run for value in over[0].values for run in swept.runs({"cc": value})] == [
        f"{cc}-{q}" for cc in ("Mine beta 0.5", "Mine beta 0.7", "reno") for q in ("pfifo", "fq_codel")
    ]
    [over] = parse_over(["flows.0.cc=./mine.py:Mine beta 0.5,cubic"])
    swept = SweepRuns(elsewhere, [over])
    assert [run.flows[0].name for value in over.values for run in swept.runs({over.key: value})] == [
        "Mine", "Mine", "cubic", "cubic",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["while True: pass\n" + OWN, OWN + "    def __init__(self):\n        while True: pass\n"]
)
def test_an_endless_loop_while_it_is_loaded_ends(folder, monkeypatch, text):
    monkeypatch.setattr("bakeoff.engines.python_cc._PATIENCE_S", 0.2)
    Path("mine.py").write_text(text)
    with pytest.raises(BakeoffError, match=r"while True: pass\n(.*\n)?TimeoutError: timeout: not loaded within 0\.2 s"):
        bakeoff.duel("./mine.py:Mine", "cubic", out="out")
    assert not Path("out").exists()


def test_an_endless_loop_of_a_duel_ends(folder):
    mine("    def cong_avoid(self, sk, acked):\n        while True: pass\n")
    words = ["duel", "./mine.py:Mine", "cubic", "--duration", "1s", "--run-timeout", "1s", "-q"]
    told = CliRunner().invoke(app, words)
    assert told.exit_code == 1
    assert "took longer than 1 s and was ended" in told.output
    run = duel("./mine.py:Mine", "cubic", duration="10s", rate="120mbit")
    # 1.2e9 bits are 1e5 packets: 0.05 s and 0.1 s besides, a hundred times that, and a minute
    assert patience_s([run], "sim") == pytest.approx(60 + 100 * 0.15)
    assert patience_s([duel("reno", "cubic")], "sim") is None


# Signals while a hook runs.


@pytest.fixture
def as_started():
    """Handlers as Python has them; nohup, or a shell without job control, starts it with some of them ignored."""
    handlers = {signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    handlers[signal.SIGINT] = signal.default_int_handler
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    assert {number: signal.signal(number, handler) for number, handler in before.items()} == handlers


@pytest.mark.parametrize("catches", ["ValueError", "BaseException"])
@pytest.mark.parametrize(
    ("number", "end"),
    [
        (signal.SIGTERM, (SystemExit, (128 + 15,))),
        (signal.SIGHUP, (SystemExit, (128 + 1,))),
        (signal.SIGINT, (KeyboardInterrupt, ())),
    ],
)
def test_a_signal_in_a_hook_ends_the_campaign_and_fails_no_run(folder, as_started, number, end, catches):
    ends, status = end
    body = (
        "    def cong_avoid(self, sk, acked):\n"
        "        try:\n"
        f"            signal.raise_signal(signal.Signals({int(number)}))\n"
        f"        except {catches}:\n"
        "            pass\n"
    )
    cc = mine(body)
    Path("mine.py").write_text("import signal\n" + Path("mine.py").read_text())
    runs = [duel("cubic", other, duration="1s") for other in ("reno", cc, "bbr")]
    with pytest.raises(ends) as ended:
        campaign.run(runs, folder / "c", Execution(jobs=1))
    assert ended.value.args == status
    assert [result.record.status for result in bakeoff.results.survey(folder / "c").results] == ["ok"]
    assert bakeoff.results.survey(folder / "c").half_written == []


def test_a_hook_that_exits_fails_alone(folder):
    cc = mine("    def cong_avoid(self, sk, acked):\n        raise SystemExit(3)\n")
    report = campaign.run(
        [duel("cubic", other, duration="1s") for other in ("reno", cc)], folder / "c", Execution(jobs=1)
    )
    assert [done.status for done in report.runs] == ["ok", "failed"]
    assert "SystemExit: 3" in report.runs[1].error


def test_a_file_that_exits_is_a_mistake_in_it(folder):
    Path("mine.py").write_text("raise SystemExit(0)\n")
    with pytest.raises(BakeoffError, match=r"mine.py: cannot load\n.*\n.*\nSystemExit: 0"):
        campaign.run([duel("./mine.py:Mine", "reno", duration="1s")], folder / "c", Execution(jobs=1))
