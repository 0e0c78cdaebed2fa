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
_FORM: Final = 1
_PACKAGE: Final = Path(__file__).parents[1]
_DECIDING: Final = ("engines", "measure", "results", "campaign/worker.py", "tc.py")
"""What of this package decides the content of a result, besides the simulator."""


@dataclass(frozen=True)
class Content:
    """How much a store holds."""

    runs: int
    bytes: int


class Store(Protocol):
    """Where runs lie by their keys."""

    @property
    def name(self) -> str:
        """The path or URL, without a password."""

    def fetch(self, key: str, into: Path) -> None:
        """Put the stored run's files into the folder `into`. DamagedError if there is none, or not as it was stored."""

    def put(self, key: str, folder: Path) -> None:
        """Keep what is in the folder. OSError or BakeoffError if the place refuses."""

    def content(self) -> Content:
        """How many runs there are, and the bytes of their files."""

    def empty(self) -> Content:
        """Remove all runs, and give what there was. BakeoffError if the place refuses."""

    def close(self) -> None:
        """Wait for what is under way, and keep to the bound. BakeoffError says what was not kept."""


def place(named: str | None = None) -> str | None:
    """The path or URL of the store; by default the one that BAKEOFF_STORE names, or the user's own. None for `none`."""
    found = named or os.environ.get(PLACE) or str(default())
    return None if found == NONE else found


def opened(named: str | None = None) -> Store | None:
    """The store at a path or URL, otherwise as `place`. BakeoffError for a URL that cannot be a store."""
    at = place(named)
    return None if at is None else at_place(at)


def at_place(location: str) -> Store:
    """The store at a path or URL. BakeoffError for a URL that cannot be a store."""
    if re.match(r"[A-Za-z][\w+.-]*(://|::)", location):
        from bakeoff.campaign.store_remote import RemoteStore

        return RemoteStore(location)
    from bakeoff.campaign.store_local import LocalStore

    return LocalStore(Path(location).expanduser())


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
    # Nor does the document hold the programs that it names.
    if run.programs:
        return None
    decides = {
        "form": _FORM,
        "run": run.model_dump(mode="json"),
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
