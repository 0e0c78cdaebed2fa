"""How the runs of a campaign are done, and who follows them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bakeoff.campaign.store import Store
    from bakeoff.campaign.worker import Done
    from bakeoff.scenario import Run


def _ignore(_: object = None) -> None:
    """What an observer does that does not want to know."""


@dataclass(frozen=True, kw_only=True)
class Execution:
    """How runs are done: with what, where, how many at a time, and for how long."""

    engine: str = "sim"
    """`NAME`, or `NAME:MAKE` such as `kernel:mine`."""
    jobs: int | None = None
    """Processes at a time; None for one per core."""
    dask: str | None = None
    """Workers of Dask in place of processes here (docs/cluster.md)."""
    timeout_s: float | None = None
    """A run that takes longer fails and is ended."""
    store: Store | str | None = None
    """The store of finished runs, or its path or URL; None for none."""
    fresh: bool = False
    """Take nothing from the store."""
    stop_on_failure: bool = False
    """Begin no run after one that failed."""
    allow_code: bool = False
    """Permit files of Python that are not a run's own, and programs that the engine's configuration starts here."""
    note: str | None = None
    """The user's own words, which the results keep."""


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What is called, in the process of the campaign, as it goes on."""

    on_start: Callable[[Run], None] = _ignore
    """As a run begins."""
    on_done: Callable[[Done], None] = _ignore
    """As a run ends, or is found done."""
    on_interrupt: Callable[[], None] = _ignore
    """At a Ctrl-C, while runs under way are waited for."""
    on_cluster: Callable[[str], None] = _ignore
    """When Dask has started, with the address of its dashboard."""
