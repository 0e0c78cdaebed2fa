"""Campaigns: whole results only, whatever happens; the same results for any number of jobs."""

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from bakeoff import campaign, engines, results
from bakeoff import files as safely
from bakeoff.campaign import Execution, Watch
from bakeoff.errors import BakeoffError
from bakeoff.scenario.run import Class, Qdisc
from fakes.runs import make, run_campaign

pytestmark = pytest.mark.usefixtures("fake_engine")


def partials(root: Path) -> list[Path]:
    return [path for path in root.rglob(".*") if path.name.endswith(".partial")]


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_a_run_becomes_a_whole_folder(tmp_path):
    seen = []
    report = run_campaign([make("pie", seed=2)], tmp_path / "c", Execution(jobs=1), watch=Watch(on_done=seen.append))
    [done] = report.runs
    assert seen == [done]
    assert (done.key, done.status, done.error) == ("fake/s1-first/pie~seed2", "ok", None)
    assert done.path == tmp_path / "c" / "fake" / "s1-first" / "pie~seed2"
    assert sorted(path.name for path in done.path.iterdir()) == [
        "counters.json",
        "run.json",
        "series.parquet",
        "setup.log",
        "summary.json",
        "teardown.log",
    ]
    result = results.read(done.path)
    # Series s, sample i: 100 s + i + seed, at i / 10; one series after the other.
    rates = result.series.filter(kind="flow", name="cubic")
    assert rates["value"].to_list() == [102.0, 103.0, 104.0, 105.0, 106.0]
    assert rates["time"].to_list() == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert result.series["name"].to_list() == ["prague"] * 5 + ["cubic"] * 5 + ["mid>srv"] * 5
    assert (result.summary.run, result.summary.seed, result.summary.window_s) == ("pie", 2, (18.0, 58.0))
    assert result.all_counters()["events"] == 100
    assert result.record.digest == results.digest(results.parts(result.series))
    assert result.run == make("pie", seed=2)
    assert (done.path / "setup.log").read_text() == "mid>srv: pie limit 1000p (pie)\n"
    assert (done.path / "teardown.log").read_text() == "qdisc pie 8001: sent 10 pkt\n"
    assert not (tmp_path / "c" / ".lock").exists()


