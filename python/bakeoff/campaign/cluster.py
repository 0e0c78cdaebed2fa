"""Workers of Dask: processes of this machine, of others, or of a batch system, behind one scheduler.

A worker that sees the campaign's folder writes its runs there, as one on a shared file system does. Any other sends the
files of each run back. docs/campaigns.md is the description for users.
"""

from __future__ import annotations

import io
import signal
import tempfile
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bakeoff import engines, results
from bakeoff.campaign import ending, worker
from bakeoff.campaign.archive import DamagedError, packed, unpack
from bakeoff.campaign.parallel import LostError, Pending
from bakeoff.campaign.worker import Done
from bakeoff.errors import BakeoffError
from bakeoff.version import MODEL_EPOCH, version

if TYPE_CHECKING:
    from types import ModuleType

    from bakeoff.scenario import Run

FORMS: Final = "tcp://HOST:PORT, tls://HOST:PORT, local:N, slurm:N or ssh:HOST,HOST"
_PATIENCE_S: Final = 10.0
"""For so long a scheduler may be silent when it is asked for the first time."""
_FRESH_S: Final = 0.5
"""For so long the number of workers counts as known."""
_ALONE_S: Final = 60.0
"""For so long workers that were started here may all be gone: each is started again, unless it ended as it began."""
_ENVIRONMENT: Final = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Of workers that are started here: each has one core, and one run."""

_SETTINGS: Final = {"distributed.worker.profile.enabled": False}
"""Of workers that are started here: what a run does is no secret, and a sample every 10 ms costs more than it tells."""


@dataclass(frozen=True)
class Expected:
    """What a worker has to be, for its runs to be those of this campaign."""

    bakeoff: str
    model_epoch: int
    engine: str
    versions: dict[str, str]


class Cluster:
    """The workers behind a scheduler; see `parallel.Workers`."""

    def __init__(self, form: str, engine: str, jobs: int | None = None) -> None:
        """Reach or start what `form` names. At most `jobs` runs are under way (default: one per worker).

        BakeoffError if the form is none of FORMS, if nobody answers, or if a worker is another bakeoff than this one.
        """
        try:
            import distributed
        except ImportError:
            raise BakeoffError(
                "--dask: needs the Python package distributed, which is not installed; "
                "install it: pip install 'bakeoff[dask]'"
            ) from None
        self._form = form
        self._jobs = jobs
        self._busy: dict[Pending, Path] = {}
        self._killed: set[Pending] = set()
        self._counted: tuple[float, int] = (-_FRESH_S, 0)
        self._alone_since_s: float | None = None
        self._expected = Expected(version(), MODEL_EPOCH, engine, engines.get(engine).versions())
        # A Ctrl-C in the terminal is for this process: workers inherit that it is held back.
        ending.start_tracker()
        with ending.starting_workers():
            self._cluster = _cluster(form, jobs)
        try:
            # Any: most of what distributed gives has no types.
            client: Any = distributed.Client
            self._client = client(
                form if self._cluster is None else self._cluster, timeout=_PATIENCE_S, set_as_default=False
            )
            self._check_workers()
        except (OSError, TimeoutError) as error:
            raise BakeoffError(f"--dask {form}: no scheduler answers: {error}") from None
        except BaseException:
            self._close_all()
            raise

    @property
    def dashboard(self) -> str:
        """The address of the page on which Dask shows what its workers do."""
        return str(self._client.dashboard_link)

    def free(self, run: Run, *, ahead: bool) -> bool:
        """See `Workers`. It is the same for all runs: Dask takes one away from a worker that is busy for long."""
        now_s = time.monotonic()
        if now_s - self._counted[0] > _FRESH_S:
            self.check()
            try:
                self._counted = now_s, len(self._client.nthreads())
            except (OSError, TimeoutError):
                raise self._gone() from None
        slots = self._counted[1] * (2 if ahead else 1)
        return len(self._busy) < (slots if self._jobs is None else min(slots, self._jobs))

    def begin(self, run: Run, folder: Path, task: worker.Task, order: int) -> Pending:
        """See `Workers`."""
        key = f"{run.key}-{uuid.uuid4().hex}"
        future: Pending = self._client.submit(
            execute, run, folder.absolute(), task, order, self._expected, key=key, pure=False
        )
        self._busy[future] = folder
        return future

    def result(self, future: Pending) -> Done:
        """See `Workers`."""
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        place = self._busy.pop(future)
        if future in self._killed:
            self._killed.discard(future)
            raise LostError("its worker was ended")
        try:
            found: tuple[Done, bytes | None] = future.result()
        except KilledWorker as error:
            raise LostError(f"the worker {error.last_worker.address} ended", error.allowed_failures + 1) from None
        except CancelledError:
            raise self._gone() from None
        done, archive = found
        if archive is not None:
            try:
                with results.writing(place) as partial:
                    unpack(io.BytesIO(archive), partial)
            except DamagedError as error:
                raise BakeoffError(f"{place}: came damaged from its worker: {error}") from None
        return replace(done, path=place)

    def kill(self, future: Any) -> None:  # noqa: ANN401 (distributed's)
        """See `Workers`."""
        if future in self._killed or future.done():
            return
        self._killed.add(future)
        key = future.key
        where = [address for address, keys in self._client.processing().items() if key in keys]
        future.cancel()
        if where:
            with suppress(ValueError):  # nobody started it again who could
                self._client.restart_workers(where, raise_for_error=False)

    def check(self) -> None:
        """See `Workers`."""
        if self._client.status != "running":
            raise self._gone()
        self._check_alone()

    def _check_alone(self) -> None:
        """Nobody starts a worker again that ended while it was starting, and without one no run ends."""
        if not self._form.startswith("local"):
            return  # others may start some at any time
        now_s = time.monotonic()
        try:
            workers = len(self._client.nthreads())
        except (OSError, TimeoutError):
            raise self._gone() from None
        if workers:
            self._alone_since_s = None
        elif self._alone_since_s is None:
            self._alone_since_s = now_s
        elif now_s - self._alone_since_s > _ALONE_S:
            begun: list[Any] = list(self._busy)
            for future in begun:
                future.cancel()
            raise BakeoffError(
                f"--dask {self._form}: no worker is left: out of memory, or killed; "
                "the runs that ended were kept, --resume does the others"
            )

    def close(self) -> None:
        """See `Workers`."""
        self._close_all()

    def _gone(self) -> BakeoffError:
        return BakeoffError(
            f"--dask {self._form}: the scheduler is gone; the runs that ended were kept, --resume does the others"
        )

    def _check_workers(self) -> None:
        answers = self._client.run(unlike, self._expected, on_error="return")
        for address, answer in answers.items():
            if answer is not None:
                raise BakeoffError(f"--dask {self._form}: the worker {address} {_said(answer)}")

    def _close_all(self) -> None:
        for each in (getattr(self, "_client", None), self._cluster):
            if each is not None:
                with suppress(OSError, TimeoutError):
                    each.close()


def unlike(expected: Expected, dask_worker: Any = None) -> str | None:  # noqa: ANN401 (distributed's name and type)
    """On a worker: what keeps its runs from being those of the campaign, or None."""
    from distributed import get_worker

    threads = (dask_worker or get_worker()).state.nthreads
    if threads != 1:
        return f"has {threads} threads; expected one, because a run needs a process: start it with --nthreads 1"
    if (version(), MODEL_EPOCH) != (expected.bakeoff, expected.model_epoch):
        return (
            f"has bakeoff {version()} of model epoch {MODEL_EPOCH}; "
            f"expected {expected.bakeoff} of model epoch {expected.model_epoch}, as here"
        )
    here = engines.get(expected.engine).versions()
    for name in sorted({*here, *expected.versions}):
        if here.get(name) != expected.versions.get(name):
            return f"has {name} {here.get(name)}; expected {expected.versions.get(name)}, as here"
    return None


def execute(run: Run, folder: Path, task: worker.Task, order: int, expected: Expected) -> tuple[Done, bytes | None]:
    """On a worker: do the run, in its folder if that is the campaign's, else in one whose files are given back."""
    from distributed import get_worker

    # A worker may come later than the campaign began.
    problem = unlike(expected)
    if problem is not None:
        raise BakeoffError(f"the worker {get_worker().address} {problem}")
    if _sees(folder, task):
        return worker.execute(run, folder, task, order), None
    with tempfile.TemporaryDirectory(prefix="bakeoff-") as temporary:
        done = worker.execute(run, Path(temporary) / "run", task, order)
        return done, packed(done.path)


