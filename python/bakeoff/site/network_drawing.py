"""The network of a run as a drawing: where each node, cable and word stands. The template makes an SVG of it.

The first flow's path goes down the middle, from its sender to its receiver. What hangs beside it stands at the height
of the node that it hangs on: what sends on the left, everything else on the right. Words beside a cable are of one way
each: left of an upright cable of the way down, above a level one of the way to the right.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from bakeoff.errors import MeasureError
from bakeoff.measure import path
from bakeoff.site.interfaces import cable_words, qdisc_words

if TYPE_CHECKING:
    from bakeoff.scenario.run import Flow, Qdisc, Run

_BOX_WIDTH: Final = 116
_BOX_HEIGHT: Final = 40
_LINE: Final = 14
_GAP: Final = 10
_LETTER: Final = 6.7
"""Width of a letter of the words, in the font of run.css."""
_WRAP: Final = 24
_LONGEST_NAME: Final = 15
_MARGIN: Final = 8
_SHORTEST: Final = 40
"""Of a level cable."""
_MOST_WORDS: Final = 9
"""More lines than this at one place are cut; the table of interfaces has them all."""

Way = tuple[str, str]
Text = tuple[str, bool]
"""A line of words; True for those that are of the cable itself."""
Sides = tuple[list[Text], list[Text]]
"""Words at the top and at the bottom of an upright cable, or above and below a level one."""


@dataclass(frozen=True)
class Box:
    """A node."""

    x: float
    y: float
    name: str
    kind: str
    full: str


@dataclass(frozen=True)
class Cable:
    """A cable as a line of corners."""

    points: str


@dataclass(frozen=True)
class Words:
    """A line of words; `anchor` is SVG's: `start` or `end`."""

    x: float
    y: float
    anchor: str
    text: str
    faint: bool


@dataclass(frozen=True)
class Drawing:
    """All of it, in pixels."""

    width: float
    height: float
    boxes: list[Box]
    cables: list[Cable]
    words: list[Words]
    says: str
    """The network in a sentence, for who does not see it."""
    box_width: int = _BOX_WIDTH
    box_height: int = _BOX_HEIGHT


@dataclass(frozen=True)
class _Hanging:
    """A node beside the path."""

    name: str
    inner: str
    """The node that it hangs on, which is nearer to the path."""
    home: str
    """The node of the path at whose height it stands."""
    column: int
    """-1 is the first on the left of the path, 1 the first on the right."""
    slot: int
    """How many stand above it in the same column, at the same height."""


class _Network:
    """The parts of a resolved run that are drawn."""

    def __init__(self, run: Run) -> None:
        self.nodes = {node.name: str(node.kind) for node in run.nodes}
        self.links = {frozenset(link.ends): link for link in run.links}
        self.neighbours: dict[str, list[str]] = {name: [] for name in self.nodes}
        for link in run.links:
            for one, other in (link.ends, link.ends[::-1]):
                self.neighbours[one].append(other)
        self.interfaces = {(one.node, one.peer): one for one in run.interfaces}
        self.hops = [hops for flow in run.flows if (hops := _path(run, flow))]
        self.spine = [self.hops[0][0][0], *(peer for _, peer in self.hops[0])] if self.hops else [*self.nodes][:1]
        self.senders = {hops[0][0] for hops in self.hops}
        self.hanging = {one.name: one for one in self._hang()}

    def _hang(self) -> Iterator[_Hanging]:
        """Everything beside the path, from the path outwards."""
        placed = {name: (name, 0) for name in self.spine}
        slots: dict[tuple[str, int], int] = {}
        waiting = [*self.spine]
        while waiting:
            inner = waiting.pop(0)
            home, column = placed[inner]
            for name in self.neighbours[inner]:
                if name in placed:
                    continue
                # Of the nodes on the path both sides are free; what hangs further out stays on its side.
                side = (-1 if name in self.senders else 1) if column == 0 else (1 if column > 0 else -1)
                at = column + side
                slot = slots.get((home, at), 0)
                slots[home, at] = slot + 1
                placed[name] = home, at
                waiting.append(name)
                yield _Hanging(name, inner, home, at, slot)

    def one_way(self, node: str, peer: str, arrow: str) -> list[Text]:
        """What packets meet from `node` to `peer`."""
        return self.leaving(node, peer, arrow) + self.arriving(node, peer, arrow)

    def leaving(self, node: str, peer: str, arrow: str) -> list[Text]:
        """What packets meet where they leave `node` towards `peer`."""
        interface = self.interfaces.get((node, peer))
        return _lines(arrow, None if interface is None else interface.egress)

    def arriving(self, node: str, peer: str, arrow: str) -> list[Text]:
        """What packets from `node` meet where they arrive at `peer`."""
        interface = self.interfaces.get((peer, node))
        return _lines(f"{arrow} arriving:", None if interface is None else interface.ingress)

    def cable(self, node: str, peer: str) -> list[Text]:
        """The words of a cable itself."""
        return [(text, True) for text in cable_words(self.links[frozenset((node, peer))])]


