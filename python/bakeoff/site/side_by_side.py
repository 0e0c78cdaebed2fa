"""The page with two engines, or two campaigns, side by side: how far apart they are in the runs that both did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import isfinite
from typing import TYPE_CHECKING, Final

from bakeoff.claims import comparison
from bakeoff.errors import BakeoffError
from bakeoff.site.site_contents import sides
from bakeoff.tables.distances import written
from bakeoff.text.columns import number

if TYPE_CHECKING:
    from bakeoff.claims.comparison import Difference, Distribution, Side
    from bakeoff.site.pages import Site
    from bakeoff.site.site_contents import Contents, Page

_PAIRS: Final = 12
_FARTHEST: Final = 100

Run = tuple[str, str, str]


@dataclass(frozen=True)
class Distance:
    """How far apart a measure is over the runs of a scenario."""

    cells: tuple[str, ...]
    beyond: bool
    """Whether the median is beyond the bound that `bakeoff compare` has for the measure."""


@dataclass(frozen=True)
class Far:
    """One number that is far apart, with the runs that it is of."""

    measure: str
    run: str
    flow: str
    ours: str
    theirs: str
    ln: str
    pages: tuple[Page, Page]


@dataclass(frozen=True)
class Pair:
    """Two sides."""

    ours: str
    theirs: str
    runs: int
    distances: list[Distance]
    far: list[Far]
    more: int
    """Numbers beyond the bounds that are not listed."""
    notes: Sequence[str]


@dataclass(frozen=True)
class Sides:
    """All pairs, as far as they are shown."""

    pairs: list[Pair]
    left_out: int


def gather(contents: Contents) -> Sides | None:
    """Every two engines or campaigns that did the same runs; None if no two did."""
    members = {by: [page for page in pages if page.row is not None] for by, pages in sides(contents.pages).items()}
    groups = {by: _first(pages) for by, pages in members.items()}
    able = [pair for pair in combinations(groups, 2) if groups[pair[0]].keys() & groups[pair[1]].keys()]
    known: dict[str, Side] = {}
    pairs = []
    for one, other in able[:_PAIRS]:
        for by in (one, other):
            if by not in known:
                known[by] = comparison.side_of(by, [page.result for page in members[by]])
        try:
            found = comparison.compare(known[one], known[other])
        except BakeoffError:
            continue  # runs of one name that are not the same experiment
        pairs.append(_pair(found, groups[one], groups[other]))
    return Sides(pairs, max(0, len(able) - _PAIRS)) if pairs else None


def _first(pages: Sequence[Page]) -> dict[Run, Page]:
    """By run the page of the first repetition."""
    found: dict[Run, Page] = {}
    for page in pages:
        at = page.result.run
        found.setdefault((at.suite, at.scenario, at.run), page)
    return found


def _pair(found: comparison.Comparison, ours: Mapping[Run, Page], theirs: Mapping[Run, Page]) -> Pair:
    spread = comparison.distributions(found.differences, comparison.BOUNDS, [comparison.SCENARIO])
    beyond = comparison.outside(found.differences, comparison.BOUNDS)
    return Pair(
        found.ours,
        found.theirs,
        len({one.key[:3] for one in found.differences}),
        [_distance(one) for one in spread],
        [_far(one, ours, theirs) for one in beyond[:_FARTHEST]],
        max(0, len(beyond) - _FARTHEST),
        found.notes,
    )


def _distance(one: Distribution) -> Distance:
    cells = (
        *one.group,
        one.measure.replace("_", " "),
        str(one.n),
        *(number(value, ".3f") if isfinite(value) else "∞" for value in (one.median, one.p90, one.max)),
        "" if one.bound is None else f"{one.outside} beyond {one.bound:g}",
    )
    return Distance(cells, one.bound is not None and one.median > one.bound)


def _far(one: Difference, ours: Mapping[Run, Page], theirs: Mapping[Run, Page]) -> Far:
    ours_text, theirs_text = (written(one.key.measure, value, unit=True) for value in (one.ours, one.theirs))
    run = (one.key.suite, one.key.scenario, one.key.run)
    ln = number(one.ln, "+.2f") if isfinite(one.ln) else "one is 0"
    return Far(
        one.key.measure.replace("_", " "),
        "/".join(run),
        one.key.flow,
        ours_text,
        theirs_text,
        ln,
        (ours[run], theirs[run]),
    )


def render(found: Sides, site: Site) -> str:
    """The page."""
    return site.render("sides.html.j2", "", sides=found)
