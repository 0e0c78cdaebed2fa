"""The command line: what it prints, where it writes, how it ends."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bakeoff import results
from bakeoff.campaign import campaign_record
from fakes import CATALOG
from fakes.runs import words

HEAVY = (
    "matplotlib",
    "numpy",
    "polars",
    "pydantic",
    "rich",
    "yaml",
    "bakeoff.api",
    "bakeoff.scenario",
    "bakeoff.campaign.schedule",
)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, fake_engine):
    """An empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def cli(cli):
    """The command line, with the fake engine for what does runs."""
    return lambda *arguments: cli(*words(*arguments))


def child(*arguments: str, **options) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


# Help, version, completion.


@pytest.mark.parametrize("command", ["list", "show", "run", "table", "plot", "compare", "duel", "schema"])
def test_every_help_has_an_example_that_calls_the_command(cli, command):
    code, out, err = cli(command, "--help")
    assert (code, err) == (0, "")
    assert re.search(rf"Examples?:\n(    .*\n)*?    bakeoff {command}", out)


def test_help_names_all_commands(cli):
    code, out, _ = cli("--help")
    assert code == 0
    for command in ("list", "show", "run", "table", "plot", "compare", "duel", "schema"):
        assert re.search(rf"^  {command} ", out, re.MULTILINE)


@pytest.mark.parametrize("words", [[], ["kernel"]])
def test_no_summary_of_a_command_is_cut(cli, words):
    """At the 80 columns of a pipe."""
    _, out, _ = cli(*words, "--help")
    assert not re.findall(r"^  .*\.\.\.$", out, re.MULTILINE)


@pytest.mark.parametrize("module", ["bakeoff", "bakeoff.cli.app"])
def test_help_imports_nothing_heavy(module):
    code = f"import sys, {module}; print([name for name in {HEAVY!r} if name in sys.modules])"
    out, err = child("-c", code).communicate(timeout=60)
    assert (out, err) == ("[]\n", "")


def test_help_on_a_command_imports_nothing_heavy():
    code = f"""import atexit, sys, bakeoff.cli
atexit.register(lambda: print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr))
sys.argv = ["bakeoff", "run", "--help"]
bakeoff.cli.main()"""
    out, err = child("-c", code).communicate(timeout=60)
    assert "bakeoff run" in out
    assert err == "[]\n"


def test_help_on_a_command_reads_the_parameters_of_no_other():
    code = """import sys
from bakeoff import cli
from bakeoff.cli import command

read = []
whole = command.get_command_from_info

def reading(info, **settings):
    read.append(info.name)
    return whole(info, **settings)

command.get_command_from_info = reading
sys.argv = ["bakeoff", "run", "--help"]
try:
    cli.main()
finally:
    print(read, file=sys.stderr)"""
    out, err = child("-c", code).communicate(timeout=60)
    assert "bakeoff run" in out
    assert err == "['run']\n"


def test_what_does_runs_is_imported_when_it_is_asked_for():
    code = """import sys; from bakeoff import campaign
print([name for name in sys.modules if name.startswith("bakeoff.campaign.")])
print(all(hasattr(campaign, name) for name in campaign.__all__), hasattr(campaign, "other"))"""
    out, err = child("-c", code).communicate(timeout=60)
    assert (out, err) == ("['bakeoff.campaign.locations']\nTrue False\n", "")


def test_version(cli):
    code, out, _ = cli("--version")
    assert code == 0
    assert re.fullmatch(r"bakeoff \d+.*\n", out)


# list, show, schema.


def test_list_shows_scenarios_with_runs_and_time(cli):
    code, out, err = cli("list")
    assert code == 0
    assert out.splitlines() == [
        "fake/s1-first   3 runs  180 s  The first: {name}",
        "fake/s2-second  3 runs  180 s  The second: {does}",
    ]
    assert err == "in all: 6 runs, 360 s simulated\n"


def test_list_of_a_pattern_shows_its_runs(cli):
    _, out, err = cli("list", "fake/s1*")
    assert [line.split()[0] for line in out.splitlines()] == [f"fake/s1-first/{name}" for name in "abc"]
    assert err == "in all: 3 runs, 180 s simulated\n"


