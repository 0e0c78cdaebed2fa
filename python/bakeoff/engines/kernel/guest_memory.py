"""The guest's memory: sized by what a run can hold, because Linux bounds TCP by the memory that it finds.

It is a file of which only what is used takes memory of the host, so that a size that is never reached costs nothing but
the guest's table of pages (1.6 %). The size follows from the run alone wherever the host has that much: it is part of
the guest's command line, and with it of what the same seed gives.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bakeoff.engines.lab import tcp_memory

if TYPE_CHECKING:
    from bakeoff.scenario import Run

_MIB: Final = 1 << 20
# The kernel, its table of pages, the programs of the set-up and the agent.
_BASE: Final = 128 * _MIB
_STEP: Final = 256 * _MIB
_LEAST: Final = 512 * _MIB
# What TCP holds may lie in the network a second time: a packet that is cut from a large one is a copy.
_TWICE: Final = 2
# A buffer may exceed its most by what is added last.
_MARGIN: Final = 1.25
# Of the host's memory: guests run side by side, and everything else has to live too.
_SHARE: Final = 0.75


@dataclass(frozen=True)
class Memory:
    """The guest's memory."""

    bytes: int
    held: int
    """What the run's TCP sockets will hold at most, in bytes."""
    buffers: int
    """What their buffers could grow to, in bytes."""

    @property
    def option(self) -> str:
        """As in `mem=`: `512M`."""
        return f"{self.bytes // _MIB}M"

    @property
    def tcp_pages(self) -> int:
        """TCP's limit in pages, where no socket comes; whether the guest's memory is enough, its kernel tells."""
        return max(self._share, round(self.buffers * _MARGIN)) // tcp_memory.PAGE

    @property
    def note(self) -> str | None:
        """What the user should know if the host has less than the run may take."""
        if self._share >= self.held:
            return None
        return (
            f"guest memory: TCP may hold up to {_gib(self.held)} in this run, and this machine can give it "
            f"{_gib(self._share)}; if that is not enough the run fails"
        )

    @property
    def _share(self) -> int:
        """Half of what is left by kernel and programs."""
        return (self.bytes - _BASE) // _TWICE


def guest(run: Run, host: int | None = None) -> Memory:
    """The memory that a run's guest gets; `host`: bytes that this machine has for it, found out if not given."""
    held = tcp_memory.held(run)
    wanted = max(_LEAST, -(-(_BASE + _TWICE * held) // _STEP) * _STEP)
    if wanted > _LEAST:
        most = int((of_host() if host is None else host) * _SHARE) // _STEP * _STEP
        wanted = max(_LEAST, min(wanted, most))
    return Memory(bytes=wanted, held=held, buffers=tcp_memory.buffers(run))


def of_host() -> int:
    """Bytes that this machine has for guests: its memory, or the file system where theirs lies, whichever is less."""
    from bakeoff.engines.kernel.boot import memory_parent

    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min(machine, shutil.disk_usage(memory_parent()).total)


def _gib(size: int) -> str:
    return f"{size / (1 << 30):.1f} GiB"
