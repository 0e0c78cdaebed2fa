"""Committed pages with numbers are current: with their templates, their recorded answers and the recorded verdicts.

Nothing is run, and no results are needed. A study is rendered again from what the results answered when it was made.
"""

import csv
import re
from pathlib import Path

import pytest

from bakeoff.claims import claim as claims
from bakeoff.claims import expected
from bakeoff.claims.verdict import DIFFERS, NOT, worse
from bakeoff.render import recorded
from bakeoff.tables import claim_report

ROOT = Path(__file__).parents[1]
TEMPLATES = sorted((ROOT / "catalog/studies").glob("*.md"))
STUDIES = ROOT / "docs/studies"


@pytest.fixture(scope="module")
def known():
    """The recorded verdicts by claim and engine, the worse of direction and size."""
    return {key: worse([word for word in row if word]) for key, row in expected.load().items()}


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_a_study_is_what_its_template_and_its_answers_give(template):
    assert recorded.difference(template, STUDIES / template.name) is None


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.stem)
def test_the_verdicts_of_a_study_are_those_that_are_recorded(template, known):
    found = {
        one[1]: answer
        for question, answer in recorded.answers(STUDIES / template.name).items()
        if (one := re.fullmatch(r'claim\("([^"]+)", "verdict"\)', question))
    }
    assert found == {name: known[name, "sim"] for name in found}
    assert found


def test_every_study_has_its_template_and_every_picture_is_shown():
    assert [path.name for path in sorted(STUDIES.glob("*.md"))] == [path.name for path in TEMPLATES]
    assert {path.name for path in STUDIES.glob("*.json")} == {f"{path.stem}.answers.json" for path in TEMPLATES}
    shown = {
        (page.parent / link).resolve()
        for page in STUDIES.glob("*.md")
        for link in re.findall(r"\]\(([^)#]+\.(?:png|svg))\)", page.read_text(encoding="utf-8"))
    }
    there = {path.resolve() for path in STUDIES.rglob("*") if path.suffix in (".png", ".svg")}
    assert shown == there
    assert sum(path.stat().st_size for path in there) < 3_000_000


def test_the_table_of_verdicts_is_that_of_the_recorded_ones(known):
    recorded_words = [(name.partition("/")[0], word) for (name, engine), word in known.items() if engine == "sim"]
    assert claim_report.counts(recorded_words) in (ROOT / "docs/findings.md").read_text(encoding="utf-8")


def test_every_finding_has_the_recorded_verdicts():
    recorded_words = expected.load()
    with (ROOT / "docs/findings.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv.DictReader(file))
    for row in found:
        name = f"{row['document']}/{row['claim']}"
        assert (row["direction"], row["size"]) == recorded_words[name, "sim"], name
        assert (row["kernel_direction"], row["kernel_size"]) == recorded_words.get((name, "kernel"), ("", "")), name
    assert [(f"{row['document']}/{row['claim']}", row["statement"]) for row in found] == [
        (claim.name, claim.says) for claim in claims.load()
    ]


def test_the_page_of_findings_has_what_does_not_hold(known):
    text = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    sections = re.findall(r"^### (\S+)\n\n((?:- .*\n)+)", text, re.MULTILINE)
    told = {
        f"{document}/{name}"
        for document, entries in sections
        for name in re.findall(r"^- \*\*(\S+)\*\*", entries, re.M)
    }
    assert told == {name for (name, engine), word in known.items() if engine == "sim" and word in (NOT, DIFFERS)}
