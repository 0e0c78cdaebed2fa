"""Hosts that are not ideal: stalls, late timers, coalesced frames."""

from typing import Final, TypedDict

from bakeoff.scenario import run as resolved
from bakeoff.scenario.error import DocumentError
from bakeoff.scenario.language import Hosts
from bakeoff.scenario.network import NodeSpec

_OF_A_MACHINE: Final = ("stall", "timer_slack", "receive_coalescing")


class Machine(TypedDict, total=False):
    """Fields of `run.Node`."""

    stall: resolved.Stall
    timer_slack_s: float
    receive_coalescing_s: float


def machine(hosts: Hosts, spec: NodeSpec | None, kind: str, name: str) -> Machine:
    """What makes a node less than ideal: its own keys, or those of all hosts. DocumentError if it is no host."""
    own = {key: getattr(spec, key) for key in _OF_A_MACHINE if spec is not None and getattr(spec, key) is not None}
    if kind != "host":
        if own:
            raise DocumentError(f"network.nodes.{name}.{next(iter(own))}", f"'{name}' is a {kind}; expected a host")
        return {}
    stall, slack, coalescing = (own.get(key, getattr(hosts, key)) for key in _OF_A_MACHINE)
    made: Machine = {"timer_slack_s": slack, "receive_coalescing_s": coalescing}
    if stall is not None:
        made["stall"] = resolved.Stall(length_s=stall[0], every_s=stall[1])
    return made
