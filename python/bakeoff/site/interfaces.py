"""Interfaces, cables and rules of a resolved run in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

_NETEM_UNLIMITED: Final = 100_000
"""Packets: a limit that nothing in a run reaches, written so that netem drops nothing."""


def qdisc_words(tree: Mapping[str, Any]) -> list[str]:
    """A qdisc and what hangs below it, from the root to the leaves, each in tc's words."""
    words = [_short(str(tree["qdisc"]))]
    classes: Sequence[Mapping[str, Any]] = tree.get("classes") or ()
    for one in classes:
        rate = _class_words(str(one.get("class") or ""))
        of = f"class {one['id']}: " if len(classes) > 1 else ""
        if rate or of:
            words.append(f"{of}{rate}".rstrip())
        if one.get("child"):
            words += qdisc_words(one["child"])
    if tree.get("child"):
        words += qdisc_words(tree["child"])
    return words


def cable_words(link: Mapping[str, Any]) -> list[str]:
    """What a cable has beyond a plain one: rate, delay, MTU, loss, features."""
    words = []
    if link.get("rate_bps"):
        words.append(f"{link['rate_bps'] / 1e6:g} Mbit/s")
    if link.get("delay_s"):
        words.append(f"{link['delay_s'] * 1e3:g} ms each way")
    if link.get("mtu", 1500) != 1500:
        words.append(f"MTU {link['mtu']}")
    loss = link.get("loss") or {}
    if isinstance(loss, Mapping):
        words += [f"{end} loses {100 * share:g} %" for end, share in loss.items() if share]
    else:
        words.append(f"loses {100 * loss:g} %")
    return words + [str(name) for name in link.get("features") or {}]


def mangle_words(rule: Mapping[str, Any]) -> str:
    """A rewriting rule: `tcp, DSCP 35: set DSCP 0, set ECN not-ect`."""
    match, names = rule.get("match") or {}, {"dscp": "DSCP", "ecn": "ECN", "flow": "flow"}
    which = [f"{names[key]} {value}" if key in names else str(value) for key, value in match.items() if key != "syn"]
    if match.get("syn") is not None:
        which.append("SYN" if match["syn"] else "not SYN")
    does = [f"set {names[key]} {rule[f'set_{key}']}" for key in ("dscp", "ecn") if rule.get(f"set_{key}") is not None]
    if rule.get("clear_syn_ecn"):
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
