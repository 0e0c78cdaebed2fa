"""A kernel's source that somebody else made: reading it starts nothing, and unpacking it leaves its folder alone."""

import io
import json
import os
import re
import shutil
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest

from bakeoff.engines.kernel import build, cache, registry, source, untar
from bakeoff.errors import BakeoffError

MAKEFILE = b"VERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 4\n"


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def tarball(folder: Path, *more: tuple[str, dict], top: str = "linux/") -> Path:
    """A tarball of a source tree, with more members: name, and what differs from a plain file."""
    path = folder / "linux.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, content in (("Makefile", MAKEFILE), ("Kconfig", b""), ("arch/um/Kconfig", b"")):
            member = tarfile.TarInfo(top + name)
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
        for name, what in more:
            member = tarfile.TarInfo(name)
            for key, value in what.items():
                setattr(member, key, value)
            tar.addfile(member, io.BytesIO(b"x" * member.size))
    return path


@pytest.mark.parametrize(
    "more",
    [
        [("/tmp/out", {"size": 1})],
        [("linux/../../out", {"size": 1})],
        [("linux/null", {"type": tarfile.CHRTYPE, "devmajor": 1, "devminor": 3})],
        [("linux/pipe", {"type": tarfile.FIFOTYPE})],
        [("linux/l", {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"})],
        [("linux/l", {"type": tarfile.SYMTYPE, "linkname": "../../../out"})],
        [("linux/h", {"type": tarfile.LNKTYPE, "linkname": "../../out"})],
        [("linux/l", {"type": tarfile.SYMTYPE, "linkname": "arch"}), ("linux/l/x", {"size": 1})],
        [("linux/l", {"type": tarfile.SYMTYPE, "linkname": "Makefile"}), ("linux/l", {"size": 1})],
    ],
)
def test_a_tarball_holds_nothing_that_leaves_its_folder(tmp_path, more):
    made = tarball(tmp_path, *more)
    with pytest.raises(BakeoffError, match=re.escape(f"{made}: ")):
        source.prepare(made)
    assert list((tmp_path / "cache" / "bakeoff" / "sources").iterdir()) == []
    assert not (tmp_path / "cache" / "bakeoff" / "out").exists()


def test_what_a_tarball_holds_is_the_users_without_special_rights(tmp_path):
    inside = {"type": tarfile.SYMTYPE, "linkname": "../arch/um"}
    more = [("linux/s", {"size": 1, "mode": 0o6777, "uid": 1000, "gid": 1000}), ("linux/x/um", inside)]
    tree = source.prepare(tarball(tmp_path, *more)).tree
    # Nobody else may write, and the bits of set-user-id and set-group-id are gone: 6777 becomes 755.
    assert stat.S_IMODE((tree / "s").stat().st_mode) == 0o755
    assert (tree / "s").stat().st_uid == os.geteuid()
    assert (tree / "x" / "um" / "Kconfig").is_file()


def test_a_lone_link_is_no_tree(tmp_path):
    made = tmp_path / "linux.tar.gz"
    with tarfile.open(made, "w:gz") as tar:
        member = tarfile.TarInfo("linux")
        member.type, member.linkname = tarfile.SYMTYPE, "."
        tar.addfile(member)
    with pytest.raises(BakeoffError, match=r"not a Linux source tree|cannot be unpacked"):
        source.prepare(made)
    assert not any(each.is_symlink() for each in (tmp_path / "cache" / "bakeoff" / "sources").iterdir())


def test_a_tarball_that_unfolds_without_end_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(untar, "MOST_BYTES", 1000)
    with pytest.raises(BakeoffError, match="unpacks to more than 1,000 bytes or 1,000,000 files"):
        source.prepare(tarball(tmp_path, ("linux/zeros", {"size": 1001})))


@pytest.mark.parametrize("kind", [tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.GNUTYPE_LONGNAME])
def test_a_header_without_end_is_refused(tmp_path, kind):
    """tarfile reads such a header whole before it says anything of the member behind it."""
    made = tarball(tmp_path, ("linux/x", {"type": kind, "size": (1 << 20) + 1}))
    with pytest.raises(BakeoffError, match="a header of 1,048,577 bytes; expected at most 1,048,576"):
        source.prepare(made)


def tree_at(folder: Path) -> Path:
    with tarfile.open(tarball(folder)) as tar:
        tar.extractall(folder, filter="data")
    return folder / "linux"


def repository(folder: Path) -> Path:
    tree = tree_at(folder)
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-C", str(tree), *words], check=True, capture_output=True)
    return tree


def test_git_reads_no_repository_of_another_user(tmp_path):
    if os.geteuid() != 0 or shutil.which("git") is None:
        pytest.skip("not root, or no git")
    tree = repository(tmp_path)
    assert source.prepare(tree).identity.startswith("git:")
    for path in [tree, *tree.rglob("*")]:
        os.chown(path, 1000, 1000)
    told: list[str] = []
    assert source.prepare(tree, told.append).identity.startswith("tree:")
    assert any("its owner may be another user" in line for line in told)


def git(tree: Path, *words: str, **options) -> str:
    author = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always")
    done = subprocess.run(
        ["git", "-C", str(tree), *author, *words], check=True, capture_output=True, text=True, **options
    )
    return done.stdout.strip()


STARTS = (
    "core.fsmonitor", "core.pager", "core.editor", "core.sshCommand", "core.askPass", "core.gitProxy",
    "core.alternateRefsCommand", "diff.external", "diff.x.command", "diff.x.textconv", "filter.x.clean",
    "filter.x.smudge", "filter.x.process", "alias.diff-index", "alias.ls-files", "pager.diff-index",
    "pager.ls-files", "pager.rev-parse", "gpg.program", "credential.helper", "remote.evil.uploadpack",
    "remote.evil.vcs", "merge.x.driver",
    "sequence.editor", "uploadpack.packObjectsHook", "interactive.diffFilter", "trailer.x.command",
)  # fmt: skip
"""Settings of a repository that name a program."""


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@pytest.mark.parametrize("url", ["here", "ssh://host/x", "ext::touch started", "evil://x"])
def test_a_repository_that_is_read_starts_nothing(tmp_path, url):
    tree = repository(tmp_path)
    started = tmp_path / "started"
    for key in STARTS:
        git(tree, "config", key, f"touch {started};:")
    for hook in ("post-index-change", "fsmonitor-watchman", "reference-transaction", "post-checkout"):
        (tree / ".git/hooks").mkdir(exist_ok=True)
        (tree / ".git/hooks" / hook).write_text(f"#!/bin/sh\ntouch {started}\n")
        (tree / ".git/hooks" / hook).chmod(0o755)
    (tree / ".git/info").mkdir(exist_ok=True)
    (tree / ".git/info/attributes").write_text("* diff=x filter=x merge=x\n")
    (tree / ".gitattributes").write_text("* diff=x filter=x merge=x\n")
    (tree / "Kconfig").write_text("changed\n")
    os.utime(tree / "Makefile", (1, 1))  # git would read it again
    # What is missing would be fetched from the promisor.
    for key, value in {
        "core.repositoryFormatVersion": "1", "extensions.partialClone": "evil", "remote.evil.promisor": "true",
        "remote.evil.url": str(tree) if url == "here" else url, "protocol.allow": "always",
        "protocol.ext.allow": "always",
    }.items():  # fmt: skip
        git(tree, "config", key, value)
    for path in (tree / ".git/objects").glob("??/*"):
        if path.stat().st_size:
            kind = git(tree, "-c", "extensions.partialClone=", "cat-file", "-t", path.parent.name + path.name)
            if kind == "blob":
                path.unlink()
    assert source.prepare(tree).identity.startswith("git:")
    assert not started.exists()
    for path in (tree / ".git/objects").glob("??/*"):  # now the commit and its trees, too
        path.unlink()
    assert source.prepare(tree).identity.startswith("tree:")
    assert not started.exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_a_submodule_starts_nothing_and_is_identified_by_its_files(tmp_path):
    (tmp_path / "inner").mkdir()
    (tmp_path / "outer").mkdir()
    inner, tree = repository(tmp_path / "inner"), repository(tmp_path / "outer")
    git(tree, "submodule", "add", "-q", str(inner), "net")
    git(tree, "commit", "-q", "-m", "x")
    started = tmp_path / "started"
    git(tree / "net", "config", "filter.x.clean", f"touch {started};:")
    git(tree / "net", "config", "core.fsmonitor", f"touch {started};:")
    (tree / "net/.gitattributes").write_text("* filter=x\n")
    (tree / "net/Kconfig").write_text("changed\n")
    first = source.prepare(tree).identity
    assert first.startswith("tree:")
    (tree / "net/Kconfig").write_text("changed again\n")
    assert source.prepare(tree).identity != first
    assert not started.exists()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_identity_of_a_repository_is_that_of_its_files(tmp_path, monkeypatch):
    tree = repository(tmp_path)
    head = git(tree, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))  # as inside of a hook
    assert source.prepare(tree).identity == f"git:{head}"
    os.utime(tree / "Makefile", (1, 1))
    assert source.prepare(tree).identity == f"git:{head}"
    kept = (tree / "Kconfig").read_text()
    found = {f"git:{head}"}
    for change in (
        lambda: (tree / "Kconfig").write_text("changed\n"),
        lambda: (tree / "Kconfig").write_text("changed again\n"),
        lambda: (tree / "Kconfig").chmod(0o755),
        lambda: (tree / "new.c").write_text("new\n"),
        lambda: (tree / "new.c").write_text("newer\n"),
        lambda: ((tree / "new.c").unlink(), (tree / "new.c").symlink_to("newer\n")),
        lambda: (tree / "arch/um/Kconfig").unlink() or (tree / "arch/um/Kconfig").symlink_to("/dev/null"),
    ):
        change()
        found.add(source._git_identity(tree))
    assert len(found) == 8
    (tree / "new.c").unlink()
    (tree / "arch/um/Kconfig").unlink()
    (tree / "arch/um/Kconfig").write_text("")
    (tree / "Kconfig").write_text(kept)
    (tree / "Kconfig").chmod(0o644)
    assert source._git_identity(tree) == f"git:{head}"


def test_a_copy_of_a_tree_has_no_pipes_and_no_special_rights(tmp_path, monkeypatch):
    tree = tree_at(tmp_path)
    os.mkfifo(tree / "pipe")
    (tree / "s").write_text("x")
    (tree / "s").chmod(0o4755)
    (tree / ".config").write_text("")  # built in place: it is copied
    monkeypatch.setattr(source.subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 0, "", ""))
    copy = source.prepare(tree).tree
    assert copy != tree
    assert not os.path.lexists(copy / "pipe")
    assert stat.S_IMODE((copy / "s").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    "named",
    ["/etc/shadow", "modules/../../../secret.ko", "../secret.ko", "secret.ko", "modules/link.ko", "modules/x", 3],
)
def test_a_kernel_that_was_copied_here_names_no_module_but_its_own(named):
    folder = cache.kernels() / "theirs"
    (folder / "modules").mkdir(parents=True)
    (folder / "modules/link.ko").symlink_to("/etc/passwd")
    (folder / "linux").write_text("#!/bin/true\n")
    (folder / "linux").chmod(0o755)
    (folder / "config").write_text("CONFIG_UML=y\n")
    record = {"format": 1, "release": "7.3", "fingerprint": "x", "source": "", "not_granted": [], "modules": [named]}
    (folder / "build.json").write_text(json.dumps(record))
    with pytest.raises(BakeoffError, match=r"build\.json: (module .*; expected a file modules/NAME\.ko|damaged)"):
        registry.get("theirs")
    (folder / "build.json").write_text(json.dumps(record | {"modules": ["modules/own.ko"]}))
    assert registry.get("theirs").modules == (folder / "modules/own.ko",)


# What stands for a build: it grants all that is asked for, and makes a module of every folder.
BUILDS = b"""
allnoconfig:
\tcp $(KCONFIG_ALLCONFIG) $(O)/.config
linux:
\tmkdir -p $(O)/include/config
\techo 7.3.4 > $(O)/include/config/kernel.release
\techo > $(O)/linux; chmod 755 $(O)/linux
modules:
\ttest -z "$(M)" || touch $(M)/own.ko
"""


@pytest.fixture
def built_with(tmp_path, monkeypatch):
    """Builds a kernel with the module in the folder `module`, which is made here; where its copy lies."""
    monkeypatch.setattr(build.build_tools, "missing_tools", list)
    tree = tree_at(tmp_path)
    (tree / "Makefile").write_bytes(MAKEFILE + BUILDS)
    module = tmp_path / "module"
    module.mkdir()
    (module / "Makefile").write_text("obj-m := own.o\n")

    def make(*fragments: Path) -> Path:
        kernel = build.build(tree, modules=[module], fragments=fragments)
        return kernel.binary.parent / "build" / "external" / "module"

    return make


@pytest.mark.parametrize("what", ["/dev/zero", "/etc", ".", "/nonexistent", "pipe"])
def test_a_modules_folder_holds_files_and_nothing_without_end(tmp_path, built_with, what):
    """A link to a device, to a folder elsewhere, to its own folder, to nothing; a pipe."""
    odd = tmp_path / "module" / "odd"
    os.mkfifo(odd) if what == "pipe" else odd.symlink_to(what)
    with pytest.raises(BakeoffError, match=re.escape(f"--module: {odd}: not a regular file")):
        built_with()


def test_what_a_modules_folder_holds_is_the_users_without_special_rights(tmp_path, built_with):
    module = tmp_path / "module"
    (tmp_path / "common.h").write_text("x")
    (module / "common.h").symlink_to("../common.h")
    (module / "s").write_text("x")
    (module / "s").chmod(0o6755)
    copy = built_with()
    assert stat.S_IMODE((copy / "s").stat().st_mode) == 0o755
    assert (copy / "common.h").read_text() == "x"
    assert not (copy / "common.h").is_symlink()


@pytest.mark.parametrize("what", ["pipe", "/dev/zero", "long"])
def test_a_configuration_is_a_file_of_bounded_size(tmp_path, built_with, what):
    path = tmp_path / "own.config"
    if what == "pipe":
        os.mkfifo(path)
    elif what == "long":
        path.touch()
        os.truncate(path, 1 << 40)
    else:
        path.symlink_to(what)
    with pytest.raises((BakeoffError, OSError), match=r"is not a regular file|is 1,099,511,627,776 bytes; at most"):
        built_with(path)


@pytest.mark.parametrize("name", ["config", "build.json"])
def test_no_file_of_the_cache_of_kernels_is_waited_for(built_with, name):
    folder = built_with().parent.parent.parent
    assert [kernel.name for kernel in registry.list_kernels()] == [folder.name]
    (folder / name).unlink()
    os.mkfifo(folder / name)
    assert registry.list_kernels() == []
