"""Templates filled in: every text in them shows as it is, also one that holds HTML or control characters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bakeoff.text.templates import environment


@dataclass(frozen=True)
class Site:
    """What every page says of the site; small, because each process that writes pages gets it."""

    title: str
    """What the site is of: the name of the results folder."""
    made: str
    """From which bakeoff and day it is."""
    live: bool = False
    """Whether `bakeoff serve` shows it, so that pages ask for news."""
    claims: bool = False
    """Whether it has a page of claims."""
    sides: bool = False
    """Whether it has a page of engines or campaigns side by side."""
    camps: bool = False
    """Whether it has a page of SCE beside L4S."""
    evaluations: bool = False
    """Whether it has a page of evaluations."""
    downloads: bool = True
    """Whether samples, logs and captures lie beside the pages of runs."""

    def render(self, template: str, place: str, **values: Any) -> str:  # noqa: ANN401 (what the template asks for)
        """A page that lies in the folder `place` below the site's, '' for the site's own.

        Templates have `root`, which leads from there to the site's folder: `../../`, or empty.
        """
        root = "../" * len([part for part in place.split("/") if part])
        return environment("bakeoff.site").get_template(template).render(site=self, root=root, **values)
