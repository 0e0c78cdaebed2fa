"""A queue's delay by Little's law: its arithmetic, and the simulator's own delays as the measure of its error."""

import json

import polars as pl
import pytest

import bakeoff
from bakeoff import results
from bakeoff.claims.comparison import compare, side_of
from bakeoff.measure import MeasureError, Samples
from bakeoff.measure.delays import delay_over_time, little, little_over_time
from bakeoff.results import parts

QUEUE = "mid>srv"
QDISCS = ("pfifo limit 300", "fq_codel", "red limit 400000 avpkt 1000 adaptive bandwidth 50mbit ecn", "cake", "fq",
          "sfq", "codel", "pie ecn", "dualpi2")  # fmt: skip


def samples(backlog, sent, **more):
    """Samples at 1 s, 2 s, and so on."""
    series = {"backlog": backlog, "sent": sent, **more}
    rows = [
        (float(i + 1), "queue", QUEUE, metric, float(value))
        for metric, values in series.items()
        for i, value in enumerate(values)
    ]
    return Samples(parts(pl.DataFrame(rows, schema=["time", "kind", "name", "metric", "value"], orient="row")))


def test_the_delay_is_the_mean_backlog_over_what_left():
    found = samples([0, 2000, 1000, 1000], [0, 1000, 4000, 4500])
    # (0 + 2000) / 2 * 1 s / 1000, 1500 / 3000, 1000 / 500
    assert little_over_time(found, QUEUE)[1] == pytest.approx([1.0, 0.5, 2.0])
    spread = little(found, QUEUE, (0, 10))
    # Every byte counts once: (1000 + 1500 + 1000) / 4500, which is not the mean of the three
    assert spread.mean == pytest.approx(3500 / 4500)
    assert (spread.n, spread.p50, spread.max) == (3, pytest.approx(1.0), pytest.approx(2.0))


def test_time_in_which_nothing_left_counts_in_the_mean():
    found = samples([1000, 1000, 1000], [0, 0, 1000])
    assert little_over_time(found, QUEUE)[0].tolist() == [3.0]
    assert little(found, QUEUE, (0, 10)).mean == pytest.approx(2000 / 1000)


def test_a_counter_that_begins_again_leaves_a_gap():
    # A replaced qdisc counts from 0: 1000 * 1 s / 500 before, 500 / 250 behind
    found = samples([1000, 1000, 0, 1000], [5000, 5500, 100, 350])
    assert little_over_time(found, QUEUE)[1] == pytest.approx([2.0, 2.0])


@pytest.mark.parametrize("sent", [[7, 7, 7], [7]])
def test_without_departures_there_is_no_delay(sent):
    with pytest.raises(MeasureError, match="no packet left queue 'mid>srv'"):
        little(samples([0] * len(sent), sent), QUEUE, (0, 10))


def test_what_is_told_goes_first():
    assert delay_over_time(samples([0, 0], [0, 1000], sojourn=[0.1, 0.2]), QUEUE)[1].tolist() == [0.1, 0.2]
    assert delay_over_time(samples([0, 2000], [0, 1000]), QUEUE)[1].tolist() == [1.0]


@pytest.fixture(scope="module")
def duels(tmp_path_factory):
    folder = tmp_path_factory.mktemp("duels")
    for i, qdisc in enumerate(QDISCS):
        bakeoff.duel("cubic", "reno", qdisc=qdisc, rate="50mbit", rtt="20ms", duration="30s", out=folder / str(i))
    return {qdisc: results.read(*results.scan(folder / str(i))) for i, qdisc in enumerate(QDISCS)}


@pytest.mark.parametrize("qdisc", QDISCS)
def test_it_holds_for_every_packet_of_the_simulator(duels, qdisc):
    queue = duels[qdisc].summary.queues[QUEUE]
    # In 80 runs of 10 to 50 Mbit/s and 20 to 80 ms it is 2.9 % at most, and 0.2 % in the median
    assert queue.sojourn_little_s.mean == pytest.approx(queue.sojourn_s.mean, rel=0.03)
    assert queue.sojourn_little_s.p50 == pytest.approx(queue.sojourn_mean_s.p50, rel=0.1)
    assert queue.sojourn_little_s.p99 == pytest.approx(queue.sojourn_mean_s.p99, rel=0.1)
    assert queue.delay_of == "packets"


def test_tables_and_comparisons_have_it(duels, cli):
    result = duels["sfq"]
    code, out, _ = cli("table", str(result.path), "--rows", "queues", "-f", "json")
    [row] = [row for row in json.loads(out)["rows"] if row["queue"] == QUEUE]
    queue = result.summary.queues[QUEUE]
    assert code == 0
    assert (row["delay_of"], row["little_delay_mean_s"]) == ("packets", queue.sojourn_little_s.mean)
    side = side_of("a", [result])
    compared = {one.key.measure: one.ours for one in compare(side, side).differences}
    assert compared["little_delay_mean"] == queue.sojourn_little_s.mean
    assert compared["little_delay_p99"] == queue.sojourn_little_s.p99


@pytest.mark.parametrize(("qdisc", "of"), [("fq_codel", "little"), ("codel", "qdisc")])
def test_real_linux_has_it_for_every_qdisc(kernel, tmp_path, qdisc, of):
    ran = bakeoff.duel("cubic", "reno", qdisc=qdisc, rate="10mbit", duration="12s", engine=kernel, out=tmp_path)
    queue = ran.summary.queues[QUEUE]
    assert queue.delay_of == of
    # Their target is 5 ms, and two flows keep a queue of 10 Mbit/s and 20 ms busy
    assert 0.002 < queue.sojourn_little_s.mean < 0.015
    assert queue.delay_s.mean == pytest.approx(queue.sojourn_little_s.mean, rel=0.2)
