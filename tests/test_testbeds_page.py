"""docs/validation/testbeds.md is what its generator writes from the recorded numbers."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "docs" / "validation" / "testbeds.py"


@pytest.fixture
def module():
    spec = importlib.util.spec_from_file_location("testbeds_page", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def row(ours, theirs, run="r", **more):
    plain = {"suite": "l4s-pam2025", "scenario": "10ms", "run": run, "flow": "prague", "measure": "goodput"}
    return plain | {"ours": str(ours), "theirs": str(theirs), "noise": "0.1", "first": "", "axis_qdisc": "q"} | more


def test_the_page_is_written_from_the_recorded_numbers(module):
    assert module.PAGE.read_text(encoding="utf-8") == module.page(module.rows())


def test_every_number_is_the_references(module):
    from bakeoff import references

    known = {
        (line.suite, line.scenario, line.run, line.flow): line.value
        for suite in module.SUITES
        for line in references.named(suite)
        if line.measure == "goodput"
    }
    found = {module.key(row)[:4]: float(row["theirs"]) for row in module.rows() if row["measure"] == "goodput"}
    assert found == {key: pytest.approx(value, rel=1e-4) for key, value in known.items()}


def test_distances_of_a_group(module):
    # |ln| of 1, 2 and 4 times: 0, 0.693 and 1.386, whose 90th percentile is 0.693 + 0.8 * 0.693
    found = [row(1, 1), row(2, 1), row(1, 4, first="2")]
    # noise: 0.6745 and 1.6449 times sqrt(2) 0.1; first: ln 2
    assert module.cells(found) == ["3", "0.693/1.25", "0.693/0.69", "0.095/0.23", "–"]


def test_far_cells_are_listed_once_per_cause(module, monkeypatch):
    monkeypatch.setattr(module, "CAUSES", [("10ms/b*", "*", "a cause")])
    text = module.far([row(1.3e6, 1e6), row(2e6, 1e6, run="a"), row(4e6, 1e6, run="b"), row(3e6, 1e6, run="c")])
    # ln 1.3 = 0.26 is not beyond 0.3; of a and c, which are open, c is worse
    assert text.splitlines()[2:] == ["|10ms, q|1|`b`, prague|4.0|1.0|a cause|", "|10ms, q|2|`c`, prague|3.0|1.0|open|"]
