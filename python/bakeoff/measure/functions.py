"""The catalogue with all its entries, and what a call of one may name.

The entries are in the modules `of_*` and in `spells`, the formulas in the other modules of `bakeoff.measure`. An entry
with `at` is read from summary.json; where a claim asks for another window, its function takes it from the samples by
the same formula.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from bakeoff.measure import (  # noqa: F401 (they add their entries)
    of_control,
    of_flows,
    of_probes,
    of_queues,
    of_runs,
    of_stimuli,
    spells,
)
from bakeoff.measure.measured_run import delayed_of, flow_of, flows_of, pair_of, probe_of
from bakeoff.measure.registration import CATALOGUE
from bakeoff.scenario.conditions import TIME, parse

if TYPE_CHECKING:
    from bakeoff.measure.catalogue import Kind, Measure
    from bakeoff.scenario.run import Run

__all__ = ["CATALOGUE", "check_names"]


def check_names(measure: Measure, arguments: dict[str, Any], run: Run) -> None:
    """MeasureError if an argument names a flow or a probe that the run does not have, before anything is run."""
    looks: dict[Kind, Callable[[Any], object]] = {
        "flow": partial(flow_of, run),
        "flows": partial(flows_of, run),
        "delayed": partial(delayed_of, run),
    }
    for parameter in measure.parameters:
        value = arguments.get(parameter.name, parameter.default)
        if parameter.kind in looks and value is not None:
            looks[parameter.kind](value)
        elif parameter.kind == "probe":
            probe_of(run, value)
        elif parameter.name == "stimulus":
            of_stimuli.check_stimulus(run, str(value))
    if measure.of_variable:
        names = [arguments["variable"]] if "variable" in arguments else []
        for condition in filter(None, (arguments.get("when"), arguments.get("by"))):
            terms = parse(condition, any_name=True)
            names += [term.variable.removeprefix("cc.") for term in terms if term.variable != TIME]
        for name in names:
            of_control.check_variable(run, arguments["flow"], name)
    if measure.name in ("convergence", "meet"):
        pair_of(run)
