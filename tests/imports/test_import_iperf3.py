"""Tests of iperf3 as results folders: uploads, downloads, both ways, UDP, and files that are none."""

import json

import polars as pl
import pytest

import bakeoff
from bakeoff.errors import BakeoffError
from bakeoff.exports import iperf3 as export
from bakeoff.imports import iperf3, read
from bakeoff.imports.folder import write_all
from bakeoff.results import read as result_of
from bakeoff.results import scan
from bakeoff.scenario.run import ConstantRate

MSS = 1000


def stream(socket, number, size, **more):
    """The interval that ends at `number` seconds."""
    own = {"socket": socket, "start": number - 1, "end": number, "seconds": 1, "bytes": size}
    return own | {"bits_per_second": 8 * size, "omitted": False, "sender": True} | more


def document(streams, protocol="TCP", end=(), server=None, **start):
    """`streams`: of each second those of the client; `server` likewise."""
    ours = {
        "start": {
            "connected": [{"socket": 5, "local_host": "10.0.0.1", "remote_host": "2001:db8::2", "remote_port": 5201}],
            "version": "iperf 3.12",
            "system_info": "Linux laptop 6.1",
            "timestamp": {"timesecs": 1_700_000_000},
            "tcp_mss_default": MSS,
            "test_start": {"protocol": protocol, "reverse": 0, "tos": 0x8C, "target_bitrate": 0, **start},
        },
        "intervals": [{"streams": each, "sum": {}} for each in streams],
        "end": {"streams": list(end), "sender_tcp_congestion": "cubic", "receiver_tcp_congestion": "bbr"},
    }
    if server is not None:
        ours["server_output_json"] = {"intervals": [{"streams": each} for each in server]}
    return ours


def recorded(tmp_path, content, name="test.json"):
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return read(path)


def values(recording, name, metric):
    return recording.series.filter(kind="flow", name=name, metric=metric).select("time", "value").rows()


def test_an_upload_with_the_servers_intervals(tmp_path):
    """Two streams; 2000 and 3000 bytes arrive of the first one, of which its client had handed over 4000 and 1000."""
    own = {"snd_cwnd": 20 * MSS, "rtt": 30_000, "retransmits": 2}
    client = [[stream(5, n, 4000 if n == 1 else 1000, **own), stream(7, n, 500)] for n in (1, 2)]
    server = [[stream(8, n, 1000 + 1000 * n, sender=False), stream(9, n, 500, sender=False)] for n in (1, 2)]
    ends = [
        {"sender": {"socket": 5, "bytes": 5000, "retransmits": 4}, "receiver": {"socket": 5, "bytes": 5000}},
        {"sender": {"socket": 7, "bytes": 1000, "retransmits": 0}, "receiver": {"socket": 7, "bytes": 900}},
    ]
    found = recorded(tmp_path, document(client, end=ends, server=server))
    assert values(found, "cubic-1", "goodput") == [(1.0, 16_000.0), (2.0, 24_000.0)]
    assert values(found, "cubic-1", "received") == [(1.0, 2000.0), (2.0, 5000.0)]
    assert values(found, "cubic-1", "cwnd") == [(1.0, 20.0), (2.0, 20.0)]
    assert values(found, "cubic-1", "srtt") == [(1.0, 0.03), (2.0, 0.03)]
    assert values(found, "cubic-1", "retrans") == [(1.0, 2.0), (2.0, 4.0)]
    assert values(found, "cubic-2", "srtt") == []
    at = found.record.run
    assert (at.suite, at.scenario, at.run) == ("iperf3", "tcp", "test")
    assert [(flow.from_, flow.to, flow.cc, flow.dscp) for flow in at.flows] == [
        ("10.0.0.1", "2001:db8::2", "cubic", 0x23)
    ] * 2
    assert at.links[0].delay_s == 0.015
    counted = found.counters["flows"]
    assert counted["cubic-1"] == {"cc": "cubic", "mss": MSS, "retransmits": 4, "received_bytes": 5000}
    assert counted["cubic-2"]["received_bytes"] == 900
    assert not any("handed" in line for line in found.record.effective)


def test_without_the_server_goodput_is_what_the_client_handed_over_and_that_is_said(tmp_path):
    found = recorded(tmp_path, document([[stream(5, 1, 4000)], [stream(5, 2, 1000)]]))
    assert values(found, "cubic", "received") == [(1.0, 4000.0), (2.0, 5000.0)]
    assert any("passed to its kernel" in line for line in found.record.effective)


