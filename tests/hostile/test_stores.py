"""A store that others may write to, or that is none: what is removed, what is followed, and what a run costs."""

import io
import json
import lzma
import os
import stat
import tarfile
import tracemalloc
from hashlib import sha256
from pathlib import Path

import fsspec
import pytest

from bakeoff.campaign import Execution, archive, store
from bakeoff.campaign.archive import DamagedError
from bakeoff.campaign.store_local import LocalStore
from bakeoff.campaign.store_remote import RemoteStore
from bakeoff.errors import BakeoffError
from fakes.runs import make, run_campaign

KEY = "ab" * 32


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """The working directory is empty."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def folder():
    """The results of a run."""
    run_campaign([make("a")], Path("made"), Execution(jobs=1))
    return Path("made/fake/s1-first/a")


@pytest.fixture
def memory():
    """memory://S is empty."""
    files = fsspec.filesystem("memory")
    files.store.clear()
    files.pseudo_dirs[:] = [""]
    return files


def everything(root: Path) -> dict[str, bytes | None]:
    """Every name below the folder, with what a regular file holds."""
    return {
        str(path): path.read_bytes() if path.is_file() and not path.is_symlink() else None
        for path in sorted(root.rglob("*"))
    }


def stored_by(key: str, folder: Path, root: Path = Path("S")) -> Path:
    LocalStore(root).put(key, folder)
    return root / key[:2] / key


def no_entry(kind: str, place: Path, folder: Path) -> None:
    """Make what is no stored run at `place`, which has the name of one."""
    if kind == "without a manifest":
        place.mkdir(parents=True)
        (place / "thesis.txt").write_text("ten years")
    elif kind == "with a manifest of nothing":
        no_entry("without a manifest", place, folder)
        (place / archive.MANIFEST).write_text('{"format": 1, "files": {}}')
    elif kind == "with files beside the manifest's":
        (stored_by(place.name, folder) / "thesis.txt").write_text("ten years")
    elif kind == "with a folder":
        (stored_by(place.name, folder) / "photos").mkdir()
    elif kind == "with another digest":
        log = stored_by(place.name, folder) / "setup.log"
        content = log.read_bytes()
        log.unlink()
        log.write_bytes(content[:-1] + b"!")
    elif kind == "of another user":
        os.chown(stored_by(place.name, folder), 4711, -1)
    elif kind == "a link":
        place.parent.mkdir(parents=True)
        place.symlink_to(Path("elsewhere").absolute())
    elif kind == "behind a link":
        place.parent.parent.mkdir(exist_ok=True)
        place.parent.symlink_to(Path("elsewhere").absolute())
    elif kind == "with a link for a file":
        log = stored_by(place.name, folder) / "setup.log"
        log.rename("log")
        log.symlink_to(Path("log").absolute())


