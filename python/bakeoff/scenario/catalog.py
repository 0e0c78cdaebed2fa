"""The catalog: published suites of experiments, as files."""

import os
import re
from collections.abc import Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from bakeoff import data
from bakeoff.errors import BakeoffError
from bakeoff.scenario.run import Run, run_key
from bakeoff.scenario.scenario import Scenario, expand, from_document, load, suite_of
from bakeoff.scenario.yaml_file import read_yaml


class Entry(NamedTuple):
    """One scenario of the catalog; `n_runs` is the number of points of its matrix."""

    suite: str
    scenario: str
    path: Path
    title: str
    n_runs: int


def root() -> Path:
    """The catalog's folder: BAKEOFF_CATALOG, else the one that comes with bakeoff."""
    named = os.environ.get("BAKEOFF_CATALOG")
    if named:
        if not (Path(named) / "suites").is_dir():
            raise BakeoffError(f"BAKEOFF_CATALOG: '{named}' holds no folder 'suites'; expected the folder of a catalog")
        return Path(named)
    return data.folder("catalog")


def scenarios() -> list[Entry]:
    """All scenarios in order of suite and name. Only their matrices are read, not what is in them."""
    return [
        Entry(scenario.suite, scenario.name, Path(scenario.path), scenario.title, len(scenario.points))
        for scenario in _all()
    ]


def select(patterns: str | Sequence[str], seeds: int = 1) -> list[Run]:
    """The runs that any of `patterns` names, each once, in the catalog's order.

    A pattern is a glob on `suite/scenario/run` or on its first parts (`l4s-tests/s6*` selects all its runs), or a plain
    word that such a name contains (`s6`, `rttfair`), or `re:REGEX`, searched in the same, or the path of a scenario
    file. A pattern that names nothing is a BakeoffError.
    """
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    if not patterns:
        raise BakeoffError("no pattern; expected for example 'l4s-tests/s6*'")
    if seeds < 1:
        raise BakeoffError(f"seeds: {seeds}; expected at least 1")
    shipped = _all()
    chosen: dict[str, Run] = {}
    for pattern in patterns:
        runs = _of_file(Path(pattern), seeds) if _is_file(pattern) else _matching(pattern, shipped, seeds)
        chosen |= {run.key: run for run in runs}
    return list(chosen.values())


def _all() -> list[Scenario]:
    return [_open(path) for path in sorted(root().glob("suites/*/*.yaml"), key=_natural)]


def _open(path: Path) -> Scenario:
    return from_document(read_yaml(path), path=str(path), suite=suite_of(path), default_name=path.stem)


def _natural(path: Path) -> list[tuple[int, str]]:
    """s2 before s10."""
    words = re.findall(r"[0-9]+|[^0-9]+", f"{path.parent.name}/{path.stem}")
    return [(int(word), "") if word.isdigit() else (-1, word) for word in words]


def _is_file(pattern: str) -> bool:
    return pattern.endswith((".yaml", ".yml")) or Path(pattern).is_file()


def _of_file(path: Path, seeds: int) -> list[Run]:
    return expand(load(path), seeds=seeds)


def _matching(pattern: str, scenarios: list[Scenario], seeds: int) -> list[Run]:
    if pattern.startswith("re:"):
        try:
            regex = re.compile(pattern.removeprefix("re:"))
        except re.error as error:
            raise BakeoffError(
                f"'{pattern}' is no regular expression: {error}; expected for example 're:s6.*pie'"
            ) from None
        matches = regex.search
    else:
        matches = None
    names = [(scenario, point, scenario.run_name(point)) for scenario in scenarios for point in scenario.points]
    runs = []
    for scenario, point, run in names:
        whole = f"{scenario.suite}/{scenario.name}/{run}"
        written = (whole, run_key(scenario.suite, scenario.name, run, seed=1))
        if matches is not None:
            hit = any(matches(name) for name in written)
        else:
            heads = (scenario.suite, f"{scenario.suite}/{scenario.name}", *written)
            hit = any(fnmatchcase(name, pattern.rstrip("/")) for name in heads) or (
                re.fullmatch(r"[\w.-]+", pattern) is not None and pattern in whole
            )
        if hit:
            runs += [scenario.resolve(point, seed) for seed in range(1, seeds + 1)]
    if not runs:
        raise BakeoffError(_no_match(pattern, scenarios, [f"{s.suite}/{s.name}/{run}" for s, _, run in names]))
    return runs


def _no_match(pattern: str, scenarios: list[Scenario], runs: list[str]) -> str:
    bare = pattern.removeprefix("re:").replace("*", "").rstrip("/")
    levels = [[s.suite for s in scenarios], [f"{s.suite}/{s.name}" for s in scenarios], runs]
    known = list(dict.fromkeys(levels[min(bare.count("/"), 2)]))
    near = get_close_matches(bare, known, n=2, cutoff=0.5) or [name for name in levels[1] if bare and bare in name]
    if near:
        return f"'{pattern}' names no run of the catalog; did you mean {' or '.join(map(repr, near[:2]))}?"
    return f"'{pattern}' names no run of the catalog; 'bakeoff list' shows what there is"