def drawing(run: Run) -> Drawing:
    """The network of a resolved run."""
    net = _Network(run)
    upright = _upright(net)
    beside = {one.name: _level(net, one) for one in net.hanging.values()}
    columns, width = _columns(net, upright, beside)
    tops, slot_heights, height = _rows(net, upright, beside)
    corners = {name: (columns[0] - _BOX_WIDTH / 2, tops[name]) for name in net.spine}
    for one in net.hanging.values():
        down = sum(slot_heights[one.home, n] for n in range(one.slot))
        corners[one.name] = columns[one.column] - _BOX_WIDTH / 2, tops[one.home] + down
    cables: list[Cable] = []
    words: list[Words] = []
    for (node, peer), sides in zip(_pairs(net.spine), upright, strict=True):
        above, below = tops[node] + _BOX_HEIGHT, tops[peer]
        cables.append(_line([(columns[0], above), (columns[0], below)]))
        for side, x, anchor in zip(sides, (columns[0] - _GAP, columns[0] + _GAP), ("end", "start"), strict=True):
            words += _beside_upright(side, x, anchor, above, below)
    for one in net.hanging.values():
        cable, (x, y) = _to_the_side(one, corners)
        cables.append(cable)
        words += _beside_level(beside[one.name], x, y, "start" if one.column < 0 else "end")
    # What closes a circle has no place beside a column: a straight line, whose words are in the table.
    drawn = {frozenset(pair) for pair in _pairs(net.spine)}
    drawn |= {frozenset((one.name, one.inner)) for one in net.hanging.values()}
    for ends in sorted(map(sorted, net.links.keys() - drawn)):
        if all(name in corners for name in ends):
            cables.append(_line([(x + _BOX_WIDTH / 2, y + _BOX_HEIGHT / 2) for x, y in map(corners.__getitem__, ends)]))
    boxes = [Box(x, y, _short(name), net.nodes[name], name) for name, (x, y) in corners.items()]
    return Drawing(width, height, boxes, cables, words, _says(run))


def _to_the_side(one: _Hanging, corners: Mapping[str, tuple[float, float]]) -> tuple[Cable, tuple[float, float]]:
    """The cable of a node beside the path, and where its words begin (on the left) or end (on the right)."""
    outer, inner = corners[one.name], corners[one.inner]
    on_left = one.column < 0
    start = outer[0] + (_BOX_WIDTH if on_left else 0)
    end = inner[0] + (0 if on_left else _BOX_WIDTH)
    y, turn = outer[1] + _BOX_HEIGHT / 2, inner[1] + _BOX_HEIGHT / 2
    bus = end - _GAP if on_left else end + _GAP
    cable = _line([(start, y), (end, y)] if y == turn else [(start, y), (bus, y), (bus, turn), (end, turn)])
    return cable, (start + _GAP if on_left else start - _GAP, y)


def _upright(net: _Network) -> list[tuple[Sides, Sides]]:
    """Of each cable of the path the words on its left and on its right, of each those at its top and at its bottom."""
    found = []
    for node, peer in _pairs(net.spine):
        left = net.leaving(node, peer, "↓"), net.arriving(node, peer, "↓")
        right = net.arriving(peer, node, "↑") + net.cable(node, peer), net.leaving(peer, node, "↑")
        found.append((left, right))
    return found


def _level(net: _Network, one: _Hanging) -> Sides:
    """The words above and below a level cable: to the right, with the cable's own, and to the left."""
    left, right = (one.name, one.inner) if one.column < 0 else (one.inner, one.name)
    return net.cable(left, right) + net.one_way(left, right, "→"), net.one_way(right, left, "←")


