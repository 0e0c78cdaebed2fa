"""A campaign's results in a folder elsewhere: on another disk, behind ssh, in S3. `push` takes them there, `pull` back.

The folder has the form that it has here. A run's run.json is written after all its other files, so that a run whose
copying was cut off counts as half-written there, as it would here; what is pulled lies in a temporary folder until it
is whole. No name from elsewhere leads out of the folder that it is pulled into.
"""

from __future__ import annotations

import filecmp
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from bakeoff import files
from bakeoff.errors import BakeoffError, RemoteError, printable
from bakeoff.results import layout
from bakeoff.results.metadata import CampaignRecord
from bakeoff.results.read import Result, read_campaign, survey
from bakeoff.results.write import and_earlier, below, take_place

PROTOCOLS: Final = ("file", "sftp", "ssh", "s3", "memory")
_EXPECTED: Final = "expected a path, sftp://HOST/FOLDER, ssh://HOST/FOLDER or s3://BUCKET/FOLDER"
_DRIVERS: Final = {"sftp": "sshfs", "ssh": "sshfs", "s3": "s3fs"}
_IS: Final = {"file": "is a file", "directory": "is a folder", "link": "is a link"}
_AT_A_TIME: Final = 16
"""Runs whose files are copied side by side."""

Tell = Callable[[int, int], None]
"""Called with the number of runs that were copied, and of those that there are to copy."""


@dataclass(frozen=True)
class Copied:
    """The outcome of a copy."""

    runs: int
    bytes: int
    same: int
    """Runs that were there already."""
    left_out: tuple[str, ...] = ()
    """Places of runs that are not whole where they come from, with the reason."""


