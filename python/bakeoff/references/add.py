"""Somebody's table of numbers as a reference for the runs of a scenario."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from fnmatch import filter as matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff import files
from bakeoff.errors import ClaimError
from bakeoff.measure.functions import CATALOGUE
from bakeoff.references.references import MEASURES, OF_RUNS, load_file
from bakeoff.scenario.error import did_you_mean

if TYPE_CHECKING:
    from bakeoff.references.references import Reference
    from bakeoff.scenario.run import Run

COLUMNS: Final = ("run", "flow", "measure", "value", "unit")
OPTIONAL: Final = ("sd", "n", "seed", "source", "licence")
_WRITTEN: Final = (
    "suite", "scenario", "run", "flow", "measure", "value", "unit", "source", "seed", "sd", "n", "licence",
)  # fmt: skip
_SCALES: Final[Mapping[str, Mapping[str, float]]] = {
    "bit/s": {"bit/s": 1.0, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9},
    "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6},
    "packet": {"packet": 1.0, "packets": 1.0},
}
"""Units of a table by base unit."""
_DIGITS: Final = 6


@dataclass(frozen=True)
class _Line:
    suite: str
    scenario: str
    run: str
    flow: str
    measure: str
    value: str
    unit: str
    source: str
    seed: str
    sd: str
    n: str
    licence: str


def add(table: Path, runs: Sequence[Run], to: Path, *, source: str = "", licence: str = "") -> list[Reference]:
    """Write the numbers of `table` as the reference `to` (a CSV file) and return its lines.

    The table has a number per line, with the columns run, flow, measure, value and unit (such as Mbit/s or ms), and
    optionally sd and n (of n trials, of which value is the mean), seed, source and licence. `source` and `licence` hold
    for lines without their own. Raises BakeoffError for a run or flow that `runs` does not have, an unknown measure or
    unit, a missing source, and if `to` exists.
    """
    if to.suffix != ".csv":
        raise ClaimError(f"{to}: expected a file *.csv")
    if to.exists():
        raise ClaimError(f"{to}: exists; choose another name, or remove it")
    known = {run.run: run for run in runs}
    try:
        text = files.read(table, 256 << 20).decode()
        with io.StringIO(text, newline="") as stream:
            reader = csv.DictReader(stream)
            missing = [column for column in COLUMNS if column not in (reader.fieldnames or ())]
            if missing:
                wanted = f"{', '.join(COLUMNS)}[, {', '.join(OPTIONAL)}]"
                raise ClaimError(f"{table}: column '{missing[0]}' is missing; expected {wanted}")
            made = [_line(f"{table}:{reader.line_num}", cells, known, source, licence) for cells in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ClaimError(f"{table}: cannot be read: {reason}") from None
    if not made:
        raise ClaimError(f"{table}: no numbers; expected a line per number")
    to.parent.mkdir(parents=True, exist_ok=True)
    _write(made, to)
    try:
        return load_file(to)
    except ClaimError:
        to.unlink()
        raise


def _line(place: str, cells: Mapping[str, str | None], known: Mapping[str, Run], source: str, licence: str) -> _Line:
    cell = {name: (cells.get(name) or "").strip() for name in (*COLUMNS, *OPTIONAL)}
    run = known.get(cell["run"])
    if run is None:
        raise ClaimError(f"{place}: run: unknown '{cell['run']}'{did_you_mean(cell['run'], known)}")
    if cell["measure"] not in MEASURES:
        raise ClaimError(f"{place}: measure: unknown '{cell['measure']}'; expected one of {', '.join(MEASURES)}")
    whole = cell["measure"] in OF_RUNS
    names = [flow.name for flow in run.flows]
    if whole is bool(cell["flow"]) or not (whole or matches(names, cell["flow"])):
        expected = "no flow: it is a measure of the run" if whole else f"one of {', '.join(names)}, or a pattern"
        raise ClaimError(f"{place}: flow: '{cell['flow']}' for {cell['measure']}; expected {expected}")
    unit = CATALOGUE[cell["measure"]].unit
    scale = _SCALES[unit].get(cell["unit"])
    if scale is None:
        raise ClaimError(f"{place}: unit: unknown '{cell['unit']}'; expected one of {', '.join(_SCALES[unit])}")
    told = cell["source"] or source
    if not told:
        raise ClaimError(f"{place}: source: missing; expected who measured this, in the table or by --source")
    try:
        value = f"{float(cell['value']) * scale:.{_DIGITS}g}"
        sd = f"{float(cell['sd']) * scale:.{_DIGITS}g}" if cell["sd"] else ""
    except ValueError as error:
        raise ClaimError(f"{place}: {error}") from None
    return _Line(
        run.suite, run.scenario, run.run, cell["flow"], cell["measure"], value, unit, told, cell["seed"], sd, cell["n"],
        cell["licence"] or licence,
    )  # fmt: skip


def _write(lines: Iterable[_Line], to: Path) -> None:
    try:
        with to.open("x", encoding="utf-8", newline="") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(_WRITTEN)
            writer.writerows(astuple(line) for line in lines)
    except OSError as error:
        raise ClaimError(f"{to}: cannot be written: {error.strerror}") from None
