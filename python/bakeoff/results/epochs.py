"""Check that results in one table come from the same model epoch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bakeoff.results.read import Result


def epochs(results: Iterable[Result]) -> dict[int | None, int]:
    """The number of results per model epoch; None for results without one."""
    counts: dict[int | None, int] = {}
    for result in results:
        made = result.record.provenance
        epoch = made.model_epoch if made else None
        counts[epoch] = counts.get(epoch, 0) + 1
    return counts


def epoch_warning(results: Iterable[Result]) -> str | None:
    """A warning, in one line, if the results come from several model epochs, else None."""
    counts = epochs(results)
    if len(counts) < 2:
        return None
    parts = [
        f"{count} from " + ("an older bakeoff without an epoch" if epoch is None else f"epoch {epoch}")
        for epoch, count in sorted(counts.items(), key=lambda item: -1 if item[0] is None else item[0])
    ]
    return f"the runs come from different model epochs ({', '.join(parts)}): differences may come from the models"
