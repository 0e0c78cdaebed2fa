"""A run's files with their sizes and SHA-256 sums, so that a copy from elsewhere is known to be whole."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Final, Literal, Protocol

import msgspec

from bakeoff import files
from bakeoff.errors import StoreError
from bakeoff.results import layout

MANIFEST: Final = "stored.json"
"""The names of a run's files, with their sizes and SHA-256 sums."""
LARGEST_MANIFEST: Final = 1 << 20
_LARGEST: Final = 1 << 32
"""Bytes of a file."""
_LARGEST_RUN: Final = 1 << 34
"""Bytes of all files of a run."""
_BLOCK: Final = tarfile.BLOCKSIZE
_CHUNK: Final = 1 << 20

Listed = dict[str, tuple[int, str]]
"""Size and SHA-256 of each file of a run by name."""


class Readable(Protocol):
    """An archive that comes part by part."""

    def read(self, count: int, /) -> bytes:
        """The next bytes, at most so many; none at the end."""


class DamagedError(StoreError):
    """There is no such run, or not as it was packed."""


class _File(msgspec.Struct):
    bytes: Annotated[int, msgspec.Meta(ge=0, le=_LARGEST)]
    sha256: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class _Manifest(msgspec.Struct):
    format: Literal[1]
    files: dict[str, _File]


def manifest(folder: Path) -> Listed:
    """Size and SHA-256 of each file of a run's results, without links and folders.

    BakeoffError if `read_manifest` would refuse it: a run of more than 16 GiB, or a file of more than 4 GiB.
    """
    found = {}
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.is_file(follow_symlinks=False) and entry.name != MANIFEST:
            with files.opened(entry.path) as file:
                found[entry.name] = entry.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest()
    try:
        return read_manifest(written(found))
    except (DamagedError, UnicodeEncodeError) as error:
        raise StoreError(f"{folder}: cannot be stored: {error}") from None


def written(found: Listed) -> bytes:
    """The manifest as a file."""
    listed = {name: _File(size, digest) for name, (size, digest) in found.items()}
    return msgspec.json.format(msgspec.json.encode(_Manifest(1, listed)), indent=1) + b"\n"


def read_manifest(text: bytes) -> Listed:
    """What `written` gave.

    DamagedError for anything else: another form, more bytes than a run has, a name that is not a plain file's.
    """
    try:
        listed = msgspec.json.decode(text, type=_Manifest).files
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamagedError(f"{MANIFEST}: {error}") from None
    for name in listed:
        if not name.isprintable() or "/" in name or name.startswith(".") or name in ("", MANIFEST) or len(name) > 255:
            raise DamagedError(f"{MANIFEST}: invalid file name '{name}'")
    if layout.RUN not in listed:
        raise DamagedError(f"{MANIFEST}: missing {layout.RUN}")
    if sum(of.bytes for of in listed.values()) > _LARGEST_RUN:
        raise DamagedError(f"{MANIFEST}: lists more than {_LARGEST_RUN:,} bytes")
    return {name: (of.bytes, of.sha256) for name, of in listed.items()}


def check(path: Path, size: int, digest: str) -> None:
    """DamagedError unless the regular file at `path` has this content."""
    try:
        with files.opened(path) as file:
            if os.fstat(file.fileno()).st_size != size or hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise DamagedError(f"{path.name}: checksum mismatch")
    except OSError as error:
        raise DamagedError(f"{path.name}: {error.strerror}") from None


def packed(folder: Path) -> bytes:
    """The manifest of a run's results and its files in the manifest's order, as a tar file without any extension."""
    listed = manifest(folder)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        _add(tar, MANIFEST, written(listed))
        for name in listed:
            _add(tar, name, (folder / name).read_bytes())
    return archive.getvalue()


def unpack(archive: Readable, into: Path) -> None:
    """Write the files of `packed` into a folder. DamagedError if it is no such archive, or is damaged."""

    def write(name: str, content: Iterable[bytes]) -> None:
        with (into / name).open("xb") as file:
            file.writelines(content)

    _read(archive, write)


def check_archive(archive: Readable) -> None:
    """DamagedError unless it is what `packed` gave."""

    def pass_over(_: str, content: Iterable[bytes]) -> None:
        for _chunk in content:
            pass

    _read(archive, pass_over)


def _read(archive: Readable, take: Callable[[str, Iterable[bytes]], None]) -> None:
    """Give each file's name and content to `take`; no more is read, or held, than the manifest says.

    The headers are read here: tarfile would unfold compression, sparse members and long extended headers in memory.
    """
    size = _header(archive, MANIFEST)
    if size > LARGEST_MANIFEST:
        raise DamagedError(f"{MANIFEST}: has {size:,} bytes")
    for name, (expected, digest) in read_manifest(b"".join(_content(archive, size))).items():
        if _header(archive, name) != expected:
            raise DamagedError(f"{name}: size differs from the manifest")
        sha = hashlib.sha256()
        take(name, _hashed(_content(archive, expected), sha.update))
        if sha.hexdigest() != digest:
            raise DamagedError(f"{name}: checksum mismatch")
    if _bytes(archive, _BLOCK).strip(b"\0"):
        raise DamagedError("the archive is larger than its manifest states")


def _header(archive: Readable, name: str) -> int:
    """The size of the next member, which has to be a regular file of this name."""
    try:
        member = tarfile.TarInfo.frombuf(_bytes(archive, _BLOCK), "utf-8", "surrogateescape")
    except tarfile.TarError as error:
        raise DamagedError(f"missing header of '{name}': {error}") from None
    if member.type not in (tarfile.REGTYPE, tarfile.AREGTYPE) or member.name != _short(name) or member.size < 0:
        raise DamagedError(f"unexpected archive member '{member.name}'; expected the file '{name}'")
    return member.size


def _content(archive: Readable, size: int) -> Iterator[bytes]:
    """The bytes of a member, and past what fills up its last block."""
    left = size
    while left:
        chunk = archive.read(min(left, _CHUNK))
        if not chunk:
            raise DamagedError("the archive is truncated")
        left -= len(chunk)
        yield chunk
    _bytes(archive, -size % _BLOCK)


def _bytes(archive: Readable, count: int) -> bytes:
    """So many bytes, unless the archive ends before."""
    content = b""
    while len(content) < count and (more := archive.read(count - len(content))):
        content += more
    return content


def _hashed(content: Iterable[bytes], update: Callable[[bytes], None]) -> Iterator[bytes]:
    for chunk in content:
        update(chunk)
        yield chunk


def _short(name: str) -> str:
    """As much of the name as a header holds. The manifest has all of it."""
    return name.encode()[: tarfile.LENGTH_NAME].decode(errors="ignore")


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(_short(name))
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))
