"""What the results answered, kept beside a page: with it anybody can see, without the results, that it is current."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bakeoff import files, jsonfile
from bakeoff.errors import BakeoffError, RenderError
from bakeoff.render.page import question, rendered
from bakeoff.render.template_functions import FUNCTIONS, kinds

if TYPE_CHECKING:
    from bakeoff.render.page import Page

_LARGEST: Final = 64 << 20


def beside(page: Path) -> Path:
    """The file of a page's answers."""
    return page.with_name(f"{page.stem}.answers.json")


def text(page: Page) -> bytes:
    """The answers of a page, by question in the order in which it asked."""
    return (json.dumps(page.answers, indent=1, ensure_ascii=False) + "\n").encode()


def difference(template: Path, path: Path) -> str | None:
    """Why a page is not what its template and its recorded answers give; None if it is.

    BakeoffError if the page or the answers are not there, or for a template that is wrong.
    """
    known = answers(path)
    unknown: list[str] = []

    def recorded(name: str) -> Callable[..., Any]:
        def answer(*args: Any, **named: Any) -> Any:  # noqa: ANN401 (what a template has)
            asked = question(name, args, named)
            if asked not in known:
                unknown.append(asked)
                raise RenderError(f"no recorded value for {asked}")
            return known[asked]

        return answer

    try:
        page = rendered(template, {name: recorded(name) for name in FUNCTIONS} | {"kinds": kinds})
    except BakeoffError as error:
        if unknown:
            return f"{path}: is not current: {error}; render it again"
        raise
    if left := known.keys() - page.answers.keys():
        return f"{path}: out of date: the template no longer uses {min(left)}; render it again"
    try:
        there = files.read(path, _LARGEST).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise RenderError(f"{path}: cannot be read: {error}") from None
    if there == page.text:
        return None
    lines = zip(there.splitlines(), page.text.splitlines(), strict=False)
    number = next(
        (at for at, (one, other) in enumerate(lines, 1) if one != other), min(map(_lines, (there, page.text)))
    )
    return f"{path}:{number}: differs from {template}; render it again"


def answers(page: Path) -> dict[str, Any]:
    """The recorded answers of a page. BakeoffError if there are none, or what there is cannot be read."""
    path = beside(page)
    try:
        return jsonfile.read(path, _LARGEST, dict[str, Any])
    except OSError as error:
        raise RenderError(
            f"{path}: cannot be read: {error.strerror}; expected the file of 'bakeoff render --record'"
        ) from None


def _lines(text: str) -> int:
    return len(text.splitlines()) + 1
