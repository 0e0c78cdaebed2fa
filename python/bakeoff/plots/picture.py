"""A picture: a figure with words above and a legend below, which keep their places whatever the size."""

from __future__ import annotations

import base64
import io
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from bakeoff.plots.mpl import ConstrainedLayoutEngine, Figure
from bakeoff.plots.style import WIDTH_INCH, dpi, styled

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.text import Text

    from bakeoff.plots.panels import Panel

_TITLE: Final = (14.0, 7.6, 0.26)
"""Of the title: size in points, letters and lines per inch."""
_SMALL: Final = (9.0, 13.4, 0.165)
"""The same of the words below it."""
_LEGEND: Final = (9.5, 12.5)
_LEGEND_LINE: Final = 0.21
_LETTER: Final = 0.088
"""Inches that a letter of a label takes."""
_LEAST_SCALE: Final = 0.7
"""Letters of a narrow picture are no smaller than this part of those of a wide one: 7.7 and 6.7 points."""
_MOST_LINES: Final = 12
_MOST_HEADING: Final = 0.45
"""Share of the height that words above may take; of more the configuration goes, and then the title."""
_LEAST_PANEL: Final = 0.95
"""Inches that a panel needs; of a picture that is made lower the words above go, and the end of the legend."""
_TOP: Final = 0.12


@dataclass(frozen=True)
class Heading:
    """The words above a picture."""

    title: str
    notes: tuple[str, ...] = ()
    """What was in effect, a line each; folded where they are too long."""
    failed: tuple[str, ...] = ()
    """What is wrong with it, in red."""


