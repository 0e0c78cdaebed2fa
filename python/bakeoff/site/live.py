"""A site that is made as it is asked for, from a results folder that changes: what `bakeoff serve` shows.

Nothing is ever written to the results. Pages are made below a private folder, and what vanishes or is half written at
the moment is left out and told.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bakeoff import files, results
from bakeoff.campaign import lock
from bakeoff.errors import BakeoffError
from bakeoff.measure import summary_of
from bakeoff.results import layout
from bakeoff.site import camps, claims_page, side_by_side, site_contents, site_folder
from bakeoff.site.site_contents import Contents, Page
from bakeoff.text.columns import clean

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.site.pages import Site

_TIMES: Final = 4.0
"""After so many times the time that looking took the results are looked at again."""
_KEPT: Final = 40
"""Pages of runs that are kept, with their downloads."""
_SHOWN: Final = 20
"""Names of runs that are told in a list for people."""

Stamp = tuple[int, int, int]


@dataclass(frozen=True)
class _State:
    """The results at one moment."""

    version: int
    contents: Contents
    running: bool
    wanted: int | None
    under_way: list[str]
    half_written: int
    unreadable: list[str]


@dataclass
class _Later:
    """The pages that take long, of claims and of engines side by side, and for which version they are."""

    version: int = -1
    texts: dict[str, str] = field(default_factory=dict)
    """By name, `claims.html`; only those that there are."""
    making: bool = False


@dataclass
class Live:
    """The site of the results in `root`, whose pages are made below the private folder `private`."""

    root: Path
    private: Path
    least_s: float = 1.0
    """For so long what was found is not looked for again; for longer, if looking took long."""
    _known: dict[Path, tuple[Stamp, Result]] = field(default_factory=dict)
    _bad: dict[Path, tuple[Stamp, str]] = field(default_factory=dict)
    _pages: OrderedDict[str, tuple[Page, Path]] = field(default_factory=OrderedDict)
    _made: int = 0
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _state: _State | None = None
    _next_look: float = 0.0
    _overview: tuple[int, frozenset[str], dict[str, bytes]] | None = None
    _later: _Later = field(default_factory=_Later)

    def __post_init__(self) -> None:
        site_folder.write_assets(self.private / "assets")

    def content(self, parts: tuple[str, ...]) -> bytes | Path | None:
        """What an address shows, by its parts: bytes, a file below the private folder, or None for nothing."""
        name = "/".join(parts) or "index.html"
        if parts[:1] == (site_contents.RUNS,):
            return self._of_run(parts)
        if parts[:1] == ("assets",):
            return self._file(self.private.joinpath(*parts))
        if name == "live.json":
            return json.dumps(self.news()).encode()
        if (later := self._later.texts.get(name)) is not None:
            return later.encode()
        return self._first_pages().get(name)

    def news(self) -> dict[str, Any]:
        """How far the campaign is, as plain JSON values; `version` changes whenever a run ends or vanishes."""
        state = self._look()
        pages = state.contents.pages
        return {
            "version": state.version,
            "running": state.running,
            "wanted": state.wanted,
            "done": len(pages),
            "failed": sum(not page.result.ok for page in pages),
            "underWay": state.under_way[:_SHOWN],
            "moreUnderWay": max(0, len(state.under_way) - _SHOWN),
            "halfWritten": state.half_written,
            "unreadable": state.unreadable[:_SHOWN],
            "pages": sorted(self._later.texts),
        }

    # What the results are at the moment.

    def _look(self) -> _State:
        with self._lock:
            now = time.monotonic()
            if self._state is None or now >= self._next_look:
                self._state = self._looked(self._state)
                took = time.monotonic() - now
                self._next_look = time.monotonic() + max(self.least_s, _TIMES * took if self.least_s else 0.0)
                self._make_later(self._state)
            return self._state

    def _looked(self, before: _State | None) -> _State:
        unreadable: list[tuple[Path, str]] = []
        found: list[Result] = []
        half: list[str] = []
        known: dict[Path, tuple[Stamp, Result]] = {}
        bad: dict[Path, tuple[Stamp, str]] = {}
        for path, is_run in results.folders(self.root, unreadable):
            if not is_run:
                half.append(_run_of(path, self.root))
                continue
            stamp = _stamp(path / layout.RUN)
            if stamp is None:
                continue
            if path in self._known and self._known[path][0] == stamp:
                known[path] = self._known[path]
            elif path in self._bad and self._bad[path][0] == stamp and stamp[0] < time.time_ns() - 60_000_000_000:
                bad[path] = self._bad[path]
            else:
                result = _read(path)
                if isinstance(result, str):
                    bad[path] = (stamp, result)
                else:
                    known[path] = (stamp, result)
            if path in known:
                found.append(known[path][1])
        problems = [f"{path}: {why}" for path, (_, why) in bad.items()] + [f"{path}: {why}" for path, why in unreadable]
        same = before is not None and {p: s for p, (s, _) in known.items()} == {
            p: s for p, (s, _) in self._known.items()
        }
        self._known, self._bad = known, bad
        contents = before.contents if before is not None else Contents(self.root, [])
        version = before.version if before is not None else 0
        if not same:
            try:
                contents = site_contents.gather(self.root, found)
                version += 1
            except (BakeoffError, OSError) as error:
                problems.append(str(error))
        running, wanted = _running(self.root), _wanted(self.root)
        return _State(
            version,
            contents,
            running,
            wanted,
            [clean(name) for name in half] if running else [],
            0 if running else len(half),
            [clean(line) for line in problems],
        )

    def _site(self) -> Site:
        of = Contents(self.root, [])
        there = self._later.texts
        return replace(
            site_folder.site_of(of, live=True),
            claims="claims.html" in there,
            sides="sides.html" in there,
            camps="camps.html" in there,
        )

    def _first_pages(self) -> dict[str, bytes]:
        with self._lock:
            state = self._look()
            key = (state.version, frozenset(self._later.texts))
            if self._overview is None or self._overview[:2] != key:
                texts = site_folder.first_pages(state.contents, self._site())
                self._overview = (*key, {name: text.encode() for name, text in texts.items()})
            return self._overview[2]

    # The pages of runs.

    def _of_run(self, parts: tuple[str, ...]) -> bytes | Path | None:
        with self._lock:
            pages = {page.place: page for page in self._look().contents.pages}
            for end in range(len(parts) - 1, 0, -1):
                page = pages.get("/".join(parts[:end]))
                if page is not None:
                    return self._file(self._written(page).joinpath(*parts[end:]))
        return None

    def _written(self, page: Page) -> Path:
        """The private folder of a run's page, written if it is not there. BakeoffError if the run cannot be read."""
        if page.place in self._pages and _is_same(self._pages[page.place][0], page):
            self._pages.move_to_end(page.place)
            return self._pages[page.place][1]
        self._made += 1
        folder = self.private / "pages" / str(self._made)
        folder.mkdir(parents=True)
        try:
            # Read anew: what a result keeps of its samples would stay in memory.
            fresh = replace(page, result=results.read(page.result.path))
            site_folder.write_run(fresh, folder, self._site())
        except BaseException:
            files.discard(folder)
            raise
        if page.place in self._pages:
            files.discard(self._pages.pop(page.place)[1])
        self._pages[page.place] = (page, folder)
        while len(self._pages) > _KEPT:
            files.discard(self._pages.popitem(last=False)[1][1])
        return folder

    def _file(self, path: Path) -> Path | None:
        """The path if it is a regular file below the private folder, whatever links may stand on the way."""
        return path if files.is_below(path, self.private) and path.is_file() else None

    # What takes long is made beside everything else, when nothing runs: a reader does not wait for it.

    def _make_later(self, state: _State) -> None:
        later = self._later
        if state.running or later.making or later.version == state.version:
            return
        later.making = True
        threading.Thread(target=self._made_later, args=(state,), daemon=True).start()

    def _made_later(self, state: _State) -> None:
        texts = {}
        try:
            claims, sides = claims_page.gather(state.contents, 1), side_by_side.gather(state.contents)
            matrices = camps.gather(state.contents)
            site = replace(self._site(), claims=claims is not None, sides=sides is not None, camps=bool(matrices))
            if claims is not None:
                texts["claims.html"] = claims_page.render(claims, site)
            if sides is not None:
                texts["sides.html"] = side_by_side.render(sides, site)
            if matrices:
                texts["camps.html"] = camps.render(matrices, site)
        except (BakeoffError, OSError):
            texts = {}  # what they read has vanished; the next version is made anew
        with self._lock:
            self._later = _Later(state.version, texts)


