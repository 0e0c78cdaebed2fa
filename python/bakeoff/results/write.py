"""Write results folders atomically."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from bakeoff import files
from bakeoff.errors import ResultsError
from bakeoff.results import layout
from bakeoff.results.metadata import CampaignRecord, RunRecord

_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


@contextmanager
def writing(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that replaces `folder` when the block ends, and is removed if the block raises.

    BakeoffError for errors of the file system (full disk, no permission); earlier results stay untouched.
    """
    partial = folder.with_name(layout.partial_name(folder.name, os.getpid()))
    try:
        partial.mkdir(parents=True)
        yield partial
        take_place(partial, folder)
    except OSError as error:
        raise ResultsError(
            f"{folder}: cannot be written: {error.strerror or error}; this run is lost, earlier results were kept"
        ) from error
    finally:
        files.discard(partial)


def and_earlier(root: Path) -> str:
    """What a message that something went wrong in `root` says of the runs that are there: nothing if there are none."""
    return "; earlier results were kept" if any(root.rglob(layout.RUN)) else ""


def below(root: Path, key: str) -> Path:
    """The folder of the run `key` in the campaign's folder `root`.

    BakeoffError if the path contains a link, which an untrusted folder may have placed there.
    """
    folder = root / key
    for parent in folder.relative_to(root).parents:
        if (root / parent).is_symlink() and parent != Path():
            raise ResultsError(f"{root / parent}: a link; expected a folder of the campaign")
    return folder


def take_place(partial: Path, folder: Path) -> None:
    """Rename a whole folder beside `folder` to that name; what has it goes, unless the system refuses the renaming."""
    if folder.is_symlink():
        folder.unlink()  # not what it leads to
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
    files.discard(old)


def seal(partial: Path, record: RunRecord) -> None:
    """Write run.json beside what the engine left in `partial`.

    For a failed run, logs are kept, and samples, counters and measures removed. With only measures kept, everything
    else is removed.
    """
    if record.status == "failed":
        for name in (layout.SERIES, layout.TRACE, layout.COUNTERS, layout.SUMMARY, layout.MEASURED):
            (partial / name).unlink(missing_ok=True)
    elif record.kept == "measures":
        for path in partial.iterdir():
            if path.name not in (layout.SUMMARY, layout.MEASURED):
                path.unlink()
    write_json(partial / layout.RUN, record.to_json())


def write_campaign(root: Path, record: CampaignRecord) -> None:
    """Write campaign.json atomically."""
    path = root / layout.CAMPAIGN
    partial = path.with_name(layout.partial_name(path.name, os.getpid()))
    try:
        write_json(partial, record.to_json())
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)


def write_json(path: Path, content: object) -> None:
    """Write JSON for people and programs: indented, keys in the order given, NaN refused."""
    # In two steps: with an indent Python's encoder takes ten times as long.
    text = msgspec.json.format(_compact(content).encode(), indent=1)
    with open(path, "wb", opener=files.opener) as file:
        file.write(text + b"\n")


def discard_partials(root: Path) -> list[Path]:
    """Delete incomplete folders below `root` and return their paths; the caller must hold the campaign's lock."""
    partials = [
        Path(parent) / name
        for parent, folders, _ in os.walk(root)
        for name in sorted(folders)
        if layout.is_partial(name)
    ]
    for partial in partials:
        files.discard(partial)
    return partials
