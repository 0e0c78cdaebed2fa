"""What this machine can run, what is missing for which engine and for which plots, and the command that installs it."""

from __future__ import annotations

import contextlib
import importlib
import os
import platform
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from bakeoff import data
from bakeoff.engines.kernel import build_tools, host_programs
from bakeoff.errors import BakeoffError

if TYPE_CHECKING:
    from bakeoff.engines.kernel.registry import BuiltKernel

Status = Literal["ok", "limited", "missing"]

ENGINES: Final = ("sim", "kernel", "netns", "ssh")
_CAPABILITIES: Final = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13, "CAP_SYS_ADMIN": 21}
_AGAIN: Final = "pip install --force-reinstall BAKEOFF.whl"


@dataclass(frozen=True)
class Check:
    """One line of the doctor: one capability of this machine."""

    area: str
    """What is lost without it: an engine of `ENGINES`, `plots` or `tools`."""
    name: str
    status: Status
    """`ok`; `limited`: works, but not all of it; `missing`: the area cannot be used."""
    detail: str
    install: str = ""
    """The one command that puts it right; empty if none does or nothing is needed."""
    packages: tuple[str, ...] = ()
    """The Debian packages that `install` installs; empty if it is another kind of command."""

    def to_json(self) -> dict[str, object]:
        """The line as plain values."""
        return asdict(self)


def report() -> list[Check]:
    """Every check, area by area. Nothing is changed on the machine, and no kernel is booted."""
    return [*_sim(), *_kernel(), *_netns(), *_ssh(), *_plots(), *_tools()]


def origin() -> str:
    """Which bakeoff this is: its version, its commit, and the folder it is used from."""
    from bakeoff import version

    commit = version.commit()
    known = f", commit {commit.id[:12]}{' with changes' if commit.dirty else ''}" if commit is not None else ""
    checkout = data.checkout()
    source = f"the checkout {checkout}" if checkout is not None else f"the installation in {Path(__file__).parent}"
    return f"bakeoff {version.version()}{known}: {source}"


def lacking(checks: Iterable[Check], area: str) -> list[str]:
    """The names of what an area cannot be used without and this machine has not; empty if it can be used."""
    return [check.name for check in checks if check.area == area and check.status == "missing"]


def install_all(checks: Iterable[Check]) -> str:
    """One command for every package that any check names; empty if none does."""
    packages = {package: package for check in checks for package in check.packages}
    return _install(packages) if packages else ""


def _install(packages: dict[str, str]) -> str:
    if shutil.which("apt-get") is None:
        return f"install the Debian packages {' '.join(sorted(set(packages.values())))}"
    return build_tools.install_command(packages)


def _packaged(area: str, name: str, status: Status, detail: str, package: str) -> Check:
    """A check whose remedy is a package; a note behind its name (`netperf (Debian: non-free)`) goes to the detail."""
    bare, _, note = package.partition(" (")
    if note:
        # It is kept out of the command for everything, which would fail where apt is not configured for it.
        return Check(area, name, status, f"{detail} ({note}", _install({name: bare}))
    return Check(area, name, status, detail, _install({name: bare}), (bare,))


def _module(area: str, name: str, lost: str, install: str) -> Check:
    """Whether a module can be imported: a file that is there may still be of another machine."""
    try:
        importlib.import_module(name)
    except ImportError as error:
        return Check(area, name, "missing", f"cannot be imported: {lost} ({error})", install)
    return Check(area, name, "ok", "installed")


def _controls(area: str, has: Iterable[str], wanted: Iterable[str], where: str) -> Check:
    """The congestion controls that an engine has of those that it could have."""
    found = sorted(set(has))
    without = sorted(set(wanted).difference(found))
    detail = f"{', '.join(found)}{f'; not {where}: ' if without else ''}{', '.join(without)}"
    return Check(area, "congestion controls", "limited" if without else "ok", detail)