KINDS = [
    "without a manifest", "with a manifest of nothing", "with files beside the manifest's", "with a folder",
    "with another digest", "of another user", "a link", "behind a link", "with a link for a file",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", ["empty", "bound"])
def test_only_what_was_stored_is_removed(cli, folder, monkeypatch, kind, way):
    if kind == "of another user" and os.geteuid() != 0:
        pytest.skip("only root can give files away")
    stored_by(KEY, folder, Path("elsewhere"))  # KEY[:2]/KEY, and the folder itself behind either link
    stored_by("cd" * 32, folder, Path("elsewhere"))
    no_entry(kind, Path("S", KEY[:2], KEY), folder)
    Path("S/ab/important").mkdir(exist_ok=True)
    Path("S/ab/important/thesis.txt").write_text("ten years")
    before = everything(Path("S")), everything(Path("elsewhere"))
    entry = stored_by("cd" * 32, folder)
    assert entry.is_dir()
    if way == "empty":
        assert cli("store", "S", "--empty", "--yes")[0] == 0
    else:
        monkeypatch.setenv("BAKEOFF_STORE_LIMIT", "1")
        again = LocalStore(Path("S"))
        again.put("ef" * 32, folder)
        again.close()
        before[0]["S/bytes"] = (Path("S") / "bytes").read_bytes()
    assert not entry.exists()
    left = {name: content for name, content in everything(Path("S")).items() if name not in ("S/cd", "S/ef")}
    assert (left, everything(Path("elsewhere"))) == before


def test_a_link_in_the_place_of_a_shard_is_neither_read_nor_written(folder):
    stored_by(KEY, folder, Path("elsewhere"))
    Path("S").mkdir()
    Path("S/ab").symlink_to(Path("elsewhere/ab").absolute())
    before = everything(Path("elsewhere"))
    there = LocalStore(Path("S"))
    Path("into").mkdir()
    with pytest.raises(DamagedError, match="a link, or inside one"):
        there.fetch(KEY, Path("into"))
    with pytest.raises(BakeoffError, match=": a link; expected a folder"):
        there.put(KEY, folder)
    there.close()
    assert everything(Path("elsewhere")) == before


def test_a_folder_that_has_the_name_of_a_run_is_not_replaced(folder):
    place = Path("S", KEY[:2], KEY)
    (place / "photos").mkdir(parents=True)
    with pytest.raises(BakeoffError, match="not a cached run of this user"):
        LocalStore(Path("S")).put(KEY, folder)
    assert (place / "photos").is_dir()


def test_emptying_asks(cli, folder, monkeypatch):
    entry = stored_by(KEY, folder)
    code, out, err = cli("store", "S", "--empty")
    assert (code, out) == (2, "")
    assert err.endswith(
        "bakeoff: store --empty: cannot ask for confirmation, standard input is not a terminal; expected --yes\n"
    )
    monkeypatch.setattr(
        "bakeoff.cli.results.sys.stdin", type("Terminal", (io.StringIO,), {"isatty": lambda _: True})("n\n")
    )
    assert cli("store", "S", "--empty")[0] == 1
    assert entry.is_dir()


@pytest.mark.parametrize("kind", ["link", "fifo", "folder", "thesis", "two names"])
def test_what_has_the_name_of_the_total_stays(kind):
    Path("target").write_text("7\n")
    Path("S").mkdir()
    total = Path("S/bytes")
    {
        "link": lambda: total.symlink_to("../target"),
        "fifo": lambda: os.mkfifo(total),
        "folder": total.mkdir,
        "thesis": lambda: total.write_text("ten years"),
        "two names": lambda: os.link("target", total),
    }[kind]()

    def state():
        found = total.lstat()
        return found.st_mode, found.st_ino, found.st_nlink, found.st_size, found.st_mtime_ns

    before = state()
    report = run_campaign([make("a"), make("b")], Path("c"), Execution(jobs=1, store=store.opened("S")))
    assert ([done.status for done in report.runs], report.not_stored) == (["ok", "ok"], None)
    assert (Path("target").read_text(), state()) == ("7\n", before)
    assert LocalStore(Path("S")).empty().runs == 2
    assert stat.S_IFMT(total.lstat().st_mode) == stat.S_IFMT(before[0])


MANIFESTS = [
    b"", b"[]", b"{}", b"null", b'"files"', b"7", b"\xff", b"[" * 100_000, b'{"files":' * 20_000,
    b'{"format": 1, "files": []}', b'{"format": 1, "files": {"run.json": null}}',
    b'{"format": 1, "files": {"run.json": []}}',
    *(
        b'{"format": 1, "files": {"run.json": {"bytes": %s, "sha256": "%s"}}}' % (number, b"0" * 64)
        for number in (
            b"Infinity", b"-Infinity", b"NaN", b"1e400", b"-1", b"1.5", b'"7"', b"true", b"null", b"[]", b"9" * 5000,
        )
    ),
    *(
        b'{"format": 1, "files": {"run.json": {"bytes": 7, "sha256": %s}}}' % digest
        for digest in (b"7", b"null", b'""', b'"zz"', b"[]", b"Infinity")
    ),
    b'{"format": Infinity, "files": {}}', b'{"format": 2, "files": {}}', b'{"files": {}}',
]  # fmt: skip


@pytest.mark.parametrize("text", MANIFESTS)
def test_a_damaged_manifest_costs_nothing(text):
    with pytest.raises(DamagedError):
        archive.read_manifest(text)
    assert [
        done.status for done in run_campaign([make("a")], Path("c"), Execution(jobs=1, store=store.opened("S"))).runs
    ] == ["ok"]
    [place] = Path("S").glob("*/*/stored.json")
    place.unlink()
    place.write_bytes(text)
    report = run_campaign([make("a")], Path("d"), Execution(jobs=1, store=store.opened("S")))
    assert ([done.status for done in report.runs], report.not_stored) == (["ok"], None)
    assert run_campaign([make("a")], Path("e"), Execution(jobs=1, store=store.opened("S"))).runs[0].status == "taken"


def listed(sizes: dict[str, int]) -> bytes:
    return archive.written({name: (size, "0" * 64) for name, size in sizes.items()})


def test_a_manifest_of_more_bytes_than_a_run_has_is_refused():
    for sizes in ({"run.json": 1 << 33}, {"run.json": 7} | {f"{n}.pcapng": 1 << 32 for n in range(5)}):
        with pytest.raises(DamagedError):
            archive.read_manifest(listed(sizes))


# Behind a URL.


def tar(members: list[tuple[tarfile.TarInfo, bytes]], mode: str = "w", form: int = tarfile.PAX_FORMAT) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode=mode, format=form) as file:
        for member, content in members:
            file.addfile(member, io.BytesIO(content))
    return written.getvalue()


