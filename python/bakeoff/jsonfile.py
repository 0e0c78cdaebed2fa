"""JSON that anybody may have written, read within bounds: of bytes, of depth, and of the values that JSON has.

Python's own parser takes NaN and lone surrogates, which no writer of ours can write again, and ends in a RecursionError
where a text is nested deeply.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from bakeoff import files
from bakeoff.errors import FileError

DEEPEST: Final = 100
"""Objects and arrays within each other. A qdisc with its classes, the deepest of ours, has about 20."""

T = TypeVar("T")


def read(path: Path | str, most: int, form: type[T]) -> T:
    """What the regular file at `path` holds, of at most `most` bytes. OSError if it cannot be read.

    BakeoffError as of `decoded`.
    """
    return decoded(files.read(path, most), str(path), form)


def decoded(text: bytes | str | msgspec.Raw, place: str, form: type[T]) -> T:
    """The JSON text as a value of the form, which may be `Any`, and of which parts may be.

    BakeoffError begins with `place` and names the first key that is wrong.
    """
    try:
        found = msgspec.json.decode(text, type=form)
    except msgspec.ValidationError as error:
        raise FileError(_in_words(place, str(error))) from None
    except (msgspec.DecodeError, ValueError) as error:
        raise FileError(f"{place}: invalid JSON: {error}") from None
    except RecursionError:
        raise FileError(f"{place}: nested too deeply") from None
    if is_deep(found):
        raise FileError(f"{place}: nested too deeply; expected at most {DEEPEST} levels")
    return found


def is_deep(value: object) -> bool:
    """Whether more objects and arrays than `DEEPEST` lie within each other in plain JSON values."""
    level = [value]
    for _ in range(DEEPEST):
        level = [inner for outer in level if isinstance(outer, (dict, list)) for inner in _inside(outer)]
        if not level:
            return False
    return True


def _inside(outer: dict[Any, Any] | list[Any]) -> list[object]:
    """What it holds that may hold something itself."""
    values = outer.values() if isinstance(outer, dict) else outer
    return [inner for inner in values if isinstance(inner, (dict, list))]


def _in_words(place: str, error: str) -> str:
    """What msgspec says, with the place as keys: "Expected `float`, got `str` - at `$.times[3]`"."""
    what, _, path = error.partition(" - at `")
    at = path.rstrip("`").removeprefix("$").replace("[...]", ".*").lstrip(".")
    return f"{place}{'.' if at and not at.startswith('[') else ''}{at}: {what}"
