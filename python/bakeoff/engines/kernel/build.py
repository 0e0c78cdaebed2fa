"""Build a virtual-time kernel: any Linux tree from 6.6 on, as ARCH=um, out of the tree, incrementally.

What is kept, under `cache.kernels()/NAME`: `linux` (the binary), `config`, `build.json` (written last), `build.log`,
`modules/*.ko`, and `build/` (the objects, so that the next build is short).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from stat import S_IMODE
from typing import IO, Final

from bakeoff import data, lockfile
from bakeoff.engines.kernel import build_tools, cache, config, registry, seed, source
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.errors import KernelError

HZ = 1000
Progress = Callable[[str, int], None]
"""Called with what is being done (`configure`, `CC net/ipv4/tcp.o`) and the number of objects made so far."""

_STEP = re.compile(r"^\s+(?P<kind>[A-Z][A-Z0-9_]*)\s+(?:\[M\]\s+)?(?P<path>\S+)")


def build(
    tree: Path | None,
    *,
    name: str | None = None,
    modules: Sequence[Path] = (),
    fragments: Sequence[Path] = (),
    jobs: int | None = None,
    progress: Progress = lambda _step, _objects: None,
) -> BuiltKernel:
    """Make a virtual-time kernel from `tree`, a folder or a tarball, and register it as `name` (default:
    `linux-RELEASE`).

    `modules` are folders of external modules, each with a Makefile that kbuild understands (`obj-m := tcp_prague.o`);
    they are copied before they are built, after bakeoff's own, which a tree with AccECN gets (kernel/modules); a module
    of the same name takes the place of ours. `fragments` are files of configuration that count before bakeoff's own
    wishes. A second build with the same name is incremental. BakeoffError if the source is none, is too old, a fragment
    takes away what every run needs, or a tool is missing; if the compiler fails, the message has its first error and
    the path of the log.
    """
    wishes = _wishes(fragments)
    if tree is None:
        raise KernelError(source.WHERE_TO_GET_ONE)
    if name is not None:
        registry.check_name(name)
    for folder in modules:
        if not any((folder / file).is_file() for file in ("Makefile", "Kbuild")):
            raise KernelError(f"--module {folder}: not a folder with a Makefile or Kbuild (obj-m := NAME.o)")
    if missing := build_tools.missing_tools():
        raise KernelError(build_tools.complaint(missing))

    prepared = source.prepare(tree, lambda step: progress(step, 0))
    folder = cache.kernels() / (name or registry.check_name(f"linux-{prepared.release}"))
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder), (folder / "build.log").open("w", buffering=1) as log:
        (folder / "build.json").unlink(missing_ok=True)
        make = _Make(prepared.tree, folder / "build", jobs or os.cpu_count() or 1, log, progress)
        asked, granted = _configure(make, folder, prepared, wishes)
        make.run("linux", "modules")
        made = _modules(make, [*_own_modules(prepared.tree), *modules], folder)
        shutil.copy2(folder / "build" / "linux", folder / "linux")
        shutil.copy2(folder / "build" / ".config", folder / "config")
        kernel = BuiltKernel(
            name=folder.name,
            binary=folder / "linux",
            release=(folder / "build" / "include" / "config" / "kernel.release").read_text().strip(),
            fingerprint=_fingerprint(config.render(granted), prepared, made),
            options=granted,
            modules=tuple(made),
            source=f"{tree} ({prepared.identity})",
            not_granted=tuple(config.refused(asked, granted)),
        )
        # Whoever only runs the kernel, from an image for example, may have no compiler.
        seed.library()
        registry.save(kernel, folder)
    return kernel


class _Make:
    """`make ARCH=um O=…` with the log, the progress, and an error that shows the compiler's own words."""

    def __init__(self, tree: Path, output: Path, jobs: int, log: IO[str], progress: Progress) -> None:
        self.tree = tree
        self.output = output
        self.log = log
        self.progress = progress
        self.objects = 0
        output.mkdir(exist_ok=True)
        self.words = [
            "make", "-C", str(tree), f"-j{jobs}", "ARCH=um", f"O={output}", f"KBUILD_KCONFIG={output}/Kconfig.bakeoff",
            # The same source and configuration give the same binary, whoever builds it and when.
            "KBUILD_BUILD_TIMESTAMP=@0", "KBUILD_BUILD_VERSION=1",
            "KBUILD_BUILD_USER=bakeoff", "KBUILD_BUILD_HOST=bakeoff",
            # UML compiles for symbols that lie anywhere, because its modules are loaded far from it. What is built in
            # lies in the lowest 2 GiB, and is faster if no call and no variable needs an address of 64 bits.
            "CFLAGS_KERNEL=-mcmodel=small",
        ]  # fmt: skip

    def run(self, *targets: str) -> None:
        command = [*self.words, *targets]
        self.log.write(f"+ {' '.join(command)}\n")
        tail: list[str] = []
        # A locale would translate the messages that are looked for; ARCH or O of the caller would misdirect the build.
        environment = {key: value for key, value in os.environ.items() if key not in {"ARCH", "O", "MAKEFLAGS", "M"}}
        with (
            subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment | {"LC_ALL": "C"},
                text=True,
                errors="replace",
                start_new_session=True,
            ) as process,
            _ended_with_its_children(process),
        ):
            for line in process.stdout or ():
                self.log.write(line)
                tail.append(line.rstrip())
                if step := _STEP.match(line):
                    self.objects += step["kind"] in {"CC", "AS", "LD"}
                    self.progress(f"{step['kind']} {step['path']}", self.objects)
            code = process.wait()
        self.log.flush()
        if code != 0:
            errors = [line for line in tail if re.search(r"\berror\b|\*\*\*", line, re.IGNORECASE)]
            first = (errors or tail or ["no output"])[0]
            raise KernelError(f"the kernel does not build: {first}\n  log: {self.log.name}")