class Elsewhere:
    """The folder that a path or URL names. Every failure of the other side is a BakeoffError with the URL."""

    def __init__(self, url: str) -> None:
        import fsspec

        self.url = printable_url(url)
        scheme = re.match(r"([A-Za-z][\w+.-]*)(?:://|::)", url)
        protocol = scheme[1].lower() if scheme else "file"
        if protocol not in PROTOCOLS or "::" in url.partition("/")[0]:
            raise RemoteError(f"{self.url}: '{protocol}': unknown protocol; {_EXPECTED}")
        driver = _DRIVERS.get(protocol)
        try:
            if driver is not None:
                __import__(driver)
        except ImportError:
            raise RemoteError(
                f"{self.url}: needs the Python package {driver}, which is not installed; "
                "install it: pip install 'bakeoff[remote]'"
            ) from None
        # Without an answer to `known_hosts` sshfs would take any machine for the one that is meant.
        options: dict[str, object] = {"known_hosts": ()} if driver == "sshfs" else {}
        options |= {"use_listings_cache": False} if driver == "s3fs" else {}
        with self.translated():
            self._files, path = fsspec.url_to_fs(url, skip_instance_cache=True, **options)
        self._root = str(path).rstrip("/")
        if not self._root.strip("/"):
            raise RemoteError(f"{self.url}: missing folder; {_EXPECTED}")
        # A flat listing, which cannot meet a folder that it may not read, has no such option.
        self._here = protocol == "file"
        self._strict = {} if protocol == "s3" else {"on_error": "raise"}

    @property
    def local(self) -> Path | None:
        """The folder if it lies in this machine's file system, with all links followed."""
        return Path(self._root).resolve() if self._here else None

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self._root.rpartition("/")[2]

    def sizes(self) -> dict[str, int]:
        """The bytes of every file below the folder by name, such as `l4s-tests/s6/a/run.json`; {} if there is none.

        BakeoffError for a name that leads elsewhere or cannot be shown, and for what is no plain file.
        """
        with self.translated():
            try:
                kind = self._files.info(self._root)["type"]
            except FileNotFoundError:
                return {}
            found = self._files.find(self._root, detail=True, **self._strict) if kind == "directory" else {}
        if kind != "directory":
            raise RemoteError(f"{self.url}: {_IS.get(kind, 'is not a regular file')}; expected a folder")
        sizes = {}
        for path, info in sorted(found.items()):
            name = self._below(str(path))
            if info["type"] != "file" or info.get("islink"):
                what = _IS.get("link" if info.get("islink") else info["type"], "is a pipe, a device or a socket")
                raise RemoteError(f"{self.url}: {name} {what}; expected a regular file; nothing was copied")
            sizes[name] = int(info["size"] or 0)
        return sizes

    def put(self, files: Mapping[str, Path]) -> None:
        """Write files; folders are made."""
        names = [f"{self._root}/{name}" for name in files]
        with self.translated():
            for folder in dict.fromkeys(name.rpartition("/")[0] for name in names):
                self._files.makedirs(folder, exist_ok=True)
            # Two lists: in a single name `*` and `[` would be a pattern.
            self._files.put([str(path) for path in files.values()], names)

    def get(self, files: Mapping[str, Path]) -> None:
        """Read files; folders are made."""
        for folder in {path.parent for path in files.values()}:
            folder.mkdir(parents=True, exist_ok=True)
        with self.translated():
            self._files.get([f"{self._root}/{name}" for name in files], [str(path) for path in files.values()])

    @contextmanager
    def opened(self, name: str) -> Iterator[Opened]:
        """Open a file for reading in parts."""
        with self.translated():
            file = self._files.open(f"{self._root}/{name}", "rb")
        try:
            yield Opened(self, file)
        finally:
            with self.translated():
                file.close()

    def remove(self, names: Iterable[str]) -> None:
        """Delete files."""
        with self.translated():
            for name in names:
                self._files.rm_file(f"{self._root}/{name}")

    def campaign(self) -> CampaignRecord | None:
        """The record of the remote campaign; None without campaign.json."""
        with tempfile.TemporaryDirectory() as folder:
            self.get({layout.CAMPAIGN: Path(folder, layout.CAMPAIGN)})
            try:
                return read_campaign(Path(folder))
            except BakeoffError as error:
                raise RemoteError(error.problem, place=self.url) from None

    def _below(self, path: str) -> str:
        name = path.removeprefix(f"{self._root}/")
        if name == path or any(part in ("", ".", "..") for part in name.split("/")) or not name.isprintable():
            raise RemoteError(
                f"{self.url}: contains a file named '{printable(path)}', outside the folder or unprintable; nothing "
                "was copied"
            )
        return name

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Convert exceptions of a driver into a BakeoffError with the URL."""
        try:
            yield
        except BakeoffError:
            raise
        except Exception as error:  # each driver has exceptions of its own
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            at_file = f": {error.filename}" if isinstance(error, OSError) and error.filename else ""
            raise RemoteError(f"{self.url}{at_file}: {printable(reason) or type(error).__name__}") from error


class Opened:
    """A file elsewhere that is open."""

    def __init__(self, there: Elsewhere, file: BinaryIO) -> None:
        self._there = there
        self._file = file

    def read(self, count: int) -> bytes:
        """The next bytes, at most so many. BakeoffError if the other side fails."""
        with self._there.translated():
            return self._file.read(count)


def push(
    results: Sequence[Result], url: str, *, captures: bool = True, update: bool = False, tell: Tell | None = None
) -> Copied:
    """Copy runs of one campaign, and its campaign.json, to the folder that `url` names.

    Without `captures`, packet captures are not copied. BakeoffError if the destination exists, or with `update` if it
    is another campaign. `update` copies runs that are missing or differ, in run.json or in a file's name or size.
    """
    root = _campaign_of(results)
    there = Elsewhere(url)
    if there.local is not None:
        _check_apart(there.url, there.local, root.resolve())
    theirs = there.sizes()
    record = read_campaign(root)
    if theirs and not update:
        raise RemoteError(f"{there.url}: already exists; expected --update, or another URL")
    if theirs:
        same = there.campaign() if layout.CAMPAIGN in theirs else None
        _same_campaign(str(root), record, there.url, same)
        if same is None and not _by_run(theirs):
            raise RemoteError(f"{there.url}: not empty and not a campaign folder; expected another folder")
    elif record is not None:
        there.put({layout.CAMPAIGN: root / layout.CAMPAIGN})
    places = [result.path.absolute().relative_to(root).as_posix() for result in results]
    runs = {run_path: _own_files(root / run_path, captures=captures) for run_path in places}
    had = _by_run(theirs)
    equal = _equal(runs, had, root, there)
    todo = [run_path for run_path in places if run_path not in equal or not _holds(had[run_path], runs[run_path])]
    total = 0
    for begun, several in _batches(todo):
        if tell is not None:
            tell(begun, len(todo))
        # Without its run.json a run is none: it goes first, and comes last.
        there.remove(f"{run_path}/{layout.RUN}" for run_path in several if layout.RUN in had.get(run_path, {}))
        files: dict[str, Path] = {}
        for run_path in several:
            old = had.get(run_path, {})
            if run_path not in equal:
                there.remove(f"{run_path}/{name}" for name in old if name != layout.RUN)
                old = {}
            sizes = {
                name: size for name, size in runs[run_path].items() if name != layout.RUN and old.get(name) != size
            }
            files |= {f"{run_path}/{name}": root / run_path / name for name in sizes}
            total += sum(sizes.values()) + runs[run_path][layout.RUN]
        there.put(files)
        there.put({f"{run_path}/{layout.RUN}": root / run_path / layout.RUN for run_path in several})
    return Copied(len(todo), total, len(runs) - len(todo))


def pull(
    url: str,
    folder: Path,
    *,
    captures: bool = True,
    update: bool = False,
    wanted: Callable[[str], bool] = lambda _: True,
    tell: Tell | None = None,
) -> Copied:
    """Copy a campaign from the folder that `url` names into `folder`, which appears when all of it is there.

    Copies the runs whose suite/scenario/run is `wanted`; without `captures`, without packet captures. Incomplete runs
    are skipped and reported. BakeoffError if `folder` exists, or with `update` if it is another campaign. `update`
    copies runs that are missing or differ, as for `push`; each appears when its copy is complete.
    """
    there = Elsewhere(url)
    _check_apart(str(folder), folder.resolve(), there.local)
    theirs = there.sizes()
    offered = {
        run_path: {name: size for name, size in files.items() if captures or not _is_capture(name)}
        for run_path, files in _by_run(theirs).items()
        if wanted(run_path)
    }
    runs = {run_path: files for run_path, files in offered.items() if layout.RUN in files}
    left_out = [f"{run_path} (it has no {layout.RUN})" for run_path in offered if run_path not in runs]
    if not runs:
        raise RemoteError(f"{there.url}: no matching run; expected a campaign folder with suite/scenario/run")
    record = there.campaign() if layout.CAMPAIGN in theirs else None
    ours = _standing(folder, there, record, update=update)
    equal = _equal(runs, ours, folder, there)
    todo = [run_path for run_path in runs if run_path not in equal or not _holds(ours[run_path], runs[run_path])]
    root = folder.resolve()
    partial = root.with_name(layout.partial_name(root.name, os.getpid()))
    came: list[str] = []
    try:
        partial.mkdir(parents=True)
        if record is not None:
            there.get({layout.CAMPAIGN: partial / layout.CAMPAIGN})
        for begun, several in _batches(todo):
            if tell is not None:
                tell(begun, len(todo))
            there.get(
                {f"{run_path}/{name}": partial / run_path / name for run_path in several for name in runs[run_path]}
            )
            for run_path in several:
                reason = _not_whole(partial / run_path, runs[run_path])
                if reason is None:
                    came.append(run_path)
                else:
                    left_out.append(f"{run_path} ({reason})")
                    shutil.rmtree(partial / run_path)
        kept = {
            run_path: [name for name in ours[run_path] if name not in runs[run_path]]
            for run_path in came
            if run_path in equal
        }
        _settle(partial, root, came, kept)
    except OSError as error:
        path = error.filename or folder
        raise RemoteError(f"{path}: {error.strerror or error}{and_earlier(root)}") from error
    finally:
        files.discard(partial)
    total = sum(size for run_path in came for size in runs[run_path].values())
    return Copied(len(came), total, len(runs) - len(todo), tuple(left_out))


def _settle(partial: Path, root: Path, came: list[str], kept: Mapping[str, list[str]]) -> None:
    """Let the runs in `partial` take their places, with the files of those before that are `kept`."""
    if not root.exists() or not any(root.iterdir()):
        if came:
            partial.rename(root)
        return
    for run_path, folder in [(run_path, below(root, run_path)) for run_path in came]:
        for name in kept.get(run_path, []):  # such as captures, which were not asked for this time
            (partial / run_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / run_path / name, partial / run_path / name)
        folder.parent.mkdir(parents=True, exist_ok=True)
        take_place(partial / run_path, folder)


def _standing(
    folder: Path, there: Elsewhere, theirs: CampaignRecord | None, *, update: bool
) -> dict[str, dict[str, int]]:
    """The files of the runs that `folder` holds already; BakeoffError if nothing may be added to what it holds."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return {}
    if not update or not folder.is_dir():
        raise RemoteError(f"{folder}: already exists; expected --update, or another folder")
    _same_campaign(str(folder), read_campaign(folder), there.url, theirs)
    places = [(path, path.relative_to(folder).as_posix()) for path in survey(folder).runs]
    if not places and theirs is None:
        raise RemoteError(f"{folder}: not empty and not a campaign folder; expected another folder")
    return {run_path: _own_files(path) for path, run_path in places}


