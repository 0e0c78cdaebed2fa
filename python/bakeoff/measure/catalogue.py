"""The catalogue of measures: each is registered once, and every table, plot, function and page takes it from here.

`of_flows`, `of_queues`, `of_probes` and `of_runs` hold the entries. A name belongs to one number: `jain` is Jain's
index of goodputs everywhere, and `jain_delivery_rate` the index of delivery rates. An alias is an older name for the
same number.
"""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import inf
from typing import Final, Literal

from bakeoff.results.series_units import STATISTICS

Of = Literal["flow", "queue", "probe", "run"]
"""What a measure describes; `run` includes the flows that share one queue."""
Unit = Literal["bit/s", "s", "packet", "1/s", "1"]
"""Base units; `1` is a number without a unit, or a share."""

SUFFIXES: Final[Mapping[str, str]] = {"bit/s": "_bps", "s": "_s", "1/s": "_per_s", "packet": "", "1": ""}
"""The end of a column's name, by unit."""

DISPLAY: Final[Mapping[str, tuple[float, str]]] = {
    "bit/s": (1e-6, "Mbit/s"), "s": (1e3, "ms"), "packet": (1.0, "packets"), "1/s": (1.0, "1/s"), "1": (1.0, ""),
}  # fmt: skip
"""By base unit the factor and the unit of tables and axes."""

Kind = Literal["flow", "flows", "probe", "queue", "delayed", "word", "s", "1", "any"]
"""The type of an argument: one flow, a pattern of flows, a probe, a queue, a flow or probe, a word, a time, a number,
a quantity of any unit."""
Value = float | str | int | None

_KINDS: Final[dict[str, Kind]] = {
    "flow": "flow", "flows": "flows", "probe": "probe", "queue": "queue", "name": "delayed",
    "begin": "s", "end": "s", "smooth": "s", "hold": "s", "base": "s", "over": "s", "after": "s", "within": "s",
    "above": "s", "ratio": "1", "below": "1", "variable": "word", "stat": "word",
    "when": "word", "by": "word", "spell": "1", "stimulus": "word",
}  # fmt: skip
"""By the name of the function's parameter."""

_OBJECTS: Final = ("flows", "queues", "probes")
"""Of summary.json: by name."""
_OBJECT: Final = re.compile(r"^(flow|queue|probe)[0-9]+_")

SHARE: Final = (0.0, 1.0)
FROM_ONE: Final = (1.0, inf)
FROM_ZERO: Final = (0.0, inf)
ANY_SIGN: Final = (-inf, inf)


@dataclass(frozen=True)
class Parameter:
    """An argument of a measure."""

    name: str
    kind: Kind
    required: bool
    default: Value
    positional: bool