def test_list_as_json(cli):
    assert json.loads(cli("list", "--json")[1])[0] == {
        "scenario": "fake/s1-first",
        "title": "The first: {name}",
        "runs": 3,
        "simulated_s": 180.0,
    }
    assert json.loads(cli("list", "*/a", "--json")[1]) == [
        {"run": "fake/s1-first/a", "title": "The first: a", "simulated_s": 60.0}
    ]


def test_show_a_run_is_json_and_says_what_is_in_effect(cli):
    code, out, err = cli("show", "fake/s1-first/b")
    assert code == 0
    assert json.loads(out)["run"] == "b"
    assert err == "\nIn effect (fake):\nmid>srv: pie limit 1000p (b)\n"


def test_show_a_scenario_is_its_file(cli):
    code, out, err = cli("show", "fake/s1-first")
    assert (code, out) == (0, (CATALOG / "suites/fake/s1-first.yaml").read_text())
    assert "3 runs match; the first is fake/s1-first/a" in err
    assert "mid>srv: pie limit 1000p (a)" in err


def test_show_what_the_engine_refuses(cli):
    code, out, err = cli("show", "fake/s2-second/refused")
    assert code == 2
    assert json.loads(out)["run"] == "refused"
    assert "s2-second.yaml: fake/s2-second/refused: flows[0].cc: unknown congestion control 'pragu'" in err


def test_schema_is_json(cli):
    assert {"scenario", "network", "flows"} <= json.loads(cli("schema")[1])["properties"].keys()


# run.


def test_run_ends_with_where_the_results_lie_and_what_to_do_next(cli, folder):
    code, out, err = cli("run", "fake/s1*", "--jobs", "1")
    assert code == 0
    [root] = [path for path in (folder / "results").iterdir() if not path.is_symlink()]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d", root.name)
    counts, where, then = out.splitlines()
    assert re.fullmatch(r"3 runs: 3 done in \d+\.\d s", counts)
    assert where == f"results: results/{root.name}"
    assert then == f"next:    bakeoff table results/{root.name}"
    assert [re.sub(r"\d+\.\d\d s", "T", line) for line in err.splitlines()] == [
        f"[{i}/3] fake/s1-first/{name}: T" for i, name in enumerate("abc", 1)
    ]
    assert (folder / "results" / "latest").resolve() == root
    assert len(results.scan(root)) == 3


def test_run_as_json(cli):
    _, out, _ = cli("run", "fake/s1-first/a", "--json", "--out", "x")
    document = json.loads(out)
    assert document["results"] == "x"
    [run] = document["runs"]
    assert run.pop("wall_s") >= 0
    assert run == {"run": "fake/s1-first/a", "path": "x/fake/s1-first/a", "status": "ok", "error": None}


def test_run_with_seeds_and_a_name(cli, folder):
    code, _, _ = cli("run", "fake/s1-first/a", "fake/s1-first/b", "--seeds", "2", "--name", "mine", "-j", "1")
    assert code == 0
    assert [path.name for path in results.scan(folder / "results" / "mine")] == ["a", "a~seed2", "b", "b~seed2"]


def test_run_with_a_failed_run_ends_with_1_and_names_it(cli, folder):
    code, out, err = cli("run", "*/violates", "*/a", "--out", "x", "--jobs", "1")
    assert code == 1
    assert out.startswith("2 runs: 1 done, 1 failed in ")
    line = (
        "failed: fake/s2-second/violates: conservation: sent 10, delivered 8, dropped 1, queued 0: 1 packet is missing"
    )
    assert f"{line} (x/fake/s2-second/violates)\n" in err
    assert len(results.scan(folder / "x")) == 2


def test_a_refused_run_is_told_and_the_others_are_done(cli):
    code, out, err = cli("run", "fake/s1-first/a", "fake/s2-second/refused", "--out", "r", "--jobs", "1")
    assert code == 1
    assert "cannot be run here: fake/s2-second/refused: flows[0].cc: unknown congestion control 'pragu'" in err
    assert "1 more cannot be run here, such as fake/s2-second/refused" in out
    assert [result.key for result in results.survey("r").results] == ["fake/s1-first/a"]


