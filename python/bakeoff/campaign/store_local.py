"""A store in a folder: a run's files have a second name there, or a copy if the folder is on another disk.

Other users may write into a shared store, and a folder may be named as one by mistake. So no link below its root is
followed, and only what this module wrote, as this user, is replaced or removed.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bakeoff import files
from bakeoff.campaign import archive
from bakeoff.campaign.archive import DamagedError
from bakeoff.campaign.store import Content
from bakeoff.errors import RunError, StoreError
from bakeoff.results import layout
from bakeoff.results.write import take_place

LIMIT: Final = "BAKEOFF_STORE_LIMIT"
"""The environment variable that bounds a store in a folder, in bytes."""
_LIMIT: Final = 4_000_000_000
_TOTAL: Final = "bytes"
"""The file that says how much is stored. Who adds to the store takes it away, and puts a new one when he ends."""
_NUMBER: Final = re.compile(rb"\d{1,19}\n")
_SHARD: Final = re.compile(r"[0-9a-f]{2}")
_KEY: Final = re.compile(r"[0-9a-f]{64}")
_PARTIAL: Final = re.compile(r"\.[0-9a-f]{64}(\.removed|\.replaced)?\.\d+\.partial")
"""As `layout.partial_name` names what is being written or removed."""
_KEEP: Final = 0.8
"""What of the bound is left when the store is cut down."""
_NO_LINKS: Final = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES)
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, order=True)
class _Entry:
    """A stored run, by its manifest."""

    used_s: float
    """Its last use, since 1970."""
    bytes: int
    place: Path
    listed: archive.Listed


class LocalStore:
    """Runs as ROOT/KEY[:2]/KEY/, with a manifest. Several campaigns may use it at a time."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self._before: int | None = None
        """Bytes in the store before this one added anything, where that is known."""
        self._added: int | None = None

    @property
    def name(self) -> str:
        """The folder."""
        return str(self.root)

    def fetch(self, key: str, into: Path) -> None:
        """See `Store`."""
        path = self._place(key)
        if path.parent.is_symlink() or path.is_symlink():
            raise DamagedError(f"{path}: a link, or inside one")
        listed = _listed(path)
        for name, (size, digest) in listed.items():
            if (path / name).is_symlink():
                raise DamagedError(f"{name}: a link")
            archive.check(path / name, size, digest)
        for name in listed:
            _link(path / name, into / name)
        with suppress(OSError):  # of somebody else's store
            os.utime(path)

    def put(self, key: str, folder: Path) -> None:
        """See `Store`."""
        path = self._place(key)
        partial = path.with_name(layout.partial_name(key, os.getpid()))
        self._begin()
        if path.parent.is_symlink():
            raise StoreError(f"{path.parent}: a link; expected a folder")
        if os.path.lexists(path) and not _replaceable(path):
            raise StoreError(f"{path}: not a cached run of this user; move it away")
        try:
            partial.mkdir(parents=True)
            listed = archive.manifest(folder)
            for name in listed:
                _link(folder / name, partial / name)
            (partial / archive.MANIFEST).write_bytes(archive.written(listed))
            take_place(partial, path)
        finally:
            files.discard(partial)
        self._added = (self._added or 0) + sum(size for size, _ in listed.values())

    def close(self) -> None:
        """See `Store`."""
        if self._added is None:
            return
        most = limit()
        with suppress(OSError):  # what it holds stays, and the next one counts
            total = None if self._before is None else self._before + self._added
            if total is None or total > most:
                total = self._cut(most)
            self._note(total)
        self._added = self._before = None

    def content(self) -> Content:
        """How many runs there are, and the bytes of their files."""
        sizes = [entry.bytes for entry in self._entries()]
        return Content(len(sizes), sum(sizes))

    def empty(self) -> Content:
        """Remove all runs of this user's that are as they were stored, and give what that was.

        BakeoffError if the system refuses.
        """
        removed = [entry.bytes for entry in list(self._entries()) if self._removed(entry)]
        for shard in self._shards():
            with suppress(OSError):
                shard.rmdir()
        if self._total() is not None:
            (self.root / _TOTAL).unlink(missing_ok=True)
        return Content(len(removed), sum(removed))

    def _place(self, key: str) -> Path:
        return self.root / key[:2] / key

    def _begin(self) -> None:
        """Note what is stored, and leave nobody with a number that is about to be wrong, even if this process dies."""
        if self._added is not None:
            return
        self.root.mkdir(parents=True, exist_ok=True)
        self._before = self._total()
        if self._before is not None:
            with suppress(OSError):
                (self.root / _TOTAL).unlink()
        self._added = 0

    def _total(self) -> int | None:
        """What the file _TOTAL says; None if it is missing, or is none of bakeoff's."""
        with suppress(RunError):
            text = files.plain_bytes(self.root / _TOTAL, 64)
            return int(text) if _NUMBER.fullmatch(text) else None
        return None

    def _note(self, total: int) -> None:
        """Write the file _TOTAL, unless something else has its name."""
        path = self.root / _TOTAL
        if os.path.lexists(path) and self._total() is None:
            return
        partial = path.with_name(layout.partial_name(_TOTAL, os.getpid()))
        try:
            with open(partial, "xb", opener=files.opener) as file:
                file.write(b"%d\n" % total)
            partial.rename(path)
        finally:
            partial.unlink(missing_ok=True)

    def _cut(self, most: int) -> int:
        """Remove the runs whose last use is longest ago until the rest is well below the bound; the bytes of those."""
        entries = sorted(self._entries())
        total = sum(entry.bytes for entry in entries)
        if total <= most:
            return total
        for entry in entries:
            if total <= _KEEP * most:
                break
            if self._removed(entry):
                total -= entry.bytes
        return total

    def _removed(self, entry: _Entry) -> bool:
        """Remove a run; whether it was as this user had stored it, and is gone.

        It leaves under a name by which no other campaign takes it. Names in open folders only are removed, so that no
        link leads elsewhere that takes a folder's place meanwhile.
        """
        if not _own(entry):
            return False
        gone = layout.partial_name(f"{entry.place.name}.removed", os.getpid())
        try:
            with _opened(entry.place.parent) as shard:
                os.rename(entry.place.name, gone, src_dir_fd=shard, dst_dir_fd=shard)
                with _opened(gone, shard) as folder:
                    for name in (*entry.listed, archive.MANIFEST):
                        os.unlink(name, dir_fd=folder)
                os.rmdir(gone, dir_fd=shard)
        except FileNotFoundError:
            return False  # by another campaign
        except OSError as error:
            raise StoreError(f"{entry.place}: cannot be removed: {error.strerror or error}") from error
        return True

    def _shards(self) -> list[Path]:
        """The folders KEY[:2]."""
        with suppress(OSError), os.scandir(self.root) as entries:
            names = [each.name for each in entries if each.is_dir(follow_symlinks=False)]
            return [self.root / name for name in sorted(names) if _SHARD.fullmatch(name)]
        return []

    def _entries(self) -> Iterator[_Entry]:
        """Every stored run, by its name, kind and manifest; what a crash left half-written is none, and is removed."""
        for shard in self._shards():
            with suppress(OSError):
                for path in sorted(shard.iterdir()):
                    if _PARTIAL.fullmatch(path.name):
                        _discard_stale(path)
                    elif _KEY.fullmatch(path.name) and path.name.startswith(shard.name):
                        with suppress(OSError, DamagedError):
                            yield _entry(path)