def test_one_and_two_jobs_give_the_same_bytes(tmp_path):
    runs = [make(f"run-{i}", seed=seed) for i in range(4) for seed in (1, 2)]
    reports = {jobs: run_campaign(runs, tmp_path / str(jobs), Execution(jobs=jobs)) for jobs in (1, 2)}
    assert [done.key for done in reports[2].runs] == [run.key for run in runs]
    one, two = (files(tmp_path / str(jobs)) for jobs in (1, 2))
    assert sorted(one) == sorted(two)
    assert len([name for name in one if name.endswith("series.parquet")]) == 8
    for name in one:
        if not name.endswith(("run.json", "campaign.json")):  # these hold times and the campaign's id
            assert one[name] == two[name], name
    for name in (name for name in one if name.endswith("run.json")):
        assert json.loads(one[name])["digest"] == json.loads(two[name])["digest"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_failed_runs_are_recorded_and_the_others_go_on(tmp_path, jobs):
    runs = [
        make("a"),
        make("violates", does="violates"),
        make("unmeasurable", does="unmeasurable"),
        make("measure-bug", does="measure-bug"),
        make("z"),
    ]
    report = run_campaign(runs, tmp_path / "c", Execution(jobs=jobs))
    assert [done.status for done in report.runs] == ["ok", "failed", "failed", "failed", "ok"]
    assert [done.error for done in report.failed] == [
        "conservation: sent 10, delivered 8, dropped 1, queued 0: 1 packet is missing",
        "the run has no series",
        "KeyError: 'cubic'",
    ]
    for done in report.failed:
        result = results.read(done.path)
        assert (result.record.status, result.record.error) == ("failed", done.error)
        assert sorted(path.name for path in done.path.iterdir()) == ["run.json", "setup.log", "teardown.log"]
        assert "Traceback" in (done.path / "teardown.log").read_text()
    assert len(results.scan(tmp_path / "c")) == 5


def test_a_refused_run_stops_the_campaign_before_anything_is_written(tmp_path):
    runs = [make("a"), make("b", does="refused")]
    with pytest.raises(BakeoffError, match=r"fake/s1-first/b: flows\[0\].cc: unknown congestion control 'pragu'"):
        run_campaign(runs, tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def test_resume_skips_what_is_whole_and_equal_and_makes_the_rest(tmp_path):
    root = tmp_path / "c"
    first = run_campaign(
        [make("a"), make("b"), make("c"), make("d", does="violates"), make("e")], root, Execution(jobs=1)
    )
    kept, changed, cut, failed, lost = (done.path for done in first.runs)
    (cut / "series.parquet").write_bytes(b"PAR1")
    for path in lost.iterdir():
        path.unlink()
    (root / "fake" / "s1-first" / ".f.99.partial").mkdir()
    before = files(kept)

    again = [make("a"), make("b", rtt="20ms"), make("c"), make("d"), make("e"), make("f")]
    report = run_campaign(again, root, Execution(jobs=1), resume=True)
    assert [done.status for done in report.runs] == ["skipped", "ok", "ok", "ok", "ok", "ok"]
    assert [done.path for done in report.skipped] == [kept]
    assert files(kept) == before
    assert results.read(changed).run.point == {"rtt": "20ms"}
    assert results.read(failed).ok
    assert len(results.scan(root)) == 6
    assert results.survey(root).half_written == []
    assert [done.status for done in run_campaign(again, root, Execution(jobs=1), resume=True).runs] == ["skipped"] * 6


def test_a_folder_with_content_is_refused_without_resume(tmp_path):
    root = tmp_path / "c"
    run_campaign([make("a")], root, Execution(jobs=1))
    before = files(root)
    with pytest.raises(BakeoffError, match=r"c: not empty.* another --out"):
        run_campaign([make("b")], root, Execution(jobs=1))
    assert files(root) == before


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "c").write_text("notes")
    with pytest.raises(BakeoffError, match=r"c: not a folder; expected a results folder$"):
        run_campaign([make("a")], tmp_path / "c", Execution(jobs=1))


def test_a_message_says_that_earlier_results_were_kept_only_where_there_are_any(tmp_path, monkeypatch):
    root = tmp_path / "c"
    with monkeypatch.context() as patch:
        fail_writes(patch, 0, errno.ENOSPC)
        with pytest.raises(BakeoffError, match="No space left on device") as first:
            run_campaign([make("a")], root, Execution(jobs=1))
    assert "earlier" not in str(first.value)


def test_two_campaigns_in_one_folder(tmp_path):
    def second(_done) -> None:
        with pytest.raises(BakeoffError, match=rf"c: another campaign \(process {os.getpid()}\) is writing to it"):
            run_campaign([make("b")], tmp_path / "c", Execution(jobs=1), resume=True)

    report = run_campaign([make("a")], tmp_path / "c", Execution(jobs=1), watch=Watch(on_done=second))
    assert [done.status for done in report.runs] == ["ok"]
    # The refused one let the owner's lock be, and a lock left by a dead process is none.
    (tmp_path / "c" / ".lock").write_text("1\n")
    assert [done.status for done in run_campaign([make("b")], tmp_path / "c", Execution(jobs=1), resume=True).runs] == [
        "ok"
    ]


def test_an_unknown_engine_lists_those_there_are(tmp_path):
    with pytest.raises(BakeoffError, match=r"^unknown engine 'smi'; expected one of: sim"):
        campaign.run([make("a")], tmp_path, Execution(engine="smi"))


@pytest.mark.parametrize("jobs", [0, -1])
def test_jobs_below_one_are_refused(tmp_path, jobs):
    with pytest.raises(BakeoffError, match=f"jobs: {jobs}; expected 1 or more"):
        run_campaign([make("a")], tmp_path / "c", Execution(jobs=jobs))


def test_no_runs_are_refused(tmp_path):
    with pytest.raises(BakeoffError, match="no runs"):
        run_campaign([], tmp_path / "c")


def test_a_run_selected_twice_is_done_once_and_two_of_one_name_are_refused(tmp_path):
    assert len(run_campaign([make("a"), make("a")], tmp_path / "c", Execution(jobs=1)).runs) == 1
    with pytest.raises(BakeoffError, match="fake/s1-first/a: duplicate name of two different runs"):
        run_campaign([make("a"), make("a", rtt="20ms")], tmp_path / "d", Execution(jobs=1))


@pytest.mark.parametrize("name", ["../../outside", ".hidden", "a/.."])
def test_a_name_that_leads_out_of_the_folder_is_refused(tmp_path, name):
    with pytest.raises(BakeoffError, match="not a valid folder name"):
        run_campaign([make("a", scenario=name)], tmp_path / "c", Execution(jobs=1))
    assert list(tmp_path.iterdir()) == []


def test_the_estimate_is_packets_over_the_simulators_speed():
    # 60 s at 12 Mbit/s are 60 000 packets of 1500 bytes: 0.03 s at 2 million per second, and 0.1 s for the files.
    assert engines.get("sim").estimate_s(make("a")) == pytest.approx(0.13)


@pytest.mark.parametrize(
    ("words", "classes", "bps"),
    [
        ("tbf rate 30mbit burst 5k peakrate 3mbit mtu 1514", [], 30e6),
        ("htb default 1", ["rate 36000kbit ceil 60Mbit", "rate 40Mbit"], 36e6),
        ("netem rate 1.5GBIT", [], 1.5e9),
        ("netem delay 5ms rate 3mbits", [], 1e9),  # no unit of tc: as fast as a cable is taken to be
    ],
)
def test_the_estimate_knows_rates_as_tc_writes_them(words, classes, bps):
    tree = Qdisc(qdisc=words, classes=[Class(id=str(n), class_=rate) for n, rate in enumerate(classes, 1)])
    run = SimpleNamespace(duration_s=60.0, links=[], interfaces=[SimpleNamespace(egress=tree, ingress=None)])
    # 12 000 bits a packet, 2 million packets per second, and 0.1 s for the files.
    assert engines.get("sim").estimate_s(run) == pytest.approx(0.1 + 60 * bps / 12_000 / 2e6)


# A full disk.


def fail_writes(monkeypatch, after: int, code: int) -> None:
    """Let the file system refuse every write and every new folder after the first `after` of them."""
    count = 0

    def limited(real):
        def call(self, *args, **kwargs):
            nonlocal count
            count += 1
            if count > after:
                raise OSError(code, os.strerror(code), str(self))
            return real(self, *args, **kwargs)

        return call

    for name in ("write_text", "write_bytes", "mkdir", "rename"):
        monkeypatch.setattr(Path, name, limited(getattr(Path, name)))
    monkeypatch.setattr(safely, "opener", limited(safely.opener))


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS])
@pytest.mark.parametrize("after", range(9))
def test_a_disk_that_refuses_after_n_writes(tmp_path, monkeypatch, after, code):
    root = tmp_path / "c"
    run_campaign([make("earlier")], root, Execution(jobs=1))
    before = files(root)
    with monkeypatch.context() as patch:
        fail_writes(patch, after, code)
        with pytest.raises(BakeoffError, match=f"{os.strerror(code)}.*earlier results were"):
            run_campaign([make("earlier"), make("later")], root, Execution(jobs=1), resume=True)
    assert files(root) == before
    assert partials(root) == []
    report = run_campaign([make("earlier"), make("later")], root, Execution(jobs=1), resume=True)
    assert [done.status for done in report.runs] == ["skipped", "ok"]


