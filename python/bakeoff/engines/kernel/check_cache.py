"""What a kernel was found to have, kept beside it, so that only the first command has to boot it and ask.

The file `check.json` in the kernel's folder holds the report and the key of all that it depends on. Another kernel,
module, agent or program of iproute2, or another version of the questions, has another key, and the kernel is asked
anew.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from bakeoff import files
from bakeoff.engines.kernel import check, host_programs
from bakeoff.engines.kernel.registry import BuiltKernel
from bakeoff.engines.lab import agent

NAME: Final = "check.json"
_MOST: Final = 1 << 20
"""Bytes of such a file: a report has some twenty thousand."""
_ASKED_WITH: Final = ("ip", "tc", "nft")


class _Kept(msgspec.Struct, frozen=True):
    key: str
    report: check.Report


def report(kernel: BuiltKernel) -> check.Report:
    """`check.check_kernel`, or what it said before of the same kernel under the same circumstances.

    A kernel that did not boot is asked again by the next command, and so is one that nobody here built.
    """
    if kernel.foreign:
        return check.check_kernel(kernel)
    path = kernel.binary.with_name(NAME)
    key = _key(kernel)
    with contextlib.suppress(OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        kept = msgspec.json.decode(files.read(path, _MOST), type=_Kept)
        if kept.key == key:
            return kept.report
    found = check.check_kernel(kernel)
    if all(finding.ok for finding in found.findings if finding.kind == "boot"):
        # The folder may be another user's: then each command asks for itself.
        with contextlib.suppress(OSError):
            _write(path, msgspec.json.encode(_Kept(key, found)))
    return found


def _key(kernel: BuiltKernel) -> str:
    """A digest of the kernel, its modules, the agent, the programs that ask, and the questions."""
    looked_at = [kernel.binary, *kernel.modules, agent.find()]
    looked_at += [path for path in map(host_programs.find, _ASKED_WITH) if path is not None]
    digest = hashlib.sha256(f"{kernel.name}\n{kernel.fingerprint}\n".encode())
    for path in looked_at:
        status = path.stat()
        digest.update(f"{path} {status.st_size} {status.st_mtime_ns}\n".encode())
    for source in ("check.py", "probe.py"):
        digest.update(Path(__file__).with_name(source).read_bytes())
    return digest.hexdigest()


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all: another command may be reading it."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{NAME}-") as folder:
        made = Path(folder, NAME)
        made.write_bytes(content)
        # Other users may boot kernels from this cache.
        made.chmod(0o644)
        made.replace(path)
