"""How long a run with a class in Python may take."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bakeoff.scenario import Run

_PATIENCE_S: Final = 60.0
_TIMES: Final = 100
"""Of the simulator's own time: Python takes about ten times as long."""


def patience_s(runs: Sequence[Run], engine: str) -> float | None:
    """How long a run with a class in Python may take, which may hold an endless loop; None without one."""
    from bakeoff import engines
    from bakeoff.scenario.python_cc import executed

    if not executed(runs):
        return None
    module = engines.get(engine)
    return float(ceil(_PATIENCE_S + _TIMES * max(map(module.estimate_s, runs))))
