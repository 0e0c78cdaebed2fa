"""Files that iperf3 3.12 wrote on Linux 7.3 over a line of 6 Mbit/s and 20 ms, and files made for one fault each."""

import json
from pathlib import Path

import pytest

from bakeoff import imports
from bakeoff.errors import BakeoffError
from bakeoff.imports.folder import write_all
from bakeoff.results import read, scan
from bakeoff.scenario.run import ConstantRate

FILES = Path(__file__).parents[1] / "data" / "iperf3"
CLIENT, SERVER = "10.9.0.1", "10.9.0.2"


def taken_in(tmp_path, name):
    [path] = scan(write_all([FILES / f"{name}.json"], tmp_path / "results"))
    return read(path)


def measured(result, flow):
    """goodput [Mbit/s] and loss."""
    told = result.summary.flows[flow]
    return told.steady_state.goodput_bps / 1e6, told.loss


def test_the_first_interval_counts(tmp_path):
    """3, 1 and 1 MB in 3 s: 40 Mbit in 3 s."""
    result = taken_in(tmp_path, "first-interval")
    assert measured(result, "cubic")[0] == pytest.approx(40 / 3)
    assert result.series.filter(metric="received").select("time", "value").rows() == [
        (0.0, 0.0), (1.0, 3e6), (2.0, 4e6), (3.0, 5e6),
    ]  # fmt: skip


def test_a_clients_upload_has_the_losses_of_its_end(tmp_path):
    """77 of 258 datagrams are lost, and so much of the 375 kB in 3 s, 1 Mbit/s."""
    result = taken_in(tmp_path, "udp-up-loss")
    assert measured(result, "udp") == (pytest.approx(181 / 258), pytest.approx(77 / 258))
    assert result.summary.flows["udp"].jitter_s == pytest.approx(0.0045)
    assert result.all_counters()["flows"]["udp"]["received_bytes"] == round(375_000 * 181 / 258)
    [note] = [line for line in result.record.effective if "passed to its kernel" in line]
    assert "less the share of datagrams that were lost" in note


def test_the_direction_of_a_servers_file_without_sender(tmp_path):
    result = taken_in(tmp_path, "server-old")
    [flow] = result.run.flows
    assert (flow.from_, flow.to) == ("10.0.0.1", "10.0.0.2")
    assert result.run.title == "TCP from 10.0.0.1 to 10.0.0.2, recorded by iperf3"
    assert measured(result, "tcp")[0] == pytest.approx(7.92)


def test_a_window_is_a_multiple_of_what_segments_carry(tmp_path):
    """Of --set-mss 100 timestamps take 12 bytes, and 880 bytes are 10 segments of 88."""
    result = taken_in(tmp_path, "mss-100")
    assert set(result.series.filter(metric="cwnd")["value"]) == {10.0}
    assert result.all_counters()["flows"]["cubic"]["mss"] == 88


@pytest.mark.parametrize(
    ("start", "streams", "windows"),
    [
        # TCP_MAXSEG of the control connection is half of the window on loopback; the path MTU is 65535.
        ({"tcp_mss_default": 32768}, {"pmtu": 65535, "snd_cwnd": 18 * 65483}, [18.0]),
        # A larger MSS than the path takes, over IPv6.
        ({"tcp_mss": 9000}, {"pmtu": 1500, "snd_cwnd": 7 * 1428}, [7.0]),
        # No timestamps: 5360 bytes are no multiple of 524.
        ({"tcp_mss": 536}, {"snd_cwnd": 10 * 536}, [10.0]),
        # Nothing that divides it: the window is left out.
        ({"tcp_mss_default": 1448}, {"snd_cwnd": 10 * 1448 + 1}, []),
        # A system that tells the window in bytes of any number.
        ({"tcp_mss_default": 1448, "system_info": "FreeBSD 14"}, {"snd_cwnd": 5 * 1448 + 724}, [5.5]),
    ],
)
def test_the_mss_is_one_that_divides_the_windows(tmp_path, start, streams, windows):
    document = json.loads((FILES / "first-interval.json").read_text())
    del document["start"]["tcp_mss_default"]
    document["start"] |= start
    for interval in document["intervals"]:
        interval["streams"][0] |= streams
    (tmp_path / "a.json").write_text(json.dumps(document))
    found = imports.read(tmp_path / "a.json")
    assert sorted(set(found.series.filter(metric="cwnd")["value"])) == windows
    assert any("windows" in line for line in found.record.effective) == (not windows)


