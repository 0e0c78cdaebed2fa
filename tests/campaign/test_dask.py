"""Runs by workers of Dask: the same results as here, workers that die, schedulers that go, and what is refused."""

import asyncio
import importlib.util
import os
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from types import SimpleNamespace

import pytest

from bakeoff import results
from bakeoff.campaign import Execution, Watch, cluster, deploy
from bakeoff.campaign.cluster import Cluster
from bakeoff.errors import BakeoffError
from fakes import engine
from fakes.runs import make, run_campaign, words

dask = pytest.importorskip("dask", reason="the extra dask is not installed")
distributed = pytest.importorskip("distributed", reason="the extra dask is not installed")
pytestmark = pytest.mark.usefixtures("fake_engine")


@pytest.fixture
def scheduler():
    """A scheduler with a worker in a thread of this process, for what needs no process that dies."""
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address="127.0.0.1:0"
    ) as local:
        yield local


def content(root: Path) -> dict[str, bytes]:
    """All files of the whole runs, but for what holds times and the campaign's id."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for run in results.scan(root)
        for path in run.iterdir()
        if path.name != "run.json"
    }


@pytest.fixture
def undisturbed(tmp_path):
    """The files of the runs a, b and c."""
    run_campaign([make(name) for name in "abc"], tmp_path / "undisturbed", Execution(jobs=1))
    return content(tmp_path / "undisturbed")


def test_a_worker_process_that_is_killed_costs_no_run(tmp_path, undisturbed):
    died = tmp_path / "died"
    runs = [make("a"), make("b", does="dies-once", died=str(died)), make("c")]
    report = run_campaign(runs, tmp_path / "c", cluster=lambda: Cluster("local:2", "fake"))
    assert died.exists()
    assert [(done.key, done.status) for done in report.runs] == [(run.key, "ok") for run in runs]
    assert content(tmp_path / "c") == undisturbed
    assert results.survey(tmp_path / "c").half_written == []


def test_a_worker_that_does_not_see_the_folder_sends_files(tmp_path, undisturbed, scheduler, monkeypatch):
    elsewhere = []
    monkeypatch.setattr(cluster, "_sees", lambda folder, task: elsewhere.append(folder))
    monkeypatch.chdir(tmp_path)
    runs = [*(make(name) for name in "abc"), make("broken", does="violates")]
    report = run_campaign(runs, Path("c"), cluster=lambda: Cluster(scheduler.scheduler_address, "fake"))
    assert [done.status for done in report.runs] == ["ok", "ok", "ok", "failed"]
    assert report.runs[0].path == Path("c/fake/s1-first/a")
    assert len(elsewhere) == 4
    assert {name: text for name, text in content(Path("c")).items() if "broken" not in name} == undisturbed
    assert results.read(report.runs[3].path).record.error.startswith("conservation")


def test_only_the_folder_of_this_campaign_is_seen(tmp_path):
    report = run_campaign([make("a")], tmp_path / "c", Execution(jobs=1))
    task = SimpleNamespace(campaign=results.read_campaign(tmp_path / "c").id)
    assert cluster._sees(report.runs[0].path, task)
    assert not cluster._sees(report.runs[0].path, SimpleNamespace(campaign="another"))
    assert not cluster._sees(tmp_path / "other/fake/s1-first/a", task)


def test_a_scheduler_that_goes_ends_the_campaign(tmp_path, undisturbed, scheduler):
    runs = [make(name) for name in "abc"]
    with pytest.raises(BakeoffError, match=r"lost the scheduler; .* --resume continues"):
        run_campaign(
            runs,
            tmp_path / "c",
            cluster=lambda: Cluster(scheduler.scheduler_address, "fake", jobs=1),
            watch=Watch(on_done=lambda _: scheduler.close()),
        )
    assert [path.name for path in results.scan(tmp_path / "c")][:1] == ["a"]
    run_campaign(runs, tmp_path / "c", Execution(jobs=1), resume=True)
    assert content(tmp_path / "c") == undisturbed


def test_workers_that_nobody_starts_again_end_the_campaign(tmp_path, undisturbed, scheduler, monkeypatch):
    monkeypatch.setattr(deploy, "_local", lambda *_: scheduler)
    monkeypatch.setattr(cluster, "_ALONE_S", 0.0)
    runs = [make(name) for name in "abc"]

    def workers():
        begun = Cluster("local:1", "fake")
        begun._client.retire_workers()
        return begun

    with pytest.raises(BakeoffError, match=r"--dask local:1: lost all workers .* --resume continues"):
        run_campaign(runs, tmp_path / "c", cluster=workers)
    run_campaign(runs, tmp_path / "c", Execution(jobs=1), resume=True)
    assert content(tmp_path / "c") == undisturbed


def test_a_worker_of_another_bakeoff_is_refused():
    worker = SimpleNamespace(state=SimpleNamespace(nthreads=1))
    same = cluster.Expected(cluster.version(), cluster.MODEL_EPOCH, "fake", {"bakeoff": cluster.version()})
    assert cluster.unlike(same, worker) is None
    older = replace(same, model_epoch=1)
    assert cluster.unlike(older, worker) == (
        f"has bakeoff {same.bakeoff} of model epoch {same.model_epoch}; "
        f"expected {same.bakeoff} of model epoch 1, as here"
    )
    kernel = replace(same, versions=same.versions | {"kernel fingerprint": "abc"})
    assert cluster.unlike(kernel, worker) == "has kernel fingerprint None; expected abc, as here"


def test_a_refusal_names_the_worker(tmp_path):
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, protocol="tcp://", dashboard_address="127.0.0.1:0"
        ) as local,
        pytest.raises(BakeoffError, match=r"the worker tcp://127.0.0.1:\d+ has 2 threads; .* with --nthreads 1"),
    ):
        Cluster(local.scheduler_address, "fake")


def test_the_command_says_where_the_dashboard_is(tmp_path, cli, scheduler, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, out, err = cli(*words("run", "fake/s1*", "--out", "c", "--dask", scheduler.scheduler_address))
    assert (code, out.splitlines()[0].rpartition(" in ")[0]) == (0, "3 runs: 3 done")
    assert f"dask: dashboard at {scheduler.dashboard_link}\n" in err


@pytest.mark.parametrize(
    ("form", "message"),
    [
        ("nowhere", "invalid workers 'nowhere'; expected tcp://HOST:PORT"),
        ("local:0", "'local:0'; expected a number of workers, such as local:8"),
        ("local:", "'local:'; expected a number"),
        ("ssh:one,,two", "'ssh:one,,two'; expected host names, such as"),
        ("slurm:2", "jobqueue.slurm.cores and jobqueue.slurm.memory are missing in Dask's configuration;"),
        ("tcp://127.0.0.1:1", "cannot connect to the scheduler:"),
    ],
)
def test_what_names_no_workers_is_refused(form, message, monkeypatch):
    monkeypatch.setattr(cluster, "_PATIENCE_S", 0.1)
    with pytest.raises(BakeoffError) as refused:
        Cluster(form, "fake")
    assert message in str(refused.value)


def test_machines_that_share_nothing_do_not_take_part(tmp_path, monkeypatch):
    monkeypatch.setattr(engine.Fake, "one_at_a_time", True)
    with pytest.raises(BakeoffError, match="--dask: not valid with --engine fake"):
        run_campaign([make("a")], tmp_path / "c", cluster=lambda: Cluster("local:1", "fake"))


def test_each_name_of_a_machine_is_a_worker(monkeypatch):
    asked = []
    monkeypatch.setattr(distributed, "SpecCluster", lambda workers, scheduler, **_: asked.append((workers, scheduler)))
    deploy._ssh("one,one,two", None)
    [(workers, scheduler)] = asked
    assert scheduler["options"]["host"] == "one"
    assert [each["options"]["host"] for each in workers.values()] == ["one", "one", "two"]


@pytest.mark.skipif(importlib.util.find_spec("dask_jobqueue") is None, reason="the extra dask is not installed")
def test_a_ctrl_c_stays_the_campaigns():
    told = "import signal; from bakeoff.campaign import deploy; before = signal.getsignal(signal.SIGINT)"
    told += "; deploy.jobqueue(); assert signal.getsignal(signal.SIGINT) is before"
    subprocess.run([sys.executable, "-c", told], check=True)


def test_slurm_gets_a_job_with_a_process_for_each_core(tmp_path, monkeypatch):
    if importlib.util.find_spec("dask_jobqueue") is None:
        pytest.skip("the extra dask is not installed")
    deploy.jobqueue()
    for name in ("sbatch", "scancel"):
        (tmp_path / name).write_text("#!/bin/sh\necho Submitted batch job 7\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    settings = {"cores": 4, "memory": "8GB", "account": "lab", "walltime": "02:00:00", "interface": "lo"}
    with dask.config.set({f"jobqueue.slurm.{name}": value for name, value in settings.items()}):
        started = deploy.slurm("2", None)
        try:
            script = started.job_script()
        finally:
            started.close()
    for line in ("#SBATCH -A lab", "#SBATCH --cpus-per-task=4", "#SBATCH --mem=8G", "#SBATCH -t 02:00:00"):
        assert f"{line}\n" in script
    assert "export POLARS_MAX_THREADS=1\n" in script
    assert "--nthreads 1 " in script
    assert "--nworkers 4 " in script
    assert "--tls-key" in script


# Who may execute code: those who have the key of the cluster.


class Evil:
    """Unpickled, it makes a file."""

    def __init__(self, made: Path) -> None:
        self.made = made

    def __reduce__(self):
        return os.mkdir, (str(self.made),)


def refused(address: str, security) -> bool:
    """Whether nothing is executed for a client with this key."""
    try:
        with distributed.Client(address, security=security, timeout=2, set_as_default=False) as client:
            client.run_on_scheduler(lambda: None)
    except (OSError, TimeoutError):
        return True
    return False


def test_workers_of_this_machine_take_no_orders_of_others():
    begun = Cluster("local:1", "fake")
    try:
        workers = begun._client.scheduler_info()["workers"]
        addresses = [begun._cluster.scheduler_address, *workers, *(each["nanny"] for each in workers.values())]
        assert len(addresses) == 3
        for address in addresses:
            assert address.startswith("tls://127.0.0.1:")
        assert refused(addresses[0].replace("tls://", "tcp://"), None)
        assert refused(addresses[0], distributed.Security.temporary())
        assert not refused(addresses[0], begun._cluster.security)
    finally:
        begun.close()


@pytest.mark.parametrize("lies", ["unlike", "execute"])
def test_what_a_worker_answers_is_not_unpickled(tmp_path, scheduler, monkeypatch, lies):
    made = tmp_path / "made"

    def lie(*_, **__) -> Evil:
        return Evil(made)

    monkeypatch.setattr(cluster, lies, lie)
    with pytest.raises(BakeoffError, match=r"gave an invalid answer|corrupted in transfer from its worker:"):
        run_campaign([make("a")], tmp_path / "c", cluster=lambda: Cluster(scheduler.scheduler_address, "fake"))
    assert not made.exists()


@pytest.mark.parametrize("answer", [b"", b"\xc1", b"\x80", b"\x85\xa6status\xa7skipped"])
def test_an_answer_of_another_form_is_refused(tmp_path, scheduler, monkeypatch, answer):
    monkeypatch.setattr(cluster, "execute", lambda *_, **__: answer)
    with pytest.raises(BakeoffError, match=r"c/fake/s1-first/a: corrupted in transfer from its worker: "):
        run_campaign([make("a")], tmp_path / "c", cluster=lambda: Cluster(scheduler.scheduler_address, "fake"))
    assert results.scan(tmp_path / "c") == []


@pytest.fixture
def listening(tmp_path, monkeypatch):
    """Make a server of this machine that says something to whoever connects, and nothing more."""
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:

        def listen(says: bytes) -> int:
            server = stack.enter_context(socket.create_server(("127.0.0.1", 0)))

            def serve() -> None:
                taken = []
                with suppress(OSError):  # closed
                    while True:
                        taken.append(server.accept()[0])
                        taken[-1].sendall(says)

            Thread(target=serve, daemon=True).start()
            return server.getsockname()[1]

        yield listen


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ("tcp://127.0.0.1:{port}", b""),
        ("tcp://127.0.0.1:{port}", b"HTTP/1.1 400 Bad Request\r\n\r\n" * 9),
        ("tcp://127.0.0.1:{port}", (1 << 62).to_bytes(8, "little") + b"x" * 99),
        ("tcp://127.0.0.1:{port}", bytes(999)),
        ("tls://127.0.0.1:{port}", b""),
        ("tcp://127.0.0.1", None),
        ("tls://127.0.0.1", None),
        ("tcp://", None),
        ("tcp://127.0.0.1:65536", None),
        ("tcp://[::1", None),
        ("tcp://127.0.0.1:8786/x", None),
    ],
)
def test_what_is_no_scheduler_is_refused_and_nothing_is_claimed(cli, listening, monkeypatch, form, says):
    monkeypatch.setattr(cluster, "_PATIENCE_S", 0.3)
    address = form if says is None else form.format(port=listening(says))
    code, out, err = cli(*words("run", "fake/s1*", "--out", "c", "--dask", address))
    assert (code, out, err.count("\n")) == (2, "", 1)
    if says is None:
        assert err == f"bakeoff: --dask: invalid scheduler address '{form}'; expected {form[:3]}://HOST:PORT\n"
    else:
        assert err.startswith(f"bakeoff: --dask {address}: cannot connect to the scheduler: ")
    assert [path for path in Path().rglob("*") if not path.is_dir()] == []


@pytest.fixture
def machine(monkeypatch):
    """This machine in the place of those that asyncssh would reach, and the commands that it was given."""
    asyncssh = pytest.importorskip("asyncssh", reason="the extra dask is not installed")
    commands = []

    class Connection:
        def __init__(self, *_: object) -> None:
            self.child = None

        async def create_process(self, command: str) -> SimpleNamespace:
            commands.append(command)
            pipe = asyncio.subprocess.PIPE
            self.child = await asyncio.create_subprocess_shell(f"exec {command}", stdin=pipe, stderr=pipe)
            return SimpleNamespace(stdin=self, stderr=self, kill=lambda: None)

        def write(self, text: str) -> None:
            self.child.stdin.write(text.encode())

        async def readline(self) -> str:
            return (await self.child.stderr.readline()).decode()

        def close(self) -> None:
            self.child.stdin.close()

        async def wait_closed(self) -> None:
            await self.child.wait()

    async def connect(host: str) -> Connection:
        return Connection()

    monkeypatch.setattr(asyncssh, "connect", connect)
    return commands


def test_workers_over_ssh_take_no_orders_of_others(tmp_path, undisturbed, machine):
    begun = Cluster("ssh:127.0.0.1,127.0.0.1", "fake")
    assert refused(begun._cluster.scheduler_address.replace("tls://", "tcp://"), None)
    report = run_campaign([make(name) for name in "abc"], tmp_path / "c", cluster=lambda: begun)
    assert [done.status for done in report.runs] == ["ok"] * 3
    assert content(tmp_path / "c") == undisturbed
    # A scheduler and two workers. Every user of the machine sees these command lines.
    assert len(machine) == 3
    assert not any("CERTIFICATE" in command or "KEY" in command for command in machine)
