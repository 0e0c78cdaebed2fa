"""The queues that bakeoff's own kernel modules add: tc does not know them, and the agent takes its place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from bakeoff import tc
from bakeoff.engines.lab import agent


@cache
def modules() -> Mapping[str, str]:
    """Kind -> the module that has it (kernel/modules)."""
    return {kind.name: kind.module for kind in tc.kinds().values() if kind.module is not None}


@cache
def _kinds() -> Mapping[str, str]:
    """What a scenario calls a queue -> the kind of its own that it has in a kernel."""
    return {kind.simulated_as: kind.name for kind in tc.kinds().values() if kind.simulated_as is not None}


def offered(files: Iterable[Path]) -> frozenset[str]:
    """The kinds of a kernel with these modules."""
    names = {path.stem for path in files}
    return frozenset(kind for kind, module in modules().items() if module in names)


def kernel_kind(words: str, offered: Iterable[str]) -> str:
    """`cake_sce` of `cake@sce sce` for a kernel that has it, otherwise `cake`: tc knows no versions."""
    own = _kinds().get(tc.kind(words))
    return own if own is not None and own in offered else tc.kernel_kind(words)


def is_version(words: str) -> bool:
    """Whether the queue has a version: `dualpi2@2020` has, `cake@sce` is another queue than `cake`."""
    return "@" in tc.kind(words) and tc.kind(words) not in _kinds()


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
