"""Two scenarios: fake/s1-first with the runs a, b and c, fake/s2-second with one that does each thing of fake_sim."""

import tempfile
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from bakeoff.errors import BakeoffError
from bakeoff.scenario import Run, make

FIRST = {name: {} for name in ("a", "b", "c")}
SECOND = {name: {"does": name} for name in ("violates", "refused", "interrupts")}


class Entry(NamedTuple):
    suite: str
    scenario: str
    path: Path
    title: str
    n_runs: int


def scenarios() -> list[Entry]:
    path = Path(tempfile.gettempdir()) / "s1-first.yaml"
    return [
        Entry("fake", "s1-first", path, "The first", len(FIRST)),
        Entry("fake", "s2-second", path.with_name("s2-second.yaml"), "The second", len(SECOND)),
    ]


def examples() -> dict[Entry, list[tuple[Run, int]]]:
    return {entry: [(run, 1) for run in select(f"fake/{entry.scenario}")] for entry in scenarios()}


def select(patterns, seeds=None, *, only=None, settings=None, yes=False) -> list[Run]:
    runs = []
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        for scenario, names in (("s1-first", FIRST), ("s2-second", SECOND)):
            for name, point in names.items():
                heads = ("fake", f"fake/{scenario}", f"fake/{scenario}/{name}")
                if any(fnmatchcase(head, pattern) for head in heads) and (only is None or fnmatchcase(name, only)):
                    file = str(Path(tempfile.gettempdir()) / f"{scenario}.yaml")
                    made = [make(name, seed, scenario, **point) for seed in range(1, (seeds or 1) + 1)]
                    runs += [run.from_file(file) for run in made]
    if not runs:
        raise BakeoffError(f"'{patterns}' names no run of the catalog")
    return list({run.to_json(): run for run in runs}.values())
