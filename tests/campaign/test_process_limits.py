"""Limits of processes, threads and memory: one message, no traceback, and nothing that waits for ever."""

import resource
import subprocess
import sys
import threading
from multiprocessing import Pipe
from multiprocessing.context import SpawnProcess

import pytest

from bakeoff.campaign import Execution, serving, signals
from bakeoff.errors import BakeoffError
from fakes.runs import make, run_campaign, words

pytestmark = pytest.mark.usefixtures("fake_engine")


class PanicException(BaseException):
    """As that of polars: no Exception. It cannot be pickled."""

    def __reduce__(self):
        raise TypeError("import of module 'pyo3_runtime' failed")


def limited_to(monkeypatch, threads: int) -> None:
    """Let the system refuse each further thread, as it does at a limit of processes."""
    start = threading.Thread.start
    left = [threads]

    def counted(thread: threading.Thread) -> None:
        if left[0] == 0:
            raise RuntimeError("can't start new thread")
        left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", counted)


@pytest.mark.parametrize("jobs", [1, 2])
def test_too_few_threads_are_told_before_anything_is_written(tmp_path, monkeypatch, jobs):
    limited_to(monkeypatch, signals._THREADS - 1)
    with pytest.raises(BakeoffError, match=f"limit of {signals._THREADS - 1} threads per process"):
        run_campaign([make("a"), make("b")], tmp_path / "c", Execution(jobs=jobs))
    assert not (tmp_path / "c").exists()


def test_as_many_threads_as_needed_will_do(monkeypatch):
    limited_to(monkeypatch, signals._THREADS)
    before = threading.active_count()
    signals.check_threads()
    assert threading.active_count() == before


def test_a_process_that_the_system_does_not_start_ends_the_campaign(tmp_path, monkeypatch):
    def refused(process) -> None:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(SpawnProcess, "start", refused)
    with pytest.raises(BakeoffError, match="cannot start a worker process: Resource temporarily unavailable; use"):
        run_campaign([make("a"), make("b")], tmp_path / "c", Execution(jobs=2))


def answer_of_a_worker(given: object) -> object:
    """What a process gives back for these arguments of `worker.execute`; it ends when the pipe does."""
    ours, theirs = Pipe()
    thread = threading.Thread(target=serving.serve, args=(theirs,))
    thread.start()
    ours.send(given)
    answer = ours.recv()
    ours.close()
    thread.join(60)
    assert not thread.is_alive()
    return answer


def test_a_worker_that_gets_no_thread_says_so(monkeypatch):
    def refused() -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(signals, "prepare_worker", refused)
    answer = answer_of_a_worker(())
    assert isinstance(answer, BakeoffError)
    assert str(answer).startswith("cannot prepare a worker process: can't start new thread; use fewer --jobs")


@pytest.mark.parametrize(
    ("raised", "kind", "text"),
    [
        (PanicException("no thread"), RuntimeError, "PanicException: no thread"),
        (BakeoffError("c: no room"), BakeoffError, "c: no room"),
        (FileNotFoundError(2, "gone", "c"), FileNotFoundError, "[Errno 2] gone: 'c'"),
        (ZeroDivisionError("by zero"), ZeroDivisionError, "by zero"),
    ],
)
def test_what_a_worker_raises_arrives(monkeypatch, raised, kind, text):
    def execute(*_: object) -> None:
        raise raised

    monkeypatch.setattr(signals, "prepare_worker", lambda: None)
    monkeypatch.setattr("bakeoff.campaign.worker.execute", execute)
    answer = answer_of_a_worker(())
    assert (type(answer), str(answer)) == (kind, text)


@pytest.mark.skipif(sys.platform != "linux", reason="bounds the address space, which other systems do not keep to")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_small_address_space_is_one_message(tmp_path, jobs):
    # Enough to import what the command needs, but not for 16 stacks of 8 MB.
    most = 200 << 20

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    command = [sys.executable, "-m", "bakeoff", *words("run", "fake/s1*", "--out", "c", "-j", jobs)]
    ended = subprocess.run(
        command, cwd=tmp_path, preexec_fn=limit, capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert ended.stderr.startswith("bakeoff: ")
    assert not (tmp_path / "c").exists()
