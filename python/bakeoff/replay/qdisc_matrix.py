"""The whole matrix as a table: `python -m bakeoff.replay.qdisc_matrix [--kernel NAME] [--seeds 30] [--only WORD]`.

Every queue with every pattern. One that draws no random numbers is compared packet by packet; one that does, over
seeds: a two-sample Kolmogorov-Smirnov test by permutation on the counts of drops and of marks, and on the mean sojourn
time in ms of what left (`compare.permutation_test`); a value that never varies on either side has no p.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Final

from bakeoff import replay
from bakeoff.errors import ReplayError
from bakeoff.replay import Arrivals, Port, Replayed


def _leaf(qdisc: str) -> dict[str, object]:
    return {"qdisc": qdisc}


_TREES: Final = {
    "htb, two classes: pfifo at 4, fq_codel at 5 Mbit/s": {
        "qdisc": "htb default 2",
        "classes": [
            {"id": "1", "class": "rate 4mbit", "filters": [{"flow": "0"}], "child": _leaf("pfifo limit 30")},
            {"id": "2", "class": "rate 5mbit", "child": _leaf("fq_codel")},
        ],
    },
    "htb, three classes that borrow: pfifo, bfifo, codel": {
        "qdisc": "htb default 30",
        "classes": [
            {"id": "1", "class": "rate 10mbit ceil 10mbit"},
            {
                "id": "10",
                "parent": "1",
                "class": "rate 2mbit ceil 10mbit burst 10k cburst 3k prio 1",
                "filters": [{"flow": "0"}],
                "child": _leaf("pfifo limit 40"),
            },
            {
                "id": "20",
                "parent": "1",
                "class": "rate 3mbit ceil 6mbit prio 0 quantum 3000",
                "filters": [{"flow": "1"}],
                "child": _leaf("bfifo limit 40000"),
            },
            {"id": "30", "parent": "1", "class": "rate 4mbit ceil 8mbit prio 1", "child": _leaf("codel ecn")},
        ],
    },
    "prio, tbf in two bands: pfifo, fq_codel": {
        "qdisc": "prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
        "classes": [
            {"id": "1", "filters": [{"flow": "0"}], "child": _leaf("tbf rate 4mbit burst 3000 limit 30000")},
            {"id": "2", "child": {"qdisc": "tbf rate 5mbit burst 5kb limit 60000", "child": _leaf("fq_codel")}},
        ],
    },
    "prio, a band with htb's classes: fq_codel, pfifo": {
        "qdisc": "prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1",
        "classes": [
            {"id": "1", "filters": [{"flow": "0"}], "child": _leaf("tbf rate 4mbit burst 3000 limit 30000")},
            {
                "id": "2",
                "child": {
                    "qdisc": "htb default 20",
                    "classes": [
                        {"id": "10", "class": "rate 3mbit", "filters": [{"flow": "1"}], "child": _leaf("fq_codel")},
                        {"id": "20", "class": "rate 2mbit", "child": _leaf("pfifo limit 20")},
                    ],
                },
            },
        ],
    },
}
"""What they are called in the table."""
DETERMINISTIC: Final = (
    "pfifo limit 50",
    "bfifo limit 60000",
    "pfifo_fast",
    "prio",
    "sfq limit 100",
    "sfq limit 60 headdrop quantum 3000",
    "sfq limit 200 depth 20 flows 16 divisor 64",
    "tbf rate 10mbit burst 5kb limit 60000",
    "tbf rate 10mbit burst 2000b peakrate 12mbit mtu 1514 limit 60000",
    "tbf rate 8mbit burst 20kb latency 50ms peakrate 20mbit mtu 3000",
    "tbf rate 12mbit burst 4kb limit 60000 overhead 20 linklayer atm",
    "red limit 60000 min 15000 max 15001 avpkt 1000 burst 16 ecn",
    "codel",
    "codel limit 100 target 2ms interval 20ms ecn",
    "fq_codel",
    "fq_codel flows 1 limit 100",
    "fq_codel flows 8 limit 300",
    "fq_codel limit 100 drop_batch 8 ce_threshold 2ms",
    "fq limit 200",
    "fq limit 200 buckets 8 flow_limit 30",
    "netem delay 10ms limit 10000",
    "netem rate 10mbit limit 50",
    "cake bandwidth 10mbit besteffort flowblind",
    "cake bandwidth 10mbit flowblind overhead 38 mpu 84 rtt 20ms",
    "cnq_codel_af bandwidth 10mbit rtt 10s sce-thresh 1024",
    "cnq_cobalt bandwidth 10mbit rtt 1s sce-thresh 1024",
    "lfq_cobalt bandwidth 10mbit rtt 1s sce-thresh 1024",
    "twin_codel_af bandwidth 10mbit limit 50",
    *(json.dumps(tree) for tree in _TREES.values()),
)
"""No random draws, or none but BLUE's, which needs a full buffer (cake) or a delay of four times the rtt."""
RANDOM: Final = (
    "red limit 60000 min 10000 max 30000 avpkt 1000 burst 20 ecn",
    "red limit 200000 avpkt 1000 adaptive bandwidth 10mbit",
    "pie",
    "pie ecn target 5ms tupdate 5ms",
    "fq_pie",
    "dualpi2",
    "cake bandwidth 10mbit",
    "cake bandwidth 10mbit besteffort flowblind memlimit 100000",
    "cnq_codel_af bandwidth 10mbit sce-thresh 4",
    "cnq_cobalt bandwidth 10mbit sce",
    "lfq_cobalt bandwidth 10mbit sce-thresh 8",
    "twin_codel_af bandwidth 10mbit",
    "sfq limit 100 perturb 1",
    "netem rate 10mbit limit 200 loss 5% 25%",
    "netem rate 10mbit limit 200 loss state 3% 30% 20% 40% 1%",
    "netem rate 10mbit limit 200 loss gemodel 2% 20% 70% 0.1%",
    "netem delay 10ms 3ms 25% distribution normal limit 10000 duplicate 2% reorder 5%",
)
RATE_BPS: Final = 10_000_000
# Codel's times have 32 bits of 1024 ns: after 36 minutes the instant zero seems to lie ahead (docs/qdisc-replay.md).
_IN_ONE_BOOT: Final = 150