def _on_linux() -> list[str]:
    from bakeoff.engines import controls

    return [name for name, control in controls.table().items() if control.on_linux]


def _sim() -> Iterator[Check]:
    again = "make setup" if data.checkout() is not None else _AGAIN
    simulator = _module("sim", "bakeoff._sim", "the simulator cannot run", again)
    yield simulator
    if simulator.status == "ok":
        from bakeoff.engines import controls

        names = [name for name, control in controls.table().items() if control.simulated]
        yield _controls("sim", names, names, "")
    from bakeoff.scenario import catalog

    try:
        found = len(list(catalog.root().glob("suites/*/*.yaml")))
        yield Check("sim", "catalog", "ok", f"{found} scenarios in {catalog.root()}")
    except BakeoffError as error:
        yield Check("sim", "catalog", "missing", str(error), "" if os.environ.get("BAKEOFF_CATALOG") else again)


def _kernel() -> Iterator[Check]:
    from bakeoff.engines.kernel import boot, check, registry

    machine = platform.machine()
    if machine == "x86_64":
        yield Check("kernel", "processor", "ok", "x86_64 (User-Mode Linux)")
    else:
        yield Check("kernel", "processor", "missing", f"{machine}: User-Mode Linux is for x86_64 only")
    yield _agent("kernel")
    kernels = registry.list_kernels()
    if kernels:
        names = ", ".join(f"{kernel.name} ({kernel.release})" for kernel in kernels)
        yield Check("kernel", "virtual-time kernel", "ok", names)
        for kernel in kernels:
            yield _controls("kernel", check.configured(kernel).names("cc"), _on_linux(), f"in {kernel.name}")
    else:
        yield Check("kernel", "virtual-time kernel", "missing", "none built yet", _build_a_kernel())
    if missing := build_tools.missing_tools():
        detail = f"no kernel can be built without {', '.join(missing)}"
        packages = tuple(sorted(set(missing.values())))
        yield Check("kernel", "build tools", "limited", detail, _install(missing), packages)
    else:
        yield Check("kernel", "build tools", "ok", "gcc, make, flex, bison and the others are there")
    try:
        yield Check("kernel", "guest memory", "ok", f"files in {boot.memory_parent()} can be mapped executable")
    except BakeoffError as error:
        yield Check("kernel", "guest memory", "missing", str(error), "mount -o remount,exec /dev/shm")
    if open_to := boot.confinement():
        yield Check("kernel", "confinement", "limited", f"a guest is not kept from everything: this host {open_to}")
    else:
        detail = "Landlock and seccomp: a guest writes its results, reads system files, and has no socket of the host"
        yield Check("kernel", "confinement", "ok", detail)
    yield _program("kernel", "ip", "no run")
    yield _tc("kernel")
    for name, lost in (
        ("ethtool", "offloads stay on"),
        ("nft", "no rules that change DSCP or ECN by nftables"),
        ("wg", "no WireGuard tunnels"),
    ):
        yield _program("kernel", name, lost)
    yield _insmod(kernels)


def _insmod(kernels: Sequence[BuiltKernel]) -> Check:
    """A kernel that was built with modules of its own loads them in every run, and fails without insmod."""
    with_modules = [kernel.name for kernel in kernels if kernel.modules]
    if not with_modules:
        return _program("kernel", "insmod", "no external modules")
    lost = f"no run on {', '.join(with_modules)}, which load modules"
    return _program("kernel", "insmod", lost, "missing" if len(with_modules) == len(kernels) else "limited")


def _build_a_kernel() -> str:
    if data.checkout() is not None:
        return "make kernel"
    if shutil.which("apt-get") is not None:
        return 'bakeoff kernel build --source "$(bakeoff kernel fetch-source --suite trixie-backports)"'
    return "bakeoff kernel build --source DIR|TARBALL"


