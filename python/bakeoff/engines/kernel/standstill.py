"""What would keep virtual time from passing: traffic without end through a network that takes no time."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bakeoff.scenario import Run
    from bakeoff.scenario.run import Qdisc

# A rate or a delay that is not nothing, in the words of any qdisc or class.
_TAKES_TIME: Final = re.compile(r"\b(?:rate|bandwidth|delay|slot)\s+(?!0+(?:\.0+)?(?:[a-z]|\s|$))\S")


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
