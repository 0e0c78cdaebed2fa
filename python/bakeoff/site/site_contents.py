"""What a site shows: every run with the place of its page, its measures, and the runs that it may be compared with."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff.tables.rows import Row, choose_references, rows
from bakeoff.tables.run_labels import engine_of

if TYPE_CHECKING:
    from bakeoff.results import Result

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._~+=,@()-]")
"""What a file's name does not hold on every system that a folder may be carried to, or a link would have to escape."""
_LONGEST: Final = 100
RUNS: Final = "runs"


@dataclass(frozen=True)
class Link:
    """Another page of the site that shows the same run: another seed, or another engine."""

    text: str
    place: str


@dataclass(frozen=True)
class Page:
    """A run and the place of its page."""

    result: Result
    place: str
    """The page's folder, below the site's: `runs/l4s-tests/s6-rfc3168/ns-prague-vs-cubic`."""
    campaign: str
    """The campaign's folder below the results, empty if there is one only."""
    row: Row | None
    """The run's measures, its repetitions taken together; None if it failed."""
    seeds: tuple[Link, ...] = ()
    """The pages of all repetitions, with this one, if there are several."""
    elsewhere: tuple[Link, ...] = ()
    """The pages of the same run and seed on other engines or in other campaigns."""

    @property
    def id(self) -> str:
        """How scripts and addresses name the run."""
        return self.place.removeprefix(f"{RUNS}/")


@dataclass(frozen=True)
class Contents:
    """All runs below a folder, in order of path."""

    root: Path
    pages: list[Page]

    @property
    def rows(self) -> list[Row]:
        """One per run, in the order of tables."""
        return list({id(page.row): page.row for page in self.pages if page.row is not None}.values())


def gather(root: Path, results: Sequence[Result]) -> Contents:
    """The runs that lie below `root`, with their measures.

    BakeoffError if a campaign holds the same seed of a run twice, or a summary cannot be read.
    """
    campaigns = {result.path: _campaign(result, root) for result in results}
    several = len(set(campaigns.values())) > 1
    places = _places(results, root)
    of_run = _rows(results, campaigns)
    same: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        same.setdefault((result.key.partition("~seed")[0], campaigns[result.path]), []).append(result)
    twins: dict[str, list[Result]] = {}
    for result in results:
        twins.setdefault(result.key, []).append(result)
    pages = []
    for result in results:
        repetitions = same[result.key.partition("~seed")[0], campaigns[result.path]]
        others = [other for other in twins[result.key] if other is not result]
        pages.append(
            Page(
                result,
                places[result.path],
                campaigns[result.path] if several else "",
                of_run.get(result.path),
                seeds=tuple(Link(f"seed {one.run.seed}", places[one.path]) for one in repetitions)
                if len(repetitions) > 1
                else (),
                elsewhere=tuple(
                    Link(f"{engine_of(one)}{f' in {campaigns[one.path]}' if several else ''}", places[one.path])
                    for one in others
                ),
            )
        )
    return Contents(root, pages)


def sides(pages: Iterable[Page]) -> dict[str, list[Page]]:
    """The runs by engine and campaign, each under the shortest name that tells them apart."""
    groups: dict[tuple[str, str], list[Page]] = {}
    for page in pages:
        groups.setdefault((engine_of(page.result), page.campaign), []).append(page)
    engines = [engine for engine, _ in groups]
    return {
        engine if engines.count(engine) == 1 else f"{engine} in {campaign}": members
        for (engine, campaign), members in groups.items()
    }


def _campaign(result: Result, root: Path) -> str:
    """The folder that holds suite/scenario/run, below the root."""
    parts = result.path.relative_to(root).parts
    return "/".join(parts[:-3])


def _rows(results: Iterable[Result], campaigns: dict[Path, str]) -> dict[Path, Row]:
    """The rows, by the paths of all results that each is of."""
    groups: dict[str, list[Result]] = {}
    for result in results:
        if result.ok:
            groups.setdefault(campaigns[result.path], []).append(result)
    found: dict[Path, Row] = {}
    for members in groups.values():
        by_run = {
            (row.suite, row.scenario, row.run, row.engine): row
            for row in rows(members, choose_references(members, None))
        }
        for result in members:
            at = result.run
            found[result.path] = by_run[at.suite, at.scenario, at.run, engine_of(result)]
    return found


def _places(results: Iterable[Result], root: Path) -> dict[Path, str]:
    """A folder for each page: the run's own below the results, in letters that every system takes, each once."""
    taken: set[str] = set()
    places = {}
    for result in results:
        parts = result.path.relative_to(root).parts or tuple(result.key.split("/"))
        path = "/".join([RUNS, *map(safe, parts)])
        count, wanted = 1, path
        # A stick may hold a file system that does not tell small letters from capitals.
        while path.casefold() in taken:
            count += 1
            path = f"{wanted}-{count}"
        taken.add(path.casefold())
        places[result.path] = path
    return places


def safe(name: str) -> str:
    """A name in letters that every file system takes and an address need not escape."""
    return _UNSAFE.sub("_", name)[:_LONGEST].rstrip(".") or "_"
