"""Names of flows, probes and places as parts of the names of files."""

from __future__ import annotations

from collections.abc import Iterable


def parts(names: Iterable[str]) -> list[str]:
    """A part for each name, in order, and no two are equal: what a file's name may not hold is `_`."""
    found: list[str] = []
    for name in names:
        word = "".join(c if c.isalnum() or c in "-+~@=,()" else "_" for c in name)
        taken = {other.casefold() for other in found}
        number, part = 1, word
        while part.casefold() in taken:
            number += 1
            part = f"{word}-{number}"
        found.append(part)
    return found
