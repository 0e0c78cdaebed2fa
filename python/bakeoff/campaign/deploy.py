"""Start a scheduler and workers of Dask, all connections between them under TLS.

Dask executes what it is sent, and authenticates by certificates only: without them every user of a machine can execute
code as the one who started a worker there. Each cluster has a key of its own, which is never written to a command line.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Any, Final

from bakeoff.errors import BakeoffError, CampaignError

if TYPE_CHECKING:
    from types import ModuleType

FORMS: Final = "tcp://HOST:PORT, tls://HOST:PORT, local:N, slurm:N or ssh:HOST,HOST"
ENVIRONMENT: Final = {"POLARS_MAX_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Of workers that are started here: each has one core, and one run."""
_SETTINGS: Final = {"distributed.worker.profile.enabled": False}
"""Of workers that are started here: a sample every 10 ms costs more than it tells."""


def is_address(form: str) -> bool:
    """Whether the form names a scheduler that runs already."""
    return form.startswith(("tcp://", "tls://"))


def start(form: str, jobs: int | None) -> Any:  # noqa: ANN401 (of several packages)
    """The cluster that a form describes, started; None for a scheduler that runs already.

    `jobs` is the number of workers where the form gives none. BakeoffError if the form is none of FORMS, or if the
    cluster cannot be started.
    """
    if is_address(form):
        return None
    kind, _, rest = form.partition(":")
    started = {"local": _local, "slurm": slurm, "ssh": _ssh}.get(kind)
    if started is None:
        raise CampaignError(f"--dask: invalid workers '{form}'; expected {FORMS}")
    try:
        import dask

        with dask.config.set(_SETTINGS):
            return started(rest, jobs)
    except BakeoffError:
        raise
    except Exception as error:  # each package has exceptions of its own
        raise CampaignError(f"--dask {form}: cannot be started: {error or type(error).__name__}") from error


def _security() -> Any:  # noqa: ANN401 (distributed has no types)
    """A certificate for this cluster only: who does not have its key reaches neither scheduler nor workers."""
    import distributed

    security: Any = distributed.Security
    try:
        return security.temporary()
    except ImportError:
        raise CampaignError(
            "--dask: needs the Python package cryptography, which is not installed; install it: pip install "
            "'bakeoff[dask]'"
        ) from None


def _count(form: str, text: str, otherwise: int | None) -> int:
    if not text and otherwise is not None:
        return otherwise
    if not (text.isascii() and text.isdigit()) or not 1 <= int(text) <= 100_000:
        raise CampaignError(f"--dask: '{form}:{text}'; expected a number of workers, such as {form}:8")
    return int(text)


def _local(rest: str, jobs: int | None) -> Any:  # noqa: ANN401
    import distributed

    cluster: Any = distributed.LocalCluster
    return cluster(
        n_workers=_count("local", rest, jobs),
        threads_per_worker=1,
        dashboard_address="127.0.0.1:0",
        env=ENVIRONMENT,
        silence_logs=50,
        security=_security(),
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

    cluster: Any = vars(jobqueue())["SLURMCluster"]
    count = _count("slurm", rest, jobs)
    cores = dask.config.get("jobqueue.slurm.cores", None)
    if not isinstance(cores, int) or dask.config.get("jobqueue.slurm.memory", None) is None:
        raise CampaignError(
            "--dask slurm: jobqueue.slurm.cores and jobqueue.slurm.memory are missing in Dask's configuration; "
            "expected for example ~/.config/dask/jobqueue.yaml with both"
        )
    prologue = [f"export {name}={value}" for name, value in ENVIRONMENT.items()]
    prologue += dask.config.get("jobqueue.slurm.job-script-prologue", None) or []
    # One process for each core: a run needs one of its own. The key is a file of mode 600 while the cluster lasts.
    started = cluster(
        processes=cores,
        job_script_prologue=prologue,
        security=_security(),
        shared_temp_directory=dask.config.get("jobqueue.slurm.shared-temp-directory", None) or "~",
    )
    started.scale(count)
    return started


def _ssh(rest: str, _: int | None) -> Any:  # noqa: ANN401
    from distributed import SpecCluster

    from bakeoff.campaign.deploy_ssh import Scheduler, Worker

    hosts = rest.split(",")
    if not all(hosts):
        raise CampaignError(f"--dask: 'ssh:{rest}'; expected host names, such as ssh:one,one,two")
    security = _security()
    # The first has the scheduler, too. Each time that a machine is named it gets a worker.
    scheduler = {"cls": Scheduler, "options": {"host": hosts[0], "security": security}}
    workers = {
        number: {"cls": Worker, "options": {"host": host, "security": security}} for number, host in enumerate(hosts)
    }
    cluster: Any = SpecCluster
    return cluster(workers, scheduler, security=security, name="bakeoff")
