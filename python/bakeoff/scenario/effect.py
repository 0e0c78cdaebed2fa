"""Whether the matrix does what it says: every axis changes something in the runs, and no two runs are the same."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from bakeoff.scenario.error import DocumentError
from bakeoff.scenario.matrix import PLACEHOLDER, Point, label_of
from bakeoff.scenario.run import Run

_FOR_PEOPLE: Final = ("run", "title")
"""What names a run without changing it; the axes' values here are labels."""
_NOT_OF_A_RUN: Final = ("vary", "exclude", "source", "suite", "scenario", "profile", "seeds")
NAMES: Final = {"suite", "scenario", "run", "title", "seed", "point", "present"}
"""Fields of a resolved run that no engine and no measure looks at."""


def check_axes(document: Mapping[str, Any]) -> None:
    """DocumentError for an axis that nothing uses: its labels would tell runs apart that are the same.

    Of linked axes (a list of mappings) one has to be used; the others may stand in names only.
    """
    vary = document.get("vary")
    if not isinstance(vary, dict):
        return
    own = {key: value for key, value in document.items() if key not in (*_FOR_PEOPLE, *_NOT_OF_A_RUN)}
    used = _reached(own, vary)
    named = used | _reached({key: document.get(key) for key in _FOR_PEOPLE}, vary)
    for name, axis in vary.items():
        members = _members(name, axis)
        for member in members:
            if member in used or (member in named and not used.isdisjoint(members)):
                continue
            place = f"vary.{name}" + (f".{member}" if member != name else "")
            raise DocumentError(place, f"no effect: unused placeholder '{{{member}}}'{_perhaps(own, member)}")


def check_alike(points: Sequence[Point], runs: Sequence[Run]) -> None:
    """DocumentError for two of `runs`, made at `points` with one seed, that differ in nothing but their names."""
    made: dict[str, list[int]] = {}
    for index, run in enumerate(runs):
        made.setdefault(run.model_dump_json(exclude=NAMES), []).append(index)
    for alike in made.values():
        if len(alike) == 1:
            continue
        first, second = alike[:2]
        unlike = [axis for axis in points[first] if label_of(points[first], axis) != label_of(points[second], axis)]
        names = f"'{runs[first].run}' and '{runs[second].run}'"
        axes = " and ".join(f"'{axis}'" for axis in unlike) + (" changes" if len(unlike) == 1 else " change")
        if len(unlike) == 1 and _changes_nothing(unlike[0], points, made.values()):
            raise DocumentError(f"vary.{unlike[0]}", f"no effect: the runs {names} differ only in name")
        raise DocumentError(
            "vary",
            f"the runs {names} differ only in name: {axes} nothing in them; expected different runs, or 'exclude'",
        )


def _changes_nothing(axis: str, points: Sequence[Point], made: Iterable[list[int]]) -> bool:
    """Whether all points that differ in `axis` alone make the same run."""
    kinds: dict[tuple[str, ...], set[int]] = {}
    for kind, alike in enumerate(made):
        for index in alike:
            others = tuple(label_of(points[index], each) for each in points[index] if each != axis)
            kinds.setdefault(others, set()).add(kind)
    return all(len(kind) == 1 for kind in kinds.values())


def _members(name: str, axis: object) -> list[str]:
    """The axes that one entry of `vary` makes: itself, or those that it links."""
    linked = isinstance(axis, list) and axis and isinstance(axis[0], dict)
    return [str(key) for key in axis[0]] if linked and isinstance(axis, list) else [name]


def _reached(data: object, vary: Mapping[str, Any]) -> set[str]:
    """The axes that placeholders in `data` name, and those that these need in turn."""
    values: dict[str, list[object]] = {}
    for name, axis in vary.items():
        for member in _members(name, axis):
            rows = axis if isinstance(axis, list) else [axis]
            values[member] = [row.get(member) if member != name else row for row in rows]
    reached: set[str] = set()
    todo = list(_placeholders(data))
    while todo:
        axis = todo.pop()
        if axis not in reached:
            reached.add(axis)
            todo += _placeholders(values.get(axis, []))
    return reached


def _placeholders(data: object) -> Iterator[str]:
    """The axes in the texts of `data`, each part looked at once."""
    seen: set[int] = set()
    todo = [data]
    while todo:
        part = todo.pop()
        if isinstance(part, str):
            yield from (name.partition(".")[0] for name in PLACEHOLDER.findall(part) if name)
        elif isinstance(part, (dict, list)) and id(part) not in seen:
            seen.add(id(part))
            todo += [*part.keys(), *part.values()] if isinstance(part, dict) else part


def _perhaps(data: object, axis: str) -> str:
    """`; expected …` if a key of the axis's name holds a constant."""
    found = _constant(data, axis)
    if found is None:
        return f'; expected "{{{axis}}}" somewhere in the scenario, as in \'rtt: "{{rtt}}"\''
    place, value = found
    return f"; '{place}' is {json.dumps(value)}; expected \"{{{axis}}}\" there"


def _constant(data: object, axis: str, place: str = "") -> tuple[str, object] | None:
    inside = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in inside:
        here = f"{place}[{key}]" if isinstance(key, int) else f"{place}.{key}" if place else str(key)
        if key == axis and not isinstance(value, (dict, list)):
            return here, value
        found = _constant(value, axis, here)
        if found is not None:
            return found
    return None
