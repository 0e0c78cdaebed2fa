"""How rates and delays go on in time: convergence, starvation, oscillation, spikes and recovery.

Each measure has parameters that claims may set; `Rates` gives the summary's numbers, with the defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf, isinf
from typing import TYPE_CHECKING, Final, TypeVar

from bakeoff.errors import MeasureError
from bakeoff.measure.samples import Samples, Window
from bakeoff.results.summary import Pair, Spike
from bakeoff.scenario.run import Bulk

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array
    from bakeoff.scenario.run import Flow, Run

T = TypeVar("T")

SMOOTH_S: Final = 1.0
"""Seconds over which a rate is averaged where nothing else is said."""


def smoothed(time: Array, received: Array, start_s: float, smooth_s: float = SMOOTH_S) -> tuple[Array, Array]:
    """Times [s] of the samples, and the mean payload rate [bit/s] over `smooth_s` seconds around each.

    8 (r(b) - r(a)) / (b - a) with a = t - smooth/2 and b = t + smooth/2, where r is the cumulative `received` [byte],
    taken as linear between samples and as 0 at the flow's start. a and b are cut off at the flow's start and at its
    last sample. Both lie around t, so that smoothing does not make anything later. Raises MeasureError for fewer than
    two samples, or for no time to average over.
    """
    import numpy as np

    after = time > start_s
    times, counts = time[after], received[after]
    if len(times) < 2 or smooth_s <= 0:
        raise MeasureError(f"fewer than two 'received' samples after {start_s:g} s to smooth over {smooth_s:g} s")
    known, total = np.concatenate([[start_s], times]), np.concatenate([[0.0], counts])
    low = np.maximum(times - smooth_s / 2, start_s)
    high = np.minimum(times + smooth_s / 2, times[-1])
    got = np.interp(high, known, total) - np.interp(low, known, total)
    return times, 8 * got / (high - low)


RATIO: Final = 1.5
HOLD_S: Final = 5.0


def convergence(
    one: tuple[Array, Array],
    other: tuple[Array, Array],
    start_s: float,
    ratio: float = RATIO,
    hold_s: float = HOLD_S,
) -> float:
    """Seconds from `start_s`, when the later flow starts, until the flows share evenly; infinite if they never do.

    min { t - start : max(x, y) <= ratio * min(x, y) at every sample from t to t + hold }, where x and y are the
    smoothed rates (`smoothed`) as (times [s], rates [bit/s]). The samples have to reach t + hold. Source: none is
    exact; sce-l4s-bakeoff reads the same off its plots by eye, where both rates have met and stay together.
    """
    import numpy as np

    times, x, y = _together(one, other, start_s)
    even = (np.maximum(x, y) <= ratio * np.minimum(x, y)) & (np.minimum(x, y) > 0)
    # Where each stretch of even samples begins that has no uneven one before its end.
    uneven = np.flatnonzero(~even)
    begins = np.concatenate([[0], uneven + 1])
    ends = np.concatenate([uneven - 1, [len(times) - 1]])
    for first, last in zip(begins.tolist(), ends.tolist(), strict=True):
        if first <= last and times[last] - times[first] >= hold_s - 1e-9:
            return max(float(times[first]) - start_s, 0.0)
    return inf


def meeting(one: tuple[Array, Array], other: tuple[Array, Array], start_s: float) -> float:
    """Seconds from `start_s`, when the later flow starts, until the smoothed rates first cross; infinite if never.

    min { t - start : later(t) >= earlier(t) }, with `one` the flow that was there and `other` the later one, as in
    `convergence`. Source: sce-l4s-bakeoff, "until both rates meet".
    """
    times, x, y = _together(one, other, start_s)
    met = (y >= x).nonzero()[0]
    return max(float(times[met[0]]) - start_s, 0.0) if len(met) else inf


REACHED: Final = 0.9


def rise(counted: tuple[Array, Array], start_s: float, target_bps: float, over_s: float, hold_s: float) -> float:
    """Seconds from `start_s` until the flow's payload rate reaches `target_bps` and stays for `hold_s`; inf if never.

    min { t - start : 8 (r(u + over) - r(u)) >= target * over for all u from t to t + hold }, with t and u at start and
    at the samples up to `over` before the last one, where r is the cumulative `received` [byte] of `counted`, taken as
    linear between samples. The mean is of what follows u, so that a flow that is at once as fast as it gets has 0. The
    result is as coarse as the samples. Source: the rise time of control theory. Raises MeasureError for no such t.
    """
    import numpy as np

    time, received = counted
    after = time > start_s
    known = np.concatenate([[start_s], time[after]])
    total = np.concatenate([received[~after][-1:] if (~after).any() else [0.0], received[after]])
    at = known[known + over_s <= known[-1] + 1e-9]
    if not len(at) or over_s <= 0:
        raise MeasureError(f"no {over_s:g} s of 'received' samples after {start_s:g} s")
    got = np.interp(at + over_s, known, total) - np.interp(at, known, total)
    slow = np.flatnonzero(8 * got < target_bps * over_s)
    for first, last in zip([0, *(slow + 1).tolist()], [*(slow - 1).tolist(), len(at) - 1], strict=True):
        if first <= last and at[last] - at[first] >= hold_s - 1e-9:
            return float(at[first]) - start_s
    return inf


def overshoot(ssthresh: tuple[Array, Array], drops: tuple[Array, Array], start_s: float, rtt_s: float) -> float:
    """Packets dropped from `start_s` until one base RTT after slow start; an integer.

    Slow start ends at the first sample of `ssthresh`, which has none while it is infinite; without one it lasts to the
    end. Until an RTT later packets reach the queue that were sent before. `drops` is cumulative, and counted at the
    last sample up to then. Raises MeasureError if `drops` has no sample by then.
    """
    ends = ssthresh[0][ssthresh[0] > start_s]
    until = ends[0] + rtt_s if len(ends) else inf
    time, count = drops
    inside = count[time <= until]
    if not len(inside):
        raise MeasureError(f"no 'drops' samples up to {until:g} s")
    before = count[time <= start_s]
    return float(inside[-1] - (before[-1] if len(before) else 0.0))


def _together(one: tuple[Array, Array], other: tuple[Array, Array], start_s: float) -> tuple[Array, Array, Array]:
    """Both rates at the times of the second one's samples, from `start_s` on and while both last."""
    import numpy as np

    times, y = other
    inside = (times >= max(start_s, float(one[0][0]))) & (times <= float(one[0][-1]))
    if not inside.any():
        raise MeasureError(f"the two flows have no samples in common after {start_s:g} s")
    return times[inside], np.interp(times[inside], *one), y[inside]