def _check_apart(name: str, target: Path, source: Path | None) -> None:
    """BakeoffError if the destination overlaps the source or is inside a campaign folder."""
    if (file := files.in_the_way(target)) is not None and file != target:
        raise RemoteError(f"{file}: not a folder; expected a results folder")
    if source is not None and (target.is_relative_to(source) or source.is_relative_to(target)):
        raise RemoteError(f"{name}: overlaps the source {source}; expected another folder")
    for parent in target.parents:
        if (parent / layout.CAMPAIGN).exists():
            raise RemoteError(f"{name}: inside the folder of a campaign, {parent}; expected another folder")


def _campaign_of(results: Sequence[Result]) -> Path:
    """The folder of the campaign that all the runs belong to."""
    roots = list(
        dict.fromkeys(result.path.absolute().parents[2] for result in results if len(result.path.absolute().parts) > 3)
    )
    if len(roots) != 1:
        raise RemoteError(
            f"{roots[0]} and {roots[1]}: two campaigns; expected the runs of one"
            if roots
            else "runs outside a campaign folder; expected CAMPAIGN/suite/scenario/run"
        )
    return roots[0]


def _same_campaign(here: str, ours: CampaignRecord | None, there: str, theirs: CampaignRecord | None) -> None:
    if (ours and ours.id) != (theirs and theirs.id):
        raise RemoteError(f"{there}: a different campaign than {here}; expected another folder")


