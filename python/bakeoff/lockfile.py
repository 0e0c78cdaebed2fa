"""Lock files in folders that others may have filled: opened so that nothing planted there is followed or lost."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

from bakeoff.errors import FileError

# No link is followed, a pipe is not waited for, and what a file holds stays: another process may own the lock.
_FLAGS: Final = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def opened(path: Path) -> int:
    """A descriptor of the lock file at `path`, which is made if it is missing.

    BakeoffError unless it is a regular file of this user's, under one name only.
    """
    try:
        descriptor = os.open(path, _FLAGS, 0o644)
    except OSError as error:
        if not os.path.lexists(path):
            raise  # the folder's fault
        why = "is a link" if error.errno == errno.ELOOP else f"cannot be opened: {error.strerror}"
        raise FileError(_refusal(path, why)) from None
    found = os.fstat(descriptor)
    what = ""
    if not stat.S_ISREG(found.st_mode):
        what = "not a regular file"
    elif found.st_uid != os.geteuid():
        what = f"belongs to user {found.st_uid}"
    # With none, the owner before us deleted it a moment ago.
    elif found.st_nlink > 1:
        what = "has other hard links"
    if what:
        os.close(descriptor)
        raise FileError(_refusal(path, what))
    return descriptor


def _refusal(path: Path, what: str) -> str:
    return f"{path}: {what}; expected a lock file of this user; delete it if no other process uses it"
