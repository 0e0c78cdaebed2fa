"""The engines: each takes a resolved run and leaves a results folder.

A new engine is one module with a function `choose`, and one line in `MODULES`. `choose(make)` gives the engine: `None`
for `--engine NAME`, the words behind the colon for `--engine NAME:MAKE` of one that comes in several makes. Another
package registers its `choose` as an entry point of the group `bakeoff.engines`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from bakeoff.errors import EngineError, RefusedError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from bakeoff.results.counters import Counters
    from bakeoff.results.series import Parts
    from bakeoff.scenario import Run

MODULES: Final = {
    "sim": "bakeoff.engines.sim",
    "kernel": "bakeoff.engines.kernel.virtual",
    "netns": "bakeoff.engines.netns",
    "ssh": "bakeoff.engines.ssh.testbed",
}

GROUP: Final = "bakeoff.engines"
"""The entry points of engines in other packages."""


@dataclass(frozen=True)
class Outcome:
    """What a run gave, for whoever would read it from the folder where it lies."""

    parts: Parts
    """What stands in series.parquet, by kind, name and metric."""
    counters: Counters
    """What stands in counters.json, as far as a measure reads it."""
    notes: tuple[str, ...] = ()
    """What was in effect and differs from what the run asked for."""


class Engine(Protocol):
    """What a campaign asks of an engine."""

    @property
    def one_at_a_time(self) -> bool:
        """Whether its runs share what they need, so that a campaign does one after the other."""

    @property
    def repeatable(self) -> bool:
        """Whether a run that is done again gives the same, so that a stored result may stand for a new one."""

    def check(self, run: Run) -> str:
        """Return the configuration that will be in effect, as text; BakeoffError if the engine cannot do the run.

        Nothing that the run names is executed unless `run.executable`.
        """

    def outcome(self, run: Run, folder: Path) -> Outcome:
        """As `execute`, where nothing will be read from `folder` unless the run fails: files may be left out."""

    def execute(self, run: Run, folder: Path) -> Outcome:
        """Do the run and write series.parquet, counters.json, setup.log and teardown.log into `folder`.

        RunError if the run broke an invariant: the campaign records it as failed, with the logs that are there.
        """

    def versions(self) -> dict[str, str]:
        """Name and version of everything that decides what comes out."""

    def estimate_s(self, run: Run) -> float:
        """About how many seconds of one core the run will take, for --dry-run."""


def get(name: str) -> Engine:
    """The engine of this name, `NAME` or `NAME:MAKE`. BakeoffError lists those there are."""
    kind, colon, make = name.partition(":")
    if kind in MODULES:
        choose = import_module(MODULES[kind]).choose
    elif kind in _plugins():
        choose = _plugins()[kind].load()
    else:
        raise EngineError(f"unknown engine {kind!r}; expected one of: {', '.join(names())}")
    engine: Engine = choose(make if colon else None)
    return engine


def names() -> list[str]:
    """Every engine: those of bakeoff, then those of other packages in order of their names."""
    return [*MODULES, *sorted(_plugins().keys() - MODULES.keys())]


@cache
def _plugins() -> dict[str, EntryPoint]:
    """Engines of other packages. The search reads the metadata of every installed package: some milliseconds."""
    from importlib.metadata import entry_points

    return {plugin.name: plugin for plugin in entry_points(group=GROUP)}


def permit_code(name: str) -> None:
    """Let this engine start what its own configuration names: without that, `ssh` shows it and refuses."""
    kind, _, make = name.partition(":")
    if kind == "ssh" and make:
        from bakeoff.engines.ssh import inventory

        inventory.permit(Path(make))


def only_make(name: str, make: str | None) -> None:
    """BakeoffError if a make was asked for of an engine that comes in one only."""
    if make is not None:
        raise EngineError(f"engine {name!r} has no variants; expected --engine {name}")


def only_kernel_runs_programs(run: Run, engine: str) -> None:
    """BakeoffError if the run has programs: on real machines nothing would keep a stranger's command from the rest."""
    if run.programs:
        raise RefusedError(
            f"programs[0]: '{run.programs[0].name}': not supported by --engine {engine}; expected --engine kernel",
            place=place(run),
        )


def place(run: Run) -> str:
    """Where a run comes from, for messages: its scenario file and its name."""
    return ": ".join(filter(None, [run.source, run.key]))
