"""Two campaigns' distances beside those of one of them from itself."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest

from bakeoff.claims.comparison import compare, side_of
from bakeoff.claims.own_distance import groups
from bakeoff.errors import BakeoffError
from bakeoff.measure.delays import mean_base_rtt
from bakeoff.tables.distances import render_own
from synthetic import as_run, made, resolved


def sides(ours, theirs):
    mine, other = side_of("sim", ours), side_of("kernel", theirs)
    return compare(mine, other), mine, other


def three_runs():
    """Run `one` with three seeds on the kernel, run `two` with one; the second flow has 1 Mbit/s in all."""
    ours = [made((40e6, 1e6), run="one"), made((10e6, 1e6), run="two")]
    kernel = [(20e6, 1), (40e6, 2), (80e6, 3)]
    theirs = [made((rate, 1e6), run="one", seed=seed) for rate, seed in kernel] + [made((10e6, 1e6), run="two")]
    return sides(ours, theirs)


def test_equal_seeds_are_compared_across_and_unequal_seeds_within():
    [group] = groups(*three_runs(), ["scenario"])
    assert (group.labels, group.runs, group.repeated) == (("s6-rfc3168",), 2, 1)
    # Across: seed 1 of run one (ln 40/20) and of run two (0), each with a second flow at 0.
    every = group.every["goodput"]
    assert (every.n, every.median, every.p90) == (4, pytest.approx(0, abs=1e-6), pytest.approx(0.7 * math.log(2)))
    # Of the run with several seeds: ln 2 and 0.
    apart = group.apart["goodput"]
    assert (apart.n, apart.median, apart.p90) == (2, pytest.approx(math.log(2) / 2), pytest.approx(0.9 * math.log(2)))
    # Within: 20:40, 20:80, 40:80 of the first flow, and three zeros of the second: 0 0 0 ln2 ln2 ln4.
    own = group.own["goodput"]
    assert (own.n, own.median, own.p90) == (6, pytest.approx(math.log(2) / 2), pytest.approx(1.5 * math.log(2)))


def test_groups_follow_the_axes_and_all_come_last():
    pie, red = made((40e6, 2e6), run="one"), made((40e6, 4e6), run="two")
    red.resolved["point"] = {"qdisc": "red"}
    found = groups(*sides([pie, red], [made((40e6, 2e6), run="one"), made((40e6, 2e6), run="two")]), ["qdisc"])
    assert [group.labels for group in found] == [("pie",), ("red",), ("all",)]
    assert [group.runs for group in found] == [1, 1, 2]
    # Of the red run's two flows one is twice the kernel's.
    assert found[1].every["goodput"].median == pytest.approx(math.log(2) / 2)
    assert found[1].apart == found[1].own == {}


def test_without_a_common_seed_or_axis_it_says_so():
    with pytest.raises(BakeoffError, match="sim and kernel have no seeds in common; expected runs with equal seeds"):
        groups(*sides([made(seed=1)], [made(seed=2)]), ["scenario"])
    with pytest.raises(BakeoffError, match=r"by: unknown axis 'aqm'; expected one of qdisc, .*scenario"):
        groups(*sides([made()], [made()]), ["aqm"])


def test_what_a_reader_sees(monkeypatch):
    monkeypatch.setenv("COLUMNS", "160")
    found = three_runs()
    made_groups = groups(*found, ["scenario"])
    shown = render_own(found[0], made_groups, ["scenario"], "terminal")
    [line] = [line for line in shown.splitlines() if "s6-" in line]
    # ln 2 = 0.693: see above; delays and marks are equal in all runs
    assert line.split()[:6] == ["s6-rfc3168", "2", "1", "0.000/0.485", "0.347/0.624", "0.347/1.040"]
    rows = list(csv.DictReader(io.StringIO(render_own(found[0], made_groups, ["scenario"], "csv"))))
    assert [row["measure"] for row in rows] == ["goodput", "tcp_delay_mean", "marks"]
    assert float(rows[0]["own_p90"]) == pytest.approx(1.5 * math.log(2))
    document = json.loads(render_own(found[0], made_groups, ["scenario"], "json"))
    assert document["groups"][0]["all_n"] == 4
    assert "| goodput all | goodput apart | goodput own |" in render_own(
        found[0], made_groups, ["scenario"], "markdown"
    ).replace("<br>", " ")


def mean(document):
    run = as_run(document)
    return mean_base_rtt(run, run.flows[0])


def test_the_base_rtt_of_a_window_counts_changes_by_their_time():
    run = resolved()
    run["window_s"] = [10.0, 60.0]
    run["changes"] = [
        {
            "at_s": 30.0,
            "node": interface["node"],
            "peer": interface["peer"],
            "action": {"kind": "qdisc-change", "side": "ingress", "handle": "", "qdisc": "netem delay 40ms"},
        }
        for interface in run["interfaces"]
        if "ingress" in interface
    ]
    assert len(run["changes"]) == 2
    # 20 ms for 20 s, 80 ms for 30 s
    assert mean(run) == pytest.approx((20 * 0.020 + 30 * 0.080) / 50)
    run["changes"] = [{**run["changes"][0], "action": {"kind": "link", "delay_s": 0.005}, "node": "cli", "peer": "mid"}]
    # 20 ms and, for 30 s, 5 ms there: a link's change concerns what its node sends
    assert mean(run) == pytest.approx((20 * 0.020 + 30 * 0.025) / 50)