def _is_same(one: Page, other: Page) -> bool:
    """Whether their pages say the same: that of a run tells of its repetitions too."""
    repetitions = [page.row.n if page.row else 0 for page in (one, other)]
    return (
        one.result is other.result
        and repetitions[0] == repetitions[1]
        and (one.seeds, one.elsewhere) == (other.seeds, other.elsewhere)
    )


def _read(path: Path) -> Result | str:
    """The result with its measures in memory, or why it cannot be read."""
    try:
        result = results.read(path)
        if result.ok:
            result.summary = summary_of(result)
            for heavy in ("series", "counters"):
                result.__dict__.pop(heavy, None)
    except BakeoffError as error:
        return error.problem if error.place == str(path) else str(error)
    except OSError as error:
        return str(error)
    return result


def _stamp(path: Path) -> Stamp | None:
    """What changes when the file does; None if it is not there."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_ino, found.st_size


def _run_of(partial: Path, root: Path) -> str:
    """The run whose half-written folder it is."""
    name = partial.name.removeprefix(".").rsplit(".", 2)[0]
    return "/".join([*partial.relative_to(root).parts[:-1], name]) if partial != root else name


def _running(root: Path) -> bool:
    """Whether a campaign writes here: the process that its lock names is alive.

    The lock itself is not tried, because a campaign that begins at that moment would be refused.
    """
    try:
        owner = int(files.read(root / lock.NAME, 64).decode().strip())
        if owner > 0:
            os.kill(owner, 0)
    except PermissionError:
        return True
    except (OSError, ValueError, OverflowError):
        return False
    return owner > 0


def _wanted(root: Path) -> int | None:
    """How many runs the campaign was begun for, if it says so."""
    try:
        record = results.read_campaign(root)
    except (BakeoffError, OSError):
        return None
    return record.runs if record is not None else None
