"""The page of one run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff.measure import summary_of
from bakeoff.present import words

if TYPE_CHECKING:
    from bakeoff.present.site.data import Page
    from bakeoff.present.site.pages import Site


def write(page: Page, folder: Path, site: Site) -> None:
    """Write the page of a run, and the files that it names, into the folder, which exists and is empty."""
    result = page.result
    effect = words.in_effect(result, summary_of(result)) if result.ok else []
    text = site.render("run.html.j2", page.place, page=page, result=result, effect=effect, title=words.title(result))
    (folder / "index.html").write_text(text, encoding="utf-8")
