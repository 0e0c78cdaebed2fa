"""What iperf3 writes that is no JSON document: events by lines (`--json-stream`), text for people, errors alone."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bakeoff.errors import BakeoffError, RecordingError
from bakeoff.imports.document import Keys, decoded, is_there, keys_of

EVENT: Final = frozenset({"event", "data"})
"""The keys of a line of `--json-stream`."""
_PARTS: Final = frozenset({"start", "end", "error", "server_output_json", "server_output_text"})
"""The events that are keys of a document."""
_TEXT: Final = re.compile(
    rb"^(?:Connecting to host |Accepted connection from |Server listening on |\[ ID\] Interval)", re.M
)
_LONGEST: Final = 300
"""Characters of an error that are shown."""


def is_event(keys: Keys) -> bool:
    """Whether an object is a line of `--json-stream`."""
    return keys.keys() >= EVENT


def of_events(objects: Sequence[bytes], wanted: Collection[str], path: Path) -> Keys:
    """The keys of the document that these lines amount to; what was cut off is absent."""
    found: Keys = {}
    intervals: list[bytes] = []
    for number, line in enumerate(objects, 1):
        place = f"{path}: event {number}"
        keys = keys_of(line, wanted, place)
        if {"start", "intervals", "end"} <= keys.keys():
            # --json-stream-full-output writes the whole document, too.
            return keys
        if not is_event(keys):
            raise RecordingError(f"{place}: expected an object with 'event' and 'data'")
        event = decoded(keys["event"], str, f"{place}: event")
        if event == "interval":
            intervals.append(bytes(keys["data"]))
        elif event in _PARTS:
            if event == "start" and "start" in found:
                raise RecordingError(f"{place}: another test; expected one test per file")
            found[event] = keys["data"]
    return {"end": msgspec.Raw(b"{}"), **found, "intervals": msgspec.Raw(b"[" + b",".join(intervals) + b"]")}


def error_in(keys: Keys, path: Path) -> str | None:
    """The error that iperf3 wrote into the document, as a line."""
    if not is_there(keys.get("error", msgspec.Raw())):
        return None
    error = decoded(keys["error"], str, f"{path}: error").removeprefix("error - ")
    return "".join(c if c.isprintable() else " " for c in error).strip()[:_LONGEST] or "unknown error"


def failed(error: str, path: Path) -> BakeoffError:
    """What is said of a test without a result."""
    return RecordingError(f"{path}: iperf3 failed without data: {error}")


def need_json(text: bytes, path: Path) -> None:
    """BakeoffError if a text is what iperf3 prints without `-J`."""
    if _TEXT.search(text):
        raise RecordingError(f"{path}: text output of iperf3; expected the JSON of 'iperf3 -J'")
