"""The samples of a page's charts as one script, which a page in a folder can load: no server, and no fetch.

The numbers are one block of bytes, deflated and in base64. First stand the times of every clock that lines share: the
steps from each time to the next, in microseconds, as 64-bit floats. Then the values of every line as 32-bit floats,
which is more than a screen tells apart at any zoom. All are little-endian, and of each array first the lowest bytes of
all numbers, then the next: alike bytes stand together and deflate to a third.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bakeoff.site.contrast import light_and_dark

if TYPE_CHECKING:
    from bakeoff.measure.samples import Array
    from bakeoff.site.charts import Chart

    Series = tuple[Array, Array]

_LEVEL: Final = 6
_TIME_UNIT_S: Final = 1e-6
_CALL: Final = "bakeoffCharts"


class Block:
    """Arrays of numbers, each once, with their places."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0
        self._known: dict[bytes, int] = {}
        self.arrays: list[tuple[int, int, int]] = []
        """Of each array where it begins [byte], how many numbers it has, and how many bytes a number has."""

    def times(self, time: Array) -> int:
        """The number of the array that holds these times [s]."""
        import numpy as np

        return self._add(np.diff(np.rint(time / _TIME_UNIT_S), prepend=0.0).astype("<f8"))

    def values(self, value: Array) -> int:
        """The number of the array that holds these values."""
        return self._add(value.astype("<f4"))

    def _add(self, numbers: Array) -> int:
        import numpy as np

        size = numbers.dtype.itemsize
        text = np.ascontiguousarray(numbers).view("u1").reshape(-1, size).T.tobytes()
        if text not in self._known:
            self._known[text] = len(self.arrays)
            self.arrays.append((self._size, len(numbers), size))
            self._parts.append(text)
            self._size += len(text)
        return self._known[text]

    def text(self) -> str:
        """Deflated, as base64."""
        return base64.b64encode(zlib.compress(b"".join(self._parts), _LEVEL)).decode()


def script(charts: Sequence[Chart], values: Mapping[str, Any]) -> str:
    """The script of a page's charts; `shown` is what all of them have: how long the run is, its window, its changes."""
    block = Block()
    made = [
        {
            "id": chart.id,
            "unit": chart.unit,
            "top": chart.top,
            "lines": [
                {
                    "label": trace.label,
                    "of": trace.of,
                    "colours": light_and_dark(trace.colour),
                    "dash": trace.dash,
                    "style": trace.style,
                    "samples": _series(block, trace.series),
                    "means": None if trace.means is None else _series(block, trace.means),
                    "members": [_series(block, member) for member in trace.members],
                }
                for trace in chart.traces
            ],
        }
        for chart in charts
    ]
    content = {**values, "charts": made, "arrays": block.arrays, "bytes": block.text()}
    return f"{_CALL}({as_script(content)});\n"


def as_script(content: object) -> str:
    """JSON that is safe inside a script, wherever it stands: no tag, and no line end that JavaScript does not take."""
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _series(block: Block, series: Series) -> tuple[int, int]:
    return block.times(series[0]), block.values(series[1])