@contextmanager
def _ended_with_its_children(process: subprocess.Popen[str]) -> Iterator[None]:
    try:
        yield
    except BaseException:
        # make's own children too: an interrupted build must not go on behind the prompt.
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        raise


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with os.fdopen(lockfile.opened(folder / ".lock")) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise KernelError(f"{folder}: a build with this name is running; expected another --name") from error
        yield


def _wishes(fragments: Sequence[Path]) -> dict[str, str]:
    """What the fragments ask for, the first one first. BakeoffError if one takes away what every run needs."""
    required = config.read(data.folder("kernel") / "config" / "required.config")
    for path in fragments:
        for symbol, value in config.read(path).items():
            if required.get(symbol, value) != value:
                raise KernelError(
                    f"--config {path}: CONFIG_{symbol}={value}: not allowed; expected "
                    f"CONFIG_{symbol}={required[symbol]}"
                )
    return config.merge(*map(config.read, fragments))


def _configure(
    make: _Make, folder: Path, prepared: source.Source, wishes: dict[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Write the configuration and return what was asked for and what the tree granted."""
    make.progress("configure", 0)
    fragments = data.folder("kernel") / "config"
    required = config.read(fragments / "required.config")
    asked = config.merge(required, wishes, config.read(fragments / "wanted.config"), config.offered(prepared.tree))
    _write(folder / "build" / "Kconfig.bakeoff", config.with_hz((prepared.tree / "Kconfig").read_text(), HZ))
    _write(folder / "build" / "asked.config", config.render(asked))
    make.run(f"KCONFIG_ALLCONFIG={folder}/build/asked.config", "allnoconfig")
    granted = config.read(folder / "build" / ".config")
    if lacking := config.refused(required, granted):
        raise KernelError(
            f"{prepared.tree}: Linux {prepared.release} misses required options: "
            + ", ".join(f"CONFIG_{symbol}={required[symbol]} (got {granted.get(symbol, 'n')})" for symbol in lacking)
        )
    return asked, granted


def _write(path: Path, text: str) -> None:
    """Only if it differs: a new time would make kbuild configure again."""
    if not path.is_file() or path.read_text() != text:
        path.write_text(text)


def _own_modules(tree: Path) -> list[Path]:
    """The modules of this repository, if the tree has what they stand on: the feedback of AccECN."""
    header = tree / "include" / "net" / "tcp.h"
    if not header.is_file() or b"TCP_CONG_NO_FALLBACK_RFC3168" not in header.read_bytes():
        return []
    return sorted(makefile.parent for makefile in (data.folder("kernel") / "modules").glob("*/Makefile"))


_BUILT: Final = shutil.ignore_patterns("*.o", "*.ko", "*.cmd", "*.mod*", ".git")


def _left_out(folder: str, names: list[str]) -> set[str]:
    """What of a folder of a module is not copied: what was built. BakeoffError for what a copy of has no end.

    A device gives bytes for ever, and a link to a folder may lead back to where it lies.
    """
    left_out = _BUILT(folder, names)
    for name in sorted({*names} - left_out):
        path = Path(folder) / name
        if not path.is_file() and (path.is_symlink() or not path.is_dir()):
            raise KernelError(f"--module: {path}: not a regular file; expected files, folders and links to files")
    return left_out


def _copy_plainly(source: str, target: str) -> None:
    """With its times, so that make rebuilds little; without the bits that give a user's rights away."""
    shutil.copy2(source, target)
    Path(target).chmod(S_IMODE(Path(target).stat().st_mode) & 0o777)


def _modules(make: _Make, modules: Sequence[Path], folder: Path) -> list[Path]:
    kept = folder / "modules"
    shutil.rmtree(kept, ignore_errors=True)
    made: dict[str, Path] = {}
    for module in modules:
        make.progress(f"module {module}", make.objects)
        copy = folder / "build" / "external" / module.resolve().name
        try:
            shutil.copytree(module, copy, dirs_exist_ok=True, ignore=_left_out, copy_function=_copy_plainly)
        except shutil.Error as error:  # each file with its reason
            raise KernelError(f"--module {module}: cannot be copied: {error.args[0][0][2]}") from None
        make.run(f"M={copy}", "modules")
        objects = sorted(copy.rglob("*.ko"))
        if not objects:
            raise KernelError(
                f"--module {module}: no .ko was built; expected 'obj-m := NAME.o' in its Makefile or Kbuild"
            )
        kept.mkdir(exist_ok=True)
        for path in objects:
            made[path.name] = Path(shutil.copy2(path, kept / path.name))
    return list(made.values())


def _fingerprint(configuration: str, prepared: source.Source, modules: list[Path]) -> str:
    digest = hashlib.sha256()
    digest.update(f"{prepared.release}\n{prepared.identity}\n{configuration}".encode())
    for path in modules:
        digest.update(path.read_bytes())
    return digest.hexdigest()
