"""The verdicts that were recorded: catalog/claims/expected.csv, one line per claim and engine."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from bakeoff import files
from bakeoff.claims import claim as claims
from bakeoff.claims.today import SUFFIX
from bakeoff.claims.verdict import WORDS
from bakeoff.errors import ClaimError

if TYPE_CHECKING:
    from bakeoff.claims.verdict import Decided

_COLUMNS: Final = ["claim", "engine", "direction", "size"]
_LARGEST: Final = 16 << 20
"""Bytes of the file."""


class Recorded(NamedTuple):
    """The words of the verdicts; empty where the claim has no such predicate."""

    direction: str
    size: str


Known = Mapping[tuple[str, str], Recorded]
"""By claim and engine."""


def path() -> Path:
    """Where they are recorded."""
    return claims.folder() / "expected.csv"


def load() -> dict[tuple[str, str], Recorded]:
    """What was recorded; nothing if the file is not there. BakeoffError names the line and what was expected there."""
    file = path()
    try:
        text = files.read(file, _LARGEST).decode()
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ClaimError(f"{file}: cannot be read: {error}") from None
    try:
        lines = list(csv.reader(io.StringIO(text), strict=True))
    except csv.Error as error:
        raise ClaimError(f"{file}: invalid CSV: {error}") from None
    if not lines or lines[0] != _COLUMNS:
        raise ClaimError(f"{file}: line 1: expected the columns {','.join(_COLUMNS)}")
    found: dict[tuple[str, str], Recorded] = {}
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(_COLUMNS):
            raise ClaimError(f"{file}: line {number}: {len(line)} values; expected {len(_COLUMNS)}")
        name, engine, *words = line
        for word in words:
            if word and word not in WORDS:
                raise ClaimError(f"{file}: line {number}: '{word}'; expected one of {', '.join(WORDS)}")
        if (name, engine) in found:
            raise ClaimError(f"{file}: line {number}: duplicate '{name}' for {engine}; expected one line per engine")
        found[name, engine] = Recorded(*words)
    return found


def words(decided: Decided) -> Recorded:
    """What would be recorded."""
    parts = decided.outcome.direction, decided.outcome.size
    return Recorded(*("" if part is None else part.word for part in parts))


def differences(several: Iterable[Decided], known: Known, engine: str) -> list[str]:
    """A line for each verdict that is another one than was recorded for this engine."""
    found = []
    for each in several:
        before = known.get((each.claim.name, kind(engine)))
        if before is None:
            continue
        for part, old, new in zip(Recorded._fields, before, words(each), strict=True):
            if old != new:
                found.append(f"{each.claim.name}: {part}: '{new or 'none'}'; recorded is '{old or 'none'}'")
    return found


def unrecorded(several: Iterable[Decided], known: Known, engine: str) -> list[str]:
    """The claims that have no recorded verdict for this engine."""
    return [each.claim.name for each in several if (each.claim.name, kind(engine)) not in known]


def record(several: Iterable[Decided], engine: str) -> None:
    """Write these verdicts into the file; other lines stay, except those of claims that are no more.

    The file is read anew: another `bakeoff verify` may have recorded its verdicts since this one began.
    """
    own = {(each.claim.name, kind(engine)): words(each) for each in several}
    order = {claim.name: number for number, claim in enumerate(claims.load())}
    kept = {key: row for key, row in {**load(), **own}.items() if key[0] in order}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for (name, of), row in sorted(kept.items(), key=lambda item: (order[item[0][0]], item[0][1])):
        writer.writerow([name, of, *row])
    files.write(path(), text.getvalue().encode())


def label(engine: str, *, today: bool) -> str:
    """What verdicts are recorded under: `kernel`, or `kernel-today` of those with the algorithms of today."""
    return kind(engine) + (SUFFIX if today else "")


def kind(engine: str) -> str:
    """`kernel` of `kernel:NAME`."""
    return engine.partition(":")[0]
