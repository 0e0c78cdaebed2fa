"""Whether a control sends ECT(1), which is what some batteries are about, before any of their runs."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff.engines import python_cc
from bakeoff.engines.sim import Simulator
from bakeoff.errors import BakeoffError

if TYPE_CHECKING:
    from bakeoff.scenario import Run


def sends_ect1(run: Run) -> bool | None:
    """Whether a TCP flow of the run sends ECT(1): by the simulator, or by what an object of its class says.

    None if that fails: the control's own runs tell why.
    """
    try:
        with python_cc.limited():
            classes = python_cc.modules(run, execute=True).values()
            if classes:
                return any(getattr(each(), "ect1", False) for each in classes)
        with tempfile.TemporaryDirectory() as folder:
            flows = Simulator().outcome(run, Path(folder)).counters.flows
    except BakeoffError:
        return None
    return any(flow.received_ect1 for flow in flows.values())
