"""Which flows are gamed: a router rewrites their packets to ECT(1), and their control does not ask for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bakeoff.measure import path
from bakeoff.plots import colours

if TYPE_CHECKING:
    from bakeoff.scenario.run import Flow, Mangle, Run

_OF_L4S: Final = frozenset({"prague"})
"""Controls whose packets are ECT(1) anyway."""


def is_gamed(run: Run, flow: Flow) -> bool:
    """Whether a rule on the path of a TCP flow sets ECT(1) in its packets, which its own control does not."""
    if flow.transport != "tcp" or colours.control(flow.cc) in _OF_L4S:
        return False
    arrivals = {(peer, node) for node, peer in path(run, flow)}
    return any(
        _forces(rule, flow)
        for interface in run.interfaces
        if (interface.node, interface.peer) in arrivals
        for rule in interface.mangle
    )


def _forces(rule: Mangle, flow: Flow) -> bool:
    match = rule.match
    return (
        rule.set_ecn == "ect1"
        and match.proto in (None, "tcp")
        and match.dscp in (None, flow.dscp)
        and match.flow in (None, flow.name)
    )
