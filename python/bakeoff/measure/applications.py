"""What applications saw: completion times of short flows, the quality of a video."""

from __future__ import annotations

from itertools import pairwise
from math import exp, log
from typing import TYPE_CHECKING, Final

from bakeoff.errors import MeasureError
from bakeoff.measure.delays import quantile
from bakeoff.measure.samples import Samples, Window
from bakeoff.results.summary import Completion, CompletionTimes, SizeClass, Video

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array

SIZE_CLASSES: Final = (0, 10_000, 100_000, 1_000_000)
"""Lower ends of the classes of object sizes, in bytes: decades."""


def completion(samples: Samples, name: str, window: Window) -> Completion:
    """Completion times of the objects of a `short` flow that began inside the closed window.

    `begun` and `ended` count them: one that the end of the run cut off has no time, and its absence makes the rest look
    fast. `fct_s`: n, mean, geometric_mean, p50, p95, p99, max in seconds, from SYN to the application's last answer
    (series `fct`), or None if none ended. `sizes`: the same per class of SIZE_CLASSES that has any, with `from_bytes`
    and `to_bytes` (None: no upper end). Source: ccafct (geometric mean, median, P95). MeasureError if none began.
    """
    begun, size = samples.of("flow", name, "size", window)
    took = dict(zip(*(part.tolist() for part in _ended(samples, name)), strict=True))
    pairs = [(bytes_, took[at]) for at, bytes_ in zip(begun.tolist(), size.tolist(), strict=True) if at in took]
    sizes = []
    for low, high in zip(SIZE_CLASSES, (*SIZE_CLASSES[1:], None), strict=True):
        times = [time for bytes_, time in pairs if low <= bytes_ and (high is None or bytes_ < high)]
        if times:
            sizes.append(SizeClass(from_bytes=low, to_bytes=high, **_times(times).to_json()))
    return Completion(
        begun=len(begun),
        ended=len(pairs),
        fct_s=_times([time for _, time in pairs]) if pairs else None,
        sizes=sizes,
    )


def _ended(samples: Samples, name: str) -> tuple[Array, Array]:
    try:
        return samples.of("flow", name, "fct")
    except MeasureError:
        import numpy as np

        return np.array([]), np.array([])


def _times(times: list[float]) -> CompletionTimes:
    ordered = sorted(times)
    return CompletionTimes(
        n=len(ordered),
        mean=sum(ordered) / len(ordered),
        geometric_mean=exp(sum(log(time) for time in ordered) / len(ordered)),
        p50=quantile(ordered, 0.5),
        p95=quantile(ordered, 0.95),
        p99=quantile(ordered, 0.99),
        max=ordered[-1],
    )


def video(samples: Samples, name: str) -> Video:
    """What a player saw, over the whole run.

    `segments` fetched, `startup_s` from opening to playing (None if it never played), `mean_rate_bps` of the segments
    (all are equally long), `switches` between rates, `stalls` and `stalled_s`: how often and how long playing stood
    still. Raises MeasureError if no segment was asked for.
    """
    _, rates = samples.of("flow", name, "segment_rate")
    chosen = rates.tolist()
    stalls = samples.of("flow", name, "stall")[1].tolist() if ("flow", name, "stall") in samples else []
    startup = samples.of("flow", name, "startup")[1].tolist() if ("flow", name, "startup") in samples else [None]
    return Video(
        segments=len(chosen),
        startup_s=startup[0],
        mean_rate_bps=sum(chosen) / len(chosen),
        switches=sum(before != after for before, after in pairwise(chosen)),
        stalls=len(stalls),
        stalled_s=sum(stalls),
    )
