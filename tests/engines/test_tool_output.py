"""Outputs of iperf3, netperf and Flent as samples of a run: recorded by iperf3 3.12 on Linux 7.3, and made ones."""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from bakeoff.engines.lab import tool_output
from bakeoff.measure import delays
from bakeoff.measure.rates import goodput
from bakeoff.measure.samples import Samples
from bakeoff.results import parts
from bakeoff.results.sample_rows import frame
from lab_runs import SHORT, flow, in_virtual_time, network

FILES = Path(__file__).parents[1] / "data" / "iperf3"
START_S = 10.0
"""When the program started."""


def recorded(name):
    return json.loads((FILES / f"{name}.json").read_text())


def read(document, *, udp=False):
    told = tool_output.ToolOutput()
    tool_output.iperf3(document, "a", START_S, told, udp=udp)
    return told


def samples(told, *, window=(START_S, 20.0), end=20.0):
    """The samples of a run of `end` seconds in which the agent sampled nothing."""
    run = network(duration_s=end, window_s=list(window))
    return Samples(parts(tool_output.added(frame([]), told, run)))


def rows(found, metric):
    time, value = found.of("flow", "a", metric)
    return list(zip(time.tolist(), value.tolist(), strict=True))


def test_counters_begin_with_the_first_interval():
    """3, 1 and 1 MB in 3 s: 40 Mbit in 3 s. Without the first interval it would be 16 Mbit in 2 s."""
    found = samples(read(recorded("first-interval")))
    assert rows(found, "received") == [(10.0, 0.0), (11.0, 3e6), (12.0, 4e6), (13.0, 5e6)]
    assert goodput(*found.of("flow", "a", "received"), (START_S, 20.0)) == pytest.approx(40e6 / 3)
    assert rows(found, "retrans")[0] == (10.0, 0.0)


def test_received_has_a_value_at_the_edges_of_the_window():
    """The last interval ends after the run: half of its 1 MB arrives before. Half of the first 3 MB are at 10.5 s."""
    found = samples(read(recorded("first-interval")), window=(10.5, 12.5), end=12.5)
    assert rows(found, "received") == [(10.0, 0.0), (10.5, 1.5e6), (11.0, 3e6), (12.0, 4e6), (12.5, 4.5e6)]


@pytest.mark.parametrize(
    "name",
    [
        "3.12-client-tcp-mss-server-output",
        "3.12-client-tcp-reverse-server-output",
        # The flow is the upload.
        "3.12-client-tcp-bidir-server-output",
        "3.12-client-udp-bidir-server-output",
        "3.12-client-udp-reverse",
    ],
)
def test_goodput_is_that_of_iperf3s_end(name):
    end = recorded(name)["end"]["sum_received"]
    told = read(recorded(name), udp="udp" in name)
    found = samples(told)
    # The receiver's last interval may end some milliseconds before the test does.
    assert goodput(*found.of("flow", "a", "received"), (START_S, 20.0)) == pytest.approx(
        end["bits_per_second"], rel=0.01
    )
    assert told.counters["sinks"]["a"]["received_bytes"] == end["bytes"]


@pytest.mark.parametrize(
    ("name", "mss", "windows"),
    [
        # 880 bytes are 10 segments of 100 - 12 bytes.
        ("mss-100", 88, {10.0}),
        # --set-mss 536: segments carry 524 bytes.
        ("3.12-client-tcp-mss-server-output", 524, None),
        ("3.12-client-tcp-reverse-server-output", 1448, None),
    ],
)
def test_a_window_is_in_segments(name, mss, windows):
    told = read(recorded(name))
    found = {value for _, value in rows(samples(told), "cwnd")}
    assert told.counters["sources"]["a"]["mss"] == mss
    assert all(value.is_integer() for value in found)
    assert windows is None or found == windows


def test_a_window_without_an_mss_is_left_out_with_a_note():
    document = recorded("first-interval")
    for interval in document["intervals"]:
        interval["streams"][0]["snd_cwnd"] = 10 * 1448 + 1
    told = read(document)
    assert ("flow", "a", "cwnd") not in samples(told)
    assert told.notes == ["flow 'a': ignored windows, which are in bytes: the file has no MSS that divides them"]


def test_datagrams_of_a_client_alone_have_the_losses_of_its_end():
    """77 of 258 datagrams are lost, and so much of the 375 kB."""
    told = read(recorded("udp-up-loss"), udp=True)
    assert told.counters["sinks"]["a"]["received_bytes"] == round(375_000 * 181 / 258)
    assert told.counters["sources"]["a"] == {"cc": "none", "sent_packets": 258, "sent_bytes": 375_000}


