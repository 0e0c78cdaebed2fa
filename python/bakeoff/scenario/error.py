"""What is wrong in a scenario, in the words of the person who wrote it."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

_LISTED: Final = 24
"""Words that are listed, of those that are possible."""
_SHOWN: Final = 60
"""Characters of a value in a message."""


class DocumentError(ValueError):
    """Something wrong in a scenario: `place` inside the file and what is wrong there."""

    def __init__(self, place: str, what: str) -> None:
        super().__init__(f"{place}: {what}" if place else what)
        self.place = place
        self.what = what


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'flows'?` or, without a near word, `; expected one of …`."""
    known = list(known)
    near = get_close_matches(word[:_SHOWN], known, n=1, cutoff=0.6)
    if near:
        return f"; did you mean '{near[0]}'?"
    if len(known) == 1:
        return f"; expected '{known[0]}'"
    more = ", …" if len(known) > _LISTED else ""
    return f"; expected one of {', '.join(known[:_LISTED])}{more}" if known else ""


def unquoted(value: object) -> str | None:
    """What is wrong with a placeholder that lacks its quotes, which YAML reads as a mapping; None for other values."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    [(key, inside)] = value.items()
    if inside is not None or not isinstance(key, str):
        return None
    return f'{{{key}}} without quotes is a mapping in YAML; expected "{{{key}}}"'


def quoted(value: object) -> str:
    """A value as YAML writes it on one line, shortened: `'word'`, `[10ms, 5]`, `{rate: 50mbit}`, `true`, `null`."""
    text = f"'{value}'" if isinstance(value, str) else _inside(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def _inside(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case dict():
            return "{" + ", ".join(f"{_inside(key)}: {_inside(entry)}" for key, entry in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_inside, value)) + "]"
    return str(value)
