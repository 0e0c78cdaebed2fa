"""How the long flows of a run share each queue."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from bakeoff.errors import MeasureError
from bakeoff.measure.rates import jain, ratio
from bakeoff.results.summary import Sharing

if TYPE_CHECKING:
    from collections.abc import Callable

    from bakeoff.results.summary import Flow
    from bakeoff.scenario.run import Run

_FEWEST: Final = 2


def ends(run: Run) -> dict[str, tuple[str, str]]:
    """By flow: from, to."""
    return {flow.name: (flow.from_, flow.to) for flow in run.flows}


def queues(bottlenecks: Mapping[str, str | None], ends: Mapping[str, tuple[str, str]]) -> dict[str, str]:
    """By flow, the queue that it shares with all flows of the same value: its bottleneck.

    A recording does not say where the bottleneck is. If no flow has one, flows between the same `ends` (from, to) in
    the same direction are taken to share it. Beside flows with a bottleneck, one without has its own name.
    """
    known = any(queue is not None for queue in bottlenecks.values())
    return {name: (at or name) if known else ">".join(ends[name]) for name, at in bottlenecks.items()}


def queue_of(flows: Mapping[str, Flow], run: Run) -> dict[str, str]:
    """`queues` of the flows in a summary."""
    return queues({name: flow.bottleneck for name, flow in flows.items()}, ends(run))


def sharing(
    flows: Mapping[str, Flow],
    ends: Mapping[str, tuple[str, str]],
    long: Collection[str],
    missing: list[str],
    *,
    delivery_rates: bool = True,
) -> dict[str, Sharing]:
    """By queue: one record for each that two or more of the `long` flows share (`queues`), in order of first flows.

    `missing` gets a line for each number that cannot be computed, but none for delivery rates that nothing reports
    (`delivery_rates` is False).
    """
    groups: dict[str, list[str]] = {}
    for name, at in queues({name: flow.bottleneck for name, flow in flows.items()}, ends).items():
        if name in long:
            groups.setdefault(at, []).append(name)
    found: dict[str, Sharing] = {}
    for queue, names in groups.items():
        if len(names) < _FEWEST:
            continue

        def tried(
            name: str, what: str, rates: list[float | None], measure: Callable[[Sequence[float]], float]
        ) -> float | None:
            known = [rate for rate in rates if rate is not None]
            if len(known) < len(rates):  # without the flow that has no rate, the rest would look fair
                missing.append(f"{name}: a flow has no {what}")
                return None
            try:
                return measure(known)
            except MeasureError as error:
                missing.append(f"{name}: {error}")
                return None

        goodputs = [flows[name].steady_state.goodput_bps for name in names]
        delivered = [flows[name].steady_state.delivery_rate_bps for name in names]
        found[queue] = Sharing(
            flows=names,
            jain=tried("jain", "goodput", goodputs, jain),
            ratio=tried("ratio", "goodput", goodputs, ratio),
            jain_delivery_rate=tried("jain_delivery_rate", "delivery rate", delivered, jain)
            if delivery_rates
            else None,
            ratio_delivery_rate=tried("ratio_delivery_rate", "delivery rate", delivered, ratio)
            if delivery_rates
            else None,
        )
    return found


def of_the_only(shared: Mapping[str, Sharing]) -> dict[str, float | None]:
    """The numbers of the one queue that flows share, for `Summary`; {} if there are several, or none."""
    if len(shared) != 1:
        return {}
    [only] = shared.values()
    names = ("jain", "ratio", "jain_delivery_rate", "ratio_delivery_rate")
    return {name: getattr(only, name) for name in names}
