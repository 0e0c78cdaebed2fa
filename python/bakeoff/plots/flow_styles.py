"""Which flow has which colour and marker: one assignment for all pictures and pages of a campaign."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from bakeoff import files
from bakeoff.plots import colours
from bakeoff.results import layout

if TYPE_CHECKING:
    from pathlib import Path

    from bakeoff.results import Result
    from bakeoff.scenario.run import Run

Style = tuple[str, str]
"""A colour and a marker."""

UNKNOWN: Final = "unknown"
"""The congestion control of a flow in a recording."""
_CC: Final = re.compile(rb'"cc": ?"([^"\\]{1,200})"')
_MOST_RUNS: Final = 5000
_MOST_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class FlowStyles:
    """Colours and markers of the flows of some runs."""

    controls: Mapping[str, Style]
    unknown: Mapping[str, int] = field(default_factory=dict)
    """Flows whose control nobody knows, by name, with a number for each."""

    def of(self, run: Run, flow: str, control: str) -> Style:
        """Of a flow: what its scenario asks for by its name, else what its congestion control has."""
        asked = colours.asked_colours(run).get(flow)
        if control == UNKNOWN and flow in self.unknown:
            index = self.unknown[flow]
            colour, marker = colours.SERIES[1:][index % (len(colours.SERIES) - 1)], "os^DvP<>"[index % 8]
        else:
            colour, marker = self.controls.get(control) or colours.control_styles([control])[control]
        return asked or colour, marker

    def of_control(self, run: Run, control: str) -> Style:
        """Of a control in a run: as its flows have it if they all look alike, else the control's own look."""
        asked = {
            self.of(run, flow.name, control)
            for flow in run.flows
            if colours.control(flow.cc, flow.transport) == control
        }
        return (
            asked.pop() if len(asked) == 1 else self.controls.get(control) or colours.control_styles([control])[control]
        )


def flow_styles(results: Iterable[Result]) -> FlowStyles:
    """The assignment for these runs, which is that of their whole campaigns."""
    every = list(results)
    controls: set[str] = set()
    unknown: dict[str, int] = {}
    for result in every:
        for flow in result.run.flows:
            control = colours.control(flow.cc, flow.transport)
            controls.add(control)
            if control == UNKNOWN:
                unknown.setdefault(flow.name, len(unknown))
    if controls - set(colours.CONTROLS):
        # A class of the user's own has the next colour that is free among all of the campaign.
        for root in {root for result in every if (root := _campaign(result.path)) is not None}:
            controls |= _controls(root, sum(1 for _ in root.glob("*/*/*")))
    return FlowStyles(colours.control_styles(controls - {UNKNOWN}), unknown)


def _campaign(path: Path) -> Path | None:
    """The folder of the campaign that a run's folder `suite/scenario/run` lies in."""
    parents = path.resolve().parents
    return parents[2] if len(parents) > 2 and (parents[2] / layout.CAMPAIGN).is_file() else None


@lru_cache(maxsize=16)
def _controls(root: Path, _runs: int) -> frozenset[str]:
    """The congestion controls that the campaign's runs ask for, as long as it has so many runs."""
    found: set[str] = set()
    for number, path in enumerate(sorted(root.glob(f"*/*/*/{layout.RUN}"))):
        if number >= _MOST_RUNS:
            break
        try:
            text = files.read(path, _MOST_BYTES)
        except OSError:
            continue
        found |= {colours.control(word.decode(errors="replace")) for word in _CC.findall(text)}
    return frozenset(found)
