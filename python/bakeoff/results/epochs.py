"""Whether results that stand side by side come from one model epoch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bakeoff.results.read import Result


def epochs(results: Iterable[Result]) -> dict[int | None, int]:
    """How many of the results come from each model epoch; None stands for those that do not say theirs."""
    counts: dict[int | None, int] = {}
    for result in results:
        made = result.record.provenance
        epoch = made.model_epoch if made else None
        counts[epoch] = counts.get(epoch, 0) + 1
    return counts


def epoch_warning(results: Iterable[Result]) -> str | None:
    """One line for who reads numbers of several model epochs side by side, or None if there is one epoch only."""
    counts = epochs(results)
    if len(counts) < 2:
        return None
    parts = [
        f"{count} from " + ("an older bakeoff that does not say its epoch" if epoch is None else f"epoch {epoch}")
        for epoch, count in sorted(counts.items(), key=lambda item: -1 if item[0] is None else item[0])
    ]
    return f"the runs come from different model epochs ({', '.join(parts)}): differences may come from the models"
