"""Programs of the machine in a scenario: words and refusals, what they leave, and runs of them in virtual time."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from bakeoff import campaign, engines, files, measure, results
from bakeoff.campaign import Execution
from bakeoff.engines.kernel import registry, stall
from bakeoff.engines.lab import plan, scenario_programs, tool_output
from bakeoff.errors import BakeoffError
from bakeoff.scenario import Run, expand, load
from bakeoff.scenario.run import Program

NETWORK = "duration: 3s\nnetwork: {path: [cli, mid, srv], rtt: 20ms, bottleneck: {rate: 10mbit, qdisc: fq_codel}}\n"
FLOW = "flows: [{cc: reno, source: {bytes: 10kB}}]\n"


def runs(folder: Path, listed: str, more: str = "") -> list[Run]:
    path = folder / "own.yaml"
    path.write_text(f"scenario: own\n{NETWORK}{more or FLOW}programs:\n{listed}\n")
    return expand(load(path))


def test_words_are_filled_in_and_kept(tmp_path):
    listed = """  - {node: srv, run: "iperf3 -s -1"}
  - {node: cli, at: 1s, name: tcp, run: "iperf3 -c {srv} -C {cc} -J --title '{{x}}' --logfile {out}/log"}"""
    first, second = runs(tmp_path, listed, "vary: {cc: [cubic, reno]}\n")
    # Axes are filled in when the matrix is; addresses when the network is made.
    assert second.programs[1].argv[1:5] == ["-c", "{srv}", "-C", "reno"]
    made = plan(first, captures="/tmp/out").programs[1]
    assert made.argv[1:] == (
        *("-c", "10.9.0.2", "-C", "cubic", "-J", "--title", "{x}", "--logfile", "/tmp/out/programs/tcp/log"),
    )
    assert [program.name for program in first.programs] == ["iperf3", "tcp"]
    # The client's output is iperf3's JSON: that it makes a flow goes without saying, and the agent makes none.
    assert [(flow.name, flow.from_, flow.to, flow.cc) for flow in first.flows] == [("tcp", "cli", "srv", "cubic")]
    assert not plan(first).roles


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ('{node: sv, run: "true"}', r"programs\[0\]\.node: 'sv': no such host in the network; did you mean 'srv'"),
        ('{node: mid, run: "true"}', r"programs\[0\]\.node: 'mid': no such host"),
        ('{node: cli, run: "ping {sv}"}', r"programs\[0\]\.run: '\{sv\}': unknown node; did you mean"),
        ('{node: cli, run: "ping {srv} | cat"}', r"programs\[0\]\.run: '\|' needs a shell"),
        ('{node: cli, run: "echo \'a"}', r"programs\[0\]\.run: .*No closing quotation"),
        ('{node: cli, run: ""}', r"programs\[0\]\.run: '': missing program"),
        ('{node: cli, run: "../x"}', r"programs\[0\]\.run: '\.\./x' is outside"),
        ('{node: cli, run: "true", reads: [/etc/shadow]}', r"programs\[0\]\.reads\[0\]: '/etc/shadow' is outside"),
        ('{node: cli, run: "true", at: 4s}', r"programs\[0\]\.at: 4 s is after the end"),
        (
            '{node: cli, run: "true", at: 1s, stop: 1s}',
            r"programs\[0\]\.stop: 1 s; expected a time after the start, within the run of",
        ),
        ('{node: cli, run: "true", flow: {}}', r"programs\[0\]\.flow: from 'cli' to itself"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, program, said):
    with pytest.raises(BakeoffError, match=said):
        runs(tmp_path, f"  - {program}")


def test_engines_that_run_no_programs_say_so(tmp_path):
    assert not runs(tmp_path, "  []")[0].programs
    with pytest.raises(BakeoffError, match="flows: empty"):
        runs(tmp_path, "  []", "flows: []\n")
    [run] = runs(tmp_path, '  - {node: cli, run: "true"}')
    for name in ("sim", "netns"):
        said = rf"programs\[0\]: 'true': not supported by --engine {name}; expected --engine kernel"
        with pytest.raises(BakeoffError, match=said):
            engines.get(name).check(run)


def test_what_an_output_does_not_tell_of_a_flow_is_no_surprise(tmp_path):
    [run] = runs(tmp_path, "  []")
    [done] = campaign.run([run], tmp_path / "results", Execution(jobs=1)).runs
    found = results.read(done.path)
    kept = {key: part for key, part in found.parts.items() if key[2] not in ("delivery_rate", "srtt")}

    def missing(programs: list[Program]) -> list[str]:
        with_programs = found.run.model_copy(update={"programs": programs})
        told = SimpleNamespace(run=with_programs, counters=found.counters, parts=kept)
        return measure.summarise(told).missing

    assert any("no 'delivery_rate' samples of flow 'reno'" in line for line in missing([]))
    assert not [
        line
        for line in missing([Program(name="reno", node="cli", argv=["x"], measures="flow")])
        if "'delivery_rate'" in line or "'srtt'" in line
    ]


def test_a_run_of_programs_alone_needs_no_flow(tmp_path):
    probe = "probes: [{name: ping, type: icmp, every: 100ms}]\n"
    [alone] = runs(tmp_path, '  - {node: cli, run: "true"}', probe)
    assert alone.flows == []
    assert [role["role"] for role in plan(alone).roles] == ["icmp-probe"]
    # Its measures, of what the simulator gives of such a run with a flow.
    [usual] = runs(tmp_path, "  []", FLOW + probe)
    found = results.read(campaign.run([usual], tmp_path / "results", Execution(jobs=1)).runs[0].path)
    told = SimpleNamespace(
        run=found.run.model_copy(update={"flows": []}),
        counters=replace(found.counters, flows={}),
        parts={key: part for key, part in found.parts.items() if key[0] != "flow"},
    )
    summary = measure.summarise(told)
    assert (summary.flows, summary.jain, summary.utilisation, summary.missing) == ({}, None, None, [])
    assert summary.probes["ping"].rtt_s.mean == pytest.approx(0.02, rel=1e-3)


def test_no_stored_result_stands_for_a_run_with_programs(tmp_path):
    from bakeoff.campaign import store

    [run] = runs(tmp_path, '  - {node: cli, run: "true"}')
    assert store.key(run, "kernel", {}) is None


def test_folders_of_programs_are_swept_and_no_others(tmp_path):
    (tmp_path / "programs" / "a" / "b").mkdir(parents=True)
    (tmp_path / "programs" / "a" / "stdout").write_text("kept")
    (tmp_path / "programs" / "a" / "link").symlink_to("/etc/passwd")
    (tmp_path / "other").mkdir()
    found = files.sweep(tmp_path, ["programs", "programs/a"])
    assert found == ["'other' is a folder", "'programs/a/b' is a folder", "'programs/a/link' is a symbolic link"]
    assert [path.name for path in (tmp_path / "programs" / "a").iterdir()] == ["stdout"]


def test_ping_tells_answers_and_losses():
    # Requests leave at 100.0, 100.1 (lost) and 100.2 s; the run began at 90 s. Answers come 20 and 30 ms later.
    text = """PING 10.9.0.2 (10.9.0.2) 56(84) bytes of data.
