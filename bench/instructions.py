"""Instructions that the simulator takes per data packet, by layer, held against the figures that are kept.

Callgrind counts what happens inside `simulate`, in `crates/sim/examples/simulate.rs` as the release profile builds it:
the count is the same each time, where CPU seconds move with the machine's neighbours. An instruction belongs to the
layer of the source line that it comes from; one of the standard library's belongs to the layer of the function that it
was built into.

The workloads are those of `bench/workloads.py`, shorter: W4 takes 6 simulated seconds and the others 10.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from workloads import WORKLOADS, shortened

KEPT = Path(__file__).with_name("instructions.json")
DURATION_S = {"W1": 10.0, "W2": 10.0, "W3": 10.0, "W4": 6.0, "W5": 10.0}
# More than the kept figure by this part of it is a failure.
TOLERANCE = 0.03
LAYERS = ("loop", "queues", "sender", "receiver", "cc", "statistics", "rest")
# The first that is found in a path of the simulator's source, or in the module path of a function, decides.
PLACES = [
    (r"tcp(/|::)(receiver|receive_window|feedback)", "receiver"),
    (r"cc(/|::)sock", "sender"),
    (r"\b(tcp)(/|::)", "sender"),
    (r"\b(cc)(/|::)", "cc"),
    (r"\b(qdisc)(/|::)", "queues"),
    (r"base(/|::)histogram|\b(record)(/|::)", "statistics"),
    (r"\b(sim|network|base|packet|endpoint|units)(\.|/|::)", "loop"),
]
# Of the other crate only the arithmetic of times and rates runs in the loop.
SOURCES = ("crates/sim/src/", "crates/document/src/")
MODULES = ("bakeoff_sim::", "bakeoff_document::")


def layer(file: str, function: str) -> str:
    """The layer of a source line, or else of the function around it."""
    for text, mark in [(file, mark) for mark in SOURCES] + [(function, mark) for mark in MODULES]:
        if mark in text:
            inside = text[text.index(mark) + len(mark) :]
            return next((name for pattern, name in PLACES if re.match(rf"(?:{pattern})", inside)), "rest")
    return "rest"


def by_layer(profile: str) -> Counter[str]:
    """Instructions by layer, of a file that callgrind wrote."""
    names: dict[tuple[str, str], str] = {}
    count: Counter[str] = Counter()
    file = function = ""
    called = False

    def name(kind: str, text: str) -> str:
        number, _, given = text.partition(" ")
        return names.setdefault((kind, number), given)

    for line in profile.splitlines():
        key, _, text = line.partition("=")
        if key in ("fl", "fi", "fe"):
            file = name("file", text)
        elif key == "fn":
            function = name("function", text)
        elif key in ("cfi", "cfl"):
            name("file", text)
        elif key == "cfn":
            name("function", text)
        elif key == "calls":
            called = True
        elif line[:1].isdigit() or line[:1] in ("+", "-", "*"):
            # The line after `calls` is what the called function took, which stands there too.
            if not called:
                count[layer(file, function)] += int(line.split()[1])
            called = False
    return count


def build() -> Path:
    """The program that runs documents without Python, built like the extension."""
    command = ["cargo", "build", "--release", "--locked", "--package", "bakeoff-sim", "--example", "simulate"]
    told = subprocess.run([*command, "--message-format", "json"], stdout=subprocess.PIPE, text=True, check=False)
    if told.returncode:
        sys.exit(f"{' '.join(command)} failed")
    made = (json.loads(line).get("executable") for line in told.stdout.splitlines())
    return Path([path for path in made if path][-1])


def run(program: Path, document: str) -> tuple[int, Counter[str]]:
    """Data packets of a resolved run, and its instructions by layer."""
    with tempfile.TemporaryDirectory() as folder:
        path, out = Path(folder) / "run.json", Path(folder) / "callgrind"
        path.write_text(document)
        callgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--toggle-collect=*simulate_with*"]
        done = subprocess.run([*callgrind, program, path], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"valgrind failed:\n{done.stdout}{done.stderr[-2000:]}")
        count = by_layer(out.read_text())
    if not count:
        sys.exit("callgrind saw no call of `simulate_with`: the program has no symbols")
    return int(done.stdout.split()[0]), count


def main() -> None:
    """Counts, prints a line per workload, and compares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(WORKLOADS), metavar="WORKLOAD", help="W1 to W5 (all)")
    parser.add_argument("--keep", action="store_true", help=f"write the figures to bench/{KEPT.name} instead")
    parser.add_argument("--program", type=Path, help="a build of the example `simulate` (one is made)")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in WORKLOADS]
    if unknown:
        parser.error(f"unknown workload '{unknown[0]}'; known: {', '.join(WORKLOADS)}")
    if not shutil.which("valgrind"):
        parser.error("counting instructions needs valgrind: apt install valgrind")
    program = args.program or build()
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    sys.stdout.write("instructions per data packet\n")
    sys.stdout.write(f"{'':4}{'sum':>8}{'kept':>8}" + "".join(f"{name:>12}" for name in LAYERS) + "\n")
    worse = []
    for name in args.names:
        packets, count = run(program, json.dumps(shortened(WORKLOADS[name][1], DURATION_S[name])))
        per_packet = {key: round(count[key] / packets) for key in LAYERS}
        total = round(sum(count.values()) / packets)
        before = kept.get(name, {}).get("sum")
        sys.stdout.write(f"{name:4}{total:>8,}{before or '-':>8}")
        sys.stdout.write("".join(f"{per_packet[key]:>12,}" for key in LAYERS) + "\n")
        if before and total > before * (1 + TOLERANCE):
            more = f"{total / before - 1:.1%} more than {before}"
            worse.append(f"{name} takes {total} instructions per data packet, {more}")
        kept[name] = {"sum": total, "duration_s": DURATION_S[name], "packets": packets, **per_packet}
    if args.keep:
        KEPT.write_text(json.dumps(kept, indent=2) + "\n")
    elif worse:
        sys.exit("\n".join([*worse, "A change that is worth it keeps new figures: bench/instructions.py --keep"]))


if __name__ == "__main__":
    main()
