"""The qdisc of a host's interface as Flent records it, in tc's words.

Flent keeps what `tc qdisc show` and `tc class show` print as pairs of words. Put one after the other, they are tc's
words again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from bakeoff import tc
from bakeoff.errors import BakeoffError
from bakeoff.scenario.run import Class, Qdisc

_MOST: Final = 64
"""Qdiscs or classes of an interface."""
_LONGEST: Final = 500
"""Characters of one."""


def tree_of(egress: object) -> Qdisc | None:
    """The qdisc at an interface's root with what hangs below it; None if the record does not tell what limits it.

    `egress` is an `EGRESS_INFO` of the metadata: of its qdiscs a single one without classes, or an htb with its
    classes.
    """
    qdiscs = _listed(egress, "qdiscs")
    root = next((one for one in qdiscs if one.get("parent") == "root"), None)
    if root is None:
        return None
    words = _words(root)
    if root.get("name") == "htb":
        found = Qdisc(qdisc=words, classes=_classes(_listed(egress, "classes"), qdiscs))
        return found if found.classes and _is_read(found) else None
    kind = tc.kinds().get(root["name"])
    if kind is not None and kind.classful:
        return None
    child = next((one for one in qdiscs if one is not root and one.get("name") not in ("ingress", "clsact")), None)
    found = Qdisc(qdisc=words, child=Qdisc(qdisc=_words(child)) if child is not None else None)
    return found if _is_read(found) else None


def told_of(egress: object) -> list[str]:
    """Every qdisc of an interface in tc's words, for people."""
    return [_words(one) for one in _listed(egress, "qdiscs")]


def _listed(egress: object, key: str) -> list[Mapping[str, Any]]:
    several = egress.get(key) if isinstance(egress, dict) else None
    if not isinstance(several, list):
        return []
    return [one for one in several[:_MOST] if isinstance(one, dict) and isinstance(one.get("name"), str)]


def _words(one: Mapping[str, Any]) -> str:
    params = one.get("params")
    pairs = params.items() if isinstance(params, dict) else ()
    words = [one["name"], *(str(word) for pair in pairs if pair[0] != "refcnt" for word in pair if word != "")]
    text = " ".join(" ".join(words).split())[:_LONGEST]
    return "".join(c if c.isprintable() else " " for c in text)


def _classes(classes: Sequence[Mapping[str, Any]], qdiscs: Sequence[Mapping[str, Any]]) -> list[Class]:
    found = []
    for one in classes:
        id_, parent = str(one.get("id", "")), str(one.get("parent", "root"))
        child = next((qdisc for qdisc in qdiscs if qdisc.get("parent") == id_), None)
        words = _words(one).partition(" ")[2]
        found.append(
            Class(
                id=id_.rpartition(":")[2],
                parent=None if parent == "root" else parent.rpartition(":")[2],
                class_=words,
                child=Qdisc(qdisc=_words(child)) if child is not None else None,
            )
        )
    return found


def _is_read(tree: Qdisc) -> bool:
    """Whether the rates in these words can be read, of which measures take the bottleneck's."""
    try:
        for one in tree.classes:
            for word in ("rate", "ceil"):
                tc.rate(tc.value(one.class_, word) or "1bit")
            int(one.id, 16)
        limiting = tc.limiting_word(tree.qdisc)
        rate = tc.value(tree.qdisc, limiting) if limiting is not None else None
        if rate not in (None, "unlimited"):
            return tc.rate(str(rate)) > 0
    except (BakeoffError, ValueError):
        return False
    return True
