"""The published run matrix, where it is at hand: a row for every run of the suites."""

import csv
import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MATRIX = Path(os.environ.get("BAKEOFF_SHARED", ROOT.parent / "shared")) / "reference" / "run_matrix.csv"


def rows(batch, suite="l4s-tests"):
    """Run name -> row, of a batch."""
    if not MATRIX.is_file():
        pytest.skip(f"the published run matrix is not here: {MATRIX}")
    with MATRIX.open(newline="") as stream:
        found = [row for row in csv.DictReader(stream) if (row["suite"], row["batch"]) == (suite, batch)]
    assert found, batch
    return {row["run_name"]: row for row in found}


def words_of(row, key):
    """`a, b` of `key=a,b` or `key="a,b"` in a row's test parameters; none if it is not there."""
    found = re.search(rf'\b{key}="?([^";]*)"?', row["test_parameters"])
    return found[1].strip().split(",") if found else []