def test_omitted_seconds_come_first():
    """iperf3's clock begins anew after --omit, of one second here."""
    document = recorded("3.12-client-udp-omit")
    omitted = [s["end"] for i in document["intervals"] for s in i["streams"] if s["omitted"]]
    kept = [s for i in document["intervals"] for s in i["streams"] if not s["omitted"]]
    assert (len(omitted), len(kept)) == (1, 2)
    [first, *others] = rows(samples(read(document, udp=True)), "received")
    assert first == (START_S + omitted[0] + kept[0]["start"], 0.0)
    assert [time for time, _ in others] == [START_S + omitted[0] + stream["end"] for stream in kept]


def printed(*streams, **more):
    """An interval of these streams, each a number of bytes."""
    told = {"start": 0.0, "end": 1.0, "seconds": 1.0} | more
    return {"streams": [{"socket": 5 + n, **told, **stream} for n, stream in enumerate(streams)]}


def test_parallel_streams_are_one_flow():
    """1 and 2 MB in the first second; the second stream ends there, after 3 retransmissions."""
    both = printed(
        {"bytes": 1_000_000, "retransmits": 1, "snd_cwnd": 14480, "rtt": 20_000},
        {"bytes": 2_000_000, "retransmits": 3, "snd_cwnd": 28960, "rtt": 40_000},
    )
    alone = printed({"bytes": 500_000, "retransmits": 1}, start=1.0, end=2.0)
    document = {
        "start": {"test_start": {"protocol": "TCP"}, "tcp_mss_default": 1448, "system_info": "Linux"},
        "intervals": [both, alone],
        "end": {"sum_received": {"bytes": 3_500_000}, "sender_tcp_congestion": "reno"},
    }
    told = read(document)
    found = samples(told)
    assert rows(found, "received") == [(10.0, 0.0), (11.0, 3e6), (12.0, 3.5e6)]
    assert rows(found, "goodput") == [(11.0, 24e6), (12.0, 4e6)]
    assert rows(found, "retrans") == [(10.0, 0.0), (11.0, 4.0), (12.0, 5.0)]
    assert rows(found, "cwnd") == [(11.0, 10.0), (11.0, 20.0)]
    assert told.counters["sources"]["a"] == {"cc": "reno", "mss": 1448, "retransmits": 5}
    assert told.counters["sinks"]["a"] == {"received_bytes": 3_500_000}


def test_sums_alone_make_a_flow():
    """Another program's form: no start, no streams, and whole numbers as an encoder may write them."""
    sums = [{"end": 0.5, "bytes": 1000.0, "bits_per_second": 16e3}, {"end": 1.0, "bytes": 500, "bits_per_second": 8e3}]
    told = read({"intervals": [{"sum": each} for each in sums], "end": {"sum_received": {"bytes": 1500.0}}}, udp=True)
    found = samples(told)
    assert rows(found, "received") == [(10.0, 0.0), (10.5, 1000.0), (11.0, 1500.0)]
    assert rows(found, "goodput") == [(10.5, 16e3), (11.0, 8e3)]
    assert told.counters["sources"]["a"] == {}
    assert told.counters["sinks"]["a"] == {"received_bytes": 1500}


@pytest.mark.parametrize(
    "change",
    [
        {"error": "unable to connect to server"},
        {"intervals": []},
        {"intervals": [{"sum": {"bytes": 1}}]},
        {"intervals": [{"sum": 1}]},
        {"intervals": 1},
        {"end": []},
        {"end": {}},
        {"start": {"test_start": {"protocol": "TCP", "reverse": "x"}}},
    ],
)
def test_an_output_without_a_flow_is_refused(change):
    document = {"intervals": [{"sum": {"end": 1.0, "bytes": 1}}], "end": {"sum_received": {"bytes": 1}}}
    read(document, udp=True)
    with pytest.raises(tool_output.NOT_ITS):
        read(document | change, udp=True)


