"""How measures come into the catalogue: one by one, from summary.json alone, or one for each statistic of a family."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, ParamSpec

from bakeoff.errors import MeasureError
from bakeoff.measure.catalogue import Catalogue, Measure, Of, Unit

if TYPE_CHECKING:
    from bakeoff.measure.measured_run import MeasuredRun
    from bakeoff.results.summary import Distribution

P = ParamSpec("P")
Take = Callable[..., float]
Edge = float | None
"""Of the window in seconds; None: as the run has it."""

CATALOGUE: Final = Catalogue()
"""Every measure of bakeoff."""

STATISTICS: Final = {
    "mean": "mean", "p50": "median", "p95": "95th percentile", "p99": "99th percentile", "max": "maximum",
    "geometric_mean": "geometric mean",
}  # fmt: skip
"""The statistics of families: the end of a measure's name, and its words in the formula."""


def measure(
    name: str,
    of: Of,
    unit: Unit,
    label: str,
    formula: str,
    **more: Any,  # noqa: ANN401 (the other fields of Measure)
) -> Callable[[Callable[P, float]], Callable[P, float]]:
    """The decorated function takes the measure."""

    def add(take: Callable[P, float]) -> Callable[P, float]:
        CATALOGUE.add(Measure(name, of, unit, label, formula, take, **more))
        return take

    return add


def stored(  # noqa: PLR0917 (a line of a table)
    name: str,
    of: Of,
    unit: Unit,
    label: str,
    formula: str,
    at: str,
    **more: Any,  # noqa: ANN401
) -> None:
    """A measure that summary.json holds, and that has no other window."""
    measure(name, of, unit, label, formula, at=at, **more)(_reader(name, of))


def family(  # noqa: PLR0917 (a line of a table)
    statistics: str,
    prefix: str,
    of: Of,
    label: str,
    formula: str,
    take: Callable[[str], Take] | None = None,
    *,
    at: str = "",
    stem: str = "",
    untabled: tuple[str, ...] = ("max",),
    aliases: Mapping[str, tuple[str, ...]] | None = None,
    **more: Any,  # noqa: ANN401
) -> None:
    """A time for each of the statistics, such as `mean p99`; without `take` it is the one at `at` of summary.json."""
    for statistic in statistics.split():
        name, adjective = f"{prefix}_{statistic}", STATISTICS[statistic]
        measure(
            name, of, "s", f"{label}, {adjective}", f"{adjective} of {formula}",
            at=f"{at}.{statistic}" if at else None, stem=f"{stem}_{statistic}" if stem else "",
            tabled=not at or statistic not in untabled, aliases=(aliases or {}).get(statistic, ()), **more,
        )(take(statistic) if take else _reader(name, of))  # fmt: skip


def known(value: float | None, what: str) -> float:
    """The value; MeasureError for None."""
    if value is None:
        raise MeasureError(f"{what} cannot be measured")
    return float(value)


def statistic(found: Distribution | None, of: str, name: str) -> float:
    """One statistic of the round-trip times of a flow or probe; MeasureError if it has none."""
    if found is None:
        raise MeasureError(f"no round-trip times of '{name}'")
    return float(getattr(found, of))


def _reader(name: str, of: Of) -> Take:
    def value(record: object, whose: str) -> float:
        return known(CATALOGUE[name].read(record), f"{name} of {whose}")

    def of_flow(run: MeasuredRun, flow: str | int) -> float:
        return value(run.of_flow(flow), f"flow '{flow}'")

    def of_queue(run: MeasuredRun, queue: str | None = None) -> float:
        return value(run.of_queue(queue), f"queue '{run.queue(queue)}'")

    def of_probe(run: MeasuredRun, probe: str | None = None) -> float:
        return value(run.of_probe(probe), f"probe '{probe or 'ping'}'")

    def of_run(run: MeasuredRun) -> float:
        return value(run.summary, "the run")

    readers: dict[Of, Take] = {"flow": of_flow, "queue": of_queue, "probe": of_probe, "run": of_run}
    return readers[of]
