"""Two campaigns whose runs are equal but for one congestion control: the pairs, and what changed between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from bakeoff.claims import changes
from bakeoff.claims.comparison import SAME, Key, Side, starting_together
from bakeoff.errors import ClaimError
from bakeoff.measure.functions import CATALOGUE

if TYPE_CHECKING:
    from collections.abc import Hashable

    from bakeoff.claims.changes import Better, Change
    from bakeoff.scenario.run import Run

BETTER: Final[Mapping[str, Better]] = {"goodput": "higher", "marks": "neither"}
"""Which way a measure is better; the others, delays and drops, are better if they are lower."""


class Controls(NamedTuple):
    """What one side has in the place of the other's."""

    ours: str
    theirs: str


@dataclass(frozen=True)
class Changed:
    """A number with what changed in it."""

    key: Key
    """Of our run."""
    axes: Mapping[str, str]
    change: Change

    @property
    def sentence(self) -> str:
        """In words: `linux/single/bbr-pfifo, bbr: goodput: 8 % less, interval 5 to 11 %`."""
        suite, scenario, run, flow, measure = self.key
        return f"{suite}/{scenario}/{run}{f', {flow}' if flow else ''}: {measure}: {self.change.words}"


class Matched(NamedTuple):
    """Their side under the names of our runs and flows."""

    theirs: Side
    controls: Controls
    pairs: int


def matched(ours: Side, theirs: Side) -> Matched | None:
    """Their runs that are equal to one of ours but for one control; None if there are none.

    Of several replacements that one counts which pairs most runs; of several runs that pair with one of ours, that
    which replaces the control in most flows. BakeoffError if several replacements pair as many.
    """
    found: dict[tuple[str, str, str], list[tuple[int, Controls, tuple[str, str, str]]]] = {}
    alike: dict[Hashable, list[tuple[str, str, str]]] = {}
    for of, run in theirs.documents.items():
        alike.setdefault(_without_controls(run), []).append(of)
    for of, run in ours.documents.items():
        for other in alike.get(_without_controls(run), ()):
            replaced = [
                Controls(one.cc, another.cc)
                for one, another in zip(run.flows, theirs.documents[other].flows, strict=True)
                if (one.cc, one.cc_sha256) != (another.cc, another.cc_sha256)
            ]
            if len(set(replaced)) == 1:
                found.setdefault(of, []).append((len(replaced), replaced[0], other))
    counted = Counter(controls for several in found.values() for controls in {one[1] for one in several})
    if not counted:
        return None
    [(controls, most), *rest] = counted.most_common()
    if rest and rest[0][1] == most:
        known = ", ".join(f"'{one.ours}' and '{one.theirs}'" for one, pairs in counted.most_common() if pairs == most)
        raise ClaimError(
            f"{ours.name} and {theirs.name}: several controls differ ({known}); expected one, choose runs with -k"
        )
    values: dict[Key, Mapping[int, float]] = {}
    for of, several in found.items():
        candidates = [one for one in several if one[1] == controls]
        if candidates:
            other = max(candidates, key=lambda one: one[0])[2]
            values |= dict(_renamed(theirs, other, of, ours.documents[of]))
    documents = {of: run for of, run in ours.documents.items() if any(key[:3] == of for key in values)}
    return Matched(Side(theirs.name, values, documents), controls, most)


def _without_controls(run: Run) -> Hashable:
    """What a run is apart from the names and the controls of its flows."""
    run = starting_together(run)
    flows = [flow.model_copy(update={"name": "", "cc": "", "cc_sha256": None}) for flow in run.flows]
    return run.model_copy(update={"flows": flows}).model_dump_json(include=set(SAME))


def _renamed(
    side: Side, of: tuple[str, str, str], name: tuple[str, str, str], run: Run
) -> Iterator[tuple[Key, Mapping[int, float]]]:
    flows = {theirs.name: ours.name for theirs, ours in zip(side.documents[of].flows, run.flows, strict=True)}
    for key, values in side.values.items():
        if key[:3] == of:
            yield Key(*name, flows.get(key.flow, key.flow), key.measure), values


def changed(ours: Side, theirs: Side) -> list[Changed]:
    """What changed from theirs to ours in numbers that both have, over pairs of equal seeds: the most grave first."""
    pairs = []
    for key, values in ours.values.items():
        other = theirs.values.get(key, {})
        if seeds := [seed for seed in values if seed in other]:
            better = BETTER.get(key.measure, "lower")
            mine, old = ([side[seed] for seed in seeds] for side in (values, other))
            pairs.append((key, changes.change(mine, old, CATALOGUE[key.measure].unit, better)))
    corrected = changes.corrected([change for _, change in pairs])
    found = [
        Changed(key, ours.documents[key[:3]].point, change) for (key, _), change in zip(pairs, corrected, strict=True)
    ]
    return sorted(found, key=lambda one: (changes.WORDS.index(one.change.word), -changes.size(one.change)))


def worse(several: Sequence[Changed]) -> bool:
    """Whether any number is."""
    return any(one.change.word == "worse" for one in several)
