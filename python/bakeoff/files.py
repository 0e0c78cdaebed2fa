"""Files that anybody may have made: regular ones only, and no more of them than a bound.

`read` and `opened` are for a file that the user named: links are followed, as everywhere. In a results folder, which
may be a stranger's, `read` with `follow=False` does not; its files may have a second name in a store. What begins with
`plain_`, and `opener`, are for folders that a stranger's program wrote to, such as a guest's kernel: in place of a log
it could leave a symbolic link, which the next one who writes or reads there would follow out of the folder, or a FIFO,
which would never end. There no link is followed, and a file has one name.
"""

from __future__ import annotations

import bz2
import contextlib
import errno
import gzip
import os
import shutil
import stat
import zlib
from collections.abc import Collection, Iterator, Mapping
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Final, Literal

from bakeoff.errors import FileError, RunError

# The largest text that is read whole: a log, a status, what a traffic tool wrote.
MOST_TEXT: Final = 256 << 20
_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


def read(path: Path | str, most: int, *, follow: bool = True) -> bytes:
    """All bytes of the regular file at `path`, if they are at most `most`; unless `follow` also if it is no link.

    OSError says what it is instead: a device, a pipe and a socket are never waited for, and a file that is too long is
    not read.
    """
    descriptor, size = _open(path, follow=follow)
    content = b""
    try:
        if size <= most:
            # More than there should be, so that the end needs no call of its own. A file that has grown has more, and
            # one of the system's, such as those below /proc, which have the size 0.
            content = os.read(descriptor, max(size + 1, 4096))
            while len(content) != size and len(content) <= most:
                more = os.read(descriptor, max(1 << 16, len(content)))
                if not more:
                    break
                content += more
    except BlockingIOError:
        # Nor is a file of the system's waited for that has nothing to say yet, such as /proc/kmsg.
        if not content:
            raise OSError(errno.EAGAIN, "has no data", os.fspath(path)) from None
    finally:
        os.close(descriptor)
    if max(size, len(content)) > most:
        raise OSError(errno.EFBIG, f"is {max(size, len(content)):,} bytes; at most {most:,}", os.fspath(path))
    return content


def opened(path: Path | str) -> BufferedReader:
    """The regular file at `path`, opened for reading; OSError as for `read`."""
    return os.fdopen(_open(path)[0], "rb")


def _open(path: Path | str, *, follow: bool = True) -> tuple[int, int]:
    """A descriptor of the regular file at `path`, and the bytes that it has; OSError as for `read`."""
    name = os.fspath(path)
    if "\0" in name:
        raise OSError(errno.EINVAL, "its name contains a zero byte", name)
    # Looked at before it is opened, because a device may act on that; and after, because it may be another one then.
    _regular(os.stat(name, follow_symlinks=follow), name)  # noqa: PTH116 (of text)
    links = 0 if follow else os.O_NOFOLLOW
    descriptor = os.open(name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY | links)
    try:
        found = os.fstat(descriptor)
        _regular(found, name)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, found.st_size


