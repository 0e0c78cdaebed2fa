"""What a run recorded of a sender near a time: its socket's samples and its congestion control's internals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bakeoff.errors import BakeoffError
from bakeoff.results import layout
from bakeoff.results.read import Result


@dataclass(frozen=True)
class Sample:
    """The last value at or before a time."""

    time_s: float
    """Of the run."""
    value: float


def of_flows(folder: Path, times_s: Sequence[float | None]) -> list[Mapping[str, Sample]]:
    """The state of each connection of a run, given the time since its first packet; by metric, in SI units.

    Connections are the run's TCP flows in order of their starts. Empty mappings where the folder is no run, has other
    numbers of flows and connections, or a time is None. What `--trace cc` recorded comes after each ACK, and takes the
    place of the socket's samples of the same name.
    """
    nothing: list[Mapping[str, Sample]] = [{} for _ in times_s]
    if not (folder / layout.RUN).exists():
        return nothing
    try:
        result = Result.read(folder)
        flows = sorted((flow for flow in result.run.flows if flow.transport == "tcp"), key=lambda flow: flow.start_s)
        if len(flows) != len(times_s):
            return nothing
        every = dict(result.parts)
        if (folder / layout.TRACE).exists():
            every |= {(kind, name, metric): rows for (kind, name, metric), rows in result.trace_parts().items()}
    except BakeoffError:
        return nothing
    found = list(nothing)
    for at, (flow, time_s) in enumerate(zip(flows, times_s, strict=True)):
        if time_s is None:
            continue
        state = {}
        for (_, name, metric), (sampled_s, values) in every.items():
            row = int(np.searchsorted(sampled_s, flow.start_s + time_s, side="right")) - 1
            if name == flow.name and row >= 0:
                state[metric] = Sample(float(sampled_s[row]), float(values[row]))
        found[at] = state
    return found
