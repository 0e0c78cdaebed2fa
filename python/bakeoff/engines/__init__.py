"""The engines: each takes a resolved run and leaves a results folder.

A new engine is one module that has the four functions of `Engine`, and one line in `MODULES`. One that comes in several
makes has a function `choose` besides: `kernel:NAME` is `choose("NAME")` of `kernel`. One that can do only one run at a
time has `ONE_AT_A_TIME = True`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from bakeoff.errors import BakeoffError

if TYPE_CHECKING:
    from bakeoff.scenario import Run

MODULES: Final = {
    "sim": "bakeoff.engines.sim",
    "kernel": "bakeoff.engines.kernel.virtual",
    "netns": "bakeoff.engines.netns",
    "ssh": "bakeoff.engines.ssh.testbed",
}


class Engine(Protocol):
    """What a module needs to be an engine."""

    def check(self, run: Run) -> str:
        """Return the configuration that will be in effect, as text; BakeoffError if the engine cannot do the run."""

    def execute(self, run: Run, folder: Path) -> list[str] | None:
        """Do the run and write series.parquet, counters.json, setup.log and teardown.log into `folder`.

        Returns notes on what was in effect and differs from what the run asked for, if anything.
        RuntimeError if the run broke an invariant: the campaign records it as failed, with the logs that are there.
        """

    def versions(self) -> dict[str, str]:
        """Name and version of everything that decides what comes out."""

    def estimate_s(self, run: Run) -> float:
        """About how many seconds of one core the run will take, for --dry-run."""


def get(name: str) -> Engine:
    """The engine of this name, `NAME` or `NAME:MAKE`. BakeoffError lists those there are."""
    name, colon, make = name.partition(":")
    if name not in MODULES:
        raise BakeoffError(f"unknown engine {name!r}; there is: {', '.join(MODULES)}")
    module = import_module(MODULES[name])
    if not colon:
        return cast(Engine, module)
    if not hasattr(module, "choose"):
        raise BakeoffError(f"engine {name!r} comes in one make only; expected --engine {name}")
    return cast(Engine, module.choose(make))


def one_at_a_time(engine: Engine) -> bool:
    """Whether runs of this engine share what they need, so that a campaign does one after the other."""
    return bool(getattr(engine, "ONE_AT_A_TIME", False))


def place(run: Run) -> str:
    """Where a run comes from, for messages: its scenario file and its name."""
    return ": ".join(filter(None, [run.source, run.key]))
