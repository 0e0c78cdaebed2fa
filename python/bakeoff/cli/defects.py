"""`python -m bakeoff.cli.defects`: evaluate the defects of catalog/defects, and print which cases catch them."""

from __future__ import annotations

import csv
import io
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bakeoff import files
from bakeoff.errors import BakeoffError
from bakeoff.evaluation import battery, defects
from bakeoff.scenario import python_cc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bakeoff.evaluation.assess import Assessed
    from bakeoff.evaluation.defects import Defect, Found

COLUMNS = ("name", "control", "healthy", "wrong", "source", "clause", "caught", "by", "cases")


class Museum:
    """Evaluations of defects and of the healthy controls, each of which is evaluated once."""

    def __init__(
        self, against: Sequence[str], seeds: int, jobs: int | None, cases: Sequence[str] | None = None
    ) -> None:
        """By all cases for controls, or by those that the patterns `cases` name."""
        self._against, self._seeds, self._jobs = tuple(against), seeds, jobs
        known = [case for case in battery.load((), "cc") if case.test]
        self._cases = battery.select(known, cases) if cases else known
        self._healthy: dict[tuple[str, bool], list[Assessed]] = {}

    def find(self, defect: Defect, *, quick: bool = False) -> Found:
        """By the short cases, and unless `quick` by the others if these miss it."""
        found = self._find(defect, quick=True)
        return found if found.by or quick else self._find(defect, quick=False)

    def _find(self, defect: Defect, *, quick: bool) -> Found:
        healthy = self.healthy(defect.healthy, quick=quick)
        names = [each.case.name for each in defects.compare(defect, [], healthy).holds]
        return defects.compare(defect, self._evaluate(defect.control, list(dict.fromkeys(names))), healthy)

    def healthy(self, cc: str, *, quick: bool) -> list[Assessed]:
        """The verdicts on a healthy control."""
        if (cc, quick) not in self._healthy:
            cases = [case.name for case in self._cases if case.quick is quick]
            self._healthy[cc, quick] = self._evaluate(cc, cases)
        return self._healthy[cc, quick]

    def _evaluate(self, cc: str, cases: Sequence[str]) -> list[Assessed]:
        from bakeoff.api.do_evaluate import evaluate

        if not cases:
            return []
        with tempfile.TemporaryDirectory() as out:
            return evaluate(
                cc, against=self._against, case=cases, seeds=self._seeds, jobs=self._jobs, out=Path(out) / "runs"
            ).cases


def main(
    *,
    names: Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Defects; all by default.")] = None,
    against: Annotated[str, typer.Option(metavar="CC,…", help="Competitors in the cases that have one.")] = "cubic",
    seeds: Annotated[int, typer.Option(min=1, help="Repetitions of every run, with seeds 1 to N.")] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="Only the short cases.")] = False,
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at a time.", show_default="all cores")] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Also write the table as CSV.")] = None,
) -> None:
    """Evaluate the defects of catalog/defects, and print which cases catch them.

    A defect is caught if a case does not hold that holds for its healthy control. The longer cases are run if the
    short ones miss it.
    """
    try:
        museum = Museum([word.strip() for word in against.split(",")], seeds, jobs)
        rows = []
        for defect in defects.load(names or ()):
            start = time.monotonic()
            found = museum.find(defect, quick=quick)
            rows.append(row(found))
            typer.echo(f"{defect.name:28}{rows[-1]['caught']:8}{rows[-1]['by']}  ({time.monotonic() - start:.0f} s)")
    except BakeoffError as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    typer.echo(f"{sum(each['caught'] == 'yes' for each in rows)} of {len(rows)} caught")
    if csv_file is not None:
        text = io.StringIO()
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        files.write(csv_file, text.getvalue().encode())


def row(found: Found) -> dict[str, str]:
    """A line of the table."""
    defect = found.defect
    return {
        "name": defect.name, "control": python_cc.label(defect.control), "healthy": python_cc.label(defect.healthy),
        "wrong": defect.wrong, "source": defect.source, "clause": defect.clause,
        "caught": "yes" if found.by else "no", "by": "; ".join(told(each) for each in found.by[:3]),
        "cases": str(len(found.by)),
    }  # fmt: skip


def told(case: Assessed) -> str:
    """The case, with its competitor or why it failed."""
    return case.case.name + (f" ({case.other})" if case.other else "") + (" (crash)" if case.crashed else "")


if __name__ == "__main__":
    typer.run(main)