def _own_files(folder: Path, *, captures: bool = True) -> dict[str, int]:
    """The bytes of a run's files by name; no links."""
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.is_symlink() and (captures or not _is_capture(path.name))
    }


def _is_capture(name: str) -> bool:
    return ".pcapng" in name


def _by_run(sizes: Mapping[str, int]) -> dict[str, dict[str, int]]:
    """The files of each suite/scenario/run; without hidden files, such as those being written."""
    runs: dict[str, dict[str, int]] = {}
    for name, size in sizes.items():
        parts = name.split("/")
        if len(parts) > 3 and not any(part.startswith(".") for part in parts):
            runs.setdefault("/".join(parts[:3]), {})["/".join(parts[3:])] = size
    return runs


def _holds(files: Mapping[str, int], wanted: Mapping[str, int]) -> bool:
    """Whether all wanted files are present with equal sizes."""
    return all(files.get(name) == size for name, size in wanted.items())


def _equal(
    source: Mapping[str, Mapping[str, int]], target: Mapping[str, Mapping[str, int]], root: Path, there: Elsewhere
) -> set[str]:
    """The runs of both sides whose run.json is the same below `root` and there."""
    places = [
        run_path for run_path, files in source.items() if files[layout.RUN] == target.get(run_path, {}).get(layout.RUN)
    ]
    equal: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        for _, several in _batches(places):
            copies = {run_path: Path(folder, str(number)) for number, run_path in enumerate(several)}
            there.get({f"{run_path}/{layout.RUN}": copy for run_path, copy in copies.items()})
            equal |= {
                run_path for run_path, copy in copies.items() if filecmp.cmp(copy, root / run_path / layout.RUN, False)
            }
    return equal


def _not_whole(folder: Path, sizes: Mapping[str, int]) -> str | None:
    """Why the run in `folder` is incomplete, or None."""
    for name, size in sizes.items():
        got = (folder / name).stat().st_size
        if got != size:
            return f"{name}: {got} of {size} bytes came"
    try:
        Result.read(folder)
    except BakeoffError as error:
        return error.problem
    return None


def _batches(places: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    for begun in range(0, len(places), _AT_A_TIME):
        yield begun, places[begun : begun + _AT_A_TIME]


def printable_url(url: str) -> str:
    """The URL without its password, if it has one."""
    return printable(re.sub(r"(://[^/@:]*):[^/@]*@", r"\1@", url))
