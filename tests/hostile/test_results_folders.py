"""A results folder of somebody else may hold any number and any file: it is read, or refused with one message, soon."""

import errno
import json
import os
import shutil
from pathlib import Path

import polars as pl
import pytest

from bakeoff import campaign, files, measure, results
from bakeoff.campaign import Execution
from bakeoff.cli import complete
from bakeoff.duels import Duel
from bakeoff.errors import BakeoffError
from bakeoff.results import layout, remote
from bakeoff.results.series import read_series, write_series
from bakeoff.scenario import duel


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    root = tmp_path_factory.mktemp("done") / "c"
    assert not campaign.run(
        [duel(Duel(cc1="reno", cc2="cubic", qdisc="pfifo", duration="1s"))], root, Execution(jobs=1)
    ).failed
    return root


@pytest.fixture
def changed(done, tmp_path):
    """Changes one value of a JSON file of the only run: its folder."""

    def change(name, *place, to):
        root = shutil.copytree(done, tmp_path / "c")
        [path] = root.rglob(name)
        content = json.loads(path.read_text())
        *above, last = place
        part = content
        for key in above:
            part = part[key]
        part[last] = to
        path.write_text(json.dumps(content))
        return path.parent

    return change


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("duration_s",), -1, "duration_s: Input should be greater than 0"),
        (("sample_interval_s",), 1e-300, "sample_interval_s: Input should be greater than or equal to 0.0001"),
        (("window_s",), [1e300, 0], r"window_s\.0: Input should be less than or equal to 1000000000"),
        (("window_s",), [5, 1], "window_s: from 5 s to 1 s; expected a non-empty window"),
        (
            ("links", 0, "rate_bps"),
            10**400,
            r"links\.0\.rate_bps: Input should be less than or equal to 10000000000000",
        ),
        (("flows", 0, "start_s"), -1e300, r"flows\.0\.start_s: Input should be greater than or equal to 0"),
        (("seed",), 2**64, "seed: Input should be less than 18446744073709551616"),
    ],
)
def test_a_number_of_no_network_is_refused_by_name(changed, place, value, message):
    with pytest.raises(BakeoffError, match=rf"run\.json: resolved: {message}"):
        results.read(changed("run.json", "resolved", *place, to=value))


@pytest.mark.parametrize(
    ("place", "message"),
    [
        (("flows", 0, "from"), "flows.0: from 'x' to 'srv'; expected nodes of the run"),
        (("flows", 0, "tunnel"), "flows.0.tunnel: 'x': unknown tunnel"),
        (("links", 1, "ends", 0), "links.1: 'x' and 'srv' are not both nodes of the run"),
        (("interfaces", 0, "peer"), "interfaces.0: 'mid' and 'x' are not both nodes of the run"),
    ],
)
def test_a_name_of_no_node_is_refused_by_its_place(changed, place, message):
    with pytest.raises(BakeoffError, match=f"resolved: {message}"):
        results.read(changed("run.json", "resolved", *place, to="x"))


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("time", [0.0, 1e300], r"'flow' 'a' 'srtt' = 1.0 at 1e\+300 s; expected a finite number at a time of the run"),
        ("time", [1.0, 0.5], "'flow' 'a' 'srtt' at 0.5 s after 1.0 s; expected samples in order of time"),
        ("value", [1.0, float("inf")], "= inf at 1.0 s"),
        ("value", [float("nan"), 1.0], "= nan at 0.0 s"),
        ("value", [1.0, -1e300], "= -1e\\+300 at 1.0 s"),
        ("name", ["a", None], "'flow' None 'srtt' = 1.0 at 1.0 s"),
    ],
)
def test_samples_that_nobody_can_have_measured_are_refused(tmp_path, column, values, message):
    rows = {"time": [0.0, 1.0], "kind": ["flow"] * 2, "name": ["a"] * 2, "metric": ["srtt"] * 2, "value": [1.0] * 2}
    write_series(tmp_path / "s.parquet", pl.DataFrame(rows | {column: values}))
    with pytest.raises(BakeoffError, match=message):
        read_series(tmp_path / "s.parquet")


def test_the_next_series_begins_at_an_earlier_time(tmp_path):
    rows = {"time": [0.0, 1.0, 0.0], "kind": ["flow"] * 3, "name": ["a", "a", "b"], "metric": ["srtt"] * 3}
    write_series(tmp_path / "s.parquet", frame := pl.DataFrame(rows | {"value": [1.0] * 3}))
    assert read_series(tmp_path / "s.parquet").equals(frame)


