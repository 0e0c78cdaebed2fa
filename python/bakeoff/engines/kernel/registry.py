"""The kernels that were built here, and any other virtual-time kernel by its path."""

from __future__ import annotations

import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

from bakeoff import files
from bakeoff.engines.kernel import cache, config
from bakeoff.errors import BakeoffError, KernelError

FORMAT = 1
# Bytes of a build.json.
_LARGEST = 1 << 20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+~-]*")


@dataclass(frozen=True)
class BuiltKernel:
    """A User-Mode-Linux binary and what is known about it."""

    name: str
    binary: Path
    release: str
    """As `uname -r` shows it."""
    fingerprint: str
    """SHA-256 of configuration, release and source identity; of the binary itself for one that was built elsewhere."""
    options: dict[str, str]
    """The whole configuration: symbol without `CONFIG_` -> value."""
    modules: tuple[Path, ...] = ()
    """External modules (.ko) to load with `insmod` before anything else, in this order."""
    source: str = ""
    """What it was built from, as the user named it, and its identity."""
    not_granted: tuple[str, ...] = ()
    """Symbols that were asked for and that this tree does not have or does not allow."""
    foreign: bool = False
    """Whether it was given by path: nobody here built it."""


def check_name(name: str) -> str:
    """The name, if it can be one: it becomes a folder of the cache."""
    if not _NAME.fullmatch(name):
        raise KernelError(f"--name {name!r}: expected letters, digits and . _ + ~ -, starting with a letter or digit")
    return name


def list_kernels() -> list[BuiltKernel]:
    """Every kernel in the cache folder, by name. One whose files are damaged is left out."""
    kernels = []
    folder = cache.kernels()
    for path in sorted(folder.glob("*/build.json")) if folder.is_dir() else []:
        try:
            kernels.append(_load(path.parent))
        except BakeoffError:
            continue
    return kernels


def get(name_or_path: str | Path) -> BuiltKernel:
    """A kernel by the name it was built under, or by the path of its binary.

    A binary is read and not executed. BakeoffError if there is none, if the file is no User-Mode-Linux kernel, or if it
    has no virtual time.
    """
    text = str(name_or_path)
    if "/" not in text and not isinstance(name_or_path, Path):
        folder = cache.kernels() / text
        if (folder / "build.json").is_file():
            return _load(folder)
        known = ", ".join(kernel.name for kernel in list_kernels()) or "none yet"
        raise KernelError(
            f"no kernel {text!r}; expected one of: {known}, or a path with a slash (./linux); build one with 'bakeoff "
            "kernel build --source DIR|TARBALL'"
        )
    return _from_binary(Path(name_or_path).expanduser())


def save(kernel: BuiltKernel, folder: Path) -> None:
    """Write build.json, the last file of a build: without it the kernel is not listed."""
    document = {
        "format": FORMAT,
        "name": kernel.name,
        "release": kernel.release,
        "fingerprint": kernel.fingerprint,
        "source": kernel.source,
        "modules": [str(path.relative_to(folder)) for path in kernel.modules],
        "not_granted": list(kernel.not_granted),
    }
    temporary = folder / ".build.json.partial"
    temporary.write_text(json.dumps(document, indent=2) + "\n")
    temporary.replace(folder / "build.json")


def _load(folder: Path) -> BuiltKernel:
    path = folder / "build.json"
    try:
        document = json.loads(files.read(path, _LARGEST))
        if document["format"] != FORMAT:
            raise KernelError(f"{path}: format {document['format']}, expected {FORMAT}; build the kernel again")
        kernel = BuiltKernel(
            name=folder.name,
            binary=folder / "linux",
            release=document["release"],
            fingerprint=document["fingerprint"],
            options=config.read(folder / "config"),
            modules=tuple(_module(folder, name) for name in document["modules"]),
            source=document["source"],
            not_granted=tuple(document["not_granted"]),
        )
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise KernelError(f"{path}: damaged ({error!r}); build the kernel again") from error
    if not os.access(kernel.binary, os.X_OK):
        raise KernelError(f"{kernel.binary}: missing or not executable; build the kernel again")
    return kernel


def _module(folder: Path, name: str) -> Path:
    """A module that was built with the kernel. A guest may read it, so that it has to be no other file."""
    path = folder / name
    if path.parent != folder / "modules" or path.suffix != ".ko" or path.is_symlink() or path.parent.is_symlink():
        raise KernelError(f"{folder / 'build.json'}: module {name!r}; expected a file modules/NAME.ko next to it")
    return path


def _from_binary(binary: Path) -> BuiltKernel:
    if not binary.is_file():
        raise KernelError(f"{binary}: no such kernel; expected the 'linux' binary of an ARCH=um build")
    if not os.access(binary, os.X_OK):
        raise KernelError(f"{binary}: not executable; expected the 'linux' binary of an ARCH=um build")
    content = binary.read_bytes()
    configuration = _configuration(content)
    if configuration.get("UML") != "y":
        raise KernelError(f"{binary}: not a User-Mode-Linux kernel; expected the 'linux' binary of an ARCH=um build")
    if configuration.get("UML_TIME_TRAVEL_SUPPORT") != "y":
        raise KernelError(
            f"{binary}: no virtual time (CONFIG_UML_TIME_TRAVEL_SUPPORT is not set); expected a kernel of 'bakeoff "
            "kernel build'"
        )
    release = re.search(rb"Linux version (\d[A-Za-z0-9._+~-]*) ", content)
    if release is None:
        raise KernelError(f"{binary}: no 'Linux version' string; expected the 'linux' binary of an ARCH=um build")
    return BuiltKernel(
        name=binary.name,
        binary=binary.resolve(),
        release=release[1].decode("ascii"),
        fingerprint=hashlib.sha256(content).hexdigest(),
        options=configuration,
        source=str(binary),
        foreign=True,
    )


def _configuration(content: bytes) -> dict[str, str]:
    """What the binary would print if it were executed with `--showconfig`: it holds those lines as they are."""
    lines = re.findall(rb"(?:CONFIG_\w+=[^\n\0]*|# CONFIG_\w+ is not set)(?=\n)", content)
    try:
        return config.parse(b"\n".join(lines).decode("utf-8", "replace"), place="the configuration")
    except BakeoffError:
        return {}
