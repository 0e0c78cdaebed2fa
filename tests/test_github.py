"""What GitHub reads: the workflows and the citation name what is there."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

from test_command_lines import own_files, parsed

assert own_files  # the commands' own files, for every test here

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
WORKFLOWS = {path.stem: path for path in sorted(GITHUB.glob("workflows/*.yml"))}
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")


def steps(workflow):
    """All steps of all jobs."""
    return [step for job in yaml.safe_load(WORKFLOWS[workflow].read_text())["jobs"].values() for step in job["steps"]]


def lines(workflow):
    """The lines of shell of a workflow."""
    return [line.strip() for step in steps(workflow) for line in step.get("run", "").splitlines()]


def inputs():
    # YAML takes `on` for a boolean.
    return yaml.safe_load(WORKFLOWS["kernel-regression"].read_text())[True]["workflow_call"]["inputs"]


def test_the_wheels_are_targets_of_make():
    targets = yaml.safe_load(WORKFLOWS["wheels"].read_text())["jobs"]["build"]["strategy"]["matrix"]["target"]
    assert 'make "$TARGET"' in lines("wheels")
    for target in targets:
        assert re.search(rf"^{target}:.*##", MAKEFILE, re.MULTILINE), target


# What a step puts into the variables of its shell.
FILLED = {'"${runs[@]}"': "linux/single", '"$SEEDS"': "3", '"${bounds[@]/#/--bound=}"': "--bound=goodput=0.05"}


@pytest.mark.parametrize("workflow", WORKFLOWS)
def test_the_commands_of_a_workflow_are_ones_of_bakeoff(workflow):
    script = "\n".join(lines(workflow))
    for variable, value in FILLED.items():
        script = script.replace(variable, value)
    for command in re.findall(r"^bakeoff ([^|>\n]*?)(?: \d?>|$)", script, re.MULTILINE):
        names, _ = parsed(shlex.split(command))
        assert names


def test_nothing_that_a_stranger_writes_becomes_shell():
    # `${{ }}` within a script is pasted into it, before the shell reads it.
    for workflow in WORKFLOWS:
        assert not [line for line in lines(workflow) if "${{" in line]


def test_every_input_of_the_regression_test_is_used_and_described():
    text, page = WORKFLOWS["kernel-regression"].read_text(), (ROOT / "docs/compare.md").read_text()
    for name, told in inputs().items():
        assert f"inputs.{name} }}}}" in text, name
        [row] = re.findall(rf"^\| `{name}` \|.*\| (.*)\|$", page, re.MULTILINE)
        if told.get("default"):
            assert row.strip() == f"`{told['default']}`"


def test_the_example_of_the_page_gives_inputs_that_are_there():
    [example] = re.findall(r"```yaml title=.*?\n(.*?)```", (ROOT / "docs/compare.md").read_text(), re.DOTALL)
    [job] = yaml.safe_load(example)["jobs"].values()
    needed = {name for name, told in inputs().items() if told.get("required")}
    assert needed <= set(job["with"]) <= set(inputs())
    assert (ROOT / job["uses"].split("/", 2)[2].split("@")[0]).is_file()


def test_the_bounds_of_the_regression_test_are_those_of_compare():
    from bakeoff.claims.comparison import BOUNDS

    assert inputs()["bounds"]["default"] == " ".join(f"{measure}={bound:g}" for measure, bound in BOUNDS.items())


def test_the_citation_has_the_version_and_the_licence_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    crates = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert citation["version"] == project["version"] == crates["version"]
    assert " OR ".join(citation["license"]) == crates["license"]
    # The wheel holds uPlot besides, which is under MIT alone.
    assert project["license"] == f"({crates['license']}) AND MIT"
    assert project["description"][2:] in citation["title"]
