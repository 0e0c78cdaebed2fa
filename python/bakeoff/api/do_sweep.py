"""`bakeoff.sweep`: one scenario over many values of its parameters."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bakeoff import campaign, engines
from bakeoff.arguments import check
from bakeoff.campaign.adaptive import Adaptive
from bakeoff.campaign.store import place
from bakeoff.campaign.sweep_schedule import Budget, Listed, Sweep
from bakeoff.claims.evaluate import check_number, numbers
from bakeoff.errors import UsageError
from bakeoff.results import Request, dataset
from bakeoff.scenario import bounds
from bakeoff.scenario import sweep_points as space
from bakeoff.scenario.sweep_runs import SweepRuns

if TYPE_CHECKING:
    import polars as pl

    from bakeoff.campaign.sweep_schedule import Chooser, Told
    from bakeoff.campaign.worker import Also
    from bakeoff.scenario import Run
    from bakeoff.scenario.sweep_points import Parameter, Point

_ASKED_AHEAD: Final = 200
"""Runs whose cost is added up before any is done; of more the mean is taken."""


@dataclass(frozen=True)
class Swept:
    """The results of a sweep."""

    report: campaign.Report
    data_set: Path
    """The folder of the Parquet data set, RESULTS/sweep."""
    rows: int
    """Runs in it."""

    def frame(self) -> pl.DataFrame:
        """The data set: a row per run, its labels and its measures in base units."""
        import polars as pl

        return pl.read_parquet(self.data_set / "**/*.parquet")


def sweep(
    scenario: str,
    over: Sequence[str],
    *,
    sample: str | None = None,
    adaptive: str | None = None,
    budget: str | None = None,
    measures: Sequence[str] = (),
    only: str | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    engine: str = "sim",
    jobs: int | None = None,
    out: Path | str | None = None,
    resume: bool = False,
    note: str | None = None,
    allow_code: bool = False,
) -> Swept:
    """Do the runs of a scenario over many values of its parameters, as `bakeoff sweep` does.

    `over`, `sample`, `adaptive` and `budget` are as for the command: `over=["network.rtt=log:1ms..200ms:12"]`.
    `measures` are additional columns, as claim expressions. Runs keep their measures but not their samples. `only`,
    `settings`, `seed`, `seeds`, `engine`, `jobs`, `out`, `resume`, `note` and `allow_code` as for `run`. BakeoffError
    for invalid input.
    """
    check(
        "sweep", scenario=("text", scenario), over=("texts", over), sample=("text?", sample),
        adaptive=("text?", adaptive), budget=("text?", budget), measures=("texts", measures), only=("text?", only),
        settings=("mapping?", settings), seed=("whole?", seed), seeds=("whole?", seeds), engine=("text", engine),
        jobs=("whole?", jobs), out=("path?", out), resume=("flag", resume), note=("text?", note),
        allow_code=("flag", allow_code),
    )  # fmt: skip
    request = Request(
        kind="sweep", patterns=(scenario,), over=tuple(over), sample=sample, adaptive=adaptive, only=only,
        settings=dict(settings or {}), seed=None if seed is None else operator.index(seed),
        seeds=None if seeds is None else operator.index(seeds),
        measures=tuple(measures), kept="measures",
    )  # fmt: skip
    cores = jobs_of(engine, None if jobs is None else operator.index(jobs))
    cost = Budget.parse(budget)
    plan = Plan.of(request)
    plan.check(engine)
    plan = plan.with_chooser(cost, plan.estimate_s(engine), cores, yes=False)
    doing = plan.begin(request, cost, cores)
    execution = campaign.Execution(
        engine=engine, jobs=cores, store=default_store(engine, None), allow_code=allow_code, note=note
    )
    report = campaign.run(
        doing.first(),
        campaign.new_folder() if out is None else Path(out),
        execution,
        request=request,
        resume=resume,
        latest=campaign.LATEST,
        also=also(request),
        more=doing.more,
    )
    return swept(report)


def swept(report: campaign.Report) -> Swept:
    """Write the data set of a sweep that has ended."""
    folder, rows = dataset.write(report.root, [done.path for done in report.runs])
    return Swept(report, folder, rows)


def jobs_of(engine: str, jobs: int | None) -> int:
    """The number of parallel runs."""
    return 1 if engines.get(engine).one_at_a_time else jobs or campaign.cores()


def default_store(engine: str, named: str | None) -> str | None:
    """The store of a sweep: by default none on the simulator, where a run costs less than its cache entry."""
    return None if named is None and engine == "sim" else place(named)


def also(request: Request) -> Also | None:
    """A function that computes the measures of a sweep's request."""
    texts = tuple(dict.fromkeys((*request.measures, *([request.adaptive] if request.adaptive is not None else []))))
    return partial(numbers, texts=texts) if texts else None


