"""Jinja2 for the pages whose templates are our own; those of others are rendered by `bakeoff.render`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from bakeoff.errors import printable

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment(package: str) -> Environment:
    """Jinja2 with the templates of a package: texts are escaped, and a name that a template lacks is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: object) -> object:
        return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value

    return Environment(
        loader=PackageLoader(package),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
