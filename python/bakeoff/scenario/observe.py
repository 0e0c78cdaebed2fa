"""What a run leaves behind besides samples, when asked: traces and captures."""

from collections.abc import Sequence
from difflib import get_close_matches
from typing import Final

from bakeoff.errors import ScenarioError
from bakeoff.scenario.run import Run

TRACES: Final = ("cc",)
ALL: Final = "all"


def observe(run: Run, *, trace: Sequence[str] = (), capture: Sequence[str] = ()) -> Run:
    """The run with `trace` (`cc`) and captures at the interfaces `capture` besides its own.

    An interface is `mid>srv` (what leaves mid towards srv) or `mid<srv` (what arrives there); a node alone
    is both at each of its interfaces, and `all` is what leaves at every interface. BakeoffError names the interfaces if
    there is no such one.
    """
    for what in trace:
        if what not in TRACES:
            raise ScenarioError(f"trace: '{what}'; expected {' or '.join(TRACES)}")
    ends = [end for link in run.links for end in (link.ends, link.ends[::-1])]
    leaving = [f"{node}>{peer}" for node, peer in ends]
    known = {*leaving, *(f"{node}<{peer}" for node, peer in ends)}
    nodes = {name: [f"{node}{way}{peer}" for node, peer in ends if node == name for way in "><"] for name, _ in ends}
    captures = list(run.captures)
    for name in capture:
        if name != ALL and name not in nodes and name not in known:
            near = get_close_matches(name, leaving, n=1)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            raise ScenarioError(
                f"capture: '{name}': no such interface in {run.key}{hint}; expected {ALL} or one of "
                f"{', '.join(leaving)}, NODE<PEER for arriving packets, or NODE for both"
            )
        captures += leaving if name == ALL else nodes.get(name, [name])
    traces = [*run.trace, *trace]
    return run.model_copy(update={"trace": list(dict.fromkeys(traces)), "captures": list(dict.fromkeys(captures))})
