"""The captures of a results folder, and their size limits; without one a capture could fill the disk."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from bakeoff.errors import ResultsError

OF_RUN: Final = "BAKEOFF_RUN_CAPTURES"
"""Raises or lowers `of_run`."""
OF_CAMPAIGN: Final = "BAKEOFF_CAMPAIGN_CAPTURES"
"""Raises or lowers `of_campaign`."""

SUFFIXES: Final = (".pcapng", ".pcapng.gz")
"""How names of captures end."""


def of_run() -> int:
    """Limit for the captures of one run on a real kernel (bytes); the simulator counts them in its memory budget."""
    return _from_env(OF_RUN, 4_000_000_000)


def of_campaign() -> int:
    """Bytes of all captures of a campaign."""
    return _from_env(OF_CAMPAIGN, 64_000_000_000)


def taken(folder: Path) -> int:
    """Bytes of the captures in a run's folder."""
    return sum(os.lstat(path).st_size for path in of_folder(folder))


def of_folder(folder: Path) -> list[Path]:
    """The captures in a run's folder, by name."""
    return sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIXES))


def _from_env(name: str, otherwise: int) -> int:
    text = os.environ.get(name, "")
    if not text:
        return otherwise
    if not (text.isascii() and text.isdigit()) or len(text) > 18:
        raise ResultsError(f"{name}: '{text}'; expected a number of bytes such as {otherwise}")
    return int(text)
