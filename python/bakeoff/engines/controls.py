"""Which congestion control runs where: refusals, `bakeoff kernel check`, `bakeoff doctor` and the catalog read this.

The simulator's names are those that it registers (`crates/sim/src/cc/mod.rs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

LINUX: Final = frozenset({
    "bbr", "bic", "cdg", "cubic", "dctcp", "highspeed", "htcp", "hybla", "illinois",
    "lp", "nv", "reno", "scalable", "vegas", "veno", "westwood", "yeah",
})  # fmt: skip
"""What Linux 7.3 itself has (`net/ipv4/tcp_*.c`); a development tree may add others."""
MODULES: Final[Mapping[str, str]] = {
    "prague": "tcp_prague",
    **dict.fromkeys(("cubic-sce", "dctcp-sce", "reno-sce"), "tcp_sce"),
}
"""Those that bakeoff's own kernel modules add (`kernel/modules`), and which."""
_ON_LINUX: Final = ("kernel", "netns", "ssh")


@dataclass(frozen=True, slots=True)
class Control:
    """A congestion control, without its version."""

    name: str
    versions: tuple[str, ...]
    """`@2020-08`: the simulator's; a kernel has one version of each."""
    simulated: bool
    on_linux: bool
    """Linux 7.3 has it, or a module of bakeoff's."""
    module: str | None
    """bakeoff's own kernel module that has it."""

    @property
    def engines(self) -> tuple[str, ...]:
        """Where it runs, if the kernel there was built with it."""
        return ("sim",) * self.simulated + _ON_LINUX * self.on_linux


@cache
def table() -> Mapping[str, Control]:
    """All of them by name, in order."""
    from bakeoff import _sim

    versions: dict[str, list[str]] = {}
    for registered in _sim.congestion_controls():
        name, at, version = registered.partition("@")
        versions.setdefault(name, []).extend([at + version] * bool(version))
    on_linux = LINUX.union(MODULES)
    return {
        name: Control(name, tuple(versions.get(name, ())), name in versions, name in on_linux, MODULES.get(name))
        for name in sorted(on_linux.union(versions))
    }


def elsewhere(name: str, engine: str) -> str:
    """For a message that `engine` lacks the control: the other engine that needs no machine and has it, or nothing."""
    control = table().get(name)
    found = [each for each in ("sim", "kernel") if control is not None and each in control.engines and each != engine]
    return f"; it runs with {' or '.join(f'--engine {each}' for each in found)}" if found else ""


def offered(files: Iterable[Path]) -> frozenset[str]:
    """Those of a kernel with these external modules."""
    names = {path.stem for path in files}
    return frozenset(name for name, module in MODULES.items() if module in names)


def module(name: str) -> str:
    """The kernel module that has it: `tcp_htcp`."""
    return MODULES.get(name, f"tcp_{name}")


def symbol(name: str) -> str:
    """What switches it on in a kernel's configuration, without `CONFIG_`: `TCP_CONG_CUBIC_SCE`."""
    return f"TCP_CONG_{'HSTCP' if name == 'highspeed' else name.upper().replace('-', '_')}"


def named(symbol: str) -> str:
    """The reverse, of a symbol without `TCP_CONG_`, as `config.names` has it: `cubic_sce` is `cubic-sce`."""
    return "highspeed" if symbol == "hstcp" else symbol.replace("_", "-")