BELOW: Final = 0.1


def starvation(
    flow: tuple[Array, Array],
    others: Sequence[tuple[Array, Array]],
    window: Window,
    below: float = BELOW,
) -> float:
    """Share of the time, 0 to 1, in which the flow's smoothed rate is less than `below` of its fair share; no unit.

    The fair share at a time is what the flow and `others`, those that share its queue, get together then, over the
    number of them that are there: a flow is there between its first and its last sample. All are smoothed rates
    (`smoothed`). It is the share of the flow's samples inside the closed window. Source: none; l4s-tests and
    sce-l4s-bakeoff call "starved" what the eye sees so, and a tenth is the usual bound. Raises MeasureError if the flow
    has no sample in the window.
    """
    import numpy as np

    inside = (flow[0] >= window[0]) & (flow[0] <= window[1])
    times, own = flow[0][inside], flow[1][inside]
    if not len(times):
        raise MeasureError(f"no samples of the flow's rate between {window[0]:g} s and {window[1]:g} s")
    total, there = own.copy(), np.ones(len(times))
    for time, rate in others:
        present = (times >= time[0]) & (times <= time[-1])
        total += np.where(present, np.interp(times, time, rate), 0.0)
        there += present
    return float((own < below * total / there).mean())


def oscillations(time: Array, rate: Array, window: Window) -> float:
    """Crossings of the rate's own mean, per second.

    n / (t1 - t0), where n counts the samples at which the smoothed rate (`smoothed`) lies on the other side of its mean
    over the window than the sample before, and t0, t1 are the first and the last sample in the closed window. A sine of
    period P has 2 / P. Source: the zero-crossing rate of signal processing. Raises MeasureError for fewer than two
    samples.
    """
    import numpy as np

    inside = (time >= window[0]) & (time <= window[1])
    times, values = time[inside], rate[inside]
    if len(times) < 2:
        raise MeasureError(f"fewer than two samples of a rate between {window[0]:g} s and {window[1]:g} s")
    above = values > values.mean()
    return float(np.count_nonzero(above[1:] != above[:-1]) / (times[-1] - times[0]))


OVER_S: Final = 0.01


def spike(time: Array, delay: Array, base_s: float, over_s: float = OVER_S) -> Spike:
    """The highest of the stretches of samples in which delay > base + over without a break; seconds.

    Height: max(delay) - base inside of it. Duration: from its first sample to the first one behind it, or to the last
    sample of all. `time` [s] is in order; of two equally high ones the first counts. Source: the plots of
    sce-l4s-bakeoff, whose "spike of about 50 ms for about 5 s" is read so. Raises MeasureError if there is no sample.
    """
    import numpy as np

    if not len(time):
        raise MeasureError("no samples of a delay")
    highest = int(delay.argmax())
    if not delay[highest] > base_s + over_s:
        return Spike(height_s=0.0, duration_s=0.0, begin_s=0.0)
    below = np.flatnonzero(delay <= base_s + over_s)
    before, behind = below[below < highest], below[below > highest]
    first = int(before[-1]) + 1 if len(before) else 0
    end = int(behind[0]) if len(behind) else len(time) - 1
    return Spike(
        height_s=float(delay[highest]) - base_s,
        duration_s=float(time[end] - time[first]),
        begin_s=float(time[first]),
    )


