"""The published run matrix, where it is at hand: a row for every run of the suites."""

import csv
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MATRIX = Path(os.environ.get("BAKEOFF_SHARED", ROOT.parent / "shared")) / "reference" / "run_matrix.csv"


def rows(batch):
    if not MATRIX.is_file():
        pytest.skip(f"the published run matrix is not here: {MATRIX}")
    with MATRIX.open(newline="") as stream:
        return {row["run_name"]: row for row in csv.DictReader(stream) if row["batch"] == batch}
