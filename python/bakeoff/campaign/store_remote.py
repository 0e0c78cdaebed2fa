"""A store behind a URL: a run is one tar file, so that it comes and goes with one request."""

from __future__ import annotations

import re
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Final

from bakeoff.campaign.archive import DamagedError, check_archive, packed, unpack
from bakeoff.campaign.store import Content
from bakeoff.errors import BakeoffError
from bakeoff.results.remote import Elsewhere

_SUFFIX: Final = ".tar"
_STORED: Final = re.compile(r"([0-9a-f]{2})/\1[0-9a-f]{62}\.tar")
_AT_A_TIME: Final = 4


class RemoteStore:
    """Runs as URL/KEY[:2]/KEY.tar. Uploads go on beside the runs; `close` waits for them."""

    def __init__(self, url: str) -> None:
        self._there = Elsewhere(url)
        self._held = self._sizes()
        self._pool = ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="store")
        self._under_way: list[Future[None]] = []
        # A driver's file system is not made for several threads.
        self._turn = threading.Lock()

    @property
    def name(self) -> str:
        """The URL, without a password."""
        return self._there.url

    def fetch(self, key: str, into: Path) -> None:
        """See `Store`."""
        name = _file(key)
        if name not in self._held:
            raise DamagedError(key)
        try:
            with self._turn, self._there.opened(name) as archive:
                unpack(archive, into)
        except BakeoffError as error:
            raise DamagedError(str(error)) from None

    def put(self, key: str, folder: Path) -> None:
        """See `Store`."""
        content = packed(folder)  # now: what is in the folder may be moved later
        self._under_way.append(self._pool.submit(self._upload, _file(key), content))

    def close(self) -> None:
        """See `Store`."""
        self._pool.shutdown()
        for upload in self._under_way:
            upload.result()

    def content(self) -> Content:
        """How many runs there are, and the bytes of their files."""
        sizes = self._sizes().values()
        return Content(len(sizes), sum(sizes))

    def empty(self) -> Content:
        """Remove all runs that are as they were stored, and give what that was. It reads every archive."""
        removed = [(name, size) for name, size in self._sizes().items() if self._whole(name)]
        self._there.remove(name for name, _ in removed)
        return Content(len(removed), sum(size for _, size in removed))

    def _sizes(self) -> dict[str, int]:
        """The bytes of every file that is named as a stored run is."""
        return {name: size for name, size in self._there.sizes().items() if _STORED.fullmatch(name)}

    def _whole(self, name: str) -> bool:
        try:
            with self._turn, self._there.opened(name) as archive:
                check_archive(archive)
        except BakeoffError:
            return False
        return True

    def _upload(self, name: str, content: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="bakeoff-") as folder:
            file = Path(folder, "upload")
            file.write_bytes(content)
            with self._turn:
                self._there.put({name: file})


def _file(key: str) -> str:
    return f"{key[:2]}/{key}{_SUFFIX}"
