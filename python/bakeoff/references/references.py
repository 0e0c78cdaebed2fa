"""Published numbers, and the distance of results from them.

A reference is a CSV file `catalog/references/NAME.csv`, one number per line, with the columns suite, scenario, run,
flow, measure, value, unit, source and optionally seed (several measurements of the same run), sd and n (the standard
deviation of n trials, of which value is the mean) and licence.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import exp, inf, log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff import files
from bakeoff.errors import ClaimError
from bakeoff.measure import summary_of
from bakeoff.measure.delays import quantile
from bakeoff.measure.functions import CATALOGUE

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.results.summary import Summary

RATES: Final = ("delivery_rate", "goodput")
MEASURES: Final = (*RATES, "srtt_mean", "srtt_p99", "little_delay_mean", "little_delay_p99", "marks", "drops")
"""What references hold, by the catalogue's names; each line states the unit."""
_IN_FILES: Final[Mapping[str, str]] = {
    "steady_state.delivery_rate": "delivery_rate", "steady_state.goodput": "goodput",
    "steady_state.srtt": "srtt_mean", "steady_state.srtt_p99": "srtt_p99",
}  # fmt: skip
"""Older names of measures in files."""

COUNTS = ("marks", "drops")
"""Numbers of a whole run, with an empty flow; they may be 0."""
OF_RUNS: Final = (*COUNTS, "little_delay_mean", "little_delay_p99")
"""All numbers of a whole run: its bottleneck's."""

_LARGEST: Final = 256 << 20
"""Bytes of a file."""
_COLUMNS = ("suite", "scenario", "run", "flow", "measure", "value", "unit", "source")

Key = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Reference:
    """Somebody's number for one flow of one run; a rate may be the sum of the flows that match a pattern."""

    reference: str
    """The file's stem: `l4s-tests`, `linux-7.3`."""
    suite: str
    scenario: str
    run: str
    flow: str
    measure: str
    """One of `MEASURES`."""
    value: float
    unit: str
    source: str
    seed: int | None = None
    sd: float | None = None
    """Standard deviation of the `n` trials of which `value` is the mean, in `unit`."""
    n: int = 1
    licence: str = ""


@dataclass(frozen=True)
class Expected:
    """All of one reference's numbers for one flow of one run."""

    value: float
    """Their geometric mean."""
    spread: float | None
    """Standard deviation (n - 1) of their natural logarithms, of one line sd / value; None if it is unknown."""
    n: int


@dataclass(frozen=True)
class Deviation:
    """The distribution of |ln(ours / reference)| over the flows of the runs with one qdisc."""

    reference: str
    measure: str
    scenario: str
    qdisc: str
    n: int
    median: float
    p90: float
    max: float


def directory() -> Path:
    """Where the catalog's references lie."""
    from bakeoff.scenario.shipped import root

    return root() / "references"


def named(name: str) -> list[Reference]:
    """The lines of one reference: the catalog's of this name, or a CSV file; empty if there is none."""
    if name.endswith(".csv") and Path(name).is_file():
        return load_file(Path(name))
    return [line for line in load() if line.reference == name]


def stem(name: str) -> str:
    """What the lines of `named(name)` call their reference."""
    return Path(name).stem if name.endswith(".csv") else name


def load(path: Path | None = None) -> list[Reference]:
    """Every line of every CSV file in a directory (default: the catalog's), in order of file name and line.

    Raises BakeoffError naming file, line and value for a missing column, an unknown measure, a wrong unit or a
    value that is no positive number.
    """
    path = directory() if path is None else path
    return [row for file in sorted(path.glob("*.csv")) for row in load_file(file)]


def expected(references: Iterable[Reference]) -> dict[Key, Expected]:
    """What one or several references expect of flows, by (reference, scenario, run, flow, measure)."""
    values: dict[Key, list[Reference]] = {}
    for row in references:
        if row.measure in OF_RUNS:
            continue  # `comparison` has them
        values.setdefault((row.reference, row.scenario, row.run, row.flow, row.measure), []).append(row)
    return {key: _expected(of) for key, of in values.items()}


def _expected(rows: Sequence[Reference]) -> Expected:
    n = len(rows)
    if n == 1:
        [row] = rows
        return Expected(row.value, None if row.sd is None else row.sd / row.value, row.n)
    logs = [log(row.value) for row in rows]
    mean = sum(logs) / n
    return Expected(exp(mean), sqrt(sum((x - mean) ** 2 for x in logs) / (n - 1)), n)


def log_ratio(ours: float, reference: float) -> float:
    """ln(ours / reference): 0 if equal, 0.69 for twice, -0.69 for half; -inf if ours is 0. No unit."""
    if reference <= 0 or ours < 0:
        raise ClaimError(f"a log ratio needs a positive reference and no negative value, not {ours:g} / {reference:g}")
    return log(ours / reference) if ours else -inf


