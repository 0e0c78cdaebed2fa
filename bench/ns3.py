"""Speed beside ns-3: the same bulk TCP flows through one bottleneck in bakeoff's engines and in ns-3, in one run.

A packet is 1448 bytes of payload that reached the receiving application. CPU seconds are user and system time: of
`simulate` in the simulator, of `Simulator::Run` in ns-3, and on the kernel engine of all processes of the run, with the
boot of the kernel. `bench/ns3/bulk.cc` is ns-3's side, and is compiled here against the installed libraries.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from workloads import measure

from bakeoff import engines
from bakeoff.engines.kernel import registry
from bakeoff.engines.lab import agent
from bakeoff.errors import BakeoffError
from bakeoff.scenario import Run, expand, load

SOURCE = Path(__file__).with_name("ns3") / "bulk.cc"
MODULES = ["ns3-applications", "ns3-internet", "ns3-point-to-point", "ns3-traffic-control"]
RATE_BPS = 100_000_000
RTT_S = 0.02
PAYLOAD = 1448
BUFFER = "4096 131072 4194304"
QDISCS = {"fifo": "pfifo limit 1000", "fq_codel": "fq_codel"}
FLOWS = (1, 2, 10)
REPETITIONS = 5
"""Of the simulator, whose runs are short; the median counts."""


class MissingError(Exception):
    """Something that has to be installed first."""


def compiled(folder: Path) -> Path:
    """ns-3's programme, compiled into `folder`. MissingError says what is not installed."""
    for tool, package in (("g++", "g++"), ("pkg-config", "pkg-config")):
        if shutil.which(tool) is None:
            raise MissingError(f"{tool} is not installed; on Debian: apt install {package}")
    if subprocess.run(["pkg-config", "--exists", *MODULES], check=False).returncode:
        raise MissingError("ns-3 is not installed with its headers; on Debian: apt install libns3-dev libgsl-dev")
    flags = subprocess.check_output(["pkg-config", "--cflags", "--libs", *MODULES], text=True).split()
    program = folder / "bulk"
    words = ["g++", "-O2", "-std=c++17", str(SOURCE), "-o", str(program), *flags]
    made = subprocess.run(words, capture_output=True, text=True, check=False)
    if made.returncode:
        raise MissingError(
            f"{SOURCE.name} cannot be compiled; Debian's libns3-dev needs libgsl-dev too:\n{made.stderr}"
        )
    return program


def scenario(flows: int, qdisc: str, seconds: float) -> Run:
    """The run that ns-3's programme stands beside, with the dumbbell that a user would write."""
    text = f"""
        scenario: beside-ns3
        duration: {seconds:g}s
        network:
          path: [client, router, server]
          rtt: {RTT_S * 1e3:g}ms
          bottleneck: {{rate: {RATE_BPS // 1_000_000}mbit, qdisc: {QDISCS[qdisc]}}}
        hosts: {{sysctl: {{net.ipv4.tcp_ecn: 0, net.ipv4.tcp_rmem: "{BUFFER}", net.ipv4.tcp_wmem: "{BUFFER}"}}}}
        flows: [{{name: "cubic-{{n}}", cc: cubic, count: {flows}}}]
        """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "beside-ns3.yaml"
        path.write_text(textwrap.dedent(text))
        [run] = expand(load(path))
    return run


def in_simulator(flows: int, qdisc: str, seconds: float) -> tuple[int, float]:
    """Packets and CPU seconds."""
    packets, spent, _ = measure(scenario(flows, qdisc, seconds).to_json(), REPETITIONS)
    return packets, spent


def in_ns3(program: Path, flows: int, qdisc: str, seconds: float) -> tuple[int, float]:
    """Packets and CPU seconds."""
    words = [str(program), f"--flows={flows}", f"--qdisc={qdisc}", f"--seconds={seconds:g}"]
    words += [f"--rtt={RTT_S * 1e3:g}", f"--rate={RATE_BPS / 1e6:g}"]
    told = json.loads(subprocess.check_output(words))
    return told["received_bytes"] // PAYLOAD, told["cpu_s"]


def on_kernel(flows: int, qdisc: str, seconds: float) -> tuple[int, float]:
    """Packets and CPU seconds."""
    run = scenario(flows, qdisc, seconds)
    with tempfile.TemporaryDirectory() as folder:
        before = sum(os.times()[:4])
        outcome = engines.get("kernel").execute(run, Path(folder))
        spent = sum(os.times()[:4]) - before
    return sum(each.received_bytes or 0 for each in outcome.counters.flows.values()) // PAYLOAD, spent


def has_kernel() -> bool:
    """Whether a kernel for virtual time was built here."""
    try:
        agent.find()
    except BakeoffError:
        return False
    return bool(registry.list_kernels())


def main() -> int:
    """Runs all workloads in all engines and prints a line for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="simulated seconds of each run (60)")
    parser.add_argument("--flows", type=int, nargs="+", default=FLOWS, help="numbers of flows (1 2 10)")
    parser.add_argument("--json", action="store_true", help="one JSON array instead of the table")
    args = parser.parse_args()
    if args.seconds <= 0 or min(args.flows) < 1:
        parser.error("--seconds wants a time above 0 s, and --flows numbers from 1")
    with tempfile.TemporaryDirectory() as folder:
        try:
            program = compiled(Path(folder))
        except MissingError as error:
            sys.stderr.write(f"bench/ns3.py: {error}\n")
            return 2
        rows = measured(program, args.flows, args.seconds, say=not args.json)
    if args.json:
        sys.stdout.write(json.dumps(rows, indent=2) + "\n")
    return 0


def measured(program: Path, numbers: list[int], seconds: float, *, say: bool) -> list[dict[str, Any]]:
    """A row for each workload and engine; `ratio` is the packets per CPU second over ns-3's."""
    each: dict[str, Callable[[int, str, float], tuple[int, float]]] = {
        "ns-3": lambda flows, qdisc, length: in_ns3(program, flows, qdisc, length),
        "simulator": in_simulator,
    }
    if has_kernel():
        each["kernel"] = on_kernel
    rows: list[dict[str, Any]] = []
    if say:
        sys.stdout.write(
            f"{'flows':>5}  {'qdisc':9}{'engine':10}{'packets':>10}{'CPU s':>9}{'packets/s':>12}{'ratio':>8}\n"
        )
    for flows in numbers:
        for qdisc in QDISCS:
            theirs = 0.0
            for name, do in each.items():
                packets, spent = do(flows, qdisc, seconds)
                rate = packets / spent
                theirs = theirs or rate
                rows.append(
                    {"flows": flows, "qdisc": qdisc, "engine": name, "packets": packets, "cpu_s": round(spent, 3),
                     "packets_per_cpu_s": round(rate), "ratio": round(rate / theirs, 2)}
                )  # fmt: skip
                if say:
                    ratio = f"{rate / theirs:.2f}"
                    sys.stdout.write(f"{flows:5}  {qdisc:9}{name:10}{packets:10,}{spent:9.2f}{rate:12,.0f}{ratio:>8}\n")
                    sys.stdout.flush()
    return rows


if __name__ == "__main__":
    sys.exit(main())
