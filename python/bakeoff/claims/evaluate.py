"""Measures of results, as claims name them: each run's series are read once, in parallel processes where that pays."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from math import isfinite, nan
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff.campaign import signals
from bakeoff.claims.expression import Call, Expression, Values, parse
from bakeoff.errors import BakeoffError, ClaimError, MeasureError
from bakeoff.expressions.grammar import ExpressionError
from bakeoff.expressions.nodes import TRUTH
from bakeoff.measure.functions import CATALOGUE, check_names
from bakeoff.measure.measured_run import MeasuredRun
from bakeoff.results import Result

if TYPE_CHECKING:
    from bakeoff.scenario import Run

_FEW: Final = 60
"""Runs that are read here before a process has been started elsewhere."""
_CHUNK: Final = 20

Task = tuple[Path, tuple[Call, ...]]


def evaluate(tasks: Mapping[Path, Iterable[Call]], jobs: int) -> dict[Path, Values]:
    """The values of the calls for each results folder; a MeasureError in the place of one that could not be taken."""
    several = [(path, tuple(dict.fromkeys(calls))) for path, calls in tasks.items()]
    if jobs < 2 or len(several) < _FEW:
        return dict(zip(tasks, map(_evaluated, several), strict=True))
    signals.start_tracker()
    # Not fork: polars and numpy have threads, and a forked child of a threaded process may hang.
    with (
        ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), signals.prepare_worker) as pool,
        signals.starting_workers(),
    ):
        found = pool.map(_evaluated, several, chunksize=_CHUNK)
    return dict(zip(tasks, found, strict=True))


def measure(results: Result | Mapping[str, Result], text: str) -> float | bool:
    """An expression of claims (docs/claims.md) over one result, or over several that it names by `of="NAME"`.

    A number in its base unit, or whether a comparison holds. BakeoffError says what is wrong in the expression, or
    which measure could not be taken and why.
    """
    expression, values = taken(results, text)
    return expression.truth(values) if expression.unit == TRUTH else expression.number(values)


def taken(results: Result | Mapping[str, Result], text: str) -> tuple[Expression, Values]:
    """The checked expression, and what its measures give; BakeoffError as for `measure`, except for measures."""
    runs = dict(results) if isinstance(results, Mapping) else {None: results}
    names = [name for name in runs if name is not None]
    try:
        expression = parse(text, names)
    except ExpressionError as error:
        raise ClaimError(f"{text}: {error}") from None
    metrics = {metric for call in expression.calls for metric in CATALOGUE[call.measure].needs}
    several = {name: MeasuredRun(result, metrics) for name, result in runs.items()}
    values = {call: take(several[call.of], call) for call in expression.calls if call.of in several}
    if len(values) < len(expression.calls):
        raise ClaimError(f"{text}: no run; expected the name of a run")
    return expression, values


def number_of(text: str) -> Expression:
    """An expression for a number that each run gives, `jain()` or `goodput("prague") / goodput("cubic")`.

    BakeoffError says what is wrong in the expression.
    """
    try:
        found = parse(text, ())
    except ExpressionError as error:
        raise ClaimError(f"{text}: {error}") from None
    if found.unit == TRUTH:
        raise ClaimError(f"{text}: a boolean; expected a number")
    return found


def check_number(text: str, runs: Iterable[Run], option: str) -> None:
    """BakeoffError if an expression for a number names a flow or a probe that none of the runs has."""
    calls = number_of(text).calls
    complaint: MeasureError | None = None
    for run in runs:
        try:
            for call in calls:
                check_names(CATALOGUE[call.measure], dict(call.arguments), run)
        except MeasureError as error:
            complaint = complaint or error
        else:
            return
    if complaint is not None:
        raise ClaimError(f"{option}: '{text}': {complaint}")


def numbers(result: Result, texts: Sequence[str]) -> dict[str, float | None]:
    """What a run gives for each of the expressions, in base units; None where it gives no finite number."""
    found: dict[str, float | None] = {}
    for text in texts:
        expression = number_of(text)
        metrics = {metric for call in expression.calls for metric in CATALOGUE[call.measure].needs}
        run = MeasuredRun(result, metrics)
        try:
            value = expression.number({call: take(run, call) for call in expression.calls})
        except MeasureError:
            value = nan
        found[text] = value if isfinite(value) else None
    return found


def take(run: MeasuredRun, call: Call) -> float | MeasureError:
    """A measure of a run, or the reason why it cannot be taken."""
    try:
        return float(CATALOGUE[call.measure].take(run, **dict(call.arguments)))
    except MeasureError as error:
        return error
    except BakeoffError as error:
        return MeasureError(str(error))


def _evaluated(task: Task) -> dict[Call, float | MeasureError]:
    path, calls = task
    metrics = {metric for call in calls for metric in CATALOGUE[call.measure].needs}
    run = MeasuredRun(Result.read(path), metrics)
    return {call: take(run, call) for call in calls}
