"""`bakeoff.run` and `bakeoff.duel`: runs from a notebook or a script."""

from __future__ import annotations

import atexit
import operator
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack, overload

from bakeoff import campaign, results
from bakeoff.api.result import Result, Results
from bakeoff.api.run_plan import MAX_SEEDS, RunPlan, observed
from bakeoff.arguments import check
from bakeoff.campaign.store import place
from bakeoff.duels import Duel
from bakeoff.errors import RunError, UsageError

if TYPE_CHECKING:
    from bakeoff.scenario import Run


class _Settings(TypedDict, total=False):
    """Keyword arguments of `duel`, except `seeds`."""

    qdisc: str
    rate: str
    rtt: str
    rtt2: str | None
    duration: str
    seed: int
    jobs: int | None
    engine: str
    out: Path | str | None
    trace: Sequence[str]
    capture: Sequence[str]
    store: str | None
    fresh: bool
    note: str | None


@overload
def duel(cc1: str | type, cc2: str | type, *, seeds: None = None, **settings: Unpack[_Settings]) -> Result: ...
@overload
def duel(cc1: str | type, cc2: str | type, *, seeds: int, **settings: Unpack[_Settings]) -> Results: ...
def duel(
    cc1: str | type,
    cc2: str | type,
    *,
    qdisc: str = Duel.qdisc,
    rate: str = Duel.rate,
    rtt: str = Duel.rtt,
    rtt2: str | None = Duel.rtt2,
    duration: str = Duel.duration,
    seed: int = 1,
    seeds: int | None = None,
    jobs: int | None = None,
    engine: str = "sim",
    out: Path | str | None = None,
    trace: Sequence[str] = (),
    capture: Sequence[str] = (),
    store: str | None = None,
    fresh: bool = False,
    note: str | None = None,
) -> Result | Results:
    """Run two bulk flows through one bottleneck and return the result, or with `seeds` the results of all repetitions.

    `qdisc` is in tc syntax; `rate`, `rtt`, `rtt2` (of the second flow, default `rtt`) and `duration` have units. A
    congestion control is a name with version and parameters, a class in a file (`./mycc.py:MyCC`) or a class object.
    `trace=["cc"]` records its internals (`Result.trace`); `capture=["mid>srv"]` or `["all"]` captures packets. `note`
    is stored with the results. `out` defaults to a temporary folder that is removed when Python exits. A finished duel
    is read from the `store` (a path, a URL or `none`; default: the user's) unless `fresh`. `seed` is the seed of the
    first repetition, `jobs` the number of parallel processes. BakeoffError for invalid input and unsupported features,
    RunError if a run failed.
    """
    from bakeoff import scenario

    for name, cc in (("cc1", cc1), ("cc2", cc2)):
        if not isinstance(cc, str | type):
            raise UsageError(f"duel: {name}: {cc!r}; expected a name such as 'cubic', a file's class or a class")
    check(
        "duel", qdisc=("text", qdisc), rate=("rate", rate), rtt=("time", rtt), rtt2=("time?", rtt2),
        duration=("time", duration), seed=("whole", seed), seeds=("whole?", seeds), jobs=("whole?", jobs),
        engine=("text", engine), out=("path?", out), trace=("texts", trace), capture=("texts", capture),
        store=("text?", store), fresh=("flag", fresh), note=("text?", note),
    )  # fmt: skip
    seed = operator.index(seed)
    if not 0 <= seed < 2**64:
        raise UsageError(f"duel: seed: {seed}; expected 0 or more, and less than 2^64")
    if seeds is not None and min(operator.index(seeds), seed) < 1:
        raise UsageError(f"duel: seeds: {seeds}, seed: {seed}; expected both at least 1")
    with ExitStack() as classes:
        names = [cc if isinstance(cc, str) else classes.enter_context(_named(cc)) for cc in (cc1, cc2)]
        wanted = Duel(cc1=names[0], cc2=names[1], qdisc=qdisc, rate=rate, rtt=rtt, rtt2=rtt2, duration=duration)
        runs = [scenario.duel(wanted, seed=seed + n) for n in range(1 if seeds is None else operator.index(seeds))]
        runs = observed([_with_sources(run, names, (cc1, cc2)) for run in runs], trace, capture)
        root = Path(tempfile.mkdtemp(dir=_temporary())) if out is None else Path(out)
        # A class object is known to this process only.
        alone = seeds is None or names != [cc1, cc2]
        execution = campaign.Execution(
            engine=engine, jobs=1 if alone else jobs, store=place(store), fresh=fresh, note=note
        )
        request = results.Request(kind="duel", patterns=(runs[0].run,))
        report = campaign.run(runs, root, execution, request=request)
    if report.failed:
        raise RunError(report.failed[0].error or "failed", place=report.failed[0].key)
    found = [Result.read(done.path) for done in report.runs]
    return found[0] if seeds is None else Results(found)