@pytest.mark.skipif(sys.platform != "linux", reason="tmpfs is Linux's")
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_real_disk_that_fills_up(tmpfs, jobs):
    # A whole run takes five folders at most and six files, of one page each or a little more: at 20 inodes some runs
    # fit and not all of six.
    disk = tmpfs("nr_inodes=20")
    runs = [make(f"run-{i}") for i in range(6)]
    with pytest.raises(BakeoffError, match=r"No space left on device.*earlier results were"):
        run_campaign(runs, disk / "c", Execution(jobs=jobs))
    whole = results.scan(disk / "c")
    assert 1 <= len(whole) < 6
    assert all(results.read(path).series.height == 15 for path in whole)
    assert partials(disk) == []
    assert results.survey(disk / "c").half_written == []


# Ctrl-C.

CHILD = """
import signal
import sys
from pathlib import Path
from bakeoff import campaign
from fakes.runs import make, run_campaign

if __name__ == "__main__":
    # A shell without job control starts its children with this ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # So does nohup with this one.
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    blocking = [make(name, does="blocks", started=f"started-{name}", go=f"go-{name}") for name in sys.argv[1:]]
    try:
        run_campaign(
            [make("a"), *blocking, *(make(f"z{i}") for i in range(40))],
            Path("c"),
            campaign.Execution(jobs=len(blocking)),
            watch=campaign.Watch(on_interrupt=lambda: Path("interrupted").write_text("interrupted")),
        )
    except KeyboardInterrupt:
        sys.exit(130)
"""


