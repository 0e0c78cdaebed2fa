"""Which bakeoff this is: its version, the commit it was made from, and the epoch of its models."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

MODEL_EPOCH: Final = 10
"""Changes when numbers may: results of different epochs are not compared without a word.

Whoever moves a number, in the simulator or in a measure, raises it by one (CONTRIBUTING.md, "Models").
"""

_PACKAGE: Final = Path(__file__).parent
_BUILT_FROM: Final = _PACKAGE / "built-from.txt"


@dataclass(frozen=True)
class Commit:
    """A state of the source: `dirty` if files that git knows had been changed since the commit."""

    id: str
    dirty: bool


@cache
def version() -> str:
    """The package's version; `0+source` if bakeoff is used from a tree and was never installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed("bakeoff")
    except PackageNotFoundError:
        return "0+source"


@cache
def commit() -> Commit | None:
    """The commit that this package comes from, or None if nothing says so.

    In a checkout git is asked; a wheel or sdist has it in built-from.txt (`make wheel` writes it); a package that pip
    installed from a repository has it in its metadata (PEP 610).
    """
    return _of_checkout() or _of_package() or _of_pip()


def _of_checkout() -> Commit | None:
    # A venv may lie inside of somebody else's repository: only the one that has the package in its place is ours.
    answer = _git("rev-parse", "--show-toplevel", "HEAD")
    if answer is None:
        return None
    top, _, id_ = answer.strip().partition("\n")
    if Path(top) / "python" / "bakeoff" != _PACKAGE.resolve():
        return None
    return Commit(id_, dirty=bool(_git("status", "--porcelain", "--untracked-files=no")))


def _git(*words: str) -> str | None:
    """What git answers; None if there is no git or no repository. It locks nothing, so that nobody's commit fails."""
    command = ["git", "-C", str(_PACKAGE), *words]
    # Inside of a hook git's variables name the repository that the hook belongs to.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment["GIT_OPTIONAL_LOCKS"] = "0"
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def _of_package() -> Commit | None:
    try:
        id_, _, state = _BUILT_FROM.read_text(encoding="ascii").strip().partition(" ")
    except (OSError, UnicodeDecodeError):
        return None
    return Commit(id_, dirty=state == "dirty") if id_ else None


def _of_pip() -> Commit | None:
    import json
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        text = distribution("bakeoff").read_text("direct_url.json")
        id_ = json.loads(text or "{}").get("vcs_info", {}).get("commit_id")
    except (PackageNotFoundError, ValueError, AttributeError, RecursionError):
        return None
    return Commit(id_, dirty=False) if isinstance(id_, str) else None
