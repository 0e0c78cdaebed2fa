"""The units of series.parquet and trace.parquet (docs/results-folder.md)."""

from __future__ import annotations

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
        "cc.in_flight": "packet",
        "cc.delivered": "packet",
        "cc.lost": "packet",
        "cc.app_limited": "1",
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
    """The metric's name with its unit, as in `srtt_s`; the name alone if the unit is unknown."""
    return metric + SUFFIXES.get(unit or "1", "")


STATISTICS: Final = frozenset({"mean", "geometric_mean", "min", "p5", "p50", "p90", "p95", "p99", "p999", "max"})
"""Last parts of a dotted name that have the unit of the part before them, as in `srtt_s.p99`."""


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