def _agent(area: str, note: str = "makes the traffic and samples it") -> Check:
    from bakeoff.engines.lab import agent

    try:
        path = agent.find()
        found = agent.version(path)
    except (BakeoffError, OSError) as error:
        return Check(area, "agent", "missing", str(error), "make agent" if data.checkout() is not None else _AGAIN)
    return Check(area, "agent", "ok", f"{path} (version {found}): {note}")


def _tc(area: str) -> Check:
    tc = host_programs.find("tc")
    version = host_programs.iproute2_version(tc) if tc else None
    if tc is None:
        return _packaged(area, "tc", "missing", "not installed: no run", host_programs.PACKAGES["tc"])
    if version is None or version < host_programs.TC_DUALPI2:
        detail = f"{tc} is of iproute2 {_dotted(version)}: options of dualpi2 need {_dotted(host_programs.TC_DUALPI2)}"
        return Check(area, "tc", "limited", detail, "bakeoff kernel fetch-programs --suite forky")
    return Check(area, "tc", "ok", f"{tc} (iproute2 {_dotted(version)})")


def _dotted(version: tuple[int, int] | None) -> str:
    return ".".join(map(str, version)) if version else "unknown"


def _program(area: str, name: str, lost: str, without: Status | None = None) -> Check:
    path = host_programs.find(name)
    if path is not None:
        return Check(area, name, "ok", str(path))
    status: Status = without or ("missing" if lost == "no run" else "limited")
    return _packaged(area, name, status, f"not installed: {lost}", host_programs.PACKAGES.get(name, name))


def _netns() -> Iterator[Check]:
    held = _capabilities()
    missing = [name for name, bit in _CAPABILITIES.items() if not held >> bit & 1]
    if missing:
        yield Check("netns", "privilege", "missing", f"this process has no {' and no '.join(missing)}", "run as root")
    else:
        yield Check("netns", "privilege", "ok", ", ".join(_CAPABILITIES))
    yield _controls("netns", _of_this_host(), _on_linux(), "on this machine")
    yield _agent("netns")
    yield _program("netns", "ip", "no run")
    yield _tc("netns")
    yield _program("netns", "sysctl", "no scenario that sets one")
    yield _program("netns", "ethtool", "offloads stay on")


def _of_this_host() -> Iterator[str]:
    """What its kernel has, and what it has as modules."""
    available = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    modules = Path("/lib/modules", platform.release(), "modules.dep")
    from bakeoff.engines import controls

    with contextlib.suppress(OSError):
        yield from available.read_text().split()
    with contextlib.suppress(OSError):
        paths = [Path(line.partition(":")[0]) for line in modules.read_text().splitlines()]
        loadable = {path.name.partition(".")[0] for path in paths}
        for name in controls.LINUX.union(controls.MODULES):
            if controls.module(name) in loadable:
                yield name


def _capabilities() -> int:
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return -1 if os.geteuid() == 0 else 0
    return next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith("CapEff:")), 0)


def _ssh() -> Iterator[Check]:
    path = shutil.which("ssh")
    if path is None:
        yield _packaged("ssh", "ssh", "missing", "not installed: no testbed can be reached", "openssh-client")
    else:
        yield Check("ssh", "ssh", "ok", f"{path}; a testbed is checked by 'bakeoff run … --inventory FILE --dry-run'")
    yield _agent("ssh", f"copied to every machine, all {platform.machine()}")


def _plots() -> Iterator[Check]:
    yield _module("plots", "polars", "no results folder can be read", "pip install polars")
    yield _module("plots", "matplotlib", "no plots, tables only", "pip install matplotlib")


def _tools() -> Iterator[Check]:
    for name in ("flent", "iperf3", "irtt", "netperf", "tcpdump"):
        path = shutil.which(name)
        if path is None:
            lost = "no captures" if name == "tcpdump" else f"no scenario with 'tools: {{…: {name}}}'"
            detail = f"not installed: {lost} on netns and ssh"
            yield _packaged("tools", name, "limited", detail, host_programs.PACKAGES[name])
        else:
            yield Check("tools", name, "ok", path)