def _columns(
    net: _Network, upright: Sequence[tuple[Sides, Sides]], beside: Mapping[str, Sides]
) -> tuple[dict[int, float], float]:
    """The middle of each column of nodes, and the width of all."""
    rooms = [max([_BOX_WIDTH / 2, *(_width([*side[i][0], *side[i][1]]) + _GAP for side in upright)]) for i in (0, 1)]
    lengths: dict[int, float] = {}
    for one in net.hanging.values():
        length = max(_SHORTEST, _width([text for part in beside[one.name] for text in part]) + 2 * _GAP)
        lengths[one.column] = max(lengths.get(one.column, 0.0), length)
    middles = {0: 0.0}
    for side, room in ((-1, rooms[0]), (1, rooms[1])):
        at, edge = side, room
        while at in lengths:
            # The first cable begins at the path's boxes, which are narrower than the words of its cables may be.
            cable = lengths[at] if at != side else max(lengths[at] + _BOX_WIDTH / 2 - room, _GAP)
            edge += cable + _BOX_WIDTH
            middles[at] = side * (edge - _BOX_WIDTH / 2)
            at += side
        rooms[0 if side < 0 else 1] = edge
    return {at: middle + rooms[0] + _MARGIN for at, middle in middles.items()}, rooms[0] + rooms[1] + 2 * _MARGIN


def _rows(
    net: _Network, upright: Sequence[tuple[Sides, Sides]], beside: Mapping[str, Sides]
) -> tuple[dict[str, float], dict[tuple[str, int], float], float]:
    """The top of each node of the path, the heights of the slots beside it, and the height of all."""
    slots: dict[tuple[str, int], float] = {}
    lift = dict.fromkeys(net.spine, 0.0)
    for one in net.hanging.values():
        above, below = beside[one.name]
        # Half of a cable's words stand above its middle.
        over = max(0.0, len(above) * _LINE + 5 - _BOX_HEIGHT / 2)
        under = max(0.0, len(below) * _LINE + 5 - _BOX_HEIGHT / 2)
        if one.slot == 0:
            lift[one.home] = max(lift[one.home], over)
            over = 0.0
        previous = slots.get((one.home, one.slot), 0.0)
        slots[one.home, one.slot] = max(previous, _BOX_HEIGHT + under + over + _GAP)
    tops, down = {}, float(_MARGIN)
    for i, name in enumerate(net.spine):
        tops[name] = down + lift[name]
        room = 0.0
        if i < len(upright):
            lines = max(len(top) + len(bottom) for top, bottom in upright[i])
            room = _LINE * (lines + bool(lines)) + 2 * _GAP
        stack = sum(height for (home, _), height in slots.items() if home == name)
        down = tops[name] + max(_BOX_HEIGHT + room, stack)
    return tops, slots, down + _MARGIN


def _beside_upright(side: Sides, x: float, anchor: str, above: float, below: float) -> Iterator[Words]:
    """The words on one side of an upright cable: those of its upper end below `above`, the others up to `below`."""
    top, bottom = side
    for n, (text, faint) in enumerate(top, 1):
        yield Words(x, above + _LINE * n, anchor, text, faint)
    for n, (text, faint) in enumerate(reversed(bottom)):
        yield Words(x, below - _GAP / 2 - _LINE * n, anchor, text, faint)


def _beside_level(sides: Sides, x: float, y: float, anchor: str) -> Iterator[Words]:
    """The words above and below a level cable at the height `y`."""
    for n, (text, faint) in enumerate(reversed(sides[0])):
        yield Words(x, y - _GAP / 2 - _LINE * n, anchor, text, faint)
    for n, (text, faint) in enumerate(sides[1], 1):
        yield Words(x, y + _LINE * n, anchor, text, faint)


def _path(run: Run, flow: Flow) -> list[Way]:
    try:
        return list(path(run, flow))
    except MeasureError:
        return []


def _pairs(names: Sequence[str]) -> list[Way]:
    return list(pairwise(names))


def _lines(arrow: str, tree: Qdisc | None) -> list[Text]:
    if tree is None:
        return []
    lines = [line for text in qdisc_words(tree) for line in textwrap.wrap(text, _WRAP, subsequent_indent=" ") or [""]]
    lines = [f"{arrow} {lines[0]}", *lines[1:]]
    if len(lines) > _MOST_WORDS:
        lines = [*lines[: _MOST_WORDS - 1], "…"]
    return [(line, False) for line in lines]


def _width(texts: Sequence[Text]) -> float:
    return max((len(text) for text, _ in texts), default=0) * _LETTER


def _line(corners: Sequence[tuple[float, float]]) -> Cable:
    return Cable(" ".join(f"{x:.1f},{y:.1f}" for x, y in corners))


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _says(run: Run) -> str:
    nodes = ", ".join(f"{node.name} ({node.kind})" for node in run.nodes)
    cables = ", ".join(" to ".join(link.ends) for link in run.links)
    return f"The network: {nodes}; cables from {cables}. The table of interfaces below has all words of the drawing."