def test_a_refused_run_ends_with_2_and_writes_nothing(cli, folder):
    code, out, err = cli("run", "fake*", "--out", "x", "--strict")
    assert (code, out) == (2, "")
    assert re.fullmatch(r"bakeoff: .*/s2-second.yaml: fake/s2-second/refused: flows\[0\].cc: unknown .*\n", err)
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "nothing*"], "no such run in the catalog"),
        (["run", "*/a", "--engine", "smi"], "unknown engine 'smi'; expected one of: sim"),
        (["run", "*/a", "--out", "x", "--name", "y"], "--out and --name: mutually exclusive"),
        (["run", "*/a", "--name", "../x"], "invalid folder name '../x'"),
        (["run", "*/a", "--name", "latest"], "invalid folder name 'latest'"),
        (["run", "*/a", "--name", "duels"], "invalid folder name 'duels'"),
        (["run", "*/a", "--note", "two\nlines"], "note: 'two\\nlines' contains an unprintable character"),
        (["run", "*/a", "--resume"], "results/latest: no campaign"),
        (["run", "*/a", "--out", "file"], "file: not a folder; expected a results folder"),
        (["table"], "results/latest: no campaign"),
        (["plot", "nowhere"], "nowhere: no such results folder"),
        (["table", "empty"], "empty: no results; create some: bakeoff run"),
        (["duel", "prague", "cubic", "--rate", "50"], "duel: network.bottleneck.rate: '50' has no unit"),
        (["run", "*/a", "--jobs", "0"], "Invalid value for '--jobs'"),
        (["run", "*/a", "--seeds", "0"], "Invalid value for '--seeds'"),
        (["run"], "missing argument PATTERN"),
    ],
)
def test_a_mistake_ends_with_2_and_one_message(cli, folder, arguments, message):
    (folder / "file").write_text("notes")
    (folder / "empty").mkdir()
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert sorted(path.name for path in folder.iterdir()) == ["empty", "file"]


def test_dry_run_counts_and_writes_nothing(cli, folder):
    # 3 runs of 60 s; at 12 Mbit/s each takes 0.1 s + 60 000 packets / 2 million per second = 0.13 s.
    code, out, _ = cli("run", "fake/s1*", "--dry-run", "--jobs", "1", "--json")
    assert code == 0
    cost = json.loads(out)
    assert (cost["runs"], cost["simulated_s"], cost["jobs"], cost["estimated_wall_s"]) == (3, 180.0, 1, 0.4)
    assert cost["keys"] == [f"fake/s1-first/{name}" for name in "abc"]
    assert cli("run", "fake/s1*", "--dry-run", "-j", "1")[1] == "3 runs, 180 s simulated, about 0 s with 1 jobs\n"
    assert cli("run", "fake*", "--dry-run", "--strict")[0] == 2
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_x_begins_no_run_after_one_that_failed(cli, folder, jobs):
    # Where two run at a time, the first ends while the one that fails is still to come.
    code, out, err = cli("run", "*/violates", "fake/s1*", "--seeds", "2", "-x", "--out", "x", "-j", jobs)
    assert code == 1
    done = len(results.scan(folder / "x"))
    assert 1 <= done < 8
    assert f"stopped after a failure: {8 - done} of 8 runs not started\n" in err
    assert out.startswith(f"{done} runs: ")


def test_last_failed_does_those_again_in_their_place(cli, folder):
    cli("run", "*/violates", "fake/s1*", "--out", "x", "-j", "1")
    before = (folder / "x" / "fake" / "s2-second" / "violates" / "run.json").stat().st_mtime_ns
    code, out, _ = cli("run", "*/violates", "fake/s1*", "--last-failed", "-j", "1")
    assert (code, out.splitlines()[0][:16]) == (1, "1 runs: 1 failed")
    assert (folder / "x" / "fake" / "s2-second" / "violates" / "run.json").stat().st_mtime_ns > before
    assert cli("run", "fake/s1*", "--last-failed") == (0, "x: no matching failed runs\n", "")


