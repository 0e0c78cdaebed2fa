"""Which processor core a boot has.

A kernel and the processes of its guest are several processes of the host, of which one runs at a time. Every system
call in the guest and every wake-up there hands over from one to another, which costs far more across two cores than
within one. So each boot keeps to a single core.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Final

# Abstract names (unix(7)): no file is left anywhere, and the kernel lets go of them when their process ends.
_NAME: Final = "\0bakeoff-core-{core}-{boots}"


@contextmanager
def taken() -> Iterator[int | None]:
    """The core for one boot, out of those that this process may use, until the block ends.

    The core with the fewest boots of any bakeoff on this machine is taken, the first of equals: more boots than cores
    share them evenly. None if this machine binds no process to a core, or has no abstract names to count the boots by.
    """
    with ExitStack() as until_end:
        yield _take(until_end) if hasattr(os, "sched_getaffinity") else None


def _take(until_end: ExitStack) -> int | None:
    cores = sorted(os.sched_getaffinity(0))
    try:
        endpoint = until_end.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        ways = ((core, _NAME.format(core=core, boots=boots)) for boots in count() for core in cores)
        return next(core for core, name in ways if _is_free(endpoint, name))
    except OSError:
        return None


def _is_free(endpoint: socket.socket, name: str) -> bool:
    """Give `place` this name, unless another has it."""
    try:
        endpoint.bind(name)
    except OSError as problem:
        if problem.errno != errno.EADDRINUSE:
            raise
        return False
    return True
