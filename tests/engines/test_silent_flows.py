"""Runs in which a flow gets nothing through, or starts as the run ends, and what shows their results."""

import json

import pytest
from typer.testing import CliRunner

from bakeoff import campaign, results
from bakeoff.campaign import Execution
from bakeoff.cli.app import app
from bakeoff.exports import iperf3
from bakeoff.scenario import catalog

SCENARIO = {
    "scenario": "silent",
    "title": "One flow is heard",
    "duration": "4s",
    "network": {
        "path": ["cli", "mid", "srv"],
        "rtt": "20ms",
        # Three bands, of which the first alone gets its turn while it has packets: 20 Mbit/s into 10.
        "bottleneck": {"rate": "10mbit", "qdisc": "prio bands 2 priomap 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0"},
    },
    "hosts": {"sysctl": {"net.ipv4.tcp_ecn": 3}},
    "flows": [
        {"name": "flood", "transport": "udp", "source": {"rate": "20mbit", "size": "1200B"}},
        {"name": "starved", "cc": "reno", "start": "1s"},
        {"name": "video", "cc": "reno", "start": "1s",
         "source": {"video": {"rates": ["1mbit", "2mbit"], "segment": "1s", "buffer": "5s"}}},
        {"name": "late", "cc": "cubic", "start": "3.99s"},
    ],
}  # fmt: skip
KINDS = ("tcp_delivery_with_rtt", "totals_with_tcp_rtt", "upload_with_ping_and_tcp_rtt", "all_scaled_delivery", "queue",
         "call", "box_totals", "queue_cdf", "bars")  # fmt: skip


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("silent")
    (folder / "silent.yaml").write_text(json.dumps(SCENARIO))
    report = campaign.run(catalog.select(str(folder / "silent.yaml")), folder / "c", Execution(jobs=1))
    assert [(run.status, run.error) for run in report.runs] == [("ok", None)]
    return report.runs[0].path


def invoke(*words):
    told = CliRunner().invoke(app, [str(word) for word in words])
    assert told.exit_code == 0, told.output
    return told.output


def test_what_got_nothing_through_has_zero_and_what_was_not_there_has_none(done):
    flows = results.read(done).summary.flows
    # Of 20 Mbit/s in datagrams of 1200 bytes, 1242 with headers, 10 Mbit/s go through: 10 * 1200 / 1242 of payload.
    assert flows["flood"].steady_state.goodput_bps == pytest.approx(10e6 * 1200 / 1242, rel=0.01)
    rates = {name: flow.steady_state.goodput_bps for name, flow in flows.items() if name != "flood"}
    assert rates == {"starved": 0, "video": 0, "late": None}
    # A SYN of the video waits its second in the queue; those of the other one meet a full queue.
    assert [flows[name].srtt_s for name in ("starved", "late")] == [None, None]


def test_nothing_was_negotiated_and_no_check_says_otherwise(done):
    checks = results.read(done).summary.checks
    assert [check for check in checks if not check.ok] == []
    assert not {"starved", "late"} & {check.flow for check in checks if check.check == "ecn"}


def test_tables_and_reports_show_them(done):
    rows = json.loads(invoke("table", done, "--format", "json"))
    text = json.dumps(rows)
    assert '"starved"' in text
    assert "no samples: no packet arrived" in text
    lines = invoke("report", done).splitlines()
    [starved] = [line.split() for line in lines if line.startswith("starved ")]
    [late] = [line.split() for line in lines if line.startswith("late ")]
    assert (starved, late) == (["starved", "0.00", "0%"], ["late"])


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_show_the_others(done, kind, tmp_path):
    invoke("plot", done, "--kind", kind, "--format", "svg", "--out", tmp_path / "one.svg")
    assert (tmp_path / "one.svg").stat().st_size > 0


def test_pages_and_files_of_other_programs_show_them(done, tmp_path):
    invoke("site", done, "--out", tmp_path / "site")
    invoke("compare", done.parents[2], done.parents[2])
    told = {suffix: json.loads(content) for suffix, content in iperf3.files(results.read(done))}
    assert told[".starved.iperf3.json"]["end"]["sum_received"]["bytes"] == 0
    assert told[".starved.iperf3.json"]["intervals"] == []
