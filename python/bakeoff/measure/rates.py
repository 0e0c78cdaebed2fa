"""Rates in the steady state, and the measures that follow from them: fairness, utilisation, harm."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite
from typing import TYPE_CHECKING, Literal

from bakeoff.errors import MeasureError
from bakeoff.measure.samples import Samples, Window

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array
    from bakeoff.results.counters import Counters
    from bakeoff.scenario.run import Flow, Run


End = Literal["text", "code"]


def window_of(run: Run, *, end: End = "text", last_s: float | None = None) -> Window:
    """The steady-state window (from, to) of a run, in seconds.

    `text`: the run's `window_s`, as the text of l4s-tests defines it (it ends 2 s before the flows end). `code`: as
    that suite's steady_state.go computes it, (tl - W - 1, tl - 1) for a flow whose last sample stands at tl =
    `last_s`, where W is the length of `window_s`.
    """
    start, stop = run.window_s
    if end == "text":
        return start, stop
    if last_s is None:
        raise MeasureError("the suite's window needs the time of the flow's last sample")
    return last_s - (stop - start) - 1, last_s - 1


def steady_state_rate(time: Array, rate: Array, window: Window) -> float:
    """Mean of the non-zero samples of a rate metric in the open window (from, to); unit of the metric.

    Source: l4s-tests, steady_state.go, there applied to `tcp_delivery_rate`. Zero samples stand for "no estimate
    yet" in `tcp_info`, not for a rate.
    """
    chosen = rate[(time > window[0]) & (time < window[1]) & (rate != 0)]
    if not len(chosen):
        raise MeasureError(f"no sample other than zero between {window[0]:g} s and {window[1]:g} s")
    return float(chosen.mean())


def goodput(time: Array, received: Array, window: Window) -> float:
    """Payload that reached the receiving socket in the window, over the time it took, in bit/s.

    8 (r(t1) - r(t0)) / (t1 - t0), where r is the cumulative `received` [byte] and t0, t1 are the first and last
    sample inside the closed window: a flow that starts or ends inside it is measured while it lasts. Source: RFC
    2647 section 3.17, counted at the receiver. A difference of counters: no sample that is missed changes it.
    """
    inside = (time >= window[0]) & (time <= window[1])
    times, counts = time[inside], received[inside]
    if len(times) < 2:
        raise MeasureError(f"fewer than two 'received' samples between {window[0]:g} s and {window[1]:g} s")
    return float(8 * (counts[-1] - counts[0]) / (times[-1] - times[0]))


def goodput_of(
    run: Run,
    counters: Counters,
    samples: Samples,
    flow: Flow,
    window: Window,
) -> float:
    """`goodput` of a flow of the run, in bit/s; 0 of one that was to send in the window and got nothing through.

    A flow has no samples before its first packet has reached the receiver. If it was to start at least one sampling
    interval before the window's end, and has no sample by then, nothing of it had arrived at the window's last sample.
    Without any sample in the run, `received_bytes` of the counters has to say so too. Raises MeasureError of a flow
    that is not there in the window: it is not starved, and 0 would say so.
    """
    name = flow.name
    seen = ("flow", name, "received") in samples
    if seen:
        time, received = samples.of("flow", name, "received")
        if time[0] <= window[1]:
            return goodput(time, received, window)
    if not is_there(run, flow, window):
        raise MeasureError(
            f"flow '{name}' sends from {flow.start_s:g} s to {flow.stop_s:g} s, outside the window of {window[0]:g} s"
            f" to {window[1]:g} s"
        )
    if not seen and counters.flow(name).received_bytes != 0:
        raise MeasureError(f"no 'received' samples of flow '{name}'")
    return 0.0


def is_there(run: Run, flow: Flow, window: Window) -> bool:
    """Whether the flow is to send in the window, one sampling interval before its end at the latest."""
    return flow.stop_s > window[0] and flow.start_s <= window[1] - run.sample_interval_s


def jain(rates: Sequence[float]) -> float:
    """Jain's fairness index (sum x)^2 / (n sum x^2), from 1/n (one flow has everything) to 1 (all equal); no unit.

    Source: Jain, Chiu, Hawe: A Quantitative Measure of Fairness, DEC-TR-301, 1984.
    """
    squares = sum(rate * rate for rate in rates)
    if not squares:
        raise MeasureError("Jain's index needs at least one rate above zero")
    if not isfinite(squares):
        raise MeasureError("Jain's index needs rates whose squares are numbers")
    return sum(rates) ** 2 / (len(rates) * squares)


def ratio(rates: Sequence[float]) -> float:
    """The larger rate over the smaller one (of several: the largest over the smallest), at least 1; no unit.

    Source: l4s-tests, steady_state.go, which rounds it to an integer.
    """
    if len(rates) < 2:
        raise MeasureError("a ratio needs at least two rates")
    if not min(rates):
        raise MeasureError("a ratio needs rates above zero")
    return max(rates) / min(rates)


def utilisation(goodputs: Iterable[tuple[float, float]], rate_bps: float) -> float:
    """Share of the bottleneck that the flows' payload and its headers take, from 0 to 1; no unit.

    sum(g / f) / R, where g is a flow's goodput [bit/s], f its payload fraction (see `payload_fraction`; 1448/1514
    for full Ethernet frames with timestamps) and R the bottleneck's rate [bit/s]. `goodputs` holds pairs (g, f).
    ACKs, probes and retransmissions are not counted: it is 1 when the bottleneck carries nothing else than new
    data.
    """
    return sum(rate / fraction for rate, fraction in goodputs) / rate_bps


def harm(together: float, solo: float) -> float:
    """(solo - together) / solo of a measure of which more is better, such as a rate; 1 is all lost, 0 none. No unit.

    Negative if the flow fares better together. Source: Ware, Mukerjee, Seshan, Sherry: Beyond Jain's Fairness Index,
    HotNets 2019. Raises MeasureError if the solo value is not above zero.
    """
    if not solo > 0:
        raise MeasureError(f"harm needs a value above zero of the flow alone, not {solo:g}")
    return (solo - together) / solo


def harm_less(together: float, solo: float) -> float:
    """(together - solo) / together of a measure of which less is better, such as a delay; 0 is no harm. No unit.

    Source: the same. Raises MeasureError if the value together is not above zero.
    """
    if not together > 0:
        raise MeasureError(f"harm needs a value above zero of the flows together, not {together:g}")
    return (together - solo) / together


def under_utilisation(together_bps: float, baseline_bps: float) -> float:
    """Goodput [bit/s] of the flow in the baseline run, without the other, less its goodput with it.

    Also called backoff. It says nothing of who got the difference: where the other flow needs less than that, the
    rest of it is capacity that nobody used. Source: l4s-tests, its table of goodputs beside a call.
    """
    return baseline_bps - together_bps
