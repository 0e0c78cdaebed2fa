"""How a wheel and an sdist of bakeoff are made: by maturin, with the traffic agent and the commit's name put beside the extension.

pip, `make wheel` and the installation of an sdist all come here (pyproject.toml; PEP 517). maturin compiles the extension and packs. The
agent is a program of its own: it is compiled first, and linked statically, so that it also runs on machines of a testbed with an older C library.
"""

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
    with _commit(), _agent(_option(arguments, "--target") or os.environ.get("CARGO_BUILD_TARGET")):
        return maturin.build_wheel(folder, config_settings, metadata)


def build_sdist(folder: str, config_settings: Mapping[str, Any] | None = None) -> str:
    """An sdist, which knows the commit that it comes from; the name of its file."""
    with _commit():
        return maturin.build_sdist(folder, config_settings)


def _option(arguments: list[str], name: str) -> str | None:
    """The value of `--name VALUE` or `--name=VALUE`."""
    for word, following in zip(arguments, [*arguments[1:], None], strict=True):
        if word == name:
            return following
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


@contextmanager
def _commit() -> Iterator[None]:
    """built-from.txt in the package: `COMMIT clean` or `COMMIT dirty`. An unpacked sdist keeps the one that it has."""
    place = PACKAGE / "built-from.txt"
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        yield
        return
    commit = _said("git", "rev-parse", "HEAD")
    dirty = _said("git", "status", "--porcelain", "--untracked-files=no")
    place.write_text(f"{commit} {'dirty' if dirty else 'clean'}\n", encoding="ascii")
    try:
        yield
    finally:
        place.unlink()


@contextmanager
def _agent(target: str | None) -> Iterator[None]:
    """The agent for a target of rustc's (None: this machine), compiled and put into the package while the wheel is made."""
    place = PACKAGE / "bin" / AGENT
    place.parent.mkdir(exist_ok=True)
    shutil.copy(_compiled(target), place)
    try:
        yield
    finally:
        # A tree's own agent is the one in target/, which `make agent` keeps up to date.
        shutil.rmtree(place.parent)


def _compiled(target: str | None) -> Path:
    command = ["cargo", "rustc", "--release", "--locked", "--package", AGENT, "--bin", AGENT]
    command += ["--message-format", "json-render-diagnostics"]
    environment = dict(os.environ)
    if target is not None:
        # musl comes with Rust's own copy of it, and Rust's own linker joins both: no C compiler for the target is needed.
        musl = target.split(".")[0].replace("-gnu", "-musl")
        command += ["--target", musl, "--config", f'target.{musl}.linker="rust-lld"']
    command += ["--", "-C", "target-feature=+crt-static"]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    made = [line["executable"] for line in map(json.loads, done.stdout.splitlines()) if line.get("executable")]
    return Path(made[-1])


def _said(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
