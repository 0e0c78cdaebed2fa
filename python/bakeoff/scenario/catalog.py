"""The catalog: published suites of experiments, as files."""

import re
from collections.abc import Collection, Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from bakeoff import files
from bakeoff.errors import BakeoffError, ScenarioError
from bakeoff.scenario import bounds
from bakeoff.scenario.error import did_you_mean
from bakeoff.scenario.matrix import Point
from bakeoff.scenario.run import Run, run_key
from bakeoff.scenario.scenario import Scenario, load, open_file, runs_at
from bakeoff.scenario.settings import Settings, axis_of, of_axes
from bakeoff.scenario.shipped import root

__all__ = ["Entry", "named", "names", "one", "root", "scenarios", "select"]


class Entry(NamedTuple):
    """One scenario of the catalog; `n_runs` is the number of points of its matrix."""

    suite: str
    scenario: str
    path: Path
    title: str
    n_runs: int


def scenarios() -> list[Entry]:
    """All scenarios in order of suite and name. Only their matrices are read, not what is in them."""
    return [_entry(scenario) for scenario in _shipped()]


def _entry(scenario: Scenario) -> Entry:
    return Entry(scenario.suite, scenario.name, Path(scenario.path), scenario.title, len(scenario.points))


def examples() -> dict[Entry, list[tuple[Run, int]]]:
    """Some runs of each scenario, with the number of its runs that each stands for, repetitions among them.

    A run stands for those that are as long as itself and execute the same files. To make all runs of the catalog would
    take seconds. BakeoffError for one that cannot be made.
    """
    found = {}
    for scenario in _shipped():
        several = scenario.points if _differ(scenario) else scenario.points[:1]
        each = scenario.seeds * len(scenario.points) // len(several)
        found[_entry(scenario)] = [(scenario.resolve(point, seed=1), each) for point in several]
    return found


def _differ(scenario: Scenario) -> bool:
    """Whether the runs of a scenario may differ in length, or in the files that they execute."""
    lengths = f"{scenario.document.get('duration')} {scenario.document.get('idle')}"
    return "{" in lengths or ".py" in str(scenario.document)


def select(
    patterns: str | Sequence[str],
    seeds: int | None = None,
    *,
    seed: int = 1,
    only: str | None = None,
    settings: Settings | None = None,
    yes: bool = False,
) -> list[Run]:
    """The runs that any of `patterns` names, each once, in the catalog's order.

    A pattern is a glob on `suite/scenario/run` or on its first parts (`l4s-tests/s6*` selects all its runs), or whole
    words that such a name begins with (`l4s-tests/s6`), or a plain word that it contains (`rttfair`), or `re:REGEX`,
    searched in the same, or the path of a scenario file, of which `FILE::PATTERN` selects single runs. `only` is a
    pattern that every run has to have besides; here a glob may also be one on the run's own name. A pattern that names
    nothing is a BakeoffError.

    `settings` are values that replace those of the scenarios, by their place (`flows.0.cc`); what they change is no
    longer the suite's, and its runs are named `local/SCENARIO/RUN`.

    `seeds` repetitions of each run, with seeds from `seed` on; without it as many as the scenario says, or one. Unless
    `yes`, more than 100,000 runs are a BakeoffError, before they are made.
    """
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    if not patterns:
        raise ScenarioError("missing pattern; expected for example 'l4s-tests/s6*'")
    of_catalog = [pattern for pattern in patterns if not _is_file(pattern)]
    shipped = _shipped(of_catalog) if of_catalog else []
    found: dict[int, tuple[Scenario, dict[int, Point]]] = {}
    for pattern in patterns:
        chosen = _of_file(pattern, settings, yes) if _is_file(pattern) else _of_catalog(pattern, shipped, settings)
        for scenario, points in chosen:
            kept = _only(only, scenario, points)
            found.setdefault(id(scenario), (scenario, {}))[1].update({id(point): point for point in kept})
    runs: dict[str, Run] = {}
    for scenario, at in found.values():
        for run in runs_at(scenario, list(at.values()), seed=seed, seeds=seeds, yes=yes):
            if runs.setdefault(run.key, run) != run:
                raise ScenarioError(f"duplicate name '{run.key}' of two runs; expected a selection with one of them")
        too_many = bounds.too_many_runs(len(runs))
        if too_many is not None and not yes:
            raise ScenarioError(too_many)
    if not runs:
        raise _none_of(only, " or ".join(map(repr, patterns)), [scenario for scenario, _ in found.values()])
    return list(runs.values())


