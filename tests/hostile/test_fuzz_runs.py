"""Drawn runs, whole: from a scenario through the simulator to its measures, each of which has to be a possible number.

`make fuzz` does many more; BAKEOFF_FUZZ is the number of runs. Each is drawn from a number of its own, which a failure
tells. `FIRST` has those that found something: a line on which one frame is a tenth of the window, a probe whose answers
alone lie in the window, a phase of a few frames, a run in which no flow gets anything through and no queue is sampled,
and marks on packets that never left the queue.
"""

import json
import math
import os
from random import Random

import pytest
import yaml

from bakeoff import _sim, engines
from bakeoff.campaign import campaign_record, worker
from bakeoff.errors import BakeoffError
from bakeoff.results import layout
from bakeoff.scenario import expand, load

RUNS = int(os.environ.get("BAKEOFF_FUZZ", "24"))
FIRST = (2, 9, 60, 1075, 1278)
# tbf and netem need words; the others of Linux's defaults do without.
QDISCS = [
    *(name for name in _sim.qdiscs() if name not in ("htb", "tbf", "netem", "prio", "pfifo_fast")),
    "pfifo limit 3", "bfifo limit 20000", "fq_codel flows 1", "fq_codel ce_threshold 1ms", "codel target 1ms ecn",
    "pie ecn target 5ms", "fq_pie flows 1 ecn", "red limit 150000 avpkt 1000 adaptive ecn", "sfq perturb 1",
    "dualpi2 coupling_factor 4", "fq_codel limit 5", "netem delay 3ms 2ms limit 500",
    "netem loss 5% reorder 3% delay 5ms",
]  # fmt: skip
CCS = [name for name in _sim.congestion_controls() if name != "none"]
SIGNED = {"ipdv_s", "induced_s"}
"""What may be below zero: a difference of two delays."""
SHARES = {"jain", "jain_delivery_rate", "mark_fraction", "loss", "starvation"}
"""What is at most 1; so is `utilisation` of a queue that was sampled. Without samples it is of payload, which arrives
in bursts behind what was lost or overtaken."""


def spread(random: Random, low: float, high: float) -> float:
    return float(f"{math.exp(random.uniform(math.log(low), math.log(high))):.3g}")


def flow(random: Random, number: int, tunnels: bool) -> dict[str, object]:
    drawn: dict[str, object] = {"name": f"f{number}", "cc": random.choice(CCS), "start": f"{random.randrange(300)}ms"}
    match random.randrange(7):
        case 0:
            del drawn["cc"]
            size = random.choice((64, 300, 1200))
            drawn |= {"transport": "udp", "source": {"rate": f"{spread(random, 10, 20_000)}kbit", "size": f"{size}B"}}
        case 1:
            drawn["source"] = {"bytes": f"{random.randrange(1, 400_000)}B"}
        case 2:
            drawn["source"] = {"rate": f"{spread(random, 50, 9_000)}kbit", "size": "1200B"}
        case 3:
            drawn["count"] = random.randrange(2, 6)
            drawn["name"] = f"f{number}-{{n}}"
    if random.random() < 0.2:
        drawn["dscp"] = random.randrange(64)
    if tunnels and random.random() < 0.7:
        drawn["tunnel"] = "tun"
    return drawn


def scenario(number: int) -> dict[str, object]:
    """The scenario that a number stands for."""
    random = Random(number)
    tunnels = random.random() < 0.2
    network: dict[str, object] = {
        "path": ["cli", "mid", "srv"],
        "rtt": f"{spread(random, 0.05, 300)}ms",
        "bottleneck": {
            "at": "mid", "rate": f"{spread(random, 100, 60_000)}kbit", "qdisc": random.choice(QDISCS),
        },
    }  # fmt: skip
    if random.random() < 0.3:
        loss = random.choice((0.1, 1, 20))
        network["links"] = [
            {"ends": ["cli", "mid"], "delay": "1ms", "loss": f"{loss}%", "mtu": random.choice((576, 1500))}
        ]
    if tunnels:
        network["tunnels"] = [{"name": "tun", "kind": random.choice(("ipsec", "wireguard", "fou", "gre", "vxlan"))}]
    drawn: dict[str, object] = {
        "scenario": "fuzz",
        "duration": f"{spread(random, 0.5, 4)}s",
        "network": network,
        "hosts": {"sysctl": {"net.ipv4.tcp_ecn": random.choice((0, 1, 2, 3))}},
        "flows": [flow(random, each, tunnels) for each in range(random.randrange(1, 4))],
    }
    if random.random() < 0.5:
        drawn["probes"] = [
            {"name": "ping", "type": random.choice(("icmp", "udp")), "every": f"{random.choice((5, 50))}ms"}
        ]
    if random.random() < 0.4:
        what = random.choice(({"rate": f"{spread(random, 100, 60_000)}kbit"}, {"rtt": f"{spread(random, 1, 200)}ms"}))
        drawn["changes"] = [{"at": f"{random.randrange(100, 450)}ms", **what}]
    if random.random() < 0.2:
        drawn["sample_interval"] = random.choice(("1ms", "100ms"))
    return drawn


def impossible(part: object, place: str = "") -> list[str]:
    """The places of a summary whose numbers no run can have."""
    if isinstance(part, dict):
        return [each for key, value in part.items() for each in impossible(value, f"{place}.{key}")]
    if isinstance(part, list):
        return [each for index, value in enumerate(part) for each in impossible(value, f"{place}.{index}")]
    if not isinstance(part, int | float) or isinstance(part, bool):
        return []
    words = place.split(".")
    negative = part < 0 and not SIGNED.intersection(words)
    share = words[-1] in SHARES or (words[-1] == "utilisation" and len(words) > 2)
    too_large = part > 1 + 1e-9 and share and "dropped" not in words
    return [f"{place} = {part}"] if negative or too_large or not math.isfinite(part) else []


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """What was drawn and could be run: its number and the folder of its results; and those that were refused."""
    folder = tmp_path_factory.mktemp("fuzz")
    task = worker.Task("sim", "fuzz", campaign_record.provenance(None), "measures")
    found, refused = [], []
    for number in dict.fromkeys((*FIRST, *range(RUNS))):
        path = folder / f"{number}.yaml"
        path.write_text(yaml.safe_dump(scenario(number)))
        try:
            [run] = expand(load(path))
            engines.get("sim").check(run)
        except BakeoffError as error:
            refused.append((number, str(error)))
            continue
        found.append((number, worker.execute(run, folder / str(number), task)))
    return found, refused


def test_most_of_what_is_drawn_can_be_run(done):
    found, refused = done
    assert len(found) > len(refused), refused[:3]


def test_every_run_ends_and_conserves_its_packets(done):
    # The simulator itself holds what was sent against what was delivered, dropped and left, and fails the run.
    assert [(number, each.error) for number, each in done[0] if each.status != "ok"] == []


def test_every_measure_is_a_possible_number(done):
    wrong = {}
    for number, each in done[0]:
        if each.status == "ok":
            summary = json.loads((each.path / layout.SUMMARY).read_text())
            if places := impossible(summary):
                wrong[number] = places
    assert wrong == {}
