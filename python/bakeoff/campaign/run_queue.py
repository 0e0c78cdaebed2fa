"""What a campaign has to do: which runs wait, which have ended, and which further ones these call for."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from bakeoff import results
from bakeoff.campaign import signals, worker
from bakeoff.campaign.worker import Done
from bakeoff.errors import BakeoffError, CampaignError
from bakeoff.results import CampaignRecord, Kept, captures
from bakeoff.scenario import python_cc

if TYPE_CHECKING:
    from bakeoff.campaign.store_access import StoreAccess
    from bakeoff.engines import Engine
    from bakeoff.scenario import Run

Waiting = tuple[Path, "Run", int]
"""A run that was not begun, with its folder and its place in the campaign's order."""
More = Callable[[Done, int], Iterable["Run"]]
"""What says which further runs are to be done because of one that ended, while so many wait already."""


@dataclass
class RunQueue:
    """The runs of a campaign that is under way."""

    root: Path
    module: Engine
    places: dict[Path, Run]
    """Every run by its folder."""
    store: StoreAccess
    """What was done before, elsewhere."""
    on_done: Callable[[Done], None] | None = None
    more: More | None = None
    allow_code: bool = False
    waiting: deque[Waiting] = field(default_factory=deque)
    ended: dict[Path, Done] = field(default_factory=dict)
    _interrupts: list[int] = field(default_factory=list)
    _captured: int = 0
    """Bytes."""

    def begin(self, record: CampaignRecord, kept: Kept, also: worker.Also | None) -> None:
        """Have all runs wait that are not done already, and those that the others call for."""
        self._claim = record, kept, also
        self._order = {folder: number for number, folder in enumerate(self.places)}
        # As an exception a Ctrl-C could come inside of a library, which makes another error of it.
        with signals.collected() as self._interrupts:
            self._join(deque(self.places))
        if self._interrupts:
            signals.leave(self._interrupts)

    def end(self, done: Done, *, alone: bool = False) -> None:
        """Note how a run ended, and have those wait that it calls for; `alone` if it is not asked for them."""
        self._note(done)
        if not alone:
            self._join(deque(self._called_for(done, len(self.waiting))))

    def check_captures(self) -> None:
        """BakeoffError if the packets that were kept take more than a campaign may."""
        most = captures.of_campaign()
        if self._captured > most and self.waiting:
            raise CampaignError(
                f"{self.root}: the captures of {len(self.ended)} of {len(self.places)} runs take {self._captured:,} "
                f"bytes, and the budget of a campaign is {most:,}; finished runs were kept. Capture less, or increase "
                f"the environment variable {captures.OF_CAMPAIGN} and continue with --resume"
            )

    def in_order(self) -> list[Done]:
        """The runs that ended, in the order of the campaign."""
        return [self.ended[folder] for folder in self.places if folder in self.ended]

    def _note(self, done: Done) -> None:
        self.ended[done.path] = done
        if self.places[done.path].captures:
            self._captured += captures.taken(done.path)
        if done.status == "ok":
            self.store.put(self.places[done.path], done.path)
        if self.on_done is not None:
            self.on_done(done)

    def _join(self, fresh: deque[Path]) -> None:
        record, kept, also = self._claim
        while fresh and not self._interrupts:
            folder = fresh.popleft()
            run = self.places[folder]
            known = _done_before(folder, run, record, kept)
            done = self.store.take(run, folder, record, self._order[folder]) if known is None else None
            if known is not None:
                done = Done(run.key, folder, "skipped", numbers=_numbers(known, also))
            if done is None:
                self.waiting.append((folder, run, self._order[folder]))
                continue
            self._note(done)
            fresh += self._called_for(done, len(self.waiting) + len(fresh))

    def _called_for(self, done: Done, waiting: int) -> list[Path]:
        """The folders of the runs that this one calls for, and that none called for before."""
        if self.more is None:
            return []
        further = [python_cc.permitted(each, allow_code=self.allow_code) for each in self.more(done, waiting)]
        found = folders(further, self.root, self.places)
        for each in found.values():
            self.module.check(each)
        self._order.update({folder: len(self.places) + number for number, folder in enumerate(found)})
        self.places.update(found)
        return list(found)


def folders(runs: Iterable[Run], root: Path, known: Mapping[Path, Run] = MappingProxyType({})) -> dict[Path, Run]:
    """Which folder each run goes to; one that was selected twice is there once, one that is `known` already is not.

    BakeoffError for a run that cannot have a folder, or has that of another one.
    """
    places: dict[Path, Run] = {}
    for each in runs:
        if any(part in ("", ".", "..") or part.startswith(".") for part in each.key.split("/")):
            raise CampaignError(
                f"{each.key}: not a valid folder name; expected suite/scenario/run without leading dots"
            )
        if not each.key.isprintable():
            raise CampaignError(f"{each.key!r}: not a valid folder name; expected printable characters")
        folder = results.below(root, each.key)
        there = places.get(folder, known.get(folder))
        if there is not None and there.to_json() != each.to_json():
            raise CampaignError(f"{each.key}: duplicate name of two different runs; expected unique names")
        if folder not in known:
            places[folder] = each
    return places


def is_done(folder: Path, run: Run, campaign: CampaignRecord) -> bool:
    """Whether this campaign has done the run and kept all samples."""
    return _done_before(folder, run, campaign, "all") is not None


def _done_before(folder: Path, wanted: Run, campaign: CampaignRecord, kept: Kept) -> results.Result | None:
    """The whole result of this run, with all that is to be kept of it; None if there is none."""
    if not os.path.exists(folder):  # noqa: PTH110 (what cannot be looked at is not there)
        return None
    try:
        result = results.read(folder)
    except BakeoffError:
        return None
    if result.record.campaign != campaign.id:
        raise CampaignError(f"{folder}: belongs to another campaign; move it away, or choose another --out")
    enough = kept == "measures" or result.record.kept == "all"
    return result if result.ok and enough and result.run.to_json() == wanted.to_json() else None


def _numbers(result: results.Result, also: worker.Also | None) -> Mapping[str, float | None]:
    """What `also` took of a result, or takes now where it was not asked before."""
    if also is None:
        return {}
    return results.measured(result) or also(result)
