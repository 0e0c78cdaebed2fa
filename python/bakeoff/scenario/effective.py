"""The words of a qdisc in effect: as tc shows them, and after `tc qdisc change`."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from bakeoff import tc

_NONE: Final = "raw overhead 0"
_WORDS: Final = re.compile(r"(raw )?((noatm|atm|ptm) )?overhead -?\d+( mpu \d+)?")
"""How tc shows the framing of cake."""
_NETEM_RATE: Final = re.compile(r"(?<!\S)rate \S+( -?\d+(?!\S)){0,3}")
"""The rate with the overhead of a packet, the size of a cell and the overhead of a cell."""


def in_effect(line: str) -> str:
    """The line as tc shows it, each keyword as the values that it sets; only its kind where a kernel alone has it."""
    from bakeoff import _sim

    try:
        return _sim.check_qdisc(line)
    except ValueError:
        return tc.kind(line)


@lru_cache(maxsize=4096)
def after_change(before: str, new: str) -> str:
    """The line in effect after `tc qdisc change`: a qdisc that shapes by itself keeps its rate and its framing if the
    new words name none, and netem its rate.
    """
    if tc.kind(before) != tc.kind(new):
        return new
    if tc.kernel_kind(new) == "netem":
        rate = None if "rate" in new.split() else _NETEM_RATE.search(before)
        return f"{new} {rate.group()}" if rate else new
    return _after_change_of_shaper(before, new) if tc.shapes_itself(new) else new


def _after_change_of_shaper(before: str, new: str) -> str:
    line, rate = new, tc.value(before, "bandwidth")
    if rate is not None and not {"bandwidth", "unlimited"} & set(new.split()):
        line = tc.with_bandwidth(new, rate)
    kept, named = _framing(before), _framing(new)
    return f"{line} {kept}" if named == _NONE and "raw" not in new.split() else line


def _framing(line: str) -> str:
    found = _WORDS.search(in_effect(line))
    return found.group() if found else _NONE
