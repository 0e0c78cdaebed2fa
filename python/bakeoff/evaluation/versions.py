"""Two versions of a control: what changed from the baseline to the evaluated one, case by case."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bakeoff.claims import changes as claims_changes

if TYPE_CHECKING:
    from bakeoff.claims.changes import Change, Word
    from bakeoff.evaluation.assess import Assessed


@dataclass(frozen=True)
class Changed:
    """A case with what changed in it."""

    assessed: Assessed
    change: Change | None
    """None if one of the versions fails."""

    @property
    def word(self) -> Word:
        """`better` if only the old version fails, `worse` if only the new one does; else that of the change."""
        if self.change is not None:
            return self.change.word
        return "worse" if self.assessed.crashed else "better"

    @property
    def words(self) -> str:
        """In words, without the case: `8 % less, interval 5 to 11 %`."""
        if self.change is not None:
            return self.change.words
        return "fails now" if self.assessed.crashed else "fails no longer"

    @property
    def sentence(self) -> str:
        """In words: `pair beside reno: 8 % less goodput("other"), interval 5 to 11 %`."""
        each = self.assessed
        assert each.case.test is not None
        beside = f" beside {each.other}" if each.other else ""
        return f"{each.case.name}{beside}: {each.case.test.shows}: {self.words}"


def changes(cases: Sequence[Assessed], seeds: int) -> list[Changed]:
    """The cases that were measured with both versions or that one of them fails: the most grave first.

    Without a number of each seed there is no pair, so a case in which some runs of both versions failed is left out.
    """
    pairs = []
    failed = []
    for each in cases:
        if each.case.test is None:
            continue
        if each.crashed != each.baseline_crashed:
            failed.append(Changed(each, None))
        elif each.cc is not None and each.baseline is not None and not each.crashed:
            ours, theirs = each.cc.values[0], each.baseline.values[0]
            if len(ours) == len(theirs) == seeds:
                pairs.append((each, claims_changes.change(ours, theirs, each.cc.unit, each.case.test.better)))
    corrected = claims_changes.corrected([change for _, change in pairs])
    found = failed + [Changed(each, change) for (each, _), change in zip(pairs, corrected, strict=True)]
    return sorted(found, key=lambda one: (claims_changes.WORDS.index(one.word), -_size(one)))


def _size(one: Changed) -> float:
    return float("inf") if one.change is None else claims_changes.size(one.change)