def test_jitter_and_loss_of_iperf3s_datagrams_are_those_that_its_server_told():
    def told(start, end, jitter_ms, packets, lost):
        more = {"jitter_ms": jitter_ms, "packets": packets, "lost_packets": lost}
        return printed({"bytes": 500 * (packets - lost)} | more, start=float(start), end=float(end))

    server = [told(0, 1, 0.5, 500, 0), told(1, 2, 2.0, 500, 100), told(2, 3, 4.0, 100, 20)]
    client = [
        printed({"bytes": 275_000, "packets": 550}, end=2.0),
        printed({"bytes": 275_000, "packets": 550}, start=2.0),
    ]
    document = {
        "start": {"test_start": {"protocol": "UDP"}}, "intervals": client,
        "end": {"sum_sent": {"packets": 1100, "bytes": 550_000}},
        "server_output_json": {"intervals": server},
    }  # fmt: skip
    found = read(document, udp=True)
    assert found.counters["sources"]["a"] == {"cc": "none", "sent_packets": 1100, "sent_bytes": 550_000}
    assert found.counters["sinks"]["a"] == {"received_bytes": 500 * (1100 - 120)}
    of = samples(found, window=(START_S, 13.0))
    assert delays.told_by_tool(of, "a")
    # Three reports: at 11 s, 12 s and 13 s.
    assert delays.told_jitter(of, "a", (11.0, 13.0)) == pytest.approx((0.5 + 2.0 + 4.0) / 3 / 1e3)
    assert delays.told_loss(of, "a", (11.0, 13.0)) == pytest.approx(120 / 600)
    # With the first interval's 500.
    assert delays.told_loss(of, "a", (START_S, 13.0)) == pytest.approx(120 / 1100)


NETPERF = """\
NETPERF_INTERIM_RESULT[0]=16.00
NETPERF_UNITS[0]=10^6bits/s
NETPERF_INTERVAL[0]=0.500
NETPERF_ENDING[0]=1010.500
NETPERF_INTERIM_RESULT[1]=8.00
NETPERF_UNITS[1]=10^6bits/s
NETPERF_INTERVAL[1]=1.000
NETPERF_ENDING[1]=1011.500
LOCAL_TRANSPORT_RETRANS=3
REMOTE_BYTES_RECVD=1900000
"""


def test_netperfs_first_interval_counts():
    """16 Mbit/s for 0.5 s and 8 Mbit/s for 1 s are 1 MB each; the run began at 1000 s of Unix time."""
    told = tool_output.ToolOutput()
    tool_output.netperf(NETPERF, "a", "reno", 1000.0, told)
    found = samples(told)
    assert rows(found, "received") == [(10.0, 0.0), (10.5, 1e6), (11.5, 2e6)]
    assert goodput(*found.of("flow", "a", "received"), (0.0, 20.0)) == pytest.approx(16e6 / 1.5)


@pytest.mark.parametrize("dur", [True, False])
def test_flents_first_interval_counts(dur):
    """8 and 16 Mbit/s in half a second each are 0.5 and 1 MB. Without `dur` an interval begins at the point before."""
    points = [{"t": 1010.5, "val": 8.0}, {"t": 1010.7, "tcp_cwnd": 7}, {"t": 1010.8, "val": None}]
    points.append({"t": 1011.0, "val": 16.0})
    if dur:
        points = [point | ({"dur": 0.5} if "val" in point else {}) for point in points]
    told = tool_output.ToolOutput()
    run = network(flows=[flow(name="a", cc="reno")])
    tool_output.flent({"raw_values": {"TCP upload::1": points}, "metadata": {}}, run, 1000.0, told)
    found = samples(told)
    assert rows(found, "received") == [(10.0, 0.0), (10.5, 0.5e6), (11.0, 1.5e6)]
    assert rows(found, "cwnd") == [(pytest.approx(10.7), 7.0)]
    assert told.counters["sinks"]["a"] == {"received_bytes": 1_500_000}


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="not installed: iperf3")
def test_goodput_in_virtual_time_is_that_of_iperf3s_end(kernel, tmp_path):
    """The window begins with the flow, and the run goes on for a second after it."""
    slow = {"qdisc": "netem delay 10ms limit 100000"}
    ends = [{"node": "mid", "peer": peer, "ingress": slow, "egress": SHORT} for peer in ("cli", "srv")]
    run = network(interfaces=ends, duration_s=3.0, window_s=[0.0, 3.0], tools={"flows": "iperf3"})
    result = in_virtual_time(kernel, run, tmp_path)
    document = json.loads((result.path / "a.iperf3.json").read_text())
    total = document["end"]["sum_received"]
    # iperf3's intervals and its end differ by some microseconds in 2 s.
    assert result.summary.flows["a"].steady_state.goodput_bps == pytest.approx(total["bits_per_second"], rel=1e-4)
    assert result.all_counters()["flows"]["a"]["received_bytes"] == total["bytes"]
    windows = [stream["snd_cwnd"] for interval in document["intervals"] for stream in interval["streams"]]
    assert result.all_counters()["flows"]["a"]["mss"] == 1448
    found = result.series.filter(pl.col("metric") == "cwnd")["value"].to_list()
    assert [value * 1448 for value in found] == windows