class Picture(Figure):
    """A matplotlib figure that shows itself in a notebook, and knows its panels.

    Its heading and its legend are laid out for its size; a smaller size brings smaller letters and thinner lines.
    """

    panels: list[Panel]
    heading: Heading | None
    entries: list[Artist]
    spare: Axes | None
    """A place among the panels that is empty: the legend stands there if it has room."""
    _words: list[Text]
    _scale: float
    _drawn_inch: float

    def _repr_png_(self) -> bytes:
        with styled():
            buffer = io.BytesIO()
            self.savefig(buffer, format="png", dpi=dpi(self))
        return buffer.getvalue()

    def set_size_inches(self, w: Any, h: float | None = None, forward: bool = True) -> None:  # noqa: ANN401 (matplotlib)
        """Set the size; heading, legend and letters follow."""
        before = tuple(self.get_size_inches())
        super().set_size_inches(w, h, forward=forward)
        changed = any(abs(one - other) > 1e-6 for one, other in zip(before, self.get_size_inches(), strict=True))
        if changed and hasattr(self, "heading"):
            with styled():
                self._rescale()
                self.lay_out()

    def add_legend(self, entries: Sequence[Artist]) -> None:
        """Show these below the picture."""
        self.entries = list(entries)
        self._lay_out_legend()
        self._fold_labels()

    def leave_empty(self, places: Sequence[Axes]) -> None:
        """Draw nothing in these places of the grid; the legend may stand in the first."""
        for cell in places[1:]:
            cell.remove()
        if places:
            self.spare = places[0]
            self.spare.set_axis_off()

    def to_width(self, width_inch: float) -> None:
        """Make the picture so wide, and as high as is fitting."""
        before = self.get_figwidth()
        drawn = (self.get_figheight() - self._above() - self._below()) * (width_inch / before) ** 0.7
        Figure.set_size_inches(self, width_inch, drawn)
        with styled():
            self._rescale()
            Figure.set_size_inches(self, width_inch, drawn + self._above() + self._below())
            self.lay_out()

    def retitle(self, title: str) -> None:
        """Give the picture another title; the one that it had becomes the first line below."""
        if self.heading is None:
            return
        height = self.get_figheight() - self._above()
        self.heading = Heading(title, (self.heading.title, *self.heading.notes), self.heading.failed)
        Figure.set_size_inches(self, self.get_figwidth(), height + self._above())
        with styled():
            self.lay_out()

    def without_heading(self) -> None:
        """Take the words above away: a paper has a caption."""
        height = self.get_figheight() - self._above()
        self.heading = None
        Figure.set_size_inches(self, self.get_figwidth(), height)
        with styled():
            self.lay_out()

    def lay_out(self) -> None:
        """Put heading and legend where they belong, for the size as it is."""
        for text in self._words:
            text.remove()
        self._words = []
        height = self.get_figheight()
        down = _TOP
        parts = self._fitting(height)
        for lines, (size, _, line), look in parts:
            self._words.append(
                self.text(0.012, 1 - down / height, "\n".join(lines), va="top", fontsize=size * self._scale,
                          linespacing=1.3 if size == _SMALL[0] else 1.2, **look)
            )  # fmt: skip
            down += line * self._scale * len(lines)
        engine = self.get_layout_engine()
        if isinstance(engine, ConstrainedLayoutEngine):
            engine.set(rect=(0, 0, 1, 1 - (down + 0.1) / height if parts else 1))
        self._lay_out_legend()
        self._fold_labels()

    def _fold_labels(self) -> None:
        """Fold what stands beside the axes, so that it is no longer than they are high."""
        drawn = self.get_figheight() - self._above() - self._below()
        for axes in self.axes:
            cell = axes.get_subplotspec()
            label = axes.yaxis.label
            if cell is None or not label.get_text():
                continue
            rows = cell.get_gridspec().nrows / len(cell.rowspan)
            high = drawn / rows - 0.5 * self._scale
            room = max(int(high / (_LETTER * self._scale)), 8)
            text = " ".join(label.get_text().split())
            label.set_text("\n".join(textwrap.wrap(text, room, break_on_hyphens=False)))

    def _in_spare(self) -> Axes | None:
        """The empty place, if all entries have room there, one below the other."""
        cell = self.spare.get_subplotspec() if self.spare is not None else None
        if cell is None:
            return None
        grid = cell.get_gridspec()
        letters = _LEGEND[1] * self.get_figwidth() / grid.ncols / self._scale
        inches = (self.get_figheight() - self._above()) / grid.nrows
        longest = max((len(str(entry.get_label())) for entry in self.entries), default=0)
        fits = longest + 12 <= letters and len(self.entries) * _LEGEND_LINE * self._scale <= inches - 0.3
        return self.spare if fits else None

    def _below(self, entries: Sequence[Artist] | None = None) -> float:
        """Inches that the legend takes, about."""
        if self._in_spare() is not None:
            return 0.0
        labels, columns = self._columns(self._explained() if entries is None else entries)
        lines = [label.count("\n") + 1 for label in labels]
        rows = -(-len(lines) // columns) if lines else 0
        return (rows * max(lines, default=1) * _LEGEND_LINE + 0.1) * self._scale if lines else 0.0

    def _columns(self, entries: Sequence[Artist]) -> tuple[list[str], int]:
        """The legend's labels, folded, and in how many columns they fit."""
        room = int(_LEGEND[1] * self.get_figwidth() / self._scale)
        tried = []
        # Folded, a long label may leave room for more columns.
        for width in (room - 9, room // 2 - 9, room // 3 - 9):
            labels = [textwrap.fill(str(entry.get_label()), max(width, 16)) for entry in entries]
            longest = max((len(line) for label in labels for line in label.split("\n")), default=0)
            columns = max(1, min(len(labels), room // (longest + 9)))
            high = -(-len(labels) // columns) * max((label.count("\n") + 1 for label in labels), default=1)
            tried.append((high, labels, columns))
        _, labels, columns = min(tried, key=lambda one: one[0])
        return labels, columns

    def _above(self) -> float:
        """Inches that the words above take."""
        parts = self._parts()
        lines = sum(line * self._scale * len(texts) for texts, (_, _, line), _ in parts)
        return _TOP + lines + 0.1 if parts else 0.0

    def _parts(self) -> list[tuple[list[str], tuple[float, float, float], dict[str, Any]]]:
        """The words above, folded: lines, size, and how they look."""
        if self.heading is None:
            return []

        def folded(texts: Sequence[str], per_inch: float) -> list[str]:
            room = max(int(per_inch * self.get_figwidth() / self._scale), 12)
            lines = [line for text in texts for line in textwrap.wrap(text, room, break_on_hyphens=False) or [""]]
            more = len(lines) - _MOST_LINES
            return lines if more <= 0 else [*lines[: _MOST_LINES - 1], f"… and {more + 1} lines more"]

        made = [(folded([self.heading.title], _TITLE[1]), _TITLE, {"fontweight": "bold"})]
        for texts, colour in ((self.heading.notes, "#444444"), (self.heading.failed, "#b00000")):
            if texts:
                made.append((folded(texts, _SMALL[1]), _SMALL, {"color": colour}))
        return made

    def _fitting(self, height: float) -> list[tuple[list[str], tuple[float, float, float], dict[str, Any]]]:
        """As much of the words above as leaves room for the picture: all, else the title and what is wrong."""
        every = self._parts()
        room = min(_MOST_HEADING * height, height - self._below() - self._rows() * _LEAST_PANEL)
        for parts in (every, [part for part in every if part[2].get("color") != "#444444"]):
            if sum(line * self._scale * len(texts) for texts, (_, _, line), _ in parts) <= room:
                return parts
        return []

    def _rows(self) -> int:
        """How many panels stand one above the other."""
        places = [cell for axes in self.axes if (cell := axes.get_subplotspec()) is not None]
        return max((cell.get_gridspec().nrows for cell in places), default=1)

    def _explained(self) -> list[Artist]:
        """The legend's entries; in a low picture those alone, from the first on, that leave room for the panels."""
        room = max(self.get_figheight() - self._rows() * _LEAST_PANEL, _LEGEND_LINE)
        kept = list(self.entries)
        while len(kept) > 1 and self._below(kept) > room:
            kept.pop()
        return kept

    def _lay_out_legend(self) -> None:
        """One legend below everything, so that it never lies on data; in as many columns as fit."""
        for old in list(self.legends):
            old.remove()
        if self.spare is not None and self.spare.legend_ is not None:
            self.spare.legend_.remove()
        if not self.entries:
            return
        if (cell := self._in_spare()) is not None:
            cell.legend(handles=self.entries, loc="center left", fontsize=_LEGEND[0] * self._scale)
            return
        explained = self._explained()
        labels, columns = self._columns(explained)
        self.legend(handles=explained, labels=labels, loc="outside lower center", ncols=columns,
                    fontsize=_LEGEND[0] * self._scale)  # fmt: skip

    def _rescale(self) -> None:
        """Letters, lines and marks as large as the width wants them."""
        wanted = max(_LEAST_SCALE, min(1.0, (self.get_figwidth() / self._drawn_inch) ** 0.45))
        by = wanted / self._scale
        if abs(by - 1) < 1e-9:
            return
        self._scale = wanted
        from matplotlib.collections import Collection
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch
        from matplotlib.text import Text

        kinds = (
            (Text, ("fontsize",)),
            (Line2D, ("linewidth", "markersize", "markeredgewidth")),
            (Patch, ("linewidth",)),
            (Collection, ("linewidth",)),
        )
        for kind, names in kinds:
            for one in {*self.findobj(kind), *(entry for entry in self.entries if isinstance(entry, kind))}:
                for name in names:
                    size = getattr(one, f"get_{name}")()
                    getattr(one, f"set_{name}")(size * by)
        for axis in (axis for axes in self.axes for axis in (axes.xaxis, axes.yaxis)):
            # Ticks that come with another size take these, and not those that are here now.
            sizes: tuple[tuple[Literal["major", "minor"], float], ...] = (("major", 3.5), ("minor", 2.0))
            for which, length in sizes:
                marks = axis.get_tick_params(which=which).get("length", length)
                axis.set_tick_params(
                    which=which, width=0.8 * wanted, pad=3.5 * wanted, length=marks and length * wanted
                )
            label = next(iter(axis.get_majorticklabels()), None)
            if label is not None:
                axis.set_tick_params(labelsize=label.get_fontsize())
            axis.labelpad *= by


class Pictures(list[Picture]):
    """Several figures, one below the other in a notebook."""

    def _repr_html_(self) -> str:
        images = (base64.b64encode(one._repr_png_()).decode() for one in self)
        return "".join(f'<img src="data:image/png;base64,{image}"/>' for image in images)


def titled(
    title: str, notes: Sequence[str], failed: Sequence[str] = (), *, height_inch: float, width_inch: float = WIDTH_INCH
) -> Picture:
    """An empty picture with words above: what it is, what was in effect, and in red the self-checks that failed.

    The words take the room that they need, `height_inch` is for the rest.
    """
    made = Picture(figsize=(width_inch, height_inch), layout="constrained")
    made.panels, made.entries, made.spare = [], [], None
    made._words, made._scale, made._drawn_inch = [], 1.0, width_inch
    made.heading = Heading(title, tuple(notes), tuple(failed))
    Figure.set_size_inches(made, width_inch, height_inch + made._above())
    made.lay_out()
    return made
