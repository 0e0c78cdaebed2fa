"""docs/validation/lockstep.py: what its table says of two captures. Times are µs since the SYN."""

from __future__ import annotations

import csv
import importlib.util
from pathlib import Path

import pytest
from tests.capture_files import ACK, CLIENT, PSH, SERVER, SYN, pcap, tcp

SCRIPT = Path(__file__).parents[1] / "docs" / "validation" / "lockstep.py"


@pytest.fixture
def module():
    spec = importlib.util.spec_from_file_location("lockstep_table", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def capture(path, data):
    """A SYN, then segments of 1000 bytes: (µs, segment, flags)."""
    ends = (CLIENT, 40_000), (SERVER, 5201)
    frames = [(1.0, tcp(*ends, flags=SYN, seq=9))]
    frames += [(1 + at * 1e-6, tcp(*ends, seq=10 + 1000 * n, ack=78, payload=1000, flags=f)) for at, n, f in data]
    path.write_bytes(pcap(frames))
    return path


BEFORE = [(20_000, 0, ACK), (20_100, 1, ACK)]


def test_what_differs_first_and_how_far_apart_packets_are(module, tmp_path):
    """Packet 3 is 25 µs apart, 5 is the retransmission of segment 1 and 2000 µs apart, 6 differs by PSH, of which the
    simulator's is 100 µs later. |apart| of the five same packets: 0, 0, 0, 25, 2000.
    """
    ours = [*BEFORE, (20_200, 2, ACK), (20_300, 3, ACK), (40_000, 1, ACK), (50_100, 4, ACK)]
    theirs = [*BEFORE, (20_225, 2, ACK), (20_300, 3, ACK), (42_000, 1, ACK), (50_000, 4, PSH | ACK)]
    found = module.compared(capture(tmp_path / "a.pcap", ours), capture(tmp_path / "b.pcap", theirs))
    assert {key: value if isinstance(value, int | str) else pytest.approx(value) for key, value in found.items()} == {
        "packets": 6, "kernel_packets": 6, "same": 5, "same_until_first": 5,
        "first_flow": "5201", "first_packet": 6, "first_s": 0.05, "first_what": "flags ACK/PSH|ACK",
        "first_apart_us": 100, "beyond_20us_packet": 3, "beyond_20us_s": 0.0202, "beyond_20us_apart_us": -25,
        "beyond_1ms_packet": 5, "beyond_1ms_s": 0.04, "loss_s": 0.04, "cwr_s": None, "p50_us": 0, "max_us": 2000,
        "until_loss_same": 1, "until_loss_max_us": 25, "start_apart_us": 0,
    }  # fmt: skip


def test_a_capture_that_ends_earlier_is_no_difference(module, tmp_path):
    more = [*BEFORE, (20_200, 2, ACK)]
    found = module.compared(capture(tmp_path / "a.pcap", more), capture(tmp_path / "b.pcap", BEFORE))
    row = {column: module.text(found.get(column)) for column in module.COLUMNS}
    assert (row["same"], row["first_what"], row["until_loss_same"], module.event(row)) == ("2", "", "1", "none")


@pytest.mark.parametrize(
    ("first", "times", "event"),
    [
        (("0.1", "flags PSH|ACK/ACK", "-5"), ("", "", ""), "flags, before both"),
        (("0.1", "flags PSH|ACK/ACK", "-21"), ("0.2", "0.3", ""), "time, before both"),
        (("0.2", "payload 1448/880; flags ACK/PSH|ACK", "1"), ("0.1", "", "0.05"), "time, after a CWR"),
        (("0.2", "payload 1448/880; flags ACK/PSH|ACK", "1"), ("0.3", "0.2", "0.1"), "payload flags, after a loss"),
        (("0.2", "flags ACK|CWR/ACK", "1"), ("0.3", "", "0.2"), "mark, before both"),
    ],
)
def test_what_comes_first(module, first, times, event):
    columns = ("first_s", "first_what", "first_apart_us", "beyond_20us_s", "loss_s", "cwr_s")
    assert module.event(dict(zip(columns, (*first, *times), strict=True))) == event


def test_bounds_until_the_first_loss(module):
    row = {"until_loss_same": "0", "until_loss_max_us": "25"}
    assert [module.until_loss(row, bound, same=same) for bound in (20, 1000) for same in (True, False)] == [
        False, False, False, True,
    ]  # fmt: skip


def test_the_table_has_runs_of_the_suites_once(module):
    with module.TABLE.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert tuple(rows[0]) == module.COLUMNS
    names = [row["run"] for row in rows]
    assert names == sorted(set(names))
    assert set(names) <= {run.key for run in module.select(list(module.SUITES))}
