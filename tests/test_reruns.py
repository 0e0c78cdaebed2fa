"""Runs of the catalog against counters of other people's laboratories, which nothing here was made from.

Source: the queues' counters of L4STeam's re-run of sce-l4s-ect1 (25 April 2020): bytes that left the middlebox towards
the server, marks; and the largest RTT that l4s-tests names in its text (scenario 2). One draw stands against one draw.
The re-run's Prague fell back in classic queues, as `prague@2020-04` does, but gave way to losses, as that one does not:
its runs in queues that only drop are no yardstick for it.
"""

import math

import pytest

from bakeoff import campaign
from bakeoff.results import read_all, scan
from bakeoff.scenario import catalog

ALONE = "l4s-s1-oneflow/ns-prague-dualpi2"
PAIR = "l4s-s2-twoflow/ns-cubic-vs-prague"
SENT = {
    f"{ALONE}-50Mbit-80ms": 291_132_648,
    f"{ALONE}-5Mbit-80ms": 29_668_532,
    f"{PAIR}-codel1q-80ms": 360_883_766,
    f"{PAIR}-codel1q(20ms)-80ms": 330_082_796,
    f"{PAIR}-pie-80ms": 371_952_732,
    f"{PAIR}-red(150000)-80ms": 999_150_982,
    "l4s-s5-burstiness/ns-prague-dualpi2-50Mbit-80ms": 43_457_236,
}
MARKS = {
    f"{PAIR}-codel1q-80ms": 38,
    f"{PAIR}-codel1q(20ms)-80ms": 2449,
    f"{PAIR}-pie-80ms": 65,
    f"{PAIR}-red(150000)-80ms": 958,
}


@pytest.fixture(scope="module")
def rerun(tmp_path_factory):
    """`scenario/run` -> result."""
    folder = tmp_path_factory.mktemp("reruns")
    assert not campaign.run(catalog.select([f"sce-l4s-ect1/{name}" for name in SENT]), folder).failed
    found = {f"{r.resolved['scenario']}/{r.resolved['run']}": r for r in read_all(scan(folder))}
    assert found.keys() == SENT.keys()
    return found


@pytest.mark.parametrize("name", SENT)
def test_as_many_bytes_pass_the_bottleneck(rerun, name):
    series = rerun[name].series
    sent = series.filter(name="mid>srv", metric="sent")["value"].max()
    # What slow start leaves unused differs from draw to draw where PIE ends it; bursts come in random slots.
    drawn = name.endswith("-pie-80ms") or "burstiness" in name
    assert abs(math.log(sent / SENT[name])) < (0.1 if drawn else 0.02)


@pytest.mark.parametrize("name", MARKS)
def test_as_many_packets_are_marked(rerun, name):
    marks = rerun[name].counters["queues"]["mid>srv"]["marks"]
    # Of n independent marks on both sides the logarithm strays by sqrt(2/n): three of these, and a tenth for what
    # depends on the draw besides.
    assert abs(math.log(marks / MARKS[name])) < 3 * math.sqrt(2 / MARKS[name]) + 0.1


def test_the_largest_rtt_after_a_fall_to_1_mbit(tmp_path):
    """l4s-tests, scenario 2: 50 to 1 Mbit/s at 80 ms, Prague in fq_codel: "maximum TCP RTT 4346 ms", over 30 s long.

    A window of 50 Mbit/s and 85 ms is 351 frames, which at 1 Mbit/s take 351 * 12.1 ms = 4.25 s.
    """
    run = "l4s-tests/s2-codel-rate-step/ns-clean-prague-fq_codel-50Mbit-1mbit-80ms"
    assert not campaign.run(catalog.select(run), tmp_path).failed
    [result] = read_all(scan(tmp_path))
    srtt = result.series.filter(name="prague", metric="srtt")
    assert srtt["value"].max() == pytest.approx(4.346, rel=0.03)
    long = srtt.filter(srtt["value"] > 0.2)["time"]
    assert long.max() - 25 > 30
