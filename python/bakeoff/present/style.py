"""How pictures look and how they are written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff.errors import BakeoffError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
"""Okabe and Ito's palette, distinct for every kind of colour vision; its black is the probes', its yellow too pale."""

MARKERS = ("o", "s", "^", "D", "v", "P")

SIZE_INCH = (12.0, 9.0)

_RC = {
    "font.family": "DejaVu Sans",
    "font.size": 11,
    "axes.grid": True,
    "axes.spines.top": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    # The same result gives the same bytes: identifiers inside the SVG come from this, not from chance.
    "svg.hashsalt": "bakeoff",
}

_METADATA: Mapping[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "bakeoff"},
    "png": {"Software": "bakeoff"},
}


@contextmanager
def styled() -> Iterator[None]:
    """Figures made inside have the house's style, whatever the user's matplotlibrc says."""
    import matplotlib as mpl

    with mpl.rc_context(_RC):  # type: ignore[arg-type]
        yield


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as `.svg` or `.png`, the same bytes for the same figure; whole or not at all.

    Raises BakeoffError for another suffix, or if the file cannot be written.
    """
    kind = path.suffix.removeprefix(".").lower()
    if kind not in _METADATA:
        raise BakeoffError(f"{path}: unknown picture format '{path.suffix}'; expected .svg or .png")
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with styled():
            figure.savefig(partial, format=kind, metadata=_METADATA[kind])
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise BakeoffError(f"{path}: {error.strerror or error}") from None
    return path
