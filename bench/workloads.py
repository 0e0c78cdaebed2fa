"""Speed of the simulator: data packets per CPU second on the five workloads of docs/performance.md.

A data packet is a full payload packet that reached the receiving application: received bytes / MSS. CPU seconds are
user + system time of this process around `simulate` (in microseconds, where `os.times` counts ticks of 10 ms), the
median of some repetitions. `bench/instructions.py` counts instructions, which are the same each time.
"""

import argparse
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Any

DURATION_S = 60.0
ACCESS_BPS = 10_000_000_000
BUFFER = "4096 131072 67108864"


def host(name: str) -> dict[str, Any]:
    """An end host with ECN on and buffers of 64 MiB, so that neither end's memory bounds the window."""
    sysctls = {"net.ipv4.tcp_ecn": "1", "net.ipv4.tcp_rmem": BUFFER, "net.ipv4.tcp_wmem": BUFFER}
    return {"name": name, "kind": "host", "sysctls": sysctls, "hz": 250, "offloads": False}


def router(name: str) -> dict[str, Any]:
    """A router."""
    return {"name": name, "kind": "router", "hz": 250, "offloads": False}


def link(a: str, b: str, rate_bps: int | None, delay_s: float) -> dict[str, Any]:
    """A cable; without a rate it takes no time to put a packet on it."""
    return {"ends": [a, b], "rate_bps": rate_bps, "delay_s": delay_s, "mtu": 1500}


def interface(node: str, peer: str, egress: dict[str, Any]) -> dict[str, Any]:
    """What leaves `node` towards `peer` goes through `egress`."""
    return {"node": node, "peer": peer, "tx_queue_len": 1000, "egress": egress}


def shaper(rate: str, qdisc: str) -> dict[str, Any]:
    """An htb of one class around `qdisc`."""
    return {"qdisc": "htb default 1", "classes": [{"id": "1", "class": f"rate {rate}", "child": {"qdisc": qdisc}}]}


def flow(name: str, cc: str, ends: tuple[str, str] = ("client", "server")) -> dict[str, Any]:
    """A TCP flow that always has data, from the beginning to the end."""
    return {
        "name": name,
        "from": ends[0],
        "to": ends[1],
        "cc": cc,
        "transport": "tcp",
        "dscp": 0,
        "start_s": 0.0,
        "stop_s": DURATION_S,
        "source": {"kind": "bulk"},
    }


def dumbbell(middle: dict[str, Any], egress: list[dict[str, Any]], flows: list[dict[str, Any]]) -> dict[str, Any]:
    """client - left - right - server with fast access links; `middle` is the cable from left to right."""
    return {
        "format": 1,
        "suite": "bench",
        "scenario": "workloads",
        "run": "workload",
        "seed": 1,
        "duration_s": DURATION_S,
        "sample_interval_s": 0.2,
        "window_s": [DURATION_S / 2, DURATION_S],
        "nodes": [host("client"), router("left"), router("right"), host("server")],
        "links": [
            link("client", "left", ACCESS_BPS, 0.0),
            middle,
            link("right", "server", ACCESS_BPS, 0.0),
        ],
        "interfaces": egress,
        "flows": flows,
    }


def one_bottleneck(rate_bps: int, qdisc: str, *ccs: str) -> dict[str, Any]:
    """Flows from client to server through `qdisc` at `rate_bps`, RTT 20 ms."""
    flows = [flow(f"{cc}-{i}", cc) for i, cc in enumerate(ccs, 1)]
    return dumbbell(link("left", "right", rate_bps, 0.01), [interface("left", "right", {"qdisc": qdisc})], flows)


def both_ways(down: str, up: str, qdisc: str, flows: int) -> dict[str, Any]:
    """`flows` CUBIC flows in each direction of an access line, RTT 20 ms.

    The two rates differ: each direction is shaped by htb before a cable that only delays.
    """
    egress = [interface("left", "right", shaper(up, qdisc)), interface("right", "left", shaper(down, qdisc))]
    ways = [("up", ("client", "server")), ("down", ("server", "client"))]
    traffic = [flow(f"{way}-{i}", "cubic", ends) for way, ends in ways for i in range(1, flows + 1)]
    return dumbbell(link("left", "right", None, 0.01), egress, traffic)


