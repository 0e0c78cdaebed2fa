"""From what the user names (a tree or a tarball) to a clean source tree that kbuild accepts with `O=`.

The user's own tree is only read. A tarball is unpacked once under the cache folder. A tree that was built in place,
which kbuild refuses to use with `O=`, is copied there.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from stat import S_IMODE, S_ISGID, S_ISLNK, S_ISREG, S_ISUID

from bakeoff.engines.kernel import cache, untar
from bakeoff.errors import KernelError

OLDEST = (6, 6)
# Characters of the top Makefile: its version stands in the first lines.
_MAKEFILE = 1 << 20
_TARBALL = re.compile(r"\.(tar(\.(xz|gz|bz2|zst))?|t[xgb]z)$")

WHERE_TO_GET_ONE = """missing --source; expected a Linux source tree, 6.6 or later, such as:
  a distribution's package: linux-source (Debian, Ubuntu), which puts a linux-source-*.tar.xz into /usr/src;
    'bakeoff kernel fetch-source' fetches one without root and prints its path
  a release tarball (linux-*.tar.xz) of kernel.org
  a development tree of your own: a git checkout with TCP Prague, SCE or your patch
Then: bakeoff kernel build --source DIR|TARBALL"""


@dataclass(frozen=True)
class Source:
    """A tree that is ready for an out-of-tree build."""

    tree: Path
    version: tuple[int, int, int]
    release: str
    """As in `7.3.4-rc1`: VERSION.PATCHLEVEL.SUBLEVEL and EXTRAVERSION of the top Makefile."""
    identity: str
    """`git:COMMIT`, `git:COMMIT+CHANGES`, `tarball:SHA256` or `tree:SHA256`: what tells two sources of a version
    apart."""


def prepare(source: Path, progress: Callable[[str], None] = lambda _: None) -> Source:
    """The tree to build from `source`, a folder or a tarball. `progress` gets one line per step that takes time."""
    if not source.exists():
        raise KernelError(f"{source}: no such file or folder; expected a Linux source tree or a tarball of one")
    if source.is_file():
        if not _TARBALL.search(source.name):
            raise KernelError(f"{source}: not a source tree; expected a folder or a .tar, .tar.xz, .tar.gz, .tar.zst")
        progress(f"reading {source.name}")
        digest = _sha256(source)
        tree = _unpack(source, digest, progress)
        return Source(tree, *_release(tree, named=source), f"tarball:{digest}")
    tree = source.resolve()
    version, release = _release(tree, named=source)
    progress(f"identifying {source}")
    identity = _git_identity(tree)
    if identity is None:
        if (tree / ".git").exists():
            progress(f"git does not read {source}, its owner may be another user: it is identified by its files")
        identity = f"tree:{_tree_digest(tree)}"
    if _built_in_place(tree):
        tree = _copy(tree, progress)
    return Source(tree, version, release, identity)


def _release(tree: Path, *, named: Path) -> tuple[tuple[int, int, int], str]:
    makefile = tree / "Makefile"
    text = ""
    if makefile.is_file():
        with makefile.open(errors="replace") as file:
            text = file.read(_MAKEFILE)
    values = dict(re.findall(r"(?m)^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION)[ \t]*=[ \t]*(\S*)", text))
    if "PATCHLEVEL" not in values or not (tree / "Kconfig").is_file():
        raise KernelError(
            f"{named}: not a Linux source tree: no Makefile with VERSION and PATCHLEVEL; expected its top folder, or a "
            "tarball"
        )
    try:
        version = (int(values["VERSION"]), int(values["PATCHLEVEL"]), int(values.get("SUBLEVEL") or 0))
    except (KeyError, ValueError) as error:
        raise KernelError(f"{named}/Makefile: VERSION, PATCHLEVEL, SUBLEVEL are {values}; expected numbers") from error
    release = f"{version[0]}.{version[1]}.{version[2]}{values.get('EXTRAVERSION', '')}"
    if version[:2] < OLDEST:
        raise KernelError(f"{named}: Linux {release} is too old; expected {OLDEST[0]}.{OLDEST[1]} or later")
    if not (tree / "arch" / "um" / "Kconfig").is_file():
        raise KernelError(f"{named}: Linux {release} has no arch/um; expected a tree with User-Mode Linux")
    return version, release


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unpack(tarball: Path, digest: str, progress: Callable[[str], None]) -> Path:
    target = cache.sources() / f"{_TARBALL.sub('', tarball.name)}-{digest[:12]}"
    if target.is_symlink() or not target.is_dir():
        progress(f"unpacking {tarball.name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".unpack-") as folder:
            untar.unpack(tarball, Path(folder))
            _rename(_top(Path(folder)), target)
    return target


def _rename(folder: Path, target: Path) -> None:
    try:
        folder.rename(target)
    except OSError:
        # Another build unpacked the same tarball meanwhile: its tree is as good.
        if not target.is_dir():
            raise


def _top(folder: Path) -> Path:
    """The single folder of a tarball, or the folder itself where the tarball has no top folder."""
    entries = list(folder.iterdir())
    alone = len(entries) == 1 and entries[0].is_dir() and not entries[0].is_symlink()
    return entries[0] if alone else folder


# A repository's own configuration may name programs. Commands that read no content start no filter and no diff program.
# These settings exclude the rest: file system monitor, hooks, pager, and the transport that fetches missing objects.
_GIT = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "core.pager=cat",
    "-c",
    "protocol.allow=never",
)
_GIT_ENVIRONMENT = {
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_SUBMODULE = b"160000 "
"""How the index's entry of a submodule begins."""


