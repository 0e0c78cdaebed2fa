"""One campaign per folder: a lock file with the owner's process id."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bakeoff import lockfile
from bakeoff.errors import BakeoffError

NAME: Final = ".lock"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Own the folder `root` (made if missing) while the block lasts. BakeoffError if another campaign does, or if
    what has the name of the lock file is none of this user's.

    The kernel's lock on the file decides, so that a crash never leaves a folder locked; the process id in it is for the
    message.
    """
    descriptor = _acquire(root)
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield
    finally:
        (root / NAME).unlink(missing_ok=True)
        os.close(descriptor)


def _acquire(root: Path) -> int:
    root.mkdir(parents=True, exist_ok=True)
    path = root / NAME
    while True:
        descriptor = lockfile.opened(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The owner before us deletes the file before it lets go: what we hold may no longer be what has the name.
            if os.path.samestat(os.fstat(descriptor), path.lstat()):
                return descriptor
        except BlockingIOError:
            owner = os.read(descriptor, 32).decode(errors="replace").strip()
            os.close(descriptor)
            raise BakeoffError(
                f"{root}: another campaign (process {owner or 'unknown'}) is writing here; "
                "wait until it ends or choose another --out"
            ) from None
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
