"""The page of evaluations: what `bakeoff evaluate` found in the campaigns of a site."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import msgspec

from bakeoff import jsonfile
from bakeoff.errors import BakeoffError
from bakeoff.evaluation.as_document import FILE
from bakeoff.expressions import quantity

if TYPE_CHECKING:
    from bakeoff.site.pages import Site
    from bakeoff.site.site_contents import Contents

_MOST_BYTES: Final = 20_000_000


class Number(msgspec.Struct, frozen=True):
    """A mean and its 95 % interval in the base unit."""

    mean: float | str
    interval: tuple[float, float] | None = None


class Case(msgspec.Struct, frozen=True):
    """A case of evaluation.json."""

    case: str
    clause: str
    says: str
    verdict: str
    other: str | None = None
    reason: str | None = None
    measure: str | None = None
    unit: str | None = None
    cc: Number | None = None
    qdisc: Number | None = None
    baseline: Number | None = None
    command: str | None = None

    @property
    def numbers(self) -> tuple[str, str]:
        """What was measured, and of the baseline, as people read it."""
        one, other = (self.shown(each) for each in (self.cc or self.qdisc, self.baseline))
        return one, other

    def shown(self, number: Number | None) -> str:
        """`95.2 [90.1, 99.8] ms`; empty for none."""
        if number is None or isinstance(number.mean, str):
            return "" if number is None else str(number.mean)
        mean = number.mean
        if number.interval is None:
            return quantity.formatted(mean, self.unit)
        low, high = number.interval
        half = max(mean - low, high - mean)
        return quantity.spread(mean, half, (low, high), self.unit)


class Change(msgspec.Struct, frozen=True):
    """What changed from the baseline in a case."""

    word: str
    words: str


class Document(msgspec.Struct, frozen=True):
    """What the page shows of evaluation.json."""

    baseline: str
    counts: dict[str, int]
    cases: list[Case]
    engine: str
    seeds: int
    runs: int
    wall_s: float
    cc: str = ""
    qdisc: str = ""
    changes: list[Change] = []
    versions: dict[str, str] = {}


@dataclass(frozen=True)
class Evaluated:
    """An evaluation with the folder of its campaign below the results."""

    folder: str
    document: Document | None
    why: str | None = None
    """Why the file cannot be read."""


def gather(contents: Contents) -> list[Evaluated]:
    """The evaluations among the campaigns of a site, in order of their folders."""
    found = []
    for folder in sorted({page.result.path.parents[2] for page in contents.pages}):
        path = folder / FILE
        if not path.is_file():
            continue
        name = "" if folder == contents.root else folder.name
        try:
            found.append(Evaluated(name, jsonfile.read(path, _MOST_BYTES, Document)))
        except (BakeoffError, OSError) as error:
            found.append(Evaluated(name, None, str(error)))
    return found


def render(several: list[Evaluated], site: Site) -> str:
    """The page."""
    return site.render("evaluations.html.j2", "", several=several)
