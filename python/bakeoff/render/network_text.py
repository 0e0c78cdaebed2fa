"""The network of a run as text: which nodes its first flow passes, and what was set up at their interfaces."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

from bakeoff.measure.bottleneck import path
from bakeoff.text.columns import clean

if TYPE_CHECKING:
    from bakeoff.scenario.run import Qdisc, Run


def text(run: Run) -> str:
    """A block of code: the path, then a line for each interface on it that has a queue or a delay, in either direction.

    `a>b` is what leaves a for b, and `a<b` what arrives at a from b. Links with a rate or a delay have a line too.
    """
    hops = path(run, run.traffic[0]) if run.traffic else []
    nodes = [hops[0][0], *(peer for _, peer in hops)] if hops else [node.name for node in run.nodes]
    rows = [*_interfaces(run, nodes), *_links(run, nodes)]
    width = max((len(end) for end, _ in rows), default=0)
    lines = [" → ".join(nodes), *(f"{end:<{width}}  {words}" for end, words in rows)]
    return "```\n" + "".join(f"{clean(line)}\n" for line in lines).replace("```", "'''") + "```"


def _interfaces(run: Run, nodes: list[str]) -> Iterator[tuple[str, str]]:
    there = {(each.node, each.peer): each for each in run.interfaces}
    pairs = list(pairwise(nodes))
    for node, peer in [*pairs, *((peer, node) for node, peer in reversed(pairs))]:
        each = there.get((node, peer))
        if each is not None and each.egress:
            yield f"{node}>{peer}", ", ".join(_words(each.egress))
        if each is not None and each.ingress:
            yield f"{node}<{peer}", ", ".join(_words(each.ingress))


def _words(tree: Qdisc) -> Iterator[str]:
    """tc's words of a qdisc and of what is below it."""
    yield tree.qdisc
    for each in tree.classes:
        yield each.class_
        if each.child:
            yield from _words(each.child)
    if tree.child:
        yield from _words(tree.child)


def _links(run: Run, nodes: list[str]) -> Iterator[tuple[str, str]]:
    for link in run.links:
        one, other = link.ends
        rate, delay = link.rate_bps, link.delay_s
        if one in nodes and other in nodes and (rate or delay):
            parts = [f"{rate / 1e6:g} Mbit/s"] if rate else []
            parts += [f"delay {delay * 1e3:g} ms"] if delay else []
            yield f"{one}-{other}", ", ".join(parts)
