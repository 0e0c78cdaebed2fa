"""The page of claims: what the documents state, and what the site's runs say of it, engine by engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff.claims import SEEDS, stored
from bakeoff.claims.verdict import WORDS, Decided
from bakeoff.site.site_contents import sides
from bakeoff.tables.claim_report import ClaimRow, claim_row, counted, verdicts

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.site.pages import Site
    from bakeoff.site.site_contents import Contents, Page

_LINKS: Final = 12
"""Runs that a claim leads to; about one as many as these one reads them all."""


@dataclass(frozen=True)
class Verdict:
    """What the runs of one engine in one campaign say of a claim."""

    by: str
    """The engine, and the campaign if there are several."""
    said: ClaimRow
    pages: Sequence[Page]
    """Of the runs that decided it: the first repetition of each, the first of them."""
    more: int
    """Other runs that decided it."""


@dataclass(frozen=True)
class Entry:
    """A claim with its verdicts."""

    first: ClaimRow
    verdicts: list[Verdict]

    @property
    def words(self) -> str:
        """The verdicts as the filter of the page looks for them."""
        return "|".join(dict.fromkeys(verdict.said.word for verdict in self.verdicts))


@dataclass(frozen=True)
class Claims:
    """What the page shows."""

    entries: list[Entry]
    tables: list[tuple[str, list[str], list[list[str]]]]
    """By engine: heads and rows of how many claims of each document have which verdict."""
    lacking: int
    seeds: int
    """The fewest repetitions in a campaign."""


def gather(contents: Contents, jobs: int) -> Claims | None:
    """The claims that the runs decide; None if there is none."""
    entries: dict[str, list[Verdict]] = {}
    tables, lacking, seeds = [], 0, []
    for by, pages in sides(contents.pages).items():
        found = stored.decided([page.result for page in pages], jobs)
        if not found.decided:
            continue
        seeds.append(found.seeds)
        lacking = max(lacking, found.lacking)
        of = {page.result.path: page for page in pages}
        tables.append((by, *counted(verdicts(each for each, _ in found.decided))))
        for each, used in found.decided:
            entries.setdefault(each.claim.name, []).append(_verdict(by, each, used, of, found.untested))
    if not entries:
        return None
    made = [Entry(verdicts[0].said, verdicts) for verdicts in entries.values()]
    return Claims(sorted(made, key=lambda entry: entry.first.document), tables, lacking, min(seeds))


def _verdict(by: str, each: Decided, used: Sequence[Result], of: dict[Path, Page], untested: frozenset[str]) -> Verdict:
    first = {result.key.partition("~seed")[0]: of[result.path] for result in reversed(used)}
    pages = list(reversed(first.values()))
    row = claim_row(each, untested=each.claim.name in untested)
    return Verdict(by, row, pages[:_LINKS], max(0, len(pages) - _LINKS))


def render(claims: Claims, site: Site) -> str:
    """The page."""
    documents = list(dict.fromkeys(entry.first.document for entry in claims.entries))
    engines = list(dict.fromkeys(verdict.by for entry in claims.entries for verdict in entry.verdicts))
    met = {verdict.said.word for entry in claims.entries for verdict in entry.verdicts}
    return site.render(
        "claims.html.j2",
        "",
        claims=claims,
        usual_seeds=SEEDS,
        documents=documents,
        engines=engines,
        words=[word for word in WORDS if word in met],
    )
