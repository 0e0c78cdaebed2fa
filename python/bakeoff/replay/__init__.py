"""The trace test: one recorded sequence of arrivals through our queue and through the real one, packet by packet
(docs/qdisc-replay.md)."""

from bakeoff.replay.arrivals import Arrival, Arrivals, load, names, pattern
from bakeoff.replay.kernel import Recorded, record
from bakeoff.replay.port import Port, port
from bakeoff.replay.sim import Replayed, simulate
from bakeoff.replay.statistics import Comparison, compare, permutation_test

__all__ = [
    "Arrival",
    "Arrivals",
    "Comparison",
    "Port",
    "Recorded",
    "Replayed",
    "compare",
    "load",
    "names",
    "pattern",
    "permutation_test",
    "port",
    "record",
    "simulate",
]
