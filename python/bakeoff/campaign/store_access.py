"""What one campaign takes from a store and adds to it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff import results
from bakeoff.campaign import store as stored
from bakeoff.campaign.archive import DamagedError
from bakeoff.campaign.store import Store
from bakeoff.campaign.worker import Also, Done
from bakeoff.errors import BakeoffError
from bakeoff.results import CampaignRecord, Kept, RunRecord, Taken, layout

if TYPE_CHECKING:
    from bakeoff.scenario import Run


class StoreAccess:
    """The part of a store that a campaign sees. A store that refuses costs no run."""

    def __init__(
        self,
        store: Store | None,
        engine: str,
        versions: dict[str, str],
        kept: Kept = "all",
        also: Also | None = None,
        *,
        fresh: bool,
    ) -> None:
        """Without a store nothing is taken or kept, and with `fresh` nothing is taken."""
        self._store = store
        self._engine = engine
        self._versions = versions
        self._kept = kept
        self._also = also
        self._fresh = fresh
        self.problem: str | None = None
        """Why something was not kept."""

    def take(self, run: Run, folder: Path, campaign: CampaignRecord, order: int) -> Done | None:
        """Make the run's folder, as a part of the campaign, of what is stored; None if that cannot be.

        BakeoffError if the folder cannot be written.
        """
        if self._store is None or self._fresh or (key := self._key(run)) is None:
            return None
        try:
            with results.writing(folder) as partial:
                self._store.fetch(key, partial)
                found, numbers = _whole(partial, run, also=self._also is not None)
                (partial / layout.RUN).unlink()  # it has a second name in the store
                results.seal(partial, self._own(found, campaign, order))
        except DamagedError:
            return None
        return Done(run.key, folder, "taken", found.wall_s, numbers=numbers)

    def put(self, run: Run, folder: Path) -> None:
        """Keep a run that ended well."""
        if self._store is None or self.problem or (key := self._key(run)) is None:
            return
        try:
            self._store.put(key, folder)
        except (OSError, BakeoffError) as error:
            self._complain(self._store, error)

    def close(self) -> None:
        """Wait for what is on its way to the store."""
        if self._store is None:
            return
        try:
            self._store.close()
        except (OSError, BakeoffError) as error:
            self._complain(self._store, error)

    def _key(self, run: Run) -> str | None:
        return stored.key(run, self._engine, self._versions, self._kept, self._also)

    def _own(self, found: RunRecord, campaign: CampaignRecord, order: int) -> RunRecord:
        """The record as the campaign has it: who made the run, and when, stays."""
        made = found.provenance
        name = self._store.name if self._store else ""
        return found.model_copy(
            update={
                "engine": self._engine,
                "campaign": campaign.id,
                "order": order,
                "taken": Taken(date=datetime.now(UTC).replace(microsecond=0), store=name, campaign=found.campaign),
                # A note is the user's own words, and not those of whoever made the run.
                "provenance": made and made.model_copy(update={"note": campaign.provenance.note}),
            }
        )

    def _complain(self, store: Store, error: OSError | BakeoffError) -> None:
        reason = str(error) if isinstance(error, BakeoffError) else error.strerror or str(error)
        self.problem = reason if reason.startswith(store.name) else f"{store.name}: {reason}"


def _whole(folder: Path, run: Run, *, also: bool) -> tuple[RunRecord, Mapping[str, float | None]]:
    """The record of what was fetched, and with `also` the numbers that were taken of it.

    DamagedError unless it is a whole result of this run.
    """
    try:
        result = results.read(folder)
        numbers = results.measured(result) if also else {}
    except BakeoffError as error:
        raise DamagedError(str(error)) from None
    if result.record.status != "ok" or result.run.to_json() != run.to_json():
        raise DamagedError("belongs to another run")
    return result.record, numbers
