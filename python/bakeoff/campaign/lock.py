"""One campaign per folder: a lock file with the owner's process id."""

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bakeoff import lockfile
from bakeoff.errors import CampaignError
from bakeoff.results import layout

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


def writer(root: Path) -> str | None:
    """The process that owns the folder `root` now; None if none does. Nothing is made, followed or waited for."""
    path = root / NAME
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return None
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(descriptor, 32).decode(errors="replace").strip() or "unknown"
    except OSError:  # a file system without locks
        return None
    finally:
        os.close(descriptor)
    return None


def refuse_written(folder: Path) -> None:
    """BakeoffError if a campaign is writing to the folder, which is a campaign's or lies in one."""
    path = folder.absolute()
    for root in (path, *path.parents):
        known = root == path or (root / layout.CAMPAIGN).exists()  # elsewhere a file of this name may be anything
        if known and (owner := writer(root)) is not None:
            raise CampaignError(f"{folder}: a campaign (process {owner}) is writing to {root}; wait until it ends")


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
            raise CampaignError(
                f"{root}: another campaign (process {owner or 'unknown'}) is writing to it; wait until it ends, or "
                "choose another --out"
            ) from None
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
