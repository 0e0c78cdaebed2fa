"""The measure of a congestion control's own state, from `--trace cc`."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from bakeoff.errors import MeasureError
from bakeoff.measure.catalogue import ANY_SIGN, SHARE, Unit, Value
from bakeoff.measure.measured_run import MeasuredRun, flow_of
from bakeoff.measure.registration import Edge, measure
from bakeoff.measure.spells import Spells, check_when
from bakeoff.scenario.cc_variables import UNITS, variables

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array, Window
    from bakeoff.scenario.run import Run

STATS: Final = ("mean", "max", "min", "first", "last", "range", "share_above")
SAMPLED: Final = ("cwnd", "ssthresh", "srtt", "pacing_rate")
"""Those that series.parquet has too: where nothing is traced, they come from there."""


def check_variable(run: Run, flow: str | int, variable: str) -> None:
    """MeasureError if the flow's control has no such variable, as far as that is known."""
    part = flow_of(run, flow)
    if part.transport != "tcp":
        raise MeasureError(f"flow '{part.name}' has no congestion control; expected a flow of TCP")
    found = variables(part.cc)
    if found is not None and variable not in found:
        raise _unknown(variable, part.cc, found)


def _unknown(variable: str, cc: str, found: tuple[str, ...]) -> MeasureError:
    near = get_close_matches(variable, found, n=1)
    hint = f"; did you mean '{near[0]}'?" if near else ""
    return MeasureError(f"'{cc}' has no variable '{variable}'{hint}; expected one of {', '.join(found)}")


def kind_of(arguments: Mapping[str, Value]) -> tuple[Unit, tuple[float, float]]:
    """The unit and the bounds of a call. MeasureError for arguments that do not fit."""
    check_when(arguments)
    stat = arguments.get("stat", "mean")
    if stat not in STATS:
        raise MeasureError(f"stat: '{stat}'; expected one of {', '.join(STATS)}")
    if (stat == "share_above") != (arguments.get("above") is not None):
        raise MeasureError("expected 'above' with stat=\"share_above\", and only there")
    if stat == "share_above":
        return "1", SHARE
    return UNITS.get(str(arguments.get("variable")), "1"), ANY_SIGN


def is_traced_only(arguments: Mapping[str, Value]) -> bool:
    """Whether only a trace has what a call names."""
    return arguments.get("when") is not None or arguments.get("variable") not in SAMPLED


def over_window(time: Array, value: Array, window: Window, stat: str, above: float = 0.0) -> float:
    """A statistic of a value that holds from its sample to the next; its unit, or none of `share_above`.

    The value at the start of the window is that of the last sample before it. `mean` is sum(v dt) / sum(dt),
    `share_above` sum(dt where v > above) / sum(dt), `first` and `last` the values at the window's edges, `range` is
    max - min. MeasureError if no sample precedes the window's end.
    """
    import numpy as np

    first = max(int(time.searchsorted(window[0], "right")) - 1, 0)
    end = int(time.searchsorted(window[1]))
    times, values = time[first:end], value[first:end]
    if not len(times):
        raise MeasureError(f"no value between {window[0]:g} s and {window[1]:g} s")
    return statistic(values, np.diff(np.append(np.maximum(times, window[0]), window[1])), stat, above)


def statistic(values: Array, held: Array, stat: str, above: float) -> float:
    """A statistic of values each of which holds so many seconds; see `over_window`."""
    match stat:
        case "max" | "min":
            return float(values.max() if stat == "max" else values.min())
        case "first" | "last":
            return float(values[0 if stat == "first" else -1])
        case "range":
            return float(values.max() - values.min())
    weighted = values if stat == "mean" else values > above
    return float((weighted * held).sum() / held.sum()) if held.sum() > 0 else float(weighted.mean())


@measure(
    "cc", "flow", "1", "state of the congestion control",
    "`stat` of a [traced](results-folder.md#traceparquet) variable: mean (over time), max, min, first, last, range, "
    "share_above (of the time, with `above=`); with `when=` while this [condition](scenario-language.md#stimuli) is "
    "true in the whole run, or in its spell number `spell`",
    needs=SAMPLED, bounds=ANY_SIGN, kind_of=kind_of, kinds={"above": "any"},
)  # fmt: skip
def _cc(
    run: MeasuredRun,
    flow: str | int,
    variable: str,
    *,
    stat: str = "mean",
    above: float | None = None,
    when: str | None = None,
    spell: float | None = None,
    begin: Edge = None,
    end: Edge = None,
) -> float:
    part = flow_of(run.document, flow)
    check_variable(run.document, flow, variable)
    if when is not None:
        spells = Spells.of(run, flow, when, run.whole(begin, end))
        return statistic(*spells.values(variable, spell), stat, 0.0 if above is None else above)
    start, stop = run.window(begin, end)
    metric = f"cc.{variable}"
    if variable in SAMPLED and not run.has_trace:
        found = run.samples.of("flow", part.name, variable)
    else:
        found = run.traced(metric).of("flow", part.name, metric)
    return over_window(*found, (start, min(stop, part.stop_s)), stat, 0.0 if above is None else above)
