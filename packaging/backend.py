"""How a wheel and an sdist of bakeoff are made: by maturin, with the traffic agent and the commit's name beside it.

pip, `make wheel` and the installation of an sdist all come here (pyproject.toml; PEP 517). maturin compiles the
extension and packs. The agent is a program of its own. It is compiled first, and linked statically, so that it also
runs on machines of a testbed that have an older C library.
"""

import argparse
import fcntl
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import maturin
from maturin import (
    build_editable,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "python" / "bakeoff"
AGENT = "bakeoff-agent"


def build_wheel(folder: str, config_settings: Mapping[str, Any] | None = None, metadata: str | None = None) -> str:
    """A wheel with the extension, the catalog, the kernel's fragments and the agent; the name of its file."""
    arguments = maturin.get_maturin_pep517_args(config_settings)
    with _alone(), _commit(), _agent(target(arguments), profile(arguments)):
        name: str = maturin.build_wheel(folder, config_settings, metadata)
    return name


def build_sdist(folder: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """An sdist, which knows the commit that it comes from; the name of its file."""
    with _alone(), _commit():
        name: str = maturin.build_sdist(folder, config_settings)
    return name


def target(arguments: list[str]) -> str | None:
    """rustc's name of the machine that maturin's arguments or cargo's variable ask for; None for this one."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--target", default=os.environ.get("CARGO_BUILD_TARGET"))
    known, _ = parser.parse_known_args(arguments)
    return str(known.target) if known.target else None


def profile(arguments: list[str]) -> str:
    """Cargo's profile that maturin's arguments ask for."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--profile", default="release")
    known, _ = parser.parse_known_args(arguments)
    return str(known.profile)


@contextmanager
def _alone() -> Iterator[None]:
    """One build at a time in a tree: another's agent, perhaps for another processor, would get into the wheel."""
    (ROOT / "target").mkdir(exist_ok=True)
    with (ROOT / "target" / "packaging.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _commit() -> Iterator[None]:
    """built-from.txt in the package: `COMMIT clean` or `COMMIT dirty`. An unpacked sdist keeps the one that it has."""
    place = PACKAGE / "built-from.txt"
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        yield
        return
    commit = _git("rev-parse", "HEAD")
    dirty = _git("status", "--porcelain", "--untracked-files=no")
    # git answers nothing in a folder of somebody else's, such as one that is mounted into a container.
    if not commit:
        yield
        return
    place.write_text(f"{commit} {'dirty' if dirty else 'clean'}\n", encoding="ascii")
    try:
        yield
    finally:
        place.unlink()


@contextmanager
def _agent(machine: str | None, profile: str) -> Iterator[None]:
    """The agent for a machine (rustc's name; None: this one), which lies in the package while the wheel is made."""
    place = PACKAGE / "bin" / AGENT
    place.parent.mkdir(exist_ok=True)
    shutil.copy(_compiled(machine, profile), place)
    try:
        yield
    finally:
        # A tree's own agent is the one in target/, which `make agent` keeps up to date.
        shutil.rmtree(place.parent)


def _compiled(machine: str | None, profile: str) -> Path:
    command = ["cargo", "rustc", "--profile", profile, "--locked", "--package", AGENT, "--bin", AGENT]
    command += ["--message-format", "json-render-diagnostics"]
    if machine is not None:
        # Rust brings musl and a linker of its own: no C compiler for that machine is needed.
        musl = machine.split(".")[0].replace("-gnu", "-musl")
        command += ["--target", musl, "--config", f'target.{musl}.linker="rust-lld"']
    command += ["--", "-C", "target-feature=+crt-static"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(
            f"{AGENT} could not be compiled, for the reason that cargo gives above. It is linked statically: where the "
            "C library's static half is a package of its own (Fedora: glibc-static), that has to be installed"
        )
    made = [line["executable"] for line in map(json.loads, done.stdout.splitlines()) if line.get("executable")]
    return Path(made[-1])


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False).stdout.strip()