def record(jobs: list[tuple[Port, Arrivals]], kernel: str | None, seed: int) -> Iterator[tuple[int, Replayed | str]]:
    """(HZ, replay) of each job, in as many boots as it takes."""
    for start in range(0, len(jobs), _IN_ONE_BOOT):
        recorded = replay.record(jobs[start : start + _IN_ONE_BOOT], kernel=kernel, seed=seed + start)
        for answer in recorded.replays:
            yield recorded.hz, answer


def exact(qdiscs: list[str], patterns: dict[str, Arrivals], kernel: str | None) -> Iterator[list[str]]:
    """Rows: the qdisc, then for each pattern `identical` with drops and marks, or how many packets differ."""
    jobs = [(replay.port(qdisc), arrivals) for qdisc in qdiscs for arrivals in patterns.values()]
    cells = []
    for (port, arrivals), (hz, theirs) in zip(jobs, record(jobs, kernel, 1), strict=True):
        if isinstance(theirs, str):
            cells.append(f"kernel: {theirs}")
            continue
        found = replay.compare(arrivals, replay.simulate(port, arrivals, hz=hz, like=theirs), theirs)
        numbers = found.theirs
        cells.append(
            f"= {numbers.drops} {numbers.marks}"
            if found.identical
            else f"**{found.differing} differ** {found.ours.drops}/{numbers.drops} {found.ours.marks}/{numbers.marks}"
        )
        if found.first:
            sys.stderr.write(f"{port.qdisc}, {arrivals.name}: {found.first.text()}\n")
    for number, qdisc in enumerate(qdiscs):
        yield [qdisc, *cells[number * len(patterns) : (number + 1) * len(patterns)]]


def distributions(
    qdiscs: list[str], patterns: dict[str, Arrivals], kernel: str | None, seeds: int
) -> Iterator[list[str]]:
    """Rows: the qdisc, then for each pattern the mean drops, marks and sojourn times of both and the p-values."""
    for qdisc in qdiscs:
        port = replay.port(qdisc)
        jobs = [(port, arrivals) for arrivals in patterns.values() for _ in range(seeds)]
        answers = list(record(jobs, kernel, 1))
        row = [qdisc]
        for number, arrivals in enumerate(patterns.values()):
            found = []
            for seed, (hz, theirs) in enumerate(answers[number * seeds : (number + 1) * seeds], 1):
                if isinstance(theirs, str):
                    raise ReplayError(f"{qdisc}: {theirs}")
                ours = replay.simulate(port, arrivals, seed=seed, hz=hz, like=theirs)
                found.append(replay.compare(arrivals, ours, theirs))
            if all(one.identical for one in found):
                row.append(f"= {found[0].ours.drops} {found[0].ours.marks}")
                continue
            parts = []
            for what, unit in (("drops", 1.0), ("marks", 1.0), ("mean_sojourn_s", 1e-3)):
                # To 10 us: the kernel's watchdog is up to 1 us late, ours is not where the two sides part.
                values = [[round(getattr(getattr(c, s), what) / unit, 2) for c in found] for s in ("ours", "theirs")]
                _, p = replay.permutation_test(*values)
                mean = "/".join(f"{sum(side) / seeds:.1f}" for side in values)
                parts.append(mean if len(set(values[0] + values[1])) == 1 else f"{mean} p {p:.3f}")
            row.append("; ".join(parts))
        sys.stderr.write(f"{row}\n")
        yield row


def main() -> None:
    """Print both tables in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bakeoff.replay.qdisc_matrix", description=__doc__)
    parser.add_argument("--kernel", help="a kernel's name or path; the newest that was built")
    parser.add_argument("--seeds", type=int, default=30, help="replays of a random queue with each pattern")
    parser.add_argument("--only", default="", help="only queues whose words begin so")
    parser.add_argument("--pattern", choices=replay.names(), action="append", help="only these patterns")
    given = parser.parse_args()
    patterns = {name: replay.pattern(name, rate_bps=RATE_BPS) for name in given.pattern or replay.names()}
    head = ["qdisc", *patterns]
    titles = {json.dumps(tree): title for title, tree in _TREES.items()}
    for rows in (
        exact(_chosen(DETERMINISTIC, given.only), patterns, given.kernel),
        distributions(_chosen(RANDOM, given.only), patterns, given.kernel, given.seeds),
    ):
        sys.stdout.write(f"| {' | '.join(head)} |\n|{'---|' * len(head)}\n")
        for qdisc, *cells in rows:
            sys.stdout.write(f"| {titles.get(qdisc, f'`{qdisc}`')} | {' | '.join(cells)} |\n")
            sys.stdout.flush()
        sys.stdout.write("\n")


def _chosen(qdiscs: tuple[str, ...], only: str) -> list[str]:
    return [qdisc for qdisc in qdiscs if qdisc.startswith(only)]


if __name__ == "__main__":
    main()
