"""The state of links and qdiscs at a time: the resolved run with its timed changes applied.

The rules are those of the simulator (`crates/sim/src/sim/changes.rs`) and of tc. A change is in effect from its own
time on. A change of a link concerns what its node sends. `tc qdisc change` keeps classes and what hangs below, and what
`after_change` says of the words.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from bakeoff.scenario.effective import after_change

Tree = Mapping[str, Any]
"""A qdisc with its classes and its child, as docs/resolved-run.md has it."""
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
    egress: Tree | None = None
    ingress: Tree | None = None


class Timeline:
    """The states of all ends of a resolved run. The changes of an end are applied once, when it is first asked for."""

    def __init__(self, resolved: Mapping[str, Any]) -> None:
        self._links: dict[frozenset[str], Mapping[str, Any]] = {}
        for link in resolved["links"]:
            self._links.setdefault(frozenset(link["ends"]), link)
        self._interfaces: dict[End, Mapping[str, Any]] = {}
        for interface in resolved.get("interfaces", ()):
            self._interfaces.setdefault((interface["node"], interface["peer"]), interface)
        self._changes: dict[End, list[Mapping[str, Any]]] = {}
        for change in sorted(resolved.get("changes", ()), key=lambda change: float(change["at_s"])):
            self._changes.setdefault((change["node"], change["peer"]), []).append(change)
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
                state = _after(state, change["action"])
                times.append(float(change["at_s"]))
                states.append(state)
            self._states[end] = times, states
        return self._states[end]

    def _first(self, end: End) -> State:
        link = self._links[frozenset(end)]
        interface = self._interfaces.get(end, {})
        loss, rate = link.get("loss", 0.0), link["rate_bps"]
        return State(
            rate_bps=float("inf") if rate is None else float(rate),
            delay_s=float(link["delay_s"]),
            loss=float(loss.get(end[0], 0.0) if isinstance(loss, Mapping) else loss),
            egress=interface.get("egress"),
            ingress=interface.get("ingress"),
        )


def _after(state: State, action: Mapping[str, Any]) -> State:
    """The state that an action leaves."""
    if action["kind"] == "link":
        told = {key: action.get(key) for key in ("rate_bps", "delay_s", "loss", "up")}
        return replace(state, **{key: value for key, value in told.items() if value is not None})
    tree: Tree | None = state.egress if action["side"] == "egress" else state.ingress
    if action["kind"] == "qdisc-change":
        tree = _edited(tree, action["handle"], lambda found: _changed(found, action["qdisc"]))
    elif action["kind"] == "qdisc-replace":
        tree = _edited(tree, action["handle"], lambda _: action["qdisc"])
    elif tree is not None:
        tree = _with_class(tree, action["id"], lambda found: {**found, "class": action["class"]})
    return replace(state, egress=tree) if action["side"] == "egress" else replace(state, ingress=tree)


def _edited(tree: Tree | None, handle: str, edit: Callable[[Tree | None], Tree]) -> Tree | None:
    """The tree with the qdisc edited that `handle` leads to: `""`, `"1"` (what hangs below class 1), `"1/child"`."""
    if not handle:
        return edit(tree)
    if tree is None:
        return None
    first, _, rest = handle.partition("/")
    if first == "child" and not tree.get("classes"):
        return {**tree, "child": _edited(tree.get("child"), rest, edit)}
    return _with_class(tree, first, lambda found: {**found, "child": _edited(found.get("child"), rest, edit)})


def _with_class(tree: Tree, id_: str, edit: Callable[[Tree], Tree]) -> Tree:
    classes = tree.get("classes", ())
    return {**tree, "classes": [edit(each) if each["id"] == id_ else each for each in classes]} if classes else tree


def _changed(tree: Tree | None, words: str) -> Tree:
    return {"qdisc": words} if tree is None else {**tree, "qdisc": after_change(tree["qdisc"], words)}