[100.020000] 64 bytes from 10.9.0.2: icmp_seq=1 ttl=64 time=20.0 ms
[100.230000] 64 bytes from 10.9.0.2: icmp_seq=3 ttl=64 time=30.0 ms

--- 10.9.0.2 ping statistics ---
3 packets transmitted, 2 received, 33.3333% packet loss, time 200ms
"""
    told = tool_output.ToolOutput()
    scenario_programs.ping(text, "p", 90.0, told)
    assert [(round(t, 6), metric, value) for t, _, _, metric, value in told.rows] == [
        (10.0, "rtt", 0.02),
        (10.2, "rtt", 0.03),
        (10.1, "lost", 1.0),
    ]
    assert told.counters["probes"]["p"] == {"sent": 3, "received": 2}


def test_the_form_of_iperf3_is_read():
    # 125,000 bytes in 0.1 s are 10 Mbit/s; times count from the program's start at 2 s.
    total = {"start": 0.0, "end": 0.1, "bytes": 125_000, "bits_per_second": 1e7}
    end = {"sum_received": {"bytes": 125_000}, "sender_tcp_congestion": "quinn-bbr"}
    text = "a line\n" + json.dumps({"intervals": [{"sum": total}], "end": end})
    told = tool_output.ToolOutput()
    tool_output.iperf3(tool_output.document(text), "q", 2.0, told, udp=True)
    assert told.rows == [(2.1, "flow", "q", "goodput", 1e7), (2.1, "flow", "q", "received", 125_000.0)]
    assert told.counters["sources"]["q"] == {"cc": "quinn-bbr"}
    assert told.counters["sinks"]["q"] == {"received_bytes": 125_000}


def test_a_standstill_names_the_time_and_the_program(tmp_path):
    [run] = runs(tmp_path, "  - {node: cli, name: spin, run: \"sh -c 'while :; do :; done'\"}")
    watch = stall.Watch(run, tmp_path, patience_s=0.0)
    assert watch() is None
    (tmp_path / stall.PROGRESS).write_text('{"now_ns": 5, "t_s": 1.5, "running": ["spin"]}')
    assert watch() is None
    said = watch()
    assert said is not None
    assert said.startswith("virtual time has stood still at t = 1.500 s for 0 s: the program 'spin' (sh -c ")


needs_kernel = pytest.mark.skipif(not registry.list_kernels(), reason="no virtual-time kernel")


def needs(*names: str) -> pytest.MarkDecorator:
    missing = [name for name in names if shutil.which(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


@needs_kernel
@needs("iperf3", "irtt", "ping", "curl")
def test_programs_run_in_virtual_time(tmp_path):
    listed = """  - {node: srv, run: "iperf3 -s -1"}
  - {node: cli, at: 0s, name: tcp, run: "iperf3 -c {srv} -C reno -t 2 -i 0.5 -J --get-server-output"}
  - {node: srv, run: "irtt server"}
  - {node: cli, at: 0s, name: irtt-probe, run: "irtt client -i 100ms -d 1s -o - {srv}"}
  - {node: cli, at: 0s, run: "ping -D -i 0.1 -c 10 {srv}"}
  - {node: srv, name: web, run: "python3 -m http.server --directory /usr/share/doc/bash 8000"}
  - {node: cli, at: 2s, run: "curl -s -S -o {out}/copyright http://{srv}:8000/copyright"}
  - {node: cli, at: 0s, name: three, exit: 3, run: "sh -c 'echo out; echo err >&2; exit 3'"}"""
    [done] = campaign.run(
        runs(tmp_path, listed, "title: none\n"), tmp_path / "results", Execution(engine="kernel", jobs=1)
    ).runs
    assert done.error is None
    result = results.read(done.path)
    own = done.path / "programs"
    assert (own / "three" / "stdout").read_text() == "out\n"
    assert (own / "three" / "stderr").read_text() == "err\n"
    ended = result.all_counters()["programs"]
    assert (ended["three"]["exit"], ended["three"]["ended_by"], ended["web"]["ended_by"]) == (3, "itself", "run")
    if Path("/usr/share/doc/bash/copyright").is_file():
        assert (own / "curl" / "copyright").read_bytes() == Path("/usr/share/doc/bash/copyright").read_bytes()
    # 10 Mbit/s of frames of 1514 bytes are at most 9.6 Mbit/s of payload of 1448 bytes.
    goodput = result.summary.flows["tcp"].steady_state.goodput_bps
    assert 8e6 < goodput < 9.7e6
    assert result.all_counters()["probes"]["ping"]["sent"] == 10
    assert not [line for line in result.summary.missing if "'tcp'" in line]
    rtt = result.series.filter((pl_col("name") == "irtt-probe") & (pl_col("metric") == "rtt"))["value"]
    assert rtt.min() >= 0.02


def pl_col(name):
    import polars as pl

    return pl.col(name)


@needs_kernel
def test_programs_alone_are_shown(cli, tmp_path):
    listed = "  - {node: cli, at: 0s, name: said, run: \"sh -c 'echo once'\"}"
    alone = runs(tmp_path, listed, "probes: [{name: ping, type: icmp, every: 100ms}]\n")
    [done] = campaign.run(alone, tmp_path / "results", Execution(engine="kernel", jobs=1)).runs
    assert done.error is None
    assert (done.path / "programs" / "said" / "stdout").read_text() == "once\n"
    for words in (["table"], ["report"], ["site", "--out", str(tmp_path / "site")]):
        code, out, err = cli(words[0], str(tmp_path / "results"), *words[1:])
        assert (code, err) == (0, "")
        assert "ping" in out or words[0] == "site"


@needs_kernel
def test_a_program_that_fails_fails_the_run(tmp_path):
    [run] = runs(tmp_path, "  - {node: cli, at: 1s, name: bad, run: \"sh -c 'echo cannot >&2; exit 4'\"}")
    [done] = campaign.run([run], tmp_path / "results", Execution(engine="kernel", jobs=1)).runs
    assert "program 'bad': /usr/bin/sh -c 'echo cannot >&2; exit 4': exit code 4: cannot" in done.error
    assert (done.path / "programs" / "bad" / "stderr").read_text() == "cannot\n"


@needs_kernel
def test_a_program_that_is_not_there_is_named(tmp_path):
    [run] = runs(tmp_path, '  - {node: cli, run: "no-such-program -x"}')
    with pytest.raises(BakeoffError, match=r"programs\[0\]\.run: 'no-such-program' is not installed on this machine"):
        engines.get("kernel").check(run)
