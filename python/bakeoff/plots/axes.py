"""The measures that pictures can show by name, and where they stand in summary.json."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING, Final

from bakeoff.errors import PlotError
from bakeoff.measure.catalogue import DISPLAY, FROM_ZERO, Measure, Of
from bakeoff.measure.functions import CATALOGUE
from bakeoff.results.series_units import unit_in

if TYPE_CHECKING:
    from bakeoff.results.summary import Summary


_ONE_CALL: Final = re.compile(r"\w+\([^()]*\)")
_LEAST_TOP: Final = 0.1
_MOST_TOP: Final = 1e4
"""An axis that ends below or above these has the next smaller or larger unit."""


@dataclass(frozen=True)
class Axis:
    """What an axis shows: a number of summary.json (`*` in its path is each flow, probe or queue), or an expression."""

    path: str
    label: str
    unit: str
    scale: float = 1.0
    expression: bool = False
    """Whether `path` is an expression of claims."""
    bounds: tuple[float, float] = FROM_ZERO
    """The least and the greatest possible value in the base unit."""
    may_never: bool = False

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest possible value in `unit`."""
        low, high = self.bounds
        return low * self.scale, high * self.scale

    @property
    def text(self) -> str:
        """As an axis has it."""
        return f"{self.label} [{self.unit}]"


_OF: Final[Mapping[Of, str]] = {"flow": "flows.*.", "probe": "probes.*.", "queue": "queues.BOTTLENECK.", "run": ""}
_OF_THE_BOTTLENECK: Final[Mapping[str, str]] = {"utilisation": "utilisation", "rate": "bottleneck.rate_bps"}
"""Places of what the record of a queue does not hold."""


def names() -> list[str]:
    """The measures that an axis can show by name."""
    return [name for name, measure in CATALOGUE.names.items() if measure.at is not None]


def _axis(path: str, label: str, measure: Measure | None) -> Axis:
    """`measure` is that at the path, if it has one; the unit of other paths is at their end."""
    if measure is None:
        unit = unit_in(path) or "1"
        scale, display_unit = DISPLAY.get(unit, (1.0, unit))
        return Axis(path, label, display_unit or "1", scale)
    scale, display_unit = measure.display
    return Axis(path, label, display_unit or "1", scale, bounds=measure.bounds, may_never=measure.may_never)


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


def in_other_unit(measure: Axis, top: float) -> Axis | None:
    """The measure in such a unit; None if its own is as good."""
    found = other_unit(measure.unit, top)
    return None if found is None else replace(measure, unit=found[0], scale=measure.scale * found[1])


def axis_of(name: str) -> Axis:
    """A measure by its name, by its place in summary.json, `flows.*.srtt_s.max`, or an expression: `share("prague")`.

    BakeoffError lists the names for any other word, and says what is wrong in an expression.
    """
    measure = CATALOGUE.get(name)
    if measure is not None and measure.at is not None:
        path = _OF_THE_BOTTLENECK.get(measure.name, _OF[measure.of] + measure.at)
        return _axis(path, measure.label, measure)
    if "(" in name or measure is not None:
        from bakeoff.claims.evaluate import number_of

        found = number_of(name)
        scale, unit = DISPLAY.get(found.unit or "1", (1.0, found.unit or "1"))
        path = name if "(" in name else f"{name}()"
        return Axis(path, name, unit or "1", scale, expression=True, bounds=found.limits)
    if "." not in name:
        raise PlotError(
            f"measure: unknown '{name}'; expected one of {', '.join(names())}, a path in summary.json such as "
            "flows.*.srtt_s.max, or a claim expression such as 'share(1)'"
        )
    return _axis(name, name, CATALOGUE.of_path(name))


def of_one_call(name: str) -> Axis:
    """As `axis_of`; an expression that is a single measure, `rise(1)`, has the label and the unit of that measure."""
    found = axis_of(name)
    measure = CATALOGUE.get(name.partition("(")[0])
    if not found.expression or measure is None or not _ONE_CALL.fullmatch(name):
        return found
    scale, unit = measure.display
    return replace(found, label=measure.label, scale=scale, unit=unit or "1", may_never=measure.may_never)


def values(summary: Summary | Mapping[str, object], measure: Axis) -> dict[str, float]:
    """The measure's values in a summary, or in its plain JSON, by what stands for the `*`; `""` where there is none.

    Not a number where it never came: the time until two rates meet that never do.
    """
    *way, last = measure.path.split(".")
    found: dict[str, float] = {}
    several: list[float] = []
    narrow = _part(_part(summary, "bottleneck"), "queue")

    def walk(tree: object, at: int, name: str) -> None:
        if at == len(way):
            number = _part(tree, last)
            if number is None and measure.may_never and tree is not None:
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
