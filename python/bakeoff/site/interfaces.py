"""Interfaces, cables and rules of a resolved run in words."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bakeoff.scenario.run import Link, Mangle, Qdisc

_NETEM_UNLIMITED: Final = 100_000
"""Packets: a limit that nothing in a run reaches, written so that netem drops nothing."""


def qdisc_words(tree: Qdisc) -> list[str]:
    """A qdisc and what hangs below it, from the root to the leaves, each in tc's words."""
    words = [_short(tree.qdisc)]
    for one in tree.classes:
        rate = _class_words(one.class_)
        of = f"class {one.id}: " if len(tree.classes) > 1 else ""
        if rate or of:
            words.append(f"{of}{rate}".rstrip())
        if one.child:
            words += qdisc_words(one.child)
    if tree.child:
        words += qdisc_words(tree.child)
    return words


def cable_words(link: Link) -> list[str]:
    """What a cable has beyond a plain one: rate, delay, MTU, loss, features."""
    words = []
    if link.rate_bps:
        words.append(f"{link.rate_bps / 1e6:g} Mbit/s")
    if link.delay_s:
        words.append(f"{link.delay_s * 1e3:g} ms each way")
    if link.mtu != 1500:
        words.append(f"MTU {link.mtu}")
    if isinstance(link.loss, dict):
        words += [f"{end} loses {100 * share:g} %" for end, share in link.loss.items() if share]
    elif link.loss:
        words.append(f"loses {100 * link.loss:g} %")
    return words + list(link.features)


def mangle_words(rule: Mangle) -> str:
    """A rewriting rule: `tcp, DSCP 35: set DSCP 0, set ECN not-ect`."""
    match = rule.match
    named = {"": match.proto, "DSCP ": match.dscp, "ECN ": match.ecn, "flow ": match.flow}
    which = [f"{name}{value}" for name, value in named.items() if value is not None]
    if match.syn is not None:
        which.append("SYN" if match.syn else "not SYN")
    does = [
        f"set {name} {value}" for name, value in (("DSCP", rule.set_dscp), ("ECN", rule.set_ecn)) if value is not None
    ]
    if rule.clear_syn_ecn:
        does.append("clear ECN in SYN")
    return f"{', '.join(which) or 'all packets'}: {', '.join(does)}"


def _class_words(words: str) -> str:
    """`rate 50mbit ceil 50mbit` without the ceiling that says the same."""
    parts = words.split()
    named = dict(pairwise(parts))
    if parts[:1] == ["rate"] and len(parts) == 4 and named.get("ceil") == named["rate"]:
        return f"rate {named['rate']}"
    return words


def _short(words: str) -> str:
    """tc's words without netem's limit, where that is only there so as not to drop anything."""
    parts = words.split()
    if parts[:1] == ["netem"] and "limit" in parts[:-1]:
        at = parts.index("limit")
        if parts[at + 1].isdigit() and int(parts[at + 1]) >= _NETEM_UNLIMITED:
            return " ".join(parts[:at] + parts[at + 2 :])
    return " ".join(parts[:1]) if parts[:1] == ["htb"] else words
