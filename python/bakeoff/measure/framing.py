"""What a shaper charges for a frame: the overhead and cells that the words of a qdisc or a class set.

Source: `man tc-cake`, OVERHEAD COMPENSATION PARAMETERS; `man tc-stab`; `man tc-netem`, rate; the simulator's qdiscs,
which these functions ask for the words in effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from bakeoff import tc
from bakeoff.errors import ScenarioError
from bakeoff.scenario.effective import in_effect
from bakeoff.scenario.headers import ETHERNET

Frames = Mapping[int, float]
"""How many frames there are of each length [byte]."""

_CELL: Final = (48, 53)
"""Bytes of payload of an ATM cell, and all of it."""


def payload_share(line: str, frame: int | Frames) -> float:
    """The part of a shaper's rate that frames of `frame` bytes (14 of Ethernet among them) have; no unit.

    `frame` may be several lengths. `line` holds the words of a qdisc, or those of a class of htb after `class`. Above 1
    if the overhead is negative, or less than the header that it replaces.
    """
    if isinstance(frame, int):
        return frame / max(charged(line, frame), 1)
    whole = sum(length * number for length, number in frame.items())
    return whole / max(sum(charged(line, length) * number for length, number in frame.items()), 1) if whole else 1.0


@lru_cache(maxsize=4096)
def charged(line: str, frame: int) -> int:
    """Bytes that the shaper's rate is charged for a frame of `frame` bytes."""
    kind = tc.kernel_kind(line)
    if kind == "netem":
        return _netem(in_effect(line), frame)
    if tc.shapes_itself(line):
        return _cake(in_effect(line), frame)
    return _tbf(line, frame)


def _cake(line: str, frame: int) -> int:
    words = line.split()
    replaces_header = "overhead" in words and "raw" not in words
    length = max(frame - ETHERNET * replaces_header + _whole(line, "overhead"), _whole(line, "mpu"))
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
        raise ScenarioError(f"{key}: '{word}' is not an integer") from None
