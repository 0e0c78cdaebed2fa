"""The queues that bakeoff's own kernel modules add: tc does not know them, and the agent takes its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from bakeoff import tc
from bakeoff.engines.lab import agent

MODULES: Final[Mapping[str, str]] = {
    "cake_sce": "sch_cake_sce",
    "cnq_cobalt": "sch_cnq_cobalt",
    "cnq_codel_af": "sch_cnq_codel_af",
    "lfq_cobalt": "sch_lfq_cobalt",
    "twin_codel_af": "sch_twin_codel_af",
}
"""Kind -> the module that has it (kernel/modules)."""

_KINDS: Final[Mapping[str, str]] = {"cake@sce": "cake_sce"}
"""What a scenario calls a queue that has a kind of its own there."""


def offered(modules: Iterable[Path]) -> frozenset[str]:
    """The kinds of a kernel with these modules."""
    names = {path.stem for path in modules}
    return frozenset(kind for kind, module in MODULES.items() if module in names)


def kernel_kind(words: str, offered: Iterable[str]) -> str:
    """`cake_sce` of `cake@sce sce` for a kernel that has it, otherwise `cake`: tc knows no versions."""
    own = _KINDS.get(tc.kind(words))
    return own if own is not None and own in offered else tc.kernel_kind(words)


def line(words: str, offered: Iterable[str]) -> str:
    """The words behind the kind that the kernel has."""
    _, _, options = words.strip().partition(" ")
    return f"{kernel_kind(words, offered)} {options}".strip()


def program(words: str, offered: Iterable[str]) -> str:
    """What makes and changes a queue of these words: `tc`, or the agent."""
    return agent.NAME if tc.kind(words) in offered else "tc"


def show(dev: str) -> tuple[str, ...]:
    """The command that shows those of a device as `tc -s -d qdisc show` would."""
    return (agent.NAME, "qdisc", "show", "-s", "dev", dev)
