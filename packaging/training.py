"""The runs of packaging/training.toml, for a wheel that is optimised by a profile (`make wheel-pgo`).

maturin calls this as `pgo-command` (pyproject.toml) in an environment into which it has installed an instrumented
wheel. The same file holds the finished wheel against a plain build: `training.py check WHEEL`, with the Python in which
the plain build is installed. Both have to give the same bytes for runs that were not trained on.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from importlib.util import module_from_spec, spec_from_file_location
from itertools import chain
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CHOSEN = tomllib.loads((HERE / "training.toml").read_text(encoding="utf-8"))
EXTENSION = "bakeoff/_sim.abi3.so"


def documents(part: str) -> Iterator[tuple[str, str]]:
    """Name and resolved run (JSON) of all runs of a part of training.toml."""
    from bakeoff.scenario import catalog

    # Each pattern by itself: two scenarios may have a name in common.
    for run in chain.from_iterable(catalog.select(pattern) for pattern in CHOSEN[part]["runs"]):
        yield run.key, run.to_json()
    sys.path.insert(0, str(HERE.parent / "bench"))
    import workloads

    for name, seconds in CHOSEN[part].get("workloads", {}).items():
        yield name, json.dumps(workloads.shortened(workloads.WORKLOADS[name][1], seconds))


def train() -> None:
    """Runs everything that the profile is to know of."""
    from bakeoff import _sim

    number = 0
    for number, (_, document) in enumerate(documents("training"), 1):  # noqa: B007
        _sim.simulate(document)
    sys.stdout.write(f"training: {number} runs\n")


def digest(outcome: dict[str, Any]) -> str:
    """SHA-256 of everything that a run left behind."""
    sha = hashlib.sha256()
    for name, value in sorted(outcome.items()):
        sha.update(f"{name}\n".encode())
        if isinstance(value, dict):
            sha.update(digest(value).encode())
        else:
            sha.update(value.tobytes() if hasattr(value, "tobytes") else repr(value).encode())
    return sha.hexdigest()


def digests(extension: str) -> None:
    """Prints name and digest of each run of the check, simulated by the extension at this path."""
    spec = spec_from_file_location("_sim", extension)
    if spec is None or spec.loader is None:
        sys.exit(f"{extension} is no extension module")
    sim = module_from_spec(spec)
    spec.loader.exec_module(sim)
    for name, document in documents("check"):
        sys.stdout.write(f"{digest(sim.simulate(document))} {name}\n")


def check(wheel: str) -> None:
    """Compares the wheel's extension with the one that is installed; ends with an error where they differ."""
    from bakeoff import _sim

    def printed(extension: Path) -> list[str]:
        command = [sys.executable, __file__, "digests", str(extension)]
        return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()

    plain = Path(str(_sim.__file__))
    with tempfile.TemporaryDirectory() as folder:
        optimised = Path(zipfile.ZipFile(wheel).extract(EXTENSION, folder))
        if optimised.read_bytes() == plain.read_bytes():
            sys.exit(f"{wheel} holds the very extension that is installed: no profile was used")
        pairs = list(zip(printed(plain), printed(optimised), strict=True))
    unlike = [ours.split(" ", 1)[1] for ours, theirs in pairs if ours != theirs]
    if unlike:
        sys.exit(f"{wheel}: {len(unlike)} of {len(pairs)} runs differ from the plain build's: {', '.join(unlike)}")
    sys.stdout.write(f"{wheel}: {len(pairs)} runs that were not trained on give the same bytes as the plain build\n")


def main() -> None:
    """Trains, or checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    steps = parser.add_subparsers(required=True)
    steps.add_parser("train", help="run what the profile is taken from").set_defaults(call=train)
    one = steps.add_parser("check", help="hold a wheel against the installed build")
    one.add_argument("wheel")
    one.set_defaults(call=check)
    one = steps.add_parser("digests", help="of the check's runs, by the extension at a path")
    one.add_argument("extension")
    one.set_defaults(call=digests)
    arguments = vars(parser.parse_args())
    arguments.pop("call")(**arguments)


if __name__ == "__main__":
    main()
