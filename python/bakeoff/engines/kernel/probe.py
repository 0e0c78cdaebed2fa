# ruff: noqa: S108  (the guest's own /tmp, mounted by this program)
"""PID 1 of the boot that `check` makes: try everything once in a scratch namespace and write down what happened.

Runs inside the guest, on the host's Python with the standard library only: `probe.py init SCRIPT`, where SCRIPT is a
JSON object with `results` (the host's path of the results folder), `path` (PATH), `trials` (id -> list of commands,
each a list of words) and `modules`. Writes `probe.json`:
`{"congestion_controls": […], "modules": {…}, "trials": {id: null | "what the failing command said"}, "htb_class":
"…"}`.
"""

import ctypes
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

_POWER_OFF = 0x4321FEDC
_CLONE_NEWNET = 0x40000000
_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str, options: str = "") -> None:
    """mount(2); OSError names the target."""
    if _libc.mount(source.encode(), target.encode(), kind.encode(), 0, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), target)


def attempt(command: list[str]) -> str | None:
    """Run one command; None if it went well, otherwise what it said."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        return f"{command[0]}: {error.strerror}"
    if done.returncode == 0:
        return None
    return " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"


def trial(commands: list[list[str]]) -> str | None:
    """All commands of one trial, in a network namespace of its own; the first failure is the answer."""
    if _libc.unshare(_CLONE_NEWNET) != 0:
        return f"unshare: {os.strerror(ctypes.get_errno())}"
    for command in commands:
        error = attempt(command)
        if error is not None:
            return error
    return None


def probe(script: dict[str, Any]) -> dict[str, Any]:
    """Everything that `check` wants to know."""
    modules = {path: attempt(["insmod", path]) for path in script["modules"]}
    # Timers go over to high resolution after the first tick; an earlier tc would compute bursts for a coarse clock.
    time.sleep(1)
    result: dict[str, Any] = {
        "congestion_controls": Path("/proc/sys/net/ipv4/tcp_available_congestion_control").read_text().split(),
        "modules": modules,
        "trials": {name: trial(commands) for name, commands in script["trials"].items()},
    }
    _libc.unshare(_CLONE_NEWNET)
    for command in script["htb"]:
        attempt(command)
    output = subprocess.run(script["htb_show"], capture_output=True, text=True, errors="replace", check=False)
    return result | {"htb_class": output.stdout.strip()}


def main() -> None:
    """Mount, probe, write, power off."""
    script = json.loads(Path(sys.argv[2]).read_text())
    for kind, target in (("proc", "/proc"), ("sysfs", "/sys"), ("tmpfs", "/run"), ("tmpfs", "/tmp")):
        mount(kind, target, kind)
    Path("/tmp/out").mkdir()
    mount("none", "/tmp/out", "hostfs", script["results"])
    os.environ["PATH"] = script["path"]
    Path("/tmp/out/probe.json").write_text(json.dumps(probe(script)))
    os.sync()
    _libc.reboot(_POWER_OFF)


if __name__ == "__main__":
    main()