def _sees(folder: Path, task: worker.Task) -> bool:
    """Whether the campaign that has the folder here is the one that the run belongs to."""
    with suppress(BakeoffError, OSError):
        record = results.read_campaign(folder.parents[2])
        return record is not None and record.id == task.campaign
    return False


def _said(answer: object) -> str:
    if isinstance(answer, BaseException):
        return f"cannot be used: {type(answer).__name__}: {answer}"
    return str(answer)


def _cluster(form: str, jobs: int | None) -> Any:  # noqa: ANN401 (of several packages)
    """What is started for a form; None for a scheduler that is there already."""
    kind, _, rest = form.partition(":")
    if kind in ("tcp", "tls") and rest.startswith("//"):
        return None
    start = {"local": _local, "slurm": slurm, "ssh": _ssh}.get(kind)
    if start is None:
        raise BakeoffError(f"--dask: '{form}' names no workers; expected {FORMS}")
    try:
        import dask

        with dask.config.set(_SETTINGS):
            return start(rest, jobs)
    except BakeoffError:
        raise
    except Exception as error:  # each package has exceptions of its own
        raise BakeoffError(f"--dask {form}: cannot be started: {error or type(error).__name__}") from error


def _count(form: str, text: str, otherwise: int | None) -> int:
    if not text and otherwise is not None:
        return otherwise
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 100_000:
        raise BakeoffError(f"--dask: '{form}:{text}'; expected a number of workers, such as {form}:8")
    return int(text)