class Plan:
    """The points of a sweep, and the common parts of their runs."""

    def __init__(
        self,
        swept: SweepRuns,
        lists: Sequence[Point],
        ranges: Sequence[Parameter],
        points: Sequence[Point],
        seeds: range,
    ) -> None:
        self._swept = swept
        self._lists = lists
        self._ranges = ranges
        self._seeds = seeds
        self.one_by_one = points
        self.points = len(points)
        self.chooser: Chooser | None = None
        self.runs_per_point = swept.runs_per_point * len(seeds) * len(lists)

    @classmethod
    def of(cls, request: Request, *, yes: bool = False) -> Plan:
        """The points of a request, checked: each value alone where there are many; `yes` permits very many runs.

        BakeoffError for what cannot be, and for a measure that names a flow or a probe that no run has.
        """
        if request.sample is not None and request.adaptive is not None:
            raise UsageError("--sample and --adaptive: mutually exclusive")
        parameters = space.parse_over(request.over)
        [scenario] = request.patterns
        swept = SweepRuns(scenario, parameters, only=request.only, settings=request.settings)
        seeds = swept.seeds if request.seeds is None else request.seeds
        sample, adaptive = request.sample, request.adaptive is not None
        if adaptive:
            ranges = space.free(parameters, "--adaptive")
            others = [each for each in parameters if each not in ranges]
            lists: list[Point] = [
                dict(zip((each.key for each in others), values, strict=True))
                for values in product(*(each.values for each in others))
            ]
            corners: list[Point] = [
                {each.key: each.range.at(share) for each in ranges if each.range} for share in (0.0, 1.0)
            ]
            points: list[Point] = [{**corner, **lists[0]} for corner in corners]
        else:
            ranges, lists = [], [{}]
            points = space.grid(parameters, yes=yes) if sample is None else space.sample(parameters, sample, yes=yes)
        seed = 1 if request.seed is None else request.seed
        bounds.check_seed(seed)
        if seeds < 1:
            raise UsageError(f"--seeds: {seeds}; expected 1 or more")
        many = bounds.too_many_runs((1 if adaptive else len(points)) * len(lists) * swept.runs_per_point * seeds)
        if many is not None and not yes:
            raise UsageError(f"--over: {many}")
        swept.check(parameters, [*points, *({**points[0], **each} for each in lists)])
        for each in parameters:
            for value in dict.fromkeys(map(_hashable, (p[each.key] for p in points))):
                swept.runs({**points[0], each.key: value.value})
        plan = cls(swept, lists, ranges, points, range(seed, seed + seeds))
        plan._check_measures(request.measures, request.adaptive)
        return plan

    def with_chooser(self, budget: Budget, run_s: float, jobs: int, *, yes: bool) -> Plan:
        """The plan with a chooser of points, given the approximate cost of a run.

        BakeoffError for an adaptive sweep without a budget, and, unless `yes`, with one for very many runs.
        """
        if not self._ranges:
            self.chooser = Listed(self.one_by_one)
            return self
        room = budget.points(self.runs_per_point, run_s, jobs)
        if room is None:
            raise UsageError("--adaptive: missing --budget; expected for example --budget 200")
        many = bounds.too_many_runs(room * self.runs_per_point)
        if many is not None and not yes:
            raise UsageError(f"--budget: {many}")
        self.chooser = Adaptive(self._ranges, room)
        self.points = room
        return self

    def runs(self, point: Point) -> list[Run]:
        """All runs at a point: each combination of the lists, each run of the scenario, each seed."""
        return [run for each in self._lists for run in self._swept.runs({**point, **each}, self._seeds)]

    def once(self, point: Point) -> list[Run]:
        """Those of one seed at the first of the lists' values."""
        return self._swept.runs({**point, **self._lists[0]})

    def _check_measures(self, measures: Sequence[str], adaptive: str | None) -> None:
        """BakeoffError for an expression that names a flow or a probe that no run has."""
        for option, text in (*(("--measure", each) for each in measures), ("--adaptive", adaptive)):
            if text is not None:
                check_number(text, (run for point in self.one_by_one for run in self.once(point)), option)

    def check(self, engine: str) -> None:
        """NoKernelError if the engine lacks its kernel, BakeoffError if it cannot do the first run."""
        engines.get(engine).check(self._asked()[0])

    def estimate_s(self, engine: str) -> float:
        """The engine's estimate of the time of a run on one core (s)."""
        asked = self._asked()
        return sum(map(engines.get(engine).estimate_s, asked)) / len(asked)

    def _asked(self) -> list[Run]:
        """The runs by which the cost of all is told."""
        step = max(1, len(self.one_by_one) // _ASKED_AHEAD)
        return [self.once(point)[0] for point in self.one_by_one[::step]]

    def begin(
        self, request: Request, budget: Budget, jobs: int, tell: Callable[[Told], None] = lambda _: None
    ) -> Sweep:
        """The sweep as a campaign does it, once the plan has a chooser; `tell` gets the cost after the first runs."""
        assert self.chooser is not None
        return Sweep(self.chooser, self.runs, self.points, budget, jobs, request.adaptive, tell)


class _hashable:  # noqa: N801 (reads as a word)
    """A value by its words: a mapping is one, too."""

    def __init__(self, value: Any) -> None:  # noqa: ANN401 (plain data)
        self.value = value

    def __hash__(self) -> int:
        return hash(str(self.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _hashable) and str(self.value) == str(other.value)
