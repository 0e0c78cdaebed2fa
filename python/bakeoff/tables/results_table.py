"""Tables of results, with what was published beside what we measured."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal, get_args

from bakeoff.errors import TableError
from bakeoff.references import Deviation, Reference, deviation
from bakeoff.results.epochs import epoch_warning
from bakeoff.tables import column_specs, filters, groups
from bakeoff.tables.records import records
from bakeoff.tables.rows import Row, choose_references, finished, finite, qdisc_order, rows
from bakeoff.text import markup
from bakeoff.text.columns import Column, number
from bakeoff.text.markup import Block, Format

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.tables.records import Record

Kind = Literal["runs", "flows", "queues", "probes", "phases"]
FORMATS = get_args(Format)

_NOTES_SHOWN = 10
_CHANGES_SHOWN = 3
_PHASES_SHOWN = 40


def render(
    results: Iterable[Result],
    *,
    format: Format = "terminal",  # noqa: A002 the word that the command line uses too
    kind: Kind | None = None,
    columns: Sequence[str] | None = None,
    sort: str | None = None,
    condition: str | None = None,
    reference: str | Sequence[Reference] | None = None,
    metric: str | None = None,
    width: int | None = None,
    colour: bool | None = None,
) -> str:
    """A table of one row per run, repetitions taken together (mean ± 95 % interval), one table per scenario.

    `kind` gives one row per flow, queue with a rate, probe, or part of the window between changes instead; without it
    people see runs, and of a scenario with one run its flows, queues and probes too. `columns` are names as in
    docs/tables.md; `?` alone gives those there are, one a line. `sort` is one or several of them (`-jain` begins with
    the largest), `condition` a comparison of them (see `where`). `reference`: None for what each suite published
    itself, a reference's name, or reference lines. `metric`: the rate that is shown, `delivery_rate` (as the suites
    define the steady state) or `goodput`; by default what the reference holds. `width` and `colour` are the
    terminal's; by default those of standard output. Columns that have no room are left out and named. `csv` and `json`
    hold every value in SI units, the unit in its name. That the runs come from different model epochs is said in all
    formats but `terminal` and `csv`: the command line tells it on standard error.

    Raises BakeoffError if there is nothing to show, for an unknown reference, metric, format, kind or column, for a
    condition that cannot be read, and for a seed that stands twice.
    """
    if format not in FORMATS:
        raise TableError(f"format: unknown '{format}'; expected one of {', '.join(FORMATS)}")
    given = list(results)
    lines = choose_references(given, reference)
    table = rows(given, lines, metric)
    left_out = [_why(result) for result in given if not finished([result])]
    if not table:
        raise TableError("no finished runs" + "".join(f"\n  {why}" for why in left_out))
    # People's table of runs is made from the rows: flat records of ten thousand runs would be made for nothing.
    flat_too = kind not in (None, "runs") or format in ("csv", "json") or sort or condition or columns is not None
    found = records(table, kind or "runs") if flat_too else [(row, {}) for row in table]
    if not found:
        nothing = "nothing changes in a window" if kind == "phases" else "the runs have none"
        raise TableError(f"no {kind}: {nothing}")
    found = _picked(found, sort, condition)
    if columns is not None and list(columns) == ["?"]:
        return "".join(f"{name}\n" for name in dict.fromkeys(name for _, record in found for name in record))
    names = (
        None if columns is None else [filters.resolve(name, [one for _, one in found], "--columns") for name in columns]
    )
    whole = kind is None and condition is None
    distances = sorted(deviation(finished(given), lines), key=_qdisc_of) if kind in (None, "runs") and whole else []
    warning = epoch_warning(given)
    if format in ("csv", "json"):
        flat = [record if names is None else {n: filters.lookup(record, n) for n in names} for _, record in found]
        if format == "csv":
            return markup.as_csv(flat)
        document = {
            "rows": flat,
            "deviations": [_plain(distance) for distance in distances],
            "left_out": left_out,
            "warnings": [warning] if warning else [],
        }
        return json.dumps(document, indent=2, allow_nan=False) + "\n"
    kept = {row for row, _ in found}
    notes = _remarks([row for row in table if row in kept], left_out)
    blocks = [*_blocks(found, kind, names), *_distances(distances)]
    return markup.written(format, blocks, notes, [warning] if warning else [], width=width, colour=colour)


def _picked(found: list[tuple[Row, Record]], sort: str | None, condition: str | None) -> list[tuple[Row, Record]]:
    """Those for which the condition holds, in the order that was asked for."""
    if condition is not None:
        places = filters.select([record for _, record in found], condition)
        if not places:
            raise TableError(f"--where: none of {len(found)} rows matches {condition}")
        found = [found[i] for i in places]
    if sort is not None:
        found = [found[i] for i in filters.order([record for _, record in found], sort)]
    return found


def _blocks(found: Sequence[tuple[Row, Record]], kind: Kind | None, names: Sequence[str] | None) -> list[Block]:
    """A table per scenario; of a scenario with one run its parts too, unless something else was asked for."""
    blocks = []
    for title, part in _scenarios(found):
        table = [row for row, _ in part]
        heading = f"{title}, {_window(table)}" if kind in (None, "runs") else f"{title}, {kind}, {_window(table)}"
        if names is not None:
            columns = column_specs.chosen(names, [record for _, record in part])
            blocks.append(Block(heading, columns, _averaged(table)))
            continue
        blocks.append(Block(heading, column_specs.columns(kind or "runs", part), _captions(table, kind or "runs")))
        if kind is None:
            blocks += _details(list(dict.fromkeys(table)), blocks)
    return blocks


def _details(table: Sequence[Row], before: list[Block]) -> list[Block]:
    """What a table of runs has no place for."""
    blocks = []
    one = table[0] if len(table) == 1 else None
    if one is not None and len(one.flows) > column_specs.MANY:
        blocks.append(Block("flows, equal ones together", groups.of_one(one), level=2))
    for kind in ("flows", "queues", "probes") if one is not None else ():
        if kind == "flows" and len(table[0].flows) > column_specs.MANY:
            continue
        part = records(table, kind)
        if part:
            blocks.append(
                Block(kind, column_specs.columns(kind, part), [_WHOLE[kind]] if _WHOLE[kind] else (), level=2)
            )
    phases = records(table, "phases")
    if phases and len(phases) <= _PHASES_SHOWN:
        blocks.append(Block("between changes", column_specs.columns("phases", phases), [_WHOLE["phases"]], level=2))
    return blocks


def _window(table: Sequence[Row]) -> str:
    windows = {row.summaries[0].window_s for row in table}
    if len(windows) > 1:
        return "steady state of each run's own window"
    [(start, stop)] = windows
    return f"steady state {start:.4g} s to {stop:.4g} s"


def _captions(table: Sequence[Row], kind: str) -> list[str]:
    first = table[0]
    axes = dict.fromkeys(axis for row in table for axis in row.axes)
    always = [f"{axis} {first.axes[axis]}" for axis in axes if len({row.axes.get(axis) for row in table}) == 1]
    captions = ["always " + ", ".join(always)] if always else []
    if kind == "runs":
        names = sorted({row.reference for row in table if row.reference})
        of = f"; ref: {', '.join(names)}; ln: ln(ours / ref)" if names else ""
        seeds = ", mean ± 95 % interval over n seeds" if any(row.n > 1 for row in table) else ""
        rate = f"Mbit/s: {column_specs.rates_shown(table)}" if any(row.flows for row in table) else ""
        captions.append(f"{rate}{seeds}{of if rate else ''}".removeprefix(", "))
    captions.append(_WHOLE[kind] if kind != "runs" else column_specs.counts_shown(table))
    more = [kind for kind, count in _unseen(table).items() if count] if kind == "runs" and len(set(table)) > 1 else []
    if more:
        captions.append(f"more of each run: --rows {', --rows '.join(more)}")
    return [caption for caption in [*captions, *_averaged(table)] if caption]


_WHOLE = {
    "flows": "retrans and marked: whole run",
    "queues": "marks and drops: whole run",
    "probes": "",
    "phases": "delay: of the means over each sampling interval",
}


def _unseen(table: Sequence[Row]) -> dict[str, bool]:
    """Which kinds of record say more than the table of runs."""
    return {
        "flows": any(len(row.flows) > column_specs.MANY for row in table),
        "queues": any(sum(bool(rated.flows) for rated in row.summaries[0].rated) > 1 for row in table),
        "probes": any(len(row.summaries[0].probes) > column_specs.MANY for row in table),
        "phases": sum(len(row.summaries[0].phases) for row in table) > _PHASES_SHOWN,
    }


def _averaged(table: Sequence[Row]) -> list[str]:
    """That numbers average over changes, and which."""
    changes = list(dict.fromkeys(change for row in table for change in row.changes))
    if not changes:
        return []
    more = f" and {len(changes) - _CHANGES_SHOWN} more" if len(changes) > _CHANGES_SHOWN else ""
    text = "; ".join(changes[:_CHANGES_SHOWN]) + more
    return [f"* averaged over timed changes in the window ({text}); see --rows phases"]


def _remarks(table: Sequence[Row], left_out: Sequence[str]) -> list[str]:
    found = [f"skipped: {why}" for why in left_out] + [f"{row.run}: {note}" for row in table for note in row.notes]
    more = len(found) - _NOTES_SHOWN
    return found[:_NOTES_SHOWN] + ([f"and {more} more; format json has all"] if more > 0 else [])


def _scenarios(found: Sequence[tuple[Row, Record]]) -> Iterable[tuple[str, list[tuple[Row, Record]]]]:
    groups: dict[str, list[tuple[Row, Record]]] = {}
    for row, record in found:
        groups.setdefault(f"{row.suite}/{row.scenario}", []).append((row, record))
    return groups.items()


_DISTANCE_HEADS = ("scenario", "qdisc", "measure", "flows", "median", "p90", "max")


def _distances(distances: Sequence[Deviation]) -> list[Block]:
    blocks = []
    for name in dict.fromkeys(distance.reference for distance in distances):
        cells = [_distance_cells(distance) for distance in distances if distance.reference == name]
        columns = [Column(head, [cell[i] for cell in cells], 9, text=i < 3) for i, head in enumerate(_DISTANCE_HEADS)]
        blocks.append(Block(f"|ln(ours / {name})| over all flows", columns))
    return blocks


def _distance_cells(distance: Deviation) -> list[str]:
    numbers = (distance.median, distance.p90, distance.max)
    measure = distance.measure.removeprefix("steady_state.")
    return [
        distance.scenario,
        distance.qdisc,
        measure,
        str(distance.n),
        *(number(value, ".2f") for value in numbers),
    ]


def _plain(distance: Deviation) -> dict[str, Any]:
    return {name: finite(value) if isinstance(value, float) else value for name, value in asdict(distance).items()}


def _qdisc_of(distance: Deviation) -> tuple[Any, ...]:
    return distance.reference, distance.measure, distance.scenario, qdisc_order(distance.qdisc)


def _why(result: Result) -> str:
    return f"{result.run.name}: {result.record.status}: {result.record.error or 'no reason given'}"
