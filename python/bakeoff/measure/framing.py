"""What a shaper charges for a frame: the overhead and cells that the words of a qdisc or a class set.

Source: `man tc-cake`, OVERHEAD COMPENSATION PARAMETERS; `man tc-stab`; `man tc-netem`, rate; the simulator's qdiscs,
which these functions ask for the words in effect.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from bakeoff import tc
from bakeoff.errors import BakeoffError

_ETHERNET: Final = 14
"""Bytes of header that Linux counts in a frame, and that an overhead of cake replaces."""
_CELL: Final = (48, 53)
"""Bytes of payload of an ATM cell, and all of it."""
_NONE: Final = "raw overhead 0"
_WORDS: Final = re.compile(r"(raw )?((noatm|atm|ptm) )?overhead -?\d+( mpu \d+)?")
"""How tc shows the framing of cake."""


def payload_share(line: str, frame: int) -> float:
    """The part of a shaper's rate that frames of `frame` bytes (14 of Ethernet among them) have; no unit.

    `line` holds the words of a qdisc, or those of a class of htb after `class`. Above 1 if the overhead is negative, or
    less than the header that it replaces.
    """
    return frame / max(charged(line, frame), 1)


@lru_cache(maxsize=4096)
def charged(line: str, frame: int) -> int:
    """Bytes that the shaper's rate is charged for a frame of `frame` bytes."""
    kind = tc.kernel_kind(line)
    if kind == "netem":
        return _netem(_in_effect(line), frame)
    if tc.shapes_itself(line):
        return _cake(_in_effect(line), frame)
    return _tbf(line, frame)


def after_change(before: str, new: str) -> str:
    """The line in effect after `tc qdisc change`: a qdisc that shapes by itself keeps its rate and its framing if the
    new words name none.
    """
    if not tc.shapes_itself(new) or tc.kind(before) != tc.kind(new):
        return new
    line, rate = new, tc.value(before, "bandwidth")
    if rate is not None and not {"bandwidth", "unlimited"} & set(new.split()):
        line = tc.with_bandwidth(new, rate)
    kept, named = _framing(before), _framing(new)
    return f"{line} {kept}" if named == _NONE and "raw" not in new.split() else line


def _framing(line: str) -> str:
    found = _WORDS.search(_in_effect(line))
    return found.group() if found else _NONE


def _in_effect(line: str) -> str:
    """The line as tc shows it, each keyword as the values that it sets; only its kind where a kernel alone has it."""
    from bakeoff import _sim

    try:
        return _sim.check_qdisc(line)
    except ValueError:
        return tc.kind(line)


def _cake(line: str, frame: int) -> int:
    words = line.split()
    replaces_header = "overhead" in words and "raw" not in words
    length = max(frame - _ETHERNET * replaces_header + _whole(line, "overhead"), _whole(line, "mpu"))
    if "atm" in words:
        return _cells(length)
    return length + -(-length // 64) if "ptm" in words else length


def _tbf(line: str, frame: int) -> int:
    """Of tbf, and of a class of htb."""
    length = max(frame + _whole(line, "overhead"), _whole(line, "mpu"))
    return _cells(length) if tc.value(line, "linklayer") in ("atm", "adsl") else length


def _netem(line: str, frame: int) -> int:
    length = max(frame + _whole(line, "packetoverhead"), 0)
    size = _whole(line, "cellsize")
    return -(-length // size) * (size + _whole(line, "celloverhead")) if size else length


def _cells(length: int) -> int:
    payload, cell = _CELL
    return -(-length // payload) * cell


def _whole(line: str, key: str) -> int:
    """The whole number that follows a word; 0 without it. BakeoffError if it is none."""
    word = tc.value(line, key)
    try:
        return 0 if word is None else int(word, 0)
    except ValueError:
        raise BakeoffError(f"{key}: '{word}' is no whole number") from None
