"""The tutorials' commands print what the pages show."""

import importlib.util
import sys
from pathlib import Path

import pytest

from bakeoff.engines.kernel import registry
from bakeoff.engines.lab import agent
from bakeoff.errors import BakeoffError

DOCS = Path(__file__).parents[1] / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))


def runner():
    spec = importlib.util.spec_from_file_location("run_tutorials", DOCS / "run_tutorials.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def kernel_is_here():
    try:
        agent.find()
    except BakeoffError:
        return False
    return bool(registry.list_kernels())


def commands(page, *, kernel):
    """What the page has after `$` in its console blocks, read line by line; without what needs a kernel if asked."""
    found, inside, above = [], False, ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = line == "```console" and (kernel or above != "<!-- needs a kernel -->")
        elif inside and line.startswith("$ "):
            found.append(line.removeprefix("$ "))
        above = line
    return found


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_prints_what_it_shows(page, tmp_path):
    done = list(runner().steps(page, tmp_path, kernel=kernel_is_here()))
    assert [step.command for step in done] == commands(page, kernel=kernel_is_here())
    assert len(commands(page, kernel=True)) >= 4
    for step in done:
        assert step.as_shown, f"$ {step.command}\nprints:\n{step.printed}\nand the page shows:\n{step.shown}"
    if "<!-- needs a kernel -->" in page.read_text(encoding="utf-8") and not kernel_is_here():
        pytest.skip("its first commands are right; the others need a virtual-time kernel and the agent")


def test_what_a_page_shows_is_compared_line_by_line(tmp_path):
    page = tmp_path / "page.md"
    page.write_text('```text title="three"\n1\n2\n3\n```\n\n```console\n$ cat three\n1\n…\n3\n$ echo 12 s\n1… s\n```\n')
    as_shown = [step.as_shown for step in runner().steps(page, tmp_path, kernel=False)]
    assert as_shown == [True, True]
    page.write_text(page.read_text().replace("…\n3", "…\n4"))
    [first, _] = runner().steps(page, tmp_path, kernel=False)
    assert not first.as_shown
    assert first.anew == "1\n2\n3\n"
