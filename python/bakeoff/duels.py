"""What a duel is: its parts and what they are if nobody says otherwise, for the command line, Python and scenarios."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, fields
from itertools import product
from math import prod
from typing import Any

from bakeoff.errors import ScenarioError


@dataclass(frozen=True, kw_only=True)
class Duel:
    """Two bulk flows through one bottleneck. Rate and times have units, the qdisc is in tc's words."""

    cc1: str
    cc2: str
    qdisc: str = "fq_codel flows 1"
    """One queue for both by default: a queue per flow gives each half, whatever the congestion controls do."""
    rate: str = "50mbit"
    rtt: str = "20ms"
    rtt2: str | None = None
    """Of the second flow; that of the path if absent."""
    duration: str = "30s"

    def each(self) -> Iterator[Duel]:
        """The duels of all combinations of what commas separate, the last part moving fastest; all are of one duration.

        A comma of a value itself is written as `\\,`. BakeoffError for an empty value, or for one that stands twice.
        """
        parts = {part.name: _values(part.name, getattr(self, part.name)) for part in fields(self)}
        for values in product(*parts.values()):
            yield Duel(**dict(zip(parts, values, strict=True)))

    def count(self) -> int:
        """How many `each` gives."""
        return prod(len(_values(part.name, getattr(self, part.name))) for part in fields(self))


def _values(name: str, text: str | None) -> list[Any]:
    if text is None or name == "duration":
        return [text]
    values = [value.strip().replace("\\,", ",") for value in re.split(r"(?<!\\),", text)]
    if len(values) > 1 and not all(values):
        raise ScenarioError(f"duel: {name}: '{text}' has an empty value; expected values with commas between them")
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise ScenarioError(f"duel: {name}: '{text}' has '{twice}' twice; expected unlike values")
    return values
