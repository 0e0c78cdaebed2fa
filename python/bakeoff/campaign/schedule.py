"""The order of a campaign: check everything, skip what is there, run the rest in parallel, keep only whole results."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff import engines, files, results
from bakeoff.campaign import campaign_record, locations, lock, signals, worker
from bakeoff.campaign import store as stored
from bakeoff.campaign.execution import Execution, Watch
from bakeoff.campaign.parallel import Parallel, Workers
from bakeoff.campaign.processes import Processes
from bakeoff.campaign.run_queue import More, RunQueue, Waiting, folders, is_done
from bakeoff.campaign.store_access import StoreAccess
from bakeoff.campaign.worker import Done
from bakeoff.errors import BakeoffError, CampaignError, UnreachableError
from bakeoff.results import CampaignRecord, Provenance, Request, layout
from bakeoff.scenario import python_cc

if TYPE_CHECKING:
    from bakeoff.scenario import Run

_DEFAULT: Final = Execution()
_ANY: Final = Request()
_UNWATCHED: Final = Watch()


@dataclass(frozen=True)
class Report:
    """How a campaign ended: one entry per run, in the order the runs were given."""

    root: Path
    runs: list[Done]
    not_begun: int
    """Runs that a failure kept from beginning (`stop_on_failure`)."""
    wall_s: float
    """The time that it took."""
    not_stored: str | None = None
    """Why a run that ended well is not in the store; None if nothing went wrong there."""

    @property
    def failed(self) -> list[Done]:
        """The runs that failed, with the reason in `error`."""
        return [done for done in self.runs if done.status == "failed"]

    @property
    def skipped(self) -> list[Done]:
        """The runs whose results were there already."""
        return [done for done in self.runs if done.status == "skipped"]

    @property
    def taken(self) -> list[Done]:
        """The runs that came from the store."""
        return [done for done in self.runs if done.status == "taken"]


def run(
    runs: Sequence[Run],
    root: Path,
    execution: Execution = _DEFAULT,
    *,
    request: Request = _ANY,
    resume: bool = False,
    latest: Path | None = None,
    also: worker.Also | None = None,
    more: More | None = None,
    cluster: Callable[[], Workers] | None = None,
    watch: Watch = _UNWATCHED,
) -> Report:
    """Do all `runs` and leave their results in `root`/suite/scenario/run.

    One of the `execution`'s jobs at a time for an engine that shares what it needs; with one, the work is done in this
    process. With a timeout all is done in other processes. On Ctrl-C no other run begins, and what other processes have
    under way is waited for; a second Ctrl-C discards that.
    `request` is kept in the folder's campaign.json, and says what is left of a run that ended well. `also` takes
    numbers of each besides its measures. `more` is asked after each run which further ones are to be done because of
    it, and told how many wait: they join these. `cluster` gives workers elsewhere in place of those that the execution
    names, when there is something to do. `latest` is a link that leads to the folder from then on. With
    `resume` the campaign in the folder is continued: a run is skipped if its folder is whole, ok, of this campaign and
    of an equal resolved run; all others are made anew. A run that the store has is taken from there, unless `fresh`,
    and what is made is kept there, if the engine's runs can be repeated.

    BakeoffError, before anything is written: a run that the engine refuses, one that would execute a file without
    permission, a folder that another campaign is writing
    or that holds something already; with `resume` a folder whose campaign is another one, or was made by other
    versions. BakeoffError later: the file system refuses (full disk), or captures take too much. Then, and on
    KeyboardInterrupt, the runs that ended stay and no half-written folder does.
    """
    started = time.perf_counter()
    engine, jobs, kept = execution.engine, execution.jobs, request.kept
    timeout_s = execution.timeout_s
    made = campaign_record.provenance(execution.note)
    if execution.allow_code:
        engines.permit_code(engine)
    module = engines.get(engine)
    runs = [python_cc.permitted(each, allow_code=execution.allow_code) for each in runs]
    places = _checked(runs, root, module, jobs)
    if cluster is None and execution.dask is not None:
        cluster = partial(_dask, execution, watch)
    if module.one_at_a_time:
        _check_alone(engine, elsewhere=cluster is not None, timed=timeout_s is not None)
    jobs = 1 if module.one_at_a_time else jobs or cores()

    store = stored.at_place(execution.store) if isinstance(execution.store, str) else execution.store
    access = StoreAccess(
        store if module.repeatable else None, engine, module.versions(), kept, also, fresh=execution.fresh
    )
    queue = RunQueue(root, module, places, access, watch.on_done, more, execution.allow_code)
    signals.check_threads()
    with signals.unwinding(), _writable(root), lock.locked(root):
        runs_known = len(places) if more is None else None
        known = results.read_campaign(root)
        record = _claim(known, root, request, engine, module.versions(), made=made, resume=resume, runs=runs_known)
        results.discard_partials(root)
        queue.begin(record, kept, also)
        queue.check_captures()
        waiting = queue.waiting
        task = worker.Task(engine, record.id, made, kept, also)
        jobs = jobs if more is not None else min(jobs, len(waiting))
        doing = _one_by_one(waiting, task, watch.on_start)
        if waiting and (jobs > 1 or timeout_s is not None or cluster is not None):
            # Neither a run that waits for another is to be timed, nor one to begin after a failure that ends it all.
            ahead = timeout_s is None and not execution.stop_on_failure
            with _claimed(root, new=known is None):
                workers = Processes(jobs, module.estimate_s) if cluster is None else cluster()
            doing = Parallel(waiting, task, workers, watch.on_start, timeout_s, ahead).do(watch.on_interrupt)
        if latest is not None:
            locations.link_latest(latest, root)
        try:
            with closing(doing):
                for done in doing:
                    stop = execution.stop_on_failure and done.status == "failed"
                    queue.end(done, alone=stop)
                    queue.check_captures()
                    if stop:
                        waiting.clear()
        finally:
            # All workers have ended, and the lock says that nobody else writes: what is left was killed half-way.
            results.discard_partials(root)
            access.close()
    done_runs = queue.in_order()
    return Report(root, done_runs, len(places) - len(done_runs), time.perf_counter() - started, access.problem)


def _check_alone(engine: str, *, elsewhere: bool, timed: bool) -> None:
    """BakeoffError for what an engine cannot do whose runs are done one after the other."""
    if elsewhere:
        raise CampaignError(f"--dask: not valid with --engine {engine}; expected sim or kernel")
    if timed:
        raise CampaignError(f"--run-timeout: not valid with --engine {engine}; expected sim or kernel")


def _dask(execution: Execution, watch: Watch) -> Workers:
    """The workers of Dask that the execution names."""
    from bakeoff.campaign.cluster import Cluster

    workers = Cluster(execution.dask or "", execution.engine, execution.jobs)
    watch.on_cluster(workers.dashboard)
    return workers


def missing(runs: Sequence[Run], root: Path) -> list[Run]:
    """The runs of which the campaign in `root` has no whole result with all samples: those that resuming it would do.

    What a store has is among them. BakeoffError if a folder belongs to another campaign.
    """
    record = results.read_campaign(root) if root.is_dir() else None
    places = folders(runs, root)
    return [run for folder, run in places.items() if record is None or not is_done(folder, run, record)]


def accepted(runs: Sequence[Run], engine: str, *, exact: bool = False) -> tuple[list[Run], dict[str, str]]:
    """The runs that the engine can do, and of the others the reason by key, without the place that it begins with.

    `exact`: a run is refused too if a kernel would run another version of what it names.

    What differs in the seed only is asked for once. UnreachableError if a machine does not answer.
    """
    module = engines.get(engine)
    can: list[Run] = []
    refused: dict[str, str] = {}
    asked: dict[tuple[str, str, str], str | None] = {}
    for each in runs:
        name = (each.suite, each.scenario, each.run)
        if name not in asked:
            asked[name] = _refusal(module, each, exact=exact)
        why = asked[name]
        if why is None:
            can.append(each)
        else:
            refused[each.key] = why
    return can, refused


def _refusal(module: engines.Engine, run: Run, *, exact: bool) -> str | None:
    from bakeoff.engines.lab.versions import lacking

    try:
        configuration = module.check(run)
    except UnreachableError:
        raise
    except BakeoffError as error:
        return error.problem if error.place == engines.place(run) else str(error)
    return lacking(configuration) if exact else None


def cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _checked(runs: Sequence[Run], root: Path, module: engines.Engine, jobs: int | None) -> dict[Path, Run]:
    """Which folder each run goes to; BakeoffError for what can be said before anything is written."""
    if jobs is not None and jobs < 1:
        raise CampaignError(f"jobs: {jobs}; expected 1 or more")
    if not runs:
        raise CampaignError("no runs; expected one or more")
    for parent in root.resolve().parents:
        if (parent / layout.CAMPAIGN).exists():
            raise CampaignError(f"{root}: inside the folder of another campaign, {parent}; choose another --out")
    places = folders(runs, root)
    for each in places.values():
        module.check(each)
    return places


def _claim(
    record: CampaignRecord | None,
    root: Path,
    request: Request,
    engine: str,
    versions: dict[str, str],
    *,
    made: Provenance,
    resume: bool,
    runs: int | None,
) -> CampaignRecord:
    """The record of the campaign that `root` holds from now on, where `record` says which one it held before.

    BakeoffError if it holds files of another one, or of none.
    """
    if record is None and _holds_files(root):
        if not resume:
            raise CampaignError(f"{root}: not empty and not a campaign folder; choose another --out")
        raise CampaignError(
            f"{root}: no {layout.CAMPAIGN} in this results folder (of an older bakeoff?); choose another --out"
        )
    if record is None:
        return campaign_record.begin(root, request, engine, versions, made, runs=runs)
    if not resume:
        # Evaluations have no --resume: what they did is in the cache.
        resumed = "" if request.kind == "evaluate" else "continue its campaign with --resume, or "
        raise CampaignError(f"{root}: not empty; {resumed}choose another --out")
    campaign_record.check_same(root, record, request, engine, versions)
    return record


@contextmanager
def _claimed(root: Path, *, new: bool) -> Iterator[None]:
    """Give a `new` folder back, if no run is in it, when there are no workers for the campaign."""
    try:
        yield
    except BaseException:
        if new and not results.scan(root):
            (root / layout.CAMPAIGN).unlink(missing_ok=True)
        raise


def _holds_files(root: Path) -> bool:
    return any(path.name != lock.NAME and not path.is_dir() for path in root.rglob("*"))


@contextmanager
def _writable(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if (file := files.in_the_way(root)) is not None:
            raise CampaignError(f"{file}: not a folder; expected a results folder") from error
        raise CampaignError(
            f"{error.filename or root}: {error.strerror or error}{results.and_earlier(root)}"
        ) from error


def _one_by_one(
    waiting: deque[Waiting], task: worker.Task, begins: Callable[[Run], None]
) -> Generator[Done, None, None]:
    """Do the runs in this process, each when the one before was taken; who empties `waiting` ends that."""
    while waiting:
        folder, each, order = waiting.popleft()
        begins(each)
        yield worker.execute(each, folder, task, order)