def test_durations_shows_the_longest_first(cli):
    out = cli("run", "fake/s1*", "--out", "x", "-j", "1", "--durations", "2")[1]
    head, *lines = out[out.index("slowest:") :].splitlines()
    seconds = [float(line.split()[0]) for line in lines]
    assert (head, len(lines), seconds) == ("slowest:", 2, sorted(seconds, reverse=True))
    assert all(re.fullmatch(r" +\d+\.\d\d s  fake/s1-first/[abc]", line) for line in lines)


def test_quiet_shows_only_what_failed(cli):
    assert cli("run", "fake/s1*", "--out", "x", "--quiet", "-j", "1") == (0, "", "")
    code, out, err = cli("run", "*/violates", "--out", "y", "-q")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert err.startswith("failed: fake/s2-second/violates: ")
    assert cli("duel", "cubic", "reno", "--duration", "2s", "-q", "--out", "z")[2] == ""


def test_verbose_shows_when_a_run_begins(cli):
    err = cli("run", "*/a", "--out", "x", "-v")[2]
    assert re.fullmatch(r"      fake/s1-first/a: started\n\[1/1\] fake/s1-first/a: \d\.\d\d s\n", err)
    assert "--quiet and --verbose: mutually exclusive" in cli("run", "*/a", "-q", "-v", "--out", "y")[2]


def test_ctrl_c_says_how_to_go_on_and_resume_does(cli, folder):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code, out, err = cli("run", "fake/s1*", "*/interrupts", "--out", "x", "-j", "1", "--seeds", "2")
    finally:
        signal.signal(signal.SIGINT, before)
    assert (code, out) == (130, "")
    assert "interrupted: 6 of 8 runs finished in x\n" in err
    assert "continue with: bakeoff run 'fake/s1*' '*/interrupts' --out x --resume --seeds 2 --engine fake\n" in err
    assert list(folder.rglob("*.partial")) == []
    code, out, _ = cli("run", "fake/s1*", "--resume", "--seeds", "2", "-j", "1")  # the latest
    assert code == 0
    assert out.startswith("6 runs: 6 skipped in ")
    assert "results: x\n" in out


def test_a_second_campaign_into_the_same_folder_is_refused(cli, folder):
    cli("run", "*/a", "--out", "x")
    code, _, err = cli("run", "*/b", "--out", "x")
    assert code == 2
    assert "bakeoff: x: not empty" in err
    assert [path.name for path in results.scan(folder / "x")] == ["a"]


@pytest.mark.parametrize("colour", [True, False])
def test_a_terminal_gets_a_bar(folder, colour):
    primary, secondary = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "bakeoff", *words("run", "*/violates", "fake/s1*"), "--out", "x", "-j", "1"],
        env=os.environ | {"TERM": "xterm"} | ({} if colour else {"NO_COLOR": "1"}),
        stdout=subprocess.PIPE,
        stderr=secondary,
    ) as process:
        os.close(secondary)
        shown = b""
        try:
            while piece := os.read(primary, 1 << 16):
                shown += piece
        except OSError:  # Linux's end of file at a terminal
            pass
        process.communicate(timeout=60)
    os.close(primary)
    assert process.returncode == 1
    assert "━" in shown.decode()
    assert "4/4" in shown.decode()
    assert "failed: fake/s2-second/violates: conservation" in shown.decode()
    assert "fake/s1-first/a" in shown.decode()
    assert (re.search(rb"\x1b\[[0-9;]*3[0-9]", shown) is not None) == colour


# table, plot.


@pytest.fixture
def three(cli):
    cli("run", "fake/s1*", "--out", "results/three", "-j", "1")


def listed(cli, *arguments: str) -> list[str]:
    """The runs in the rows of a table."""
    code, out, _ = cli("table", *arguments, "--format", "csv", "--columns", "run")
    head, *rows = out.splitlines()
    assert (code, head) == (0, "run")
    return rows


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("results_", [[], ["results/three"], ["fake/s1-first"], ["results"]])
def test_table_of(cli, results_):
    assert listed(cli, *results_) == ["a", "b", "c"]


