"""`bakeoff qdisc-replay`: arrivals, our queue alone, the comparison, and the kernel where there is one."""

import json
import math

import pytest

from bakeoff import replay
from bakeoff.errors import BakeoffError
from bakeoff.replay import Arrival, Arrivals, Replayed, arrivals
from bakeoff.replay.port import START_NS, flow_hash, priority

RATE = 10_000_000
FRAME = 1250  # 1 ms at 10 Mbit/s


def at(*times_ms: float, size: int = FRAME, ecn: int = 2) -> Arrivals:
    return Arrivals("test", tuple(Arrival(round(ms * 1e6), size, 0, ecn) for ms in times_ms))


# Arrivals


@pytest.mark.parametrize("name", replay.names())
def test_a_pattern_is_a_function_of_its_name_and_seed(name):
    one = replay.pattern(name, rate_bps=RATE, seed=1)
    assert one == replay.pattern(name, rate_bps=RATE, seed=1)
    assert one != replay.pattern(name, rate_bps=RATE, seed=2)
    assert all(a.ns <= b.ns for a, b in zip(one.packets, one.packets[1:], strict=False))


@pytest.mark.parametrize(("name", "load"), [("idle", 0.1), ("overload", 1.25), ("bursts", 1.05), ("step", 1.175)])
def test_a_pattern_has_its_load(name, load):
    # In 2 s of bursts there are seven of 100 ms at 3 times the rate: 2.1 s of packets. Of step: 0.5 × 2 + 1.5 × 0.9.
    packets = replay.pattern(name, rate_bps=RATE).packets
    # A packet follows after a half to three halves of its time: four standard errors of the mean of so many.
    chance = 4 * math.sqrt(1 / 12 / len(packets)) * load
    # Six of the bursts begin up to 10 ms late.
    late = 6 * 0.01 * 3 / 2 if name == "bursts" else 0
    assert load - late - chance < sum(p.bytes for p in packets) * 8 / RATE / 2 < load + chance


@pytest.mark.parametrize("name", replay.names())
def test_a_pattern_without_a_rate_is_refused(name):
    with pytest.raises(BakeoffError, match=r"--rate: pattern '.*' at 0 bit/s has no packets; expected a rate above"):
        replay.pattern(name, rate_bps=0)


def test_a_pattern_has_bounded_packets(monkeypatch):
    # 2 s at 10 Mbit/s with a load of 1.25: 2 × 1.25e7 / (1514 × 8) = 2064 packets.
    monkeypatch.setattr(arrivals, "MOST_DRAWN", 2000)
    with pytest.raises(BakeoffError, match=r"at 0.01 Gbit/s has more than 2,000 packets; expected a lower rate"):
        replay.pattern("overload", rate_bps=RATE)
    assert len(replay.pattern("overload", rate_bps=RATE * 9 // 10).packets) < 2000


def test_a_file_keeps_every_packet(tmp_path):
    made = replay.pattern("flows", rate_bps=RATE)
    arrivals.write(made, tmp_path / "flows.csv")
    assert arrivals.read(tmp_path / "flows.csv") == made


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("time,bytes\n", ":1: expected the columns time_s,bytes,flow,ecn"),
        ("time_s,bytes,flow,ecn\n", "no arrivals"),
        ("time_s,bytes,flow,ecn\n0,1514,0\n", ":2: 3 values"),
        ("time_s,bytes,flow,ecn\n0,1514,0,ect\n", ":2: ecn: 'ect'; expected not-ect, ect1, ect0, ce"),
        ("time_s,bytes,flow,ecn\n0,45,0,ce\n", ":2: bytes: '45'; expected a whole number from 46 to 1514"),
        ("time_s,bytes,flow,ecn\n0,46,1024,ce\n", ":2: flow: '1024'"),
        ("time_s,bytes,flow,ecn\nnan,46,0,ce\n", ":2: time_s: 'nan'; expected seconds"),
        ("time_s,bytes,flow,ecn\n1,46,0,ce\n0.5,46,0,ce\n", ":3: time_s decreases"),
        ("time_s,bytes,flow,ecn\n0," + 5000 * "1" + ",0,ce\n", ":2: bytes: '111"),
        ("time_s,bytes,flow,ecn\n0," + 200_000 * "1" + ",0,ce\n", ":2: field larger than field limit"),
        ("\xff\xfe\0", "not a text file; expected a CSV file with the columns time_s,bytes,flow,ecn"),
    ],
)
def test_a_bad_file_is_refused_by_line(tmp_path, text, says):
    path = tmp_path / "bad.csv"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(BakeoffError) as caught:
        replay.load(str(path), rate_bps=RATE)
    assert says in str(caught.value)


# Our side


def test_a_packet_leaves_every_millisecond():
    # htb's bucket of 1600 B holds the first packet and lets it go into debt for the second: 2500 - 1600 = 900 B,
    # 0.72 ms; then one packet's time each. Three find room, of which two have left at once.
    done = replay.simulate(replay.port("pfifo limit 2"), at(0, 0, 0, 0, 0))
    assert [(n, t - START_NS) for n, t, _ in done.departures] == [(0, 0), (1, 0), (2, 720_000), (3, 1_720_000)]


def test_a_shaper_has_no_htb_above():
    assert replay.port("pfifo").shaped
    assert replay.port("cake").shaped
    assert not replay.port("cake bandwidth 5mbit").shaped
    assert not replay.port('{"qdisc": "pfifo limit 3"}').shaped