def test_a_download_has_no_window_and_both_ways_are_two_flows(tmp_path):
    both = [[stream(5, 1, 4000, rtt=10_000), stream(7, 1, 2000, sender=False)]]
    found = recorded(tmp_path, document(both))
    assert [(flow.name, flow.from_) for flow in found.record.run.flows] == [
        ("cubic-1", "10.0.0.1"),
        ("bbr-2", "2001:db8::2"),
    ]
    # Older versions do not say who sends: the whole test is reversed.
    old = stream(5, 1, 4000)
    del old["sender"]
    found = recorded(tmp_path, document([[old]], reverse=1))
    assert found.record.run.flows[0].from_ == "2001:db8::2"
    assert any("not in the file" in line for line in found.record.effective)


def test_udp_has_jitter_and_losses_and_what_was_omitted_is_left_out(tmp_path):
    """Of 10 datagrams 2 are lost, then none of 10, and one of the 2 came late."""
    told = [{"jitter_ms": 1.5, "packets": 10, "lost_packets": 2}, {"jitter_ms": 0.5, "packets": 10, "lost_packets": -1}]
    client = [[stream(5, 1, 99, omitted=True)], [stream(5, 1, 1000)], [stream(5, 2, 1000)]]
    server = [[stream(8, n + 1, 800, sender=False, **told[n])] for n in (0, 1)]
    end = [{"udp": {"socket": 5, "bytes": 2000, "packets": 20, "lost_packets": 1}}]
    found = recorded(tmp_path, document(client, "UDP", end, server, target_bitrate=8000, blksize=100))
    assert values(found, "udp", "jitter") == [(1.0, 0.0015), (2.0, 0.0005)]
    assert values(found, "udp", "datagrams_lost") == [(1.0, 2.0), (2.0, 1.0)]
    assert found.counters["flows"]["udp"] == {"cc": "none", "received_bytes": 1600, "sent_packets": 20}
    source = found.record.run.flows[0].source
    assert source == ConstantRate(rate_bps=8000, size=100)


def test_what_was_exported_comes_back(tmp_path):
    (tmp_path / "mine.yaml").write_text(
        "duration: 3s\nnetwork: {path: [a, m, b], rtt: 20ms, bottleneck: {rate: 10mbit, qdisc: pie}}\n"
        "flows: [{name: one, cc: cubic}]\n"
    )
    [run] = bakeoff.run(str(tmp_path / "mine.yaml"), out=tmp_path / "results")
    run = result_of(run.path)
    [(suffix, content)] = export.files(run)
    (tmp_path / f"x{suffix}").write_bytes(content)
    [path] = scan(write_all([tmp_path / f"x{suffix}"], tmp_path / "back"))
    back = result_of(path)
    [again] = bakeoff.import_([tmp_path / f"x{suffix}"], tmp_path / "python")
    assert (again.key, again.record.digest) == (back.key, back.record.digest)
    ours, theirs = run.summary.flows["one"], back.summary.flows["cubic"]
    assert back.key == "iperf3/tcp/x.one"
    for metric, factor in (("received", 1), ("retrans", 1), ("srtt", 1e6), ("cwnd", MSS)):
        # A recording has a 0 of each counter at the flow's start.
        one, other = (
            found.series.filter(pl.col("time") > 0, kind="flow", name=name, metric=metric)["value"].to_list()
            for found, name in ((run, "one"), (back, "cubic"))
        )
        # Whole bytes, packets and microseconds.
        assert [round(value * factor) for value in other] == pytest.approx([round(v * factor) for v in one], abs=1)
    assert theirs.retransmissions == ours.retransmissions


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{}", "unknown format; expected"),
        (document([]), "missing in all streams; the test may have ended before its first interval"),
        (document([[stream(5, 1, "many")]]), "intervals.*bytes: Expected `int`, got `str`"),
        (document([[stream(5, 1, -1)]]), "Expected `int` >= 0"),
        (document([[stream(5, 1, 1)]], "SCTP"), "SCTP; expected TCP or UDP"),
        ('{"start": 1, "intervals": [], "end": {}}', "start: Expected `object`"),
        ("[" * 100_000, "Expected `object`, got `array`"),
    ],
)
def test_a_file_that_is_none_of_iperf3s_is_refused_in_one_line(tmp_path, content, said):
    with pytest.raises(BakeoffError, match=said) as refused:
        recorded(tmp_path, content)
    assert "\n" not in str(refused.value)


def test_too_many_intervals_are_refused_before_they_are_made(tmp_path, monkeypatch):
    monkeypatch.setattr(iperf3, "_MOST_INTERVALS", 3)
    with pytest.raises(BakeoffError, match="4 intervals of streams; expected at most 3"):
        recorded(tmp_path, document([[stream(5, n, 1)] for n in (1, 2, 3, 4)]))