def member(name: str, size: int, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    return info


SIZE = 1 << 30
TEXT = archive.written({"run.json": (SIZE, "0" * 64)})
FIRST = member(archive.MANIFEST, len(TEXT)), TEXT


def compressed() -> bytes:
    content = io.BytesIO()
    with lzma.open(content, "w") as file:
        file.write(tar([FIRST])[:1024])
        file.write(member("run.json", SIZE).tobuf())
        for _ in range(SIZE >> 20):
            file.write(bytes(1 << 20))
    return content.getvalue()


def sparse() -> bytes:
    """A header of GNU's that says that the file is a hole."""
    header = bytearray(member("run.json", 0, tarfile.GNUTYPE_SPARSE).tobuf(tarfile.GNU_FORMAT))
    header[483:495] = b"%011o\0" % SIZE
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return tar([FIRST])[:1024] + bytes(header) + bytes(1024)


def extended_sparse() -> bytes:
    pax = member("run.json", 0)
    pax.pax_headers = {"GNU.sparse.map": f"{SIZE},0", "GNU.sparse.size": str(SIZE)}
    return tar([FIRST, (pax, b"")])


def link() -> bytes:
    leads = member("run.json", 0, tarfile.SYMTYPE)
    leads.linkname = "/etc/passwd"
    return tar([FIRST, (leads, b"")])


def one_too_many() -> bytes:
    text = archive.written({"run.json": (2, sha256(b"{}").hexdigest())})
    files = {archive.MANIFEST: text, "run.json": b"{}", "thesis": b"no"}
    return tar([(member(name, len(content)), content) for name, content in files.items()])


BOMBS = {
    "compressed": compressed,
    "sparse": sparse,
    "sparse, by an extended header": extended_sparse,
    "a long extended header": lambda: member("x", SIZE, tarfile.XHDTYPE).tobuf() + bytes(10_000),
    "a large manifest": lambda: member(archive.MANIFEST, SIZE).tobuf() + bytes(10_000),
    "a link": link,
    "a member too many": one_too_many,
    "cut": lambda: tar([FIRST])[:1024] + member("run.json", SIZE).tobuf() + bytes(10_000),
    "text": lambda: b"no tar file at all" * 100,
}
"""Archives of some kilobytes that unfold to a gigabyte, or lead elsewhere."""


@pytest.mark.parametrize("kind", BOMBS)
def test_an_archive_takes_no_more_memory_than_a_part_of_a_file(kind):
    content = BOMBS[kind]()
    assert len(content) < 1 << 20
    Path("into").mkdir()
    tracemalloc.start()
    try:
        with pytest.raises(DamagedError):
            archive.unpack(io.BytesIO(content), Path("into"))
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    assert sum(path.stat().st_size for path in Path("into").iterdir()) <= len(content)


def test_what_is_no_archive_of_a_run_costs_no_run_and_stays(memory):
    assert (
        run_campaign([make("a")], Path("c"), Execution(jobs=1, store=store.opened("memory://S"))).runs[0].status == "ok"
    )
    [name] = memory.find("/S")
    whole = memory.cat_file(name)
    others = {f"/S/ab/{KEY}.tar": compressed(), "/S/thesis.tar": whole, "/S/backups/2020/photos.tar": b"x"}
    others |= {f"/S/cd/{KEY}.tar": whole, f"/S/ab/{KEY.upper()}.tar": whole}
    for other, content in others.items():
        memory.pipe_file(other, content)
    assert RemoteStore("memory://S").empty().runs == 1
    assert memory.find("/S") == sorted(others)
    memory.pipe_file(name, sparse())
    assert (
        run_campaign([make("a")], Path("d"), Execution(jobs=1, store=store.opened("memory://S"))).runs[0].status == "ok"
    )
    assert memory.cat_file(name)[:512] == whole[:512]


def test_long_names_and_those_of_other_scripts_are_packed(folder):
    for name in ("m" * 63 + "-to-" + "s" * 63 + ".pcapng", "m" * 63 + "-to-" + "s" * 60 + "é.pcapng", "é-to-ü.pcapng"):
        (folder / name).write_bytes(name.encode())
    Path("into").mkdir()
    archive.unpack(io.BytesIO(archive.packed(folder)), Path("into"))
    assert {path.name: path.read_bytes() for path in Path("into").iterdir()} == {
        path.name: path.read_bytes() for path in folder.iterdir()
    }


def test_what_is_shown_counts_stored_runs_only(cli, folder):
    stored_by(KEY, folder)
    Path("S/ab/photos").mkdir()
    code, out, _ = cli("store", "S", "--json")
    assert (code, json.loads(out)["runs"]) == (0, 1)
