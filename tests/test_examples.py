"""The experiments in examples/ run, and their tables say what they are there for."""

import csv
import io
import re
from pathlib import Path

import pytest

from bakeoff import campaign, results
from bakeoff.campaign import Execution
from bakeoff.scenario import expand, load
from bakeoff.tables import results_table
from bakeoff.tables.records import KINDS

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """The runs of each example, made once."""
    made = {}

    def runs(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            report = campaign.run(expand(load(ROOT / "examples" / f"{name}.yaml")), folder, Execution(jobs=1))
            assert not report.failed, report.failed
            made[name] = [results.read(one.path) for one in report.runs]
        return made[name]

    return runs


def rows(found, kind, **words):
    return list(csv.DictReader(io.StringIO(results_table.render(found, format="csv", kind=kind, **words))))


def test_what_a_call_feels_on_a_home_uplink(done):
    found = rows(done("home-uplink"), "flows", condition='transport == "udp"')
    feels = {(row["axis_queue"], row["flow"]): float(row["delay_p99_s"]) for row in found}
    # 15 ms of propagation. A full FIFO of 200 packets at 5 Mbit/s holds 200 * 1514 * 8 / 5e6 = 0.48 s; fair queues hand
    # a call on behind one packet of each other flow: 1514 * 8 / 5e6 = 2.4 ms.
    assert feels["pfifo", "call"] > 0.1
    for queue in ("fq_codel", "cake"):
        assert 0.015 < feels[queue, "call"] < 0.015 + 2 * 0.0025
        assert feels[queue, "call-down"] < feels[queue, "call"]
    assert all(0 <= float(row["loss"]) <= 1 and row["jitter_s"] for row in found)


def test_all_bottlenecks_of_a_parking_lot_are_told(done):
    found = rows(done("parking-lot"), "queues", condition='flows != ""')
    seen = {(row["axis_qdisc"], row["queue"]): row for row in found}
    assert [
        (name, float(row["rate_bps"]) / 1e6, row["flows"]) for (of, name), row in seen.items() if of == "pfifo"
    ] == [
        ("r1>r2", 20, "long, first"),
        ("r2>r3", 15, "long, second"),
        ("r3>r4", 20, "long, third"),
    ]
    for row in seen.values():
        assert 0.9 < float(row["utilisation"]) <= 1
        assert float(row["delay_p99_s"]) > 0
        assert int(float(row["drops"])) > 0


def test_no_number_averages_over_a_rate_step_unsaid(done):
    found = done("rate-step")
    text = results_table.render(found, width=400)
    assert "(at 25 s mid>client" in text
    [line] = [line for line in text.split("between changes")[0].splitlines() if line.startswith("fq_codel")]
    assert line.count("*") >= 5  # two rates, queue delay, RTT, ping, utilisation
    before, after = rows(found, "phases", condition='qdisc == "fq_codel"')
    assert (float(before["queue1_rate_bps"]), float(after["queue1_rate_bps"])) == (50e6, 10e6)
    for part, rate in ((before, 50e6), (after, 10e6)):
        total = float(part["flow1_goodput_bps"]) + float(part["flow2_goodput_bps"])
        assert 0.85 * rate < total < rate
        assert float(part["queue1_utilisation"]) <= 1


def test_every_column_stands_in_the_docs(done):
    page = "".join((ROOT / "docs" / name).read_text() for name in ("tables.md", "measures.md"))
    named = set(re.findall(r"`(\w+)`", page))
    for name in ("home-uplink", "rate-step"):
        for kind in KINDS if name == "rate-step" else ("runs", "flows"):
            for column in rows(done(name), kind)[0]:
                plain = re.sub(r"^(flow|queue|probe)\d+_", "", column)
                numbered = re.sub(r"^(flow)\d+_", r"\1N_", column)
                known = plain in named or numbered in named or column.startswith("axis_")
                assert known or plain == "name" or "_ci95" in plain, column
