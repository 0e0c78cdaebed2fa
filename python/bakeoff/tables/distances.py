"""Two campaigns side by side: how far apart they are, what is outside, and how far one of them is from itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from bakeoff.claims.comparison import Comparison, Difference, Distribution, distributions, outside
from bakeoff.claims.own_distance import MEASURES as OWN_MEASURES
from bakeoff.claims.own_distance import Group, Spread
from bakeoff.measure.functions import CATALOGUE
from bakeoff.tables.cells import decimals
from bakeoff.tables.rows import finite
from bakeoff.text import markup
from bakeoff.text.columns import Column, number
from bakeoff.text.markup import Block, Format

_SHOWN = 40
_SCALE = {"bit/s": (1e-6, "Mbit/s", 2), "s": (1e3, "ms", 2), "packet": (1.0, "packets", 0)}


def written(measure: str, value: float, *, unit: bool = False) -> str:
    """A number of a measure as people read it, with its unit if that is asked for."""
    scale, name, places = _SCALE[CATALOGUE[measure].unit]
    text = number(value * scale, f".{decimals(value * scale, places)}f")
    return f"{text} {name}" if unit else text


def render(comparison: Comparison, bounds: Mapping[str, float], by: Sequence[str], form: Format) -> str:
    """The distributions of |ln(ours / theirs)|, and the list of what is outside the bounds.

    `csv` has every difference, outside or not, in SI units; `json` both and the notes. `terminal` shows the first 40 of
    the list. The comparison's warning is in all but `csv` and `terminal`: the command line tells it on standard error.
    """
    spread = distributions(comparison.differences, bounds, by)
    beyond = outside(comparison.differences, bounds)
    warnings = [comparison.warning] if comparison.warning else []
    if form == "csv":
        return markup.as_csv([record(one, bounds) for one in comparison.differences])
    if form == "json":
        document = {
            "ours": comparison.ours,
            "theirs": comparison.theirs,
            "distributions": [_plain(one, by) for one in spread],
            "outside": [record(one, bounds) for one in beyond],
            "notes": list(comparison.notes),
            "warnings": warnings,
        }
        return json.dumps(document, indent=2, allow_nan=False) + "\n"
    blocks = _blocks(comparison, spread, beyond, by, _SHOWN if form == "terminal" else len(beyond))
    return markup.written(form, blocks, comparison.notes, warnings)


def record(one: Difference, bounds: Mapping[str, float]) -> dict[str, Any]:
    """A difference as flat names and plain values; infinite distances are null."""
    suite, scenario, run, flow, measure = one.key
    return {
        "suite": suite,
        "scenario": scenario,
        "run": run,
        "flow": flow,
        "measure": measure,
        "unit": CATALOGUE[measure].unit,
        "ours": one.ours,
        "theirs": one.theirs,
        "n_ours": one.n_ours,
        "n_theirs": one.n_theirs,
        "ln": finite(one.ln),
        "overlap": one.overlap,
        "pairs": one.pairs,
        "ln_mean": one.ln_mean,
        "ln_ci95": one.ln_ci95,
        "noise": one.noise,
        "outside": abs(one.ln) > bounds[measure] if measure in bounds else None,
        **{f"axis_{axis}": label for axis, label in one.axes.items()},
    }


def _heads(by: Sequence[str]) -> list[str]:
    return [*by, "measure", "n", "median", "p90", "max", "noise median", "noise p90", "bound", "outside"]


def _cells(one: Distribution) -> list[str]:
    numbers = (one.median, one.p90, one.max)
    noise = ("", "") if one.noise is None else tuple(number(value, ".3f") for value in one.noise)
    bound = ("", "") if one.bound is None else (f"{one.bound:g}", str(one.outside))
    return [*one.group, one.measure, str(one.n), *(number(value, ".3f") for value in numbers), *noise, *bound]


def _listed(beyond: Sequence[Difference]) -> Iterator[list[str]]:
    for one in beyond:
        n = "" if one.overlap is None else f"{_seeds(one)} {'overlap' if one.overlap else 'apart'}"
        unit = _SCALE[CATALOGUE[one.key.measure].unit][1]
        values = [written(one.key.measure, value) for value in (one.ours, one.theirs)]
        yield [one.key.measure, one.key.run, one.key.flow, *values, unit, number(one.ln, "+.2f"), n]


def _seeds(one: Difference) -> str:
    if not one.pairs:
        return f"{one.n_ours}/{one.n_theirs}"
    spread = "" if one.ln_mean is None or one.ln_ci95 is None else f" {one.ln_mean:+.2f} ± {one.ln_ci95:.2f}"
    return f"{one.pairs} pairs{spread}"


_LIST = ("measure", "run", "flow", "ours", "theirs", "unit", "ln", "seeds")
_LIST_LEFT = (True, True, True, False, False, True, False, True)


def _caption(comparison: Comparison) -> str:
    return f"|ln({comparison.ours} / {comparison.theirs})|"


def _columns(heads: Sequence[str], left: Sequence[bool], lines: Sequence[Sequence[str]]) -> list[Column]:
    found = [Column(head, [line[i] for line in lines], text=left[i]) for i, head in enumerate(heads)]
    return [column for column in found if any(column.cells)]


def _blocks(
    comparison: Comparison, spread: Sequence[Distribution], beyond: Sequence[Difference], by: Sequence[str], most: int
) -> list[Block]:
    heads = _heads(by)
    left = [i <= len(by) for i in range(len(heads))]
    found = [Block(_caption(comparison), _columns(heads, left, [_cells(one) for one in spread]))]
    if beyond:
        more = [f"and {len(beyond) - most} more; format csv has all"] if len(beyond) > most else []
        found.append(Block("outside", _columns(_LIST, _LIST_LEFT, list(_listed(beyond[:most]))), more))
    return found


def _plain(one: Distribution, by: Sequence[str]) -> dict[str, Any]:
    plain = {name: finite(value) if isinstance(value, float) else value for name, value in asdict(one).items()}
    return plain | {"group": dict(zip(by, one.group, strict=True))}


def render_own(comparison: Comparison, groups: Sequence[Group], by: Sequence[str], form: Format) -> str:
    """`comparison` beside the distances of one of its sides from itself.

    A line for each group: how many runs, and for each measure median and 90th percentile of the distances.

    `csv` and `json` have a record for each group and measure. The comparison's warning is in all but `csv` and
    `terminal`: the command line tells it on standard error.
    """
    named = [(group, measure) for group in groups for measure in OWN_MEASURES if measure in group.every]
    records = [_own_record(group, by, measure) for group, measure in named]
    warnings = [comparison.warning] if comparison.warning else []
    if form == "csv":
        return markup.as_csv(records)
    if form == "json":
        sides = {"ours": comparison.ours, "theirs": comparison.theirs}
        document = {**sides, "groups": records, "notes": [*comparison.notes], "warnings": warnings}
        return json.dumps(document, indent=2, allow_nan=False) + "\n"
    return markup.written(form, [_own_block(comparison, groups, by)], comparison.notes, warnings)


def _own_block(comparison: Comparison, groups: Sequence[Group], by: Sequence[str]) -> Block:
    columns = [Column(axis, [group.labels[i] for group in groups], text=True) for i, axis in enumerate(by)]
    columns.append(Column("runs", [str(group.runs) for group in groups]))
    columns.append(Column("with\nseeds", [str(group.repeated) for group in groups], keep=3))
    for measure in OWN_MEASURES:
        main = 2 if measure == "marks" else 9
        for head, side, keep in (("all", "every", 1), ("apart", "apart", main), ("own", "own", main)):
            cells = [_own_cell(getattr(group, side).get(measure)) for group in groups]
            columns.append(Column(f"{measure}\n{head}", cells, keep=keep))
    says = f"median/90th percentile of |ln|. all: {comparison.ours} to {comparison.theirs}, equal seeds of all runs. "
    says += f"apart: the same of the runs with several seeds. own: every two seeds of {comparison.theirs}."
    columns = [column for column in columns if any(column.cells)]
    return Block(f"{comparison.ours}, {comparison.theirs}", columns, [says])


def _own_cell(spread: Spread | None) -> str:
    return "" if spread is None else f"{number(spread.median, '.3f')}/{number(spread.p90, '.3f')}"


def _own_record(group: Group, by: Sequence[str], measure: str) -> dict[str, Any]:
    named = {f"axis_{axis}": label for axis, label in zip(by, group.labels, strict=True)}
    record: dict[str, Any] = {**named, "runs": group.runs, "with_seeds": group.repeated, "measure": measure}
    for side, spreads in {"all": group.every, "apart": group.apart, "own": group.own}.items():
        spread = spreads.get(measure)
        record[f"{side}_n"] = None if spread is None else spread.n
        record[f"{side}_median"] = None if spread is None else finite(spread.median)
        record[f"{side}_p90"] = None if spread is None else finite(spread.p90)
    return record
