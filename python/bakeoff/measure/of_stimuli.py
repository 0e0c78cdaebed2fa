"""The measures of stimuli (`when` of a scenario): whether they came, and what they did."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from bakeoff.errors import MeasureError
from bakeoff.measure.registration import measure
from bakeoff.scenario.error import did_you_mean

if TYPE_CHECKING:
    from bakeoff.measure.measured_run import MeasuredRun
    from bakeoff.results.counters import Stimulus
    from bakeoff.scenario.run import Run


def check_stimulus(run: Run, name: str) -> None:
    """MeasureError if the run has no stimulus of this name."""
    known = [each.name for each in run.when]
    if name not in known:
        near = did_you_mean(name, known) if known else "; the scenario has no 'when'"
        raise MeasureError(f"no stimulus '{name}'{near}")


def _of(run: MeasuredRun, name: str) -> Stimulus:
    check_stimulus(run.document, name)
    found = run.counters.stimuli.get(name)
    if found is None:
        raise MeasureError(f"the stimulus '{name}' was not recorded")
    return found


@measure(
    "fired", "run", "1", "times that a stimulus came",
    "times that a [stimulus](scenario-language.md#stimuli) came",
    tabled=False,
)  # fmt: skip
def _fired(run: MeasuredRun, stimulus: str) -> float:
    return float(len(_of(run, stimulus).fired_s))


@measure(
    "fired_at", "run", "s", "time of a stimulus",
    "when it came first; infinite if never",
    tabled=False, may_never=True, seconds=True,
)  # fmt: skip
def _fired_at(run: MeasuredRun, stimulus: str) -> float:
    return next(iter(_of(run, stimulus).fired_s), inf)


@measure(
    "stimulated", "run", "packet", "packets of a stimulus",
    "packets that it dropped, marked, delayed or held",
    tabled=False,
)  # fmt: skip
def _stimulated(run: MeasuredRun, stimulus: str) -> float:
    return float(_of(run, stimulus).packets)
