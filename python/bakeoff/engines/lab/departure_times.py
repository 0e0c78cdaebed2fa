"""Departure times end at the sender's own device.

Linux's TCP stamps each packet with its departure time, and `sch_fq` takes a stamp that is there for the time of arrival
in the queue. No wire carries the stamp. Between namespaces it survives: `skb_clear_tstamp` keeps a delivery time, and
only local delivery clears it. An fq behind 5 ms of netem would see packets that are 5 ms old. A BPF program at the
ingress of such a node clears the stamp.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from bakeoff import tc
from bakeoff.engines.lab.topology import End
from bakeoff.scenario import Run
from bakeoff.scenario.run import Qdisc

OBJECT: Final = "clear-tstamp.o"
"""What tc loads, in the plan's folder."""
SECTION: Final = "clear_tstamp"

# Instructions of linux/bpf.h; 152 is the offset of `tstamp` in struct __sk_buff. A store at ingress clears the stamp's
# type too. TC_ACT_UNSPEC (-1) goes on to the next filter.
_PROGRAM: Final = b"".join(
    struct.pack("<BBhi", code, registers, offset, value)
    for code, registers, offset, value in (
        (0xB7, 0x02, 0, 0),  # r2 = 0
        (0x7B, 0x21, 152, 0),  # *(u64 *)(r1 + 152) = r2
        (0xB7, 0x00, 0, -1),  # r0 = -1
        (0x95, 0x00, 0, 0),  # exit
    )
)


def cleared(run: Run) -> dict[End, str]:
    """The interfaces where what arrives may reach an fq of the same node, and the fq's place in the run.

    A host's own egress is none: what it sends has its true departure time.
    """
    kinds = {node.name: node.kind for node in run.nodes}
    found: dict[End, str] = {}
    for (node, peer), side, tree, place in _trees(run):
        if not _has_fq(tree):
            continue
        if side == "ingress":
            found.setdefault((node, peer), place)
        elif kinds[node] != "host":
            for link in run.links:
                for end in (link.ends, link.ends[::-1]):
                    if end[0] == node:
                        found.setdefault(end, place)
    return found


def words(folder: str) -> list[str]:
    """The filter that clears the stamp of every packet; `folder` has the plan's files."""
    return ["bpf", "direct-action", "object-file", f"{folder}/{OBJECT}", "section", SECTION]


def files() -> tuple[tuple[str, str], ...]:
    """`Plan.files` of a plan with such a filter."""
    return ((OBJECT, _elf().decode("latin-1")),)


def _trees(run: Run) -> Iterator[tuple[End, str, Qdisc, str]]:
    """End, side, tree and place of every tree that stands, or will stand, somewhere."""
    for index, end in enumerate(run.interfaces):
        for side, tree in (("egress", end.egress), ("ingress", end.ingress)):
            if tree is not None:
                yield (end.node, end.peer), side, tree, f"interfaces[{index}].{side}"
    for index, change in enumerate(run.changes):
        if change.action.kind == "qdisc-replace":
            yield (change.node, change.peer), change.action.side, change.action.qdisc, f"changes[{index}].action"


def _has_fq(tree: Qdisc) -> bool:
    below = (tree.child, *(cls.child for cls in tree.classes))
    return tc.kernel_kind(tree.qdisc) == "fq" or any(_has_fq(child) for child in below if child is not None)


def _elf() -> bytes:
    """The program as an object file (ELF, elf.h): null, program, symbols and names, in sections of these indexes."""
    names = b"\0" + SECTION.encode() + b"\0.symtab\0.strtab\0"
    # Symbol 1: global function (0x12) in section 1, of the program's length.
    symbols = bytes(24) + struct.pack("<IBBHQQ", 1, 0x12, 0, 1, 0, len(_PROGRAM))
    at = 64 + len(_PROGRAM)
    sections = [
        bytes(64),
        # Name, type, flags, address, offset, size, link, info, alignment, size of an entry.
        struct.pack("<IIQQQQIIQQ", 1, 1, 6, 0, 64, len(_PROGRAM), 0, 0, 8, 0),
        struct.pack("<IIQQQQIIQQ", names.index(b".symtab"), 2, 0, 0, at, len(symbols), 3, 1, 8, 24),
        struct.pack("<IIQQQQIIQQ", names.index(b".strtab"), 3, 0, 0, at + len(symbols), len(names), 0, 0, 1, 0),
    ]
    body = _PROGRAM + symbols + names
    body += bytes(-len(body) % 8)
    # 64 bits, little-endian; type 1 is relocatable, machine 247 is BPF.
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 1, 247, 1, 0, 0, 64 + len(body), 0, 64, 0, 0, 64, len(sections), 3
    )
    return header + body + b"".join(sections)