def test_a_class_below_itself_ends(changed):
    folder = changed("run.json", "resolved", "interfaces", 0, "egress", "classes", 0, "parent", to="1")
    found = measure.summarise(results.read(folder))
    assert any("class '1': a cycle" in line for line in found.missing)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("queues", "mid>srv", "drops"), 1e308, r"queues\.mid>srv\.drops: Expected `object`, got `float`"),
        (("queues", "mid>srv", "marks"), -1, r"queues\.mid>srv\.marks: Expected `int` >= 0"),
        (("flows", "reno", "mss"), 10**400, r"flows\.reno\.mss: Expected `int` <= 9223372036854775807"),
        (("flows", "reno", "rtt"), {"n": 1}, r"flows\.reno\.rtt\.mean_s: Object missing required field"),
        (("flows", "reno", "ecn"), "accecn", None),
        (("conservation",), {}, r"conservation\.sent: Object missing required field"),
    ],
)
def test_counters_of_another_form_are_refused_by_name(changed, place, value, message):
    result = results.read(changed("counters.json", *place, to=value))
    if message is None:
        assert result.counters
        return
    with pytest.raises(BakeoffError, match=rf"{result.path}: counters\.json: {message}"):
        _ = result.counters


def test_a_file_that_has_nothing_to_say_yet_is_not_waited_for(tmp_path, monkeypatch):
    # As /proc/kmsg: a regular file that says so if it is read without waiting.
    def silent(_descriptor, _most):
        raise BlockingIOError(errno.EAGAIN, "Resource temporarily unavailable")

    (tmp_path / "silent").write_bytes(b"")
    monkeypatch.setattr(files.os, "read", silent)
    with pytest.raises(OSError, match="has no data") as error:
        files.read(tmp_path / "silent", 10)
    assert (error.value.errno, error.value.filename) == (errno.EAGAIN, str(tmp_path / "silent"))


def test_a_file_of_the_systems_is_read_whole_though_its_size_is_0():
    environment = files.read("/proc/self/environ", 1 << 20)
    assert Path("/proc/self/environ").stat().st_size == 0
    assert environment == Path("/proc/self/environ").read_bytes()
    assert len(environment) > 0
    with pytest.raises(OSError, match="bytes; at most 3"):
        files.read("/proc/self/environ", 3)


@pytest.mark.parametrize("at_once", [1000, 1 << 30])
@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 3 << 16])
def test_a_file_is_read_whole_up_to_its_bound(tmp_path, monkeypatch, size, at_once):
    # The system may give less than it is asked for, though there is more.
    read = os.read
    monkeypatch.setattr(files.os, "read", lambda descriptor, most: read(descriptor, min(most, at_once)))
    (tmp_path / "whole").write_bytes(bytes(size))
    assert files.read(tmp_path / "whole", size) == bytes(size)
    if size:
        with pytest.raises(OSError, match=f"is {size:,} bytes; at most {size - 1:,}"):
            files.read(tmp_path / "whole", size - 1)


def test_a_file_that_has_grown_since_it_was_opened_is_read_whole(tmp_path, monkeypatch):
    opened = files._open
    (tmp_path / "grown").write_bytes(bytes(9000))
    monkeypatch.setattr(files, "_open", lambda path, **_: (opened(path)[0], 8000))
    assert files.read(tmp_path / "grown", 9000) == bytes(9000)
    with pytest.raises(OSError, match=r"bytes; at most 8,000"):
        files.read(tmp_path / "grown", 8000)


def test_a_campaign_whose_captures_take_too_much_ends_and_keeps_what_it_has(tmp_path, monkeypatch):
    runs = [duel(Duel(cc1="reno", cc2="cubic", duration="1s", rtt=rtt)) for rtt in ("10ms", "20ms", "40ms")]
    runs = [run.model_copy(update={"captures": ["mid>srv"]}) for run in runs]
    monkeypatch.setenv("BAKEOFF_CAMPAIGN_CAPTURES", "1000")
    with pytest.raises(BakeoffError, match=r"captures of 1 of 3 runs take [0-9,]+ bytes, and the budget .* is 1,000; "):
        campaign.run(runs, tmp_path / "c", Execution(jobs=1))
    assert len(results.scan(tmp_path / "c")) == 1
    with pytest.raises(BakeoffError, match=r"captures of 1 of 3 runs"):
        campaign.run(runs, tmp_path / "c", Execution(jobs=1), resume=True)
    monkeypatch.setenv("BAKEOFF_CAMPAIGN_CAPTURES", "1G")
    with pytest.raises(BakeoffError, match=r"BAKEOFF_CAMPAIGN_CAPTURES: '1G'; expected a number of bytes"):
        campaign.run(runs, tmp_path / "c", Execution(jobs=1), resume=True)
    monkeypatch.delenv("BAKEOFF_CAMPAIGN_CAPTURES")
    assert len(campaign.run(runs, tmp_path / "c", Execution(jobs=1), resume=True).skipped) == 1


