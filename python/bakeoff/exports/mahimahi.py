"""The places of a run that have a rate as traces of mahimahi, which `mm-link` plays and `trace: FILE` of a link reads.

A trace has one millisecond on each line, at which one packet of full size may leave: 1500 bytes of IP, for which
mahimahi counts 1504 because its device puts four bytes ahead, and Linux 1514 because Ethernet puts fourteen. So a
rate of Linux is divided by 1514 bytes, and a packet of full size leaves here when its last bit would have left there.
The trace is as long as the run. A line that is down has no opportunities. A link that has a trace in the scenario
gives it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from bakeoff.errors import BakeoffError
from bakeoff.exports.names import parts
from bakeoff.measure.bottleneck import rates

if TYPE_CHECKING:
    from bakeoff.results import Result

SUFFIX: Final = ".trace"
_BITS: Final = 1514 * 8
"""Of an opportunity, as Linux counts a packet of full size on Ethernet."""
_MOST: Final = 50_000_000
"""Lines of a file: an hour at 168 Mbit/s."""

Piece = tuple[float, float, float]


def suffixes(result: Result) -> list[str]:
    """A file for each place with a rate: `.mid-to-srv.trace` for what leaves, `.srv-from-mid.trace` for what arrives.

    BakeoffError if there is none.
    """
    return [suffix for suffix, _ in _places(result)]


def files(result: Result) -> Iterator[tuple[str, bytes]]:
    """One trace after the other."""
    for suffix, made in _places(result):
        yield suffix, ("\n".join(map(str, made())) + "\n").encode()


def opportunities(pieces: list[Piece]) -> list[int]:
    """The milliseconds of a trace whose rate is that of the pieces (from [s], to [s], rate [bit/s]), which adjoin.

    The n-th opportunity is the first millisecond by which n packets of full size could have left. BakeoffError if there
    would be too many, or none.
    """
    import numpy as np

    bits = sum((stop - start) * rate for start, stop, rate in pieces)
    if bits / _BITS > _MOST:
        raise BakeoffError(f"a trace of {bits / _BITS:,.0f} packets is too long; expected at most {_MOST:,}")
    found: list[int] = []
    had = 0.0
    for start, stop, rate in pieces:
        more = had + (stop - start) * rate / _BITS
        # Rates and times are decimal: a packet that is whole but for rounding is whole.
        numbers = np.arange(int(had + 1e-6) + 1, int(more + 1e-6) + 1)
        if len(numbers):
            at = start + (numbers - had) * _BITS / rate
            found += np.ceil(at * 1e3 - 1e-6).astype(np.int64).tolist()
        had = more
    if not found:
        raise BakeoffError("not one packet of full size could leave in the whole run")
    return found


def _places(result: Result) -> list[tuple[str, Callable[[], list[int]]]]:
    """Endings, and what makes the milliseconds of their traces."""
    resolved = result.resolved
    whole = (0.0, float(resolved["duration_s"]))
    found: dict[str, Callable[[], list[int]]] = {}
    for link in resolved["links"]:
        for node, peer in (link["ends"], link["ends"][::-1]):
            trace = link.get("features", {}).get("trace", {}).get(node)
            if trace is not None:
                found[f"{node}-to-{peer}"] = partial(list, trace["ms"])
                continue
            for hop, name in ((f"{node}>{peer}", f"{node}-to-{peer}"), (f"{peer}<{node}", f"{peer}-from-{node}")):
                pieces = rates(resolved, hop, whole)
                if all(rate != float("inf") for _, _, rate in pieces):
                    found[name] = partial(opportunities, _without_outages(resolved, (node, peer), pieces))
    if not found:
        raise BakeoffError("has no place with a rate at all times, which a trace of mahimahi needs")
    return [(f".{part}{SUFFIX}", of) for part, of in zip(parts(found), found.values(), strict=True)]


def _without_outages(resolved: dict[str, Any], hop: tuple[str, str], pieces: list[Piece]) -> list[Piece]:
    """The pieces with a rate of 0 while the link is down."""
    edges = sorted(
        (float(change["at_s"]), change["action"]["up"])
        for change in resolved["changes"]
        if (change["node"], change["peer"]) == hop and change["action"].get("up") is not None
    )
    if not edges:
        return pieces
    found: list[Piece] = []
    for start, stop, rate in pieces:
        at, up = start, next((state for time, state in reversed(edges) if time <= start), True)
        for time, state in [*(edge for edge in edges if start < edge[0] < stop), (stop, True)]:
            found.append((at, time, rate if up else 0.0))
            at, up = time, state
    return found
