"""Files of a run that a page links: copies, small and with equal bytes for equal runs."""

from __future__ import annotations

import gzip
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff import exports, files
from bakeoff.errors import BakeoffError, RenderError
from bakeoff.results import captures, layout

if TYPE_CHECKING:
    from bakeoff.results import Result

LOGS: Final = (layout.SETUP_LOG, layout.TEARDOWN_LOG, "console.log")
LARGEST: Final = 512 << 20
"""Bytes of a log or a capture."""


@dataclass(frozen=True)
class RunFile:
    """A file that goes beside the page."""

    name: str
    """After the run's name."""
    content: bytes


def log(result: Result, name: str) -> RunFile:
    """One of `LOGS`. BakeoffError if the run has no such log."""
    have = [log for log in LOGS if (result.path / log).is_file()]
    if name not in have:
        raise RenderError(f"{result.key}: no log '{name}'; expected one of: {', '.join(have) or 'none'}")
    return RunFile(name, _read(result.path / name))


def capture(result: Result, interface: str | None) -> RunFile:
    """The run's only capture, or that of an interface, compressed. BakeoffError if there is none, or several."""
    found = captures.of_folder(result.path)
    if interface is not None:
        own = layout.capture(interface)
        found = [path for path in found if path.name in (own, f"{own}.gz", layout.both_ways(interface))]
    if len(found) != 1:
        have = ", ".join(path.name for path in captures.of_folder(result.path))
        expected = f"one interface of: {have}" if have else "a run with --capture all"
        raise RenderError(f"{result.key}: {len(found)} captures; expected {expected}")
    content = _read(found[0])
    if found[0].suffix == ".pcapng":
        return RunFile(f"{found[0].name}.gz", gzip.compress(content, 6, mtime=0))
    return RunFile(found[0].name, content)


def flent(result: Result) -> RunFile:
    """Flent's data file. BakeoffError if the run has nothing for it."""
    try:
        [(suffix, content)] = exports.form("flent").files(result)
    except BakeoffError as error:
        raise RenderError(f"{result.key}: {error}") from None
    return RunFile(suffix, content)


def _read(path: Path) -> bytes:
    try:
        return files.read(path, LARGEST)
    except OSError as error:
        raise RenderError(f"{path}: cannot be read: {error.strerror or error}") from None
