"""Simulates runs with the event loop's shortcuts and step by step, and compares what they leave behind.

The digest of `crates/sim/examples/simulate.rs` covers series, counters, logs, captures and traces, and leaves out the
count of events. `crates/sim/src/sim/fast_path/mod.rs` describes the shortcuts.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from instructions import build
from workloads import WORKLOADS, shortened

from bakeoff.scenario import catalog

LABORATORIES = ["l4s-tests/*", "sce-l4s-bakeoff/*", "sce-l4s-ect1/*"]
# So many runs by one process.
CHUNK = 10
# Of each workload of bench/workloads.py.
WORKLOAD_S = 10.0


def simulate(program: Path, paths: list[Path], *, exact: bool) -> dict[str, str]:
    """The digest of each document, by its name; several processes do them."""
    environment = os.environ | {"BAKEOFF_SIM_EXACT": "1" if exact else "0"}

    def chunk(start: int) -> str:
        command = [program, *paths[start : start + CHUNK]]
        return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        printed = "".join(pool.map(chunk, range(0, len(paths), CHUNK)))
    lines = (line.split(maxsplit=3) for line in printed.splitlines())
    return {Path(path).stem: digest for _, _, digest, path in lines}


def main() -> None:
    """Simulate both ways and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", default=LABORATORIES, metavar="PATTERN", help="runs (the laboratories)")
    parser.add_argument("--program", type=Path, help="a build of the example `simulate` (one is made)")
    args = parser.parse_args()
    documents = {run.key: run.to_json() for run in catalog.select(args.patterns)}
    # No run of the laboratories has a lane.
    documents |= {name: json.dumps(shortened(document, WORKLOAD_S)) for name, (_, document) in WORKLOADS.items()}
    program = (args.program or build()).absolute()
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / f"{number}.json" for number in range(len(documents))]
        for path, text in zip(paths, documents.values(), strict=True):
            path.write_text(text)
        fast, exact = (simulate(program, paths, exact=exact) for exact in (False, True))
    different = [name for path, name in zip(paths, documents, strict=True) if fast[path.stem] != exact[path.stem]]
    sys.stdout.write(f"{len(different)} of {len(documents)} runs differ\n")
    if different:
        sys.exit("\n".join(different))


if __name__ == "__main__":
    main()
