"""A campaign says what it is and where it comes from, and only its own runs are added to it."""

import json
import socket
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bakeoff import results
from bakeoff.campaign import Execution
from bakeoff.errors import BakeoffError
from bakeoff.results import Request
from bakeoff.version import MODEL_EPOCH, commit, version
from fakes.runs import make, run_campaign

S1 = Request(patterns=("fake/s1*", "mine.yaml"))


@pytest.fixture
def begun(tmp_path):
    """A campaign of one run, begun and interrupted."""
    run_campaign([make("a")], tmp_path / "c", Execution(jobs=1), request=S1)
    return tmp_path / "c"


def resume(root: Path, make, *, request: Request = S1, note: str | None = None) -> list[str]:
    report = run_campaign([make("a"), make("b")], root, Execution(jobs=1, note=note), request=request, resume=True)
    return [done.status for done in report.runs]


def change(root: Path, **changes) -> None:
    record = results.read_campaign(root)
    results.write_campaign(root, record.model_copy(update=changes))


def content(root: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}


def test_the_campaign_and_each_run_say_where_they_come_from(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/bakeoff", "run", "fake/s1*", "b\udcffd"])
    run_campaign(
        [make("a")], tmp_path / "c", Execution(jobs=1, note="after the patch"), request=Request(patterns=("fake/s1*",))
    )
    record = results.read_campaign(tmp_path / "c")
    assert (record.kind, record.begun.patterns, record.engine) == ("run", ("fake/s1*",), "fake")
    assert record.versions == {"bakeoff": version()}
    made = record.provenance
    assert (made.version, made.model_epoch, made.host) == (version(), MODEL_EPOCH, socket.gethostname())
    assert (made.commit, made.dirty) == ((commit().id, commit().dirty) if commit() else (None, None))
    assert made.command == ("bakeoff", "run", "fake/s1*", "b\\udcffd")
    assert made.note == "after the patch"
    assert datetime.now(UTC) - made.date < timedelta(minutes=1)
    run = results.read(tmp_path / "c" / "fake" / "s1-first" / "a").record
    assert run.campaign == record.id
    assert run.provenance.model_copy(update={"date": made.date}) == made


def test_the_commit_is_that_of_this_checkout():
    top = Path(__file__).parents[2]
    if not (top / ".git").exists():
        pytest.skip("this is no checkout")
    assert commit() is not None
    assert len(commit().id) == 40


def test_its_own_runs_are_added(begun):
    identity = results.read_campaign(begun).id
    assert resume(begun, make, request=Request(patterns=("mine.yaml",)), note="second day") == ["skipped", "ok"]
    added = results.read(begun / "fake" / "s1-first" / "b").record
    assert (added.campaign, added.provenance.note) == (identity, "second day")
    assert results.read_campaign(begun).provenance.note is None


@pytest.mark.parametrize(
    ("changes", "asked", "message"),
    [
        ({"kind": "duel"}, S1, "contains a duel, not a run; choose another --out"),
        (
            {},
            Request(patterns=("fake/s1*", "fake/s2*")),
            r"contains the campaign of 'fake/s1\*', 'mine.yaml', without 'fake/s2\*'; resume it with its own",
        ),
        ({"engine": "kernel"}, S1, "its runs are of the engine kernel, not fake; resume with --engine kernel, or"),
        (
            {"versions": {"bakeoff": "0.0.9", "kernel": "7.3"}},
            S1,
            rf"started with other versions \(bakeoff 0.0.9 then and {version()} now; kernel 7.3 then and unknown now\)",
        ),
    ],
)
def test_what_is_not_its_own_is_refused_and_nothing_changes(begun, changes, asked, message):
    change(begun, **changes)
    before = content(begun)
    with pytest.raises(BakeoffError, match=message):
        resume(begun, make, request=asked)
    assert content(begun) == before


def test_another_model_epoch_is_refused(begun):
    older = results.read_campaign(begun).provenance.model_copy(update={"model_epoch": MODEL_EPOCH - 1})
    change(begun, provenance=older)
    with pytest.raises(
        BakeoffError, match=rf"c: was started in model epoch {MODEL_EPOCH - 1} .* this bakeoff has epoch {MODEL_EPOCH}"
    ):
        resume(begun, make)


def test_a_folder_that_does_not_say_what_it_holds_is_refused(begun):
    (begun / "campaign.json").unlink()
    before = content(begun)
    with pytest.raises(BakeoffError, match=r"c: no campaign.json in this results folder"):
        resume(begun, make)
    assert content(begun) == before


def test_a_campaign_of_a_later_format_is_refused(begun):
    document = json.loads((begun / "campaign.json").read_text())
    (begun / "campaign.json").write_text(json.dumps(document | {"format": 2}))
    with pytest.raises(BakeoffError, match=r"c: campaign.json is of format 2; this version reads format 1"):
        resume(begun, make)


def test_a_run_of_another_campaign_is_not_taken_for_its_own(tmp_path, begun):
    run_campaign([make("b")], tmp_path / "d", Execution(jobs=1), request=S1)
    stranger = tmp_path / "d" / "fake" / "s1-first" / "b"
    stranger.rename(begun / "fake" / "s1-first" / "b")
    with pytest.raises(BakeoffError, match="c/fake/s1-first/b: belongs to another campaign; move it away"):
        resume(begun, make)


def test_a_campaign_inside_of_another_is_refused(begun):
    with pytest.raises(BakeoffError, match=r"c/inside: inside the folder of another campaign, .*c; choose another"):
        run_campaign([make("a")], begun / "inside", Execution(jobs=1))
    assert not (begun / "inside").exists()


def test_resuming_nothing_begins(tmp_path):
    assert resume(tmp_path / "new", make) == ["ok", "ok"]
    assert results.read_campaign(tmp_path / "new").begun == S1
