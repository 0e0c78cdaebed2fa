"""The host's programs that run inside the guest: `ip`, `tc` and their like."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Final

from bakeoff.engines.kernel import cache
from bakeoff.errors import KernelError

# program -> Debian package
PACKAGES: Final = {
    "ip": "iproute2",
    "tc": "iproute2",
    "ss": "iproute2",
    "nft": "nftables",
    "iptables": "iptables",
    "ethtool": "ethtool",
    "sysctl": "procps",
    "wg": "wireguard-tools",
    "tcpdump": "tcpdump",
    "insmod": "kmod",
    "flent": "flent",
    "iperf3": "iperf3",
    "irtt": "irtt",
    "netperf": "netperf (Debian: non-free)",
    "netserver": "netperf (Debian: non-free)",
}
# iproute2 learnt the options of dualpi2 with 6.17.
TC_DUALPI2: Final = (6, 17)
_SYSTEM: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def find(program: str) -> Path | None:
    """The program's path: what 'bakeoff kernel fetch-programs' unpacked first, then PATH and the system's folders."""
    borrowed = cache.root() / "programs" / "bin" / program
    if os.access(borrowed, os.X_OK):
        return borrowed
    found = shutil.which(program, path=f"{os.environ.get('PATH', '')}:{_SYSTEM}")
    return Path(found) if found else None


def need(program: str) -> Path:
    """The program's path; BakeoffError names the package if it is missing."""
    path = find(program)
    if path is None:
        raise KernelError(f"{program} is not installed; install: {PACKAGES.get(program, program)}")
    return path


def host_program(name: str) -> Path | None:
    """The file behind a scenario's program: of the system first, whose libraries a guest can read; None if there is
    none that can be executed."""
    found = shutil.which(name, path=_SYSTEM) if "/" not in name else shutil.which(name)
    return Path(found) if found else find(name) if "/" not in name else None


def search_path() -> str:
    """PATH for commands in the guest: the borrowed programs, then the system's."""
    return f"{cache.root() / 'programs' / 'bin'}:{_SYSTEM}"


def iproute2_version(tc: Path) -> tuple[int, int] | None:
    """(major, minor) from `tc -V`; None if it does not say."""
    done = subprocess.run([str(tc), "-V"], capture_output=True, text=True, errors="replace", check=False)
    match = re.search(r"iproute2-(?:v)?(\d+)\.(\d+)", done.stdout)
    return (int(match[1]), int(match[2])) if match else None