def _entry(path: Path) -> _Entry:
    """DamagedError or OSError unless the folder holds just the regular files that its manifest lists."""
    listed = _listed(path)
    held = {each.name: each.stat(follow_symlinks=False) for each in os.scandir(path)}
    if held.keys() != {*listed, archive.MANIFEST} or not all(stat.S_ISREG(each.st_mode) for each in held.values()):
        raise DamagedError(f"{path}: files differ from the manifest")
    return _Entry(path.lstat().st_mtime, sum(size for size, _ in listed.values()), path, listed)


def _listed(folder: Path) -> archive.Listed:
    """What the manifest of a stored run lists; DamagedError if there is none that can be read."""
    path = folder / archive.MANIFEST
    if folder.is_symlink() or path.is_symlink():
        raise DamagedError(f"{path}: a link, or inside one")
    try:
        return archive.read_manifest(files.read(path, archive.LARGEST_MANIFEST))
    except OSError as error:
        raise DamagedError(f"{path}: {error.strerror}") from None


def _own(entry: _Entry) -> bool:
    """Whether the folder is this user's, and its files have the content that its manifest says."""
    with suppress(OSError, DamagedError):
        if entry.place.lstat().st_uid != os.geteuid():
            return False
        for name, (size, digest) in entry.listed.items():
            archive.check(entry.place / name, size, digest)
        return True
    return False


def _replaceable(path: Path) -> bool:
    """Whether what has the name of a stored run is one of this user's, maybe damaged: files, some of them a run's."""
    with suppress(OSError):
        found = path.lstat()
        held = list(os.scandir(path)) if stat.S_ISDIR(found.st_mode) else []
        names = {each.name for each in held}
        flat = not any(each.is_dir(follow_symlinks=False) for each in held)
        return found.st_uid == os.geteuid() and flat and {archive.MANIFEST, layout.RUN} & names != set()
    return False


def _discard_stale(path: Path) -> None:
    """Remove what a crash left half-written: a folder of this user's with regular files only."""
    with suppress(OSError), _opened(path) as folder:
        found = os.fstat(folder)
        names = os.listdir(folder)  # noqa: PTH208 (of a descriptor)
        kinds = [os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode for name in names]
        if found.st_uid != os.geteuid() or _age_s(found) <= _STALE_S or not all(map(stat.S_ISREG, kinds)):
            return
        for name in names:
            os.unlink(name, dir_fd=folder)
        path.rmdir()


@contextmanager
def _opened(folder: Path | str, within: int | None = None) -> Iterator[int]:
    """A descriptor of a folder that is no link; OSError otherwise."""
    descriptor = os.open(folder, _FOLDER, dir_fd=within)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


_STALE_S: Final = 3600.0
"""Another campaign may be writing what is younger."""


def _age_s(found: os.stat_result) -> float:
    import time

    return time.time() - found.st_mtime


def _link(source: Path, target: Path) -> None:
    """Give the file a second name, or copy it where that cannot be."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        shutil.copyfile(source, target, follow_symlinks=False)


def limit() -> int:
    """Bytes that a store in a folder may take."""
    text = os.environ.get(LIMIT, "")
    if not text:
        return _LIMIT
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise StoreError(f"{LIMIT}: '{text}'; expected a number of bytes such as {_LIMIT}")
    return int(text)
