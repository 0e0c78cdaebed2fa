"""A campaign's numbers as a reference: `python -m bakeoff.references.record RESULTS --source TEXT > NAME.csv`."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TextIO

from bakeoff.measure import summary_of
from bakeoff.measure.functions import CATALOGUE
from bakeoff.measure.summarise import bottleneck_queues
from bakeoff.references import COUNTS, measured
from bakeoff.results import survey

if TYPE_CHECKING:
    from bakeoff.results import Result

COLUMNS = ("suite", "scenario", "run", "flow", "measure", "value", "unit", "source", "seed")
_MEASURES = ("goodput", "srtt_mean", "srtt_p99")
_DIGITS = 6


def record(results: Iterable[Result], source: str) -> Iterator[dict[str, Any]]:
    """The lines of a reference: goodput and srtt of every flow, marks and drops of every run; six digits.

    A flow that got nothing has no goodput: a reference holds rates above zero.
    """
    for result in results:
        if not result.ok:
            continue
        run, summary = result.run, summary_of(result)
        of = {"suite": run.suite, "scenario": run.scenario, "run": run.run}
        found = [
            (flow.name, measure, measured([summary], flow.name, measure)) for flow in run.flows for measure in _MEASURES
        ]
        queues = bottleneck_queues(summary)
        found += [("", count, float(sum(getattr(queue, count) for queue in queues))) for count in COUNTS]
        for flow, measure, value in found:
            if value or (value is not None and measure in COUNTS):
                unit = CATALOGUE[measure].unit
                number = {"flow": flow, "measure": measure, "value": f"{value:.{_DIGITS}g}", "unit": unit}
                yield {**of, **number, "source": source, "seed": run.seed}


def write(results: Iterable[Result], source: str, stream: TextIO) -> None:
    """The same as CSV."""
    writer = csv.DictWriter(stream, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(record(results, source))


def main() -> None:
    """Print a campaign's numbers."""
    parser = argparse.ArgumentParser(prog="python -m bakeoff.references.record", description=__doc__)
    parser.add_argument("results", help="a campaign's folder")
    parser.add_argument("--source", required=True, help="who measured this, with what")
    given = parser.parse_args()
    write(survey(given.results).results, given.source, sys.stdout)


if __name__ == "__main__":
    main()
