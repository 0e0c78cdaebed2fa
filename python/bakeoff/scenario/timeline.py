"""The state of links and qdiscs at a time: the resolved run with its timed changes applied.

The rules are those of the simulator (`crates/sim/src/sim/changes.rs`) and of tc. A change is in effect from its own
time on. A change of a link concerns what its node sends. `tc qdisc change` keeps classes and what hangs below, and what
`after_change` says of the words.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from bakeoff.scenario.effective import after_change
from bakeoff.scenario.run import LinkChange, Qdisc, QdiscChange, QdiscReplace

if TYPE_CHECKING:
    from bakeoff.scenario.run import Action, Change, Class, Interface, Link, Run

End = tuple[str, str]
"""One end of a cable: the node, and its peer."""


@dataclass(frozen=True)
class State:
    """One end of a cable: what `node` sends towards `peer`, and the qdiscs of the interface."""

    rate_bps: float = float("inf")
    """Infinite for a cable without a rate."""
    delay_s: float = 0.0
    loss: float = 0.0
    up: bool = True
    egress: Qdisc | None = None
    ingress: Qdisc | None = None


class Timeline:
    """The states of all ends of a resolved run. The changes of an end are applied once, when it is first asked for."""

    def __init__(self, run: Run) -> None:
        self._links: dict[frozenset[str], Link] = {}
        for link in run.links:
            self._links.setdefault(frozenset(link.ends), link)
        self._interfaces: dict[End, Interface] = {}
        for interface in run.interfaces:
            self._interfaces.setdefault((interface.node, interface.peer), interface)
        self._changes: dict[End, list[Change]] = {}
        for change in sorted(run.changes, key=lambda change: change.at_s):
            self._changes.setdefault((change.node, change.peer), []).append(change)
        self._states: dict[End, tuple[list[float], list[State]]] = {}

    def at(self, end: End, at_s: float) -> State:
        """The state of an end `at_s` seconds after the start of the run."""
        times, states = self._of(end)
        return states[bisect_right(times, at_s) - 1]

    def times(self, ends: Sequence[End], window: tuple[float, float]) -> list[float]:
        """The edges of the window, and between them the times at which one of the ends changes."""
        start, stop = window
        inside = {at for end in ends for at in self._of(end)[0] if start < at < stop}
        return sorted({start, stop, *inside})

    def pieces(self, end: End, window: tuple[float, float]) -> Iterator[tuple[float, float, State]]:
        """(from [s], to [s], state) of an end over the window, cut at its changes."""
        for start, stop in pairwise(self.times([end], window)):
            yield start, stop, self.at(end, start)

    def _of(self, end: End) -> tuple[list[float], list[State]]:
        if end not in self._states:
            state = self._first(end)
            times, states = [float("-inf")], [state]
            for change in self._changes.get(end, ()):
                state = _after(state, change.action)
                times.append(change.at_s)
                states.append(state)
            self._states[end] = times, states
        return self._states[end]

    def _first(self, end: End) -> State:
        link = self._links[frozenset(end)]
        interface = self._interfaces.get(end)
        return State(
            rate_bps=float("inf") if link.rate_bps is None else float(link.rate_bps),
            delay_s=link.delay_s,
            loss=link.loss_of(end[0]),
            egress=None if interface is None else interface.egress,
            ingress=None if interface is None else interface.ingress,
        )


def _after(state: State, action: Action) -> State:
    """The state that an action leaves."""
    if isinstance(action, LinkChange):
        return replace(
            state,
            rate_bps=state.rate_bps if action.rate_bps is None else float(action.rate_bps),
            delay_s=state.delay_s if action.delay_s is None else action.delay_s,
            loss=state.loss if action.loss is None else action.loss,
            up=state.up if action.up is None else action.up,
        )
    tree = state.egress if action.side == "egress" else state.ingress
    if isinstance(action, QdiscChange):
        tree = _edited(tree, action.handle, lambda found: _changed(found, action.qdisc))
    elif isinstance(action, QdiscReplace):
        tree = _edited(tree, action.handle, lambda _: action.qdisc)
    elif tree is not None:
        tree = _with_class(tree, action.id, lambda found: found.model_copy(update={"class_": action.class_}))
    return replace(state, egress=tree) if action.side == "egress" else replace(state, ingress=tree)


def _edited(tree: Qdisc | None, handle: str, edit: Callable[[Qdisc | None], Qdisc]) -> Qdisc | None:
    """The tree with the qdisc edited that `handle` leads to: `""`, `"1"` (what hangs below class 1), `"1/child"`."""
    if not handle:
        return edit(tree)
    if tree is None:
        return None
    first, _, rest = handle.partition("/")

    def below(found: Qdisc | Class) -> dict[str, Qdisc | None]:
        return {"child": _edited(found.child, rest, edit)}

    if first == "child" and not tree.classes:
        return tree.model_copy(update=below(tree))
    return _with_class(tree, first, lambda found: found.model_copy(update=below(found)))


def _with_class(tree: Qdisc, id_: str, edit: Callable[[Class], Class]) -> Qdisc:
    return tree.model_copy(update={"classes": [edit(each) if each.id == id_ else each for each in tree.classes]})


def _changed(tree: Qdisc | None, words: str) -> Qdisc:
    return Qdisc(qdisc=words) if tree is None else tree.model_copy(update={"qdisc": after_change(tree.qdisc, words)})
