"""How much a probe's round trip differs from the one before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bakeoff.measure.samples import MeasureError

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array


def ipdv(sent: Array, rtt: Array, every_s: float) -> Array:
    """|RTT(i) - RTT(i-1)| [s] of each request that was answered, as was the one before.

    `sent`: when the answered requests left [s], in order, one every `every_s` seconds; `rtt`: their round trips [s].
    Beside a lost request there is no difference. Source: RFC 3393, section 2.4, and irtt, which prints the absolute
    value. Raises MeasureError if no two requests in a row were answered.
    """
    import numpy as np

    steps, differences = np.diff(sent), np.abs(np.diff(rtt))
    found: Array = differences[steps < 1.5 * every_s]
    if not len(found):
        raise MeasureError("no two requests in a row were answered")
    return found
