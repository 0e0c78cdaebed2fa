"""How pictures look and how they are written."""

from __future__ import annotations

import io
import unicodedata
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bakeoff import files
from bakeoff.errors import PlotError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES: Final = (".svg", ".png", ".pdf")

WIDTH_INCH: Final = 12.0
_LEAST_DOTS: Final = 1200
"""Across a PNG, however few inches wide it is."""

_RC = {
    "font.family": "sans-serif",
    # The first is matplotlib's own and is always there; the others are for who reads an SVG elsewhere.
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Liberation Sans", "Arial"],
    "font.size": 11,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.use_mathtext": False,
    "grid.color": "#dddddd",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.handlelength": 3.2,
    # Names are the user's: a dollar sign in one is a dollar sign.
    "text.parse_math": False,
    # Text stays text: it can be searched and edited, and journals refuse Type 3 fonts (42 is TrueType).
    "svg.fonttype": "none",
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    # The same result gives the same bytes: identifiers inside the SVG come from this, not from chance.
    "svg.hashsalt": "bakeoff",
    "savefig.dpi": "figure",
    "figure.dpi": 100,
    "figure.facecolor": "white",
}

_METADATA: Mapping[str, dict[str, str | None]] = {
    "svg": {"Date": None, "Creator": "bakeoff"},
    "png": {"Software": "bakeoff"},
    "pdf": {"CreationDate": None, "Creator": "bakeoff", "Producer": "bakeoff"},
}


@contextmanager
def styled() -> Iterator[None]:
    """Figures made or drawn inside have the house's style, whatever the user's matplotlibrc says."""
    from bakeoff.plots.mpl import mpl

    with mpl.rc_context(), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box; a line on the terminal for each would say no more.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        mpl.rcdefaults()
        mpl.rcParams.update(_RC)  # type: ignore[arg-type]
        yield


def plain(text: str) -> str:
    """The text on one line, without control characters, which no picture can hold, and those that turn it round.

    The last are of the category `Cf`, such as U+202E: what an SVG says in a comment would be shown from right to left.
    """
    hidden = ("Cc", "Cf", "Cs")
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in hidden else c for c in text)


def dpi(figure: Figure) -> float:
    """Dots per inch of pixels: a narrow picture, as a journal has it, is no coarser than others."""
    return max(100.0, round(_LEAST_DOTS / figure.get_figwidth()))


def save(figure: Figure, path: Path) -> Path:
    """Write a figure as `.svg`, `.png` or `.pdf`, the same bytes for the same figure; whole or not at all.

    Raises BakeoffError for another suffix, or if the file cannot be written.
    """
    kind = path.suffix.removeprefix(".").lower()
    if kind not in _METADATA:
        raise PlotError(f"{path}: unknown picture format '{path.suffix}'; expected {', '.join(SUFFIXES)}")
    content = io.BytesIO()
    with styled():
        figure.savefig(content, format=kind, metadata=_METADATA[kind], dpi=dpi(figure) if kind == "png" else 100)
    files.write(path, content.getvalue())
    return path
