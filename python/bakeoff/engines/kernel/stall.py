"""What keeps virtual time from passing: traffic without end through a network that takes no time, and a program that
never sleeps."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from bakeoff import files, jsonfile
from bakeoff.errors import BakeoffError

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


class _Progress(msgspec.Struct):
    """What the agent says: its clock, the time of the run once that has begun, and the programs that run."""

    now_ns: int
    t_s: float | None
    running: list[str]


class Watch:
    """Looks whether virtual time passes in a run with programs."""

    def __init__(self, run: Run, folder: Path, patience_s: float = PATIENCE_S) -> None:
        self.run = run
        self.path = folder / PROGRESS
        self.patience_s = patience_s
        self.last: _Progress | None = None
        self.since = time.monotonic()

    def __call__(self) -> str | None:
        """Why the boot has to end; None while time passes."""
        now = time.monotonic()
        progress: _Progress | None
        try:
            progress = jsonfile.decoded(files.plain_bytes(self.path, _MOST), PROGRESS, _Progress)
        except BakeoffError:
            # Not there yet, or being rewritten.
            progress = self.last
        if progress is None or progress != self.last:
            self.last, self.since = progress, now
            return None
        if now - self.since < self.patience_s:
            return None
        at = "before the run" if progress.t_s is None else f"at t = {progress.t_s:.3f} s"
        lines = {program.name: f"'{program.name}' ({' '.join(program.argv)})" for program in self.run.programs}
        running = [lines[name] for name in progress.running if name in lines]
        who = (
            f"the program {running[0]} never sleeps"
            if len(running) == 1
            else f"one of the programs that ran then never sleeps: {', '.join(running) or 'none of the scenario'}"
        )
        return f"virtual time has stood still {at} for {self.patience_s:.0f} s: {who}, and programs take no time here"


def stall_reason(run: Run) -> str | None:
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