def _git(tree: Path, *words: str) -> bytes | None:
    """The output of a git command in the tree; None if there is no git, no repository, or one of another user."""
    if not (tree / ".git").exists() or shutil.which("git") is None:
        return None
    # Inside of a hook git's variables name the repository that the hook belongs to.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", *_GIT, "-C", str(tree), *words],
        env=environment | _GIT_ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return done.stdout if done.returncode == 0 else None


def _git_identity(tree: Path) -> str | None:
    """The commit, and the SHA-256 of what differs from it or is new; None if git does not say.

    git lists the files whose status changed, and their content is compared here: `git diff` would start the clean
    filters of the repository's configuration, and those of its submodules.
    """
    commit = _git(tree, "rev-parse", "HEAD")
    held = _git(tree, "ls-files", "--stage", "-z")
    raw = _git(tree, "diff-index", "--raw", "-z", "--no-abbrev", "--no-renames", "--ignore-submodules=all", "HEAD")
    others = _git(tree, "ls-files", "--others", "--exclude-standard", "-z")
    if commit is None or held is None or raw is None or others is None:
        return None
    if any(entry.startswith(_SUBMODULE) for entry in held.split(b"\0")):
        return None
    fields = raw.split(b"\0")[:-1]
    changed = [name for how, name in zip(fields[::2], fields[1::2], strict=True) if _differs(tree, how, name)]
    names = sorted({*changed, *filter(None, others.split(b"\0"))})
    identity = f"git:{commit.decode().strip()}"
    if not names:
        return identity
    digest = hashlib.sha256()
    for name in names:
        path = tree / os.fsdecode(name)
        content = _content(path)
        digest.update(b"%s\0%s %d\0" % (name, _kind(path).encode(), len(content)) + content)
    return f"{identity}+{digest.hexdigest()}"


def _differs(tree: Path, how: bytes, name: bytes) -> bool:
    """Whether a file is not that of the commit. `how` is of git's raw format: modes, objects and a letter."""
    old_mode, new_mode, old, _, letter = how.removeprefix(b":").split(b" ")
    if letter != b"M" or old_mode != new_mode:
        return True
    content = _content(tree / os.fsdecode(name))
    blob = hashlib.new("sha1" if len(old) == 40 else "sha256", b"blob %d\0" % len(content) + content)
    return blob.hexdigest().encode() != old


def _kind(path: Path) -> str:
    if path.is_symlink():
        return "link"
    return "missing" if not path.is_file() else "program" if os.access(path, os.X_OK) else "file"


