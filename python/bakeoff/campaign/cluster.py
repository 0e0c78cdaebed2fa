"""Workers of Dask: processes of this machine, of others, or of a batch system, behind one scheduler.

A worker that sees the campaign's folder writes its runs there, as one on a shared file system does. Any other sends the
files of each run back. docs/campaigns.md is the description for users.
"""

from __future__ import annotations

import asyncio
import io
import logging
import tempfile
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal
from urllib.parse import urlsplit

import msgspec

from bakeoff import engines, results
from bakeoff.campaign import deploy, signals, worker
from bakeoff.campaign.archive import DamagedError, packed, unpack
from bakeoff.campaign.parallel import Pending, WorkerLostError
from bakeoff.campaign.worker import Done
from bakeoff.errors import BakeoffError, CampaignError
from bakeoff.version import MODEL_EPOCH, version

if TYPE_CHECKING:
    from bakeoff.scenario import Run

_PATIENCE_S: Final = 10.0
"""A scheduler may take this long for its first answer."""
_ANSWER_S: Final = 60.0
"""A scheduler may take this long for each later answer."""
_FRESH_S: Final = 0.5
"""For so long the number of workers counts as known."""
_ALONE_S: Final = 60.0
"""For so long workers that were started here may all be gone: each is started again, unless it ended as it began."""
_PLAIN: Final = ("msgpack",)
"""How answers may be encoded: Dask's other families unpickle them, which executes what a worker chooses."""


@dataclass(frozen=True)
class Expected:
    """What a worker has to be, for its runs to be those of this campaign."""

    bakeoff: str
    model_epoch: int
    engine: str
    versions: dict[str, str]


class _Answer(msgspec.Struct):
    """What `execute` gives of a run; see `Done`."""

    status: Literal["ok", "failed"]
    wall_s: Annotated[float, msgspec.Meta(ge=0)]
    error: str | None
    numbers: dict[str, float | None]
    archive: bytes | None
    """The run's files, unless they are in the campaign's folder already."""


class Cluster:
    """The workers behind a scheduler; see `parallel.Workers`."""

    def __init__(self, form: str, engine: str, jobs: int | None = None) -> None:
        """Reach or start what `form` names. At most `jobs` runs are under way (default: one per worker).

        BakeoffError if the form is none of `deploy.FORMS`, if no scheduler answers, or if a worker has another bakeoff
        than this one.
        """
        try:
            import distributed
        except ImportError:
            raise CampaignError(
                "--dask: needs the Python package distributed, which is not installed; "
                "install it: pip install 'bakeoff[dask]'"
            ) from None
        self._form = form
        self._jobs = jobs
        self._busy: dict[Pending, tuple[Run, Path]] = {}
        self._killed: set[Pending] = set()
        self._ended: SimpleQueue[Pending] = SimpleQueue()
        self._counted: tuple[float, int] = (-_FRESH_S, 0)
        self._alone_since_s: float | None = None
        self._expected = Expected(version(), MODEL_EPOCH, engine, engines.get(engine).versions())
        if deploy.is_address(form):
            _check_scheduler(form)
        # A Ctrl-C in the terminal is for this process: workers inherit that it is held back.
        signals.start_tracker()
        with signals.starting_workers():
            self._cluster = deploy.start(form, jobs)
        try:
            # Any: most of what distributed gives has no types.
            client: Any = distributed.Client
            self._client = client(
                form if self._cluster is None else self._cluster,
                timeout=_PATIENCE_S,
                set_as_default=False,
                deserializers=_PLAIN,
            )
            self._check_workers()
        except BaseException as error:
            self._close_all()
            if isinstance(error, OSError | TimeoutError):
                raise CampaignError(f"--dask {form}: the scheduler does not respond: {_named(error)}") from None
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
            self._counted = now_s, self._workers()
        slots = self._counted[1] * (2 if ahead else 1)
        return len(self._busy) < (slots if self._jobs is None else min(slots, self._jobs))

    def begin(self, run: Run, folder: Path, task: worker.Task, order: int) -> Pending:
        """See `Workers`."""
        key = f"{run.key}-{uuid.uuid4().hex}"
        future: Any = self._client.submit(
            execute, run, folder.absolute(), task, order, self._expected, key=key, pure=False
        )
        self._busy[future] = run, folder
        future.add_done_callback(self._ended.put)
        started: Pending = future
        return started

    def wait(self, timeout_s: float) -> Pending | None:
        """See `Workers`."""
        try:
            return self._ended.get(timeout=timeout_s)
        except Empty:
            return None

    def result(self, future: Any) -> Done:  # noqa: ANN401 (distributed's)
        """See `Workers`."""
        from distributed import CancelledError
        from distributed.scheduler import KilledWorker

        run, slot = self._busy.pop(future)
        if future in self._killed:
            self._killed.discard(future)
            raise WorkerLostError("its worker was stopped")
        try:
            answer = msgspec.msgpack.decode(future.result(), type=_Answer)
            if answer.archive is not None:
                with results.writing(slot) as partial:
                    unpack(io.BytesIO(answer.archive), partial)
        except KilledWorker as error:
            raise WorkerLostError(f"the worker {error.last_worker.address} ended", error.allowed_failures + 1) from None
        except CancelledError:
            raise self._gone() from None
        except (DamagedError, msgspec.MsgspecError, TypeError) as error:
            raise CampaignError(f"{slot}: corrupted in transfer from its worker: {error}") from None
        return Done(run.key, slot, answer.status, answer.wall_s, answer.error, answer.numbers)

    def kill(self, future: Any) -> None:  # noqa: ANN401 (distributed's)
        """See `Workers`."""
        if future in self._killed or future.done():
            return
        self._killed.add(future)
        key = future.key
        addresses = [address for address, keys in self._ask("processing").items() if key in keys]
        future.cancel()
        if addresses:
            with suppress(ValueError):  # nobody started it again who could
                self._client.restart_workers(addresses, raise_for_error=False)

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
        if self._workers():
            self._alone_since_s = None
        elif self._alone_since_s is None:
            self._alone_since_s = now_s
        elif now_s - self._alone_since_s > _ALONE_S:
            begun: list[Any] = list(self._busy)
            for future in begun:
                future.cancel()
            raise CampaignError(
                f"--dask {self._form}: lost all workers (out of memory, or killed); finished runs were kept, --resume "
                "continues"
            )

    def close(self) -> None:
        """See `Workers`."""
        self._close_all()

    def _gone(self) -> BakeoffError:
        return CampaignError(f"--dask {self._form}: lost the scheduler; finished runs were kept, --resume continues")

    def _workers(self) -> int:
        return len(self._ask("ncores"))

    def _ask(self, operation: str) -> Any:  # noqa: ANN401 (distributed's)
        """What the scheduler says to one of its operations that take nothing; BakeoffError if it does not answer."""
        try:
            return self._client.sync(getattr(self._client.scheduler, operation), callback_timeout=_ANSWER_S)
        except (OSError, TimeoutError):
            raise self._gone() from None

    def _check_workers(self) -> None:
        """BakeoffError if one of the workers that are there does not do for the runs of this campaign."""
        client = self._client
        try:
            answers = client.sync(client._run, unlike, self._expected, on_error="return", callback_timeout=_ANSWER_S)
        except TypeError:  # distributed's, of data that is no msgpack
            raise CampaignError(
                f"--dask {self._form}: a worker gave an invalid answer; expected the same bakeoff version"
            ) from None
        for address, answer in answers.items():
            if answer is not None:
                raise CampaignError(f"--dask {self._form}: the worker {address} {_problem_of(answer)}")

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
        return f"has {threads} threads; expected one (start it with --nthreads 1)"
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