def unpacked(path: Path | str, most: int) -> bytes:
    """All bytes of the regular file at `path`, unpacked if it begins as gzip's or bzip2's files do, whatever its name.

    OSError as for `read`, or if it is broken or unpacks to more than `most` bytes: no more than that is ever unfolded.
    """
    with opened(path) as file:
        magic = file.read(3)
        file.seek(0)
        if not magic.startswith((b"\x1f\x8b", b"BZh")):
            return read(path, most)
        try:
            with gzip.GzipFile(fileobj=file) if magic[0] == 0x1F else bz2.BZ2File(file) as folded:
                content = folded.read(most + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise OSError(errno.EINVAL, f"is a damaged compressed file: {error}", os.fspath(path)) from None
    if len(content) > most:
        raise OSError(errno.EFBIG, f"unpacks to more than {most:,} bytes", os.fspath(path))
    return content


def check_output(path: Path) -> None:
    """BakeoffError unless a file can be written to `path`, as far as what has the name decides: nothing or a file.

    A device, a pipe or a link would be replaced by the file, or written through.
    """
    if path.name in ("", ".."):
        raise FileError(f"{path}: a folder; expected a file")
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    if not stat.S_ISREG(mode):
        what = _KINDS.get(stat.S_IFMT(mode), "no regular file")
        raise FileError(f"{path}: {what}; expected a regular or a new file")


def write(path: Path, content: bytes, *, replace: bool = True) -> None:
    """Write a file whole or not at all; folders are made. As `write_all`."""
    write_all({path: content}, replace=replace)


def write_all(contents: Mapping[Path, bytes], *, replace: bool = True) -> None:
    """Write all files, or none if one of them cannot be written; folders are made.

    BakeoffError names the file, also where `check_output` refuses. FileExistsError for one that is there, unless it may
    be replaced.
    """
    for path in contents:
        check_output(path)
    made: dict[Path, Path] = {}
    path = Path()
    try:
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            made[path] = path.with_name(f".{path.name[:50]}.{os.getpid()}.partial")
            made[path].unlink(missing_ok=True)
            with open(made[path], "xb", opener=opener) as new:
                new.write(content)
        for path, partial in made.items():
            if replace:
                partial.replace(path)
            else:
                os.link(partial, path)
    except OSError as error:
        if isinstance(error, FileExistsError) and not replace:
            raise
        if (other := in_the_way(path.parent)) is not None:
            raise FileError(f"{other}: a file; expected a folder for {path.name}") from None
        # The error's own name may be that of the partial file.
        raise FileError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        for partial in made.values():
            with contextlib.suppress(OSError):
                partial.unlink(missing_ok=True)


def is_below(path: Path, folder: Path) -> bool:
    """Whether the file at `path` lies in `folder` or below, with all links followed."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except ValueError:  # a zero byte
        return False


def in_the_way(folder: Path) -> Path | None:
    """What has the name of `folder`, or of a folder above it, and is no folder itself; None if nothing has."""
    found = next((parent for parent in (folder, *folder.parents) if os.path.lexists(parent)), None)
    return None if found is None or found.is_dir() else found


def _regular(found: os.stat_result, name: str) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if stat.S_ISLNK(found.st_mode):
        raise OSError(errno.ELOOP, "is a symbolic link", name)
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "is not a regular file", name)


def discard(path: Path) -> None:
    """Delete the folder at `path` with all that is in it, or what else has the name; what the system keeps, stays."""
    with contextlib.suppress(OSError):
        # rmtree would open a FIFO, and wait for a writer.
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)  # noqa: PTH108 (of what has the name)


def sweep(folder: Path, kept: Collection[str] = ()) -> list[str]:
    """Delete everything in `folder` that is not a regular file with one name, and say what it was; empty if nothing.

    The folders `kept`, named from `folder`, stay and are swept too. Nobody else may write there any more. OSError if
    something cannot be looked at or deleted.
    """
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return _swept(held, "", kept)
    finally:
        os.close(held)


def _swept(held: int, place: str, kept: Collection[str]) -> list[str]:
    """`sweep` for an open folder, which is called `place` from the outermost one."""
    found = []
    for name in sorted(os.listdir(held)):
        status = os.stat(name, dir_fd=held, follow_symlinks=False)
        if (what := _unlike_plain(status)) is None:
            continue
        if stat.S_ISDIR(status.st_mode) and place + name in kept:
            inner = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=held)
            try:
                found += _swept(inner, f"{place}{name}/", kept)
            finally:
                os.close(inner)
            continue
        if stat.S_ISDIR(status.st_mode):
            shutil.rmtree(name, dir_fd=held)
        else:
            os.unlink(name, dir_fd=held)
        found.append(f"'{place}{name}' is {what}")
    return found


def opener(path: str, flags: int) -> int:
    """For `open(path, mode, opener=opener)`: OSError unless it is a regular file with one name, or a new one."""
    # Emptied only when it is known to be the right file; a FIFO may not make the call wait.
    wanted = flags & ~os.O_TRUNC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    file = os.open(path, wanted, 0o666)
    try:
        status = os.fstat(file)
        if (what := _unlike_plain(status)) is not None:
            raise OSError(errno.EINVAL, f"is {what}, not a regular file", path)  # noqa: TRY301
        if flags & os.O_TRUNC and status.st_size:
            os.ftruncate(file, 0)
    except BaseException:
        os.close(file)
        raise
    return file


def plain_opened(path: Path, mode: Literal["rb", "r+b"] = "rb", most: int | None = None) -> BinaryIO:
    """Open for reading, with `r+b` for changing it too.

    RunError if it is missing, not a regular file with one name, or larger than `most` bytes.
    """
    try:
        file = open(path, mode, opener=opener)  # noqa: SIM115 (the caller closes it)
    except OSError as error:
        why = "is a symbolic link, not a regular file" if error.errno == errno.ELOOP else error.strerror
        raise RunError(f"{path.name}: {why}") from error
    size = os.fstat(file.fileno()).st_size
    if most is not None and size > most:
        file.close()
        raise RunError(f"{path.name}: has {size:,} bytes; expected at most {most:,}")
    return file


def plain_bytes(path: Path, most: int = MOST_TEXT) -> bytes:
    """The whole file. RunError if it is not a regular file, or larger than `most` bytes."""
    with plain_opened(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise RunError(f"{path.name}: is larger than {most} bytes")
    return content


def plain_text(path: Path, most: int = MOST_TEXT) -> str:
    """The whole file, which has to be UTF-8; as `plain_bytes`."""
    try:
        return plain_bytes(path, most).decode()
    except UnicodeDecodeError as error:
        raise RunError(f"{path.name}: not UTF-8: {error}") from error


def plain_last_line(path: Path, most: int = MOST_TEXT) -> str:
    """The last line of a text of any length, without its end. RunError as in `plain_text`."""
    with plain_opened(path) as file:
        tail = b""
        for block in _backwards(file):
            tail = block + tail
            if b"\n" in tail.rstrip(b"\n"):
                break
            if len(tail) > most:
                raise RunError(f"{path.name}: its last line is longer than {most} bytes")
    try:
        return tail.rstrip(b"\n").rpartition(b"\n")[2].decode()
    except UnicodeDecodeError as error:
        raise RunError(f"{path.name}: not UTF-8: {error}") from error


def _backwards(file: BinaryIO, size: int = 1 << 20) -> Iterator[bytes]:
    """The file's blocks, the last one first."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - size)
        file.seek(start)
        yield file.read(end - start)
        end = start


def _unlike_plain(status: os.stat_result) -> str | None:
    """What a file is that no guest has to leave; None for a regular file with one name."""
    if not stat.S_ISREG(status.st_mode):
        return _KINDS.get(stat.S_IFMT(status.st_mode), "a file of an unknown kind")
    if status.st_nlink > 1:
        return f"a hard link (the file has {status.st_nlink} names)"
    return None
