"""Timed changes as commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bakeoff.engines.lab.nodes import reachable
from bakeoff.engines.lab.plan import TimedCommand
from bakeoff.engines.lab.topology import Interface, Topology
from bakeoff.engines.lab.tree import Tree
from bakeoff.errors import RefusedError
from bakeoff.scenario import Run
from bakeoff.scenario.run import LinkChange

if TYPE_CHECKING:
    from bakeoff.scenario.run import Change


def timed(run: Run, net: Topology, trees: dict[tuple[str, str, str], Tree]) -> Iterator[TimedCommand]:
    """The commands of all changes, in order of time; each sees the trees as those before left them."""
    order = sorted(range(len(run.changes)), key=lambda index: run.changes[index].at_s)
    for index in order:
        change = run.changes[index]
        place = f"changes[{index}]"
        if (change.node, change.peer) not in net.interfaces:
            raise RefusedError(f"{place}: {change.node}>{change.peer}: no such link")
        end = net.interfaces[change.node, change.peer]
        for argv in _argvs(change, end, net, trees, f"{place}.action"):
            yield TimedCommand(change.node, tuple(argv), end.netns, at_s=change.at_s)


def _argvs(
    change: Change, end: Interface, net: Topology, trees: dict[tuple[str, str, str], Tree], place: str
) -> list[list[str]]:
    action = change.action
    if action.kind == "link":
        return _link(action, end, net, place)
    tree = trees.get((change.node, change.peer, action.side))
    if tree is None:
        raise RefusedError(f"{place}.side: no {action.side} queue at {change.node}>{change.peer}")
    if action.kind == "class-change":
        return tree.change_class(action.id, action.class_, place)
    if action.kind == "qdisc-change":
        return tree.change(action.handle, action.qdisc, place)
    return tree.replace(action.handle, action.qdisc, place)


def _link(action: LinkChange, end: Interface, net: Topology, place: str) -> list[list[str]]:
    for key, value in (("rate_bps", action.rate_bps), ("delay_s", action.delay_s), ("loss", action.loss)):
        if value is not None:
            raise RefusedError(f"{place}.{key}: not supported on a veth; expected a change of the shaper or netem")
    if action.up is None:
        return []
    commands = [["ip", "link", "set", "dev", end.dev, "up" if action.up else "down"]]
    return commands + ([list(command.argv) for command in reachable(net, end)] if action.up else [])
