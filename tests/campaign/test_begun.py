"""Going on with a campaign, or doing again what failed in it: with the options that it was begun with."""

import json
import shutil
from pathlib import Path

import pytest

import bakeoff
from bakeoff import results
from bakeoff.engines.kernel import registry
from bakeoff.results import Request, layout
from bakeoff.scenario import parse_settings

SCENARIO = """
duration: 2s
network: {path: [a, m, b], rtt: 20ms, bottleneck: {rate: 2mbit, qdisc: pfifo limit 50}}
flows: [{name: one, cc: "./mycc.py:MyCC"}, {name: two, cc: "{two}"}]
vary: {two: [cubic, reno]}
measure: {steady_state: {window: 1s, ends: at end}}
"""
CC = """
from pathlib import Path
class MyCC:
    def ssthresh(self, tp):
        return 10
    def cong_avoid(self, tp, acked):
        if Path("broken").exists():
            raise ValueError("broken")
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(SCENARIO)
    Path("mycc.py").write_text(CC)
    return tmp_path


def cc_of(run):
    return [flow.cc for flow in run.run.flows]


def test_last_failed_needs_no_patterns_and_keeps_options_seeds_and_traces(cli):
    Path("broken").touch()
    words = ("--set", "network.rtt=30ms", "-k", "reno", "--seeds", "2", "--trace", "cc")
    assert cli("run", "mine.yaml", *words, "-j", "1", "-q")[0] == 1
    Path("broken").unlink()
    Path("mycc.py").write_text(CC + "    mended = True\n")  # another source: the run is resolved anew
    code, out, err = cli("run", "--last-failed", "-j", "1", "--allow-code")
    assert (code, out.splitlines()[0][:14]) == (0, "2 runs: 2 done")
    assert err.startswith(
        "options of the resumed campaign: mine.yaml --set network.rtt=30ms -k reno --seeds 2 --trace cc\n"
    )
    done = results.survey(Path("results/latest")).results
    assert [(run.ok, run.run.seed, run.run.trace) for run in done] == [
        (True, 1, ["cc"]),
        (True, 2, ["cc"]),
    ]
    assert cli("run", "--last-failed")[1].endswith(": no failed runs\n")


def test_resume_takes_the_options_that_the_campaign_was_begun_with(cli):
    cli("run", "mine.yaml", "--set", "flows.0.cc=reno", "--name", "x", "-q", "-j", "1")
    [gone, kept] = results.scan("results/x")
    shutil.rmtree(gone)
    code, out, err = cli("run", "mine.yaml", "--resume", "-j", "1")
    assert (code, out.splitlines()[0][:25]) == (0, "2 runs: 1 done, 1 skipped")
    assert err.startswith("options of the resumed campaign: --set flows.0.cc=reno\n")
    assert [path.name for path in results.scan("results/x")] == [gone.name, kept.name]
    assert cc_of(results.read(gone))[0] == "reno"
    code, _, err = cli("run", "mine.yaml", "--resume", "--set", "flows.0.cc=bbr")
    assert (code, "'--set flows.0.cc=bbr'; resume it with its own" in err) == (2, True)


def test_resume_takes_seeds_traces_and_captures_too(cli):
    Path("mine.yaml").write_text(SCENARIO.replace("./mycc.py:MyCC", "cubic"))
    words = ("--seeds", "2", "--trace", "cc", "--capture", "m>b")
    cli("run", "mine.yaml", "-k", "reno", *words, "--name", "x", "-q", "-j", "1")
    [first, second] = results.scan("results/x")
    shutil.rmtree(second)
    code, out, err = cli("run", "mine.yaml", "--resume", "-j", "1")
    assert (code, out.splitlines()[0][:25]) == (0, "2 runs: 1 done, 1 skipped")
    assert err.startswith("options of the resumed campaign: -k reno --seeds 2 --trace cc --capture 'm>b'\n")
    assert results.scan("results/x") == [first, second]
    again = results.read(second).run
    assert (again.trace, again.captures) == (["cc"], ["m>b"])
    code, out, err = cli("run", "mine.yaml", "--resume", "--seeds", "3", "-j", "1")  # one more makes no other campaign
    assert (code, out.splitlines()[0][:25]) == (0, "3 runs: 1 done, 2 skipped")
    assert err.startswith("options of the resumed campaign: -k reno --trace cc --capture 'm>b'\n")


def test_campaign_json_keeps_the_request_as_an_object(cli):
    Path("mine.yaml").write_text(SCENARIO.replace("./mycc.py:MyCC", "cubic"))
    words = ("--set", "network.rtt=30ms", "--set", "flows.0.count=2", "-k", "reno", "--seeds", "2", "--trace", "cc")
    cli("run", "mine.yaml", *words, "--name", "x", "-q", "-j", "1")
    document = json.loads((Path("results/x") / layout.CAMPAIGN).read_text())
    assert (document["kind"], "patterns" in document) == ("run", False)
    assert document["request"] == {
        "patterns": ["mine.yaml"],
        "only": "reno",
        "settings": {"network.rtt": "30ms", "flows.0.count": 2},
        "seeds": 2,
        "trace": ["cc"],
    }
    record = results.read_campaign(Path("results/x"))
    assert record.lines() == [
        "mine.yaml",
        "--set network.rtt=30ms --set flows.0.count=2 -k reno",
        "--seeds 2 --trace cc",
    ]


@pytest.mark.parametrize(
    ("kind", "lines", "request_"),
    [
        (
            "run",
            ["a b/*", "--set flows.0.cc=bbr --set 'network.rtt=40ms' -k 're:(a|b) *'", "--seeds 2 --trace cc"],
            Request(
                patterns=("a b/*",), settings={"flows.0.cc": "bbr", "network.rtt": "40ms"}, only="re:(a|b) *", seeds=2,
                trace=("cc",),
            ),
        ),
        (
            "sweep",
            ["mine.yaml --over 'network.rtt=log:1ms..1s:3' --over a=1,2 --sample lhs:8 -k x --seeds 3 --measure jain"],
            Request(
                kind="sweep", patterns=("mine.yaml",), over=("network.rtt=log:1ms..1s:3", "a=1,2"), sample="lhs:8",
                only="x", seeds=3, measures=("jain",),
            ),
        ),
        (
            "advise",
            ["--up 20mbit --down 100mbit --rtt 30ms --link plain --duration 60s"],
            Request(
                kind="advise",
                line={"up": "20mbit", "down": "100mbit", "rtt": "30ms", "link": "plain", "duration": "60s"},
            ),
        ),
        ("duel", ["prague-vs-cubic"], Request(kind="duel", patterns=("prague-vs-cubic",))),
        ("verify", [], Request(kind="verify")),
    ],
)  # fmt: skip
def test_an_older_bakeoffs_request_is_read_from_its_text(kind, lines, request_):
    """As d633c91 wrote it: patterns, and a line of words for the options."""
    assert Request.of_lines(kind, lines) == request_
    assert request_.outside(request_) == []


@pytest.mark.parametrize(
    "value", ["40ms", "2", 2, 2.5, True, "true", None, "null", "a: b", "{x}", "", " x", "'q'", [1, "a"], {"cc": "bbr"}]
)
def test_the_words_of_a_setting_are_read_back(value):
    words = Request(settings={"flows.0.x": value}).words()
    assert words[0] == "--set"
    assert parse_settings(words[1:]) == {"flows.0.x": value}


def test_a_campaign_that_an_older_bakeoff_began_is_continued(cli):
    Path("mine.yaml").write_text(SCENARIO.replace("./mycc.py:MyCC", "cubic"))
    cli("run", "mine.yaml", "--set", "network.rtt=30ms", "-k", "reno", "--name", "x", "-q", "-j", "1")
    file = Path("results/x") / layout.CAMPAIGN
    document = json.loads(file.read_text()) | {"patterns": ["mine.yaml", "--set network.rtt=30ms -k reno"]}
    del document["request"]
    file.write_text(json.dumps(document))
    code, out, err = cli("run", "mine.yaml", "--resume", "-j", "1")
    assert (code, out.startswith("1 runs: 1 skipped in ")) == (0, True)
    assert err.startswith("options of the resumed campaign: --set network.rtt=30ms -k reno\n")
    code, _, err = cli("run", "mine.yaml", "--resume", "--set", "network.rtt=50ms")
    assert (code, "'--set network.rtt=50ms'; resume it with its own" in err) == (2, True)


@pytest.mark.parametrize("line", ["--seeds many", "--set 'a", "-k"])
def test_options_of_a_campaign_that_are_none_are_refused(cli, line):
    bakeoff.run("mine.yaml", out="x", jobs=1, allow_code=True)
    file = Path("x") / layout.CAMPAIGN
    document = json.loads(file.read_text()) | {"patterns": ["mine.yaml", line + " "]}
    del document["request"]
    file.write_text(json.dumps(document))
    code, _, err = cli("run", "mine.yaml", "--resume", "--out", "x")
    assert (code, "x: campaign.json: patterns: invalid options of 'bakeoff run'" in err) == (2, True)


def test_without_patterns_there_is_one_message(cli):
    assert "missing argument PATTERN" in cli("run")[2]
    bakeoff.duel("cubic", "reno", duration="2s", rate="2mbit", out="d")
    run = next(Path("d").rglob(layout.RUN))
    run.write_text(json.dumps(json.loads(run.read_text()) | {"status": "failed", "error": "x"}))
    code, _, err = cli("run", "--last-failed", "--out", "d")
    assert (code, "d: no campaign of 'bakeoff run'; expected patterns" in err) == (2, True)


def test_kernels_are_listed_for_programs(cli, cache_folder):
    assert cli("kernel", "list", "--json") == (0, "[]\n", "")
    folder = cache_folder / "kernels" / "mine"
    folder.mkdir(parents=True)
    (folder / "linux").touch(mode=0o755)
    (folder / "config").write_text("CONFIG_NET=y\n")
    registry.save(registry.BuiltKernel("mine", folder / "linux", "6.6.1", "ab" * 32, {"NET": "y"}), folder)
    [kernel] = json.loads(cli("kernel", "list", "--json")[1])
    assert (kernel["name"], kernel["release"], kernel["binary"]) == ("mine", "6.6.1", str(folder / "linux"))
    assert (kernel["fingerprint"], kernel["modules"], kernel["not_granted"]) == ("ab" * 32, [], [])


def test_tables_and_comparisons_of_mixed_epochs_say_so_where_they_are_read(cli):
    Path("mine.yaml").write_text(SCENARIO.replace("./mycc.py:MyCC", "cubic"))
    bakeoff.run("mine.yaml", out="x", jobs=1)
    run = results.scan("x")[0] / layout.RUN
    document = json.loads(run.read_text())
    document["provenance"]["model_epoch"] = 0
    run.write_text(json.dumps(document))
    words = "the runs come from different model epochs (1 from epoch 0, 1 from epoch "
    for form in ("markdown", "html"):
        assert words in cli("table", "x", "-f", form)[1]
        assert words in cli("compare", "x", "x", "-f", form)[1].replace("2 from", "1 from")
    assert words in cli("table", "x", "-f", "latex")[1].partition(r"\begin{tabular}")[0]
    [warning] = json.loads(cli("table", "x", "-f", "json")[1])["warnings"]
    assert warning.startswith(words)
    assert len(json.loads(cli("compare", "x", "x", "-f", "json")[1])["warnings"]) == 1
    code, out, err = cli("table", "x")
    assert (code, words in out, words in err) == (0, False, True)
