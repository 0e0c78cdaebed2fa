"""Where built kernels, unpacked sources and borrowed programs lie: the user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path


def root() -> Path:
    """`$XDG_CACHE_HOME/bakeoff`, or `~/.cache/bakeoff`; not made by asking."""
    base = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification says that a relative path is to be ignored.
    home = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return home / "bakeoff"


def kernels() -> Path:
    """One folder per built kernel."""
    return root() / "kernels"


def sources() -> Path:
    """Unpacked tarballs and copies of trees that were built in place."""
    return root() / "sources"
