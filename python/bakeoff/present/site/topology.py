"""The network of a run as a drawing: where each node, cable and word stands. The template makes an SVG of it.

The first flow's path goes down the first column, from its sender to its receiver. What hangs beside it stands in
further columns. Words on the left of a cable are of the way down, words on the right of the way up, each near the node
at which packets meet what they name.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bakeoff.measure import path
from bakeoff.measure.samples import MeasureError
from bakeoff.present.site.interfaces import cable_words, qdisc_words

_BOX_WIDTH: Final = 116
_BOX_HEIGHT: Final = 40
_LINE: Final = 14
_GAP: Final = 10
_LETTER: Final = 6.7
"""Width of a letter of the words, in the font of style.css."""
_WRAP: Final = 24
_LONGEST_NAME: Final = 15
_MARGIN: Final = 8
_MOST_WORDS: Final = 5
"""More lines than this at one place are cut; the table of interfaces has them all."""

Way = tuple[str, str]
Text = tuple[str, bool]
Side = tuple[list[Text], list[Text]]
"""Lines near the upper and near the lower end of a cable; True for those that are of the cable itself."""
Sides = tuple[Side, Side]
"""Left and right of it."""


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


def drawing(resolved: Mapping[str, Any]) -> Drawing:
    """The network of a resolved run."""
    ways = _downwards(resolved)
    layer = _layers(resolved, ways)
    column = _columns(resolved, layer)
    texts = {way: _texts(resolved, way) for way in ways}
    centres, width = _across(ways, column, texts)
    tops, height = _down(ways, layer, texts)
    boxes = [
        Box(centres[column[name]] - _BOX_WIDTH / 2, tops[layer[name]], _short(name), str(node["kind"]), name)
        for node in resolved["nodes"]
        for name in [str(node["name"])]
    ]
    cables: list[Cable] = []
    words: list[Words] = []
    for way in ways:
        upper, lower = way
        x = centres[max(column[upper], column[lower])]
        above, below = tops[layer[upper]] + _BOX_HEIGHT, tops[layer[lower]]
        # From a node beside a column a cable goes straight to the height of the other one, and in at its side.
        corners = [(x, above), (x, below)]
        if column[upper] < column[lower]:
            side = above - _BOX_HEIGHT / 3
            corners = [(centres[column[upper]] + _BOX_WIDTH / 2, side), (x, side), (x, below)]
        elif column[upper] > column[lower]:
            side = below + _BOX_HEIGHT / 3
            corners = [(x, above), (x, side), (centres[column[lower]] + _BOX_WIDTH / 2, side)]
        cables.append(Cable(" ".join(f"{across:g},{down:g}" for across, down in corners)))
        for texts_of_side, at, anchor in zip(texts[way], (x - _GAP, x + _GAP), ("end", "start"), strict=True):
            words += _placed(texts_of_side, at, anchor, above, below)
    return Drawing(width, height, boxes, cables, words, _says(resolved))


def _across(ways: Sequence[Way], column: Mapping[str, int], texts: Mapping[Way, Sides]) -> tuple[list[float], float]:
    """The middle of each column, as wide as the words left and right of its cables, and the width of all."""
    rooms = [[_BOX_WIDTH / 2, _BOX_WIDTH / 2] for _ in range(max(column.values(), default=0) + 1)]
    for way in ways:
        room = rooms[max(column[way[0]], column[way[1]])]
        for i, side in enumerate(texts[way]):
            longest = max((len(text) for part in side for text, _ in part), default=0)
            room[i] = max(room[i], longest * _LETTER + 2 * _GAP)
    centres, edge = [], float(_MARGIN)
    for left, right in rooms:
        centres.append(edge + left)
        edge += left + right + _GAP
    return centres, edge - _GAP + _MARGIN


def _down(ways: Sequence[Way], layer: Mapping[str, int], texts: Mapping[Way, Sides]) -> tuple[list[float], float]:
    """The top of each layer, with room for the words of the cables below it, and the height of all."""
    gaps = [0.0] * (max(layer.values(), default=0) + 1)
    for way in ways:
        lines = max(len(top) + len(bottom) for top, bottom in texts[way])
        gaps[layer[way[0]]] = max(gaps[layer[way[0]]], _LINE * (lines + bool(lines)) + 2 * _GAP)
    gaps[-1] = _MARGIN
    tops, down = [], float(_MARGIN)
    for gap in gaps:
        tops.append(down)
        down += _BOX_HEIGHT + gap
    return tops, down


def _placed(side: Side, x: float, anchor: str, above: float, below: float) -> Iterator[Words]:
    """The words on one side of a cable: those of its upper end below `above`, the others up to `below`."""
    top, bottom = side
    for n, (text, faint) in enumerate(top, 1):
        yield Words(x, above + _LINE * n, anchor, text, faint)
    for n, (text, faint) in enumerate(reversed(bottom)):
        yield Words(x, below - _GAP / 2 - _LINE * n, anchor, text, faint)


def _says(resolved: Mapping[str, Any]) -> str:
    nodes = ", ".join(f"{node['name']} ({node['kind']})" for node in resolved["nodes"])
    cables = ", ".join(" to ".join(link["ends"]) for link in resolved["links"])
    return f"The network: {nodes}; cables from {cables}. The table of interfaces below has all words of the drawing."


def _downwards(resolved: Mapping[str, Any]) -> list[Way]:
    """Every cable as (upper, lower) node: the way of the first flow that goes through it, else as it was written."""
    wanted = {frozenset(link["ends"]): (str(link["ends"][0]), str(link["ends"][1])) for link in resolved["links"]}
    known: dict[frozenset[str], Way] = {}
    for flow in resolved["flows"]:
        try:
            hops = path(resolved, flow)
        except MeasureError:
            continue
        for hop in hops:
            known.setdefault(frozenset(hop), (hop[0], hop[1]))
    return [known.get(ends, way) for ends, way in wanted.items()]


def _layers(resolved: Mapping[str, Any], ways: Sequence[Way]) -> dict[str, int]:
    """How far down each node stands: below all that lead to it, and senders just above what they lead to."""
    names = [str(node["name"]) for node in resolved["nodes"]]
    found = dict.fromkeys(names, 0)
    # As many rounds as the longest way can have; what goes in a circle then stays where it is.
    for _ in names:
        for upper, lower in ways:
            found[lower] = min(max(found[lower], found[upper] + 1), len(names) - 1)
    for name in names:
        below = [found[lower] for upper, lower in ways if upper == name]
        above = [upper for upper, lower in ways if lower == name]
        if below and not above:
            found[name] = max(found[name], min(below) - 1)
    used = sorted(set(found.values()))
    return {name: used.index(at) for name, at in found.items()}


def _columns(resolved: Mapping[str, Any], layer: Mapping[str, int]) -> dict[str, int]:
    """The nodes of the first flow's path in column 0, the others of each layer in those after it."""
    first: list[str] = []
    if resolved["flows"]:
        try:
            hops = path(resolved, resolved["flows"][0])
            first = [hops[0][0], *(peer for _, peer in hops)] if hops else []
        except MeasureError:
            first = []
    taken: dict[int, int] = {}
    found = {}
    spine = set(first)
    for node in resolved["nodes"]:
        if node["name"] in spine:
            found[str(node["name"])] = 0
            taken[layer[node["name"]]] = 1
    for node in resolved["nodes"]:
        name = str(node["name"])
        if name not in found:
            # Beside the path even where that has no node in this layer.
            found[name] = max(taken.get(layer[name], 0), 1 if spine else 0)
            taken[layer[name]] = found[name] + 1
    return found


def _texts(resolved: Mapping[str, Any], way: Way) -> Sides:
    """Words left and right of a cable, of each those near the upper and near the lower node."""
    upper, lower = way
    link = next(link for link in resolved["links"] if set(link["ends"]) == {upper, lower})
    interfaces = {(one["node"], one["peer"]): one for one in resolved.get("interfaces", ())}
    there, back = interfaces.get((upper, lower), {}), interfaces.get((lower, upper), {})
    own = [(text, True) for text in cable_words(link)]
    left = _lines("↓", there.get("egress")), _lines("↓ arriving:", back.get("ingress"))
    right = [*_lines("↑ arriving:", there.get("ingress")), *own], _lines("↑", back.get("egress"))
    return left, right


def _lines(arrow: str, tree: Mapping[str, Any] | None) -> list[Text]:
    if tree is None:
        return []
    lines = [line for words in qdisc_words(tree) for line in textwrap.wrap(words, _WRAP, subsequent_indent=" ") or [""]]
    lines = [f"{arrow} {lines[0]}", *lines[1:]]
    if len(lines) > _MOST_WORDS:
        lines = [*lines[: _MOST_WORDS - 1], "…"]
    return [(line, False) for line in lines]


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"
