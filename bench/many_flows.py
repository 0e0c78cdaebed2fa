"""What a data packet costs with thousands of flows, beside what it costs with one: instructions, time and memory.

Each row is a run of CUBIC flows through a fifo of 10,000 packets at 1 or 10 Gbit/s, with a round trip of 20 ms. Time is
CPU seconds of this process around `simulate`, as `bench/workloads.py` measures them. Instructions are those inside
`simulate`, as `bench/instructions.py` counts them. Memory is the largest resident set of a process that does the run
and nothing else; less than the 10 MB of the Python that starts it is not seen.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import instructions
from workloads import measure

from bakeoff.scenario import expand, load

FLOWS = (1, 1_000, 10_000)
# Simulated seconds for each rate in Gbit/s.
DURATION_S = {1: 30, 10: 10}
# Does what it is told to, and prints the most that this had resident, in KiB.
STARTER = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
process.returncode = os.waitstatus_to_exitcode(status)
print(usage.ru_maxrss)
sys.exit(process.returncode)
"""


def document(flows: int, gbps: int) -> str:
    """The resolved run, as a user would write it."""
    text = f"""
        scenario: many-flows
        duration: {DURATION_S[gbps]}s
        network:
          path: [client, router, server]
          rtt: 20ms
          bottleneck: {{rate: {gbps}gbit, qdisc: pfifo limit 10000}}
        flows: [{{name: "cubic-{{n}}", cc: cubic, count: {flows}}}]
        """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "many-flows.yaml"
        path.write_text(textwrap.dedent(text))
        [run] = expand(load(path))
    return run.to_json()


def resident_bytes(program: Path, text: str) -> int:
    """The largest resident set of `program` while it does this run."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        path.write_text(text)
        # A process is charged with what its parent had when it began, so that the parent has to be a small one.
        words = [sys.executable, "-I", "-S", "-c", STARTER, str(program), str(path)]
        return int(subprocess.check_output(words)) * 1024


def measured(program: Path, repetitions: int, *, counted: bool) -> Iterator[dict[str, float]]:
    """The rows; each ratio is to the row of one flow at the same rate. Instructions are in it if they are `counted`."""
    for gbps in DURATION_S:
        first: dict[str, float] = {}
        for flows in FLOWS:
            text = document(flows, gbps)
            packets, seconds, _ = measure(text, repetitions)
            cost = {"us": seconds / packets * 1e6}
            if counted:
                cost["instructions"] = sum(instructions.run(program, text)[1].values()) / packets
            first = first or cost
            ratios = {f"{name}_ratio": round(cost[name] / first[name], 2) for name in cost}
            row: dict[str, float] = {"flows": flows, "gbps": gbps, "packets": packets, **cost, **ratios}
            yield row | {"resident_bytes": resident_bytes(program, text)}


def main() -> None:
    """Measures each row and prints it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=5, help="runs for the time of a row; the median counts (5)")
    parser.add_argument("--without-instructions", action="store_true", help="do not count them, which takes minutes")
    parser.add_argument("--json", action="store_true", help="one JSON array instead of the table")
    args = parser.parse_args()
    if args.repetitions < 1:
        parser.error(f"--repetitions: {args.repetitions} is not a number from 1")
    counted = not args.without_instructions
    if counted and not shutil.which("valgrind"):
        parser.error("counting instructions needs valgrind: apt install valgrind, or give --without-instructions")
    rows = measured(instructions.build(), args.repetitions, counted=counted)
    if args.json:
        sys.stdout.write(json.dumps(list(rows), indent=2) + "\n")
        return
    costs = [("instructions", "instructions", 0)] * counted + [("us", "CPU us", 3)]
    heads = "".join(f"{head:>14}{'times one':>11}" for _, head, _ in costs)
    sys.stdout.write(f"{'flows':>6}{'Gbit/s':>8}{'packets':>11}{heads}{'MB':>6}\n")
    for row in rows:
        told = "".join(f"{row[name]:>14,.{digits}f}{row[f'{name}_ratio']:>11.2f}" for name, _, digits in costs)
        memory = row["resident_bytes"] / 1e6
        sys.stdout.write(f"{row['flows']:>6,}{row['gbps']:>8}{row['packets']:>11,}{told}{memory:>6.0f}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
