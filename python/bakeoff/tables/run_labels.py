"""The words that say what a result is and what was in effect."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bakeoff.results import Result
    from bakeoff.results.summary import RatedQueue, Summary

_NAMED: Final = 4


def title(result: Result) -> str:
    """Which run this is: `l4s-tests/s6-rfc3168/ns-prague-vs-cubic-…`."""
    return result.run.name


def in_effect(result: Result, summary: Summary) -> list[str]:
    """The configuration that was in effect, as the engine reported it: queue, flows, engine; one line each."""
    lines = []
    for rated in passed(summary):
        qdiscs = "".join(f", {summary.queues[name].qdisc}" for name in rated.queues if name in summary.queues)
        lines.append(f"{rated.queue}: {rated.rate_bps / 1e6:g} Mbit/s{qdiscs}")
    flows: dict[str, list[str]] = {}
    for name, flow in summary.flows.items():
        ran = "UDP" if flow.transport == "udp" else f"{cc_words(flow.cc)}, {ecn_words(flow.ecn)}"
        flows.setdefault(ran, []).append(name)
    parts = [f"{_several(names)}: {ran}" for ran, names in flows.items()]
    lines += ["; ".join(parts)] if parts else []
    lines.append(f"engine {engine_of(result)}, seed {result.run.seed}")
    return lines


def passed(summary: Summary) -> list[RatedQueue]:
    """The queues with a rate that data passes, each class of a hop for itself; all of them in a run without flows."""
    return [rated for rated in summary.rated if (rated.flows or not summary.flows) and len(rated.queues) < 2]


def _several(names: Sequence[str]) -> str:
    """A few names, or the first, the last and how many they are."""
    return ", ".join(names) if len(names) <= _NAMED else f"{names[0]} to {names[-1]} ({len(names)} flows)"


def failures(summary: Summary) -> list[str]:
    """The self-checks that failed, in words."""
    found = []
    for check in summary.checks:
        if not check.ok:
            of = f" of {check.flow}" if check.flow else ""
            asked = f"asked for {check.requested}, got {check.effective}"
            hint = "; AccECN takes net.ipv4.tcp_ecn: 3 on both hosts" if check.requested == "accecn" else ""
            found.append(f"check '{check.check}'{of} failed: {asked}{hint}")
    return found


def ecn_words(ecn: str | None) -> str:
    """The negotiated feedback as people write it."""
    return {"accecn": "AccECN", "rfc3168": "RFC 3168 ECN", "off": "no ECN", None: "ECN unknown"}.get(ecn, str(ecn))


def cc_words(cc: str | None) -> str:
    """A congestion control with its version and parameters; of a class in a file of Python the class alone."""
    if cc in (None, "unknown"):
        return "TCP"
    from bakeoff.scenario import python_cc

    return python_cc.short(str(cc)) if python_cc.is_python(str(cc)) else str(cc)


def engine_of(result: Result) -> str:
    """The engine's name in a result's run.json."""
    return result.record.engine
