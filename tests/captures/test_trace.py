"""`bakeoff trace`: captures of our own runs beside their counters, tables, JSON, and results folders of captures."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import bakeoff
from bakeoff import captures
from bakeoff.captures import tables
from bakeoff.captures.against import compare
from bakeoff.captures.result_folder import write_all
from bakeoff.errors import BakeoffError
from bakeoff.results import Result, layout
from bakeoff.results.packed_captures import split


def cli(*words, cwd, **env):
    done = subprocess.run(
        [sys.executable, "-m", "bakeoff", *map(str, words)],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done


SCENARIO = """
scenario: {name}
title: two flows, a call and a ping
duration: 4s
network:
  path: [cli, mid, srv]
  rtt: 20ms
  bottleneck: {{at: mid, rate: 20mbit, qdisc: "{qdisc}"}}
hosts: {{sysctl: {{net.ipv4.tcp_ecn: 3}}}}
captures: ["cli>mid", "mid>srv", "srv>mid", "mid>cli"]
flows:
  - {{name: one, cc: {one}}}
  - {{name: two, cc: {two}}}
probes: [{{name: ping, type: icmp, every: 50ms}}]
measure: {{steady_state: {{window: 2s, ends: 1s before end}}}}
"""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """AccECN beside RFC 3168 in one queue that marks, and SCE beside a flow without ECN in one that marks both ways."""
    root = tmp_path_factory.mktemp("trace")
    for name, qdisc, one, two in (
        ("accecn", "codel ecn limit 60", "prague", "cubic"),
        ("sce", "cnq_codel_af sce-thresh 4", "cubic-sce", "reno"),
    ):
        (root / f"{name}.yaml").write_text(SCENARIO.format(name=name, qdisc=qdisc, one=one, two=two))
    done = cli("run", "accecn.yaml", "sce.yaml", "--out", "runs", "--jobs", "1", cwd=root)
    assert done.returncode == 0, done.stderr
    return root / "runs"


def captured(folder: Path):
    return [(result, path) for result in bakeoff.load(folder) for path in sorted(result.path.glob("*.pcapng.gz"))]


def test_captures_agree_with_the_runs_counters(runs):
    seen = set()
    for result, path in captured(runs):
        found = captures.CaptureFile(str(path), captures.capture(path))
        name = found.report.capture.interfaces[0].name
        assert f"{layout.capture(name)}.gz" == path.name
        rows = compare(result, name, found.report)
        assert [row for row in rows if not row.agrees] == []
        seen |= {row.what for row in rows if row.captured}
    assert seen >= {
        "packets", "bytes", "CE marks", "SCE marks", "data packets", "data bytes", "retransmissions", "CE received",
        "ECT(1) received", "ACKs", "CE echoed", "requests", "replies",
    }  # fmt: skip


def test_the_function_gives_what_the_command_prints(runs, tmp_path):
    [path] = [path for result, path in captured(runs) if path.name == "cli-to-mid.pcapng.gz"][:1]
    whole = bakeoff.trace(path)
    assert whole.report == captures.read(path).report
    assert repr(whole).splitlines() == cli("trace", path, cwd=tmp_path).stdout.rstrip().splitlines()
    [flow] = bakeoff.trace(str(path), flow=":5202", interval="50ms").report.flows
    assert flow.server.port == 5202
    # Samples at the ends of intervals of 50 ms.
    assert flow.series.time_s[1] - flow.series.time_s[0] == pytest.approx(0.05)
    for words, message in (
        ({"interval": "2h"}, "trace: interval: '2h'; expected a time from 1ms to 1h"),
        ({"ecn": "all"}, "ecn"),
    ):
        with pytest.raises(BakeoffError, match=message):
            bakeoff.trace(path, **words)


def test_a_number_that_differs_ends_with_1(runs, tmp_path):
    [result] = [one for one in bakeoff.load(runs) if one.run.scenario == "accecn"]
    done = cli("trace", "--against", result.path, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    counters = json.loads((result.path / layout.COUNTERS).read_text())
    counters["flows"]["one"]["received_ce"] += 1
    changed = tmp_path / "changed"
    changed.mkdir()
    for path in result.path.iterdir():
        (changed / path.name).write_bytes(path.read_bytes())
    (changed / layout.COUNTERS).write_text(json.dumps(counters))
    done = cli("trace", changed / "mid-to-srv.pcapng.gz", "--against", changed, "--json", cwd=tmp_path)
    assert done.returncode == 1
    told = json.loads(done.stdout)
    [row] = [row for row in told["numbers"] if not row["agrees"]]
    assert (row["of"], row["what"], row["counted"] - row["captured"]) == ("one", "CE received", 1)
    assert told["differ"] == 1


def test_a_capture_of_another_run_is_told(runs):
    [(result, path), *_] = captured(runs)
    found = captures.CaptureFile(str(path), captures.capture(path))
    one = result.run.model_copy(update={"flows": result.run.flows[:1], "probes": []})
    record = result.record.model_copy(update={"run": one})
    other = Result(result.path, record, counters=result.counters)
    with pytest.raises(BakeoffError, match="expected a capture of the run"):
        compare(other, found.report.capture.interfaces[0].name, found.report)


def test_a_table_fits_and_keeps_the_flows(runs):
    [path] = [path for result, path in captured(runs) if path.name == "cli-to-mid.pcapng.gz"][:1]
    found = captures.read(path)
    for width in (80, 200):
        text = tables.text([found], width=width, colour=False)
        assert max(map(len, text.splitlines()[2:])) <= width
        assert "10.0.0.1:32768" in text
        assert "Mbit/s" in text
    only = captures.of_flows(found, ":5202")
    assert [flow.server.port for flow in only.report.flows] == [5202]
    assert captures.of_flows(found, "2").document["flows"] == only.document["flows"]
    with pytest.raises(BakeoffError, match="no such flow"):
        captures.of_flows(found, "192.0.2.1")


def test_a_capture_becomes_a_run_like_any_other(runs, tmp_path):
    """Seen where they are sent; a packet that leaves in the last instant may be counted in one place only."""
    [one] = [path for _, path in captured(runs) if path.parent.name == "accecn" and path.name == "cli-to-mid.pcapng.gz"]
    out = write_all([captures.read(one, interval_s=0.05)], tmp_path / "out", 0.05)
    [result] = bakeoff.load(out)
    assert result.key == "trace/capture/cli-to-mid"
    names = ["10.0.0.1:32768>10.0.0.3:5201", "10.0.0.1:32769>10.0.0.3:5202"]
    assert [flow.name for flow in result.run.flows] == names
    [run] = bakeoff.load(one.parent)
    for name, own in zip(names, ("one", "two"), strict=True):
        counted = run.counters.flows[own].sent_packets
        assert result.counters.flows[name].sent_packets in (counted, counted + 1)
    done = cli("table", out, "--format", "csv", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "10.0.0.3:5201" in done.stdout
    with pytest.raises(BakeoffError, match="already exists"):
        write_all([captures.read(one, interval_s=0.05)], out, 0.05)


def test_import_takes_captures_beside_recordings(tmp_path):
    """The capture is one run, named after its file, and the recording of iperf3 another."""
    iperf3 = BURST.parents[1] / "iperf3" / "mss-100.json"
    results = bakeoff.import_([BURST, iperf3], tmp_path / "out")
    assert "trace/capture/burst-first" in [result.key for result in results]
    assert {result.key.partition("/")[0] for result in results} == {"trace", "iperf3"}


BURST = Path(__file__).parents[1] / "data" / "captures" / "burst-first.pcap"


def goodputs(path, out, interval_s):
    found = captures.read(path, interval_s=interval_s)
    [result] = bakeoff.load(write_all([found], out, interval_s))
    return found.report, {name: flow.steady_state.goodput_bps for name, flow in result.summary.flows.items()}


@pytest.mark.parametrize("interval_s", [0.01, 0.05, 0.1, 1.0, 5.0])
def test_goodput_of_a_capture_is_that_of_its_report_whatever_the_interval(tmp_path, interval_s):
    """100 kB, of which 99 kB are acknowledged from the first ACK at 13 ms to the last at 1101 ms."""
    report, found = goodputs(BURST, tmp_path / "out", interval_s)
    assert found == {"10.0.0.1:40000>10.0.0.2:443": pytest.approx(99_000 * 8 / (1.101 - 0.013))}
    assert report.flows[0].up.data.goodput.mean_bps == pytest.approx(99_000 * 8 / (1.101 - 0.013))


@pytest.mark.parametrize("interval_s", [0.02, 1.0])
def test_goodput_of_datagrams_and_of_one_direction(tmp_path, interval_s):
    """A datagram of 1000 bytes each 100 ms from 0.2 to 2.2 s; of TCP the data alone is captured."""
    (tmp_path / "mine.yaml").write_text(
        "duration: 3s\ncaptures: ['cli>mid']\nnetwork: {path: [cli, mid, srv], rtt: 20ms, links: [{ends: [mid, srv],"
        " rate: 10mbit}]}\nflows:\n  - {name: bulk, cc: cubic}\n  - {name: calls, transport: udp, start: 200ms,"
        " stop: 2210ms, source: {periodic: {size: 1000B, every: 100ms}}}\n"
    )
    [run] = bakeoff.run(str(tmp_path / "mine.yaml"), out=tmp_path / "runs")
    [path] = run.path.glob("*.pcapng.gz")
    report, found = goodputs(path, tmp_path / "out", interval_s)
    [tcp], [udp] = report.flows, report.datagrams.udp
    assert found[f"{udp.client.text()}>{udp.server.text()}"] == pytest.approx(80_000, rel=1e-3)
    whole = 8 * tcp.up.data.payload_bytes / (tcp.end_s - tcp.start_s)
    assert found[f"{tcp.client.text()}>{tcp.server.text()}"] == pytest.approx(whole)


def test_what_cannot_be_is_one_message(tmp_path):
    (tmp_path / "text.pcap").write_text("no capture at all, but a text that is long enough")
    for words in (
        ["text.pcap"],
        ["missing.pcap"],
        [],
        ["text.pcap", "--series"],
        ["text.pcap", "--run", "x"],
        ["text.pcap", "--interval", "0s"],
        ["--against", "nowhere"],
    ):
        done = cli("trace", *words, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, ""), words
        assert len(done.stderr.strip().splitlines()) <= 2, done.stderr


def test_a_hosts_capture_has_both_directions(tmp_path):
    (tmp_path / "s.yaml").write_text(SCENARIO.format(name="s", qdisc="fq_codel", one="reno", two="cubic"))
    done = cli("run", "s.yaml", "--out", "halves", "--capture", "cli<mid", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (tmp_path / "s.yaml").write_text((tmp_path / "s.yaml").read_text().replace("captures:", "#"))
    done = cli("run", "s.yaml", "--out", "whole", "--capture", "cli", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    [whole], [halves] = (bakeoff.load(tmp_path / name) for name in ("whole", "halves"))
    [path] = whole.path.glob("*.pcapng.gz")
    assert path.name == "cli-mid.pcapng.gz"
    # Both runs are equal, so that both captures are: one was written with the other directions of the path.
    assert path.read_bytes() == (halves.path / path.name).read_bytes()
    report = captures.read(path).report
    for flow in report.flows:
        assert flow.up.data.packets > 0
        # Some 20 ms and the delay of the queue: only a capture of both directions has it.
        assert flow.up.rtt_s.min >= 0.02
    parts = split(path, tmp_path)
    [leaving, arriving] = [captures.CaptureFile(str(part), captures.capture(part)).report for part in parts]
    assert [one.capture.interfaces[0].name for one in (leaving, arriving)] == ["cli>mid", "cli<mid"]
    assert leaving.capture.packets + arriving.capture.packets == report.capture.packets
    assert all(flow.down.packets == 0 for flow in leaving.flows)
    assert not any(flow.up.packets for flow in arriving.flows)
    against = cli("trace", "--against", whole.path, cwd=tmp_path)
    assert against.returncode == 0, against.stdout + against.stderr


def test_one_direction_takes_the_ecn_mode_of_its_run(runs, tmp_path):
    """Data without the SYN/ACK: the run's counters say what the packets do not; elsewhere it is unknown."""
    [(result, path)] = [
        (result, path)
        for result, path in captured(runs)
        if path.name == "cli-to-mid.pcapng.gz" and result.run.scenario == "sce"
    ]
    shutil.copytree(result.path, tmp_path / "run")
    counters = json.loads((tmp_path / "run" / layout.COUNTERS).read_text())
    for told, mode in (("accecn", "accecn"), ("rfc3168", "sce")):
        counters["flows"]["one"]["ecn"] = told
        (tmp_path / "run" / layout.COUNTERS).write_text(json.dumps(counters))
        ecn = captures.read(tmp_path / "run" / path.name).report.flows[0].ecn
        assert (ecn.mode, ecn.chosen_by) == (mode, "run")
    alone = tmp_path / "alone.pcapng.gz"
    shutil.copyfile(path, alone)
    found = captures.read(alone)
    assert found.report.flows[0].ecn.chosen_by == "unknown"
    assert "--ecn sce|accecn|rfc3168" in tables.text([found], colour=False)
    assert captures.read(alone, ecn="sce").report.flows[0].ecn.chosen_by == "option"
