"""Published numbers: reading them, how far results are from them, and a campaign's own numbers as a reference."""

from bakeoff.references.references import (
    COUNTS,
    MEASURES,
    Deviation,
    Expected,
    Reference,
    deviation,
    directory,
    expected,
    load,
    log_ratio,
    measured,
)

__all__ = [
    "COUNTS",
    "MEASURES",
    "Deviation",
    "Expected",
    "Reference",
    "deviation",
    "directory",
    "expected",
    "load",
    "log_ratio",
    "measured",
]
