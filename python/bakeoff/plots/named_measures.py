"""The measures that pictures can show by name, and where they stand in summary.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING, Final

from bakeoff.errors import BakeoffError

if TYPE_CHECKING:
    from bakeoff.results.summary import Summary


_LEAST_TOP: Final = 0.1
_MOST_TOP: Final = 1e4
"""An axis that ends below or above these has the next smaller or larger unit."""


@dataclass(frozen=True)
class Measure:
    """A number of summary.json; `*` in its path stands for each flow, probe or queue."""

    path: str
    label: str
    unit: str
    scale: float = 1.0
    expression: bool = False
    """Whether `path` is an expression of claims, and no place in summary.json."""
    bounds: tuple[float, float] | None = None
    """What an expression can be, in its base unit; of a place in summary.json its name says it."""

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest value that is possible, in `unit`."""
        from bakeoff.results.units import limits

        low, high = self.bounds or limits(self.path)
        return low * self.scale, high * self.scale

    @property
    def text(self) -> str:
        """As an axis has it."""
        return f"{self.label} [{self.unit}]"


MEASURES: Final[Mapping[str, Measure]] = {
    "goodput": Measure("flows.*.steady_state.goodput_bps", "goodput", "Mbit/s", 1e-6),
    "delivery_rate": Measure("flows.*.steady_state.delivery_rate_bps", "delivery rate", "Mbit/s", 1e-6),
    "tcp_rtt": Measure("flows.*.srtt_s.mean", "mean TCP RTT", "ms", 1e3),
    "tcp_rtt_p99": Measure("flows.*.srtt_s.p99", "TCP RTT, 99th percentile", "ms", 1e3),
    "retransmissions": Measure("flows.*.retransmissions", "retransmissions", "packets"),
    "mark_fraction": Measure("flows.*.mark_fraction", "share of packets marked", "%", 100.0),
    "fct": Measure("flows.*.fct.fct_s.p50", "flow completion time, median", "ms", 1e3),
    "fct_p95": Measure("flows.*.fct.fct_s.p95", "flow completion time, 95th percentile", "ms", 1e3),
    "jain": Measure("jain", "Jain's index", "1"),
    "ratio": Measure("ratio", "ratio of the rates", "1"),
    "utilisation": Measure("utilisation", "utilisation", "%", 100.0),
    "queue_delay": Measure("queues.BOTTLENECK.delay_s.p50", "queue delay, median", "ms", 1e3),
    "queue_delay_p99": Measure("queues.BOTTLENECK.delay_s.p99", "queue delay, 99th percentile", "ms", 1e3),
    "queue_delay_mean": Measure("queues.BOTTLENECK.sojourn_little_s.mean", "mean queue delay", "ms", 1e3),
    "queue_delay_l": Measure("queues.BOTTLENECK.parts.L.mean", "mean delay in the L queue", "ms", 1e3),
    "queue_delay_c": Measure("queues.BOTTLENECK.parts.C.mean", "mean delay in the C queue", "ms", 1e3),
    "marks": Measure("queues.BOTTLENECK.marks", "marks", "packets"),
    "drops": Measure("queues.BOTTLENECK.drops", "drops", "packets"),
    "ping": Measure("probes.*.rtt_s.mean", "mean probe RTT", "ms", 1e3),
    "ping_p99": Measure("probes.*.rtt_s.p99", "probe RTT, 99th percentile", "ms", 1e3),
    "ping_loss": Measure("probes.*.loss", "probes lost", "%", 100.0),
}


PREFIXES: Final = (("Mbit/s", "kbit/s", "Gbit/s"), ("ms", "µs", "s"))
"""Units of axes, each with the next smaller and the next larger one."""


def other_unit(unit: str, top: float) -> tuple[str, float] | None:
    """The unit that numbers up to `top` are better shown in, and how many of it one of `unit` is; None if none is."""
    for usual, smaller, larger in PREFIXES:
        if unit == usual and 0 < top < _LEAST_TOP:
            return smaller, 1e3
        if unit == usual and top >= _MOST_TOP:
            return larger, 1e-3
    return None


def in_other_unit(measure: Measure, top: float) -> Measure | None:
    """The measure in such a unit; None if its own is as good."""
    found = other_unit(measure.unit, top)
    return None if found is None else replace(measure, unit=found[0], scale=measure.scale * found[1])


def measure_of(name: str) -> Measure:
    """A measure by its name, by its place in summary.json, `flows.*.srtt_s.max`, or an expression: `share("prague")`.

    BakeoffError lists the names for any other word, and says what is wrong in an expression.
    """
    if name in MEASURES:
        return MEASURES[name]
    if "(" in name or (name.isidentifier() and _in_claims(name)):
        from bakeoff.claims.evaluate import number_of

        found = number_of(name)
        unit, scale = _UNITS.get(found.unit or "", (found.unit or "1", 1.0))
        return Measure(name if "(" in name else f"{name}()", name, unit, scale, expression=True, bounds=found.limits)
    if "." not in name:
        raise BakeoffError(
            f"measure: unknown '{name}'; expected one of {', '.join(MEASURES)}, a place in summary.json such as "
            "flows.*.srtt_s.max, or an expression of claims such as 'share(1)'"
        )
    from bakeoff.results.units import is_share, unit_in  # heavier than the names alone, which completion asks for

    if is_share(name):
        return Measure(name, name, "%", 100.0)
    return Measure(name, name, *_UNITS.get(unit_in(name) or "", (unit_in(name) or "1", 1.0)))


def _in_claims(name: str) -> bool:
    from bakeoff.claims.measures import MEASURES as OF_CLAIMS

    return name in OF_CLAIMS


_UNITS: Final = {"s": ("ms", 1e3), "bit/s": ("Mbit/s", 1e-6)}
"""What axes have in the place of a base unit, and what a number is multiplied with."""


def values(summary: Summary | Mapping[str, object], measure: Measure) -> dict[str, float]:
    """The measure's values in a summary, or in its plain JSON, by what stands for the `*`; `""` where there is none.

    Not a number where it never came: the time until two rates meet that never do.
    """
    from bakeoff.results.units import MAY_NEVER

    *way, last = measure.path.split(".")
    found: dict[str, float] = {}
    several: list[float] = []
    narrow = _part(_part(summary, "bottleneck"), "queue")

    def walk(tree: object, at: int, name: str) -> None:
        if at == len(way):
            number = _part(tree, last)
            if number is None and last in MAY_NEVER and tree is not None:
                number = nan
            if isinstance(number, int | float) and not isinstance(number, bool):
                if "BOTTLENECK" in way:
                    several.append(float(number) * measure.scale)
                else:
                    found[name] = float(number) * measure.scale
        elif way[at] in ("*", "BOTTLENECK"):
            for key, below in tree.items() if isinstance(tree, Mapping) else ():
                if way[at] == "*":
                    walk(below, at + 1, key)
                elif narrow is not None and (key == narrow or key.startswith(f"{narrow}/")):
                    walk(below, at + 1, name)
        else:
            walk(_part(tree, way[at]), at + 1, name)

    walk(summary, 0, "")
    if several:
        found[""] = sum(several) if last in ("marks", "drops") else max(several)
    return found


def _part(tree: object, name: str) -> object:
    """What stands in summary.json under that name, None if nothing does."""
    if isinstance(tree, Mapping):
        return tree.get(name)
    known = name in getattr(tree, "__struct_fields__", ()) or isinstance(getattr(type(tree), name, None), property)
    return getattr(tree, name) if known else None
