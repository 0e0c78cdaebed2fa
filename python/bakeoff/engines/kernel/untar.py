"""Unpacking a tarball that anybody may have made: plain files, folders and links inside of it, and nothing else."""

from __future__ import annotations

import lzma
import subprocess
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, Self

from bakeoff.errors import KernelError

# Linux 7.3 has 95,000 files with 1.6 GB.
MOST_BYTES: Final = 16 << 30
MOST_FILES: Final = 1_000_000
# Of a header that says more of the next member, such as its long name: it is read whole, whatever it says it has.
MOST_HEADER: Final = 1 << 20
_HEADERS: Final = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)


class _Member(tarfile.TarInfo):
    """A member whose extended headers have a bound."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        member = super().frombuf(buf, encoding, errors)
        if member.type in _HEADERS and member.size > MOST_HEADER:
            raise tarfile.ReadError(f"a header of {member.size:,} bytes; expected at most {MOST_HEADER:,}")
        return member


def unpack(tarball: Path, folder: Path) -> None:
    """Unpack `tarball` into `folder`, which is empty. BakeoffError names what it may not hold, or why it is no tarball.

    Absolute names, `..`, devices, pipes, and links that lead out of the folder are refused; set-user-id bits are
    dropped, and everything belongs to the user. Nothing is written through a link.
    """
    if not hasattr(tarfile, "data_filter"):
        raise KernelError(f"{tarball}: needs safe unpacking; expected Python 3.11.4 or later")
    links: set[str] = set()
    size = 0
    try:
        with _opened(tarball) as tar:
            for number, member in enumerate(tar, 1):
                size += member.size
                if number > MOST_FILES or size > MOST_BYTES:
                    raise KernelError(
                        f"{tarball}: unpacks to more than {MOST_BYTES:,} bytes or {MOST_FILES:,} files; "
                        "expected a Linux source tree"
                    )
                _need_inside(tarball, member, links)
                tar.extract(member, folder, filter="data")
    except (tarfile.TarError, OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise KernelError(f"{tarball}: cannot be unpacked: {error}") from None


def _need_inside(tarball: Path, member: tarfile.TarInfo, links: set[str]) -> None:
    """BakeoffError unless the name is a plain relative one, and none of its folders is a link of the tarball."""
    parts = [part for part in member.name.split("/") if part not in ("", ".")]
    if member.name.startswith("/") or ".." in parts:
        raise KernelError(f"{tarball}: contains '{member.name[:200]}'; expected names in one folder, without '..'")
    # Python's filter asks where a link leads; this does not depend on the answer.
    if any("/".join(parts[:count]) in links for count in range(1, len(parts) + 1)):
        raise KernelError(f"{tarball}: contains '{member.name[:200]}' inside a link; expected a folder")
    if member.issym():
        links.add("/".join(parts))


@contextmanager
def _opened(tarball: Path) -> Iterator[tarfile.TarFile]:
    if not tarball.name.endswith("zst"):
        with tarfile.open(tarball, "r|*", tarinfo=_Member) as tar:
            yield tar
        return
    with _unzstd(tarball) as stream, tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as tar:
        yield tar


@contextmanager
def _unzstd(tarball: Path) -> Iterator[IO[bytes]]:
    """The unpacked bytes, of the program `zstd`: Python reads this format from 3.14 on."""
    try:
        process = subprocess.Popen(
            ["zstd", "-dcq", "--", str(tarball.resolve())], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except FileNotFoundError:
        raise KernelError(f"{tarball}: zstd is not installed; install: zstd") from None
    with process:
        assert process.stdout is not None
        try:
            yield process.stdout
        finally:
            process.kill()
