"""The types of arguments that a notebook gives: what is wrong is told at once, and with the form that was expected."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, Literal

from bakeoff.errors import UsageError

Kind = Literal[
    "text", "text?", "texts", "texts?", "names", "whole", "whole?", "flag", "path", "path?", "paths",
    "rate", "time", "time?",
    "mapping?",
]  # fmt: skip
"""With a question mark None is one, too."""

_FORMS: Final = {
    "text": "text",
    "texts": "a list of texts",
    "names": "a text or a list of texts",
    "whole": "a whole number",
    "flag": "True or False",
    "path": "a path",
    "paths": "a list of paths",
    "rate": "text with a unit, such as '50mbit'",
    "time": "text with a unit, such as '20ms'",
    "mapping": 'a dictionary such as {"network.rtt": "40ms"}',
}


def check(function: str, **arguments: tuple[Kind, object]) -> None:
    """BakeoffError for the first argument that is not of its kind."""
    for name, (kind, value) in arguments.items():
        of = kind.removesuffix("?")
        if not ((value is None and of != kind) or _IS[of](value)):
            raise UsageError(f"{function}: {name}: {_shown(value)}; expected {_FORMS[of]}")


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _are_texts(value: object) -> bool:
    return (
        not isinstance(value, str | bytes | Mapping)
        and isinstance(value, Iterable)
        and all(isinstance(each, str) for each in value)
    )


def _are_paths(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes) and all(map(_IS["path"], value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


_IS: Final[Mapping[str, Callable[[object], bool]]] = {
    "text": _is_text,
    "rate": _is_text,
    "time": _is_text,
    "texts": _are_texts,
    "names": lambda value: _is_text(value) or _are_texts(value),
    "whole": lambda value: hasattr(value, "__index__") and not isinstance(value, bool),
    "flag": lambda value: isinstance(value, bool),
    "path": lambda value: isinstance(value, str | os.PathLike),
    "paths": _are_paths,
    "mapping": lambda value: isinstance(value, Mapping) and all(map(_is_text, value)),
}
