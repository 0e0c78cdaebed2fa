"""Committed pages with numbers are current: with their templates, their recorded answers and the recorded verdicts.

Nothing is run, and no results are needed. A study is rendered again from what the results answered when it was made.
"""

import csv
import json
import re
from pathlib import Path

import pytest

from bakeoff.claims import claim as claims
from bakeoff.claims import expected, today
from bakeoff.claims.required_runs import required_runs
from bakeoff.claims.verdict import NOT, UNDECIDED, counted, worse
from bakeoff.render import recorded
from bakeoff.scenario import catalog
from bakeoff.tables import findings

ROOT = Path(__file__).parents[1]
TEMPLATES = sorted((ROOT / "catalog/studies").glob("*.md"))
STUDIES = ROOT / "docs/studies"
VERDICT = ROOT / "catalog/verdict/verdict.md"
PAGES = {template: STUDIES / template.name for template in TEMPLATES} | {VERDICT: ROOT / "docs/verdict.md"}


@pytest.fixture(scope="module")
def known():
    """The recorded verdicts by claim and engine, the worse of direction and size."""
    return {key: worse([word for word in row if word]) for key, row in expected.load().items()}


@pytest.mark.parametrize("template", PAGES, ids=lambda path: path.stem)
def test_a_page_is_what_its_template_and_its_answers_give(template):
    assert recorded.difference(template, PAGES[template]) is None


def test_the_runs_of_the_verdict_are_those_that_it_asks_for():
    """`make verdict` does no other runs and misses none; the recorded kernel verdicts are today's."""
    chosen = {run.name for run in catalog.select((VERDICT.parent / "runs.txt").read_text().split("\n")[:-1])}
    answers = recorded.answers(PAGES[VERDICT])
    asked = "\n".join(question for question in answers if question.startswith(("measure(", "dots(")))
    assert {name for name in chosen if json.dumps(name) not in asked} == set()
    suites = "|".join(sorted({name.partition("/")[0] for name in chosen}))
    assert set(re.findall(rf'"((?:{suites})/[^"]+)"', asked)) == chosen
    for question, answer in answers.items():
        if one := re.fullmatch(r'claim\("([^"]+)", "kernel"\)', question):
            assert answer == worse([word for word in expected.load()[one[1], "kernel"] if word]), question


def test_every_picture_of_the_verdict_is_shown():
    page = PAGES[VERDICT]
    shown = {page.parent / link for link in re.findall(r"\]\(([^)#]+\.svg)\)", page.read_text(encoding="utf-8"))}
    assert shown == set((page.parent / "verdict").iterdir())
    assert sum(path.stat().st_size for path in shown) < 300_000


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


def recorded_under(label, row, verdicts):
    """Of a claim that names no version today's verdict is its verdict; nothing until some label is recorded at all."""
    if label not in {label for _, label in verdicts}:
        return None
    return verdicts.get((f"{row['document']}/{row['claim']}", label if row["versions"] else label.partition("-")[0]))


@pytest.fixture(scope="module")
def rows():
    with (ROOT / "docs/findings.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_the_table_of_verdicts_is_that_of_the_recorded_ones(known, rows):
    of = {claim.name: claim for claim in claims.load()}
    triples = [
        (row["document"], counted(known[name, "sim"], of[name]), recorded_under("sim-today", row, known))
        for row in rows
        for name in [f"{row['document']}/{row['claim']}"]
    ]
    assert findings.counts(triples) in (ROOT / "docs/findings.md").read_text(encoding="utf-8")


def test_every_finding_names_the_versions_of_its_claim(rows):
    every = [claim for claim in claims.load() if claim.statement]
    wanted = required_runs(every, 1)
    named = {claim.name: " ".join(today.named(wanted[claim.statement])) for claim in every}
    assert {f"{row['document']}/{row['claim']}": row["versions"] for row in rows if row["versions"]} == {
        name: versions for name, versions in named.items() if versions
    }


def test_every_finding_has_the_recorded_verdicts(rows):
    recorded_words = expected.load()
    for row in rows:
        name = f"{row['document']}/{row['claim']}"
        assert (row["direction"], row["size"]) == recorded_words[name, "sim"], name
        for label in ("kernel", "sim-today", "kernel-today"):
            told = tuple(row.get(f"{label.replace('-', '_')}_{part}", "") for part in ("direction", "size"))
            assert told == (recorded_under(label, row, recorded_words) or ("", "")), (name, label)
    assert [(f"{row['document']}/{row['claim']}", row["statement"]) for row in rows] == [
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
    assert told == {name for (name, engine), word in known.items() if engine == "sim" and word in (NOT, UNDECIDED)}
