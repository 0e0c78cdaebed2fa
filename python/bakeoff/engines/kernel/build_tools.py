"""What a kernel build needs on this machine, and the one command that installs what is missing.

Standard library only and no import of bakeoff: `make kernel` runs this file, by its path, before anything else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import Final

# program -> Debian package. perl and bc make headers; flex and bison make kconfig; gzip packs the configuration.
TOOLS: Final = {
    "gcc": "gcc",
    "make": "make",
    "flex": "flex",
    "bison": "bison",
    "bc": "bc",
    "perl": "perl",
    "tar": "tar",
    "xz": "xz-utils",
    "ld": "binutils",
    "gzip": "gzip",
    "awk": "mawk",
    "cmp": "diffutils",
}
_HEADERS: Final = ("the C library's headers", "libc6-dev")


def missing_tools() -> dict[str, str]:
    """What a build needs and this machine has not, with the Debian package of each."""
    missing = {program: package for program, package in TOOLS.items() if shutil.which(program) is None}
    # gcc alone comes without them.
    if "gcc" not in missing and not _has_headers():
        missing[_HEADERS[0]] = _HEADERS[1]
    return missing


def install_command(packages: dict[str, str]) -> str:
    """The command that installs these packages on Debian and what is made from it, for this user."""
    become = "" if os.geteuid() == 0 else "sudo "
    return f"{become}apt-get install --yes {' '.join(sorted(set(packages.values())))}"


def complaint(missing: dict[str, str]) -> str:
    """What is missing and the command that installs it, for people."""
    return f"missing to build a kernel: {', '.join(missing)}; install with: {install_command(missing)}"


def _has_headers() -> bool:
    done = subprocess.run(
        ["gcc", "-E", "-x", "c", "-"], input=b"#include <stdio.h>\n", capture_output=True, check=False
    )
    return done.returncode == 0


if __name__ == "__main__":
    if lacking := missing_tools():
        sys.exit(complaint(lacking))
