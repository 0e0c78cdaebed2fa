"""The table of the claims that two engines decide differently is about the verdicts that are recorded."""

from __future__ import annotations

import csv
import importlib.util
import re
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent / "docs" / "validation" / "engines.py"


@pytest.fixture
def module():
    spec = importlib.util.spec_from_file_location("engines_page", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_has_every_claim_that_differs_and_no_other(module):
    verdicts, both = module.recorded()
    told = {
        name: [" / ".join(filter(None, verdicts[name][each])) for each in ("sim", "kernel")]
        for name in both
        if verdicts[name]["sim"] != verdicts[name]["kernel"]
    }
    with module.TABLE.open(encoding="utf-8", newline="") as file:
        rows = {row["claim"]: [row["sim"], row["kernel"]] for row in csv.DictReader(file)}
    assert rows == told


def test_the_page_counts_what_the_table_explains(module, tmp_path, monkeypatch):
    page = tmp_path / "findings.md"
    page.write_text("<!-- engines: docs/validation/engines.py writes this -->\nstale\n<!-- end -->\n")
    monkeypatch.setattr(module, "PAGE", page)
    monkeypatch.setattr(module, "TABLE", tmp_path / "engines.csv")
    module.write(
        [
            ["d/version", "holds", "does not hold", "does not hold", "cubic@5.4"],
            ["d/chance", "holds / holds", "differs by seed / holds", "holds / holds", ""],
            ["d/neither", "holds", "does not hold", "holds", ""],
        ],
        "7.3",
    )
    assert "stale" not in page.read_text()
    # One each: the version explains the first, chance the second, nothing the third.
    assert "the kernel's for 1 claims" in page.read_text()
    assert re.findall(r"^\| (d/\w+)", page.read_text(), re.MULTILINE) == ["d/neither"]
