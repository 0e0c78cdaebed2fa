"""docs/gallery.md is what its template gives, and its pictures exist and are small."""

import re
from pathlib import Path

from bakeoff.plots.kinds import KINDS
from bakeoff.render import recorded
from bakeoff.scenario import catalog

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/gallery.md"
OF_THE_CATALOG = {"slow-start": "slow-start/paths/*"}
"""Folders of runs of the catalog, and the scenario."""
TEXT = PAGE.read_text(encoding="utf-8")


def test_the_page_is_what_its_template_and_its_answers_give():
    assert recorded.difference(ROOT / "examples/gallery/gallery.md", PAGE) is None


def test_every_picture_is_there():
    """A new kind need not be in the gallery, whose runs take minutes."""
    assert set(re.findall(r"^\*\*`(\w+)`\*\*", TEXT, re.MULTILINE)) <= {kind.name for kind in KINDS}
    files = {path.name: path.stat().st_size for path in (ROOT / "docs/gallery").iterdir()}
    shown = re.findall(r"\]\(gallery/(\S+\.png)\)", TEXT)
    assert sorted(files) == sorted(shown)
    assert sum(files.values()) < 3_000_000


def test_each_command_draws_the_picture_above_it():
    """The command's kind and file are the picture's, and its runs are those that the picture was made of."""
    entry = r"\*\*`(\w+)`\*\* .*\n\n!\[.*\]\(gallery/(\S+)\)\n\n```\n(bakeoff .*)\n```"
    answers = {
        Path(re.search(r"\((\S+)\)$", answer)[1]).name: question
        for question, answer in recorded.answers(PAGE).items()
        if question.startswith("plot(")
    }
    entries = re.findall(entry, TEXT)
    assert len(entries) == len(answers)
    for kind, file, command in entries:
        assert f" --kind {kind} " in command
        assert command.endswith(f" --out {file}")
        where = command.split()[2].removeprefix("results/gallery/")
        runs = OF_THE_CATALOG.get(where) or where.partition("/")[2] or f"local/{where}/*"
        assert answers[file].startswith(f'plot("{runs}", "{kind}", ')


def test_every_command_is_of_an_example_that_expands():
    used = set(re.findall(r"results/gallery/([\w-]+)", TEXT)) - {"NAME"}
    examples = {path.stem for path in (ROOT / "examples/gallery").glob("*.yaml")}
    assert used == examples.union(OF_THE_CATALOG)
    assert all(catalog.select(runs) for runs in OF_THE_CATALOG.values())
    for name in examples:
        assert catalog.select(str(ROOT / "examples/gallery" / f"{name}.yaml"))
