"""The pages hold together: links lead somewhere, the index is whole, generated tables have a generator."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "catalog/references/README.md"])


def anchors(page):
    """The ids that a page's headings get: lower case, words joined by hyphens."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_a_file_and_a_heading(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name) if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_index_names_every_page():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    named = {(ROOT / "docs" / link).resolve() for link in re.findall(r"\]\(([^)#]+)\)", index)}
    pages = {page.resolve() for page in (ROOT / "docs").rglob("*.md")} - {(ROOT / "docs/index.md").resolve()}
    assert pages <= named


def test_every_generated_table_has_its_generator():
    # The generator compares the names of results.md's blocks with its own functions.
    script = ROOT / "docs/validation/generate.py"
    subprocess.run([sys.executable, script, "--check"], check=True)


@pytest.mark.parametrize("name", ["catalog", "measures"])
def test_a_generated_page_is_what_its_generator_writes(name):
    """Written anew by `python docs/NAME.py`."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page()