@pytest.mark.usefixtures("three")
def test_table_of_one_run_in_a_format_beside_a_reference(cli):
    assert listed(cli, "*/b") == listed(cli, "results/three/fake/s1-first/b") == ["b"]
    of_b = cli("table", "*/b", "--format", "markdown")
    assert of_b[0] == 0
    assert "| b" in of_b[1]
    assert cli("table", "results/three/fake/s1-first/b", "-f", "markdown") == of_b
    code, _, err = cli("table", "*/b", "--reference", "nowhere")
    assert (code, "reference: unknown 'nowhere'" in err) == (2, True)
    code, _, err = cli("table", "*/z")
    assert code == 2
    assert "'*/z': no such folder, and no match among the runs in results/three" in err


@pytest.mark.usefixtures("three")
def test_half_written_folders_are_reported_and_left_out(cli, folder):
    (folder / "results" / "three" / "fake" / "s1-first" / "b" / "counters.json").unlink()
    assert listed(cli) == ["a", "c"]
    assert cli("table", "-f", "csv")[2] == (
        "bakeoff: skipped incomplete runs: results/three/fake/s1-first/b (counters.json is missing); "
        "do them again with 'bakeoff run … --resume'\n"
    )


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("command", [["table"], ["plot"]])
def test_runs_of_different_model_epochs_do_not_stand_together_unsaid(cli, folder, command):
    path = folder / "results" / "three" / "fake" / "s1-first" / "b" / "run.json"
    run = json.loads(path.read_text())
    run["provenance"]["model_epoch"] = 0
    path.write_text(json.dumps(run))
    code, _, err = cli(*command)
    assert code == 0
    assert err.startswith("bakeoff: the runs come from different model epochs (1 from epoch 0, 2 from epoch ")


@pytest.mark.usefixtures("three")
def test_plot_of_a_campaign_and_of_a_run(cli, folder):
    three = Path("results/three")
    assert cli("plot") == (0, f"{three}/plots/first_cc_qdisc.svg\n", "")
    alone = three / "fake" / "s1-first" / "b" / "tcp_delivery_with_rtt.png"
    assert cli("plot", "*/b", "--format", "png") == (0, f"{alone}\n", "")
    assert cli("plot", "*/b", "--kind", "queue", "--out", "here/b.svg") == (0, "here/b.svg\n", "")
    names = [f"here/fake_s1-first_{name}-queue.svg" for name in "abc"]
    assert cli("plot", "results/three", "--kind", "queue", "--out", "here")[1].split() == names
    assert cli("plot", "*/a", "*/b", "--overlay", "--out", "ab.pdf") == (0, "ab.pdf\n", "")
    for name, begins in ((three / "plots/first_cc_qdisc.svg", b"<?xml"), (alone, b"\x89PNG"), ("ab.pdf", b"%PDF")):
        assert (folder / name).read_bytes().startswith(begins)
    assert len(results.scan(three)) == 3


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kind", "pie"], "unknown 'pie'; expected one of tcp_delivery_with_rtt, "),
        (
            ["--kind", "queue", "--out", "all.svg"],
            "--out: 'all.svg' is a file, but there are several pictures",
        ),
        (
            ["--out", "a.jpg"],
            "--out: 'a.jpg' has no known suffix; expected a file ending in .svg, .png, .pdf",
        ),
        (["--out", "a.svg", "-f", "png"], "--out: 'a.svg' does not match --format png"),
        (["--measure", "jain"], "--measure: only valid with --kind sweep or heatmap, not with 'bars'"),
        (["--kind", "sweep", "--y", "rtt"], "--y: only valid with --kind heatmap, not with 'sweep'"),
        (["--kind", "cwnd", "--scale", "var"], "--scale: only valid with --kind tcp_delivery_with_rtt"),
        (["--kind", "bars", "--overlay"], "--overlay: not valid with --kind bars"),
    ],
)
def test_options_of_plot_that_do_not_fit(cli, folder, arguments, message):
    before = set(folder.rglob("*"))
    code, _, err = cli("plot", *arguments)
    assert code == 2
    assert message in err
    assert set(folder.rglob("*")) == before


def test_the_kinds_are_listed(cli):
    assert "of a campaign:\n  bars" in cli("plot", "--list-kinds")[1]


# duel.

DUEL = ("duel", "prague", "cubic", "--duration", "2s")


