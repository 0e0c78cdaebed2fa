"""The places of a run that have a rate as traces of mahimahi, which `mm-link` plays and `trace: FILE` of a link reads.

A trace has one millisecond on each line, at which one packet of full size may leave: 1500 bytes of IP, for which
mahimahi counts 1504 because its device puts four bytes ahead, and Linux 1514 because Ethernet puts fourteen. A shaper
may charge more, for overhead and cells. So a rate of Linux is divided by what it charges for 1514 bytes, and a packet
of full size leaves here when its last bit would have left there. Playback repeats from the last line, so the last line
is the end of the run. A line that is down has no opportunities. A link that has a trace in the scenario gives it as it
is, or without what its outages took.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from bakeoff.errors import ExportError
from bakeoff.exports.names import parts
from bakeoff.measure.bottleneck import rates
from bakeoff.scenario.timeline import Timeline

if TYPE_CHECKING:
    from bakeoff.measure.bottleneck import Hop
    from bakeoff.measure.samples import Window
    from bakeoff.results import Result

SUFFIX: Final = ".trace"
_FRAME: Final = 1514
"""Bytes of an opportunity, as Linux counts a packet of full size on Ethernet."""
_BITS: Final = _FRAME * 8
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

    The n-th opportunity is the first millisecond by which n packets of full size could have left. The last one is the
    end of the pieces: where no packet leaves in the last piece, one more than they carry. BakeoffError if there would
    be too many, or none.
    """
    import numpy as np

    bits = sum((stop - start) * rate for start, stop, rate in pieces)
    if bits / _BITS > _MOST:
        raise ExportError(f"a trace of {bits / _BITS:,.0f} packets; expected at most {_MOST:,}")
    found: list[int] = []
    had, last = 0.0, 0
    for start, stop, rate in pieces:
        more = had + (stop - start) * rate / _BITS
        # Rates and times are decimal: a packet that is whole but for rounding is whole.
        numbers = np.arange(int(had + 1e-6) + 1, int(more + 1e-6) + 1)
        last = len(numbers)
        if last:
            at = start + (numbers - had) * _BITS / rate
            found += np.ceil(at * 1e3 - 1e-6).astype(np.int64).tolist()
        had = more
    if not found:
        raise ExportError("the rate is too low for a single full-size packet")
    if last:
        found.pop()
    return [*found, _ms(pieces[-1][1])]


def _ms(at_s: float) -> int:
    """The first whole millisecond at or after a time."""
    return math.ceil(at_s * 1e3 - 1e-6)


def _places(result: Result) -> list[tuple[str, Callable[[], list[int]]]]:
    """Endings, and what makes the milliseconds of their traces."""
    run = result.run
    whole, timeline = (0.0, run.duration_s), Timeline(run)
    found: dict[str, Callable[[], list[int]]] = {}
    for link in run.links:
        traces = link.traces
        for node, peer in (link.ends, link.ends[::-1]):
            trace = traces.get(node)
            up = _up(timeline, (node, peer), whole)
            for hop, name in ((f"{node}>{peer}", f"{node}-to-{peer}"), (f"{peer}<{node}", f"{peer}-from-{node}")):
                pieces = rates(run, hop, whole, frame=_FRAME, timeline=timeline)
                if trace is not None and hop == f"{node}>{peer}":
                    found[name] = partial(_played, trace.ms, up, whole[1])
                elif all(rate != float("inf") for _, _, rate in pieces):
                    found[name] = partial(opportunities, _while_up(pieces, up))
    if not found:
        raise ExportError("no interface with a rate throughout the run; a mahimahi trace needs one")
    return [(f".{part}{SUFFIX}", of) for part, of in zip(parts(found), found.values(), strict=True)]


def _up(timeline: Timeline, hop: Hop, whole: Window) -> list[float]:
    """When the link comes up, goes down, comes up and so on."""
    found: list[float] = []
    for start, stop, state in timeline.pieces(hop, whole):
        if state.up and found and found[-1] == start:
            found[-1] = stop
        elif state.up:
            found += [start, stop]
    return found


def _while_up(pieces: list[Piece], up: list[float]) -> list[Piece]:
    """The pieces with a rate of 0 while the link is down."""
    begins = [start for start, _, _ in pieces]
    edges = sorted({*up, *(edge for piece in pieces for edge in piece[:2])})
    return [
        (start, stop, pieces[bisect_right(begins, start) - 1][2] if bisect_right(up, start) % 2 else 0.0)
        for start, stop in pairwise(edges)
    ]


def _played(ms: list[int], up: list[float], end_s: float) -> list[int]:
    """A trace as it is; where the link was down, what it gave in the run, without the outages."""
    if up == [0.0, end_s]:
        return ms
    end = _ms(end_s)
    if len(ms) * math.ceil(end / ms[-1]) > _MOST:
        raise ExportError(f"a trace of {len(ms) * end / ms[-1]:,.0f} packets; expected at most {_MOST:,}")
    given = (turn * ms[-1] + at for turn in range(math.ceil(end / ms[-1])) for at in ms)
    found = [at for at in given if at <= end and bisect_left(up, at / 1e3) % 2]
    if not found:
        raise ExportError("the rate is too low for a single full-size packet")
    return found if found[-1] == end else [*found, end]
