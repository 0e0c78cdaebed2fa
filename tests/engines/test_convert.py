"""What a run of the lab leaves behind: what tc shows, the agent's samples, captures; and what comes of them."""

import json
import math
import re
import struct
from contextlib import nullcontext
from pathlib import Path

import polars as pl
import pytest

from bakeoff.engines.kernel import virtual
from bakeoff.engines.lab import Command, convert, pcapng, plan, tc_show
from bakeoff.results.series import read_series
from bakeoff.scenario import Run
from bakeoff.version import version
from lab_runs import HTB, egress, flow, network, probe

# What tc shows

SHOWN = """\
qdisc htb 1: root refcnt 2 r2q 10 default 0x1 direct_packets_stat 0 ver 3.17 direct_qlen 1000
 Sent 1125509260 bytes 746770 pkt (dropped 2, overlimits 746762 requeues 0)
 backlog 3028b 2p requeues 0
qdisc fq_codel 2: dev mid.srv parent 1:1 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms ecn
 Sent 1125506232 bytes 746768 pkt (dropped 7, overlimits 0 requeues 0)
 backlog 3028b 2p requeues 0
  maxpacket 1514 drop_overlimit 3 new_flow_count 9 ecn_mark 428
  new_flows_len 0 old_flows_len 1
qdisc pie 3: parent 1:2 limit 1000p target 15ms tupdate 16ms alpha 2 beta 20 ecn
 Sent 10 bytes 1 pkt (dropped 5, overlimits 9 requeues 0)
 backlog 0b 0p requeues 0
  prob 0.000000 delay 0us avg_dq_rate 0
  pkts_in 1 overlimit 1 dropped 4 maxq 1 ecn_mark 6
"""


def test_the_configuration_is_read_back():
    assert tc_show.configured(SHOWN, "root") == "htb r2q 10 default 0x1 direct_packets_stat 0 ver 3.17 direct_qlen 1000"
    words = "fq_codel limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms ecn"
    assert tc_show.configured(SHOWN, "parent 1:1") == tc_show.configured(SHOWN, "handle 2:") == words
    assert tc_show.configured(SHOWN, "parent 1:3") is None


def test_a_log_is_split_by_command():
    log = "+ mid: /usr/sbin/tc qdisc show dev a\none\n+ mid: /bin/tcpdump -w x &\n+ cli: sleep 3\n"
    assert tc_show.sections(log) == {"mid: tc qdisc show dev a": "one\n", "mid: tcpdump -w x": "", "cli: sleep 3": ""}


@pytest.mark.parametrize(
    ("shown", "asked", "wrong"),
    [
        # One packet and what a nanosecond brings, 0 bytes.
        ("rate 50Mbit ceil 50Mbit linklayer ethernet burst 1600b/1mpu 0b", "rate 50mbit", False),
        ("rate 50Mbit ceil 50Mbit burst 1599b cburst 1599b", "rate 50mbit", False),
        # 1600 B and 6250 B in a millisecond.
        ("rate 50Mbit ceil 50Mbit burst 7850b cburst 7850b", "rate 50mbit", True),
        ("rate 50Mbit ceil 50Mbit burst 15Kb cburst 15Kb", "rate 50mbit burst 15k", False),
        # 64 ns at 2 GB/s are 128 B.
        ("rate 16Gbit ceil 16Gbit linklayer ethernet burst 1664b/1mpu", "rate 2gbps ceil 2gbps", False),
        # 1602 B take 0.8 us: none in a tc that counts whole ones.
        ("rate 16Gbit ceil 16Gbit linklayer ethernet burst 0b/1mpu", "rate 2gbps ceil 2gbps", False),
        ("rate 10Mbit ceil 10Mbit burst 2850b cburst 2850b", "rate 10mbit", True),
        # At 50 Mbit/s those 64 ns are not a byte.
        ("rate 50Mbit ceil 50Mbit burst 1604b cburst 1604b", "rate 50mbit", True),
    ],
)
def test_a_burst_for_a_coarse_clock_is_found(shown, asked, wrong):
    text = f"class htb 1:1 root leaf 2: prio 0 quantum 200000 {shown}\nclass fq_codel 2:1 parent 2: \n"
    assert bool(tc_show.coarse_bursts({"1:1": asked}, text)) is wrong
    assert tc_show.coarse_bursts({}, text) == []


