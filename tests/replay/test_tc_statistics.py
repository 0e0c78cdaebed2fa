"""What the simulator says of a queue is worded as the real `tc -s -d qdisc show` words it.

Every kind gets the same packets on both sides (`bakeoff.replay`), and each line is compared word by word with its
numbers masked. Skipped without a virtual-time kernel.
"""

from __future__ import annotations

import json
import re

import pytest

from bakeoff import replay
from bakeoff.replay import Replayed

pytest.importorskip("bakeoff._sim", reason="the simulator is not built")

TREE = {
    "qdisc": "htb default 2",
    "classes": [
        {"id": "1", "class": "rate 4mbit", "filters": [{"flow": "0"}], "child": {"qdisc": "pfifo limit 30"}},
        {
            "id": "2",
            "class": "rate 5mbit",
            "child": {"qdisc": "tbf rate 4mbit burst 5kb limit 60000", "child": {"qdisc": "fq_codel"}},
        },
    ],
}
QUEUES = [
    "pfifo limit 50",
    "bfifo limit 60000",
    "pfifo_fast",
    "prio",
    "sfq limit 100",
    "sfq limit 100 depth 24 headdrop min 3000 max 20000 probability 0.20 ecn redflowlimit 100000",
    "tbf rate 10mbit burst 2000b peakrate 12mbit mtu 1514 limit 60000",
    "codel ecn",
    "codel ecn ce_threshold 2ms",
    "fq_codel limit 100",
    "fq_codel ce_threshold 2ms",
    "pie ecn limit 50",
    "pie dq_rate_estimator",
    "fq_pie ecn limit 100",
    "red limit 60000 min 10000 max 30000 avpkt 1000 burst 20 ecn",
    "fq limit 200 flow_limit 20 ce_threshold 1ms",
    "fq",
    "netem delay 10ms 2ms loss 1% duplicate 1% reorder 5% limit 50",
    "netem rate 10mbit limit 50 loss 10% ecn",
    "dualpi2",
    "dualpi2 limit 50 step_thresh 2ms",
    "cake bandwidth 10mbit",
    "cake bandwidth 10mbit diffserv4 memlimit 50000 ack-filter",
    "cake",
    json.dumps(TREE),
]
EXACT = {"pfifo limit 50", "bfifo limit 60000", "pfifo_fast", "codel ecn", "fq_codel limit 100", json.dumps(TREE)}
"""Nothing is drawn, the numbers are the same too. (`overlimits` of tbf counts calls, of which Linux makes more.)"""


@pytest.fixture(scope="module")
def recorded(record):
    """Ours and theirs by qdisc, from one boot."""
    packets = replay.pattern("ecn", rate_bps=10_000_000)
    jobs = [(replay.port(qdisc), packets) for qdisc in QUEUES]
    answer = record(jobs)
    found = {}
    for (port, _), theirs in zip(jobs, answer.replays, strict=True):
        assert isinstance(theirs, Replayed), theirs
        found[port.qdisc] = replay.simulate(port, packets, hz=answer.hz, like=theirs), theirs
    return found


def blocks(shown: str) -> dict[str, list[str]]:
    """The lines of each qdisc by its kind, without trailing space, handles (tc counts them otherwise) and a seed that
    netem drew itself."""
    found: dict[str, list[str]] = {}
    here: list[str] = []
    for line in shown.splitlines():
        words = re.match(r"qdisc (\S+) \w+: ", line)
        if words:
            here = found.setdefault(words[1], [])
            line = line.replace(words[0], f"qdisc {words[1]} ", 1)  # noqa: PLW2901
        here.append(re.sub(r" (seed|parent) \S+", "", line).rstrip())
    return found


def masked(lines: list[str]) -> list[str]:
    """Numbers with their units as N; columns are padded by what stands in them."""
    return [re.sub(r"-?\d[\d.]*(e-?\d+)?[A-Za-z%]*", "N", re.sub(r" +", " ", line)) for line in lines]


@pytest.mark.parametrize("qdisc", QUEUES)
def test_statistics_are_worded_as_tc_words_them(recorded, qdisc):
    ours, theirs = (blocks(side.show) for side in recorded[qdisc])
    # tc spoke of every qdisc that was asked for.
    assert set(re.findall(r'(?:^|"qdisc": ")(\w+)', qdisc)) <= set(theirs) <= set(ours)
    for kind, lines in theirs.items():
        # C or L has the credit by chance.
        shapes = [[re.sub(r"\([CL]-queue\)", "", line) for line in masked(side)] for side in (ours[kind], lines)]
        assert shapes[0] == shapes[1], kind


@pytest.mark.parametrize("qdisc", sorted(EXACT))
def test_what_draws_no_random_numbers_says_the_same_numbers(recorded, qdisc):
    ours, theirs = (blocks(side.show) for side in recorded[qdisc])
    for kind, lines in theirs.items():
        if kind != "tbf":
            assert ours[kind] == lines


def test_a_column_of_cake_keeps_its_place(recorded):
    ours, theirs = (side.show.splitlines() for side in recorded["cake bandwidth 10mbit"])
    # Right-aligned names and values of the three tins, wherever numbers differ.
    for name in ("  thresh", "                   Bulk"):
        [our], [their] = ([line for line in side if line.startswith(name)] for side in (ours, theirs))
        assert our == their
