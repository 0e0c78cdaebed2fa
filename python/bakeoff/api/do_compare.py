"""`bakeoff.compare`: the differences between two campaigns with the same runs, or that differ in one control."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff import references, results
from bakeoff.api.result import Results
from bakeoff.arguments import check
from bakeoff.claims import comparison, other_control, own_distance
from bakeoff.claims.comparison import Comparison, Difference, Distribution
from bakeoff.errors import UsageError

if TYPE_CHECKING:
    import polars as pl

    from bakeoff.claims.comparison import Side
    from bakeoff.claims.other_control import Changed, Controls
    from bakeoff.claims.own_distance import Group
    from bakeoff.text.markup import Format

Runs = Sequence[results.Result]
_SIDE: Final = "expected the results of runs, or the folder of a campaign"


@dataclass(frozen=True)
class Compared:
    """The numbers that two campaigns have in common, and the bounds."""

    comparison: Comparison
    """Every number that both sides have, notes on runs that were left out, and a warning."""
    bounds: Mapping[str, float]
    """The largest |ln(ours / theirs)| that is accepted, by measure."""
    by: Sequence[str]
    """Axes whose labels divide the numbers into groups."""
    distributions: Sequence[Distribution]
    """|ln(ours / theirs)| by group and measure."""
    own: Sequence[Group] = ()
    """The distances beside those of the seeds of `theirs` from each other; empty unless asked for."""
    controls: Controls | None = None
    """The congestion controls of the two sides, if their runs are equal but for one; else None."""
    changes: Sequence[Changed] = ()
    """What changed from `theirs` to `ours` if they differ in a control, with a correction for their number."""

    @property
    def differences(self) -> Sequence[Difference]:
        """All numbers of both sides."""
        return self.comparison.differences

    @property
    def outside(self) -> list[Difference]:
        """The numbers outside the bound of their measure, by measure, the largest distance first."""
        return comparison.outside(self.differences, self.bounds)

    @property
    def agrees(self) -> bool:
        """Whether the median of each measure is within its bound, in all groups; with `controls`: nothing is worse."""
        if self.controls is not None:
            return not other_control.worse(self.changes)
        return all(one.bound is None or one.median <= one.bound for one in self.distributions)

    @property
    def each_agrees(self) -> bool:
        """Whether every number is within its bound, or the seeds do not separate the two sides."""
        return all(one.overlap is not False for one in self.outside)

    def frame(self) -> pl.DataFrame:
        """One row per number, as in `bakeoff compare --format csv`; `ln` is ln(ours / theirs)."""
        import polars as pl

        if self.controls is not None:
            from bakeoff.tables import control_changes

            return pl.DataFrame([control_changes.record(one) for one in self.changes], infer_schema_length=None)
        from bakeoff.tables.distances import record

        return pl.DataFrame([record(one, self.bounds) for one in self.differences], infer_schema_length=None)

    def text(self, form: Format = "terminal") -> str:
        """The output of `bakeoff compare`."""
        from bakeoff.tables import control_changes
        from bakeoff.tables.distances import render, render_own

        if self.controls is not None:
            return control_changes.render(self.comparison, self.controls, self.changes, form)
        if self.own:
            return render_own(self.comparison, self.own, self.by, form)
        return render(self.comparison, self.bounds, self.by, form)

    def __repr__(self) -> str:
        warning = self.comparison.warning
        return (f"{warning}\n" if warning else "") + self.text().rstrip()


def compare(
    ours: Runs | Path | str,
    theirs: Runs | Path | str,
    *,
    by: Sequence[str] = (),
    bounds: Mapping[str, float] | None = None,
    own: bool = False,
    paired: bool = True,
) -> Compared:
    """Compare two campaigns with the same runs, as `bakeoff compare` does.

    A side is the `Results` of `run` or `load`, or a campaign folder; `theirs` may be the name of a reference. `by`
    lists axes to group by; `scenario` is one. `bounds`, such as `{"goodput": 0.05}`, are the largest accepted medians
    of |ln(ours / theirs)|. `own` adds the distances between the seeds of `theirs`. Equal seeds are compared in pairs
    unless `paired` is false. Without common runs, those are paired that are equal but for one congestion control:
    then `changes` has what is better, worse or undecided, and `by`, `bounds`, `own` and `paired` are invalid.
    BakeoffError if the sides have nothing in common.
    """
    check("compare", by=("texts", by), bounds=("mapping?", bounds), own=("flag", own), paired=("flag", paired))
    if bounds is not None and not all(isinstance(bound, int | float) for bound in bounds.values()):
        raise UsageError(f"compare: bounds: {bounds!r}; expected numbers, such as {{'goodput': 0.05}}")
    if own and bounds is not None:
        raise UsageError("compare: own and bounds: mutually exclusive")
    other = theirs if isinstance(theirs, str) and not Path(theirs).is_dir() else _side("theirs", theirs)
    return compared(_side("ours", ours), other, by=by, bounds=bounds, own=own, paired=paired)


def compared(
    ours: tuple[str, Runs],
    theirs: tuple[str, Runs] | str,
    *,
    by: Sequence[str] = (),
    bounds: Mapping[str, float] | None = None,
    own: bool = False,
    paired: bool = True,
) -> Compared:
    """Compare runs with those of another campaign, each with its name, or with the reference of this name."""
    mine = comparison.side_of(*ours)
    warning = None
    if isinstance(theirs, str):
        lines = references.named(theirs)
        if not lines:
            names = ", ".join(dict.fromkeys(line.reference for line in references.load()))
            raise UsageError(f"{theirs}: no such results folder or reference; expected a folder or one of: {names}")
        other = comparison.side_of_reference(references.stem(theirs), lines, mine)
        mine = comparison.with_sums(mine, other)
    else:
        warning = results.epoch_warning([*ours[1], *theirs[1]])
        other = comparison.side_of(*theirs)
        if not comparison.have_common_runs(mine, other) and (pairs := other_control.matched(mine, other)):
            if by or bounds is not None or own or not paired:
                raise UsageError(
                    f"{mine.name} and {other.name} differ in the congestion control; expected none of by, bounds, own "
                    "and unpaired, which compare equal runs"
                )
            return _of_controls(mine, pairs, warning)
    found = replace(comparison.compare(mine, other, paired=paired), warning=warning)
    axes = list(by) or [comparison.SCENARIO] * own
    groups = own_distance.groups(found, mine, other, axes) if own else []
    limits = dict(comparison.BOUNDS if bounds is None else bounds)
    return Compared(found, limits, axes, comparison.distributions(found.differences, limits, axes), groups)


def _of_controls(ours: Side, found: other_control.Matched, warning: str | None) -> Compared:
    changes = other_control.changed(ours, found.theirs)
    left = len(ours.documents) - len(found.theirs.documents)
    notes = [f"{left} runs of {ours.name} have no pair that differs in this control only"] if left else []
    compared = replace(comparison.compare(ours, found.theirs), notes=notes, warning=warning)
    return Compared(compared, {}, (), (), controls=found.controls, changes=changes)


def _side(name: str, given: object) -> tuple[str, Runs]:
    if isinstance(given, str | os.PathLike):
        return str(given), results.survey(Path(given)).results
    if isinstance(given, Results):
        return name, given
    if isinstance(given, Sequence) and all(isinstance(one, results.Result) for one in given):
        return name, given
    raise UsageError(f"compare: {name}: {type(given).__name__}; {_SIDE}")
