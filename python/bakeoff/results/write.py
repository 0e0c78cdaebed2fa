"""Writing a results folder: whole or not at all."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bakeoff.errors import BakeoffError
from bakeoff.results import layout


@contextmanager
def writing(folder: Path) -> Iterator[Path]:
    """Give a fresh folder beside `folder`, which takes its place when the block ends and vanishes if the block raises.

    BakeoffError for what the file system refuses (a full disk, no permission), which leaves earlier results untouched.
    """
    partial = folder.with_name(layout.partial_name(folder.name, os.getpid()))
    try:
        partial.mkdir(parents=True)
        yield partial
        _take_place(partial, folder)
    except OSError as error:
        raise BakeoffError(
            f"{folder}: cannot be written: {error.strerror or error}; this run was not kept, earlier results were"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _take_place(partial: Path, folder: Path) -> None:
    if not folder.exists():
        partial.rename(folder)
        return
    # A folder that holds files cannot be renamed over. The old one leaves under a name that nobody takes for a result.
    old = folder.with_name(layout.partial_name(f"{folder.name}.replaced", os.getpid()))
    folder.rename(old)
    try:
        partial.rename(folder)
    except BaseException:
        old.rename(folder)
        raise
    shutil.rmtree(old, ignore_errors=True)


def seal(
    partial: Path,
    *,
    resolved: Mapping[str, Any],
    engine: str,
    versions: Mapping[str, str],
    wall_s: float,
    error: str | None = None,
    effective: Sequence[str] = (),
) -> None:
    """Write run.json beside what the engine left in `partial`.

    `effective`: notes on what was in effect and differs from what `resolved` asks for.
    With an `error` the run is `failed`: samples, counters and measures go, the logs stay.
    """
    if error is not None:
        for name in (layout.SERIES, layout.TRACE, layout.COUNTERS, layout.SUMMARY):
            (partial / name).unlink(missing_ok=True)
    write_json(
        partial / layout.RUN,
        {
            "format": layout.FORMAT,
            "resolved": resolved,
            "engine": engine,
            "versions": dict(versions),
            "seed": resolved["seed"],
            "digest": None if error is not None else _digest(partial / layout.SERIES),
            "status": "ok" if error is None else "failed",
            "wall_s": round(wall_s, 6),
            "error": error,
            **({"effective": list(effective)} if effective else {}),
        },
    )


def write(
    folder: Path,
    fill: Callable[[Path], None],
    *,
    resolved: Mapping[str, Any],
    engine: str,
    versions: Mapping[str, str],
    wall_s: float = 0.0,
    error: str | None = None,
) -> None:
    """Write a whole results folder at once: what `fill` puts into it, then run.json (see `seal`)."""
    with writing(folder) as partial:
        fill(partial)
        seal(partial, resolved=resolved, engine=engine, versions=versions, wall_s=wall_s, error=error)


def write_json(path: Path, content: object) -> None:
    """Write JSON for people and programs: indented, keys in the order given, NaN refused."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def discard_partials(root: Path) -> list[Path]:
    """Delete the half-written folders below `root` and return their paths; only for who holds the campaign's lock."""
    partials = [
        Path(parent) / name
        for parent, folders, _ in os.walk(root)
        for name in sorted(folders)
        if layout.is_partial(name)
    ]
    for partial in partials:
        shutil.rmtree(partial, ignore_errors=True)
    return partials


def _digest(path: Path) -> str:
    from bakeoff.results.series import digest, read_series

    return digest(read_series(path))
