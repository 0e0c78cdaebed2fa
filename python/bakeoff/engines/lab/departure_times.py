"""What a packet carries of its sender's kernel ends at the sender's own device.

Linux's TCP stamps each packet with its departure time, and `sch_fq` takes a stamp that is there for the time of arrival
in the queue. A packet also names its socket, whose pacing rate `sch_fq` applies. No wire carries either. Between
namespaces both survive: `skb_clear_tstamp` keeps a delivery time until local delivery, and only IP's receive path drops
the socket. An fq behind 5 ms of netem would see packets that are 5 ms old, and an fq on a bridge would pace senders. A
BPF program at the ingress of such a node clears the stamp and hands on a clone, which has no socket.
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

# Instructions of linux/bpf.h: code, registers (source and destination), offset, value. The context is struct __sk_buff
# with `ifindex` at 40, `tc_index` at 44 and `tstamp` at 152. A store at ingress clears the type of the stamp too.
_SEEN: Final = 0xBF
_PROGRAM: Final = b"".join(
    struct.pack("<BBhi", *instruction)
    for instruction in (
        (0xBF, 0x16, 0, 0),  # r6 = r1
        (0xB7, 0x02, 0, 0),  # r2 = 0
        (0x7B, 0x21, 152, 0),  # r1->tstamp = r2
        (0x61, 0x12, 44, 0),  # r2 = r1->tc_index
        (0x15, 0x02, 7, _SEEN),  # if r2 == _SEEN goto seen
        (0xB7, 0x02, 0, _SEEN),  # r2 = _SEEN
        (0x63, 0x21, 44, 0),  # r1->tc_index = r2
        (0x61, 0x12, 40, 0),  # r2 = r1->ifindex
        (0xB7, 0x03, 0, 1),  # r3 = BPF_F_INGRESS
        (0x85, 0x00, 0, 13),  # bpf_clone_redirect(r1, r2, r3)
        (0xB7, 0x00, 0, 4),  # return TC_ACT_STOLEN
        (0x95, 0x00, 0, 0),
        (0xB7, 0x02, 0, 0),  # seen: r2 = 0
        (0x63, 0x26, 44, 0),  # r6->tc_index = r2
        (0xB7, 0x00, 0, -1),  # return TC_ACT_UNSPEC: on to the next filter
        (0x95, 0x00, 0, 0),
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
