"""Packet captures, and what irtt wrote, in: a report of each file, as tables, as a results folder, and beside a run.

`read` takes a file of either kind. The report of a capture is made by the crate bakeoff-trace, as JSON
(`bakeoff.captures.report` has its types); that of irtt's JSON is made here.
"""

from __future__ import annotations

import bz2
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from bakeoff.errors import TraceError

if TYPE_CHECKING:
    from pathlib import Path

    from bakeoff.captures.report import Report
    from bakeoff.results.irtt_json import IrttTest

FORMAT: Final = 1
_DATAGRAMS: Final = ("udp", "quic", "irtt", "echo")
_HEAD: Final = 4096
"""Bytes of a file's beginning that tell what it is."""
_BZIP2_BLOCK: Final = 1 << 20
"""No block of bzip2 is larger."""
_MAGICS: Final = tuple(bytes.fromhex(magic) for magic in ("0a0d0d0a", "a1b2c3d4", "d4c3b2a1", "a1b23c4d", "4d3cb2a1"))
"""How pcapng and pcap begin, in both byte orders and with both units of time."""
_PACKED: Final = (b"\x28\xb5\x2f\xfd", b"\xfd7zXZ\x00")
"""How zstd and xz begin: of all files that are read here, only captures are packed by them."""
Ecn = Literal["auto", "none", "rfc3168", "accecn", "sce"]


class CaptureFile:
    """A capture and what it tells.

    Its report is kept as the JSON that the crate made: as Python objects that of many flows takes ten times as much.
    """

    def __init__(self, file: str, told: bytes | Mapping[str, object]) -> None:
        self.file = file
        self.told = told if isinstance(told, bytes) else msgspec.json.encode(told)

    @cached_property
    def report(self) -> Report:
        """What tables, folders and comparisons read of it, with types."""
        from bakeoff.captures.report import Report

        return msgspec.json.decode(self.told, type=Report)

    @cached_property
    def document(self) -> dict[str, Any]:
        """All of it."""
        return msgspec.json.decode(self.told, type=dict[str, Any])

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {"file": self.file, "kind": "capture", **self.document}

    def encoded(self) -> bytes:
        """The same as text."""
        head = msgspec.json.encode({"file": self.file, "kind": "capture"})
        return head[:-1] + b"," + self.told[1:]

    def __repr__(self) -> str:
        """What `bakeoff trace` prints."""
        return _table(self)


@dataclass(frozen=True, repr=False)
class IrttFile:
    """A file of irtt's client and the test that it tells."""

    file: str
    test: IrttTest

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        from bakeoff.captures.irtt import document

        return {"file": self.file, "kind": "irtt", **document(self.test)}

    def encoded(self) -> bytes:
        """The same as text."""
        return msgspec.json.encode(self.to_json())

    def __repr__(self) -> str:
        """What `bakeoff trace` prints."""
        return _table(self)


def _table(found: CaptureFile | IrttFile) -> str:
    from bakeoff.captures import tables

    return tables.text([found], colour=False).rstrip()


def read(path: Path, *, ecn: Ecn = "auto", interval_s: float | None = None) -> CaptureFile | IrttFile:
    """What a file tells; `-` is a capture from standard input.

    `ecn` says how the ECN bits of TCP are to be read, if not as each handshake says. With `interval_s` the report of a
    capture has series. BakeoffError names the file, the place in it and what was expected.
    """
    if os.fspath(path) != "-" and (test := _irtt(path)) is not None:
        return IrttFile(str(path), test)
    told = _told(path, ecn, interval_s)
    if ecn == "auto" and os.fspath(path) != "-":
        from bakeoff.captures.own_run import settled

        told = settled(path, told, lambda mode: _told(path, mode, interval_s))
    return CaptureFile(str(path), told)


def capture(path: Path, *, ecn: Ecn = "auto", interval_s: float | None = None) -> dict[str, Any]:
    """The report of a capture (docs/trace.md)."""
    return msgspec.json.decode(_told(path, ecn, interval_s), type=dict[str, Any])


def _told(path: Path, ecn: str, interval_s: float | None) -> bytes:
    from bakeoff import _sim

    options: dict[str, str | float] = {} if ecn == "auto" else {"ecn": ecn}
    if interval_s is not None:
        options["interval_s"] = interval_s
    try:
        return _sim.trace(os.fspath(path), msgspec.json.encode(options).decode())
    except ValueError as error:
        raise TraceError(str(error)) from None


def of_flows(found: CaptureFile, pattern: str) -> CaptureFile:
    """The same with those flows only that the pattern names: a flow's number, a glob on its name, or a part of it.

    BakeoffError if it names none.
    """
    parts = msgspec.json.decode(found.told, type=dict[str, msgspec.Raw])
    datagrams = msgspec.json.decode(parts["datagrams"], type=dict[str, msgspec.Raw])
    kinds = {"flows": parts["flows"], **{kind: datagrams[kind] for kind in _DATAGRAMS}}
    flows = {kind: msgspec.json.decode(of, type=list[msgspec.Raw]) for kind, of in kinds.items()}
    by_number = pattern.isascii() and pattern.isdigit() and 0 < int(pattern) <= sum(map(len, flows.values()))

    def is_chosen(flow: msgspec.Raw) -> bool:
        known = msgspec.json.decode(flow, type=dict[str, Any])
        if by_number:
            return bool(known["number"] == int(pattern))
        return fnmatchcase(name(known), pattern) or pattern in name(known)

    chosen = {kind: [flow for flow in of if is_chosen(flow)] for kind, of in flows.items()}
    if not any(chosen.values()):
        raise TraceError(
            f"--flow: '{pattern}': no such flow in {found.file}; expected a number of the table, an address or port "
            "such as 10.0.0.1:5201, or a glob on CLIENT>SERVER"
        )
    packed = {kind: msgspec.Raw(msgspec.json.encode(of)) for kind, of in chosen.items()}
    parts["flows"] = packed.pop("flows")
    parts["datagrams"] = msgspec.Raw(msgspec.json.encode({**datagrams, **packed}))
    return CaptureFile(found.file, msgspec.json.encode(parts))


def name(flow: Mapping[str, Any]) -> str:
    """`10.0.0.1:32768>10.0.0.3:5201`, and `10.0.0.1>10.0.0.3` of what has no ports."""
    return ">".join(_end(flow[side]) for side in ("client", "server"))


def _end(end: dict[str, Any] | str) -> str:
    if isinstance(end, str):
        return end
    address, port = end["address"], end["port"]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def is_known(path: Path) -> bool:
    """Whether the file begins as a capture, packed or not, or as irtt's JSON."""
    from bakeoff.results import irtt_json

    head = _head(path)
    return head.startswith((*_MAGICS, *_PACKED)) or irtt_json.is_irtt(head)


def _irtt(path: Path) -> IrttTest | None:
    """The test of irtt that the file tells, None if it is none of irtt's."""
    from bakeoff.results import irtt_json

    return irtt_json.read(path) if irtt_json.is_irtt(_head(path)) else None


def _head(path: Path) -> bytes:
    """The first bytes, unpacked if gzip or bzip2 packed them; none of a file that cannot be read."""
    from bakeoff import files

    try:
        with files.opened(path) as file:
            head = file.read(_HEAD)
            # Only as much as these bytes unpack to: the file may be a capture of any size.
            if head.startswith(b"\x1f\x8b"):
                return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, _HEAD)
            if head.startswith(b"BZh"):
                return bz2.BZ2Decompressor().decompress(head + file.read(_BZIP2_BLOCK), _HEAD)
            return head
    except (OSError, zlib.error):
        return b""  # what is wrong with it, its reader says