def execute(run: Run, folder: Path, task: worker.Task, order: int, expected: Expected) -> bytes:
    """On a worker: do the run, in its folder if that is the campaign's, else in one whose files are given back.

    The answer is an encoded `_Answer`.
    """
    from distributed import get_worker

    # A worker may come later than the campaign began.
    problem = unlike(expected)
    if problem is not None:
        raise CampaignError(f"the worker {get_worker().address} {problem}")
    if _sees(folder, task):
        return _encoded(worker.execute(run, folder, task, order), None)
    with tempfile.TemporaryDirectory(prefix="bakeoff-") as temporary:
        done = worker.execute(run, Path(temporary) / "run", task, order)
        return _encoded(done, packed(done.path))


def _encoded(done: Done, archive: bytes | None) -> bytes:
    return msgspec.msgpack.encode(
        {
            "status": done.status,
            "wall_s": done.wall_s,
            "error": done.error,
            "numbers": dict(done.numbers),
            "archive": archive,
        }
    )


def _sees(folder: Path, task: worker.Task) -> bool:
    """Whether the campaign that has the folder here is the one that the run belongs to."""
    with suppress(BakeoffError, OSError):
        record = results.read_campaign(folder.parents[2])
        return record is not None and record.id == task.campaign
    return False


def _problem_of(answer: object) -> str:
    if isinstance(answer, BaseException):
        return f"cannot be used: {type(answer).__name__}: {answer}"
    return str(answer)


def _check_scheduler(form: str) -> None:
    """BakeoffError unless a scheduler of Dask answers at this address in time.

    distributed's client waits for ever for one that takes a connection and says nothing.
    """
    import distributed
    from distributed.comm import core as comms
    from distributed.core import send_recv

    # Any: distributed gives these no types.
    security: Any = distributed.Security
    connect: Any = comms.connect

    async def identity() -> Any:  # noqa: ANN401
        async with asyncio.timeout(_PATIENCE_S):
            comm = await connect(form, timeout=_PATIENCE_S, **security().get_connection_args("client"))
            try:
                return await send_recv(comm, op="identity", deserializers=_PLAIN)
            finally:
                comm.abort()

    try:
        address = urlsplit(form)
        known = bool(address.hostname) and address.port is not None and address.path == ""
    except ValueError:
        known = False
    if not known:
        raise CampaignError(f"--dask: invalid scheduler address '{form}'; expected {form[:3]}://HOST:PORT")
    logger = logging.getLogger("distributed")
    before = logger.level
    logger.setLevel(logging.CRITICAL + 1)  # it would write tracebacks of what the other side sends
    try:
        answer = asyncio.run(identity())
    except Exception as error:  # of any kind: the other side may send anything
        raise CampaignError(f"--dask {form}: cannot connect to the scheduler: {_named(error)}") from None
    finally:
        logger.setLevel(before)
    if not isinstance(answer, dict) or answer.get("type") != "Scheduler":
        raise CampaignError(f"--dask {form}: not a Dask scheduler")


def _named(error: BaseException) -> str:
    return f"{error}" or type(error).__name__