def _content(path: Path) -> bytes:
    """Of a link where it leads, which may be out of the tree; of a pipe or a device nothing."""
    if path.is_symlink():
        return os.fsencode(path.readlink())
    return path.read_bytes() if path.is_file() else b""


# Parts of a tree that no UML binary is made of, large enough to be worth leaving out of its digest.
_NOT_COMPILED = {"Documentation", "samples", "tools", "LICENSES", ".git", "sound", "debian"}
_NOT_ARCH = {"um", "x86"}


def _tree_digest(tree: Path) -> str:
    digest = hashlib.sha256()
    for path in _walk(tree):
        name = path.relative_to(tree).as_posix()
        # Objects of a build in place are products, not source.
        if path.suffix in {".o", ".ko", ".a", ".cmd", ".mod"} or path.is_symlink() or not path.is_file():
            continue
        with path.open("rb") as file:
            digest.update(f"{name}\0{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def _walk(tree: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(tree):
        here = Path(folder)
        if here == tree:
            folders[:] = [name for name in folders if name not in _NOT_COMPILED]
        elif here == tree / "arch":
            folders[:] = [name for name in folders if name in _NOT_ARCH]
        elif here == tree / "drivers":
            folders[:] = [name for name in folders if name not in {"gpu", "media", "staging", "infiniband", "iio"}]
        folders.sort()
        for name in sorted(files):
            yield here / name


def _built_in_place(tree: Path) -> bool:
    """Whether kbuild would refuse `O=`: the same three traces that its top Makefile looks for."""
    return (
        (tree / ".config").is_file()
        or (tree / "include" / "config").is_dir()
        or (tree / "arch" / "um" / "include" / "generated").is_dir()
        or (tree / "arch" / "x86" / "include" / "generated").is_dir()
    )


def _copy(tree: Path, progress: Callable[[str], None]) -> Path:
    """An up-to-date copy without the products of the build in place; times are kept, so that make rebuilds little."""
    target = cache.sources() / f"{tree.name}-copy-{hashlib.sha256(os.fsencode(tree)).hexdigest()[:12]}"
    progress(f"copying {tree} (built in place)")
    target.mkdir(parents=True, exist_ok=True)
    kept: set[Path] = set()
    for folder, folders, files in os.walk(tree):
        here = Path(folder)
        if here == tree:
            folders[:] = [name for name in folders if name != ".git"]
        there = target / here.relative_to(tree)
        kept.add(there)
        links = [name for name in folders if (here / name).is_symlink()]
        folders[:] = [name for name in folders if name not in links]
        there.mkdir(exist_ok=True)
        for name in files + links:
            # Objects are by far most of a built tree, and mrproper would remove them anyway. vmlinux.lds.S is source.
            product = name.endswith((".o", ".ko", ".a", ".cmd")) or name.startswith("vmlinux")
            if product and not name.endswith((".S", ".h")):
                continue
            kept.add(there / name)
            _copy_file(here / name, there / name)
    for folder, _, files in os.walk(target, topdown=False):
        for name in files:
            if Path(folder) / name not in kept:
                (Path(folder) / name).unlink()
    for arch in ("um", "x86"):
        done = subprocess.run(
            ["make", "-s", "-C", str(target), f"ARCH={arch}", "mrproper"],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode != 0:
            raise KernelError(f"{tree}: 'make ARCH={arch} mrproper' failed in its copy: {_last_line(done.stderr)}")
    return target


def _copy_file(source: Path, target: Path) -> None:
    stat = source.lstat()
    if not (S_ISREG(stat.st_mode) or S_ISLNK(stat.st_mode)):
        return  # a device or a pipe is no source, and reading it may never end
    if target.is_symlink() or target.exists():
        old = target.lstat()
        if (old.st_size, old.st_mtime_ns, old.st_mode) == (stat.st_size, stat.st_mtime_ns, stat.st_mode):
            return
        target.unlink()
    shutil.copy2(source, target, follow_symlinks=False)
    if stat.st_mode & (S_ISUID | S_ISGID) and S_ISREG(stat.st_mode):
        target.chmod(S_IMODE(stat.st_mode) & 0o777)


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"
