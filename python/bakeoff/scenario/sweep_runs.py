"""The runs of a sweep: one scenario of the catalog or of a file, at the points of `bakeoff.scenario.sweep_points`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bakeoff.errors import ScenarioError
from bakeoff.scenario import catalog
from bakeoff.scenario.effect import NAMES
from bakeoff.scenario.run import Run
from bakeoff.scenario.scenario import Scenario, from_document, runs_at, suite_of
from bakeoff.scenario.settings import Settings, axis_of
from bakeoff.scenario.sweep_points import Parameter, Point
from bakeoff.scenario.yaml_file import read_yaml

_NO_PARAMETERS: Final = ("exclude", "seeds", "run", "title", "scenario", "suite", "profile")
"""What names or repeats runs, and changes none."""


class SweepRuns:
    """A scenario whose runs are made at the points of a sweep; other axes of its matrix stay what they are."""

    def __init__(
        self,
        pattern: str,
        parameters: Sequence[Parameter],
        *,
        only: str | None = None,
        settings: Settings | None = None,
    ) -> None:
        """`pattern` names one scenario, or some of its runs, as for `catalog.select`.

        BakeoffError for one that names runs of several scenarios, and for a parameter that none can have.
        """
        base, chosen = catalog.one(pattern, only=only, settings=settings)
        self.scenario = base
        self._settings = dict(settings or {})
        self._data = read_yaml(Path(base.path))
        self._suite = suite_of(Path(base.path))
        axes = list(base.points[0])
        self._places = {each.key: _place(base, each.key, axes) for each in parameters}
        swept = {each.key for each in parameters} | {
            axis_name.removeprefix("vary.") for axis_name in self._places.values()
        }
        self._kept = {tuple(point[axis].label for axis in axes if axis not in swept) for point in chosen}
        self._unswept = [axis for axis in axes if axis not in swept]

    @property
    def runs_per_point(self) -> int:
        """Runs of one seed at each point of the sweep."""
        return len(self._kept)

    @property
    def seeds(self) -> int:
        """How often the scenario repeats each run if nobody says otherwise."""
        return self.scenario.seeds

    def runs(self, point: Point, seeds: range = range(1, 2)) -> list[Run]:
        """The runs at a point of the sweep, each with these seeds. BakeoffError if they make no run."""
        scenario, points = self._at(point)
        return [scenario.resolve(each, seed) for each in points for seed in seeds]

    def check(self, parameters: Sequence[Parameter], points: Sequence[Point]) -> None:
        """BakeoffError if the first point is not sound as a whole, or a parameter changes nothing in any run."""
        first = points[0]
        scenario, chosen = self._at(first)
        made = [_content(run) for run in runs_at(scenario, chosen, seeds=1)]
        for each in parameters:
            other = next((point[each.key] for point in points if point[each.key] != first[each.key]), None)
            if other is not None and made == [_content(run) for run in self.runs({**first, each.key: other})]:
                raise ScenarioError(
                    f"{scenario.path}: --over {each.key}: no effect: the runs with '{first[each.key]}' and '{other}' "
                    "differ only in name"
                )

    def _at(self, point: Point) -> tuple[Scenario, list[Mapping[str, Any]]]:
        """The scenario at a point of the sweep, with its own points that are meant."""
        settings = self._settings | {
            axis_name: [point[key]] if axis_name.startswith("vary.") else point[key]
            for key, axis_name in self._places.items()
        }
        path = self.scenario.path
        scenario = from_document(
            self._data, path=path, suite=self._suite, default_name=Path(path).stem, settings=settings
        )
        points = [each for each in scenario.points if tuple(each[axis].label for axis in self._unswept) in self._kept]
        return scenario, list(points)


def _place(scenario: Scenario, key: str, axes: Sequence[str]) -> str:
    """Where a parameter stands: an axis of the matrix by its name, all else as `--set` has it."""
    if key in axes:
        if key not in (scenario.document.get("vary") or {}):
            raise ScenarioError(
                f"{scenario.path}: --over {key}: the axis '{key}' is coupled to others; expected an independent axis, "
                "or a key of the scenario such as network.rtt"
            )
        return f"vary.{key}"
    first = re.split(r"[.\[]", key)[0]
    if first == "vary":
        raise ScenarioError(
            f"{scenario.path}: --over {key}: not an axis; "
            + (f"the axes are: {', '.join(axes)}" if axes else "the scenario has none")
        )
    axis = axis_of(scenario.document, key)
    if axis is not None:
        return f"vary.{axis}"
    if first in _NO_PARAMETERS:
        raise ScenarioError(f"{scenario.path}: --over {key}: no effect; expected for example network.rtt")
    return key


def _content(run: Run) -> str:
    return run.model_dump_json(exclude=NAMES)
