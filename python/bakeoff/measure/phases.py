"""A window in which something changes, cut at the changes: no number has to average over them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import isinf
from typing import TYPE_CHECKING, Final

from bakeoff.measure.delays import (
    arrivals,
    base_rtt_at,
    distribution,
    jitter,
    little,
    lost_share,
    shares_a_clock,
    told_by_tool,
    told_jitter,
    told_loss,
)
from bakeoff.measure.over_time import recovery, tried
from bakeoff.measure.rates import goodput_of, steady_state_rate
from bakeoff.measure.samples import Samples, Window
from bakeoff.results.summary import Phase, PhaseFlow, PhaseProbe, PhaseQueue
from bakeoff.scenario.run import ClassChange, QdiscChange, QdiscReplace

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array
    from bakeoff.measure.stations import Station
    from bakeoff.results.counters import Counters
    from bakeoff.scenario.run import Change, Flow, Probe, Qdisc, Run
    from bakeoff.scenario.timeline import Timeline


MOST: Final = 20
"""More phases than these are not told apart: a link that follows a schedule is one link."""


def changes(run: Run, window: Window) -> list[tuple[float, str]]:
    """(time [s], what happens) strictly inside the window, in order of time: timed changes, flows that start or stop.

    A flow that starts within one sampling interval of the window's beginning started with it.
    """
    start, stop = window
    margin = run.sample_interval_s
    found = [(change.at_s, _words(change)) for change in run.changes]
    for flow in run.flows:
        found += [(flow.start_s, f"{flow.name} starts"), (flow.stop_s, f"{flow.name} stops")]
    return sorted((at, what) for at, what in found if start + margin < at < stop - margin)


def phases(
    run: Run,
    counters: Counters,
    samples: Samples,
    window: Window,
    stations: Sequence[Station],
    *,
    timeline: Timeline,
) -> list[Phase]:
    """The numbers of each part of the window between changes; none if nothing changes, or more often than `MOST`."""
    happened = changes(run, window)
    edges = [window[0], *dict.fromkeys(at for at, _ in happened), window[1]]
    if not 3 <= len(edges) <= MOST + 1:
        return []
    found = []
    for start, stop in pairwise(edges):
        part = (start, stop)
        found.append(
            Phase(
                from_s=start,
                to_s=stop,
                changes=[what for at, what in happened if at == start],
                flows={flow.name: _flow(run, counters, flow, samples, part, timeline=timeline) for flow in run.flows},
                queues={station.queue: _queue(station, samples, part) for station in stations},
                probes={probe.name: _probe(run, probe, samples, part, timeline) for probe in run.probes},
            )
        )
    return found


def _flow(
    run: Run,
    counters: Counters,
    flow: Flow,
    samples: Samples,
    part: Window,
    *,
    timeline: Timeline,
) -> PhaseFlow:
    name, udp = flow.name, flow.transport == "udp"

    def of(metric: str) -> tuple[Array, Array]:
        return samples.of("flow", name, metric, part)

    by_tool = udp and told_by_tool(samples, name)
    came = tried(lambda: arrivals(samples, name, part)) if udp and not by_tool else None
    return PhaseFlow(
        delivery_rate_bps=tried(lambda: steady_state_rate(*of("delivery_rate"), window=part)),
        goodput_bps=tried(lambda: goodput_of(run, counters, samples, flow, part)),
        srtt_s=tried(lambda: distribution(of("srtt")[1])),
        delay_s=distribution(came[1]) if came and shares_a_clock(samples, name) else None,
        jitter_s=tried(lambda: told_jitter(samples, name, part)) if by_tool else jitter(*came) if came else None,
        loss=tried(lambda: told_loss(samples, name, part) if by_tool else lost_share(samples, "flow", name, part))
        if udp
        else None,
        recovery_s=_recovery(lambda: of("srtt"), part[0], lambda: base_rtt_at(run, flow, part[0], timeline)),
    )


def _queue(station: Station, samples: Samples, part: Window) -> PhaseQueue:
    def counted(metric: str) -> int:
        count = 0.0
        for leaf in station.leaves:
            values = samples.of("queue", leaf, metric, part)[1]
            count += float(values[-1] - values[0])
        return round(count)

    [leaf] = station.leaves if len(station.leaves) == 1 else [""]
    return PhaseQueue(
        rate_bps=station.mean_rate(part),
        utilisation=tried(lambda: station.utilisation(samples, part)) if station.sampled(samples) else None,
        sojourn_mean_s=tried(lambda: distribution(samples.of("queue", leaf, "sojourn", part)[1])),
        marks=tried(lambda: counted("marks")),
        drops=tried(lambda: counted("drops")),
        sce_marks=tried(lambda: counted("sce_marks")),
        sojourn_little_s=tried(lambda: little(samples, leaf, part)),
    )


def _probe(run: Run, probe: Probe, samples: Samples, part: Window, timeline: Timeline) -> PhaseProbe:
    name = probe.name
    rtts = tried(lambda: samples.of("probe", name, "rtt", part))
    return PhaseProbe(
        rtt_s=distribution(rtts[1]) if rtts else None,
        jitter_s=jitter(*rtts) if rtts else None,
        loss=tried(lambda: lost_share(samples, "probe", name, part)),
        recovery_s=_recovery(
            lambda: samples.of("probe", name, "rtt", part),
            part[0],
            lambda: base_rtt_at(run, probe, part[0], timeline),
        ),
    )


def _recovery(delays: Callable[[], tuple[Array, Array]], since_s: float, base: Callable[[], float]) -> float | None:
    """`recovery` from the beginning of the phase, over the base RTT that the path has in it; None if it never ends."""
    found = tried(lambda: recovery(*delays(), since_s, base()))
    return None if found is None or isinf(found) else found


def _words(change: Change) -> str:
    """A timed change as people say it: `mid>srv: class 1: rate 10mbit ceil 10mbit`."""
    action = change.action
    sign = "<" if action.kind != "link" and action.side == "ingress" else ">"
    place = f"{change.node}{sign}{change.peer}"
    if isinstance(action, ClassChange):
        return f"{place}: class {action.id}: {action.class_}"
    if isinstance(action, QdiscChange):
        return f"{place}: {action.qdisc}"
    if isinstance(action, QdiscReplace):
        return f"{place}: replaced by {_tree(action.qdisc)}"
    sources = {
        "rate": (action.rate_bps, 1e-6, " Mbit/s"),
        "delay": (action.delay_s, 1e3, " ms"),
        "loss": (action.loss, 100, " %"),
    }
    parts = [f"{what} {value * scale:g}{unit}" for what, (value, scale, unit) in sources.items() if value is not None]
    return f"{place}: link {', '.join(parts + ([] if action.up is None else ['up' if action.up else 'down']))}"


def _tree(tree: Qdisc) -> str:
    below = [tree.child] if tree.child else []
    below += [class_.child for class_ in tree.classes if class_.child]
    classes = [class_.class_ for class_ in tree.classes]
    return ", ".join([tree.qdisc, *classes, *(_tree(child) for child in below)])
