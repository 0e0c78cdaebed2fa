"""A program that only says it is ssh, and a testbed behind it: what a machine answers is the test's to choose."""

import json
import os
from pathlib import Path

from bakeoff.engines.ssh import inventory
from bakeoff.engines.ssh.connection import Connection

# Runs here what it was told to run there, unless a file says what the machine does instead.
FAKE = """#!/bin/sh
for last; do :; done
case " $* " in *" -O "*) exit 0;; esac
if [ -x "$HOSTILE" ]; then exec "$HOSTILE" "$last"; fi
case " $* " in *" -N "*) exit 0;; esac
exec sh -c "$last"
"""


def behind_fake(folder: Path, monkeypatch, does: str | None = None) -> Connection:
    """The machine 'mid', host h-mid. `does` is a script: what comes of any command, whose text is its argument."""
    program = folder / "bin" / "ssh"
    program.parent.mkdir(exist_ok=True)
    program.write_text(FAKE)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    hostile = folder / "hostile"
    if does is not None:
        hostile.write_text(f"#!/bin/sh\n{does}\n")
        hostile.chmod(0o755)
    monkeypatch.setenv("HOSTILE", str(hostile))
    file = folder / "bed.yaml"
    file.write_text(json.dumps({"nodes": {"mid": {"host": "h-mid", "interfaces": {"cli": "m0"}}}}))
    return Connection("mid", inventory.read(file).nodes["mid"], None, folder)
