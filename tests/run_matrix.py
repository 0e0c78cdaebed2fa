"""The published run matrix: a row for every run of the published suites, `catalog/references/matrices/SUITE.csv`."""

import csv
import re
from pathlib import Path

IDLE_S = 5.0
"""How long flent waits before the load, and goes on after it: `length` is the load's."""

MATRICES = Path(__file__).parents[1] / "catalog/references/matrices"


def rows(batch, suite="l4s-tests"):
    """Run name -> row, of a batch. A column that the suite does not use is empty."""
    with (MATRICES / f"{suite}.csv").open(newline="", encoding="utf-8") as stream:
        found = [dict.fromkeys(("rtt2", "bandwidth1", "tunnel"), "") | row for row in csv.DictReader(stream)]
    batches = {row["run_name"]: row for row in found if row["batch"] == batch}
    assert batches, batch
    return batches


def words_of(row, key):
    """`a, b` of `key=a,b` or `key="a,b"` in a row's test parameters; none if it is not there."""
    found = re.search(rf'\b{key}="?([^";]*)"?', row["test_parameters"])
    return found[1].strip().split(",") if found else []
