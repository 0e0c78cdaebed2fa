"""The museum of defects: published ones of congestion controls, and which cases catch them.

`catalog/defects/defects.yaml` has them, and says what is wrong with each and who says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic import ValidationError

from bakeoff.claims.claim import Word
from bakeoff.claims.verdict import HOLDS, NOT
from bakeoff.errors import EvaluationError
from bakeoff.evaluation.battery import Text
from bakeoff.scenario import catalog
from bakeoff.scenario.error import did_you_mean
from bakeoff.scenario.explain import explain
from bakeoff.scenario.network import Model
from bakeoff.scenario.yaml_file import read_yaml

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from bakeoff.evaluation.assess import Assessed


class Defect(Model):
    """One defect."""

    name: Word
    control: Text
    """The control that has it, as a flow's `cc`."""
    healthy: Text
    """The one without it."""
    wrong: Text
    """What it does."""
    source: Text
    clause: Text
    """Which clauses should catch it."""


class File(Model):
    """A file of them."""

    defects: list[Defect]


@dataclass(frozen=True)
class Found:
    """What an evaluation of a defect found."""

    defect: Defect
    by: list[Assessed]
    """Cases that hold for the healthy control and not for the other one; most distant from the baseline first."""
    holds: list[Assessed]
    """Cases that hold for the healthy control."""


def folder() -> Path:
    """Where the catalog's defects lie."""
    return catalog.root() / "defects"


def load(names: Sequence[str] = (), path: Path | None = None) -> list[Defect]:
    """These defects, or all, with absolute paths. BakeoffError for an unknown one, or an invalid file."""
    path = path or folder() / "defects.yaml"
    data = read_yaml(path)
    try:
        found = File.model_validate(data).defects
    except ValidationError as error:
        raise EvaluationError(f"{path}: {explain(error, data)}") from None
    known = [each.name for each in found]
    for name in names:
        if name not in known:
            raise EvaluationError(f"'{name}'{did_you_mean(name, known)}")
    for name in known:
        if known.count(name) > 1:
            raise EvaluationError(f"{path}: duplicate name '{name}'")
    return [
        each.model_copy(update={"control": placed(each.control, path), "healthy": placed(each.healthy, path)})
        for each in found
        if not names or each.name in names
    ]


def placed(cc: str, path: Path) -> str:
    """A control with the absolute path of its file."""
    return f"{path.parent}{cc[1:]}" if cc.startswith("./") else cc


def compare(defect: Defect, cases: Iterable[Assessed], healthy: Iterable[Assessed]) -> Found:
    """What of `cases`, those of the defect, tells it from the healthy control."""
    holds = [each for each in healthy if each.verdict.word == HOLDS]
    keys = {(each.case.name, each.other) for each in holds}
    by = [each for each in cases if each.verdict.word == NOT and (each.case.name, each.other) in keys]
    return Found(defect, sorted(by, key=lambda each: (not each.crashed, -each.distance)), holds)