def test_a_file_with_an_error_is_read_up_to_there_and_that_is_said(tmp_path):
    result = taken_in(tmp_path, "cut")
    assert measured(result, "tcp")[0] == pytest.approx(8)
    # 0, 1 and 2 in the intervals; there is no end.
    assert result.summary.flows["tcp"].retransmissions == 3
    said = "iperf3 stopped with an error: control socket has closed unexpectedly"
    assert said in result.record.effective
    assert imports.read(FILES / "cut.json").warnings == (said,)


@pytest.mark.parametrize(
    ("name", "mbps", "loss"),
    [
        # The end has 0 datagrams lost of 901, because the server's results never came.
        ("3.12-client-udp-interrupted", 8 * 901_000 / 2.401473e6, None),
        # iperf3 writes the last interval twice: 3 of 393,216 bytes, and 2 of 375,000.
        ("3.12-client-tcp-server-killed", 8 * 3 * 393_216 / 3.031354e6, None),
        ("3.12-server-udp-client-interrupted", 8 * 2 * 375_000 / 2.000094e6, 0.0),
    ],
)
def test_a_test_that_was_cut_off_knows_one_end(tmp_path, name, mbps, loss):
    result = taken_in(tmp_path, name)
    [flow] = result.summary.flows
    assert measured(result, flow) == (pytest.approx(mbps), loss)
    assert ("received_bytes" in result.all_counters()["flows"][flow]) == (loss is not None)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (
            (FILES / "no-route.json").read_text(),
            "iperf3 failed without data: unable to connect to server: No route to host$",
        ),
        ('{"start": {}, "error": "error - parameters"}', "iperf3 failed without data: parameters$"),
        ('{"start": {}, "intervals": [], "end": {}}', "start: Object missing required field `test_start`"),
    ],
)
def test_an_error_is_told_in_iperf3s_words(tmp_path, document, said):
    (tmp_path / "a.json").write_text(document)
    with pytest.raises(BakeoffError, match=said):
        imports.read(tmp_path / "a.json")


def totals(name):
    return json.loads((FILES / f"{name}.json").read_text())["end"]


@pytest.mark.parametrize(
    ("name", "sums"),
    [
        ("3.12-client-tcp", ["sum_sent"]),
        ("3.12-server-tcp", ["sum_received"]),
        ("3.12-client-tcp-mss-server-output", ["sum_received"]),
        ("3.12-client-tcp-reverse-server-output", ["sum_received"]),
        ("3.12-server-tcp-reverse", ["sum_sent"]),
        ("3.12-client-tcp-bidir-server-output", ["sum_received", "sum_received_bidir_reverse"]),
        ("3.12-client-udp-reverse", ["sum_received"]),
        ("3.12-server-udp", ["sum_received"]),
        ("3.12-server-udp-reverse", ["sum_sent"]),
    ],
)
def test_goodput_is_what_the_end_has(tmp_path, name, sums):
    """The sums of a test that lasted 3 s, of which iperf3 may count some milliseconds more."""
    result = taken_in(tmp_path, name)
    found = [measured(result, flow.name)[0] for flow in result.run.flows]
    assert found == pytest.approx([totals(name)[each]["bits_per_second"] / 1e6 for each in sums], rel=0.01)


@pytest.mark.parametrize(
    ("name", "lost"),
    [
        ("3.12-client-udp", [(819, 3000)]),
        ("3.12-client-udp-server-text", [(259, 1000)]),
        ("3.12-client-udp-parallel", [(0, 1125), (207, 1125), (987, 1125)]),
        ("3.12-server-udp", [(819, 3000)]),
        # The end says 819 of 2000, of which 293 were in the second that was omitted: 1474 of 2000 arrived.
        ("3.12-client-udp-omit", [(2000 - 1474, 2000)]),
        # Downloads: the client's intervals have 2973 datagrams, and 48 more were under way.
        ("3.12-client-udp-reverse", [(812, 2973)]),
        ("3.12-client-udp-bidir-server-output", [(819, 3000), (812, 2973)]),
        # What the server sent and did not see arrive.
        ("3.12-server-udp-reverse", [None]),
    ],
)
def test_losses_are_those_of_the_receiver(tmp_path, name, lost):
    result = taken_in(tmp_path, name)
    found = [measured(result, flow.name)[1] for flow in result.run.flows]
    assert found == [None if each is None else pytest.approx(each[0] / each[1]) for each in lost]


