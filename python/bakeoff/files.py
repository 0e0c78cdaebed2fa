"""Reading files that anybody may have made: regular ones only, and no more than a bound."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO


def read(path: Path | str, most: int) -> bytes:
    """All bytes of the regular file at `path`, if they are at most `most`.

    OSError says what it is instead: a device, a pipe and a socket are never waited for, and a file that is too long is
    not read.
    """
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        # A file of the system's, such as one below /proc, has the size 0 and content all the same.
        content = file.read(most + 1) if size <= most else b""
    if max(size, len(content)) > most:
        raise OSError(errno.EFBIG, f"is {max(size, len(content)):,} bytes; at most {most:,}", os.fspath(path))
    return content


def opened(path: Path | str) -> BinaryIO:
    """The regular file at `path`, opened for reading; OSError as for `read`."""
    name = os.fspath(path)
    if "\0" in name:
        raise OSError(errno.EINVAL, "its name holds a zero byte", name)
    # Looked at before it is opened, because a device may act on that; and after, because it may be another one then.
    _regular(os.stat(name), name)  # noqa: PTH116 (of text)
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        _regular(os.fstat(descriptor), name)
    except OSError:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def is_below(path: Path, folder: Path) -> bool:
    """Whether the file at `path` lies in `folder` or below, with all links followed."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except ValueError:  # a zero byte
        return False


def _regular(found: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is no regular file", name)
