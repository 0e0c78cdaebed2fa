"""docs/gallery.md is what its generator writes, has every kind of picture, and its pictures exist and are small."""

import importlib
import re
from pathlib import Path

import pytest

from bakeoff.present.kinds import KINDS
from bakeoff.scenario import catalog

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def gallery():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("draw_gallery")


def test_the_page_is_what_the_generator_writes(gallery):
    assert (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8") == gallery.page()


def test_every_kind_is_drawn_and_every_picture_is_there(gallery):
    drawn = [one for several in gallery.SECTIONS.values() for one in several]
    assert {gallery.kind_of(one) for one in drawn} == {kind.name for kind in KINDS}
    files = {path.name: path.stat().st_size for path in (ROOT / "docs" / "images" / "gallery").iterdir()}
    assert set(files) == {f"{one.file}.png" for one in drawn}
    assert sum(files.values()) < 3_000_000


def test_every_command_is_of_an_example_that_expands(gallery):
    text = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    used = set(re.findall(r"results/gallery/([\w-]+)", text)) - {"NAME"}
    assert used == set(gallery.RUNS) == {path.stem for path in (ROOT / "examples" / "gallery").glob("*.yaml")}
    counts = {name: len(catalog.select(str(ROOT / "examples" / "gallery" / f"{name}.yaml"))) for name in used}
    # three qdiscs, two pairs, two rates and five round-trip times are 60
    assert counts == {"flows": 4, "home-uplink": 2, "home-tree": 1, "parking-lot": 1, "rate-step": 4, "web": 2,
                      "fairness": 60}  # fmt: skip
