"""Pictures of a page: drawn once, small, with names that stay."""

from __future__ import annotations

import io
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bakeoff.errors import RenderError
from bakeoff.plots import draw, kinds
from bakeoff.plots.style import save

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.figure import Figure

    from bakeoff.results import Result

COLOURS: Final = 256
"""As many as PNG has in a palette: with fewer, thin lines lose the colour that says their control."""
FORMATS: Final = ("png", "svg")
MOST_PICTURES: Final = 200
"""Of a page."""


class Pictures:
    """The pictures of one page, in a folder beside it that has the page's name."""

    def __init__(self, folder: str | None) -> None:
        """`folder` is relative to the page; None where the page goes to no file."""
        self.folder = folder
        self.made: dict[str, bytes] = {}
        self._of: dict[str, tuple[Any, ...]] = {}

    def add(self, name: str, of: tuple[Any, ...], results: Sequence[Result], options: dict[str, Any]) -> str:
        """The path of a picture relative to the page; drawn when it is first asked for.

        `of` says what is drawn: a name can be of one thing only. BakeoffError for a page without a file, too many
        pictures, and all that cannot be drawn.
        """
        extension = options.pop("format")
        return self._made(name, of, extension, lambda: _drawn(results, extension, **options))

    def draw(self, name: str, of: tuple[Any, ...], extension: str, figure: Callable[[], Figure]) -> str:
        """As `add`, of a figure that the caller makes."""
        return self._made(name, of, extension, lambda: _saved(figure(), extension))

    def copy(self, name: str, content: bytes) -> str:
        """The path of a file with this content, relative to the page. BakeoffError for a page without a file."""
        if self.folder is None:
            raise RenderError("a linked file needs a page in a file; expected --out")
        path = f"{self.folder}/{file_name(name)}"
        if path not in self.made and len(self.made) == MOST_PICTURES:
            raise RenderError(f"more than {MOST_PICTURES} pictures and files; expected fewer")
        if self.made.setdefault(path, content) != content:
            raise RenderError(f"{path}: two files have this name; expected different run names")
        return path

    def _made(self, name: str, of: tuple[Any, ...], extension: str, draw: Callable[[], bytes]) -> str:
        if self.folder is None:
            raise RenderError("a picture needs a page in a file; expected --out")
        if extension not in FORMATS:
            raise RenderError(f"format: '{extension}'; expected {' or '.join(FORMATS)}")
        path = f"{self.folder}/{file_name(name)}.{extension}"
        if path in self._of:
            if self._of[path] != of:
                raise RenderError(f"duplicate picture name '{path}'; expected unique names, set with name=")
            return path
        if len(self.made) == MOST_PICTURES:
            raise RenderError(f"more than {MOST_PICTURES} pictures and files; expected fewer")
        self.made[path] = draw()
        self._of[path] = of
        return path


def file_name(text: str) -> str:
    """A text as the name of a file: letters, digits, points and hyphens."""
    return re.sub(r"[^\w.=+-]+", "-", text, flags=re.ASCII).strip("-.")[:150] or "picture"


def _drawn(
    results: Sequence[Result], extension: str, *, kind: str, scale: Any, measure: str | None, x: str | None,  # noqa: ANN401
    y: str | None, names: list[str] | None, title: str | None, columns: bool,
) -> bytes:  # fmt: skip
    chosen = kinds.kind(kind)
    if chosen.of == "run":
        if measure or x or y:
            raise RenderError(f"'{kind}': measure, x and y are only valid for sweep and heatmap")
        figure = draw.overlay(results, kind, scale=scale, names=names, title=title, columns=columns)
    else:
        if columns:
            raise RenderError(f"'{kind}': columns is only valid for kinds of single runs")
        made = list(draw.campaign(results, kind, measure=measure, x=x, y=y).values())
        if len(made) != 1:
            raise RenderError(f"'{kind}' of runs of {len(made)} scenarios; expected runs of one")
        figure = made[0] if title is None else draw.titled(made[0], title)
    return _saved(figure, extension)


def _saved(figure: Figure, extension: str) -> bytes:
    with tempfile.TemporaryDirectory(prefix="bakeoff-") as folder:
        path = save(figure, Path(folder) / f"picture.{extension}")
        return small(path.read_bytes()) if extension == "png" else path.read_bytes()


def small(png: bytes) -> bytes:
    """A palette of its own for the picture: a third of the bytes, and nobody sees a difference."""
    from PIL import Image

    out = io.BytesIO()
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE).save(out, "PNG", optimize=True)
    return out.getvalue()
