"""Flows as iperf3 writes them, probes as irtt does, and places with a rate as traces of mahimahi."""

import gzip
import json
import shutil
import socket
import subprocess
from itertools import pairwise

import pytest

import bakeoff
from bakeoff.errors import BakeoffError
from bakeoff.exports import iperf3, irtt, mahimahi
from bakeoff.exports.names import parts
from bakeoff.imports.folder import write_all
from bakeoff.results import irtt_json, read, scan

SCENARIO = """
duration: 4s
network:
  path: [cli, mid, srv]
  rtt: 20ms
  bottleneck: {rate: [[0s, 10mbit], [2s, 5mbit]], qdisc: pfifo limit 20}
flows:
  - {name: cubic, cc: cubic, start: 500ms}
  - {name: bulk, transport: udp, source: {rate: 2mbit}}
probes: [{name: ping, type: udp, every: 20ms}]
"""


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tools")
    (folder / "mine.yaml").write_text(SCENARIO)
    [found] = bakeoff.run(str(folder / "mine.yaml"), out=folder / "results")
    return read(found.path)


def shape(value):
    """Keys and kinds of values of a JSON document; of a list the shape of its first member."""
    if isinstance(value, dict):
        return {key: shape(of) for key, of in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return "number" if isinstance(value, int | float) and not isinstance(value, bool) else type(value).__name__


def differences(ours, theirs, place=""):
    """Where ours lacks a key, has one too many or another kind of value; null is every kind."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(ours.keys() | theirs.keys()):
            if key not in ours or key not in theirs:
                yield f"{place}.{key}"
            else:
                yield from differences(ours[key], theirs[key], f"{place}.{key}")
    elif isinstance(ours, list) and isinstance(theirs, list):
        for one, other in zip(ours, theirs, strict=False):
            yield from differences(one, other, f"{place}[]")
    elif ours not in (theirs, "NoneType"):
        yield f"{place}: {ours} for {theirs}"


def opened(form, result):
    unpack = gzip.decompress if form is irtt else bytes
    found = {suffix: json.loads(unpack(content)) for suffix, content in form.files(result)}
    assert list(found) == form.suffixes(result)
    return found


def test_a_flow_is_a_test_of_iperf3(result):
    tcp = opened(iperf3, result)[".cubic.iperf3.json"]
    counted = result.all_counters()["flows"]["cubic"]
    assert tcp["start"]["version"].startswith("bakeoff ")
    assert tcp["start"]["test_start"] | {"blksize": 0} == {
        "protocol": "TCP", "num_streams": 1, "blksize": 0, "omit": 0, "duration": pytest.approx(3.5, abs=0.02),
        "bytes": 0, "blocks": 0, "reverse": 0, "tos": 0, "target_bitrate": 0,
    }  # fmt: skip
    streams = [interval["streams"][0] for interval in tcp["intervals"]]
    assert sum(part["bytes"] for part in streams) == counted["received_bytes"]
    assert sum(part["retransmits"] for part in streams) == counted["retransmits"] > 0
    assert tcp["end"]["sum_sent"]["retransmits"] == counted["retransmits"]
    # All that was sent once and had not arrived was under way: less than a queue of 20 and a path of 20 ms.
    under_way = tcp["end"]["sum_sent"]["bytes"] - tcp["end"]["sum_received"]["bytes"]
    assert 0 <= under_way < 60 * 1448
    assert all(one["end"] == two["start"] for one, two in pairwise(streams))
    assert all(
        part["bits_per_second"] == pytest.approx(8 * part["bytes"] / part["seconds"], abs=1e3) for part in streams
    )
    assert max(part["snd_cwnd"] for part in streams) == tcp["end"]["streams"][0]["sender"]["max_snd_cwnd"]
    udp = opened(iperf3, result)[".bulk.iperf3.json"]["end"]["sum"]
    lost = result.series.filter(kind="flow", name="bulk", metric="missing").height
    assert (udp["lost_packets"], udp["packets"]) == (lost, result.all_counters()["flows"]["bulk"]["sent_packets"])
    assert udp["lost_percent"] == pytest.approx(100 * lost / udp["packets"])


def test_datagrams_are_sent_by_the_client_and_missed_by_the_server(result):
    document = opened(iperf3, result)[".bulk.iperf3.json"]
    samples = {name: result.series.filter(kind="flow", name="bulk", metric=name) for name in ("delay", "missing")}
    came, lost, size = samples["delay"].height, samples["missing"].height, 1448
    assert lost > 0
    sent = result.all_counters()["flows"]["bulk"]["sent_packets"]
    end, server = document["end"], document["server_output_json"]
    # As iperf3 has it: the sender knows of no losses.
    assert (end["sum_sent"]["bytes"], end["sum_sent"]["packets"], end["sum_sent"]["lost_packets"]) == (
        sent * size, sent, 0,
    )  # fmt: skip
    assert (end["sum"]["bytes"], end["sum"]["lost_packets"]) == (sent * size, lost)
    assert (end["sum_received"]["bytes"], end["sum_received"]["lost_packets"]) == (came * size, lost)
    client = [interval["streams"][0] for interval in document["intervals"]]
    arrived = [interval["streams"][0] for interval in server["intervals"]]
    for key, parts_, total in (
        ("packets", client, came + lost), ("bytes", client, (came + lost) * size),
        ("packets", arrived, came + lost), ("lost_packets", arrived, lost), ("bytes", arrived, came * size),
    ):  # fmt: skip
        assert sum(part[key] for part in parts_) == total, key


def test_what_was_exported_for_iperf3_comes_back(result, tmp_path):
    """Over the whole of each flow, which is the window of a recording."""
    for suffix, content in iperf3.files(result):
        (tmp_path / f"x{suffix}").write_bytes(content)
    written = sorted(tmp_path.glob("*.json"))
    back = {each.run.run: each for each in map(read, scan(write_all(written, tmp_path / "back")))}
    received = {flow: result.all_counters()["flows"][flow]["received_bytes"] for flow in ("cubic", "bulk")}
    tcp = back["x.cubic"].summary.flows["cubic"]
    starts = {flow.name: flow.start_s for flow in result.run.flows}
    assert tcp.steady_state.goodput_bps == pytest.approx(8 * received["cubic"] / (4 - starts["cubic"]))
    assert tcp.retransmissions == result.all_counters()["flows"]["cubic"]["retransmits"]
    assert tcp.srtt_s.mean == pytest.approx(result.series.filter(name="cubic", metric="srtt")["value"].mean(), abs=1e-6)
    udp = back["x.bulk"].summary.flows["udp"]
    lost, came = (result.series.filter(name="bulk", metric=each).height for each in ("missing", "delay"))
    assert udp.loss == pytest.approx(lost / (lost + came))
    assert udp.steady_state.goodput_bps == pytest.approx(8 * received["bulk"] / (4 - starts["bulk"]))
    # What was recorded and exported again is the same.
    [(_, again)] = iperf3.files(back["x.bulk"])
    (tmp_path / "again.json").write_bytes(again)
    [path] = scan(write_all([tmp_path / "again.json"], tmp_path / "twice"))
    twice = read(path).summary.flows["udp"]
    assert (twice.loss, twice.steady_state.goodput_bps, twice.jitter_s) == (
        pytest.approx(udp.loss), pytest.approx(udp.steady_state.goodput_bps), pytest.approx(udp.jitter_s),
    )  # fmt: skip


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
@pytest.mark.parametrize(("flow", "words"), [("cubic", []), ("bulk", ["-u", "-b", "2M"])])
def test_iperf3_itself_writes_the_same_keys(result, flow, words):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    server = subprocess.Popen(["iperf3", "-s", "-1", "-p", port, "--forceflush"], stdout=subprocess.PIPE, text=True)
    try:
        while "listening" not in server.stdout.readline():
            assert server.poll() is None
        client = ["iperf3", "-c", "127.0.0.1", "-p", port, "-J", "--get-server-output", "-t", "1", "-i", "0.5"]
        theirs = json.loads(subprocess.run([*client, *words], capture_output=True, check=True, timeout=60).stdout)
    finally:
        server.kill()
        server.communicate()
    ours = opened(iperf3, result)[f".{flow}.iperf3.json"]
    found = set(differences(shape(ours), shape(theirs)))
    found = {place for place in found if not place.startswith(".server_output")}
    # It is not known which datagrams came out of order.
    assert found <= ({".end.streams[].udp.out_of_order"} if flow == "bulk" else set())


def test_a_probe_is_a_test_of_irtt(result, tmp_path):
    [(suffix, content)] = irtt.files(result)
    assert suffix == ".ping.irtt.json.gz"
    (tmp_path / "d.json.gz").write_bytes(content)
    test = irtt_json.read(tmp_path / "d.json.gz")
    assert (test.hostname, test.interval_s, test.started_ns) == ("cli", 0.02, irtt.EPOCH_NS)
    samples = result.series.filter(kind="probe", name="ping").sort("metric", "time")
    assert test.series("ping").sort("metric", "time").rows() == [
        (pytest.approx(time, abs=1e-9), kind, name, metric, pytest.approx(value, abs=1e-9))
        for time, kind, name, metric, value in samples.rows()
    ]
    stats = json.loads(gzip.decompress(content))["stats"]
    lost = samples.filter(metric="lost").height
    assert (stats["packets_sent"], stats["packets_received"]) == (samples.height, samples.height - lost)
    assert stats["packet_loss_percent"] == pytest.approx(100 * lost / samples.height)
    rtts = samples.filter(metric="rtt")["value"]
    assert (stats["rtt"]["mean"], stats["rtt"]["stddev"]) == (
        pytest.approx(rtts.mean() * 1e9, abs=2),
        pytest.approx(rtts.std() * 1e9, abs=2),
    )


@pytest.mark.skipif(shutil.which("irtt") is None, reason="irtt is not installed")
def test_irtt_itself_writes_the_same_keys(result, tmp_path):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(["irtt", "server", "-b", f"127.0.0.1:{port}"], stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout
        assert any("starting IPv4 listener" in line for line in server.stdout)
        command = ["irtt", "client", "-Q", "-i", "10ms", "-d", "100ms", "--tstamp=none", "--stats=none"]
        file = tmp_path / "theirs.json"
        subprocess.run([*command, "-o", file, f"127.0.0.1:{port}"], check=True, capture_output=True, timeout=60)
    finally:
        server.kill()
        server.communicate()
    [ours] = opened(irtt, result).values()
    # Debian's irtt 0.9.0 has a text for the time, and later ones the two clocks, as ours.
    found = set(differences(shape(ours), shape(json.loads(file.read_bytes()))))
    assert found <= {".stats.start_time: {} for str", *(place for place in found if ".start_time" in place)}


def test_a_rate_is_a_trace_whose_packets_leave_as_they_would_have(result):
    made = {suffix: [int(line) for line in content.split()] for suffix, content in mahimahi.files(result)}
    # 10 Mbit/s are 825.6 packets of 1514 bytes per second, and half of it from 2 s on.
    assert list(made) == mahimahi.suffixes(result) == [".mid-to-cli.trace", ".mid-to-srv.trace"]
    ms = made[".mid-to-srv.trace"]
    assert len(ms) == int((2 * 10e6 + 2 * 5e6) / (1514 * 8))
    assert sum(at <= 2000 for at in ms) == int(2 * 10e6 / (1514 * 8))
    # The first packet takes 1.2112 ms and the second 2.4224. Playback repeats after the last line: the run's length.
    assert (ms[:2], ms[-1]) == ([2, 3], 4000)


PACKETS_PER_MS = 1514 * 8e3
"""The rate of one packet of full size per millisecond."""


@pytest.mark.parametrize(
    ("pieces", "ends", "lines"),
    [
        ([(0, 1, 1), (1, 2, 0), (2, 2.002, 1)], [1000, 2001, 2002], 1002),
        # Nothing leaves after 6 s: the end of the run has a line more than the 6000 packets.
        ([(0, 6, 1), (6, 10, 0)], [5999, 6000, 10_000], 6001),
        # A packet takes 12.112 s at 1 kbit/s.
        ([(0, 5, 1), (5, 10, 1 / 12_112)], [4999, 5000, 10_000], 5001),
        ([(0, 2, 1), (2, 4, 0), (4, 9, 1), (9, 10, 0)], [8999, 9000, 10_000], 7001),
        # 0.3 packets a millisecond: 3, and the last of them leaves at the end instead of at 10 ms.
        ([(0, 0.012, 0.3)], [4, 7, 12], 3),
        ([(0, 1, 0), (1, 2, 1)], [1998, 1999, 2000], 1000),
    ],
)
def test_a_trace_ends_with_the_run_whatever_the_rate_is_then(pieces, ends, lines):
    found = mahimahi.opportunities([(start, stop, rate * PACKETS_PER_MS) for start, stop, rate in pieces])
    assert (found[-3:], len(found)) == (ends, lines)


def test_what_has_no_rate_has_no_trace():
    with pytest.raises(BakeoffError, match="the rate is too low for a single full-size packet"):
        mahimahi.opportunities([(0, 1, 1000.0)])


def test_a_trace_that_was_exported_is_one_that_a_link_takes(result, tmp_path):
    content = dict(mahimahi.files(result))[".mid-to-srv.trace"]
    (tmp_path / "line.trace").write_bytes(content)
    (tmp_path / "played.yaml").write_text(
        SCENARIO.replace("  bottleneck: {rate: [[0s, 10mbit], [2s, 5mbit]], qdisc: pfifo limit 20}\n", "").replace(
            "rtt: 20ms", "rtt: 20ms\n  links: [{ends: [mid, srv], trace: {mid: line.trace}}]"
        )
    )
    [again] = bakeoff.run(str(tmp_path / "played.yaml"), out=tmp_path / "results")
    rates = [one.summary.flows["cubic"].steady_state.goodput_bps for one in (read(again.path), result)]
    assert rates[0] == pytest.approx(rates[1], rel=0.1)
    assert dict(mahimahi.files(read(again.path)))[".mid-to-srv.trace"] == content


def exported(tmp_path, text):
    (tmp_path / "mine.yaml").write_text(text)
    [run] = bakeoff.run(str(tmp_path / "mine.yaml"), out=tmp_path / "results")
    return {suffix: [int(line) for line in content.split()] for suffix, content in mahimahi.files(read(run.path))}


def test_cells_and_overhead_are_counted(tmp_path):
    """10 Mbit/s for 2 s, of which a packet of 1500 bytes of IP takes 33 cells of 53 bytes; 12.112 Mbit/s of the link
    are a packet a millisecond, and more than that."""
    made = exported(
        tmp_path,
        "duration: 2s\nnetwork: {path: [a, m, b], rtt: 20ms, links: [{ends: [m, b], rate: 12112kbit}],"
        " bottleneck: {qdisc: cake bandwidth 10mbit atm overhead 44}}\nflows: [{name: a, cc: cubic}]\n",
    )
    ms = made[".m-to-b.trace"]
    assert (len(ms), ms[-1]) == (int(2 * 10e6 / (33 * 53 * 8)), 2000)


def test_a_trace_of_a_link_loses_what_its_outages_took_and_is_as_it_is_without(tmp_path):
    """The trace of 4 and 10 ms gives 4, 10, 14, 20, 24, 30, 34, 40, … in 100 ms; the link is down from 15 to 35 ms."""
    (tmp_path / "line.trace").write_text("4\n10\n")
    text = (
        "duration: 100ms\nnetwork: {path: [a, m, b], rtt: 2ms,"
        " links: [{ends: [m, b], trace: line.trace, down: [[15ms, 35ms]]}]}\nflows: [{name: a, cc: cubic}]\n"
    )
    made = exported(tmp_path, text)[".m-to-b.trace"]
    assert made == [4, 10, 14, *(at for at in range(40, 101) if at % 10 in (0, 4))]
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "line.trace").write_text("4\n10\n")
    assert exported(tmp_path / "up", text.replace(", down: [[15ms, 35ms]]", ""))[".m-to-b.trace"] == [4, 10]


def test_an_outage_at_the_end_is_played_back_as_long(tmp_path):
    """12.112 Mbit/s for 3 s of 5: played back the flow gets the same, and not 5/3 of it."""
    text = (
        "duration: 5s\nnetwork: {path: [a, m, b], rtt: 20ms, links: [{ends: [m, b], %s}]}\n"
        "flows: [{name: a, cc: cubic}]\n"
    )
    made = exported(tmp_path, text % "rate: 12112kbit, down: [[3s, 5s]]")[".m-to-b.trace"]
    assert made == [*range(1, 3001), 5000]
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "line.trace").write_text("".join(f"{at}\n" for at in made))
    (tmp_path / "again" / "mine.yaml").write_text(text % "trace: {m: line.trace}")
    [again] = bakeoff.run(str(tmp_path / "again" / "mine.yaml"), out=tmp_path / "again" / "results")
    # At most 3000 packets in 3 s, and a line of the end.
    received = again.all_counters()["flows"]["a"]["received_bytes"]
    assert 0.85 * 3000 * 1448 < received <= 3001 * 1448


def test_parts_of_names_differ():
    assert parts(["mid>srv", "mid<srv", "a/b", "A_b", "a b"]) == ["mid_srv", "mid_srv-2", "a_b", "A_b-2", "a_b-3"]
