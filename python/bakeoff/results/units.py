"""The units of what series.parquet and trace.parquet hold (docs/results-folder.md)."""

from __future__ import annotations

from math import inf
from typing import Final

UNITS: Final[dict[str, dict[str, str]]] = {
    "flow": {
        "goodput": "bit/s",
        "received": "byte",
        "delivery_rate": "bit/s",
        "srtt": "s",
        "cwnd": "packet",
        "ssthresh": "packet",
        "pacing_rate": "bit/s",
        "in_flight": "packet",
        "delivered": "packet",
        "delivered_ce": "packet",
        "retrans": "packet",
        "lost": "packet",
        "size": "byte",
        "fct": "s",
        "segment_rate": "bit/s",
        "buffer": "s",
        "stall": "s",
        "startup": "s",
        "delay": "s",
        "delay_variation": "s",
        "jitter": "s",
        "datagrams": "packet",
        "datagrams_lost": "packet",
        "missing": "1",
        "cc.cwnd": "packet",
        "cc.ssthresh": "packet",
        "cc.srtt": "s",
        "cc.pacing_rate": "bit/s",
        "cc.state": "1",
    },
    "probe": {"rtt": "s", "lost": "1"},
    "queue": {
        "qlen": "packet",
        "backlog": "byte",
        "sojourn": "s",
        "sojourn_l": "s",
        "sojourn_c": "s",
        "sojourn_max": "s",
        "marks": "packet",
        "sce_marks": "packet",
        "drops": "packet",
        "sent": "byte",
    },
}
"""By kind and metric, in the order of the documentation; `1` is a plain number."""

SUFFIXES: Final = {"bit/s": "_bps", "byte": "_bytes", "s": "_s", "packet": "_packets", "1": ""}
"""What a name ends in that has its unit in it."""


def with_unit(metric: str, unit: str | None) -> str:
    """The metric's name with its unit, as in `srtt_s`; the name alone if nobody knows the unit."""
    return metric + SUFFIXES.get(unit or "1", "")


MAY_NEVER: Final = ("convergence_s", "meet_s", "recovery_s", "startup_s")
"""Times until something that may never happen: null then."""

STATISTICS: Final = frozenset({"mean", "geometric_mean", "min", "p5", "p50", "p90", "p95", "p99", "p999", "max"})
"""Last parts of a dotted name that have the unit of the part before them, as in `srtt_s.p99`."""

_SHARES: Final = (
    "share", "loss", "mark_fraction", "utilisation", "starvation", "jain", "jain_goodput", "ping_delay_above",
)  # fmt: skip
_FROM_ONE: Final = ("ratio", "ratio_goodput")
_OF_ANY_SIGN: Final = ("ln", "log_ratio")


def unit_in(name: str) -> str | None:
    """The unit that the name of a measure ends in, as in `srtt_mean_s` or `flows.a.srtt_s.mean`; None without one."""
    *before, last = name.split(".")
    if last in STATISTICS and before:
        if before[-2:-1] == ["parts"]:
            return "s"
        last = before[-1]
    if last.endswith("_per_s"):
        return "1/s"
    return next((unit for unit, suffix in SUFFIXES.items() if suffix and last.endswith(suffix)), None)


def limits(name: str) -> tuple[float, float]:
    """The least and the greatest value that a measure of this name can have: no share is above 1, no time below 0."""
    last = name.rpartition(".")[2]

    def one_of(words: tuple[str, ...]) -> bool:
        return any(last == word or last.endswith(f"_{word}") for word in words)

    if one_of(_OF_ANY_SIGN) or "induced_" in last:  # of a base RTT that is known too high
        return -inf, inf
    return (0.0, 1.0) if one_of(_SHARES) else (1.0, inf) if one_of(_FROM_ONE) else (0.0, inf)


def is_share(name: str) -> bool:
    """Whether people read a measure of this name in per cent: all that lie between 0 and 1 but Jain's index."""
    return limits(name) == (0.0, 1.0) and "jain" not in name.rpartition(".")[2]
