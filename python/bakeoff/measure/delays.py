"""Delays: of queues, of TCP's round trips, of probes; and the round trip of the empty path.

`little` needs no delay that a qdisc reports. W = L / λ (Little, A Proof for the Queuing Formula L = λW, Operations
Research 9, 1961): over a time in which the queue neither fills nor drains for good, packets wait on average the mean
backlog over the rate at which they leave, whatever the order in which they leave. Both are in bytes here, so that a
packet weighs as much as it has bytes. The backlog is known at the samples, and taken as a straight line between them.
A packet that a queue drops from its head counts in the backlog while it waits, and never among those that leave: the
delay is too high by about the share of such packets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from bakeoff import tc
from bakeoff.errors import MeasureError
from bakeoff.measure.bottleneck import Hop, class_of, path
from bakeoff.measure.samples import Samples, Window
from bakeoff.results.summary import Distribution
from bakeoff.scenario.timeline import Timeline

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array
    from bakeoff.results.counters import Histogram
    from bakeoff.scenario.run import Qdisc, Run, Traffic

PARTS: Final[Mapping[str, str]] = {"L": "sojourn_l", "C": "sojourn_c"}
"""The queues within dualpi2, each with the metric of its delay."""


def quantile(values: Sequence[float], q: float) -> float:
    """The q-quantile, 0 to 1, interpolated linearly between order statistics (Hyndman and Fan's type 7)."""
    ordered = sorted(values)
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    if at == low or ordered[low] == ordered[high]:
        return ordered[low]
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def distribution(values: Array) -> Distribution:
    """`n`, `mean`, `p50`, `p99` and `max` of samples taken at equal intervals; the unit is that of the samples.

    Every interval weighs the same, so of `sojourn` (a mean per interval) this is the delay as time passes, while
    the histogram in the counters is the delay as packets meet it.
    """
    if not len(values):
        raise MeasureError("no samples")
    ordered = sorted(values.tolist())
    return Distribution(
        n=len(ordered),
        mean=float(values.mean()),
        p50=quantile(ordered, 0.5),
        p99=quantile(ordered, 0.99),
        max=ordered[-1],
    )


def histogram(found: Histogram, what: str) -> Distribution:
    """What an engine measured per event inside the window: `n`, `mean`, `min`, `max`, `p5` to `p999`, in seconds.

    `sojourn` of a queue has every packet's delay, `rtt` of a flow every ACK's RTT sample, `rtt` of a probe every
    answer. Raises MeasureError if there was no event, and names it as `what`, such as `flows.cubic.rtt`.
    """
    if not found.n:
        raise MeasureError(f"counters: {what} has no samples")
    fields = msgspec.structs.asdict(found)
    return msgspec.convert({field.removesuffix("_s"): value for field, value in fields.items()}, Distribution)


def arrivals(samples: Samples, flow: str, window: Window | None = None) -> tuple[Array, Array]:
    """When each datagram of a UDP flow that came was sent [s], and how long it was on its way [s].

    Where its two ends read different clocks, how much longer than the quickest one of the run (RFC 5481's packet delay
    variation). Raises MeasureError if none came that was sent in the window, if one is given.
    """
    return samples.of("flow", flow, _of_datagrams(samples, flow), window)


def shares_a_clock(samples: Samples, flow: str) -> bool:
    """Whether one-way delays of a UDP flow are known."""
    return _of_datagrams(samples, flow) == "delay"


def _of_datagrams(samples: Samples, flow: str) -> str:
    return "delay_variation" if ("flow", flow, "delay_variation") in samples else "delay"


def lost_share(samples: Samples, kind: Literal["probe", "flow"], name: str, window: Window) -> float:
    """Share of a probe's requests, or a UDP flow's datagrams, sent inside the window that got lost; 0 to 1, no unit.

    A request is lost that was never answered, a datagram that never arrived; what may still be on its way as the run
    ends counts for neither side.
    """
    came, lost = ("rtt", "lost") if kind == "probe" else (_of_datagrams(samples, name), "missing")
    counts = {}
    for metric in (came, lost):
        try:
            counts[metric] = len(samples.of(kind, name, metric, window)[0])
        except MeasureError:
            counts[metric] = 0
    if not sum(counts.values()):
        what = f"requests of probe '{name}'" if kind == "probe" else f"datagrams of flow '{name}'"
        raise MeasureError(f"no {what} between {window[0]:g} s and {window[1]:g} s")
    return counts[lost] / sum(counts.values())


def told_by_tool(samples: Samples, flow: str) -> bool:
    """Whether a tool told jitter and loss of a UDP flow per interval, and nothing of each datagram."""
    return ("flow", flow, "jitter") in samples


def told_jitter(samples: Samples, flow: str, window: Window) -> float:
    """Mean over the window of the jitter that the receiver's tool told at the end of each interval, in seconds."""
    return float(samples.of("flow", flow, "jitter", window)[1].mean())


def told_loss(samples: Samples, flow: str, window: Window) -> float:
    """Share of the datagrams that the tool missed between its first and its last report in the window; 0 to 1, no unit.

    Raises MeasureError if there is no time between them, or no datagram.
    """
    due, lost = (samples.of("flow", flow, metric, window)[1] for metric in ("datagrams", "datagrams_lost"))
    if due[-1] == due[0]:
        raise MeasureError(f"no datagrams of flow '{flow}' between two reports in {window[0]:g} s to {window[1]:g} s")
    return float((lost[-1] - lost[0]) / (due[-1] - due[0]))


def jitter(sent: Array, took: Array) -> float | None:
    """Mean of the interarrival jitter, in seconds; None for fewer than two arrivals.

    `sent`: when each packet left [s]; `took`: how long it was on its way [s], one way or there and back. In order of
    arrival J moves by (|D| - J) / 16, where D is the difference of the two last times on the way; the mean is over the
    values of J after each arrival but the first. An offset between the clocks of the two ends cancels out. Source: RFC
    3550 section 6.4.1.
    """
    estimates = jitter_over_time(sent, took)[1]
    return float(estimates.mean()) if len(estimates) else None


def jitter_over_time(sent: Array, took: Array) -> tuple[Array, Array]:
    """When each packet but the first arrived [s], and the interarrival jitter J [s] as it was then; see `jitter`."""
    import numpy as np

    order = (sent + took).argsort(kind="stable")
    estimate, found = 0.0, []
    for before, after in pairwise(took[order].tolist()):
        estimate += (abs(after - before) - estimate) / 16
        found.append(estimate)
    return (sent + took)[order][1:], np.array(found)


def ipdv(sent: Array, rtt: Array, every_s: float) -> Array:
    """|RTT(i) - RTT(i-1)| [s] of each request that was answered, as was the one before.

    `sent`: when the answered requests left [s], in order, one every `every_s` seconds; `rtt`: their round trips [s].
    Beside a lost request there is no difference. Source: RFC 3393, section 2.4, and irtt, which prints the absolute
    value. Raises MeasureError if no two consecutive requests were answered.
    """
    import numpy as np

    steps, differences = np.diff(sent), np.abs(np.diff(rtt))
    found: Array = differences[steps < 1.5 * every_s]
    if not len(found):
        raise MeasureError("no two consecutive requests were answered")
    return found


def induced_latency_above(rtt: Array, base_s: float, limit_s: float) -> float:
    """Share of round trips, 0 to 1, whose induced latency (RTT - base) is above the limit; no unit.

    The base is the round trip with empty queues (`base_rtt`). Raises MeasureError if there is no sample.
    """
    if not len(rtt):
        raise MeasureError("no round-trip times")
    return float((rtt - base_s > limit_s).mean())


def base_rtt(run: Run, flow: Traffic) -> float:
    """Propagation there and back, in seconds: the delays of the links and of every netem on the way, as the run begins.

    The time to send a packet is not in it (0.24 ms for a full frame at 50 Mbit/s), nor what netem's jitter and slots
    add.
    """
    return _delay(Timeline(run), _round(run, flow), flow, float("-inf"))


def mean_base_rtt(run: Run, flow: Traffic, timeline: Timeline | None = None, window: Window | None = None) -> float:
    """The mean of `base_rtt` over the window (the steady state) in seconds: timed changes of links and qdiscs count."""
    start, stop = window or run.window_s
    timeline, hops = timeline or Timeline(run), _round(run, flow)
    total = 0.0
    for since, until in pairwise(timeline.times([end for hop in hops for end in (hop, hop[::-1])], (start, stop))):
        total += (until - since) * _delay(timeline, hops, flow, since)
    return total / (stop - start)


def base_rtt_at(run: Run, flow: Traffic, at_s: float, timeline: Timeline | None = None) -> float:
    """`base_rtt` as the timed changes have left it `at_s` seconds after the start of the run."""
    return _delay(timeline or Timeline(run), _round(run, flow), flow, at_s)


def _round(run: Run, flow: Traffic) -> list[Hop]:
    """The hops to the receiver and back."""
    there = path(run, flow)
    return there + [(peer, node) for node, peer in reversed(there)]


def _delay(timeline: Timeline, hops: list[Hop], flow: Traffic, at_s: float) -> float:
    """What leaves `node` for `peer` passes the egress there, the link, and then the ingress of the other end."""
    total = 0.0
    for node, peer in hops:
        here, there = timeline.at((node, peer), at_s), timeline.at((peer, node), at_s)
        queues = sum(_tree(tree, flow) for tree in (here.egress, there.ingress) if tree is not None)
        total += here.delay_s + queues
    return total


def _tree(tree: Qdisc, flow: Traffic) -> float:
    below = tree.child
    if tree.classes:
        taken = class_of(tree, flow)
        below = taken.child if taken is not None else None
    return _netem(tree.qdisc) + (_tree(below, flow) if below is not None else 0.0)


@lru_cache(maxsize=256)  # thousands of runs have the same few
def _netem(qdisc: str) -> float:
    """The delay of a netem, in seconds; 0 of other qdiscs."""
    delay = tc.value(qdisc, "delay") if tc.kind(qdisc) == "netem" else None
    return 0.0 if delay is None else tc.time(delay, bare="ns")


def little_over_time(samples: Samples, queue: str, window: Window | None = None) -> tuple[Array, Array]:
    """The end [s] of each interval between two samples in which something left, and the delay there [s].

    ((b0 + b1) / 2) (t1 - t0) / (s1 - s0), where b is the backlog [byte] and s what left until then [byte]. Raises
    MeasureError if the queue was not sampled, or if nothing left.
    """
    return _delays(queue, *_intervals(samples, queue, window))


def little(samples: Samples, queue: str, window: Window) -> Distribution:
    """The delay of a queue in the window [s], by Little's law.

    `mean` is that of all bytes which left: the integral of the backlog over what left between the first and the last
    sample in the window. `p50`, `p99` and `max` are those of the means over each interval (see `little_over_time`),
    and `n` is the number of these. Raises MeasureError if the queue was not sampled, or if nothing left.
    """
    from msgspec.structs import replace

    times, standing, left = _intervals(samples, queue, window)
    spread = distribution(_delays(queue, times, standing, left)[1])
    return replace(spread, mean=float(standing.sum() / left.sum()))


def delay_over_time(samples: Samples, queue: str, window: Window | None = None) -> tuple[Array, Array]:
    """Times [s] and a queue's delays [s]: those that were told, or else those by Little's law.

    Raises MeasureError if there are neither.
    """
    if ("queue", queue, "sojourn") in samples:
        return samples.of("queue", queue, "sojourn", window)
    return little_over_time(samples, queue, window)


def _delays(queue: str, times: Array, standing: Array, left: Array) -> tuple[Array, Array]:
    passed = left > 0
    if not passed.any():
        raise MeasureError(f"no packet left queue '{queue}'")
    return times[passed], standing[passed] / left[passed]


def _intervals(samples: Samples, queue: str, window: Window | None) -> tuple[Array, Array, Array]:
    """Of each interval its end [s], the integral of the backlog [byte s], and what left [byte].

    An interval in which the counter began again, as that of a replaced qdisc does, is left out.
    """
    import numpy as np

    time, backlog = samples.of("queue", queue, "backlog", window)
    sent_at, sent = samples.of("queue", queue, "sent", window)
    if not np.array_equal(time, sent_at):
        time, of_backlog, of_sent = np.intersect1d(time, sent_at, assume_unique=True, return_indices=True)
        backlog, sent = backlog[of_backlog], sent[of_sent]
    lasted, left = time[1:] - time[:-1], sent[1:] - sent[:-1]
    between = (backlog[1:] + backlog[:-1]) / 2
    known = left >= 0
    return time[1:][known], (between * lasted)[known], left[known]
