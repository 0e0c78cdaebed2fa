"""What `tc -s -d qdisc show` and `tc -d class show` print, read back from the logs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from bakeoff import tc

_LOGGED: Final = re.compile(r"\+ (\S+: )(?:\S*/)?(\S+)")
_QDISC: Final = re.compile(
    r"qdisc (\S+) ([0-9a-f]+:) (?:dev \S+ )?(root|parent [0-9a-f]*:[0-9a-f]*)(?: refcnt \d+)? ?(.*)"
)
_CLASS: Final = re.compile(r"class htb (\S+) .*?\brate (\S+) .*?\bburst ([^\s/]+)")
# What 64 bits can hold, by base.
_DIGITS: Final = {10: re.compile("[0-9]{1,20}"), 16: re.compile("[0-9a-f]{1,16}")}


def count(word: str, base: int = 10) -> int:
    """A counter of the kernel's, of at most 64 bits. ValueError shows the word if it is none."""
    digits = _DIGITS[base]
    if not digits.fullmatch(word):
        raise ValueError(f"'{word[:40]}' is not a count")
    return int(word, base)


def sections(log: str) -> dict[str, str]:
    """command line, as in `Command.line` -> what it printed; of a command that ran twice the last."""
    found: dict[str, str] = {}
    command = ""
    for line in log.splitlines():
        if line.startswith("+ "):
            # The log has the program with its whole path.
            command = _LOGGED.sub(r"\1\2", line).removesuffix(" &")
            found[command] = ""
        elif command:
            found[command] += line + "\n"
    return found


def configured(text: str, at: str) -> str | None:
    """Kind and options in effect of the qdisc at `root`, `parent 1:1` or `handle 2:`; None if there is none.

    `text` is what `tc -s -d qdisc show dev DEV` printed.
    """
    matches = filter(None, (_QDISC.fullmatch(line.strip()) for line in text.splitlines()))
    return next((f"{one[1]} {one[4]}".strip() for one in matches if at in (one[3], f"handle {one[2]}")), None)


def coarse_bursts(asked: Mapping[str, str], text: str) -> list[str]:
    """The htb classes whose default burst was computed for a clock that is not in high resolution.

    `asked`: class id -> the words it was made with; `text`: what `tc -d class show` printed. tc takes one packet
    (1600 bytes) and what the rate brings in a tick of the kernel's clock: nothing in a nanosecond, 6250 bytes in a
    millisecond at 50 Mbit/s.
    """
    wrong = []
    for number, rate_word, burst_word in _CLASS.findall(text):
        words = asked.get(number, "").split()
        if number not in asked or "burst" in words or "buffer" in words or "maxburst" in words:
            continue
        rate_bps, burst = tc.rate(rate_word), tc.size(burst_word)
        # The kernel keeps a burst as time in units of 64 ns, and tc rounds what it shows to tenths of a kilobyte.
        slack = 2 + rate_bps / 8 * 64e-9 + (51.2 if not burst_word[-2].isdigit() else 0)
        expected = 1600 + rate_bps / 8 / 1e9
        # A tc that counts in microseconds (6.1) asks for less at high rates: that is no coarser clock.
        if burst - expected > slack:
            wrong.append(f"class {number}: burst {burst_word} instead of {expected:.0f}b at rate {rate_word}")
    return wrong
