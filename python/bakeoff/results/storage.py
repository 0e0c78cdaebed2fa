"""Disk usage of results, and their removal."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff.errors import ResultsError
from bakeoff.results import dataset, layout
from bakeoff.results.read import read_campaign, survey

if TYPE_CHECKING:
    from collections.abc import Collection

    from bakeoff.results.metadata import CampaignRecord
    from bakeoff.results.read import Survey


@dataclass(frozen=True)
class Stored:
    """A campaign folder and its contents."""

    path: Path
    record: CampaignRecord | None
    """None for a campaign of before campaigns said what they are."""
    content: Survey
    bytes: int
    """Of all files below the folder."""


def campaigns(below: Path, leave: Collection[Path] = ()) -> list[Stored]:
    """The campaigns in the folders directly below `below`, but for those to `leave`, in order of name.

    Links are left out.
    """
    if not below.is_dir():
        return []
    found = []
    for path in sorted(below.iterdir()):
        if path.is_symlink() or not path.is_dir() or path in leave:
            continue
        content = survey(path)
        if (path / layout.CAMPAIGN).exists() or content.results or content.half_written:
            found.append(Stored(path, read_campaign(path), content, size(path)))
    return found


def size(path: Path) -> int:
    """Bytes of all files at or below `path`; links count themselves, not what they lead to."""
    total = 0
    for parent, _, files in os.walk(path):
        for file in files:
            total += os.lstat(Path(parent) / file).st_size
    return total


def removable(path: Path) -> str:
    """What the folder is: `campaign`, `run` or `half-written run`. BakeoffError if it is none, or holds other files."""
    if path.is_symlink():
        raise ResultsError(f"{path}: a link; expected its target, {path.resolve()}")
    if not path.is_dir():
        raise ResultsError(f"{path}: no such results folder")
    if (path / layout.RUN).is_file():
        return "run"
    if layout.is_partial(path.name):
        return "half-written run"
    content = survey(path)
    places = [result.path for result in content.results] + [each for each, _ in content.half_written]
    below = {len(folder.relative_to(path).parts) for folder in places}
    if not (path / layout.CAMPAIGN).is_file() and below != {3}:
        raise ResultsError(f"{path}: not a results folder; expected {layout.CAMPAIGN} or suite/scenario/run")
    _refuse_foreign(path, places)
    return "campaign"


def remove(path: Path) -> None:
    """Remove a folder that `removable` accepts. BakeoffError otherwise, or if the system refuses."""
    removable(path)
    try:
        shutil.rmtree(path)
    except OSError as error:
        raise ResultsError(f"{path}: cannot be removed: {error.strerror or error}") from error


def _refuse_foreign(root: Path, runs: list[Path]) -> None:
    """BakeoffError if files lie between the campaign's folder and its runs that bakeoff does not write there."""
    own = set(runs)
    for parent, folders, files in os.walk(root):
        here = Path(parent)
        derived = (dataset.FOLDER,) if here == root else ()
        folders[:] = [name for name in folders if here / name not in own and name not in derived]
        for name in files:
            mode = os.lstat(here / name).st_mode
            known = here == root and (name == layout.CAMPAIGN or name.startswith("."))
            if not known and not (stat.S_ISREG(mode) and name.endswith((".lock", ".partial"))):
                raise ResultsError(f"{root}: contains {here / name}, which is not a result; move it away")
