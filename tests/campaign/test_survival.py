"""What a campaign survives: dead workers, runs that hang or take all memory, a full disk, a clock that jumps.

After it, `--resume` makes the set complete, and equal to that of a campaign which nothing disturbed.
"""

import subprocess
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from bakeoff import results
from bakeoff.campaign import Execution, Watch, campaign_record, parallel, processes, worker
from bakeoff.campaign.processes import Processes
from bakeoff.errors import BakeoffError
from fakes import engine
from fakes.runs import make, run_campaign, words

pytestmark = pytest.mark.usefixtures("fake_engine")


def content(root: Path) -> dict[str, bytes]:
    """All files of the whole runs, but for what holds times and the campaign's id."""
    return {
        str(path.relative_to(root)): path.read_bytes()
        for run in results.scan(root)
        for path in run.iterdir()
        if path.name != "run.json"
    }


def digests(root: Path) -> dict[str, str]:
    return {result.key: result.record.digest for result in results.survey(root).results}


def nothing_is_left(root: Path) -> bool:
    return results.survey(root).half_written == [] and not [*root.rglob(".*")]


@pytest.fixture
def undisturbed(tmp_path):
    """The files of the runs a to d."""
    run_campaign([make(name) for name in "abcd"], tmp_path / "undisturbed", Execution(jobs=1))
    return content(tmp_path / "undisturbed")


def test_a_run_whose_worker_dies_is_done_again(tmp_path, undisturbed):
    died = tmp_path / "died"
    runs = [make("a"), make("b", does="dies-once", died=str(died)), make("c"), make("d")]
    begun = []
    report = run_campaign(runs, tmp_path / "c", Execution(jobs=2), watch=Watch(on_start=begun.append))
    assert [done.status for done in report.runs] == ["ok"] * 4
    assert died.exists()
    assert sorted(run.run for run in begun) == ["a", "b", "b", "c", "d"]
    assert content(tmp_path / "c") == undisturbed
    assert nothing_is_left(tmp_path / "c")


def test_a_run_that_kills_its_worker_each_time_fails_alone(tmp_path, undisturbed):
    root = tmp_path / "c"
    runs = [make("a"), make("b", does="dies"), make("c"), make("d")]
    report = run_campaign(runs, root, Execution(jobs=2))
    assert [done.status for done in report.runs] == ["ok", "failed", "ok", "ok"]
    assert report.runs[1].error == (
        "its worker was lost 3 times (a worker process was ended by SIGKILL): out of memory, or killed"
    )
    assert results.read(report.runs[1].path).record.error == report.runs[1].error
    assert (report.runs[1].path / "teardown.log").read_text() == f"{report.runs[1].error}\n"
    assert nothing_is_left(root)
    again = run_campaign([make(name) for name in "abcd"], root, Execution(jobs=2), resume=True)
    assert [done.status for done in again.runs] == ["skipped", "ok", "skipped", "skipped"]
    assert content(root) == undisturbed


def test_a_run_that_waits_for_its_worker_loses_nothing_with_it(tmp_path, monkeypatch):
    # On any machine: a run is short unless it is called long.
    monkeypatch.setattr(processes, "_SHORT_S", 1000.0)
    task = worker.Task("fake", "id", campaign_record.provenance(None))
    workers = Processes(1, lambda run: 2000.0 if run.run == "long" else 0.0)

    def begun(name: str, **options):
        return workers.begin(make(name, **options), tmp_path / name, task, 0)

    def attempts(future) -> int:
        with pytest.raises(parallel.WorkerLostError, match="SIGKILL") as lost:
            workers.result(future)
        return lost.value.attempts

    try:
        # Nobody knows yet whether runs are short.
        first = begun("a")
        assert not workers.free(make("b"), ahead=True)
        assert workers.result(first).status == "ok"
        dies = begun("b", does="dies")
        assert [workers.free(make(name), ahead=True) for name in ("long", "c")] == [False, True]
        assert not workers.free(make("c"), ahead=False)
        waits = begun("c")
        assert not workers.free(make("d"), ahead=True)
        assert (attempts(dies), attempts(waits)) == (1, 0)
        assert workers.result(begun("c")).status == "ok"
    finally:
        workers.close()


def test_after_a_long_run_each_worker_has_one(tmp_path, monkeypatch):
    monkeypatch.setattr(processes, "_SHORT_S", 0.0)
    workers = Processes(2, lambda _: -1.0)
    task = worker.Task("fake", "id", campaign_record.provenance(None))
    try:
        futures = [workers.begin(make(name), tmp_path / name, task, 0) for name in "ab"]
        workers.result(futures[0])
        assert workers.free(make("c"), ahead=True)
        futures[0] = workers.begin(make("c"), tmp_path / "c", task, 0)
        assert not workers.free(make("d"), ahead=True)
        for future in futures:
            workers.result(future)
    finally:
        workers.close()


@pytest.mark.parametrize(
    ("options", "may"), [({}, True), ({"timeout_s": 600.0}, False), ({"stop_on_failure": True}, False)]
)
def test_no_run_waits_for_its_worker_that_is_timed_or_that_a_failure_may_forestall(tmp_path, monkeypatch, options, may):
    told = set()
    free = Processes.free

    def noted(self, run, *, ahead: bool) -> bool:
        told.add(ahead)
        return free(self, run, ahead=ahead)

    monkeypatch.setattr(Processes, "free", noted)
    run_campaign([make(name) for name in "abc"], tmp_path / "c", Execution(jobs=2, **options))
    assert told == {may}


