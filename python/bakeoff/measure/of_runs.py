"""The measures of runs in the catalogue, and of the flows that share a queue."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from bakeoff.errors import MeasureError
from bakeoff.measure.catalogue import FROM_ONE, SHARE
from bakeoff.measure.measured_run import MeasuredRun, flows_of, pair_of
from bakeoff.measure.of_flows import goodput
from bakeoff.measure.over_time import HOLD_S, RATIO, SMOOTH_S, convergence, meeting
from bakeoff.measure.rates import jain
from bakeoff.measure.registration import Edge, Take, known, measure

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array


@measure(
    "total_goodput", "run", "bit/s", "total goodput",
    "sum of the goodputs of all flows, or of those that a name or pattern selects",
    needs=("received",),
)  # fmt: skip
def _total_goodput(run: MeasuredRun, flows: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
    return sum(goodput(run, flow.name, begin=begin, end=end) for flow in flows_of(run.document, flows))


@measure(
    "jain", "run", "1", "Jain's index",
    "Jain's index (Σx)² / (n Σx²) of the goodputs of the long TCP flows that share a queue",
    source="Jain, Chiu, Hawe: DEC-TR-301, 1984", needs=("received",), at="jain", bounds=SHARE,
)  # fmt: skip
def _jain(run: MeasuredRun, queue: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
    return jain([goodput(run, flow, begin=begin, end=end) for flow in run.sharing(queue).flows])


@measure(
    "ratio", "run", "1", "ratio of the goodputs",
    "largest over smallest goodput of these flows",
    needs=("received",), at="ratio", bounds=FROM_ONE,
)  # fmt: skip
def _ratio(run: MeasuredRun, queue: str | None = None, *, begin: Edge = None, end: Edge = None) -> float:
    rates = [goodput(run, flow, begin=begin, end=end) for flow in run.sharing(queue).flows]
    return max(rates) / min(rates) if min(rates) else inf


def _delivery_rates(of: str) -> Take:
    def take(run: MeasuredRun, queue: str | None = None) -> float:
        return known(getattr(run.sharing(queue), of), of)

    return take


measure(
    "jain_delivery_rate", "run", "1", "Jain's index of the delivery rates",
    "Jain's index of the delivery rates of these flows",
    at="jain_delivery_rate", bounds=SHARE,
)(_delivery_rates("jain_delivery_rate"))  # fmt: skip
measure(
    "ratio_delivery_rate", "run", "1", "ratio of the delivery rates",
    "largest over smallest delivery rate of these flows",
    source="l4s-tests", at="ratio_delivery_rate", bounds=FROM_ONE,
)(_delivery_rates("ratio_delivery_rate"))  # fmt: skip


def _pair(
    run: MeasuredRun, smooth: float, begin: float | None, end: float | None
) -> tuple[tuple[Array, Array], tuple[Array, Array], float]:
    """Both flows' smoothed rates, cut at `end`, and the time from which is counted."""
    first, later = pair_of(run.document)
    one, two = run.rate(first, smooth), run.rate(later, smooth)
    if end is not None:
        one, two = ((time[time <= end], rate[time <= end]) for time, rate in (one, two))
    if not len(one[0]) or not len(two[0]):
        raise MeasureError(f"the two flows have no samples before {end:g} s")
    return one, two, later.start_s if begin is None else begin


@measure(
    "convergence", "run", "s", "convergence",
    "of two long flows, time from the start of the later one until their smoothed rates stay within `ratio` for "
    "`hold`; infinite if they never do",
    needs=("received",), at="pair.convergence_s", seconds=True, may_never=True,
)  # fmt: skip
def _convergence(
    run: MeasuredRun,
    *,
    smooth: float = SMOOTH_S,
    ratio: float = RATIO,
    hold: float = HOLD_S,
    begin: Edge = None,
    end: Edge = None,
) -> float:
    return convergence(*_pair(run, smooth, begin, end), ratio, hold)


@measure(
    "meet", "run", "s", "meeting of the rates",
    "of two long flows, time from the start of the later one until its smoothed rate first reaches the other's; "
    "infinite if it never does",
    needs=("received",), at="pair.meet_s", seconds=True, may_never=True,
)  # fmt: skip
def _meet(run: MeasuredRun, *, smooth: float = SMOOTH_S, begin: Edge = None, end: Edge = None) -> float:
    return meeting(*_pair(run, smooth, begin, end))
