"""What keeps virtual time from passing: traffic without end through a network that takes no time, and a program that
never sleeps."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bakeoff import files

if TYPE_CHECKING:
    from bakeoff.scenario import Run
    from bakeoff.scenario.run import Qdisc

# A rate or a delay that is not nothing, in the words of any qdisc or class.
_TAKES_TIME: Final = re.compile(r"\b(?:rate|bandwidth|delay|slot)\s+(?!0+(?:\.0+)?(?:[a-z]|\s|$))\S")


PROGRESS: Final = "agent-progress.json"
"""Where the agent says how far virtual time has come, in the results while the run lasts."""
PATIENCE_S: Final = 40.0
"""Wall time without a step of virtual time. On an idle machine the agent tells of one each few milliseconds."""
_MOST: Final = 1 << 20


class Watch:
    """Looks whether virtual time passes in a run with programs."""

    def __init__(self, run: Run, folder: Path, patience_s: float = PATIENCE_S) -> None:
        self.run = run
        self.path = folder / PROGRESS
        self.patience_s = patience_s
        self.last: dict[str, Any] = {}
        self.since = time.monotonic()

    def __call__(self) -> str | None:
        """Why the boot has to end; None while time passes."""
        now = time.monotonic()
        try:
            told = json.loads(files.plain_bytes(self.path, _MOST))
        except (RuntimeError, ValueError):
            # Not there yet, or being rewritten.
            told = self.last
        if told != self.last or not isinstance(told, dict):
            self.last, self.since = told if isinstance(told, dict) else {}, now
            return None
        if not told or now - self.since < self.patience_s:
            return None
        at = "before the run" if told.get("t_s") is None else f"at t = {told['t_s']:.3f} s"
        lines = {program.name: f"'{program.name}' ({' '.join(program.argv)})" for program in self.run.programs}
        running = [lines[name] for name in told.get("running", ()) if name in lines]
        who = (
            f"the program {running[0]} never sleeps"
            if len(running) == 1
            else f"one of the programs that ran then never sleeps: {', '.join(running) or 'none of the scenario'}"
        )
        return f"virtual time has stood still {at} for {self.patience_s:.0f} s: {who}, and programs take no time here"


def standstill(run: Run) -> str | None:
    """The place and reason if a bulk flow has neither a rate nor a delay in its network; None if time will pass.

    In `time-travel=inf-cpu` a program takes no time: a flow that nothing slows down has infinitely much to do at once.
    """
    if any(_TAKES_TIME.search(words) for end in run.interfaces for words in _words(end.egress, end.ingress)):
        return None
    if any(link.delay_s for link in run.links):
        return None
    for index, flow in enumerate(run.flows):
        if flow.source.kind == "bulk" and flow.max_pacing_rate_bps is None:
            return (
                f"flows[{index}]: '{flow.name}' is bulk and nothing in the network has a rate or a delay: "
                "virtual time would stand still; expected a bottleneck"
            )
    return None


def _words(*trees: Qdisc | None) -> Iterator[str]:
    for tree in trees:
        if tree is not None:
            yield tree.qdisc
            yield from (cls.class_ for cls in tree.classes)
            yield from _words(tree.child, *(cls.child for cls in tree.classes))
