"""What `tc -s -d qdisc show` and `tc -d class show` print, read back from the logs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from bakeoff import tc

_LOGGED: Final = re.compile(r"\+ (\S+: )(?:\S*/)?(\S+)")
_QDISC: Final = re.compile(
    r"qdisc (\S+) ([0-9a-f]+:) (?:dev \S+ )?(root|parent [0-9a-f]*:[0-9a-f]*)(?: refcnt \d+)? ?(.*)"
)
_SENT: Final = re.compile(r"Sent (\d+) bytes (\d+) pkt \(dropped (\d+),")
_BACKLOG: Final = re.compile(r"backlog (\S+) (\d+)p")
_MARKS: Final = re.compile(r"\b(?:ecn_mark|marked) (\d+)")
_SCE_MARKS: Final = re.compile(r"\bsce_marks (\d+)")
_CLASS: Final = re.compile(r"class htb (\S+) .*?\brate (\S+) .*?\bburst ([^\s/]+)")
# What 64 bits can hold, by base.
_DIGITS: Final = {10: re.compile("[0-9]{1,20}"), 16: re.compile("[0-9a-f]{1,16}")}
# Everything that these drop, they drop for want of room.
_ONLY_FULL: Final = ("pfifo", "bfifo", "pfifo_fast", "tbf", "htb")


@dataclass(frozen=True)
class Qdisc:
    """One qdisc as tc shows it."""

    kind: str
    at: str
    """`root` or `parent 1:1`."""
    words: str
    """Kind and options in effect."""
    handle: str = ""
    """`2:`"""
    sent_bytes: int = 0
    sent_packets: int = 0
    dropped: int = 0
    queued: int = 0
    text: str = ""
    """What it tells of itself besides."""

    def stands(self, at: str) -> bool:
        """Whether it is the one at `root`, `parent 1:1` or `handle 2:`."""
        return at in (self.at, f"handle {self.handle}")

    def marks(self) -> int:
        """CE marks; 0 for one that does not mark, or does not tell."""
        return sum(map(count, _MARKS.findall(self.text)))

    def sce_marks(self) -> int | None:
        """ECT(0) turned into ECT(1); None for one that does not tell: of all in Linux itself none sets it."""
        told = _SCE_MARKS.findall(self.text)
        return sum(map(count, told)) if told else None

    def drops(self) -> dict[str, int]:
        """Drops by reason, as in docs/results-folder.md; what a qdisc does not tell apart counts as its algorithm's."""
        reasons = {"overlimit": 0, "aqm": 0, "overload": 0, "loss": 0}
        full = re.search(r"\b(?:drop_overlimit|overlimit) (\d+)", self.text)
        if self.kind in _ONLY_FULL:
            reasons["overlimit"] = self.dropped
        elif self.kind == "netem":
            reasons["loss" if " loss " in self.words else "overlimit"] = self.dropped
        else:
            reasons["overlimit"] = min(count(full[1]), self.dropped) if full else 0
            reasons["aqm"] = self.dropped - reasons["overlimit"]
        return reasons


def count(word: str, base: int = 10) -> int:
    """A counter of the kernel's, of at most 64 bits. ValueError shows the word if it is none."""
    digits = _DIGITS[base]
    if not digits.fullmatch(word):
        raise ValueError(f"'{word[:40]}' is no count")
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


def qdiscs(text: str) -> list[Qdisc]:
    """Every qdisc in what `tc [-s] [-d] qdisc show dev DEV` printed."""
    found = []
    for block in re.split(r"^(?=qdisc )", text, flags=re.MULTILINE):
        head, _, rest = block.partition("\n")
        shown = _QDISC.fullmatch(head.strip())
        if shown is None:
            continue
        sent, backlog = _SENT.search(rest), _BACKLOG.search(rest)
        counted = [count(number) for number in sent.groups()] if sent else [0, 0, 0]
        found.append(
            Qdisc(
                kind=shown[1],
                at=shown[3],
                words=f"{shown[1]} {shown[4]}".strip(),
                handle=shown[2],
                sent_bytes=counted[0],
                sent_packets=counted[1],
                dropped=counted[2],
                queued=count(backlog[2]) if backlog else 0,
                text=rest,
            )
        )
    return found


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


def counted(qdisc: Qdisc, agent: Mapping[str, Any]) -> dict[str, Any]:
    """A queue's entry in counters.json; `agent` is what the agent's last sample says of it (empty if not sampled)."""
    return {
        "qdisc": qdisc.words,
        "sent": qdisc.sent_packets,
        "sent_bytes": qdisc.sent_bytes,
        "queued": qdisc.queued,
        # The agent reads the number itself; not every tc prints it.
        "marks": max(qdisc.marks(), int(agent.get("marks", 0))),
        **({} if (sce := qdisc.sce_marks()) is None else {"sce_marks": sce}),
        "drops": qdisc.drops(),
        "flows": {},
        "sojourn": {"n": 0},
    }