def one(pattern: str, *, only: str | None = None, settings: Settings | None = None) -> tuple[Scenario, list[Point]]:
    """The scenario that a pattern names, as for `select`, and which of its points.

    BakeoffError if it names runs of several scenarios, or none.
    """
    chosen = list(
        _of_file(pattern, settings, yes=False)
        if _is_file(pattern)
        else _of_catalog(pattern, _shipped([pattern]), settings)
    )
    found = [(scenario, kept) for scenario, points in chosen if (kept := _only(only, scenario, points))]
    if not found:
        raise _none_of(only, f"'{pattern}'", [scenario for scenario, _ in chosen])
    if len(found) > 1:
        several = [f"{scenario.suite}/{scenario.name}" for scenario, _ in found]
        raise ScenarioError(
            f"'{pattern}' matches runs of {len(found)} scenarios; expected one of: {', '.join(several)}"
        )
    return found[0]


def names() -> list[str]:
    """suite/scenario/run of every run of the catalog, in its order. Only the matrices are read."""
    return _whole_names(_shipped())


def named(wanted: Collection[str], seeds: int, *, settings: Settings | None = None) -> dict[str, list[Run]]:
    """The repetitions of each run of the catalog, by its whole name as `names` has it; other names are left out.

    There are `seeds` of each, or more where the scenario says so. `settings` as for `select`: the runs are then other
    ones, but their keys here are the catalog's. BakeoffError for a setting that does not fit.
    """
    found: dict[str, list[Run]] = {}
    for scenario in _shipped():
        head = f"{scenario.suite}/{scenario.name}"
        points = [
            point for point, run in zip(scenario.points, scenario.run_names, strict=True) if f"{head}/{run}" in wanted
        ]
        if not points:
            continue
        chosen = scenario
        if settings:
            chosen, points = _changed(scenario, points, settings)
        each = max(seeds, chosen.seeds)
        runs = runs_at(chosen, points, seeds=each)
        for at, point in enumerate(points):
            name = f"{head}/{chosen.run_name(point)}"
            if name in wanted:
                found[name] = runs[at * each : (at + 1) * each]
    return found


def _whole_names(scenarios: list[Scenario]) -> list[str]:
    return [f"{each.suite}/{each.name}/{run}" for each in scenarios for run in each.run_names]


_State = tuple[Path, int, int]
"""A file, when it was changed, and its size."""


def _shipped(patterns: Sequence[str] | None = None) -> list[Scenario]:
    """The scenarios of the catalog; with `patterns` at least those that have runs which one of these names."""
    found = [_state(path) for path in sorted(root().glob("suites/*/*.yaml"), key=_natural)]
    profiles = tuple(_state(path) for path in sorted(root().glob("profiles/*.yaml")))
    if patterns is not None and not any(map(_tells_its_suite, profiles)):
        found = [file for file in found if any(_may_name(pattern, file) for pattern in patterns)]
    return [_opened(file, profiles) for file in found]


def _state(path: Path) -> _State:
    found = path.stat()
    return path, found.st_mtime_ns, found.st_size


# Most of the time that a selection takes goes into reading the files. The profiles are part of what stands in them.
@lru_cache(maxsize=512)
def _opened(file: _State, _profiles: tuple[_State, ...]) -> Scenario:
    return open_file(file[0])


def _may_name(pattern: str, file: _State) -> bool:
    """Whether a pattern may name runs of this file: not if it begins with the name of another suite."""
    suite, slash, _ = pattern.partition("/")
    if not slash or re.fullmatch(r"[\w.-]+", suite) is None:
        return True
    return file[0].parent.name == suite or _tells_its_suite(file)


@lru_cache(maxsize=512)
def _tells_its_suite(file: _State) -> bool:
    """Whether a file may have another suite than the name of its folder."""
    try:
        return re.search(rb"""\bsuite["']?\s*:""", files.read(file[0], files.MOST_TEXT)) is not None
    except OSError:
        return True  # who opens it says what is wrong


def _natural(path: Path) -> list[tuple[int, str]]:
    """s2 before s10."""
    parts = re.findall(r"[0-9]+|[^0-9]+", f"{path.parent.name}/{path.stem}")
    return [(int(word), "") if word.isdigit() else (-1, word) for word in parts]


def _is_file(pattern: str) -> bool:
    path = pattern.partition("::")[0]
    return not pattern.startswith("re:") and (path.endswith((".yaml", ".yml")) or Path(path).is_file())


def _of_file(pattern: str, settings: Settings | None, yes: bool) -> Iterator[tuple[Scenario, list[Point]]]:
    path, _, run = pattern.partition("::")
    scenario = load(path, settings=settings, yes=yes)
    if not run:
        yield scenario, scenario.points
        return
    runs_at(scenario, scenario.points, seeds=1, yes=yes)  # the whole has to be sound, also what is not chosen
    points = _only(run, scenario, scenario.points)
    if not points:
        names = scenario.run_names
        raise ScenarioError(f"{path}: '{run}' matches none of its {len(names)} runs{did_you_mean(run, names[:8])}")
    yield scenario, points


