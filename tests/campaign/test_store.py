"""The store: what was done before is taken, what is damaged or differs is not, and a bound is kept."""

import io
import json
import os
import signal
from pathlib import Path
from types import SimpleNamespace

import fsspec
import pytest

from bakeoff import results
from bakeoff.campaign import Execution, Watch, archive, store, store_access
from bakeoff.campaign.archive import packed, unpack
from bakeoff.campaign.store_local import LocalStore
from bakeoff.campaign.store_remote import RemoteStore
from bakeoff.errors import BakeoffError
from fakes import engine
from fakes.runs import make, run_campaign, words


@pytest.fixture(params=["local", "remote"])
def place(request, tmp_path):
    """A store in a folder, and one behind a URL."""
    if request.param == "local":
        yield str(tmp_path / "store")
        return
    yield "memory://store"
    memory = fsspec.filesystem("memory")
    if memory.exists("/store"):
        memory.rm("/store", recursive=True)


def do(runs, root: Path, place: str, *, resume: bool = False, watch: Watch | None = None, **options) -> list[str]:
    execution = Execution(jobs=1, store=place, **options)
    report = run_campaign(runs, root, execution, resume=resume, watch=watch or Watch())
    assert report.not_stored is None
    return [done.status for done in report.runs]


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_was_done_is_taken_whole_and_says_so(tmp_path, place):
    runs = [make("a"), make("b", seed=2), make("broken", does="violates")]
    assert do(runs, tmp_path / "one", place, note="mine") == ["ok", "ok", "failed"]
    # What failed is no result.
    again = [make("c"), *runs]
    assert do(again, tmp_path / "two", place, note="yours") == ["ok", "taken", "taken", "failed"]
    for key in ("a", "b~seed2"):
        first, second = (tmp_path / root / "fake/s1-first" / key for root in ("one", "two"))
        made, taken = content(first), content(second)
        assert made.keys() == taken.keys()
        assert {name for name in made if made[name] != taken[name]} == {"run.json"}
        made, taken = results.read(first).record, results.read(second).record
        assert made.taken is None
        assert (taken.taken.campaign, taken.digest, taken.wall_s) == (made.campaign, made.digest, made.wall_s)
        assert taken.taken.store == store.opened(place).name
        assert taken.campaign == results.read_campaign(tmp_path / "two").id
        assert (taken.order, made.order) == ({"a": (1, 0), "b~seed2": (2, 1)})[key]
        assert taken.provenance == made.provenance.model_copy(update={"note": "yours"})
    assert do(again, tmp_path / "two", place, resume=True) == ["skipped"] * 3 + ["failed"]
    assert do(again, tmp_path / "three", place, fresh=True) == ["ok", "ok", "ok", "failed"]


def test_all_that_decides_is_in_the_key(monkeypatch):
    versions = {"bakeoff": "1", "kernel fingerprint": "f"}
    base = store.key(make("a"), "kernel", versions)
    assert base == store.key(make("a"), "kernel:/home/me/linux", versions)  # its fingerprint is one of the versions
    keys = {
        base,
        store.key(make("b"), "kernel", versions),
        store.key(make("a", seed=2), "kernel", versions),
        store.key(make("a", rtt="20ms"), "kernel", versions),
        store.key(make("a"), "sim", versions),
        store.key(make("a"), "kernel", versions | {"kernel fingerprint": "g"}),
        store.key(make("a"), "kernel", versions, kept="measures"),
        store.key(make("a"), "kernel", versions, also=abs),
    }
    with monkeypatch.context() as patch:
        patch.setattr(store, "MODEL_EPOCH", -1)
        keys.add(store.key(make("a"), "kernel", versions))
    with monkeypatch.context() as patch:
        patch.setattr(store, "code", lambda: "other code")
        keys.add(store.key(make("a"), "kernel", versions))
    assert len(keys) == 10


def test_a_class_object_is_never_taken():
    run = SimpleNamespace(flows=[SimpleNamespace(cc="python:__main__.Mine")], to_json=lambda: make("a").to_json())
    assert store.key(run, "sim", {}) is None


def test_what_cannot_be_repeated_is_neither_taken_nor_kept(tmp_path, place, monkeypatch):
    monkeypatch.setattr(engine.Fake, "repeatable", False)
    assert do([make("a")], tmp_path / "one", place) == ["ok"]
    assert do([make("a")], tmp_path / "two", place) == ["ok"]
    assert store.opened(place).content().runs == 0


def spoiled(place: str, name: str, text: bytes) -> None:
    """Put other bytes in the place of a stored file, under a name of their own, as a new file would have."""
    [path] = Path(place).glob(f"*/*/{name}")
    path.unlink()
    path.write_bytes(text)


@pytest.mark.parametrize("name", ["series.parquet", "summary.json", "run.json", "stored.json"])
def test_what_is_damaged_is_not_taken_and_then_replaced(tmp_path, name):
    place = str(tmp_path / "store")
    assert do([make("a")], tmp_path / "one", place) == ["ok"]
    before = content(tmp_path / "one/fake/s1-first/a")
    spoiled(place, name, b"{}")
    assert do([make("a")], tmp_path / "two", place) == ["ok"]
    assert results.read(tmp_path / "two/fake/s1-first/a").record.taken is None
    assert do([make("a")], tmp_path / "three", place) == ["taken"]
    assert content(tmp_path / "one/fake/s1-first/a") == before