def test_duel_shows_who_got_what(cli, folder):
    code, out, _ = cli(*DUEL, "--qdisc", "pie ecn", "--rtt2", "40ms", "--out", "d")
    [path] = results.scan(folder / "d")
    result = results.read(path)
    first, second = (result.summary.flows[name].steady_state.goodput_bps for name in ("prague", "cubic"))
    assert code == 0
    for name, rate in (("prague", first), ("cubic", second)):
        assert re.search(rf"^{name} +{rate / 1e6:.2f} +{rate / (first + second):.0%} ", out, re.MULTILINE)
    assert out.endswith(f"next:    bakeoff plot {path.relative_to(folder)}\n")
    assert "mid>srv: 50 Mbit/s, pie " in out
    asked = {"cc1": "prague", "cc2": "cubic", "qdisc": "pie ecn", "rate": "50mbit", "rtt": "20ms", "rtt2": "40ms"}
    assert result.run.point == asked


def test_a_duel_has_its_own_place_and_leaves_the_latest_run(cli, folder):
    cli("run", "*/a", "--out", "results/mine")
    assert cli(*DUEL)[0] == 0
    duel = (folder / "results" / "duels" / "latest").resolve()
    assert duel.parent == folder / "results" / "duels"
    assert [path.name for path in results.scan(duel)] == ["prague-vs-cubic-fq_codel_flows_1-50mbit-20ms"]
    assert (folder / "results" / "latest").resolve() == folder / "results" / "mine"
    code, _, err = cli("run", "*/a", "--resume", "--out", str(duel))
    assert code == 2
    assert "contains a duel, not a run; choose another --out" in err


def test_duel_as_json_and_with_seeds(cli):
    one = json.loads(cli(*DUEL, "--json", "--out", "d")[1])
    summary = one.pop("summary")
    key = f"local/duel/{summary['run']}"
    assert one == {"results": f"d/{key}", "run": key}
    assert summary == json.loads(Path("d", key, "summary.json").read_text())
    two = json.loads(cli(*DUEL, "--json", "--seeds", "2", "--out", "e", "-j", "1")[1])
    assert [each["summary"]["seed"] for each in two] == [1, 2]
    assert two[0]["summary"] == summary
    assert "±" in cli(*DUEL, "--seeds", "2", "--out", "f", "-j", "1")[1]


BROKEN = """
class Mine:
    def ssthresh(self, sk):
        return 2

    def cong_avoid(self, sk, acked):
        raise ValueError("no window")
"""


def test_a_failed_duel_ends_with_1(cli):
    Path("mine.py").write_text(BROKEN)
    code, _, err = cli("duel", "./mine.py:Mine", "cubic", "--duration", "2s")
    assert code == 1
    assert ": failed: duel: local/duel/Mine-vs-cubic-fq_codel_flows_1-50mbit-20ms: Mine.cong_avoid failed" in err


def test_a_campaign_that_was_interrupted_at_once_says_how_to_go_on(cli):
    folder = Path("begun")
    folder.mkdir()
    made = campaign_record.provenance()
    asked = results.Request(patterns=("fake/s1*",), only="re:(a|b) *")
    campaign_record.begin(folder, asked, "kernel:x", {}, made, runs=2)
    code, _, err = cli("table", "begun")
    assert (code, err) == (
        2,
        "bakeoff: begun: no results; its campaign was interrupted before the first run ended; continue with: "
        "bakeoff run 'fake/s1*' -k 're:(a|b) *' --engine kernel:x --out begun --resume\n",
    )


def test_tables_have_formats(cli):
    rows = cli("list", "fake/s1*", "-f", "csv")[1].splitlines()
    assert rows[0] == "run,title,simulated_s"
    assert rows[1].startswith("fake/s1-first/a,")
    assert json.loads(cli("list", "fake/s1*", "-f", "json")[1]) == json.loads(cli("list", "fake/s1*", "--json")[1])
    assert cli("duel", "cubic", "reno", "--duration", "2s", "--out", "d", "-f", "csv")[1].startswith("suite,scenario,")
    assert "| run " in cli("results", "d", "-f", "markdown")[1]
    [row] = json.loads(cli("results", "d", "-f", "json")[1])
    assert row["status"] == "ok"