def test_a_run_with_a_coarse_clock_fails():
    made = plan(network(interfaces=egress(HTB)))
    show = "+ mid: tc -d class show dev mid.srv\n"
    fine = f"{show}class htb 1:1 root leaf 2: prio 0 rate 20Mbit ceil 20Mbit burst 1600b cburst 1600b\n"
    convert.check_bursts(made, fine)
    # 20 Mbit/s × 1 ms = 2500 B
    with pytest.raises(RuntimeError, match=r"mid: mid.srv: class 1:1: burst 4100b instead of 1600b at rate 20Mbit"):
        convert.check_bursts(made, fine.replace("burst 1600b", "burst 4100b"))


# Conversion

SUMMARY = {
    "format": 1, "complete": True, "error": None, "duration_s": 2.0,
    "sources": {"a": {"cc": "cubic", "ecn": "accecn", "connected_s": 0.02, "mss": 1448, "sent_packets": 9,
                      "sent_bytes": 13032, "delivered": 8, "delivered_ce": 1, "retransmits": 2, "local_port": 4}},
    "sinks": {"a": {"received_bytes": 11584}},
    "probes": {"p": {"sent": 4, "received": 3, "ce_out": None, "ce_back": 0}},
    "queues": {"mid>srv": {
        "kind": "fq_codel", "sent_packets": 746768, "sent_bytes": 1125506232, "queued": 2, "marks": 430,
        "drops": {"overlimit": 3, "aqm": 4, "overload": 0, "loss": 0},
    }},
}  # fmt: skip
ROWS = """\
time\tkind\tname\tmetric\tvalue
0.05\tflow\ta\tcwnd\t10
0.1\tflow\ta\tcwnd\t20
0.4\tprobe\tp\trtt\t0.9
1.2\tprobe\tp\trtt\t0.03
1.0\tprobe\tp\trtt\t0.02
1.5\tprobe\tp\tlost\t1
"""


def left_behind(folder: Path, summary: dict = SUMMARY, **changes: object) -> tuple[Run, Path]:
    run = network(interfaces=egress(HTB), probes=[probe(every_s=0.5)], **changes)
    tsv = folder / "agent.tsv"
    tsv.write_text(f"{ROWS}#{json.dumps(summary)}\n")
    show = (
        "+ mid: /x/tc -d class show dev mid.srv\nclass htb 1:1 root rate 20Mbit ceil 20Mbit burst 1600b cburst 1600b\n"
    )
    (folder / "setup.log").write_text(show)
    (folder / "teardown.log").write_text(f"+ mid: /x/tc -s -d qdisc show dev mid.srv\n{SHOWN}")
    return run, tsv


def test_datagrams_sent_are_counted_in_frames_as_in_the_simulator():
    run = network(flows=[flow(transport="udp", source={"kind": "rate", "rate_bps": 1_000_000, "size": 172})])
    summary = {"sources": {"a": {"sent_packets": 3, "sent_bytes": 3 * 172}}, "sinks": {}, "probes": {}, "queues": {}}
    counted = convert.counters(run, plan(run), summary, pl.DataFrame(), "")["flows"]["a"]
    assert (counted["sent_packets"], counted["sent_bytes"]) == (3, 3 * (172 + 14 + 20 + 8))  # Ethernet, IPv4, UDP


