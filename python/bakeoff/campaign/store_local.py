"""A store in a folder: a run's files have a second name there, or a copy if the folder is on another disk."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from bakeoff import files
from bakeoff.campaign import archive
from bakeoff.campaign.archive import DamagedError
from bakeoff.campaign.store import Content
from bakeoff.errors import BakeoffError
from bakeoff.results import layout
from bakeoff.results.write import take_place

LIMIT: Final = "BAKEOFF_STORE_LIMIT"
"""The environment variable that bounds a store in a folder, in bytes."""
_LIMIT: Final = 4_000_000_000
_TOTAL: Final = "bytes"
"""The file that says how much is stored. Who adds to the store takes it away, and puts a new one when he ends."""
_SHELVES: Final = "[0-9a-f][0-9a-f]"
_KEEP: Final = 0.8
"""What of the bound is left when the store is cut down."""
_NO_LINKS: Final = (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP, errno.EACCES)


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
        place = self._place(key)
        try:
            listed = archive.read_manifest(files.read(place / archive.MANIFEST, archive.LARGEST_MANIFEST))
            for name, (size, digest) in listed.items():
                if (place / name).is_symlink():
                    raise DamagedError(f"{name}: is a link")
                archive.check(place / name, size, digest)
        except FileNotFoundError:
            raise DamagedError(key) from None
        except OSError as error:
            raise DamagedError(f"{error.filename}: {error.strerror}") from None
        for name in listed:
            _link(place / name, into / name)
        with suppress(OSError):  # of somebody else's store
            os.utime(place)

    def put(self, key: str, folder: Path) -> None:
        """See `Store`."""
        place = self._place(key)
        partial = place.with_name(layout.partial_name(key, os.getpid()))
        self._begin()
        try:
            partial.mkdir(parents=True)
            listed = archive.manifest(folder)
            for name in listed:
                _link(folder / name, partial / name)
            (partial / archive.MANIFEST).write_bytes(archive.written(listed))
            take_place(partial, place)
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
            (self.root / _TOTAL).write_text(f"{total}\n", encoding="ascii")
        self._added = self._before = None

    def content(self) -> Content:
        """How many runs there are, and the bytes of their files."""
        sizes = [size for _, size, _ in self._runs()]
        return Content(len(sizes), sum(sizes))

    def empty(self) -> Content:
        """Remove all runs, and give what there was. BakeoffError if the system refuses."""
        removed = 0
        total = 0
        for _, size, place in [*self._runs()]:
            self._remove(place)
            removed, total = removed + 1, total + size
        for shelf in self.root.glob(_SHELVES):
            with suppress(OSError):
                shelf.rmdir()
        with suppress(FileNotFoundError):
            (self.root / _TOTAL).unlink()
        return Content(removed, total)

    def _place(self, key: str) -> Path:
        return self.root / key[:2] / key

    def _begin(self) -> None:
        """Note what is stored, and leave nobody with a number that is about to be wrong, even if this process dies."""
        if self._added is not None:
            return
        self.root.mkdir(parents=True, exist_ok=True)
        total = self.root / _TOTAL
        with suppress(OSError, ValueError):
            self._before = int(total.read_text(encoding="ascii"))
            total.unlink()
        self._added = 0

    def _cut(self, most: int) -> int:
        """Remove the runs whose last use is longest ago until the rest is well below the bound; the bytes of those."""
        runs = sorted(self._runs())
        total = sum(size for _, size, _ in runs)
        if total <= most:
            return total
        for _, size, place in runs:
            if total <= _KEEP * most:
                break
            self._remove(place)
            total -= size
        return total

    def _remove(self, place: Path) -> None:
        """Remove a run under a name by which nobody takes it."""
        gone = place.with_name(layout.partial_name(f"{place.name}.removed", os.getpid()))
        try:
            place.rename(gone)
            shutil.rmtree(gone)
        except FileNotFoundError:
            pass  # by another campaign
        except OSError as error:
            raise BakeoffError(f"{place}: cannot be removed: {error.strerror or error}") from error

    def _runs(self) -> Iterator[tuple[float, int, Path]]:
        """Last use (s), bytes and place of every run; what a crash left half-written is none, and is removed."""
        for shelf in sorted(self.root.glob(_SHELVES)):
            for place in sorted(shelf.iterdir()):
                if layout.is_partial(place.name):
                    if _age_s(place) > _STALE_S:
                        files.discard(place)
                    continue
                with suppress(OSError):
                    size = sum(entry.stat(follow_symlinks=False).st_size for entry in os.scandir(place))
                    yield place.stat().st_mtime, size, place


_STALE_S: Final = 3600.0
"""Another campaign may be writing what is younger."""


def _age_s(place: Path) -> float:
    import time

    with suppress(OSError):
        return time.time() - place.stat().st_mtime
    return 0.0


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
        raise BakeoffError(f"{LIMIT}: '{text}'; expected a number of bytes such as {_LIMIT}")
    return int(text)
