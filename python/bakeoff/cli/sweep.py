"""sweep: one scenario over many values of its parameters."""

from __future__ import annotations

import json
import shlex
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bakeoff.cli import complete
from bakeoff.cli.options import (
    AllowCode,
    Dask,
    Engine,
    FileSeeds,
    Fresh,
    Inventory,
    Jobs,
    Json,
    Kernel,
    Name,
    Note,
    Only,
    Out,
    Quiet,
    Resume,
    RunTimeout,
    Set,
    StopOnFailure,
    Verbose,
    Yes,
    detail,
    resume_command,
    seconds,
    tell_code,
    with_inventory,
    with_kernel,
)
from bakeoff.cli.run import counts, duration, execute, root_of
from bakeoff.errors import NoKernelError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bakeoff.campaign import Report
    from bakeoff.campaign.sweep_schedule import Budget, Chooser, Told
    from bakeoff.scenario import Run
    from bakeoff.scenario.sweep_points import Parameter, Point
    from bakeoff.scenario.sweep_runs import SweepRuns

_ASKED_AHEAD = 200
"""Runs whose cost is added up before any is done; of more the mean is taken."""


def sweep(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="SCENARIO",
            help="A scenario file, or the name of a scenario of the catalog; FILE::PATTERN for some of its runs.",
            autocompletion=complete.scenario,
        ),
    ],
    *,
    over: Annotated[
        list[str],
        typer.Option(
            "--over",
            metavar="KEY=VALUES",
            help="What is varied, as --set names it, or an axis of the scenario; a list A,B,C or a range lin:A..B:N or "
            "log:A..B:N; repeatable.",
        ),
    ],
    sample: Annotated[
        str | None,
        typer.Option(
            metavar="lhs:N|sobol:N",
            help="N points of a Latin hypercube or of a Sobol sequence over the ranges.",
            show_default="a grid of all values",
        ),
    ] = None,
    adaptive: Annotated[
        str | None,
        typer.Option(
            metavar="MEASURE",
            help="Choose points of the ranges where this expression of claims changes fastest; needs --budget.",
            show_default=False,
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            metavar="RUNS|TIME",
            help="At most so many runs, or about so much time, such as 500 or 10min.",
            show_default="no bound",
        ),
    ] = None,
    keep: Annotated[
        str,
        typer.Option(metavar="measures|series", help="What is kept of each run: its measures, or everything."),
    ] = "measures",
    measure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="EXPRESSION",
            help="A column of your own in the data set, in the language of claims; repeatable.",
        ),
    ] = None,
    engine: Engine = "sim",
    kernel: Kernel = None,
    inventory: Inventory = None,
    jobs: Jobs = None,
    dask: Dask = None,
    only: Only = None,
    set_: Set = None,
    seeds: FileSeeds = None,
    yes: Yes = False,
    allow_code: AllowCode = False,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|URL",
            help="Take runs that were done before from here, and keep new ones; 'none' does neither.",
            show_default="none on the simulator, whose runs cost less than keeping them twice; else as for run",
        ),
    ] = None,
    fresh: Fresh = False,
    run_timeout: RunTimeout = None,
    resume: Resume = False,
    stop: StopOnFailure = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check the points and say what they cost.")] = False,
    out: Out = None,
    name: Name = None,
    note: Note = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Do the runs of a scenario over many values of its parameters.

    The measures of all runs go into one Parquet data set besides, RESULTS/sweep, which DuckDB, polars and pandas
    read. Ends with 1 if a run failed, with 2 if something has to be put right first. Ctrl-C leaves whole results only;
    --resume does the rest.

    \b
    Examples:
      bakeoff sweep mine.yaml --over network.rtt=log:1ms..200ms:12 --over network.bottleneck.rate=5mbit,20mbit,100mbit
      bakeoff sweep mine.yaml --over network.rtt=log:1ms..200ms --over flows.0.count=lin:1..50 --sample sobol:256
      bakeoff sweep mine.yaml --over network.rtt=log:1ms..200ms:100 --budget 10min
      bakeoff sweep mine.yaml --over network.rtt=log:1ms..200ms --adaptive 'share("prague")' --budget 200
      bakeoff sweep l4s-tests/s6-rfc3168 -k pie --over network.rtt=lin:5ms..50ms:10 --measure 'ping_p99()'
      bakeoff sweep mine.yaml --over network.rtt=log:1ms..200ms:100 --dask ssh:one,one,two     on several machines
      bakeoff plot --kind heatmap --measure jain     draws the latest
    """
    from bakeoff import campaign, engines
    from bakeoff.campaign.store import place
    from bakeoff.campaign.sweep_schedule import Budget, Sweep
    from bakeoff.claims.evaluate import numbers
    from bakeoff.results import Request, dataset
    from bakeoff.scenario import parse_settings
    from bakeoff.scenario.sweep_points import parse_over
    from bakeoff.scenario.sweep_runs import SweepRuns

    if keep not in ("measures", "series"):
        raise UsageError(f"--keep: '{keep}'; expected measures or series")
    if sample is not None and adaptive is not None:
        raise UsageError("--sample and --adaptive both choose the points; expected one of them")
    engine = with_inventory(with_kernel(engine, kernel), inventory)
    if allow_code:
        engines.permit_code(engine)
    timeout_s = seconds("--run-timeout", run_timeout)
    under_way = jobs
    jobs = 1 if engines.get(engine).one_at_a_time else jobs or campaign.cores()
    texts = list(dict.fromkeys([*(measure or []), *([adaptive] if adaptive is not None else [])]))
    parameters = parse_over(over)
    cost = Budget.parse(budget)
    swept = SweepRuns(scenario, parameters, only=only, settings=parse_settings(set_ or ()))
    times = swept.seeds if seeds is None else seeds
    plan = _Plan.of(swept, parameters, times, sample=sample, adaptive=adaptive is not None, yes=yes)
    plan.check_measures(measure or [], adaptive)
    run_s = _estimate(plan, engine, dry_run=dry_run)
    plan = plan.with_chooser(cost, run_s, jobs, yes=yes)
    if dry_run:
        tell_code(plan.runs(plan.one_by_one[0]))
        _tell_plan(plan, cost, run_s, jobs, as_json=as_json, err=False)
        return
    root = root_of(out, name, resume=resume)
    if not quiet:
        _tell_plan(plan, cost, run_s, jobs, as_json=False, err=True)
    request = Request(
        kind="sweep", patterns=(scenario,), over=tuple(over), sample=sample, adaptive=adaptive, only=only, seeds=seeds,
        settings=parse_settings(set_ or ()), measures=tuple(measure or ()),
        kept="all" if keep == "series" else "measures",
    )  # fmt: skip
    given = {
        "--engine": engine if engine != "sim" else None, "--keep": keep if keep != "measures" else None,
        "--fresh": fresh, "--yes": yes, "--allow-code": allow_code, "--budget": budget, "--store": store,
        "--dask": dask, "--run-timeout": run_timeout, "--note": note,
    }  # fmt: skip
    execution = campaign.Execution(
        engine=engine, dask=dask, timeout_s=timeout_s, fresh=fresh, stop_on_failure=stop, allow_code=allow_code,
        # How many workers of Dask there are, Dask knows.
        jobs=jobs if dask is None else under_way, note=note,
        store=None if store is None and engine == "sim" else place(store),
    )  # fmt: skip

    def tell(told: Told) -> None:
        if not quiet:
            _tell_cost(plan, told, budget, jobs)

    assert plan.chooser is not None
    doing = Sweep(plan.chooser, plan.runs, plan.points, cost, jobs, adaptive, tell)
    report = execute(
        doing.first(),
        root,
        request,
        execution,
        resume=resume,
        latest=campaign.LATEST,
        again=resume_command(request, root, given),
        show=detail(quiet=quiet, verbose=verbose),
        also=partial(numbers, texts=tuple(texts)) if texts else None,
        more=doing.more,
        expected=lambda: doing.expected,
    )
    folder, rows = dataset.write(root, [done.path for done in report.runs])
    _tell(report, folder, rows, results_bytes=_size(root) if not quiet or as_json else 0, quiet=quiet, as_json=as_json)
    if report.failed:
        raise typer.Exit(1)


class _Plan:
    """The points of a sweep, with what their runs have in common."""

    def __init__(
        self,
        swept: SweepRuns,
        lists: Sequence[Point],
        ranges: Sequence[Parameter],
        points: Sequence[Point],
        seeds: int,
    ) -> None:
        self._swept = swept
        self._lists = lists
        self._ranges = ranges
        self._seeds = seeds
        self.one_by_one = points
        self.points = len(points)
        self.chooser: Chooser | None = None
        self.runs_per_point = swept.runs_per_point * seeds * len(lists)

    @classmethod
    def of(
        cls,
        swept: SweepRuns,
        parameters: Sequence[Parameter],
        seeds: int,
        *,
        sample: str | None,
        adaptive: bool,
        yes: bool,
    ) -> _Plan:
        """The points, checked: each value alone where there are many. BakeoffError for what cannot be."""
        from bakeoff.scenario import bounds
        from bakeoff.scenario import sweep_points as space

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
        if seeds < 1:
            raise UsageError(f"--seeds: {seeds}; expected 1 or more")
        many = bounds.too_many_runs((1 if adaptive else len(points)) * len(lists) * swept.runs_per_point * seeds)
        if many is not None and not yes:
            raise UsageError(f"--over: {many}")
        swept.check(parameters, [*points, *({**points[0], **each} for each in lists)])
        for each in parameters:
            for value in dict.fromkeys(map(_hashable, (p[each.key] for p in points))):
                swept.runs({**points[0], each.key: value.value})
        return cls(swept, lists, ranges, points, seeds)

    def with_chooser(self, budget: Budget, run_s: float, jobs: int, *, yes: bool) -> _Plan:
        """With what chooses the points, once the cost of a run is known about.

        BakeoffError for an adaptive sweep without a budget, and, unless `yes`, with one for very many runs.
        """
        from bakeoff.campaign.adaptive import Adaptive
        from bakeoff.campaign.sweep_schedule import Listed
        from bakeoff.scenario import bounds

        if not self._ranges:
            self.chooser = Listed(self.one_by_one)
            return self
        room = budget.points(self.runs_per_point, run_s, jobs)
        if room is None:
            raise UsageError("--adaptive: ends with its budget; expected --budget, such as --budget 200")
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

    def check_measures(self, measures: Sequence[str], adaptive: str | None) -> None:
        """BakeoffError for an expression that names a flow or a probe that no run has."""
        from bakeoff.claims.evaluate import check_number

        for option, text in (*(("--measure", each) for each in measures), ("--adaptive", adaptive)):
            if text is not None:
                check_number(text, (run for point in self.one_by_one for run in self.once(point)), option)


class _hashable:  # noqa: N801 (reads as a word)
    """A value by its words: a mapping is one, too."""

    def __init__(self, value: Any) -> None:  # noqa: ANN401 (plain data)
        self.value = value

    def __hash__(self) -> int:
        return hash(str(self.value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _hashable) and str(self.value) == str(other.value)


def _estimate(plan: _Plan, engine: str, *, dry_run: bool) -> float:
    """About how long a run takes on one core, as the engine says before it does any; it may lack its kernel then."""
    from bakeoff import engines

    module = engines.get(engine)
    step = max(1, len(plan.one_by_one) // _ASKED_AHEAD)
    runs = [plan.once(point)[0] for point in plan.one_by_one[::step]]
    try:
        module.check(runs[0])
    except NoKernelError as error:
        if not dry_run:
            raise
        typer.echo(f"not checked: {error}", err=True)
    return sum(map(module.estimate_s, runs)) / len(runs)


def _tell_plan(plan: _Plan, budget: Budget, run_s: float, jobs: int, *, as_json: bool, err: bool) -> None:
    room = budget.points(plan.runs_per_point, run_s, jobs)
    points = plan.points if room is None else min(plan.points, room)
    runs = points * plan.runs_per_point
    wall_s = runs * run_s / jobs
    if as_json:
        content = {
            "points": points, "runs": runs, "left_out": (plan.points - points) * plan.runs_per_point, "jobs": jobs,
            "estimated_wall_s": round(wall_s, 1),
        }  # fmt: skip
        typer.echo(json.dumps(content, indent=2))
        return
    text = f"{runs:,} runs at {points:,} points, about {duration(wall_s)} with {jobs} jobs"
    if points < plan.points:
        text += f"; the budget leaves out {plan.points - points:,} points"
    typer.echo(text, err=err)


def _tell_cost(plan: _Plan, told: Told, budget: str | None, jobs: int) -> None:
    """What the first runs say of the others."""
    typer.echo(
        f"{told.of} runs took {told.run_s:.2f} s each: "
        f"{told.points * plan.runs_per_point:,} runs at {told.points:,} points will be done, "
        f"the rest in about {duration(told.wall_s)} with {jobs} jobs",
        err=True,
    )
    if told.left_out:
        typer.echo(
            f"the budget of {budget} leaves out {told.left_out:,} of {told.points + told.left_out:,} points; those "
            "that are done lie evenly, and --resume with a larger --budget does the others",
            err=True,
        )


def _size(root: Path) -> int:
    from bakeoff.results.storage import size

    return size(root)


def _tell(report: Report, folder: Path, rows: int, *, results_bytes: int, quiet: bool, as_json: bool) -> None:
    if as_json:
        content = {
            "results": str(report.root),
            "data_set": str(folder),
            "rows": rows,
            "bytes": results_bytes,
            "wall_s": round(report.wall_s, 3),
            "failed": [{"run": done.key, "path": str(done.path), "error": done.error} for done in report.failed],
        }
        typer.echo(json.dumps(content, indent=2))
    elif not quiet:
        typer.echo(f"{counts(report)} in {report.wall_s:.1f} s")
        typer.echo(f"results:  {report.root} ({results_bytes / 1e6:,.1f} MB)")
        typer.echo(f"data set: {folder} ({rows:,} rows)")
        typer.echo(f"next:     bakeoff plot {shlex.quote(str(report.root))}")
