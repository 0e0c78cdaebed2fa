"""Parameters of a duel and their defaults, for the command line, Python and scenarios."""

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
    """Two bulk flows through one bottleneck. Rate and times have units; the qdisc is in tc syntax."""

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
        """The duels of all combinations of comma-separated values, the last parameter varying fastest.

        `\\,` is a comma within a value. BakeoffError for an empty or duplicate value.
        """
        parts = {part.name: _values(part.name, getattr(self, part.name)) for part in fields(self)}
        for values in product(*parts.values()):
            yield Duel(**dict(zip(parts, values, strict=True)))

    def count(self) -> int:
        """The number of duels of `each`."""
        return prod(len(_values(part.name, getattr(self, part.name))) for part in fields(self))


def _values(name: str, text: str | None) -> list[Any]:
    if text is None or name == "duration":
        return [text]
    values = [value.strip().replace("\\,", ",") for value in re.split(r"(?<!\\),", text)]
    if len(values) > 1 and not all(values):
        raise ScenarioError(f"duel: {name}: '{text}' contains an empty value; expected comma-separated values")
    twice = next((value for value in values if values.count(value) > 1), None)
    if twice is not None:
        raise ScenarioError(f"duel: {name}: '{text}': duplicate value '{twice}'; expected unique values")
    return values
