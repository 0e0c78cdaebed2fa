"""The store: whole runs under the hash of all that decides what comes out, so that no run is done twice.

A run is stored when it has ended well, and taken when the same is asked for again. What is taken has the same bytes in
every file but run.json, which says that it was taken, from where, and when it was made. docs/campaigns.md is the
description for users.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from bakeoff import files
from bakeoff.engines.kernel import cache as folders
from bakeoff.scenario.python_cc import PREFIX
from bakeoff.version import MODEL_EPOCH

if TYPE_CHECKING:
    from bakeoff.campaign.worker import Also
    from bakeoff.results import Kept
    from bakeoff.scenario import Run

PLACE: Final = "BAKEOFF_STORE"
"""The environment variable that names the store where no option does: a path, a URL, or `none`."""
NONE: Final = "none"
MANIFEST: Final = "stored.json"
"""What a stored run's files are, with their sizes and SHA-256 sums."""
_FORM: Final = 1
_PACKAGE: Final = Path(__file__).parents[1]
_DECIDING: Final = ("engines", "measure", "results", "campaign/worker.py", "tc.py")
"""What of this package decides the content of a result, besides the simulator."""
LARGEST_MANIFEST: Final = 1 << 20


@dataclass(frozen=True)
class Content:
    """How much a store holds."""

    runs: int
    bytes: int


class NotStoredError(Exception):
    """The store has no such run, or not as it was stored."""


class Store(Protocol):
    """Where runs lie by their keys."""

    @property
    def name(self) -> str:
        """The path or URL, without a password."""

    def fetch(self, key: str, into: Path) -> None:
        """Put the stored run's files into the folder `into`. NotStoredError if there is none, or a damaged one."""

    def put(self, key: str, folder: Path) -> None:
        """Keep what is in the folder. OSError or BakeoffError if the place refuses."""

    def content(self) -> Content:
        """How many runs there are, and the bytes of their files."""

    def empty(self) -> Content:
        """Remove all runs, and give what there was. BakeoffError if the place refuses."""

    def close(self) -> None:
        """Wait for what is under way, and keep to the bound. BakeoffError says what was not kept."""


def opened(place: str | None = None) -> Store | None:
    """The store at a path or URL; by default the one that BAKEOFF_STORE names, or the user's own.

    None for `none`. BakeoffError for a URL that cannot be a store.
    """
    place = place or os.environ.get(PLACE) or str(default())
    if place == NONE:
        return None
    if re.match(r"[A-Za-z][\w+.-]*(://|::)", place):
        from bakeoff.campaign.store_remote import RemoteStore

        return RemoteStore(place)
    from bakeoff.campaign.store_local import LocalStore

    return LocalStore(Path(place).expanduser())


def default() -> Path:
    """The user's own store, in the cache folder."""
    return folders.root() / "runs"


def key(run: Run, engine: str, versions: dict[str, str], kept: Kept = "all", also: Also | None = None) -> str | None:
    """The SHA-256 (hex) of all that decides what comes out of the run; None if the document does not decide it.

    The resolved run (with the seed, traces, captures, and the SHA-256 of files of Python), the engine and the versions
    that it tells, the model epoch, the code that simulates, runs and measures, and what is kept and taken of the run.
    """
    # A class object's source text is not all that its hooks may use.
    if any(flow.cc.startswith(PREFIX) for flow in run.flows):
        return None
    decides = {
        "form": _FORM,
        "run": json.loads(run.to_json()),
        "engine": engine.partition(":")[0],
        "versions": versions,
        "epoch": MODEL_EPOCH,
        "code": code(),
        "kept": kept,
        "also": also and hashlib.sha256(pickle.dumps(also)).hexdigest(),
    }
    return hashlib.sha256(json.dumps(decides, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


@cache
def code() -> str:
    """SHA-256 (hex) of the simulator as it was built, and of the Python that runs and measures.

    Versions change with releases only, and somebody who changes code wants to see what it does.
    """
    from bakeoff import _sim

    sha = hashlib.sha256()
    paths = [path for name in _DECIDING for path in [_PACKAGE / name, *sorted((_PACKAGE / name).rglob("*.py"))]]
    for path in [Path(_sim.__file__), *(path for path in paths if path.is_file())]:
        sha.update(hashlib.sha256(path.read_bytes()).digest())
    return sha.hexdigest()


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
    """What `written` gave. NotStoredError if it is no such file, or names what is no plain file's name."""
    try:
        listed = json.loads(text)["files"].items()
        found = {str(name): (int(of["bytes"]), str(of["sha256"])) for name, of in listed}
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise NotStoredError(f"{MANIFEST}: {error}") from None
    for name in found:
        if not name.isprintable() or "/" in name or name.startswith(".") or name in ("", MANIFEST):
            raise NotStoredError(f"{MANIFEST}: '{name}' is no name of a file")
    return found


def check(path: Path, size: int, digest: str) -> None:
    """NotStoredError unless the file has this content."""
    try:
        content = files.read(path, size)
    except OSError as error:
        raise NotStoredError(f"{path.name}: {error.strerror}") from None
    if len(content) != size or hashlib.sha256(content).hexdigest() != digest:
        raise NotStoredError(f"{path.name}: is not what was stored")
