"""The library that makes a kernel's random generator repeatable: kernel/seed.c, compiled once per user."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

from bakeoff import data
from bakeoff.engines.kernel import cache
from bakeoff.errors import KernelError


def library() -> Path | None:
    """The compiled library in the cache folder, made at the first call; None where there is no C compiler."""
    source = data.folder("kernel") / "seed.c"
    target = cache.root() / f"seed-{hashlib.sha256(source.read_bytes()).hexdigest()[:12]}.so"
    if target.is_file():
        return target
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    # Boots run side by side, in threads too: each compiles for itself, and the last rename counts.
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".seed-") as folder:
        partial = Path(folder) / "seed.so"
        command = [compiler, "-O2", "-shared", "-fPIC", "-o", str(partial), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise KernelError(f"{' '.join(command)}: {done.stderr.strip()}")
        partial.replace(target)
    return target
