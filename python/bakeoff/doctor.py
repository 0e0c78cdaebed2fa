"""What this machine can run, what is missing for which engine and for which plots, and the package to install."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

from bakeoff.errors import BakeoffError

Status = Literal["ok", "limited", "missing"]

_CAP_NET_ADMIN: Final = 12
_CAP_SYS_ADMIN: Final = 21


@dataclass(frozen=True)
class Check:
    """One line of the doctor: one capability of this machine."""

    area: str
    """`sim`, `kernel`, `netns`, `ssh`, `plots` or `tools`: what is lost without it."""
    name: str
    status: Status
    """`ok`; `limited`: works, but not all of it; `missing`: the area cannot be used."""
    detail: str
    install: str = ""
    """A package to install or a command to run; empty if nothing helps or nothing is needed."""

    def to_json(self) -> dict[str, str]:
        """The line as plain values."""
        return asdict(self)


def report() -> list[Check]:
    """Every check, area by area. Nothing is changed on the machine, and no kernel is booted."""
    return [*_sim(), *_kernel(), *_netns(), *_ssh(), *_plots(), *_tools()]


def _module(area: str, name: str, lost: str, install: str) -> Check:
    if importlib.util.find_spec(name) is not None:
        return Check(area, name, "ok", "installed")
    return Check(area, name, "missing", f"not installed: {lost}", install)


def _sim() -> Iterator[Check]:
    yield _module("sim", "bakeoff._sim", "the simulator cannot run", "pip install bakeoff (or 'maturin develop')")


def _kernel() -> Iterator[Check]:
    from bakeoff.engines.kernel import boot, programs, registry, tools

    kernels = registry.list_kernels()
    if kernels:
        names = ", ".join(f"{kernel.name} ({kernel.release})" for kernel in kernels)
        yield Check("kernel", "virtual-time kernel", "ok", names)
    else:
        yield Check(
            "kernel", "virtual-time kernel", "missing", "none built yet", "bakeoff kernel build --source DIR|TARBALL"
        )
    if missing := tools.missing_tools():
        packages = " ".join(sorted(set(missing.values())))
        yield Check(
            "kernel", "build tools", "limited", f"no kernel can be built without {', '.join(missing)}", packages
        )
    else:
        yield Check("kernel", "build tools", "ok", "gcc, make, flex, bison and the others are there")
    try:
        yield Check("kernel", "guest memory", "ok", f"files in {boot.memory_parent()} can be mapped executable")
    except BakeoffError as error:
        yield Check("kernel", "guest memory", "missing", str(error), "mount -o remount,exec /dev/shm")
    if boot.has_landlock():
        yield Check("kernel", "landlock", "ok", "the kernel process can write nowhere but into its results")
    else:
        yield Check(
            "kernel", "landlock", "limited", "this host has none: only the read-only root keeps a guest from host files"
        )
    yield from (_program("kernel", name, lost) for name, lost in (("ip", "no run"), ("ethtool", "offloads stay on")))
    tc = programs.find("tc")
    version = programs.iproute2_version(tc) if tc else None
    if tc is None:
        yield Check("kernel", "tc", "missing", "not installed: no run", programs.PACKAGES["tc"])
    elif version is None or version < programs.TC_DUALPI2:
        detail = f"{tc} is of iproute2 {_dotted(version)}: options of dualpi2 need {_dotted(programs.TC_DUALPI2)}"
        yield Check("kernel", "tc", "limited", detail, "kernel/fetch-programs --suite SUITE")
    else:
        yield Check("kernel", "tc", "ok", f"{tc} (iproute2 {_dotted(version)})")
    yield _program("kernel", "nft", "no rules that change DSCP or ECN by nftables")
    yield _program("kernel", "insmod", "no external modules")
    yield _program("kernel", "wg", "no WireGuard tunnels")


def _dotted(version: tuple[int, int] | None) -> str:
    return ".".join(map(str, version)) if version else "unknown"


def _program(area: str, name: str, lost: str) -> Check:
    from bakeoff.engines.kernel import programs

    path = programs.find(name)
    if path is not None:
        return Check(area, name, "ok", str(path))
    status: Status = "missing" if lost == "no run" else "limited"
    return Check(area, name, status, f"not installed: {lost}", programs.PACKAGES.get(name, name))


def _netns() -> Iterator[Check]:
    lacking = [
        name
        for name, bit in (("CAP_NET_ADMIN", _CAP_NET_ADMIN), ("CAP_SYS_ADMIN", _CAP_SYS_ADMIN))
        if not _capabilities() >> bit & 1
    ]
    if lacking:
        yield Check("netns", "privilege", "missing", f"this process has no {' and no '.join(lacking)}", "run as root")
    else:
        yield Check("netns", "privilege", "ok", "CAP_NET_ADMIN and CAP_SYS_ADMIN")


def _capabilities() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return -1 if os.geteuid() == 0 else 0
    return next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)


def _ssh() -> Iterator[Check]:
    path = shutil.which("ssh")
    if path is None:
        yield Check("ssh", "ssh", "missing", "not installed: no testbed can be reached", "openssh-client")
    else:
        yield Check("ssh", "ssh", "ok", f"{path}; a testbed is checked by 'bakeoff run … --inventory FILE --dry-run'")
    from bakeoff.engines.lab import agent

    try:
        yield Check("ssh", "agent", "ok", f"{agent.find()}: copied to every machine, which has to be of this kind")
    except BakeoffError as error:
        yield Check("ssh", "agent", "missing", str(error))


def _plots() -> Iterator[Check]:
    yield _module("plots", "polars", "no results folder can be read", "pip install polars")
    yield _module("plots", "matplotlib", "no plots, tables only", "pip install matplotlib")


def _tools() -> Iterator[Check]:
    from bakeoff.engines.kernel import programs

    for name in ("flent", "iperf3", "irtt", "netperf", "tcpdump"):
        path = shutil.which(name)
        if path is None:
            lost = "no captures" if name == "tcpdump" else f"no scenario with 'tools: {{…: {name}}}'"
            package = programs.PACKAGES[name]
            yield Check("tools", name, "limited", f"not installed: {lost} on netns and ssh", package)
        else:
            yield Check("tools", name, "ok", path)
