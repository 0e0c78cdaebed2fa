"""Files of `irtt client -o`, read: round trips, ways and losses, and what is refused."""

import gzip
import json
from pathlib import Path

import pytest

from bakeoff import files
from bakeoff.errors import BakeoffError
from bakeoff.results import irtt_json

RECORDED = "shared/captures/bi_fq_codel_2.5mbps_5mbps.json.gz"
SHARED = next((path for parent in Path(__file__).parents if (path := parent / RECORDED).exists()), None)
MS = 1_000_000


def trip(seqno, lost="false", **ns):
    """Sent every 10 ms; the server has it 4 ms later for 1 ms, and the reply takes 5 ms: an RTT of 9 ms."""
    sent = 1_000 * MS + seqno * 10 * MS
    stamps = {"client": {"send": {"wall": 7_000 * MS + sent, "monotonic": sent}, "receive": {}}}
    if lost == "false":
        stamps["server"] = {"receive": {"monotonic": 50 * MS}, "send": {"monotonic": 51 * MS}}
        ns = {"rtt": 9 * MS, "send": 4 * MS, "receive": 5 * MS}
    return {"seqno": seqno, "lost": lost, "timestamps": stamps, "delay": ns, "ipdv": {}}


def document(trips, **stats):
    return {
        "version": {"irtt": "0.9.1", "protocol": 1, "json_format": 1},
        "system_info": {"hostname": "cli"},
        "config": {"params": {"interval": 10 * MS, "length": 60, "dscp": 1}, "local_address": "a:1"},
        "stats": {"start_time": {"wall": 1}, "duplicates": 0, "late_packets": 0, **stats},
        "round_trips": trips,
    }


def test_round_trips_ways_and_losses_come_in_seconds():
    trips = [trip(0), trip(1, "true_up"), trip(2, "true_down"), trip(4)]
    test = irtt_json.parse(json.dumps(document(trips, server_packets_received=3)).encode(), "here")
    assert (test.sent, test.received, test.server_received) == (4, 2, 3)
    assert (test.interval_s, test.length, test.traffic_class, test.hostname) == (0.01, 60, 1, "cli")
    assert test.started_ns == 8_000 * MS
    assert test.round_trips.rows(named=True)[3] == {
        "seqno": 4, "time": 0.04, "rtt_s": 0.009, "send_delay_s": 0.004, "receive_delay_s": 0.005,
        "ipdv_s": None, "send_ipdv_s": None, "receive_ipdv_s": None, "server_s": 0.001, "lost": "false",
    }  # fmt: skip
    assert test.series("p").rows() == [
        (0.01, "probe", "p", "lost", 1.0),
        (0.02, "probe", "p", "lost", 1.0),
        (0.0, "probe", "p", "rtt", 0.009),
        (0.04, "probe", "p", "rtt", 0.009),
    ]


def test_a_packed_file_is_known_by_its_first_bytes(tmp_path):
    text = json.dumps(document([trip(0)]), indent=4).encode()
    assert irtt_json.is_irtt(text)
    for name, content in (("d.json", text), ("d.txt", gzip.compress(text))):
        (tmp_path / name).write_bytes(content)
        assert irtt_json.read(tmp_path / name).received == 1


@pytest.mark.skipif(SHARED is None, reason=f"needs ../{RECORDED}, a file of l4s-tests")
def test_a_recorded_file_gives_its_own_statistics():
    test = irtt_json.read(SHARED)
    stats = json.loads(files.unpacked(SHARED, 1 << 28))["stats"]
    for column, key in (("rtt_s", "rtt"), ("send_delay_s", "send_delay"), ("receive_delay_s", "receive_delay")):
        told = stats[key]
        values = test.round_trips[column]
        # The file's totals are whole nanoseconds.
        assert round(values.sum() * 1e9) == told["total"]
        assert (values.min() * 1e9, values.max() * 1e9) == (pytest.approx(told["min"]), pytest.approx(told["max"]))
    assert round(test.round_trips["ipdv_s"].abs().sum() * 1e9) == stats["ipdv_round_trip"]["total"]
    assert round(test.round_trips["server_s"].sum() * 1e9) == stats["server_processing_time"]["total"]
    assert (test.sent, test.received) == (stats["packets_sent"], stats["packets_received"])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "truncated"),
        (b"[1]", "expected a file of 'irtt client -o'"),
        (json.dumps(document([trip(0) | {"lost": "maybe"}])).encode(), r"round_trips\[0\].lost: Invalid enum value"),
        (json.dumps(document([trip(0, "true", rtt=2**80)])).encode(), r"round_trips\[0\].delay.rtt"),
        (json.dumps(document([trip(1), trip(0)])).encode(), "seqno 0 after 1"),
        (b"[" * 100_000, "expected a file of 'irtt client -o'"),
        (gzip.compress(b"{", mtime=0)[:-9], "is a damaged compressed file"),
    ],
)
def test_what_is_none_of_irtts_files_is_refused(tmp_path, content, said):
    path = tmp_path / "d.json.gz"
    path.write_bytes(content)
    with pytest.raises(BakeoffError, match=said):
        irtt_json.read(path)


def test_no_more_is_unfolded_than_the_bound(tmp_path):
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(b"0" * 100_000))
    assert len(files.unpacked(path, 100_000)) == 100_000
    with pytest.raises(OSError, match="unpacks to more than 99,999 bytes"):
        files.unpacked(path, 99_999)
