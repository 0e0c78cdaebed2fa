"""Published numbers: reading them, how far results are from them, and a campaign's own numbers as a reference."""

from bakeoff.references.references import (
    COUNTS,
    UNITS,
    Deviation,
    Expected,
    Reference,
    deviation,
    directory,
    expected,
    load,
    log_ratio,
    measured,
    rate_of,
)

__all__ = [
    "COUNTS",
    "UNITS",
    "Deviation",
    "Expected",
    "Reference",
    "deviation",
    "directory",
    "expected",
    "load",
    "log_ratio",
    "measured",
    "rate_of",
]
