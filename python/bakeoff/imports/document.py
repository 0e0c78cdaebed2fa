"""A JSON document that anybody may have made: packed or plain, read within bounds of size and memory."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from bakeoff import files, jsonfile
from bakeoff.errors import RecordingError

Keys = dict[str, msgspec.Raw]
"""Values of an object, by their keys, that are not decoded yet."""

Scalar = str | float | bool | None
"""What holds nothing else, so that its memory is that of its text."""

ABSENT: Final = msgspec.Raw(b"")
"""The value of a key that an object does not have."""

T = TypeVar("T")

MOST: Final = 128 << 20
"""Bytes that a file may hold or unfold to: a test of Flent with ten flows for an hour makes 100 MB."""
MOST_OBJECTS: Final = 500_000
"""Of a file: six days at an interval per second."""
_NO_NUMBER: Final = re.compile(
    rb"(?<=[:,\[\s])[-+]?(?:nan(?:\(\w*\))?|inf(?:inity)?|1\.#\w+)(?=[,\]}\s])", re.IGNORECASE
)
"""What C's printf and Python's encoder write of numbers that are none, and JSON does not know."""
_ESCAPED: Final = re.compile(rb"\\.", re.DOTALL)
_STRING_OR_BRACE: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}]', re.DOTALL)
_BEGIN: Final = re.compile(rb"^[ \t]*\{", re.MULTILINE)
"""Of an object, at the beginning of a line."""
_UTF16: Final = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"{\0": "utf-16-le", b"\0{": "utf-16-be"}
"""How UTF-16 begins: PowerShell writes it into files."""
_UTF8_SIGN: Final = b"\xef\xbb\xbf"


def text_of(path: Path) -> bytes:
    """The file's text in UTF-8: gzip, bzip2 or plain, told by the first bytes. BakeoffError names the file.

    A number that is none (NaN, which iperf3 and Python write) becomes null.
    """
    try:
        text = files.unpacked(path, MOST)
    except OSError as error:
        raise RecordingError(f"{path}: cannot be read: {error.strerror or error}") from None
    if text[:2] in _UTF16:
        try:
            text = text.decode(_UTF16[text[:2]]).encode()
        except UnicodeDecodeError as error:
            raise RecordingError(f"{path}: invalid text: {error.reason} at byte {error.start} of UTF-16") from None
    text = text.removeprefix(_UTF8_SIGN)
    if not text.strip():
        raise RecordingError(f"{path}: invalid JSON: empty")
    lower = text.lower()
    return _with_null(text) if any(word in lower for word in (b"nan", b"inf", b"1.#")) else text


def _with_null(text: bytes) -> bytes:
    """The text with null for each number that is none; words inside of strings stay."""
    parts: list[bytes] = []
    at, inside = 0, False
    for found in _NO_NUMBER.finditer(text):
        between = text[at : found.start()]
        inside ^= bool(_ESCAPED.sub(b"", between).count(b'"') % 2)
        parts += [between, found[0] if inside else b"null"]
        at = found.end()
    return b"".join([*parts, text[at:]])


def keys_of(text: bytes, wanted: Collection[str], place: str) -> Keys:
    """Those of the `wanted` keys that a JSON object has. BakeoffError begins with `place` and says what is wrong."""
    found: Any = decoded(text, _form(frozenset(wanted)), place)
    return {key: value for key in wanted if is_there(value := getattr(found, key))}


@cache
def _form(wanted: frozenset[str]) -> type[msgspec.Struct]:
    """A record with these fields, so that other keys, of which there may be millions, are passed over."""
    return msgspec.defstruct("Document", [(key, msgspec.Raw, ABSENT) for key in sorted(wanted)])


def objects_of(text: bytes) -> tuple[list[bytes], bytes]:
    """The JSON objects of a text, each of which begins at a line, and what stands around them.

    An object that is cut off belongs to what stands around, and so does everything after `MOST_OBJECTS`.
    """
    found: list[bytes] = []
    around: list[bytes] = []
    at = 0
    while len(found) < MOST_OBJECTS and (start := _BEGIN.search(text, at)) is not None:
        around.append(text[at : start.start()])
        at = start.start()
        end = _end_of(text, at)
        if end is None:
            break
        found.append(text[at:end])
        at = end
    return found, b"\n".join(stray for part in [*around, text[at:]] if (stray := part.strip()))


def _end_of(text: bytes, start: int) -> int | None:
    """Where the object that begins there ends; None if it does not."""
    depth = 0
    for token in _STRING_OR_BRACE.finditer(text, start):
        depth += {b"{": 1, b"}": -1}.get(token[0], 0)
        if depth == 0:
            return token.end()
    return None


def is_there(value: msgspec.Raw) -> bool:
    """Whether an object has a value at a key, other than null."""
    return bytes(value) not in (b"", b"null")


def decoded(text: bytes | msgspec.Raw, form: type[T], place: str) -> T:
    """The JSON text as a value of the form. BakeoffError begins with `place` and names the first key that is wrong."""
    return jsonfile.decoded(text, place, form)


def need_few(text: bytes | msgspec.Raw, sign: bytes, most: int, place: str, what: str) -> None:
    """BakeoffError if there are more of something in a JSON text, each of which has the `sign`, than it may hold.

    Objects take many times the memory of their text, so that they are counted before they are made.
    """
    count = bytes(text).count(sign)
    if count > most:
        raise RecordingError(f"{place}: {count:,} {what}; expected at most {most:,}")
