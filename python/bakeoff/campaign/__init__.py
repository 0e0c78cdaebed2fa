"""Campaigns: many independent runs, in parallel processes, into one results folder.

The modules that do runs are imported when they are first used. Commands that only show results never use them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from bakeoff.campaign.locations import (
    ADVICE,
    DUELS,
    EVALUATION,
    LATEST,
    LATEST_ADVICE,
    LATEST_DUEL,
    LATEST_EVALUATION,
    VERIFY,
    latest,
    new_folder,
)

if TYPE_CHECKING:
    from bakeoff.campaign.execution import Execution, Watch
    from bakeoff.campaign.schedule import Report, accepted, cores, missing, run
    from bakeoff.campaign.worker import Done

__all__ = [
    "ADVICE",
    "DUELS",
    "EVALUATION",
    "LATEST",
    "LATEST_ADVICE",
    "LATEST_DUEL",
    "LATEST_EVALUATION",
    "VERIFY",
    "Done",
    "Execution",
    "Report",
    "Watch",
    "accepted",
    "cores",
    "latest",
    "missing",
    "new_folder",
    "run",
]

_MODULE_OF: Final = {"Done": "worker", "Execution": "execution", "Watch": "execution"} | dict.fromkeys(
    ("Report", "accepted", "cores", "missing", "run"), "schedule"
)


def __getattr__(name: str) -> Any:  # noqa: ANN401 (each has its own type above)
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
