"""Runs of the catalog against counters of other people's laboratories, which nothing here was made from.

Source: the queues' counters of L4STeam's re-run of sce-l4s-ect1 (25 April 2020): bytes that left the middlebox towards
the server, marks; and the largest RTT that l4s-tests names in its text (scenario 2). Four draws stand beside one.

The re-run's Prague fell back in classic queues, as `prague@2020-04` does, but gave way to losses, as that one does not:
its runs in queues that only drop are no yardstick for it.
"""

import math

import pytest

from bakeoff import campaign
from bakeoff.campaign import Execution
from bakeoff.results import survey
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
    """`scenario/run` -> results with four seeds."""
    folder = tmp_path_factory.mktemp("reruns")
    runs = catalog.select([f"sce-l4s-ect1/{name}" for name in SENT], seeds=4)
    assert not campaign.run(runs, folder, Execution(jobs=1)).failed
    found = {name: [] for name in SENT}
    for result in survey(folder).results:
        found[f"{result.run.scenario}/{result.run.run}"].append(result)
    assert {len(results) for results in found.values()} == {4}
    return found


def beyond(values, theirs):
    """By what factor `theirs` lies outside the range of `values`; 1 within it."""
    return max(theirs / max(values), min(values) / theirs, 1)


@pytest.mark.parametrize("name", SENT)
def test_as_many_bytes_pass_the_bottleneck(rerun, name):
    sent = [run.series.filter(name="mid>srv", metric="sent")["value"].max() for run in rerun[name]]
    # Bursts: ours carries 7 to 9 % less than theirs.
    assert beyond(sent, SENT[name]) < (1.1 if "burstiness" in name else 1.03)


@pytest.mark.parametrize("name", MARKS)
def test_as_many_packets_are_marked(rerun, name):
    marks = [run.all_counters()["queues"]["mid>srv"]["marks"] for run in rerun[name]]
    # Theirs strays by the square root of its number, at three of these.
    assert beyond(marks, MARKS[name]) < 1 + 3 / math.sqrt(MARKS[name]) + 0.1


def test_the_largest_rtt_after_a_fall_to_1_mbit(tmp_path):
    """l4s-tests, scenario 2: 50 to 1 Mbit/s at 80 ms, Prague in fq_codel: "maximum TCP RTT 4346 ms", over 30 s long.

    A window of 50 Mbit/s and 85 ms is 351 frames, which at 1 Mbit/s take 351 * 12.1 ms = 4.25 s.
    """
    run = "l4s-tests/s2-codel-rate-step/ns-clean-prague-fq_codel-50Mbit-1mbit-80ms"
    assert not campaign.run(catalog.select(run), tmp_path).failed
    [result] = survey(tmp_path).results
    srtt = result.series.filter(name="prague", metric="srtt")
    assert srtt["value"].max() == pytest.approx(4.346, rel=0.03)
    long = srtt.filter(srtt["value"] > 0.2)["time"]
    assert long.max() - 25 > 30