def test_what_the_agent_left_becomes_a_results_folder(tmp_path):
    run, tsv = left_behind(tmp_path)
    convert.convert(run, plan(run), tmp_path, tsv)
    series = read_series(tmp_path / "series.parquet")
    assert series.filter(pl.col("metric") == "cwnd")["value"].to_list() == [10, 20]
    # Answers overtook each other; in the results they stand in order of time.
    assert series.filter(pl.col("metric") == "rtt")["time"].to_list() == [0.4, 1.0, 1.2]
    counters = json.loads((tmp_path / "counters.json").read_text())
    assert counters["flows"]["a"] == {
        "cc": "cubic", "ecn": "accecn", "mss": 1448, "sent_packets": 9, "sent_bytes": 13032, "delivered": 8,
        "delivered_ce": 1, "retransmits": 2, "received_bytes": 11584, "rtt": {"n": 0},
    }  # fmt: skip
    queue = counters["queues"]["mid>srv"]
    assert (queue["sent"], queue["marks"], queue["drops"]["overlimit"]) == (746768, 430, 3)
    assert queue["qdisc"].startswith("fq_codel limit 10240p")
    assert "sce_marks" not in queue
    rtt = counters["probes"]["p"]["rtt"]
    # The window is 0.5 s to 2 s: 20 and 30 ms, not 900.
    assert (rtt["n"], rtt["min_s"], rtt["max_s"]) == (2, 0.02, 0.03)
    assert math.isclose(rtt["mean_s"], 0.025)
    assert math.isclose(rtt["p95_s"], 0.0295)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"error": "tcp-source 'a': connect: refused"}, "agent: tcp-source 'a': connect: refused"),
        ({"complete": False}, "the agent was stopped before the end of the run"),
        ({"sources": {"a": {"connected_s": None}}}, "flow 'a' never connected"),
    ],
)
def test_a_run_that_did_not_end_is_no_result(tmp_path, change, message):
    run, tsv = left_behind(tmp_path, SUMMARY | change)
    with pytest.raises(RuntimeError, match=message):
        convert.convert(run, plan(run), tmp_path, tsv)
    assert not (tmp_path / "series.parquet").exists()


def test_a_flow_whose_first_object_comes_after_its_stop_need_not_connect(tmp_path):
    summary = SUMMARY | {"sources": {"a": SUMMARY["sources"]["a"] | {"connected_s": None}}}
    for at_s, begins in ((0.5, True), (1.5, False)):
        short = flow(start_s=1.0, stop_s=2.0, source={"kind": "short", "objects": [[at_s, 100]]})
        run, tsv = left_behind(tmp_path, summary, flows=[short])
        with pytest.raises(RuntimeError, match="never connected") if begins else nullcontext():
            convert.convert(run, plan(run), tmp_path, tsv)
        assert (tmp_path / "series.parquet").exists() != begins


def test_a_delay_by_two_clocks_is_told_above_its_smallest():
    rows = [("call", "transit", 7.5), ("call", "transit", 7.25), ("back", "transit", -2.0), ("call", "delay", 0.5)]
    names, metrics, values = zip(*rows, strict=True)
    frame = pl.DataFrame({"time": 0.0, "kind": "flow", "name": names, "metric": metrics, "value": values})
    told = convert.without_clocks(frame)
    assert told["metric"].to_list() == ["delay_variation"] * 3 + ["delay"]
    assert told["value"].to_list() == [0.25, 0.0, 0.0, 0.5]


def test_an_agent_that_was_killed_leaves_no_last_line(tmp_path):
    (tmp_path / "agent.tsv").write_text(ROWS)
    with pytest.raises(RuntimeError, match="incomplete output from the agent: missing last line"):
        convert.last_line(tmp_path / "agent.tsv")
    with pytest.raises(RuntimeError, match="no output from the agent"):
        convert.last_line(tmp_path / "nothing.tsv")


