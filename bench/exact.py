"""Simulates runs with the event loop's shortcuts and step by step, and compares what they leave behind.

The digest of `crates/sim/examples/simulate.rs` covers series, counters, logs, captures and traces, and leaves out the
count of events. `crates/sim/src/sim/fast_path/mod.rs` describes the shortcuts.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from instructions import build

from bakeoff.scenario import catalog

LABORATORIES = ["l4s-tests/*", "sce-l4s-bakeoff/*", "sce-l4s-ect1/*"]
# So many runs by one process.
CHUNK = 10


def simulate(program: Path, paths: list[Path], *, exact: bool) -> dict[str, tuple[int, str]]:
    """Events and digest of each document, by its name; several processes do them."""
    environment = os.environ | {"BAKEOFF_SIM_EXACT": "1" if exact else "0"}

    def chunk(start: int) -> str:
        command = [program, *paths[start : start + CHUNK]]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        printed = "".join(pool.map(chunk, range(0, len(paths), CHUNK)))
    lines = (line.split(maxsplit=3) for line in printed.splitlines())
    return {Path(path).stem: (int(events), digest) for _, events, digest, path in lines}


def main() -> None:
    """Simulate both ways and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", default=LABORATORIES, metavar="PATTERN", help="runs (the laboratories)")
    parser.add_argument("--program", type=Path, help="a build of the example `simulate` (one is made)")
    args = parser.parse_args()
    runs = catalog.select(args.patterns)
    program = (args.program or build()).absolute()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.json" for number in range(len(runs))]
        for path, run in zip(paths, runs, strict=True):
            path.write_text(run.to_json())
        fast, exact = (simulate(program, paths, exact=exact) for exact in (False, True))
    different = [run.key for path, run in zip(paths, runs, strict=True) if fast[path.stem][1] != exact[path.stem][1]]
    for name, found in (("with shortcuts", fast), ("exact", exact)):
        sys.stdout.write(f"{name}: {sum(events for events, _ in found.values()):,} events\n")
    sys.stdout.write(f"{len(different)} of {len(runs)} runs differ\n")
    if different:
        sys.exit("\n".join(different))


if __name__ == "__main__":
    main()