def test_an_archive_that_is_damaged_is_not_taken(tmp_path):
    run_campaign([make("a")], tmp_path / "c", Execution(jobs=1))
    folder = tmp_path / "c/fake/s1-first/a"
    whole = packed(folder)
    (tmp_path / "whole").mkdir()
    unpack(io.BytesIO(whole), tmp_path / "whole")
    assert content(tmp_path / "whole") == content(folder)
    series = (folder / "series.parquet").read_bytes()
    for number, damaged in enumerate([whole[: len(whole) // 3], b"", whole.replace(series[:8], bytes(8), 1)]):
        (tmp_path / str(number)).mkdir()
        with pytest.raises(archive.DamagedError):
            unpack(io.BytesIO(damaged), tmp_path / str(number))


@pytest.mark.parametrize("name", ["../a", "/etc/passwd", ".hidden", "stored.json", ""])
def test_a_manifest_names_files_only(name):
    with pytest.raises(archive.DamagedError, match="invalid file name"):
        archive.read_manifest(archive.written({name: (1, "0" * 64)}))


def test_a_link_in_a_store_is_not_followed(tmp_path):
    place = str(tmp_path / "store")
    assert do([make("a")], tmp_path / "one", place) == ["ok"]
    [log] = Path(place).glob("*/*/setup.log")
    log.rename(tmp_path / "elsewhere")
    log.symlink_to(tmp_path / "elsewhere")
    assert do([make("a")], tmp_path / "two", place) == ["ok"]


def test_another_result_under_the_same_key_is_not_taken(tmp_path, monkeypatch):
    place = str(tmp_path / "store")
    monkeypatch.setattr(store_access.stored, "key", lambda *_: "ab" * 32)
    assert do([make("a")], tmp_path / "one", place) == ["ok"]
    assert do([make("b")], tmp_path / "two", place) == ["ok"]


def test_a_store_keeps_to_its_bound_and_forgets_what_was_not_used(tmp_path, monkeypatch):
    place = str(tmp_path / "store")
    runs = [make(name) for name in "abcd"]
    assert do(runs, tmp_path / "one", place) == ["ok"] * 4
    each = LocalStore(Path(place)).content().bytes / 4
    for order, run in enumerate(runs):  # last used in the order d, c, b, a
        key = store.key(run, "fake", engine.Fake().versions())
        os.utime(Path(place, key[:2], key), (0, 100 - order))
    # Five runs are beyond a bound of four and a half: at most 0.8 * 4.5 = 3.6 stay.
    monkeypatch.setenv("BAKEOFF_STORE_LIMIT", str(int(4.5 * each)))
    assert do([make("e")], tmp_path / "two", place) == ["ok"]
    assert LocalStore(Path(place)).content().runs == 3
    assert do(runs, tmp_path / "three", place) == ["taken", "taken", "ok", "ok"]


def test_the_total_is_counted_again_after_a_crash(tmp_path):
    place = Path(tmp_path / "store")
    assert do([make("a")], tmp_path / "one", str(place)) == ["ok"]
    assert int((place / "bytes").read_text()) == LocalStore(place).content().bytes
    LocalStore(place).put("00" * 32, tmp_path / "one/fake/s1-first/a")  # and is never closed
    assert not (place / "bytes").exists()
    assert do([make("b")], tmp_path / "two", str(place)) == ["ok"]
    assert int((place / "bytes").read_text()) == LocalStore(place).content().bytes


def test_a_store_that_refuses_costs_no_run(tmp_path):
    (tmp_path / "store").write_text("no folder")
    report = run_campaign(
        [make("a"), make("b")], tmp_path / "c", Execution(jobs=1, store=store.opened(str(tmp_path / "store")))
    )
    assert [done.status for done in report.runs] == ["ok", "ok"]
    assert report.not_stored == f"{tmp_path / 'store'}: File exists"


def test_a_ctrl_c_while_runs_are_taken(tmp_path):
    place = str(tmp_path / "store")
    runs = [make(name) for name in "abc"]
    assert do(runs, tmp_path / "one", place) == ["ok"] * 3
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            do(runs, tmp_path / "two", place, watch=Watch(on_done=lambda _: signal.raise_signal(signal.SIGINT)))
    finally:
        signal.signal(signal.SIGINT, before)
    assert [path.name for path in results.scan(tmp_path / "two")] == ["a"]
    assert do(runs, tmp_path / "two", place, resume=True) == ["skipped", "taken", "taken"]


@pytest.mark.usefixtures("fake_engine")
def test_the_command_shows_and_empties(tmp_path, cli, place, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run = words("run", "fake/s1*", "--store", place, "-j", "1", "-q")
    assert cli(*run, "--out", "one")[0] == 0
    code, out, err = cli(*run[:-1], "--out", "two")
    assert (code, out.splitlines()[0].rpartition(" in ")[0]) == (0, "3 runs: 3 cached")
    assert "fake/s1-first/a: cached" in err
    code, _, err = cli("duel", "reno", "cubic", "--duration", "2s", "--store", place, "--out", "three")
    assert (code, "taken" in err) == (0, False)
    code, _, err = cli("duel", "reno", "cubic", "--duration", "2s", "--store", place, "--out", "four")
    assert (code, "cached: 1 of 1 runs" in err) == (0, True)
    code, out, _ = cli("store", place, "--json")
    shown = json.loads(out)
    assert (shown["runs"], shown["bytes"] > 0) == (4, True)
    assert cli("store", place, "--empty", "--yes")[1].endswith(f": removed 4 runs, {out_size(shown['bytes'])}\n")
    assert json.loads(cli("store", place, "--json")[1])["runs"] == 0
    assert len(results.scan("one")) == 3
    assert cli("store", "none") == (2, "", "bakeoff: store: 'none' means no store; expected a path or a URL\n")


def out_size(count: int) -> str:
    from bakeoff.cli.results import size_in_words

    return size_in_words(count)


def test_a_url_without_a_driver_is_refused():
    with pytest.raises(BakeoffError, match="'ftp': unknown protocol"):
        RemoteStore("ftp://host/folder")