def test_captures_become_pcapng(tmp_path, monkeypatch):
    packets = [(1_700_000_000, 999_999_999, b"abcde", 1500), (1_700_000_001, 5, b"", 60)]
    records = b"".join(struct.pack("<IIII", s, ns, len(data), size) + data for s, ns, data, size in packets)
    head = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 128, 1)
    (tmp_path / "a.pcap").write_bytes(head + records + b"cut off")
    assert pcapng.convert(tmp_path / "a.pcap", tmp_path / "a.pcapng", "mid>srv", comment="a run") == 2
    data = (tmp_path / "a.pcapng").read_bytes()
    blocks = []
    while data:
        kind, length = struct.unpack_from("<II", data)
        # Blocks are multiples of four bytes, and end in their length again.
        assert length % 4 == 0
        assert struct.unpack_from("<I", data, length - 4) == (length,)
        blocks.append((kind, data[8 : length - 4]))
        data = data[length:]
    assert [kind for kind, _ in blocks] == [0x0A0D0D0A, 1, 6, 6]
    # opt_comment; then shb_userappl
    assert blocks[0][1][16:28] == b"\x01\0\x05\0a run\0\0\0"
    assert blocks[0][1][28:].startswith(struct.pack("<HH", 4, len(f"bakeoff {version()}")) + b"bakeoff ")
    # if_name, seven characters and a byte to fill up; if_tsresol 10^-9
    assert blocks[1][1] == struct.pack(
        "<HHI", 1, 0, 128
    ) + b"\x02\0\x07\0mid>srv\0" + b"\x09\0\x01\0\x09\0\0\0" + bytes(4)
    _, high, low, kept, size = struct.unpack_from("<IIIII", blocks[2][1])
    assert (high << 32 | low, kept, size) == (1_700_000_000_999_999_999, 5, 1500)
    assert blocks[2][1][20:] == b"abcde\0\0\0"
    # A run's two captures may take 576 bytes: of each packet 16 and 128, so that tcpdump ends after two.
    monkeypatch.setenv("BAKEOFF_RUN_CAPTURES", "576")
    with pytest.raises(RuntimeError, match=r"the capture at x came to 2 packets, the budget of a run's captures; .*"):
        pcapng.convert(tmp_path / "a.pcap", tmp_path / "b.pcapng", "x", several=2)
    # The agent in a guest says that tcpdump ended; a tcpdump that had none of its packets left ended well.
    captured = [("mid>srv", "a.pcap"), ("srv<mid", "none.pcap")]
    (tmp_path / "agent-status.json").write_text('{"status": "failed", "phase": "plan", "error": "tcpdump: ended"}')
    spent = (
        r"^the capture at mid>srv came to 2 packets, the budget of a run's captures; .* BAKEOFF_RUN_CAPTURES higher$"
    )
    with pytest.raises(RuntimeError, match=spent):
        virtual.judge(tmp_path, "ok", "", captured)
    command = Command("mid", ("tcpdump", "-w", "/x/a.pcap"), background=True)
    assert re.match(spent, pcapng.why_ended(command, 0, captured))
    assert pcapng.why_ended(command, 1, captured).endswith("ended before the run did, with exit code 1")
    monkeypatch.setenv("BAKEOFF_RUN_CAPTURES", "864")
    with pytest.raises(RuntimeError, match=r"^plan: tcpdump: ended$"):
        virtual.judge(tmp_path, "ok", "", captured)
    (tmp_path / "a.pcap").write_bytes(b"text")
    with pytest.raises(RuntimeError, match="not a capture with nanosecond timestamps"):
        pcapng.convert(tmp_path / "a.pcap", tmp_path / "b.pcapng", "x")


@pytest.mark.parametrize(("ecn", "count", "segments"), [("accecn", 2897, 3), ("accecn", 0, 0), ("rfc3168", 0, None)])
def test_bytes_that_arrived_as_ect1_are_segments_with_accecn_only(tmp_path, ecn, count, segments):
    # 2897 bytes are two segments of 1448 and one byte; without AccECN Linux counts nothing.
    source = {**SUMMARY["sources"]["a"], "ecn": ecn}
    sink = {**SUMMARY["sinks"]["a"], "received_ect1_bytes": count}
    run, tsv = left_behind(tmp_path, {**SUMMARY, "sources": {"a": source}, "sinks": {"a": sink}})
    convert.convert(run, plan(run), tmp_path, tsv)
    told = json.loads((tmp_path / "counters.json").read_text())["flows"]["a"]
    assert told.get("received_ect1") == segments
