"""Spells: the times during which a condition on a flow's traced state is true, from an ACK at which it becomes true to
the next at which it is not.

Values are those after each ACK and timeout, and hold until the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final

from bakeoff.errors import MeasureError
from bakeoff.measure.catalogue import SHARE, Unit, Value
from bakeoff.measure.measured_run import MeasuredRun, flow_of
from bakeoff.measure.registration import Edge, measure
from bakeoff.scenario.conditions import COMPARE, TIME, Term, parse

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bakeoff.measure.samples import Array, Window

    Indices = npt.NDArray[np.intp]
    Flags = npt.NDArray[np.bool_]

_CLOCK: Final = "cc.cwnd"
"""What is traced of every control after every ACK."""
OF_LENGTHS: Final = ("sum", "max", "min", "mean")


def check_when(arguments: Mapping[str, Value]) -> None:
    """MeasureError for a condition that cannot be read, or for a number of a spell without one."""
    for name in ("when", "by"):
        if arguments.get(name) is not None:
            _terms(str(arguments[name]), name)
    spell = arguments.get("spell")
    if spell is None:
        return
    if "when" not in arguments:
        raise MeasureError("spell: expected 'when' with it")
    if not isinstance(spell, int | float) or not float(spell).is_integer() or spell < 1:
        raise MeasureError(f"spell: {spell}; expected 1 for the first, 2, …")


def _terms(text: str, name: str) -> list[Term]:
    try:
        return parse(text, any_name=True)
    except ValueError as error:
        raise MeasureError(f"{name}: {error}") from None


def _kind(arguments: Mapping[str, Value]) -> tuple[Unit, tuple[float, float]]:
    check_when(arguments)
    stat = arguments.get("stat", "sum")
    if stat not in OF_LENGTHS:
        raise MeasureError(f"stat: '{stat}'; expected one of {', '.join(OF_LENGTHS)}")
    return "s", (0.0, inf)


def _count(arguments: Mapping[str, Value]) -> tuple[Unit, tuple[float, float]]:
    check_when(arguments)
    return "1", (0.0, inf)


def _share(arguments: Mapping[str, Value]) -> tuple[Unit, tuple[float, float]]:
    check_when(arguments)
    return "1", SHARE


@dataclass(frozen=True)
class Spells:
    """The spells of a condition in a window."""

    run: MeasuredRun
    flow: str
    when: str
    time: Array
    """Of each ACK or timeout in the window [s]."""
    first: int
    """How many there are before the window."""
    begins: Indices
    """Of each spell the index of its first ACK in `time`."""
    ends: Indices
    """Of each spell the index of the first ACK after it: the number of ACKs if the window ends in it."""
    until: float
    """The end of the window, or of the flow [s]."""

    @classmethod
    def of(cls, run: MeasuredRun, flow: str | int, when: str, window: Window) -> Spells:
        """The spells of a flow. BakeoffError if the run has no trace."""
        import numpy as np

        part = flow_of(run.document, flow)
        time = run.traced(_CLOCK).of("flow", part.name, _CLOCK)[0]
        inside = slice(int(time.searchsorted(window[0])), int(time.searchsorted(window[1], "right")))
        edges = np.diff(np.concatenate(([0], _holds(run, part.name, when, time)[inside].astype(np.int8), [0])))
        [begins], [ends] = np.nonzero(edges > 0), np.nonzero(edges < 0)
        until = min(window[1], part.stop_s)
        return cls(run, part.name, when, time[inside], inside.start, begins, ends, until)

    def lengths(self, spell: float | None = None, *, ended: bool = False) -> Array:
        """Seconds of each spell, or of number `spell`; perhaps only of those that `ended` in the window."""
        import numpy as np

        time = np.append(self.time, max(self.until, self.time[-1]) if len(self.time) else self.until)
        chosen = self.chosen(spell)
        if ended:
            chosen = chosen[self.ends[chosen] < len(self.time)]
        lengths: Array = time[self.ends[chosen]] - time[self.begins[chosen]]
        return lengths

    def values(self, variable: str, spell: float | None) -> tuple[Array, Array]:
        """The values of a variable in the spells, or in number `spell`, and how long each held [s].

        MeasureError if there is none.
        """
        import numpy as np

        chosen = self.chosen(spell)
        inside = np.zeros(len(self.time), dtype=bool)
        for begin, end in zip(self.begins[chosen], self.ends[chosen], strict=True):
            inside[begin:end] = True
        value = _at(self.run, self.flow, f"cc.{variable}", self.time)
        held = np.diff(np.append(self.time, max(self.until, self.time[-1]) if len(self.time) else self.until))
        inside &= ~np.isnan(value)
        if not inside.any():
            which = "" if spell is None else f" {spell:g}"
            raise MeasureError(f"'{self.flow}' has no '{variable}' in spell{which or 's'} of '{self.when}'")
        return value[inside], held[inside]

    def chosen(self, spell: float | None) -> Indices:
        """The numbers of all spells from 0 on, or of number `spell` from 1 on, if there is that."""
        import numpy as np

        every = np.arange(len(self.begins))
        return every if spell is None else every[int(spell) - 1 : int(spell)]


def _at(run: MeasuredRun, flow: str, metric: str, time: Array) -> Array:
    """The values of a metric at these times; NaN where it has none, as a bound that is not set."""
    import numpy as np

    if metric == TIME:
        return time
    try:
        known, value = run.traced(metric).of("flow", flow, metric)
    except MeasureError:
        return np.full(len(time), np.nan)
    last = known.searchsorted(time, "right") - 1
    found = np.where(last >= 0, value[np.maximum(last, 0)], np.nan)
    found[known[np.maximum(last, 0)] != time] = np.nan
    return found


def _compared(term: Term, value: Array) -> Flags:
    found: Flags = COMPARE[term.is_](value, term.value)
    return found


def _holds(run: MeasuredRun, flow: str, when: str, time: Array) -> Flags:
    import numpy as np

    holds = np.ones(len(time), dtype=bool)
    for term in _terms(when, "when"):
        value = _at(run, flow, term.variable, time)
        holds &= _compared(term, value) & ~np.isnan(value)
    return holds


@measure(
    "spells", "flow", "1", "spells of a state",
    "times that a [condition](scenario-language.md#stimuli) becomes true, over the whole run",
    kind_of=_count, tabled=False,
)  # fmt: skip
def _spells(run: MeasuredRun, flow: str | int, when: str, *, begin: Edge = None, end: Edge = None) -> float:
    return float(len(Spells.of(run, flow, when, run.whole(begin, end)).begins))


@measure(
    "spell_start", "flow", "s", "beginning of a state",
    "when it does first, or for time `spell`; infinite if never",
    kind_of=_kind, tabled=False, may_never=True,
)  # fmt: skip
def _spell_start(
    run: MeasuredRun, flow: str | int, when: str, *, spell: float = 1, begin: Edge = None, end: Edge = None
) -> float:
    found = Spells.of(run, flow, when, run.whole(begin, end))
    index = int(spell) - 1
    return float(found.time[found.begins[index]]) if index < len(found.begins) else inf


@measure(
    "time_in", "flow", "s", "time in a state",
    "how long it is true; `stat` of the ended spells: max, min, mean",
    kind_of=_kind, tabled=False,
)  # fmt: skip
def _time_in(
    run: MeasuredRun,
    flow: str | int,
    when: str,
    *,
    spell: float | None = None,
    stat: str = "sum",
    begin: Edge = None,
    end: Edge = None,
) -> float:
    found = Spells.of(run, flow, when, run.whole(begin, end)).lengths(spell, ended=stat != "sum")
    if stat == "sum":
        return float(found.sum())
    if not len(found):
        raise MeasureError(f"no spell of '{when}' ends")
    return float(found.max() if stat == "max" else found.min() if stat == "min" else found.mean())


@measure(
    "followed", "flow", "1", "states that follow",
    "share of the ended spells after which `by` is true",
    kind_of=_share, tabled=False, bounds=SHARE,
)  # fmt: skip
def _followed(
    run: MeasuredRun,
    flow: str | int,
    when: str,
    by: str,
    *,
    spell: float | None = None,
    begin: Edge = None,
    end: Edge = None,
) -> float:
    found = Spells.of(run, flow, when, run.whole(begin, end))
    ends = found.ends[found.chosen(spell)]
    after = ends[ends < len(found.time)]
    if not len(after):
        raise MeasureError(f"no spell of '{when}' ends")
    return float(_holds(run, found.flow, by, found.time)[after].mean())
