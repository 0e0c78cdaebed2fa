"""Two captures packet by packet. Times in the tables are µs, lengths are in segments of 1000 bytes."""

import json

import numpy as np
import pytest
from tests.capture_files import ACK, CLIENT, PSH, SERVER, SYN, pcap, tcp
from typer.testing import CliRunner

from bakeoff.captures import lockstep, lockstep_report, packets
from bakeoff.cli.app import app
from bakeoff.errors import TraceError, UsageError

START_US = 1_000_000
SEGMENT = 1000


def connection(data, *, isn=5000, acks=(), begin_us=START_US, port=40_000):
    """Frames of a connection: SYN, SYN/ACK 10 ms later, then `data` and `acks` at µs after the SYN.

    `data` has (µs, segment) or (µs, segment, flags, ecn); `acks` has (µs, segments acknowledged).
    """
    client, server = (CLIENT, port), (SERVER, 5201)
    rows = [
        (0, tcp(client, server, flags=SYN, seq=isn)),
        (10_000, tcp(server, client, flags=SYN | ACK, seq=77, ack=isn + 1)),
    ]
    for at, segment, *more in data:
        flags, ecn = more or (ACK, 0)
        seq = isn + 1 + SEGMENT * segment
        rows.append((at, tcp(client, server, flags=flags, seq=seq, ack=78, payload=SEGMENT, ecn=ecn)))
    rows += [(at, tcp(server, client, seq=78, ack=isn + 1 + SEGMENT * count)) for at, count in acks]
    return [((begin_us + at) * 1e-6, packet) for at, packet in rows]


@pytest.fixture
def written(tmp_path):
    def write(name, *connections):
        path = tmp_path / name
        path.write_bytes(pcap(sorted(frame for one in connections for frame in one)))
        return path

    return write


def compared(ours, theirs):
    return lockstep.compare(packets.read(ours), packets.read(theirs))


def data_of(found):
    return found.flows[0].data[0]


def test_initial_sequence_numbers_and_starts_do_not_count(written):
    data = [(20_000, 0), (20_100, 1)]
    ours = written("a.pcap", connection(data, isn=2**32 - 500))
    theirs = written("b.pcap", connection(data, isn=9, begin_us=7_000_000, port=50_000))
    found = compared(ours, theirs)
    part = data_of(found)
    assert (part.ours, part.theirs, part.same, part.first) == (2, 2, 2, None)
    assert (part.times.max_s, part.times.first_beyond_s, found.same) == (0, None, True)
    # The sequence numbers pass 2³² inside of the first segment, and go on: 1 and 1001.
    stream = packets.read(ours)[0].up
    assert stream.seq.tolist() == [0, 1, 1001]


def test_the_first_difference_has_its_fields_and_the_ten_packets_before_it(written):
    same = [(20_000 + at, at) for at in range(12)]
    ours = written("a.pcap", connection([*same, (20_012, 12, PSH | ACK, 0)]))
    theirs = written("b.pcap", connection([*same, (20_012, 12, ACK, 3)]))
    first = data_of(compared(ours, theirs)).first
    assert (first.index, first.what) == (12, ("flags", "ecn"))
    assert (first.ours.flags, first.theirs.flags, first.theirs.ecn) == ("PSH|ACK", "ACK", "CE")
    # Rows 2 to 11: sequence numbers 2001 to 11,001.
    assert [mine.seq for mine, _ in first.before] == [1 + 1000 * at for at in range(2, 12)]


def test_packets_in_another_order_are_not_the_same(written):
    ours = written("a.pcap", connection([(20_000 + at, segment) for at, segment in enumerate([0, 1, 2, 3, 4])]))
    theirs = written("b.pcap", connection([(20_000 + at, segment) for at, segment in enumerate([0, 3, 1, 2, 4])]))
    part = data_of(compared(ours, theirs))
    # 0, 1, 2, 4 stand in this order on both sides; 3 does not.
    assert (part.same, part.first.index, part.first.what) == (4, 1, ("seq",))


def test_a_retransmission_is_paired_with_the_retransmission(written):
    ours = written("a.pcap", connection([(20_000, 0), (20_100, 1), (30_000, 0)]))
    theirs = written("b.pcap", connection([(20_000, 0), (20_100, 1), (30_500, 0)]))
    part = data_of(compared(ours, theirs))
    assert (part.same, part.loss_s) == (3, pytest.approx(0.03))
    assert part.apart_s == pytest.approx([0, 0, -500e-6])
    # Only the retransmission is apart.
    assert (part.until_loss, part.lockstep) == (True, False)


def test_a_difference_before_the_first_loss_counts(written):
    ours = written("a.pcap", connection([(20_000, 0), (20_100, 1), (30_000, 0)]))
    late = written("b.pcap", connection([(20_000, 0), (20_121, 1), (30_000, 0)]))
    other = written("c.pcap", connection([(20_000, 0), (20_100, 2), (30_000, 0)]))
    assert data_of(compared(ours, late)).until_loss is False
    assert data_of(compared(ours, other)).until_loss is False