def measured(summaries: Sequence[Summary], flow: str, measure: str) -> float | None:
    """Our value of a reference's measure, the mean over repetitions; 0 for a starved flow's rate, None if unknown."""
    values = [value for summary in summaries if (value := _pick(summary, flow, measure)) is not None]
    return sum(values) / len(values) if values else None


def deviation(results: Iterable[Result], reference: Iterable[Reference]) -> list[Deviation]:
    """How far results are from references: one distribution per (reference, measure, scenario, qdisc label).

    It is taken over every flow that both have; a flow of ours that got nothing is infinitely far. Repetitions of a
    run count once, by their mean. In order of first appearance.
    """
    runs: dict[tuple[str, str, str], list[Result]] = {}
    for result in results:
        at = result.run
        if not result.ok:
            continue
        runs.setdefault((at.scenario, at.run, at.point.get("qdisc", "")), []).append(result)
    wanted: dict[tuple[str, str], list[tuple[str, str, str, Expected]]] = {}
    for (name, scenario, run, flow, measure), value in expected(reference).items():
        wanted.setdefault((scenario, run), []).append((name, measure, flow, value))
    distances: dict[tuple[str, str, str, str], list[float]] = {}
    for (scenario, run, qdisc), members in runs.items():
        if (scenario, run) not in wanted:
            continue
        summaries = [summary_of(member) for member in members]
        for name, measure, flow, value in wanted[scenario, run]:
            ours = measured(summaries, flow, measure)
            if ours is not None:
                distances.setdefault((name, measure, scenario, qdisc), []).append(abs(log_ratio(ours, value.value)))
    return [
        Deviation(*key, n=len(all_), median=quantile(all_, 0.5), p90=quantile(all_, 0.9), max=max(all_))
        for key, all_ in distances.items()
    ]


def _pick(summary: Summary, flow: str, measure: str) -> float | None:
    if "*" in flow:
        parts = [_pick(summary, name, measure) for name in summary.flows if fnmatchcase(name, flow)]
        known = [part for part in parts if part is not None]
        return sum(known) if known and len(known) == len(parts) else None
    part = summary.flows.get(flow)
    if part is None:
        return None
    value = CATALOGUE[measure].read(part)
    if value is None and measure == "delivery_rate" and part.steady_state.goodput_bps == 0:
        # A flow that got nothing has no delivery-rate sample either: that is the worst result, not a missing one.
        return 0.0
    return value


def load_file(file: Path) -> list[Reference]:
    """Every line of one CSV file; BakeoffError as `load`."""
    try:
        text = files.read(file, _LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ClaimError(f"{file}: cannot be read: {reason}") from None
    try:
        return _references(file, text)
    except csv.Error as error:
        raise ClaimError(f"{file}: invalid CSV: {error}") from None


def _references(file: Path, text: str) -> list[Reference]:
    with io.StringIO(text, newline="") as stream:
        reader = csv.DictReader(stream)
        missing = [column for column in _COLUMNS if column not in (reader.fieldnames or ())]
        if missing:
            raise ClaimError(f"{file}: missing column '{missing[0]}'; expected {', '.join(_COLUMNS)}[, seed, sd, n]")
        return [_row(file, reader.line_num, line) for line in reader]


def _row(file: Path, line: int, cells: Mapping[str, str]) -> Reference:
    short = [column for column in _COLUMNS if cells[column] is None]
    if short:
        raise ClaimError(f"{file}:{line}: missing {short[0]}; expected a value per column")
    measure, unit, value = _IN_FILES.get(cells["measure"], cells["measure"]), cells["unit"], cells["value"]
    if measure not in MEASURES:
        raise ClaimError(f"{file}:{line}: measure: unknown '{measure}'; expected one of {', '.join(MEASURES)}")
    if unit != CATALOGUE[measure].unit:
        raise ClaimError(f"{file}:{line}: unit: '{unit}' for {measure}; expected {CATALOGUE[measure].unit}")
    try:
        number, seed = float(value), int(cells["seed"]) if cells.get("seed") else None
        sd, n = float(cells["sd"]) if cells.get("sd") else None, int(cells.get("n") or 1)
    except ValueError as error:
        raise ClaimError(f"{file}:{line}: {error}") from None
    if not (0 < number < inf or (measure in COUNTS and number == 0)):
        raise ClaimError(f"{file}:{line}: value: '{value}'; expected a number above zero")
    if n < 1 or (sd is not None and not 0 <= sd < inf):
        raise ClaimError(f"{file}:{line}: sd, n: '{cells.get('sd')}', '{cells.get('n')}'; expected sd >= 0 and n >= 1")
    if "*" in cells["flow"] and measure not in RATES:
        raise ClaimError(
            f"{file}:{line}: flow: '{cells['flow']}' for {measure}; expected one flow: only rates have sums"
        )
    texts = {column: cells[column] for column in ("suite", "scenario", "run", "flow", "source")}
    licence = cells.get("licence") or ""
    return Reference(
        file.stem, measure=measure, value=number, unit=unit, seed=seed, sd=sd, n=n, licence=licence, **texts
    )
