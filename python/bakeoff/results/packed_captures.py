"""Captures of a run, compressed; what leaves and what arrives at one interface is one file, as tcpdump's.

Source: draft-ietf-opsawg-pcapng. Packets are in order of time, each with its direction (epb_flags). `split` takes them
apart again, for a reader that needs one direction.
"""

from __future__ import annotations

import gzip
import io
import shutil
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from heapq import merge
from pathlib import Path
from typing import BinaryIO, Final

from bakeoff import files
from bakeoff.errors import ResultsError
from bakeoff.results import layout

_LEVEL: Final = 1
"""Of gzip: headers are an eighth with it, and with 9 a tenth in the twelvefold time."""
_HEAD: Final = struct.Struct("<II")
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_NAME, _DESCRIPTION = 2, 3
_FLAGS: Final = 2
"""The option of a packet whose two lowest bits say its direction."""
_IN, _OUT = 1, 2
BOTH: Final = "<>"
"""In the name of an interface: `mid<>srv` is what leaves mid for srv, and what arrives there."""
_BYTE_ORDER: Final = struct.pack("<I", 0x1A2B3C4D)
_LARGEST: Final = 1 << 24
"""Bytes of a block."""

_Block = tuple[int, bytes]
"""Its type, and all of it."""


def pack(folder: Path, names: Sequence[str]) -> list[Path]:
    """Replace the files `layout.capture(name)` of these interfaces by compressed ones, and return those."""
    made = []
    for name in names:
        back = name.replace(">", "<")
        if "<" in name and name.replace("<", ">") in names:
            continue  # in the file of what leaves
        several = [name] if back == name or back not in names else [name, back]
        target = folder / f"{layout.capture(name)}.gz"
        # Node a-b with peer c, and node a with peer b-c, have one name.
        if len(several) > 1 and not (both := folder / layout.both_ways(name)).exists():
            target = both
        made.append(_written([folder / layout.capture(one) for one in several], target))
    return made


def _written(sources: Sequence[Path], target: Path) -> Path:
    with (
        open(target, "xb", opener=files.opener) as file,
        # The same packets give the same bytes: neither name nor time are in the file's head.
        gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed,
        io.BufferedWriter(packed, 1 << 20) as out,
    ):
        opened = [files.opened(source) for source in sources]
        if len(opened) == 1:
            shutil.copyfileobj(opened[0], out, 1 << 20)
        else:
            for _, block in _merged(opened, sources):
                out.write(block)
        for one in opened:
            one.close()
    for source in sources:
        source.unlink()
    return target


def _merged(opened: Sequence[BinaryIO], sources: Sequence[Path]) -> Iterator[_Block]:
    """The first file's blocks ahead of its packets, and the packets of both, by time, with their directions."""
    streams = [_blocks(file, path) for file, path in zip(opened, sources, strict=True)]
    packets: list[Iterator[_Block]] = []
    for stream, direction in zip(streams, (_OUT, _IN), strict=True):
        first: list[_Block] = []
        for kind, block in stream:
            if kind == _PACKET:
                first.append((kind, block))
                break
            if direction == _OUT:
                yield kind, _renamed(block, lambda name: name.replace(">", BOTH)) if kind == _INTERFACE else block
        packets.append(_directed([first, stream], direction))
    yield from merge(*packets, key=_time)


def _directed(parts: Sequence[Iterable[_Block]], direction: int) -> Iterator[_Block]:
    """The packets with the option that says their direction."""
    flags = struct.pack("<HHI", _FLAGS, 4, direction)
    for kind, block in (one for blocks in parts for one in blocks):
        if kind == _PACKET:
            at = _options_of_packet(block)
            options = flags + (block[at:-4] or bytes(4))
            yield kind, _block(kind, block[8:at] + options)


def _options_of_packet(block: bytes) -> int:
    """Where the options of a packet begin."""
    kept = int(struct.unpack_from("<I", block, 20)[0])
    return 28 + kept + -kept % 4


def _renamed(block: bytes, rename: Callable[[str], str]) -> bytes:
    """The description of an interface, with another name, and without words on its direction."""
    at, options = 16, b""
    while at + 4 <= len(block) - 4:
        code, size = struct.unpack_from("<HH", block, at)
        value, at = block[at + 4 : at + 4 + size], at + 4 + size + -size % 4
        if code == _NAME:
            value = rename(value.decode(errors="replace")).encode()
        if code not in (0, _DESCRIPTION):
            options += struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)
    return _block(_INTERFACE, block[8:16] + options + bytes(4))


def _block(kind: int, body: bytes) -> bytes:
    size = struct.pack("<I", 12 + len(body))
    return struct.pack("<I", kind) + size + body + size


def _time(block: _Block) -> int:
    high, low = _HEAD.unpack_from(block[1], 12)
    return int(high << 32 | low)


def _blocks(file: BinaryIO, path: Path) -> Iterator[_Block]:
    """ResultsError for what is no file of ours."""
    while len(head := file.read(_HEAD.size)) == _HEAD.size:
        kind, size = _HEAD.unpack(head)
        if not 12 <= size <= _LARGEST:
            raise ResultsError(f"{path}: a block of {size:,} bytes; expected 12 to {_LARGEST:,}")
        body = file.read(size - _HEAD.size)
        if kind == _SECTION and not body.startswith(_BYTE_ORDER):
            raise ResultsError(f"{path}: not little-endian pcapng")
        yield kind, head + body


def split(path: Path, folder: Path) -> list[Path]:
    """Two files in `folder`, of what leaves and what arrives, of a capture with both; of another one itself."""
    if not path.name.endswith(".gz"):
        return [path]
    made = [folder / "leaving.pcapng", folder / "arriving.pcapng"]
    both = False
    with (
        files.opened(path) as file,
        gzip.GzipFile(fileobj=file) as unpacked,
        made[0].open("xb") as leaving,
        made[1].open("xb") as arriving,
    ):
        try:
            for kind, block in _blocks(io.BufferedReader(unpacked, 1 << 20), path):
                if kind == _PACKET and both:
                    code, _, flags = struct.unpack_from("<HHI", block, _options_of_packet(block))
                    if code != _FLAGS:
                        raise ResultsError(f"{path}: a packet without a direction; expected a capture of a run")
                    (leaving if flags & 3 == _OUT else arriving).write(block)
                elif kind == _PACKET:
                    return [path]
                else:
                    both = both or (kind == _INTERFACE and BOTH.encode() in block)
                    for out, way in ((leaving, ">"), (arriving, "<")):
                        named = _renamed(block, lambda name, way=way: name.replace(BOTH, way))  # type: ignore[misc]
                        out.write(named if kind == _INTERFACE else block)
        except (EOFError, gzip.BadGzipFile, struct.error) as error:
            raise ResultsError(f"{path}: {error}") from None
    return made if both else [path]
