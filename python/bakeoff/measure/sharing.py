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

_FEWEST: Final = 2


def sharing(
    flows: Mapping[str, Flow],
    ends: Mapping[str, tuple[str, str]],
    long: Collection[str],
    missing: list[str],
    *,
    delivery_rates: bool = True,
) -> dict[str, Sharing]:
    """By queue: one record for each bottleneck of two or more of the `long` flows, in order of their first flow.

    A recording does not say where the bottleneck is. If no flow has one, flows between the same `ends` (from, to) in
    the same direction are taken to share it. `missing` gets a line for each number that cannot be computed, but none
    for delivery rates that nothing reports (`delivery_rates` is False).
    """
    known = any(flow.bottleneck is not None for flow in flows.values())
    groups: dict[str | None, list[str]] = {}
    for name, flow in flows.items():
        if name in long:
            groups.setdefault(flow.bottleneck if known else ">".join(ends[name]), []).append(name)
    found: dict[str, Sharing] = {}
    for queue, names in groups.items():
        if queue is None or len(names) < _FEWEST:
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
