"""The steady state of a run, from what the scenario says of it."""

import math
import re

from bakeoff.scenario import units
from bakeoff.scenario.error import DocumentError
from bakeoff.scenario.language import Measure, SteadyState


def window(
    measure: Measure, duration_s: float, sample_interval_s: float, written_s: float | None = None
) -> tuple[float, float]:
    """The steady state [from, to] in seconds.

    In a run that is shorter than its scenario wrote (`written_s`), the time before the window stays, but is at most a
    third of the run; a window that would then have no length ends with the run.
    """
    steady = measure.steady_state
    if steady is None:
        return round(duration_s / 3, 9), duration_s
    start, end = _window(steady, duration_s, sample_interval_s)
    if written_s is not None and duration_s < written_s:
        before, _ = _window(steady, written_s, sample_interval_s)
        least = min(before, round(duration_s / 3, 9))
        start = max(start, least) if end <= duration_s else least
        end = min(end, duration_s) if end > start else duration_s
    if not 0 <= start < end <= duration_s:
        raise DocumentError(
            "measure.steady_state",
            f"the window from {start:g} s to {end:g} s is outside the run of {duration_s:g} s",
        )
    return start, end


def _window(steady: SteadyState, duration_s: float, sample_interval_s: float) -> tuple[float, float]:
    """As it is written, wherever it lies."""
    place = "measure.steady_state"
    match = re.fullmatch(r"at (?P<at>.+)|(?P<before>.+) before (?P<what>end|last sample)", steady.ends)
    if match is None:
        raise DocumentError(place, f"ends: '{steady.ends}'; expected 'at end', '2s before end' or 'at 58s'")
    try:
        if match["before"]:
            last = duration_s
            if match["what"] == "last sample":
                last = math.floor(duration_s / sample_interval_s + 1e-9) * sample_interval_s
            end = last - units.parse_time(match["before"])
        else:
            end = duration_s if match["at"] == "end" else units.parse_time(match["at"])
    except ValueError as error:
        raise DocumentError(f"{place}.ends", str(error)) from None
    end = round(end, 9)
    return round(end - steady.window, 9), end
