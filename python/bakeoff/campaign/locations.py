"""Where campaigns lie below the working directory: results/NAME, and NAME in results/duels, advise and evaluate.

A link in each leads to the newest.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from bakeoff.errors import CampaignError

RESULTS: Final = Path("results")
LATEST: Final = RESULTS / "latest"
"""The last `bakeoff run`."""
DUELS: Final = RESULTS / "duels"
LATEST_DUEL: Final = DUELS / "latest"
ADVICE: Final = RESULTS / "advise"
LATEST_ADVICE: Final = ADVICE / "latest"
EVALUATION: Final = RESULTS / "evaluate"
LATEST_EVALUATION: Final = EVALUATION / "latest"
VERIFY: Final = RESULTS / "verify"
"""Where `bakeoff verify` keeps its runs, a folder for each engine."""
TAKEN: Final = (LATEST.name, DUELS.name, ADVICE.name, EVALUATION.name, VERIFY.name)
"""Names below results/ that no campaign can have."""


def new_folder(below: Path = RESULTS) -> Path:
    """A path that is not taken, named by the wall clock: results/2026-11-21T22-35-10."""
    name = time.strftime("%Y-%m-%dT%H-%M-%S")
    folder = below / name
    count = 1
    while folder.exists():
        count += 1
        folder = below / f"{name}.{count}"
    return folder


def link_latest(link: Path, root: Path) -> None:
    """Make `link` (LATEST, LATEST_DUEL) lead to the campaign in `root`.

    A convenience: where it cannot be made (read-only directory, something else has the name) it is left.
    """
    partial = link.with_name(f".{link.name}.{os.getpid()}")
    with suppress(OSError):
        link.parent.mkdir(parents=True, exist_ok=True)
        if link.is_symlink() or not link.exists():
            partial.symlink_to(os.path.relpath(root.resolve(), link.parent.resolve()))
            partial.replace(link)
    with suppress(OSError):
        partial.unlink()


def latest() -> Path:
    """The folder of the last `bakeoff run`. BakeoffError if there is none yet."""
    if not LATEST.is_dir():
        raise CampaignError(
            f"{LATEST}: no campaign; expected a results folder, or create one: bakeoff run 'l4s-tests/s6*'"
        )
    return Path(os.path.relpath(LATEST.resolve()))