def _of_catalog(
    pattern: str, scenarios: list[Scenario], settings: Settings | None
) -> Iterator[tuple[Scenario, list[Point]]]:
    none = True
    for scenario in scenarios:
        points = [
            point
            for point, run in zip(scenario.points, scenario.run_names, strict=True)
            if _named(pattern, scenario, run)
        ]
        if points:
            none = False
            yield _changed(scenario, points, settings) if settings else (scenario, points)
    if none:
        everything = _shipped()
        raise ScenarioError(_no_match(pattern, everything, _whole_names(everything)))


def _changed(scenario: Scenario, points: list[Point], settings: Settings) -> tuple[Scenario, list[Point]]:
    """A scenario of the catalog with settings, and of its points those of the same names, or all if all were chosen."""
    settings = of_axes(scenario.document, settings)
    changed = open_file(Path(scenario.path), settings=settings)
    runs_at(changed, changed.points, seeds=1)  # the whole has to be sound, also what is not chosen
    if len(points) == len(scenario.points):
        return changed, changed.points
    names = {scenario.run_name(point) for point in points}
    kept = [point for point in changed.points if changed.run_name(point) in names]
    replaced = {axis for key in settings if (axis := axis_of(scenario.document, key)) is not None}
    if not kept and replaced:
        # The points that were chosen on all other axes.
        axes = [axis for axis in points[0] if axis not in replaced]
        at = {tuple(point[axis].label for axis in axes) for point in points}
        kept = [point for point in changed.points if tuple(point[axis].label for axis in axes) in at]
    if not kept:
        raise ScenarioError(
            f"{scenario.path}: --set renames the selected runs; expected a selection of the whole scenario, "
            f"'{scenario.suite}/{scenario.name}'"
        )
    return changed, kept


def _only(pattern: str | None, scenario: Scenario, points: list[Point]) -> list[Point]:
    """Those of `points` that `pattern` names, also by a glob on the name of the run alone; all without a pattern."""
    if pattern is None:
        return points
    return [point for point in points if _named(pattern, scenario, scenario.run_name(point), own_name=True)]


def _none_of(only: str | None, patterns: str, scenarios: list[Scenario]) -> BakeoffError:
    """What is wrong with a `-k` that names no run: what the runs are named."""
    runs = [name for scenario in scenarios for name in scenario.run_names]
    word = (only or "").removeprefix("re:").strip("*")
    near = get_close_matches(word, runs, n=2, cutoff=0.3) or runs[:2]
    whole = any(word and word in f"{each.suite}/{each.name}/{run}" for each in scenarios for run in each.run_names)
    hint = f"; a glob has to fit a whole name, as '*{word}*' does" if whole else ""
    return ScenarioError(
        f"-k: '{only}' matches none of the runs of {patterns}, such as {' and '.join(map(repr, near))}{hint}"
    )


def _named(pattern: str, scenario: Scenario, run: str, *, own_name: bool = False) -> bool:
    """Whether `pattern` names the run of this name; with `own_name` also by a glob on that name alone."""
    whole = f"{scenario.suite}/{scenario.name}/{run}"
    written = (whole, run_key(scenario.suite, scenario.name, run, seed=1))
    if pattern.startswith("re:"):
        regex = _regex(pattern)
        return any(regex.search(name) for name in written)
    heads = (scenario.suite, f"{scenario.suite}/{scenario.name}", *written, *([run] if own_name else []))
    if any(fnmatchcase(name, pattern.rstrip("/")) for name in heads):
        return True
    if "/" in pattern:
        # `l4s-tests/s6` is s6-rfc3168, and `l4s-tests/s1` not s10.
        return re.match(rf"{re.escape(pattern)}(?![A-Za-z0-9])", whole) is not None
    return re.fullmatch(r"[\w.-]+", pattern) is not None and pattern in whole


@cache
def _regex(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern.removeprefix("re:"))
    except re.error as error:
        raise ScenarioError(
            f"'{pattern}': invalid regular expression: {error}; expected for example 're:s6.*pie'"
        ) from None


def _no_match(pattern: str, scenarios: list[Scenario], runs: list[str]) -> str:
    bare = pattern.removeprefix("re:").replace("*", "").rstrip("/")
    levels = [[s.suite for s in scenarios], [f"{s.suite}/{s.name}" for s in scenarios], runs]
    known = list(dict.fromkeys(levels[min(bare.count("/"), 2)]))
    near = get_close_matches(bare, known, n=2, cutoff=0.5) or [name for name in levels[1] if bare and bare in name]
    if near:
        return f"'{pattern}': no such run in the catalog; did you mean {' or '.join(map(repr, near[:2]))}?"
    return f"'{pattern}': no such run in the catalog; see 'bakeoff list'"