@pytest.mark.parametrize("part", ["suite", "scenario"])
def test_nothing_is_written_through_a_link_on_the_way_to_a_run(done, tmp_path, part):
    root = shutil.copytree(done, tmp_path / "c")
    [folder] = results.scan(root)
    link = folder.parent if part == "scenario" else folder.parent.parent
    shutil.rmtree(link)
    outside = tmp_path / "outside"
    outside.mkdir()
    link.symlink_to(outside)
    with pytest.raises(BakeoffError, match=rf"{link}: a link"):
        campaign.run(
            [duel(Duel(cc1="reno", cc2="cubic", qdisc="pfifo", duration="1s"))], root, Execution(jobs=1), resume=True
        )
    with pytest.raises(BakeoffError, match=rf"{link}: a link"):
        remote.pull(str(done), root, update=True)
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize("there", [True, False])
def test_a_run_takes_the_place_of_a_link_and_leaves_what_it_leads_to(done, tmp_path, there):
    root = shutil.copytree(done, tmp_path / "c")
    [folder] = results.scan(root)
    shutil.rmtree(folder)
    outside = tmp_path / "outside"
    if there:
        outside.mkdir()
        (outside / "kept").write_text("kept")
    folder.symlink_to(outside)
    run = duel(Duel(cc1="reno", cc2="cubic", qdisc="pfifo", duration="1s"))
    assert [each.status for each in campaign.run([run], root, Execution(jobs=1), resume=True).runs] == ["ok"]
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    assert not folder.is_symlink()
    assert not there or [path.name for path in outside.iterdir()] == ["kept"]


@pytest.mark.parametrize("what", ["pipe", "file"])
def test_a_run_takes_the_place_of_what_is_no_folder_and_leaves_nothing_of_it(done, tmp_path, what):
    """Who removes a folder opens it first, and a pipe is opened when somebody writes to it, which nobody does."""
    root = shutil.copytree(done, tmp_path / "c")
    [folder] = results.scan(root)
    shutil.rmtree(folder)
    partial = folder.with_name(layout.partial_name(folder.name, os.getpid()))
    for path in (folder, partial):
        os.mkfifo(path) if what == "pipe" else path.write_text("")
    run = duel(Duel(cc1="reno", cc2="cubic", qdisc="pfifo", duration="1s"))
    # A name that this process needs may be taken once, by a process of the same number that was killed.
    with pytest.raises(BakeoffError, match="cannot be written: File exists"):
        campaign.run([run], root, Execution(jobs=1), resume=True)
    assert [each.status for each in campaign.run([run], root, Execution(jobs=1), resume=True).runs] == ["ok"]
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_completing_a_word_waits_for_no_pipe_and_offers_no_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = tmp_path / "results/latest/suite/scenario/run"
    run.mkdir(parents=True)
    (run / "run.json").write_text('{"resolved": {"point": {"cc": "reno", "$(id)": "x"}}}')
    assert complete.axis("") == ["cc"]
    (run / "run.json").unlink()
    os.mkfifo(run / "run.json")
    assert complete.axis("") == []
    for name in ("mine", "a$(id)", "a`id`", "a;id", "a|id", "a>x", "a\nid", "a\x1b[2J", "a!id", "a'", 'a"'):
        (tmp_path / "results" / name).mkdir()
    assert complete.results("results/") == ["results/latest", "results/mine"]


@pytest.mark.parametrize("what", ["pipe", "folder", "long"])
def test_a_log_is_a_file_of_bounded_size(done, tmp_path, cli, what):
    root = shutil.copytree(done, tmp_path / "c")
    [folder] = results.scan(root)
    log = folder / "console.log"
    if what == "pipe":
        os.mkfifo(log)
    elif what == "folder":
        log.mkdir()
    else:
        log.touch()
        os.truncate(log, 1 << 40)
    code, _, err = cli("logs", str(folder))
    why = {
        "pipe": "is not a regular file",
        "folder": "Is a directory",
        "long": "is 1,099,511,627,776 bytes; at most 268,435,456",
    }
    assert (code, err) == (2, f"bakeoff: {log}: cannot be read: {why[what]}\n")