@pytest.mark.parametrize(
    ("name", "flows"),
    [
        ("3.12-client-tcp", [(CLIENT, SERVER, 40)]),
        ("3.12-server-tcp", [(CLIENT, SERVER, None)]),
        ("3.12-server-tcp-reverse", [(SERVER, CLIENT, 38)]),
        ("3.12-client-tcp-reverse-server-output", [(SERVER, CLIENT, 38)]),
        ("3.12-client-tcp-bidir-server-output", [(CLIENT, SERVER, 25), (SERVER, CLIENT, 29)]),
    ],
)
def test_directions_and_retransmissions(tmp_path, name, flows):
    result = taken_in(tmp_path, name)
    assert [
        (flow.from_, flow.to, result.summary.flows[flow.name].retransmissions) for flow in result.run.flows
    ] == flows


def test_a_servers_file_does_not_tell_what_the_client_received(tmp_path):
    """Its end has 0 bytes of the receiver."""
    assert totals("3.12-server-tcp-reverse")["sum_received"]["bytes"] == 0
    counted = taken_in(tmp_path, "3.12-server-tcp-reverse").all_counters()["flows"]["cubic"]
    assert "received_bytes" not in counted


def test_a_server_that_writes_text_is_said(tmp_path):
    [note] = [
        line
        for line in taken_in(tmp_path, "3.12-client-udp-server-text").record.effective
        if "passed to its kernel" in line
    ]
    assert note.endswith("; the server's part is text (it ran without -J)")


def test_streams_are_matched_by_their_ports(tmp_path):
    """The server may have them in another order."""
    document = json.loads((FILES / "3.12-client-tcp-bidir-server-output.json").read_text())
    for interval in document["server_output_json"]["intervals"]:
        interval["streams"].reverse()
    (tmp_path / "a.json").write_text(json.dumps(document))
    [path] = scan(write_all([tmp_path / "a.json"], tmp_path / "results"))
    flows = read(path).summary.flows
    ours = taken_in(tmp_path / "other", "3.12-client-tcp-bidir-server-output").summary.flows
    assert {name: flow.steady_state for name, flow in flows.items()} == {
        name: flow.steady_state for name, flow in ours.items()
    }


def test_a_rate_that_was_asked_for_is_the_source(tmp_path):
    document = json.loads((FILES / "first-interval.json").read_text())
    document["start"]["test_start"]["target_bitrate"] = 20_000_000
    (tmp_path / "a.json").write_text(json.dumps(document))
    [flow] = imports.read(tmp_path / "a.json").record.run.flows
    assert flow.source == ConstantRate(rate_bps=20_000_000, size=131_072)


def of_version(document, lacks):
    """The document without the keys that a version does not have."""
    for interval in document["intervals"]:
        for stream in interval["streams"]:
            for key in lacks:
                stream.pop(key, None)
    return document


def test_an_old_version_and_intervals_without_length(tmp_path):
    """3.0 has neither `sender` nor `omitted`; an interval without length has 1 MB of the 6 in 3 s."""
    document = of_version(json.loads((FILES / "first-interval.json").read_text()), ["sender", "omitted", "rtt"])
    last = {"socket": 5, "start": 3, "end": 3, "seconds": 0, "bytes": 1_000_000, "bits_per_second": 0}
    document["intervals"].append({"streams": [last]})
    (tmp_path / "a.json").write_text(json.dumps(document))
    [path] = scan(write_all([tmp_path / "a.json"], tmp_path / "results"))
    assert measured(read(path), "cubic")[0] == pytest.approx(48 / 3)


def test_a_file_of_one_interval_has_a_goodput(tmp_path):
    document = json.loads((FILES / "first-interval.json").read_text())
    del document["intervals"][1:]
    (tmp_path / "a.json").write_text(json.dumps(document))
    [path] = scan(write_all([tmp_path / "a.json"], tmp_path / "results"))
    assert measured(read(path), "cubic")[0] == pytest.approx(24)