def test_times_apart(written):
    # 0, 10, 30, 10, 40, 50 µs apart
    theirs = [20_000, 21_000, 22_000, 23_000, 24_000, 25_000]
    ours = [20_000, 21_010, 22_030, 22_990, 24_040, 25_050]
    sides = [written(f"{i}.pcap", connection([*zip(at, range(6), strict=True)])) for i, at in enumerate((ours, theirs))]
    times = data_of(compared(*sides)).times
    # Sorted: 0 10 10 30 40 50; the median is between 10 and 30, the 90th percentile half way from 40 to 50.
    assert (times.p50_s, times.p90_s, times.max_s) == pytest.approx((20e-6, 45e-6, 50e-6))
    # The third packet is the first beyond 20 µs. The fourth is within again, and none after it.
    assert (times.first_beyond_s, times.apart_from_s) == pytest.approx((22_030e-6, 24_040e-6))


def test_acknowledgements_are_compared_by_what_they_acknowledge(written):
    ours = written("a.pcap", connection([(20_000, 0)], acks=[(30_000, 1), (31_000, 2)]))
    theirs = written("b.pcap", connection([(20_000, 0)], acks=[(30_000, 1), (31_000, 3)]))
    found = compared(ours, theirs)
    part = found.flows[0].parts[-1]
    # The SYN/ACK and the first ACK are the same.
    assert (part.kind, part.same, part.first.index, part.first.what) == ("ack", 2, 2, ("ack",))
    assert found.same, "the data packets decide"


def test_connections_are_paired_in_order_of_their_starts(written):
    early, late = connection([(20_000, 0)], port=1), connection([(20_000, 0)], port=2, begin_us=START_US + 300)
    ours = written("a.pcap", early, late)
    theirs = written(
        "b.pcap", connection([(20_000, 0)], port=9), connection([(20_000, 0)], port=8, begin_us=START_US + 100)
    )
    found = compared(ours, theirs)
    ends = [(flow.ours.split(">")[0], flow.theirs.split(">")[0]) for flow in found.flows]
    assert ends == [(f"{CLIENT}:1", f"{CLIENT}:9"), (f"{CLIENT}:2", f"{CLIENT}:8")]
    # 300 µs after the first one, and 100 µs.
    assert [flow.start_apart_s for flow in found.flows] == pytest.approx([0, 200e-6])
    alone = written("c.pcap", connection([(20_000, 0)]))
    assert compared(ours, alone).unpaired == (f"{CLIENT}:2>{SERVER}:5201",)


def test_a_run_has_each_direction_from_the_capture_in_which_it_appears_first(tmp_path):
    frames = connection([(20_000, 0)], acks=[(30_000, 1)])
    at_sender = [one for one in frames if one[1][12:16] == frames[0][1][12:16]]
    at_receiver = [one for one in frames if one not in at_sender]
    for name, rows, later in (
        ("cli-to-mid", at_sender, 0),
        ("mid-to-srv", at_sender, 5e-3),
        ("srv-to-mid", at_receiver, 0),
    ):
        (tmp_path / f"{name}.pcapng").write_bytes(pcap([(at + later, packet) for at, packet in rows]))
    found = packets.read(tmp_path)[0]
    assert (found.up.capture, found.down.capture) == ("cli-to-mid.pcapng", "srv-to-mid.pcapng")
    assert (len(found.up), found.down.ack.tolist()) == (2, [1, 1001])


def test_a_long_common_subsequence_is_the_longest():
    # 1 2 4 6 and 1 3 4 6 are the longest; 1 5 6 is not.
    places = lockstep._longest_rise([1, 5, 2, 3, 0, 4, 6])
    assert [[1, 5, 2, 3, 0, 4, 6][at] for at in places] == [1, 2, 3, 4, 6]
    assert lockstep._longest_rise([]) == []


def test_unwrapped_numbers_go_backwards_too():
    # From 2³² - 1: 1 on, 11 on, 5 back.
    assert packets.unwrapped(np.array([0, 11, 6]), 2**32 - 1).tolist() == [1, 12, 7]


def test_the_command_says_it_in_json_and_by_its_code(written, tmp_path):
    ours = written("a.pcap", connection([(20_000, 0)]))
    theirs = written("b.pcap", connection([(20_030, 0)]))
    picture = tmp_path / "apart.svg"
    ended = CliRunner().invoke(app, ["compare", "--packets", str(ours), str(theirs), "--json", "--plot", str(picture)])
    assert ended.exit_code == 1
    document = json.loads(ended.stdout)
    part = document["flows"][0]["parts"][0]
    assert (document["same"], part["identical"], part["times"]["max_s"]) == (False, True, pytest.approx(30e-6))
    assert picture.read_text().count("<svg") == 1
    assert CliRunner().invoke(app, ["compare", "--packets", str(ours), str(ours)]).exit_code == 0
    text = lockstep_report.text(compared(ours, theirs))
    assert "30.0" in text


def test_what_cannot_be_compared_is_refused(tmp_path):
    empty = tmp_path / "empty.pcap"
    empty.write_bytes(pcap([]))
    with pytest.raises(TraceError, match="no TCP connections"):
        packets.read(empty)
    with pytest.raises(TraceError, match="no captures"):
        packets.read(tmp_path)
    for words in (["--plot", "x.svg", "a", "b"], ["--packets", "--own", "a", "b"], ["--packets", "none", "none"]):
        assert isinstance(CliRunner().invoke(app, ["compare", *words]).exception, UsageError)
