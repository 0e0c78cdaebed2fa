"""Published numbers: reading them, how far results are from them, and a campaign's own numbers as a reference."""

from bakeoff.references.add import add
from bakeoff.references.noise import Noise, noise_of
from bakeoff.references.references import (
    COUNTS,
    MEASURES,
    OF_RUNS,
    RATES,
    Deviation,
    Expected,
    Reference,
    deviation,
    directory,
    expected,
    load,
    log_ratio,
    measured,
    named,
    stem,
)

__all__ = [
    "COUNTS",
    "MEASURES",
    "OF_RUNS",
    "RATES",
    "Deviation",
    "Expected",
    "Noise",
    "Reference",
    "add",
    "deviation",
    "directory",
    "expected",
    "load",
    "log_ratio",
    "measured",
    "named",
    "noise_of",
    "stem",
]
