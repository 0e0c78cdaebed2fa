"""tcpdump's file as pcapng, with the interface's name and nanosecond stamps (draft-ietf-opsawg-pcapng)."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from bakeoff import files
from bakeoff.errors import RunError
from bakeoff.results import captures
from bakeoff.version import version

if TYPE_CHECKING:
    from bakeoff.engines.lab.plan import Command
    from bakeoff.scenario import Run

_NANOSECONDS: Final = 0xA1B23C4D
_HEADER: Final = struct.Struct("<IHHiIII")
_RECORD: Final = struct.Struct("<IIII")
SNAP_LENGTH: Final = 128
"""Bytes that tcpdump is told to keep of a frame."""
# tcpdump keeps no more of a packet, whatever it is told (MAXIMUM_SNAPLEN).
_MOST_KEPT: Final = 262_144
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_COMMENT, _APPLICATION = 1, 4
_IF_NAME, _IF_TSRESOL = 2, 9
_LONGEST_OPTION: Final = 0xFFFF
"""Bytes."""


def most_packets(several: int) -> int:
    """Packets that tcpdump may keep in each of several files of a run."""
    return max(1, captures.of_run() // max(1, several) // (_RECORD.size + SNAP_LENGTH))


def convert(source: Path, target: Path, interface: str, several: int = 1, *, comment: str = "") -> int:
    """Write `source` (pcap with nanosecond stamps, little-endian) as `target`, with a comment; the number of packets.

    RunError if the file is none, or has as many packets as one of `several` files of a run may: then tcpdump ended
    before the run did. A record that was cut off ends it.
    """
    most = most_packets(several)
    with files.plain_opened(source) as pcap, open(target, "wb", opener=files.opener) as pcapng:
        head = pcap.read(_HEADER.size)
        if len(head) < _HEADER.size or _HEADER.unpack(head)[0] != _NANOSECONDS:
            raise RunError(f"{source.name}: not a capture with nanosecond timestamps")
        snap_length, link_type = _HEADER.unpack(head)[5:]
        # Byte order magic, version 1.0, section length not given.
        section = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
        text = comment.encode()[:_LONGEST_OPTION].decode(errors="ignore")
        section += _option(_COMMENT, text.encode()) if text else b""
        section += _option(_APPLICATION, f"bakeoff {version()}".encode()) + bytes(4)
        pcapng.write(_block(_SECTION, section))
        options = _option(_IF_NAME, interface.encode()) + _option(_IF_TSRESOL, b"\x09") + bytes(4)
        pcapng.write(_block(_INTERFACE, struct.pack("<HHI", link_type, 0, snap_length) + options))
        count = 0
        for time_ns, length, data in _records(pcap):
            fields = struct.pack("<IIIII", 0, time_ns >> 32, time_ns & 0xFFFFFFFF, len(data), length)
            pcapng.write(_block(_PACKET, fields + data + bytes(-len(data) % 4)))
            count += 1
            if count >= most:
                raise RunError(over_budget(interface, most))
    return count


def comment(run: Run) -> str:
    """What the captures of a run on real Linux say of it."""
    what = f"bakeoff run {run.name}, seed {run.seed}, on real Linux, written by bakeoff "
    return what + version() + (f"\n{run.title}" if run.title else "")


def over_budget(interface: str, packets: int) -> str:
    """What to tell whoever asked for a capture that has all the packets that it may have."""
    return (
        f"the capture at {interface} came to {packets:,} packets, the budget of a run's captures; capture at fewer "
        f"interfaces or for a shorter time, or set the environment variable {captures.OF_RUN} higher"
    )


def why_ended(command: Command, code: int, captured: Sequence[tuple[str, str]]) -> str:
    """Why a command in the background ended before the run did: tcpdump is content when it has all of its packets.

    `captured` is `Plan.captures`.
    """
    for name, file in captured:
        if code == 0 and command.argv[0] == "tcpdump" and command.argv[-1].endswith(f"/{file}"):
            return over_budget(name, most_packets(len(captured)))
    return f"{command.line()}: ended before the run did, with exit code {code}"


def spent(folder: Path, captured: Sequence[tuple[str, str]]) -> str | None:
    """The same of the first file in `folder` that has all the packets that it may have; None if none has."""
    most = most_packets(len(captured))
    for name, file in captured:
        if not os.path.lexists(folder / file):
            continue
        with files.plain_opened(folder / file) as pcap:
            pcap.seek(_HEADER.size)
            if sum(1 for _ in _records(pcap)) >= most:
                return over_budget(name, most)
    return None


def _records(pcap: BinaryIO) -> Iterator[tuple[int, int, bytes]]:
    """(time in nanoseconds, length on the wire, what was kept)."""
    while len(head := pcap.read(_RECORD.size)) == _RECORD.size:
        seconds, nanoseconds, kept, length = _RECORD.unpack(head)
        if kept > _MOST_KEPT:
            raise RunError(f"a capture contains a packet of {kept:,} bytes; expected at most {_MOST_KEPT:,}")
        data = pcap.read(kept)
        if len(data) < kept:
            return
        yield seconds * 1_000_000_000 + nanoseconds, length, data


def _block(kind: int, body: bytes) -> bytes:
    size = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + size + body + size


def _option(kind: int, value: bytes) -> bytes:
    return struct.pack("<HH", kind, len(value)) + value + bytes(-len(value) % 4)
