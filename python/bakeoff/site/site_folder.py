"""A site as a folder: written under another name, and renamed when it is whole."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff import files
from bakeoff.campaign import signals
from bakeoff.errors import BakeoffError, SiteError
from bakeoff.results import Result
from bakeoff.results.epochs import epoch_warning
from bakeoff.site import camps, claims_page, compare_data, evaluations, overview, run_page, side_by_side
from bakeoff.site.pages import Site
from bakeoff.version import commit, version

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from bakeoff.site.claims_page import Claims
    from bakeoff.site.site_contents import Contents, Page

_FEW: Final = 24
"""Pages that are written here before a process has been started elsewhere."""
_CHUNK: Final = 4
MARK: Final = "bakeoff-site.json"
"""The file by which a folder is known as a site of ours, which may be replaced."""


def write(
    contents: Contents,
    out: Path,
    claims: Claims | None = None,
    *,
    jobs: int = 1,
    downloads: bool = True,
    tell: Callable[[int], None] | None = None,
) -> list[str]:
    """Write the site of the runs into the folder `out`, with a page of claims if there are any.

    Without `downloads` the files of runs are left out. `jobs` processes write the pages of runs, and `tell` is called
    with the number of those that are written. What comes back names the runs that cannot be read, whose pages say why.

    A site that is there is replaced when the new one is whole. BakeoffError for a folder that is no site, and if the
    system refuses; then nothing has changed.
    """
    check_place(out, contents.root)
    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        partial.mkdir()
        site = replace(site_of(contents), claims=claims is not None, downloads=downloads)
        broken = _fill(contents, site, partial, claims, jobs=jobs, tell=tell or (lambda _: None))
        _replace(out, partial)
    except OSError as error:
        raise SiteError(f"{out}: cannot be written: {error.strerror or error}") from error
    finally:
        files.discard(partial)
    return broken


def check_place(out: Path, root: Path) -> None:
    """BakeoffError unless a site of the results in `root` may be written to `out`."""
    if not out.name:
        raise SiteError(f"{out}: invalid; expected the name of a folder")
    # Its downloads would be taken for results.
    if files.is_below(out, root):
        raise SiteError(f"{out}: inside the results folder {root}; expected another folder")
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise SiteError(f"{out}: not a folder; expected a new folder, or a site to replace")
    if out.is_dir() and any(out.iterdir()) and not (out / MARK).is_file():
        raise SiteError(f"{out}: contains other files than a site; expected a new folder, or a site to replace")


def _replace(out: Path, partial: Path) -> None:
    old = out.with_name(f".{out.name}.{os.getpid()}.old.partial")
    there = out.exists()
    if there:
        out.replace(old)
    try:
        partial.replace(out)
    except BaseException:
        if there:
            old.replace(out)
        raise
    files.discard(old)


def _fill(
    contents: Contents, site: Site, folder: Path, claims: Claims | None, *, jobs: int, tell: Callable[[int], None]
) -> list[str]:
    sides = side_by_side.gather(contents)
    matrices = camps.gather(contents)
    evaluated = evaluations.gather(contents)
    site = replace(site, sides=sides is not None, camps=bool(matrices), evaluations=bool(evaluated))
    write_assets(folder / "assets")
    broken = _write_runs(contents.pages, folder, site, jobs, tell)
    (folder / "data").mkdir()
    for name, text in first_pages(contents, site).items():
        (folder / name).write_text(text, encoding="utf-8")
    if claims is not None:
        (folder / "claims.html").write_text(claims_page.render(claims, site), encoding="utf-8")
    if sides is not None:
        (folder / "sides.html").write_text(side_by_side.render(sides, site), encoding="utf-8")
    if matrices:
        (folder / "camps.html").write_text(camps.render(matrices, site), encoding="utf-8")
    if evaluated:
        (folder / "evaluations.html").write_text(evaluations.render(evaluated, site), encoding="utf-8")
    (folder / MARK).write_text(json.dumps({"made": site.made}) + "\n", encoding="utf-8")
    return broken


def _write_runs(pages: Sequence[Page], folder: Path, site: Site, jobs: int, tell: Callable[[int], None]) -> list[str]:
    tasks = [(pages[at : at + _CHUNK], folder, site) for at in range(0, len(pages), _CHUNK)]
    broken: list[str] = []
    written = 0

    def note(several: list[str]) -> None:
        nonlocal written
        broken.extend(several)
        written += _CHUNK
        tell(min(written, len(pages)))

    if jobs < 2 or len(pages) < _FEW:
        for task in tasks:
            note(_write_chunk(task))
        return broken
    signals.start_tracker()
    # Not fork: polars and numpy have threads, and a forked child of a threaded process may hang.
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), signals.prepare_worker) as pool:
        with signals.starting_workers():
            futures = [pool.submit(_write_chunk, task) for task in tasks]
        try:
            for future in futures:
                note(future.result())
        finally:
            pool.shutdown(cancel_futures=True)
    return broken


def _write_chunk(task: tuple[Sequence[Page], Path, Site]) -> list[str]:
    pages, folder, site = task
    broken = []
    for page in pages:
        path = folder / page.place
        path.mkdir(parents=True)
        try:
            write_run(page, path, site)
        except BakeoffError as error:
            files.discard(path)
            path.mkdir()
            text = site.render("unreadable.html.j2", page.place, page=page, why=str(error))
            (path / "index.html").write_text(text, encoding="utf-8")
            (path / compare_data.FILE).write_text(compare_data.script(page), encoding="utf-8")
            broken.append(str(error))
    return broken


def write_run(page: Page, folder: Path, site: Site) -> None:
    """The page of a run, and what the comparison knows of it. BakeoffError if the run cannot be read."""
    # A result keeps its samples once they are read: thousands of them would fill the memory.
    page = replace(page, result=Result(page.result.path, page.result.record))
    run_page.write(page, folder, site)
    (folder / compare_data.FILE).write_text(compare_data.script(page), encoding="utf-8")


def first_pages(contents: Contents, site: Site) -> dict[str, str]:
    """The first page and the one that compares, and the script with what they know of every run, by their names."""
    warning = epoch_warning(page.result for page in contents.pages)
    first = site.render(
        "overview.html.j2",
        "",
        summary=overview.summary(contents),
        warnings=[warning] if warning else [],
        campaigns=overview.campaigns(contents),
    )
    return {
        "index.html": first,
        "compare.html": site.render("compare.html.j2", ""),
        "data/runs.js": overview.script(contents),
    }


def site_of(contents: Contents, *, live: bool = False) -> Site:
    """What every page says of the site."""
    return Site(contents.root.resolve().name, made(), live=live)


def made() -> str:
    """From which bakeoff and moment a site is that is made now."""
    at = commit()
    of = f", commit {at.id[:12]}{' with changes' if at.dirty else ''}" if at else ""
    return f"Made by bakeoff {version()}{of}, on {datetime.now(UTC):%-d %B %Y at %H:%M} UTC."


def write_assets(folder: Path) -> None:
    """Styles and scripts: ours, and uPlot as its release has it, with its licence."""
    _copy(resources.files("bakeoff.site") / "assets", folder)


def _copy(source: Traversable, folder: Path) -> None:
    folder.mkdir(parents=True)
    for file in source.iterdir():
        if file.is_file():
            with file.open("rb") as read, (folder / file.name).open("wb") as written:
                shutil.copyfileobj(read, written)
