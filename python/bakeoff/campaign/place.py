"""Where campaigns lie: results/NAME below the working directory, and results/latest for the newest."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from bakeoff.errors import BakeoffError

RESULTS: Final = Path("results")
LATEST: Final = RESULTS / "latest"


def new_folder(prefix: str = "") -> Path:
    """A path below results/ that is not taken, named by the wall clock: results/PREFIX2026-11-21T22-35-10."""
    name = prefix + time.strftime("%Y-%m-%dT%H-%M-%S")
    folder = RESULTS / name
    count = 1
    while folder.exists():
        count += 1
        folder = RESULTS / f"{name}.{count}"
    return folder


def point_latest(root: Path) -> None:
    """Make results/latest lead to the campaign in `root`.

    A convenience: where it cannot be made (read-only directory, something else has the name) it is left.
    """
    link = RESULTS / f".latest.{os.getpid()}"
    with suppress(OSError):
        RESULTS.mkdir(exist_ok=True)
        if LATEST.is_symlink() or not LATEST.exists():
            link.symlink_to(os.path.relpath(root.resolve(), RESULTS.resolve()))
            link.replace(LATEST)
    with suppress(OSError):
        link.unlink()


def latest() -> Path:
    """The newest campaign's folder. BakeoffError if there is none yet."""
    if not LATEST.is_dir():
        raise BakeoffError(
            f"{LATEST}: no campaign yet; make one: bakeoff run 'l4s-tests/s6*', or give the results folder"
        )
    return Path(os.path.relpath(LATEST.resolve()))
