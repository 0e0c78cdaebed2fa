"""The samples of a run, found by what they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bakeoff.errors import MeasureError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from bakeoff.results.series import Parts

    Array = npt.NDArray[np.float64]

Window = tuple[float, float]


class Samples:
    """The samples of a run, as `Result.parts` has them, for measures to take what they need."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def __contains__(self, key: tuple[str, str, str]) -> bool:
        return key in self._parts

    def names(self, kind: str) -> Iterator[str]:
        """The names of a kind (`flow`, `probe`, `queue`) that have samples, in order of appearance."""
        yield from dict.fromkeys(name for of, name, _ in self._parts if of == kind)

    @property
    def end_s(self) -> float:
        """The time of the last sample [s]; 0 without samples."""
        return max((float(time[-1]) for time, _ in self._parts.values() if len(time)), default=0.0)

    def all_of(self, kind: str, name: str) -> Iterator[tuple[str, tuple[Array, Array]]]:
        """Each metric of a flow, probe or queue, with its times [s] and values, in order of appearance."""
        for (of, named, metric), found in self._parts.items():
            if (of, named) == (kind, name):
                yield metric, found

    def of(self, kind: str, name: str, metric: str, window: Window | None = None) -> tuple[Array, Array]:
        """Times [s] and values of one series, which are in order of time, inside the closed `window` if one is given.

        Raises MeasureError, naming the series and the window, if there is no sample.
        """
        time, value = self._parts.get((kind, name, metric), (None, None))
        if time is None or value is None or not len(time):
            raise MeasureError(f"no '{metric}' samples of {kind} '{name}'")
        if window is None:
            return time, value
        first, end = time.searchsorted(window[0]), time.searchsorted(window[1], "right")
        if first == end:
            raise MeasureError(f"no '{metric}' samples of {kind} '{name}' between {window[0]:g} s and {window[1]:g} s")
        return time[first:end], value[first:end]