@dataclass(frozen=True)
class Measure:
    """One measure: its name, unit and texts, and how it is read from a run."""

    name: str
    of: Of
    unit: Unit
    label: str
    """For axes and headings, without the unit."""
    formula: str
    """In words; the function that computes it has the exact formula."""
    take: Callable[..., float]
    """Called with the run and the arguments by name. MeasureError if the run lacks what it needs."""
    source: str = ""
    """RFC, paper or file that defines it; empty where the formula is bakeoff's own."""
    needs: tuple[str, ...] = ()
    """Metrics of series.parquet that `take` may read."""
    at: str | None = None
    """Path in the object's record of summary.json (`steady_state.goodput_bps`); None if only `take` computes it."""
    stem: str = ""
    """Of its column where that is not the name: `rtt_p99` of a probe's `ping_p99`."""
    bounds: tuple[float, float] = FROM_ZERO
    """The least and the greatest possible value, in the base unit."""
    percent: bool = False
    """Whether it is shown in per cent."""
    decimals: int | None = None
    """In cells of tables; None: by the unit."""
    tabled: bool = True
    """Whether tables have a column for it without being asked."""
    seconds: bool = False
    """Whether people read it in seconds and not in milliseconds."""
    may_never: bool = False
    """Whether it is a time until an event that may not happen."""
    aliases: tuple[str, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    """Of parameters whose kind their name does not say."""
    kind_of: Callable[[Mapping[str, Value]], tuple[Unit, tuple[float, float]]] | None = None
    """Unit and bounds of a call, where they depend on its arguments. MeasureError for arguments that do not fit."""

    @property
    def column(self) -> str:
        """The column of tables: `goodput_bps`."""
        return (self.stem or self.name) + SUFFIXES[self.unit]

    @property
    def display(self) -> tuple[float, str]:
        """What a value is multiplied with for people, and the unit that it then has; no unit is empty."""
        if self.percent:
            return 100.0, "%"
        return (1.0, "s") if self.seconds else DISPLAY[self.unit]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """In order, without the run."""
        empty = inspect.Parameter.empty
        return tuple(
            Parameter(
                each.name,
                self.kinds.get(each.name) or _KINDS[each.name],
                required=each.default is empty,
                default=None if each.default is empty else each.default,
                positional=each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD,
            )
            for each in list(inspect.signature(self.take).parameters.values())[1:]
        )

    @cached_property
    def of_variable(self) -> bool:
        """Whether a call names variables of the flow's congestion control, so that the measure is several numbers."""
        return any(each.name in ("variable", "when") for each in self.parameters)

    @property
    def signature(self) -> str:
        """As it is called: `goodput(flow, begin=, end=)`."""
        words = []
        for each in self.parameters:
            default = "" if each.default is None else f"{each.default:g}" if each.kind in ("s", "1") else each.default
            optional = f"{each.name}={default}{each.kind if each.kind == 's' and default else ''}"
            words.append(each.name if each.required else f"[{each.name}]" if each.positional else optional)
        return f"{self.name}({', '.join(words)})"

    def read(self, record: object) -> float | None:
        """Its value in the object's record of summary.json; None if the run has none."""
        if self.at is None:
            return None
        found = record
        for part in self.at.split("."):
            found = found.get(part) if isinstance(found, Mapping) else getattr(found, part, None)
            if found is None:
                return None
        return float(found) if isinstance(found, int | float) else None


class Catalogue:
    """All measures, by name, alias and column."""

    def __init__(self) -> None:
        self._by_name: dict[str, Measure] = {}
        self._aliases: dict[str, str] = {}
        self._by_column: dict[tuple[str | None, str], Measure] = {}
        self._by_path: dict[str, Measure] = {}

    def add(self, measure: Measure) -> None:
        """ValueError for a name or an alias that another measure has."""
        for name in (measure.name, *measure.aliases):
            if name in self._by_name or name in self._aliases:
                raise ValueError(f"measure '{name}' is already registered")
        self._by_name[measure.name] = measure
        self._aliases |= dict.fromkeys(measure.aliases, measure.name)
        if not measure.of_variable:
            for column in (measure.column, f"{measure.name}{SUFFIXES[measure.unit]}"):
                self._by_column.setdefault((measure.of, column), measure)
                self._by_column.setdefault((None, column), measure)
        if measure.at is not None:
            self._by_path.setdefault(measure.at, measure)

    @property
    def names(self) -> Mapping[str, Measure]:
        """By name, in order of registration, without aliases."""
        return self._by_name

    def __contains__(self, name: str) -> bool:
        return name in self._by_name or name in self._aliases

    def __getitem__(self, name: str) -> Measure:
        """By name or alias; an alias warns. KeyError for any other name."""
        if name in self._aliases:
            warnings.warn(f"measure '{name}' was renamed to '{self._aliases[name]}'", FutureWarning, stacklevel=3)
        return self._by_name[self._aliases.get(name, name)]

    def get(self, name: str) -> Measure | None:
        """By name or alias; None for any other name."""
        try:
            return self[name]
        except KeyError:
            return None

    def of_column(self, column: str) -> Measure | None:
        """The measure of a table's column, `flow1_goodput_bps`; None for a column that is no measure.

        In a table of queues, say, `delay_mean_s` has no object in front. A flow, a queue and a probe may each have a
        column of that name, with one unit and one range.
        """
        named = _OBJECT.match(column)
        if named is None:
            return self._by_column.get((None, column))
        of, rest = named[1], column[named.end() :]
        # `queue1_jain` is of the flows that share the queue.
        return self._by_column.get((of, rest)) or self._by_column.get(("run", rest))

    def of_path(self, path: str) -> Measure | None:
        """The measure at a place of summary.json, `flows.*.srtt_s.mean`; None for any other place.

        A statistic that is no measure of its own, such as `min`, has the unit and the bounds of the mean.
        """
        parts = path.split(".")
        # The name of a flow may hold dots.
        tails = [".".join(parts[first:]) for first in range(2 if parts[0] in _OBJECTS else 0, len(parts))]
        if parts[-1] in STATISTICS:
            tails += [f"{tail.rpartition('.')[0]}.mean" for tail in tails]
        return next((self._by_path[tail] for tail in tails if tail in self._by_path), None)

    def of(self, of: Of) -> list[Measure]:
        """The measures of one kind of object that summary.json holds, in order of registration."""
        return [each for each in self._by_name.values() if each.of == of and each.at is not None]
