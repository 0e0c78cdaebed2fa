"""A run's files with their sizes and SHA-256 sums, so that a copy from elsewhere is known to be whole."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from pathlib import Path
from typing import Final

from bakeoff import files

MANIFEST: Final = "stored.json"
"""What a run's files are, with their sizes and SHA-256 sums."""
LARGEST_MANIFEST: Final = 1 << 20
_FORM: Final = 1
_LARGEST: Final = 1 << 32
"""Bytes of a file: a stranger's archive is not unpacked without an end."""


class DamagedError(Exception):
    """There is no such run, or not as it was packed."""


def manifest(folder: Path) -> dict[str, tuple[int, str]]:
    """Size and SHA-256 of each file of a run's results; links and folders are none of them."""
    found = {}
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.is_file(follow_symlinks=False) and entry.name != MANIFEST:
            content = Path(entry.path).read_bytes()
            found[entry.name] = len(content), hashlib.sha256(content).hexdigest()
    return found


def written(found: dict[str, tuple[int, str]]) -> bytes:
    """The manifest as a file."""
    listed = {name: {"bytes": size, "sha256": digest} for name, (size, digest) in found.items()}
    return json.dumps({"format": _FORM, "files": listed}, indent=1).encode() + b"\n"


def read_manifest(text: bytes) -> dict[str, tuple[int, str]]:
    """What `written` gave. DamagedError if it is no such file, or names what is no plain file's name."""
    try:
        listed = json.loads(text)["files"].items()
        found = {str(name): (int(of["bytes"]), str(of["sha256"])) for name, of in listed}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise DamagedError(f"{MANIFEST}: {error}") from None
    for name in found:
        if not name.isprintable() or "/" in name or name.startswith(".") or name in ("", MANIFEST):
            raise DamagedError(f"{MANIFEST}: '{name}' is no name of a file")
    return found


def check(path: Path, size: int, digest: str) -> None:
    """DamagedError unless the file has this content."""
    try:
        content = files.read(path, size)
    except OSError as error:
        raise DamagedError(f"{path.name}: {error.strerror}") from None
    if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
        raise DamagedError(f"{path.name}: is not what was stored")


def packed(folder: Path) -> bytes:
    """The files of a run's results and their manifest, as a tar file."""
    listed = manifest(folder)
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, content in [(MANIFEST, written(listed))] + [(name, (folder / name).read_bytes()) for name in listed]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return archive.getvalue()


def unpack(archive: bytes, into: Path) -> None:
    """Write the files of `packed` into a folder. DamagedError if it is no such archive, or is damaged."""
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            content = {member.name: _bytes(tar, member) for member in tar}
    except (tarfile.TarError, EOFError, ValueError) as error:
        raise DamagedError(str(error)) from None
    listed = read_manifest(content.pop(MANIFEST, b""))
    if content.keys() != listed.keys():
        raise DamagedError("the archive's files are not those of its manifest")
    for name, (size, digest) in listed.items():
        (into / name).write_bytes(content[name])
        check(into / name, size, digest)


def _bytes(tar: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    """Of a regular file: names lead nowhere, because only those of the manifest are used."""
    file = tar.extractfile(member) if member.isreg() and member.size <= _LARGEST else None
    if file is None:
        raise DamagedError(f"'{member.name}' is no regular file")
    return file.read()
