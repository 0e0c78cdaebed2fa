"""Packet captures, and what irtt wrote, in: a report of each file, as tables, as a results folder, and beside a run.

`read` takes a file of either kind. The report of a capture is made by the crate bakeoff-trace, as JSON
(`bakeoff.trace.report` has its types); that of irtt's JSON is made here.
"""

from __future__ import annotations

import json
import os
import zlib
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, Literal

import msgspec

from bakeoff.errors import BakeoffError

if TYPE_CHECKING:
    from pathlib import Path

    from bakeoff.results.irtt_json import IrttTest
    from bakeoff.trace.report import Report

FORMAT: Final = 1
_DATAGRAMS: Final = ("udp", "quic", "irtt", "echo")
_HEAD: Final = 4096
"""Bytes of a file's beginning that tell what it is."""
Ecn = Literal["auto", "none", "rfc3168", "accecn", "sce"]


@dataclass(frozen=True)
class CaptureFile:
    """A capture and what it tells."""

    file: str
    document: dict[str, Any]
    """As the crate made it."""

    @property
    def report(self) -> Report:
        """The same with types."""
        from bakeoff.trace.report import Report

        return msgspec.convert(self.document, Report)

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        return {"file": self.file, "kind": "capture", **self.document}


@dataclass(frozen=True)
class IrttFile:
    """A file of irtt's client and the test that it tells."""

    file: str
    test: IrttTest

    def to_json(self) -> dict[str, Any]:
        """For `--json`."""
        from bakeoff.trace.irtt import document

        return {"file": self.file, "kind": "irtt", **document(self.test)}


def read(path: Path, *, ecn: Ecn = "auto", interval_s: float | None = None) -> CaptureFile | IrttFile:
    """What a file tells; `-` is a capture from standard input.

    `ecn` says how the ECN bits of TCP are to be read, if not as each handshake says. With `interval_s` the report of a
    capture has series. BakeoffError names the file, the place in it and what was expected.
    """
    if os.fspath(path) != "-" and (test := _irtt(path)) is not None:
        return IrttFile(str(path), test)
    return CaptureFile(str(path), capture(path, ecn=ecn, interval_s=interval_s))


def capture(path: Path, *, ecn: Ecn = "auto", interval_s: float | None = None) -> dict[str, Any]:
    """The report of a capture (docs/trace.md)."""
    from bakeoff import _sim

    options: dict[str, Any] = {} if ecn == "auto" else {"ecn": ecn}
    if interval_s is not None:
        options["interval_s"] = interval_s
    try:
        found: dict[str, Any] = json.loads(_sim.trace(os.fspath(path), json.dumps(options)))
    except ValueError as error:
        raise BakeoffError(str(error)) from None
    for number, flow in enumerate(
        flow for part in (found["flows"], *(found["datagrams"][key] for key in _DATAGRAMS)) for flow in part
    ):
        flow["number"] = number + 1
    return found


def of_flows(found: CaptureFile, pattern: str) -> CaptureFile:
    """The same with those flows only that the pattern names: a flow's number, a glob on its name, or a part of it.

    BakeoffError if it names none.
    """
    parts = {key: found.document["datagrams"][key] for key in _DATAGRAMS}
    total = sum(map(len, (found.document["flows"], *parts.values())))
    by_number = pattern.isascii() and pattern.isdigit() and 0 < int(pattern) <= total

    def chosen(flows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        if by_number:
            return [flow for flow in flows if flow["number"] == int(pattern)]
        return [flow for flow in flows if fnmatchcase(name(flow), pattern) or pattern in name(flow)]

    flows, parts = chosen(found.document["flows"]), {key: chosen(part) for key, part in parts.items()}
    if not flows and not any(parts.values()):
        raise BakeoffError(
            f"--flow: '{pattern}' names no flow of {found.file}; expected the number of one in the table, an address "
            "or port such as 10.0.0.1:5201, or a glob on CLIENT>SERVER"
        )
    datagrams = {**found.document["datagrams"], **parts}
    return replace(found, document={**found.document, "flows": flows, "datagrams": datagrams})


def name(flow: dict[str, Any]) -> str:
    """`10.0.0.1:32768>10.0.0.3:5201`, and `10.0.0.1>10.0.0.3` of what has no ports."""
    return ">".join(_end(flow[side]) for side in ("client", "server"))


def _end(end: dict[str, Any] | str) -> str:
    if isinstance(end, str):
        return end
    address, port = end["address"], end["port"]
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _irtt(path: Path) -> IrttTest | None:
    """The test of irtt that the file tells, None if it is none of irtt's."""
    from bakeoff import files
    from bakeoff.results import irtt_json

    try:
        with files.opened(path) as file:
            head = file.read(_HEAD)
            if head.startswith(b"\x1f\x8b"):
                # Only as much as these bytes unfold to: the file may be a capture of any size.
                head = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(head, _HEAD)
    except (OSError, zlib.error):
        return None  # what is wrong with it, the crate says
    return irtt_json.read(path) if irtt_json.is_irtt(head) else None