def test_workers_that_all_die_end_the_campaign(tmp_path, monkeypatch):
    root = tmp_path / "c"
    # With one attempt each, two in a row are too many where one other run is under way, and one where none is.
    monkeypatch.setattr(parallel, "_ATTEMPTS", 1)
    runs = [make("a"), *(make(f"dies-{number}", does="dies") for number in range(3))]
    with pytest.raises(BakeoffError, match=r"lost several workers .*SIGKILL.* --resume continues"):
        run_campaign(runs, root, Execution(jobs=2))
    assert "fake/s1-first/a" in digests(root)
    assert nothing_is_left(root)


def test_a_run_beyond_its_time_fails_alone(tmp_path, undisturbed, monkeypatch):
    root = tmp_path / "c"
    now_s = [0.0]
    monkeypatch.setattr(parallel, "time", SimpleNamespace(monotonic=lambda: now_s[0]))

    def begun(run) -> None:
        now_s[0] += 100.0 if run.run == "b" else 0.0

    runs = [make("a"), make("b", does="hangs"), make("c"), make("d")]
    # With one job, too, each run is in another process, which can be ended.
    report = run_campaign(runs, root, Execution(jobs=1, timeout_s=90.0), watch=Watch(on_start=begun))
    assert [done.status for done in report.runs] == ["ok", "failed", "ok", "ok"]
    assert report.runs[1].error == "took longer than 90 s and was ended"
    assert nothing_is_left(root)
    monkeypatch.undo()
    run_campaign([make(name) for name in "abcd"], root, Execution(jobs=1), resume=True)
    assert content(root) == undisturbed


def test_engines_that_share_machines_have_no_time_budget(tmp_path, monkeypatch):
    monkeypatch.setattr(engine.Fake, "one_at_a_time", True)
    with pytest.raises(BakeoffError, match="--run-timeout: not valid with --engine fake"):
        run_campaign([make("a")], tmp_path / "c", Execution(timeout_s=1.0))
    assert not (tmp_path / "c").exists()


@pytest.mark.parametrize("text", ["0s", "fast", "5"])
def test_a_time_budget_has_a_unit(cli, text):
    code, out, err = cli(*words("run", "fake/s1*", "--run-timeout", text))
    assert (code, out) == (2, "")
    assert err.startswith(f"bakeoff: --run-timeout: '{text}'")


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_run_that_takes_all_memory_fails_alone(tmp_path, undisturbed, jobs):
    root = tmp_path / "c"
    runs = [make("a"), make("b", does="takes-all"), make("c"), make("d")]
    report = run_campaign(runs, root, Execution(jobs=jobs))
    assert [done.status for done in report.runs] == ["ok", "failed", "ok", "ok"]
    assert report.runs[1].error.startswith("MemoryError")
    run_campaign([make(name) for name in "abcd"], root, Execution(jobs=jobs), resume=True)
    assert content(root) == undisturbed


def test_a_panic_of_a_library_fails_one_run(tmp_path, monkeypatch):
    class PanicException(BaseException):
        """As that of polars: no Exception, and not known to pickle."""

    measure = worker._measure

    def panics(result) -> None:
        if result.record.run.run == "b":
            raise PanicException("failed to spawn a thread")
        measure(result)

    monkeypatch.setattr(worker, "_measure", panics)
    report = run_campaign([make(name) for name in "abc"], tmp_path / "c", Execution(jobs=1))
    assert [done.status for done in report.runs] == ["ok", "failed", "ok"]
    assert report.runs[1].error == "PanicException: failed to spawn a thread"


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_disk_that_is_full_and_gets_room(tmpfs, undisturbed, jobs):
    # As in test_campaign: some runs fit, and not all of four.
    disk = tmpfs("nr_inodes=16")
    root = disk / "c"
    runs = [make(name) for name in "abcd"]
    with pytest.raises(BakeoffError, match="No space left on device"):
        run_campaign(runs, root, Execution(jobs=jobs))
    kept = set(digests(root))
    assert 1 <= len(kept) < 4
    subprocess.run(["/bin/mount", "-o", "remount,nr_inodes=1000", str(disk)], check=True)
    report = run_campaign(runs, root, Execution(jobs=jobs), resume=True)
    assert {done.key for done in report.skipped} == kept
    assert content(root) == undisturbed
    assert nothing_is_left(root)


def test_a_clock_that_is_set_back_changes_nothing(tmp_path, undisturbed, monkeypatch):
    now_s = [2e9]

    def stepped() -> float:
        now_s[0] -= 3600.0
        return now_s[0]

    monkeypatch.setattr(time, "time", stepped)
    ended = []
    runs = [make(name) for name in "abcd"]
    report = run_campaign(runs, tmp_path / "c", Execution(jobs=1, timeout_s=3600.0), watch=Watch(on_done=ended.append))
    assert [done.status for done in ended] == ["ok"] * 4
    assert [results.read(done.path).record.order for done in report.runs] == [0, 1, 2, 3]
    assert report.wall_s > 0
    assert all(done.wall_s > 0 for done in report.runs)
    assert content(tmp_path / "c") == undisturbed