def test_words_that_cannot_be_read_are_refused():
    for qdisc, says in (
        ("fq_codel flow 1", "did you mean 'flows'"),
        ('{"qdisk": 1}', "qdisc: Field required"),
        ("", "qdisc"),
    ):
        with pytest.raises(BakeoffError, match=says):
            replay.simulate(replay.port(qdisc), at(0))


@pytest.mark.parametrize("buckets", [32, 1024])
def test_flows_of_sfq_have_buckets_of_their_own_the_same_on_both_sides(buckets):
    port = replay.port(f"sfq divisor {buckets}")
    ours = [flow_hash(flow) % buckets for flow in range(32)]
    # 2: is sfq's handle below htb; classids count from 1.
    assert [priority(port, flow) for flow in range(32)] == [(2 << 16) + bucket + 1 for bucket in ours]
    assert len(set(ours)) == len({flow_hash(flow) * buckets >> 32 for flow in range(32)}) == 32


@pytest.mark.parametrize(("qdisc", "apart"), [("fq_codel flows 2", 1), ("sfq divisor 2", 0)])
def test_ours_has_the_hashes_of_the_kernel_s_flows_but_for_sfq(qdisc, apart):
    # Two flows of three packets each in a burst; in one bucket they leave in order of arrival, in two by turns.
    packets = Arrivals("test", tuple(Arrival(0, FRAME, flow, 2) for flow in (0, 0, 0, 1, 1, 1)))
    alone = replay.simulate(replay.port(qdisc), packets)
    like = Replayed(alone.arrivals_ns, (), "", hashes=(5, 6))
    order = [number for number, _, _ in replay.simulate(replay.port(qdisc), packets, like=like).departures]
    assert ([number for number, _, _ in alone.departures] != order) == apart


# The comparison


def fates(*departures: tuple[int, int, int], packets: int = 3) -> Replayed:
    return Replayed(tuple(range(packets)), departures, "", ())


def test_the_first_difference_names_the_packet_and_what_each_did():
    same = fates((0, 1000, 2), (1, 2000, 3))
    assert replay.compare(at(0, 0, 0), same, same).identical
    other = replay.compare(at(0, 0, 0), same, fates((0, 1000, 2), (2, 2000, 2)))
    assert other.differing == 2
    assert other.first.text() == ("packet 2: ours sent it after 0.001999 ms, marked; the kernel's dropped it")
    assert (other.ours.marks, other.theirs.marks, other.ours.drops) == (1, 0, 1)


def test_the_order_within_an_instant_counts():
    found = replay.compare(at(0, 0), fates((0, 5, 2), (1, 5, 2), packets=2), fates((1, 5, 2), (0, 5, 2), packets=2))
    assert (found.differing, found.identical) == (0, False)


def test_the_permutation_test_tells_a_shift_from_chance():
    statistic, p = replay.permutation_test(list(range(30)), list(range(30)))
    assert (statistic, p) == (0, 1)
    # Half of the second sample lies above the first: the distance is 1/2; 30 against 30 have that by a chance of 0.001.
    statistic, p = replay.permutation_test(list(range(30)), list(range(15, 45)))
    assert statistic == pytest.approx(0.5)
    assert p < 0.005


# The command


def test_the_command_writes_what_it_replays(tmp_path, cli):
    file = str(tmp_path / "a.csv")
    code, shown, _ = cli("qdisc-replay", "fq_codel", "--arrivals", "ecn", "--write", file)
    assert (code, shown[:19]) == (0, "ecn: 1980 packets, ")
    code, text, _ = cli("qdisc-replay", "fq_codel", "--arrivals", file, "--json")
    document = json.loads(text)
    assert f"1980 packets, {document['ours']['drops']} dropped, {document['ours']['marks']} marked" in shown
    assert sum("ours" not in packet for packet in document["packets"]) == document["ours"]["drops"] > 0


def test_the_command_refuses_another_engine(cli):
    code, _, shown = cli("qdisc-replay", "pfifo", "--against", "netns")
    assert code == 2
    assert "expected kernel, kernel:NAME or kernel:PATH" in shown


# The real kernel


@pytest.fixture(scope="module")
def recorded(record):
    """Every queue here with every pattern here, from one boot."""
    jobs = [(replay.port(qdisc), replay.pattern(name, rate_bps=RATE)) for qdisc in IDENTICAL for name in NAMES]
    answer = record(jobs)
    return dict(zip([(port.qdisc, packets.name) for port, packets in jobs], answer.replays, strict=True)), answer.hz


TREE = json.dumps(
    {
        "qdisc": "htb default 2",
        "classes": [
            {"id": "1", "class": "rate 4mbit", "filters": [{"flow": "0"}], "child": {"qdisc": "pfifo limit 30"}},
            {"id": "2", "class": "rate 5mbit", "child": {"qdisc": "fq_codel"}},
        ],
    }
)
IDENTICAL = [
    "pfifo limit 50",
    "bfifo limit 60000",
    "codel ecn",
    "fq_codel limit 100 drop_batch 8",
    "netem rate 10mbit limit 50",
    "cake bandwidth 10mbit besteffort flowblind",
    TREE,
]
NAMES = ["bursts", "ecn"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("qdisc", IDENTICAL)
def test_a_queue_without_chance_does_what_linux_does(recorded, qdisc, name):
    replays, hz = recorded
    theirs = replays[qdisc, name]
    assert isinstance(theirs, Replayed), theirs
    packets = replay.pattern(name, rate_bps=RATE)
    found = replay.compare(packets, replay.simulate(replay.port(qdisc), packets, hz=hz, like=theirs), theirs)
    assert found.identical, found.first.text()
    # There was something to decide.
    assert found.ours.drops + found.ours.marks > 50
    assert found.late_ns <= 1512