def spike_after(
    time: Array, delay: Array, after_s: float, base_s: float | None = None, over_s: float | None = None
) -> Spike:
    """`spike` from `after_s` on, above the mean of the samples before; seconds.

    It lasts until the delay is back within the larger of 5 ms and 10 % of the height, or within `over_s`. `base_s`
    takes the place of the mean. MeasureError if there are no samples before or behind.
    """
    behind = time >= after_s
    if base_s is None:
        if behind.all():
            raise MeasureError(f"no samples of a delay before {after_s:g} s")
        base_s = float(delay[~behind].mean())
    if not behind.any():
        raise MeasureError(f"no samples of a delay after {after_s:g} s")
    height = float(delay[behind].max()) - base_s
    return spike(time[behind], delay[behind], base_s, max(0.005, 0.1 * height) if over_s is None else over_s)


WITHIN_S: Final = 0.01


def recovery(time: Array, delay: Array, after_s: float, base_s: float, within_s: float = WITHIN_S) -> float:
    """Seconds from the step at `after_s` until the delay is at most base + within, and stays so to the last sample.

    0 if it never leaves; infinite if the last sample is still above. `time` [s] is in order, `delay` [s] is a flow's
    RTT or a probe's. It is the settling time of control theory, of one side. Raises MeasureError if no sample follows
    the step.
    """
    import numpy as np

    behind = time >= after_s
    times, values = time[behind], delay[behind]
    if not len(times):
        raise MeasureError(f"no samples of a delay after {after_s:g} s")
    above = np.flatnonzero(values > base_s + within_s)
    if not len(above):
        return 0.0
    last = int(above[-1])
    return inf if last + 1 == len(times) else float(times[last + 1]) - after_s


_MOST: Final = 64
"""Of more long flows at one queue the summary does not tell who starves: each is held against all others."""


def long_flows(run: Run) -> list[Flow]:
    """The long flows of TCP, which take what they can get."""
    return [flow for flow in run.flows if flow.transport == "tcp" and isinstance(flow.source, Bulk)]


class Rates:
    """The smoothed rates of a run's long flows, each computed once: (times [s], rates [bit/s]) by the flow's name.

    `queue_of` says which flows share a queue (`bakeoff.measure.sharing.queues`).
    """

    def __init__(self, run: Run, samples: Samples, queue_of: Mapping[str, str]) -> None:
        self._flows = long_flows(run)
        self._of: dict[str, tuple[Array, Array]] = {}
        self._queue_of = queue_of
        self._at: dict[str, list[str]] = {}
        for flow in self._flows:
            try:
                received = samples.of("flow", flow.name, "received")
                self._of[flow.name] = smoothed(*received, flow.start_s)
            except MeasureError:
                continue  # a flow that starts as the run ends
            self._at.setdefault(queue_of[flow.name], []).append(flow.name)

    def starvation(self, name: str, window: Window) -> float | None:
        """`starvation` of a flow beside those at its queue; None if alone, among very many, or without samples."""
        names = self._at.get(self._queue_of[name], ())
        if name not in names or not 2 <= len(names) <= _MOST:
            return None
        others = [self._of[other] for other in names if other != name]
        return tried(lambda: starvation(self._of[name], others, window))

    def oscillations(self, name: str, window: Window) -> float | None:
        """`oscillations` of a flow; None without samples."""
        return tried(lambda: oscillations(*self._of[name], window)) if name in self._of else None

    def pair(self) -> Pair | None:
        """How the two long flows at one queue come to share; None of fewer, more, or never there together."""
        if len(self._flows) != 2 or len(self._of) != 2 or not any(len(names) == 2 for names in self._at.values()):
            return None
        first, later = sorted(self._flows, key=lambda flow: flow.start_s)
        one, two, start = self._of[first.name], self._of[later.name], later.start_s
        try:
            converged, met = convergence(one, two, start), meeting(one, two, start)
        except MeasureError:
            return None
        return Pair(
            flows=(first.name, later.name),
            convergence_s=None if isinf(converged) else converged,
            meet_s=None if isinf(met) else met,
        )


def tried(measure: Callable[[], T]) -> T | None:
    """What a measure gives; None where it cannot be taken."""
    try:
        return measure()
    except MeasureError:
        return None
