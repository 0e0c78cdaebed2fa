"""A hundred files of a copy of the real catalog, each changed at one place: read, or refused with what is wrong.

Scenarios, profiles and claims are changed by turns, and the changed file is used by the command that a user would
give. What it refuses ends with 2 and one message that names the file and the form that was expected.
"""

import copy
import random
import re
import shutil
from pathlib import Path

import pytest
import yaml

CATALOG = Path(__file__).resolve().parents[2] / "catalog"
CASES = 100
ODD = [
    None, True, -1, 0, 1e308, float("nan"), 10**400, "", " ", "..", "no such thing", "x" * 3000, "-1ms", "5 knots", [],
    {}, [None], {"a": {}}, "{nothing}", "goodput(", "\x1b[2J", "é",
]  # fmt: skip
FORM = re.compile(r"; expected |; did you mean '|is not an? (whole number|integer)")


def places(data, at=()):
    """Where something stands in plain data, from the top."""
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield (*at, key)
        yield from places(value, (*at, key))


def changed(data, chance):
    """The data with one place that has another value, another key, or is gone; and that place."""
    data = copy.deepcopy(data)
    # A file with fewer claims, or with another name of one, is a good file. Deep places are many and shallow ones
    # matter more: the depth is drawn first.
    spots = [spot for spot in places(data) if spot[-1] not in ("claims", "id") and spot[:-1] != ("claims",)]
    depth = chance.choice(sorted({len(spot) for spot in spots}))
    *above, last = chance.choice([spot for spot in spots if len(spot) == depth])
    part = data
    for key in above:
        part = part[key]
    how = chance.choice(["value", "value", "drop", "key"])
    if how == "drop":
        del part[last]
    elif how == "key" and isinstance(part, dict):
        part[f"{last}x"] = part.pop(last)
    else:
        part[last] = chance.choice(ODD)
    return data, (*above, last)


@pytest.fixture(scope="module")
def catalog(tmp_path_factory):
    """A copy of the catalog, whole or with one suite: `show` would read the scenarios of the others for nothing."""
    copies = {}

    def copy_of(suite: str | None) -> Path:
        def others(folder: str, names: list[str]) -> list[str]:
            return [name for name in names if suite not in (None, name)] if Path(folder) == CATALOG / "suites" else []

        if suite not in copies:
            copies[suite] = shutil.copytree(CATALOG, tmp_path_factory.mktemp("mutated") / "catalog", ignore=others)
        return copies[suite]

    return copy_of


def files(kind):
    """The catalog's files of a kind, `claims`, `profiles` or `suites`, below its top."""
    found = sorted(path.relative_to(CATALOG) for path in (CATALOG / kind).rglob("*.yaml"))
    assert found
    return found


def words(kind, name, data, at):
    """The command that reads the file: for one of its claims, or for a scenario that the file is part of."""
    if kind == "claims":
        claim = data["claims"][at[1] if at[0] == "claims" else 0]
        return "verify", f"{name.stem}/{claim['id']}", "--dry-run"
    if kind == "suites":
        return "show", f"{name.parent.name}/{name.stem}"
    using = [path for path in files("suites") if f"profile: {name.stem}\n" in (CATALOG / path).read_text()]
    return "show", f"{using[0].parent.name}/{using[0].stem}"


@pytest.mark.parametrize("case", range(CASES))
def test_a_mutated_file_is_read_or_refused_with_its_place_and_the_expected_form(catalog, cli, monkeypatch, case):
    chance = random.Random(case)
    kind = ("suites", "claims", "profiles")[case % 3]
    name = chance.choice(files(kind))
    data = yaml.load((CATALOG / name).read_text(), yaml.CSafeLoader)
    mutated, at = changed(data, chance)
    command, what, *more = words(kind, name, data, at)
    here = catalog(what.partition("/")[0] if command == "show" else None)
    monkeypatch.setenv("BAKEOFF_CATALOG", str(here))
    try:
        (here / name).write_text(yaml.dump(mutated, Dumper=yaml.CSafeDumper, allow_unicode=True, sort_keys=False))
        code, _, err = cli(command, what, *more)
    finally:
        shutil.copyfile(CATALOG / name, here / name)
    print(f"{name} at {at}: {code}, {err[:300]}")
    assert code in (0, 2)
    if code == 2:
        assert err.count("bakeoff: ") == 1
        # What the simulator refuses, and the language does not, is told with the run.
        assert str(here / name) in err or re.search(r"yaml: \S+/\S+/\S+: nodes\[", err)
        assert FORM.search(err)
    assert "Traceback" not in err