@contextmanager
def child_at_work(folder: Path, *blocking: str) -> Iterator[subprocess.Popen]:
    """A campaign in a child process, with as many jobs as there are blocking runs, and all of these under way."""
    (folder / "child.py").write_text(CHILD)
    os.mkfifo(folder / "interrupted")
    for name in blocking:
        os.mkfifo(folder / f"started-{name}")
        os.mkfifo(folder / f"go-{name}")
    with subprocess.Popen(
        [sys.executable, "child.py", *blocking],
        cwd=folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        try:
            for name in blocking:
                assert (folder / f"started-{name}").read_text() == "started"
            yield child
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)


def test_ctrl_c_with_one_job_discards_what_is_under_way(tmp_path):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            run_campaign([make("a"), make("b", does="interrupts"), make("z")], tmp_path / "c", Execution(jobs=1))
    finally:
        signal.signal(signal.SIGINT, before)
    assert [path.name for path in results.scan(tmp_path / "c")] == ["a"]
    assert partials(tmp_path) == []
    assert not (tmp_path / "c" / ".lock").exists()


def test_ctrl_c_with_two_jobs_waits_for_what_is_under_way(tmp_path):
    with child_at_work(tmp_path, "b", "c") as child:
        os.killpg(child.pid, signal.SIGINT)  # as a terminal does: to the workers too, which are to be deaf to it
        assert (tmp_path / "interrupted").read_text() == "interrupted"
        for name in ("b", "c"):
            (tmp_path / f"go-{name}").write_text("go")
        _, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (130, "")
    whole = {path.name for path in results.scan(tmp_path / "c")}
    assert {"a", "b", "c"} <= whole
    # The pool hands out as many runs as there are workers, and one more, before they are asked for; all others were
    # dropped.
    assert len(whole) <= 6
    assert partials(tmp_path) == []
    assert results.survey(tmp_path / "c").half_written == []


def test_a_second_ctrl_c_discards_what_is_under_way(tmp_path):
    with child_at_work(tmp_path, "b", "c") as child:
        os.killpg(child.pid, signal.SIGINT)
        assert (tmp_path / "interrupted").read_text() == "interrupted"
        os.killpg(child.pid, signal.SIGINT)
        _, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (130, "")
    assert [path.name for path in results.scan(tmp_path / "c")] == ["a"]
    assert partials(tmp_path) == []


@pytest.mark.parametrize("blocking", [["b"], ["b", "c"]])
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_sigterm_and_sighup_discard_what_is_under_way(tmp_path, number, blocking):
    with child_at_work(tmp_path, *blocking) as child:
        os.killpg(child.pid, number)  # as a batch system or a closed terminal does: to the workers too
        _, errors = child.communicate(timeout=60)
    assert (child.returncode, errors) == (128 + number, "")
    assert [path.name for path in results.scan(tmp_path / "c")] == ["a"]
    assert partials(tmp_path) == []
    assert not (tmp_path / "c" / ".lock").exists()


def test_a_killed_campaign_leaves_whole_runs_and_is_resumed(tmp_path):
    with child_at_work(tmp_path, "b") as child:
        child.kill()
    root = tmp_path / "c"
    [(partial, reason)] = results.survey(root).half_written
    assert (partial.name, reason) == (f".b.{child.pid}.partial", "its writing was never ended")
    assert [path.name for path in results.scan(root)] == ["a"]
    report = run_campaign([make("a"), make("b")], root, Execution(jobs=1), resume=True)
    assert [done.status for done in report.runs] == ["skipped", "ok"]
    assert partials(root) == []
