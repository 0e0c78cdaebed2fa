"""Builds the simulator together with a crate that has congestion controls (`bakeoff with`).

The crate is a library with `pub fn register(&mut bakeoff_sim::Registry)`, as examples/rust-cc. Rust has no stable ABI:
both are compiled into one extension, by one compiler.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from bakeoff.engines.kernel import cache
from bakeoff.errors import CrateError

_MANIFEST: Final = """\
[package]
name = "bakeoff-own"
version = "0.0.0"
edition = "2024"

[workspace]

[lib]
crate-type = ["cdylib"]

[dependencies]
bindings = {{ package = "bakeoff-bindings", path = {bindings}, default-features = false }}
own = {{ package = {package}, path = {crate} }}
pyo3 = {{ version = "*", features = ["abi3-py311"] }}
"""
_LIBRARY: Final = """\
use pyo3::prelude::*;

#[pymodule]
fn _sim(module: &Bound<'_, PyModule>) -> PyResult<()> {
    bindings::fill(module, own::register)
}
"""


@dataclass(frozen=True)
class _Crate:
    folder: Path
    package: str
    tree: Path
    """The source of bakeoff that it depends on."""


def build(folder: Path, *, profile: str = "release", target: Path | None = None, config: Sequence[str] = ()) -> Path:
    """Compile the extension and return its file; at once if nothing changed.

    `profile` is one of bakeoff's Cargo.toml; `target` is the folder of what cargo compiles, `config`
    are more settings for cargo. CrateError if there is no
    cargo, if the folder has no crate that depends on bakeoff-sim, or if it cannot be compiled: the compiler has then
    told why.
    """
    crate = _read(folder)
    place = cache.root() / "crates" / f"{crate.package}-{sha256(bytes(crate.folder)).hexdigest()[:16]}"
    (place / "src").mkdir(parents=True, exist_ok=True)
    paths = {"bindings": crate.tree / "crates" / "bindings", "crate": crate.folder, "package": crate.package}
    manifest = _MANIFEST.format(**{key: json.dumps(str(value)) for key, value in paths.items()})
    _write(place / "Cargo.toml", manifest)
    _write(place / "src" / "lib.rs", _LIBRARY)
    if not (place / "Cargo.lock").is_file():
        # The versions that bakeoff itself is built with.
        shutil.copyfile(crate.tree / "Cargo.lock", place / "Cargo.lock")
    target = target or place / "target"
    done = subprocess.run(
        [
            "cargo", "build", "--quiet", "--manifest-path", str(place / "Cargo.toml"), "--target-dir", str(target),
            "--profile", profile, "--config", str(crate.tree / "Cargo.toml"),
            *(word for setting in config for word in ("--config", setting)),
        ],
        env=os.environ | {"PYO3_BUILD_EXTENSION_MODULE": "1", "PYO3_PYTHON": sys.executable},
        check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise CrateError(f"{folder}: cargo build failed; expected a library with 'pub fn register(&mut Registry)'")
    return _found(target / profile)


def _found(folder: Path) -> Path:
    """The library. CrateError on a system where it is called otherwise."""
    for name in ("libbakeoff_own.so", "libbakeoff_own.dylib"):
        if (folder / name).is_file():
            return folder / name
    raise CrateError(f"{folder}: no libbakeoff_own.so; expected a system with shared libraries of that name")


def _read(folder: Path) -> _Crate:
    manifest = folder.absolute() / "Cargo.toml"
    if not manifest.is_file():
        raise CrateError(f"{folder}: no Cargo.toml; expected a crate, such as a copy of examples/rust-cc")
    if shutil.which("cargo") is None:
        raise CrateError(f"{folder}: cargo is not installed; expected Rust's tools in PATH")
    command = ["cargo", "metadata", "--format-version", "1", "--manifest-path", str(manifest)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise CrateError(f"{folder}: {done.stderr.strip().removeprefix('error: ')}")
    packages: list[dict[str, Any]] = json.loads(done.stdout)["packages"]
    own = next((each for each in packages if Path(each["manifest_path"]) == manifest.resolve()), None)
    if own is None or not any("lib" in each["kind"] for each in own["targets"]):
        raise CrateError(f"{folder}: no library; expected a crate with src/lib.rs")
    simulator = next((each for each in packages if each["name"] == "bakeoff-sim"), None)
    if simulator is None:
        raise CrateError(f"{folder}: does not depend on bakeoff-sim; expected it in [dependencies]")
    return _Crate(manifest.parent, own["name"], Path(simulator["manifest_path"]).parents[2])


def _write(path: Path, text: str) -> None:
    """Only if it is new: cargo compiles again what was touched."""
    if not path.is_file() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