def laboratory(qdisc: str, ccs: tuple[str, str]) -> dict[str, Any]:
    """Two flows through a bridge as the catalog's suites build it, 50 Mbit/s and an RTT of 20 ms.

    Cables take no time. What leaves the bridge is shaped by htb around `qdisc`; what arrives there is delayed by netem,
    for each flow in a class of its own, which its codepoint chooses.
    """
    delay = {"qdisc": "netem delay 10ms limit 10000"}
    wide = "rate 2gbps ceil 2gbps"
    codepoints = {"10": 19, "11": 35}
    legs = [
        {"id": minor, "class": wide, "filters": [{"dscp": dscp}], "child": delay} for minor, dscp in codepoints.items()
    ]
    ingress = {"qdisc": "htb default 10", "classes": legs}
    egress = shaper("50mbit", qdisc)
    sides = [{**interface("bridge", peer, egress), "ingress": ingress} for peer in ("client", "server")]
    flows = [{**flow(cc, cc), "dscp": dscp} for cc, dscp in zip(ccs, codepoints.values(), strict=True)]
    return {
        **dumbbell(link("left", "right", None, 0.0), sides, flows),
        "nodes": [host("client"), {"name": "bridge", "kind": "bridge", "hz": 250, "offloads": False}, host("server")],
        "links": [link("client", "bridge", None, 0.0), link("bridge", "server", None, 0.0)],
    }


WORKLOADS: dict[str, tuple[str, dict[str, Any]]] = {
    "W1": ("one CUBIC flow, 50 Mbit/s, fq_codel", one_bottleneck(50_000_000, "fq_codel", "cubic")),
    "W2": (
        "CUBIC + Prague, 50 Mbit/s, fq_codel flows 1",
        one_bottleneck(50_000_000, "fq_codel flows 1", "cubic", "prague@2020-08"),
    ),
    "W3": (
        "4 + 4 CUBIC flows both ways, 35/1000 Mbit/s, pfifo 1000",
        both_ways("1gbit", "35mbit", "pfifo limit 1000", 4),
    ),
    "W4": ("one CUBIC flow, 1 Gbit/s, fq_codel", one_bottleneck(1_000_000_000, "fq_codel", "cubic")),
    "W5": (
        "CUBIC + Prague through the catalog's bridge, 50 Mbit/s, fq_codel",
        laboratory("fq_codel", ("cubic", "prague@2020-08")),
    ),
}


def shortened(document: dict[str, Any], duration_s: float) -> dict[str, Any]:
    """The same workload for another time; the window is its second half."""
    flows = [{**flow, "stop_s": duration_s} for flow in document["flows"]]
    return {**document, "duration_s": duration_s, "window_s": [duration_s / 2, duration_s], "flows": flows}


def measure(document: str, repetitions: int) -> tuple[int, float, int]:
    """Delivered data packets, median CPU seconds, events."""
    from bakeoff._sim import simulate

    seconds = []
    counters: dict[str, Any] = {}
    for _ in range(repetitions):
        before = time.process_time()
        outcome = simulate(document)
        seconds.append(time.process_time() - before)
        counters = json.loads(outcome["counters"])
    packets = sum(f["received_bytes"] // f["mss"] for f in counters["flows"].values())
    return packets, statistics.median(seconds), counters["events"]


def main() -> None:
    """Runs the workloads and prints one line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(WORKLOADS), metavar="WORKLOAD", help="W1 to W5 (all)")
    parser.add_argument("--repetitions", type=int, default=5, help="runs per workload; the median counts (5)")
    parser.add_argument("--duration", type=float, default=DURATION_S, help="simulated seconds (60)")
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="write the documents there; nothing is run")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in WORKLOADS]
    if unknown:
        parser.error(f"unknown workload '{unknown[0]}'; known: {', '.join(WORKLOADS)}")
    if args.repetitions < 1:
        parser.error(f"--repetitions: {args.repetitions} is not a number from 1")
    if args.duration <= 0:
        parser.error(f"--duration: {args.duration} is not a time above 0 s")
    documents = {name: json.dumps(shortened(WORKLOADS[name][1], args.duration)) for name in args.names}
    if args.write:
        args.write.mkdir(parents=True, exist_ok=True)
        for name, document in documents.items():
            (args.write / f"{name}.json").write_text(document)
        return
    results = {}
    if not args.json:
        sys.stdout.write(f"{'':4}{'packets':>11}{'CPU s':>9}{'packets/s':>12}{'events/packet':>15}\n")
    for name in args.names:
        title = WORKLOADS[name][0]
        packets, seconds, events = measure(documents[name], args.repetitions)
        rate = packets / seconds
        results[name] = {
            "title": title,
            "packets": packets,
            "cpu_s": round(seconds, 4),
            "packets_per_cpu_s": round(rate),
            "events_per_packet": round(events / packets, 2),
        }
        if not args.json:
            sys.stdout.write(
                f"{name:4}{packets:>11,}{seconds:>9.3f}{rate / 1e6:>10.2f} M{events / packets:>15.2f}  {title}\n"
            )
    if args.json:
        sys.stdout.write(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