def run(
    patterns: str | Sequence[str] = (),
    *,
    only: str | None = None,
    settings: Mapping[str, Any] | None = None,
    seed: int | None = None,
    seeds: int | None = None,
    until: str | None = None,
    max_seeds: int = MAX_SEEDS,
    yes: bool = False,
    jobs: int | None = None,
    engine: str = "sim",
    out: Path | str | None = None,
    resume: bool = False,
    last_failed: bool = False,
    trace: Sequence[str] = (),
    capture: Sequence[str] = (),
    store: str | None = None,
    fresh: bool = False,
    note: str | None = None,
    allow_code: bool = False,
    strict: bool = False,
    progress: bool = False,
) -> Results:
    """Do all runs that match `patterns`, as `bakeoff run` does, and return their results in the same order.

    `only` is a further pattern, as `-k` of the command line. `settings` overrides values of the scenarios by path:
    `{"network.rtt": "40ms", "flows.0.cc": "bbr"}`. `seeds` is the number of repetitions (default: the scenario's, or
    1), with consecutive seeds from `seed` (default 1). `until="jain ±2%"` adds seeds until the half-width of the 95 %
    interval of the mean is at most this, up to `max_seeds`; see `Results.repetitions`. More than 100,000 runs need
    `yes`.

    `jobs` is the number of processes (default: one per core). `out` defaults to results/TIMESTAMP. `resume` skips the
    runs that are already in `out` (default: the latest campaign); `last_failed` repeats only the runs that failed
    there. Failed runs are included; see `Results.failed`. Runs that the engine refuses are skipped and listed in
    `Results.refused`; if it refuses all, or with `strict`, this is a BakeoffError. `allow_code` allows scenarios to
    execute Python files outside their folder. `trace`, `capture`, `store`, `fresh` and `note` as for `duel`.
    `progress` shows a progress bar. BakeoffError as for `campaign.run`.
    """
    check(
        "run", patterns=("names", patterns), only=("text?", only), settings=("mapping?", settings),
        seed=("whole?", seed), seeds=("whole?", seeds), until=("text?", until), max_seeds=("whole", max_seeds),
        yes=("flag", yes), jobs=("whole?", jobs), engine=("text", engine), out=("path?", out), resume=("flag", resume),
        last_failed=("flag", last_failed), trace=("texts", trace), capture=("texts", capture), store=("text?", store),
        fresh=("flag", fresh), note=("text?", note), allow_code=("flag", allow_code), strict=("flag", strict),
        progress=("flag", progress),
    )  # fmt: skip
    jobs = None if jobs is None else operator.index(jobs)
    if jobs is not None and jobs < 1:
        raise UsageError(f"run: jobs: {jobs}; expected at least 1")
    request = results.Request(
        patterns=(patterns,) if isinstance(patterns, str) else tuple(patterns),
        only=only,
        settings=dict(settings or {}),
        seed=None if seed is None else operator.index(seed),
        seeds=None if seeds is None else operator.index(seeds),
        trace=tuple(trace),
        capture=tuple(capture),
    )
    root = Path(out) if out is not None else campaign.latest() if resume or last_failed else campaign.new_folder()
    plan = RunPlan.of(
        request, root, engine, resume=resume, last_failed=last_failed, until=until,
        max_seeds=operator.index(max_seeds), yes=yes, allow_code=allow_code, strict=strict,
    )  # fmt: skip
    if not plan.runs:
        return Results([])
    execution = campaign.Execution(
        engine=plan.engine, jobs=jobs, store=place(store), fresh=fresh, allow_code=allow_code, note=note
    )
    with _bar(len(plan.runs)) if progress else nullcontext(campaign.Watch()) as watch:
        report = campaign.run(
            plan.runs, root, execution, request=plan.request, resume=plan.resume, latest=campaign.LATEST, watch=watch,
            also=plan.also, more=plan.more,
        )  # fmt: skip
    repetitions = plan.repetitions.all if plan.repetitions is not None else ()
    return Results([Result.read(done.path) for done in report.runs], plan.refused, repetitions)


@contextmanager
def _bar(total: int) -> Iterator[campaign.Watch]:
    """A progress bar of a campaign, on a terminal or in a notebook."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    with Progress(BarColumn(), MofNCompleteColumn(), TextColumn("runs"), TimeRemainingColumn()) as bar:
        task = bar.add_task("", total=total)
        yield campaign.Watch(on_done=lambda _: bar.advance(task))


def _named(cls: type) -> AbstractContextManager[str]:
    from bakeoff.engines import python_cc

    return python_cc.given(cls)


def _with_sources(run: Run, names: Sequence[str], ccs: Sequence[str | type]) -> Run:
    """The run with the SHA-256 of the source text of class objects."""
    classes = {name: cc for name, cc in zip(names, ccs, strict=True) if not isinstance(cc, str)}
    if not classes:
        return run
    from bakeoff.engines.python_cc import sha256

    flows = [
        flow.model_copy(update={"cc_sha256": sha256(classes[flow.cc])}) if flow.cc in classes else flow
        for flow in run.flows
    ]
    return run.model_copy(update={"flows": flows})


@cache
def _temporary() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="bakeoff-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