def _local(rest: str, jobs: int | None) -> Any:  # noqa: ANN401
    import distributed

    start: Any = distributed.LocalCluster
    count = _count("local", rest, jobs)
    return start(
        n_workers=count, threads_per_worker=1, dashboard_address="127.0.0.1:0", env=_ENVIRONMENT, silence_logs=50
    )


def jobqueue() -> ModuleType:
    """The package dask_jobqueue, imported so that a Ctrl-C stays the campaign's.

    It takes SIGINT when it is imported, and would end the process with 0 and without a word.
    """
    before = signal.getsignal(signal.SIGINT)
    import dask_jobqueue

    signal.signal(signal.SIGINT, before)
    return dask_jobqueue


def slurm(rest: str, jobs: int | None) -> Any:  # noqa: ANN401
    """Workers as jobs of SLURM, with all options of Dask's own configuration (jobqueue.slurm)."""
    import dask

    start: Any = vars(jobqueue())["SLURMCluster"]
    count = _count("slurm", rest, jobs)
    cores = dask.config.get("jobqueue.slurm.cores", None)
    if not isinstance(cores, int) or dask.config.get("jobqueue.slurm.memory", None) is None:
        raise BakeoffError(
            "--dask slurm: Dask's configuration says nothing of jobqueue.slurm.cores and jobqueue.slurm.memory; "
            "expected for example ~/.config/dask/jobqueue.yaml with both"
        )
    prologue = [f"export {name}={value}" for name, value in _ENVIRONMENT.items()]
    prologue += dask.config.get("jobqueue.slurm.job-script-prologue", None) or []
    # One process for each core: a run needs one of its own.
    cluster = start(processes=cores, job_script_prologue=prologue)
    cluster.scale(count)
    return cluster


def _ssh(rest: str, _: int | None) -> Any:  # noqa: ANN401
    from distributed import SSHCluster

    hosts = rest.split(",")
    if not all(hosts):
        raise BakeoffError(f"--dask: 'ssh:{rest}'; expected names of machines, such as ssh:one,one,two")
    # The first has the scheduler, too. Each time that a machine is named it gets a worker.
    return SSHCluster(
        [hosts[0], *hosts],
        worker_options={"nthreads": 1},
        scheduler_options={"port": 0, "dashboard_address": ":0"},
    )
