"""Kernels to boot in tests: a shell script in the place of one, and a real one with kernel_guest.py as its PID 1."""

from __future__ import annotations

import ctypes
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bakeoff.engines.kernel import boot, host_programs, launch, registry
from bakeoff.engines.kernel.registry import BuiltKernel

GUEST = Path(__file__).with_name("kernel_guest.py")
BANNER = "echo 'Linux version 7.3.4 (x) #1'; echo '[    0.000000] Run /init as init process'; "
POWER_OFF = "\necho 'reboot: Power down'"
HAS_LANDLOCK = launch.landlock_abi(ctypes.CDLL(None, use_errno=True)) > 0
needs_landlock = pytest.mark.skipif(not HAS_LANDLOCK, reason="this host's kernel has no Landlock")


def executable(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def fake_linux(
    path: Path, body: str, options: str = "CONFIG_UML=y\nCONFIG_UML_TIME_TRAVEL_SUPPORT=y\nCONFIG_HZ=1000"
) -> Path:
    # What a real one holds in its data; a shell reads no further than it executes.
    text = f"#!/bin/sh\n{body}\nexit\nLinux version 7.3.4 (fake)\n{options}\n"
    return executable(path, text)


def boot_fake(folder: Path, body: str, *, readable: Sequence[Path] = (), **options: str) -> boot.Outcome:
    """Boot a shell script with this body; results/ of the folder is its results folder."""
    (folder / "results").mkdir(exist_ok=True)
    script = folder / "script.json"
    script.write_text("{}")
    init = executable(folder / "init", "#!/bin/sh\n")
    kernel = registry.get(fake_linux(folder / "linux", body))
    kernel.options.update(options)
    return boot.boot(kernel, script, results=folder / "results", init=init, simulated_s=1, seed=1, readable=readable)


def gone(pid: int) -> bool:
    """Whether a process ended, at the latest after five seconds. A zombie that nobody reaps counts as ended."""
    for _ in range(500):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


def guest(
    kernel: BuiltKernel,
    folder: Path,
    *,
    simulated_s: float = 20.0,
    seed: int = 1,
    more: Path | None = None,
    **words: object,
) -> dict:
    """Boot kernel_guest.py with these words; its answer and the outcome. `more` has functions of its own to `do`."""
    results = folder / "results"
    results.mkdir(parents=True)
    script = folder / "script.json"
    script.write_text(json.dumps({"results": str(results), "path": host_programs.search_path(), **words}))
    text = (more.read_text() if more else "") + GUEST.read_text()
    init = executable(folder / "init", f"#!{sys.executable} -IS\n{text}")
    python = boot.python_files()
    outcome = boot.boot(kernel, script, results=results, init=init, simulated_s=simulated_s, seed=seed, readable=python)
    path = results / "answer.json"
    answer = json.loads(path.read_text()) if path.is_file() else {}
    assert "error" not in answer, answer["error"]
    return {"outcome": outcome, **answer}
