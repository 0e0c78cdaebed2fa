"""A scenario: a YAML file whose matrix is known and whose points can be expanded into resolved runs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bakeoff.errors import BakeoffError
from bakeoff.scenario.language import Document
from bakeoff.scenario.matrix import Point, ScenarioError, did_you_mean, interpolate, label_of, points, substitute
from bakeoff.scenario.python_cc import placed
from bakeoff.scenario.resolve import resolve
from bakeoff.scenario.run import Run
from bakeoff.scenario.schedules import spread
from bakeoff.scenario.yaml_file import read_yaml

_MATRIX = ("vary", "exclude", "run", "profile")


@dataclass(frozen=True, slots=True)
class Scenario:
    """One experiment with its variations.

    `document` is the file's plain data, placeholders and all; `path` is where it came from, for messages.
    """

    path: str
    suite: str
    name: str
    document: Mapping[str, Any]
    points: list[Point]

    @property
    def title(self) -> str:
        """For lists: the title as written, with braces around what varies."""
        return str(self.document.get("title", ""))

    def run_name(self, point: Point) -> str:
        """The name of the run at `point`."""
        template = self.document.get("run") or "-".join(f"{{{axis}}}" for axis in point) or self.name
        with _at(self.path):
            return interpolate(str(template), point, "run", labels=True)

    def resolve(self, point: Point, seed: int) -> Run:
        """The resolved run at `point`; BakeoffError names the place of what is wrong."""
        with _at(self.path):
            data = {key: value for key, value in self.document.items() if key not in _MATRIX}
            title = interpolate(str(data.pop("title", "")), point, "title", labels=True)
            document = _validated(spread({**substitute(data, point), "title": title}))
            labels = {axis: label_of(point, axis) for axis in point}
            folder = Path(self.path).parent
            name = self.run_name(point)
            run = resolve(document, suite=self.suite, run=name, seed=seed, point=labels, folder=folder)
            return placed(run, folder).from_file(self.path)


class _at:  # noqa: N801 (reads as a word)
    """Turns what is wrong inside into a BakeoffError that starts with the path."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, ScenarioError):
            raise BakeoffError(f"{self.path}: {error}") from None
        if isinstance(error, ValidationError):
            raise BakeoffError(f"{self.path}: {explain(error)}") from None


def load(path: Path | str) -> Scenario:
    """Read the scenario file at `path` and check it with its first point; BakeoffError says what is wrong where."""
    path = Path(path)
    scenario = from_document(read_yaml(path), path=str(path), suite=suite_of(path), default_name=path.stem)
    scenario.resolve(scenario.points[0], seed=1)
    return scenario


def suite_of(path: Path) -> str:
    """The folder's name for a file of the catalog (`…/suites/SUITE/FILE.yaml`), else `local`."""
    parent = path.resolve().parent
    return parent.name if parent.parent.name == "suites" else "local"


def from_document(data: Mapping[str, Any], *, path: str, suite: str, default_name: str) -> Scenario:
    """A scenario from plain data; checks the matrix only."""
    with _at(path):
        document = {"scenario": default_name, **_with_profile(data)}
        known = list(Document.model_fields)
        for key in document:
            if key not in known:
                raise ScenarioError("", f"unknown key '{key}'{did_you_mean(key, known)}")
        return Scenario(
            path=path,
            suite=str(document.get("suite") or suite),
            name=str(document["scenario"]),
            document=document,
            points=points(document.get("vary"), document.get("exclude")),
        )


def expand(scenario: Scenario, *, seeds: int = 1) -> list[Run]:
    """All runs of the matrix, each with the seeds 1 to `seeds`: the same seeds for every variant.

    Raises BakeoffError for the first point that does not make a run, or if two points have one name.
    """
    if seeds < 1:
        raise BakeoffError(f"seeds: {seeds}; expected at least 1")
    named: dict[str, Point] = {}
    for point in scenario.points:
        name = scenario.run_name(point)
        if name in named:
            unlike = [axis for axis in point if label_of(point, axis) != label_of(named[name], axis)]
            raise BakeoffError(
                f"{scenario.path}: run: two points of the matrix are named '{name}'; "
                f"expected a template that holds {' or '.join(f'{{{axis}}}' for axis in unlike)}"
            )
        named[name] = point
    return [scenario.resolve(point, seed) for point in scenario.points for seed in range(1, seeds + 1)]


def _with_profile(data: Mapping[str, Any]) -> dict[str, Any]:
    name = data.get("profile")
    if name is None:
        return dict(data)
    from bakeoff.scenario import catalog

    folder = catalog.root() / "profiles"
    known = sorted(file.stem for file in folder.glob("*.yaml"))
    if name not in known:
        raise ScenarioError("profile", f"'{name}' is no profile{did_you_mean(str(name), known)}")
    return _merged(read_yaml(folder / f"{name}.yaml"), data)


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**under, **over}
    for key in under.keys() & over.keys():
        if isinstance(under[key], dict) and isinstance(over[key], dict):
            merged[key] = _merged(under[key], over[key])
    return merged


def _validated(data: dict[str, Any]) -> Document:
    return Document.model_validate(data)


def explain(error: ValidationError) -> str:
    """The first mistake of a validation, as `place: what; expected …`."""
    first = error.errors()[0]
    place = ""
    for step in first["loc"]:
        place += f"[{step}]" if isinstance(step, int) else f".{step}" if place else str(step)
    key = next((step for step in reversed(first["loc"]) if isinstance(step, str)), "")
    expected = first["msg"].replace("Input should be ", "expected ").replace("Value error, ", "")
    value = first["input"]
    match first["type"]:
        case "value_error":
            what = expected
        case "missing":
            what = "is missing"
        case "model_type" | "dict_type":
            what = f"{_short(value)}; expected a mapping"
        case "literal_error":
            words = re.findall(r"'([^']*)'", first["ctx"]["expected"])
            what = (
                f"{_short(value)}{did_you_mean(value, words)}"
                if isinstance(value, str)
                else f"{_short(value)}; {expected}"
            )
        case "string_pattern_mismatch":
            what = f"{_short(value)}; expected {_FORMS.get(key, 'a form as ' + first['ctx']['pattern'])}"
        case _:
            what = f"{_short(value)}; {expected}"
    more = error.error_count() - 1
    tail = f" (and {more} more mistake{'s' * (more > 1)})" if more else ""
    return f"{place}: {what}{tail}" if place else what + tail


_FORMS = {
    "name": "a name without spaces, slashes, '<' or '>'",
    "scenario": "a name without spaces, slashes, '<' or '>'",
    "suite": "a name without spaces, slashes, '<' or '>'",
    "ends": "'at end', '2s before end', '1s before last sample' or 'at 58s'",
    "interface": "an interface such as 'mid>srv'",
    "captures": "an interface such as 'mid>srv'",
    "id": "hexadecimal digits",
}


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
