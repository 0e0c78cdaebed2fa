"""Files that other programs recorded, as results folders: with a module for each form of file.

A module of a form has `KEYS`, the keys that a JSON object of the form has, `WANTED`, those that are read of it, and
`read(keys, path)`, which makes a `Recording` or raises BakeoffError. `recording` writes it as the folder of a run.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from bakeoff.errors import BakeoffError, RecordingError
from bakeoff.imports import iperf3_stream
from bakeoff.imports.document import MOST_OBJECTS, Keys, keys_of, objects_of, text_of

if TYPE_CHECKING:
    from bakeoff.imports.recording import Recording

_OF_IRTT: Final = "round_trips"
"""A key of what irtt's client writes, which is no recording of a network's flows."""
FORMS: Final = {"Flent": "bakeoff.imports.flent", "iperf3": "bakeoff.imports.iperf3"}
"""The forms, by the names of the programs that write them, with their modules."""
_SHOWN: Final = 200
"""Characters of text around a document that are shown."""


class Form(Protocol):
    """A module of a form."""

    KEYS: Collection[str]
    WANTED: Collection[str]

    def read(self, keys: Keys, path: Path) -> Recording:
        """The recording; `keys` are those of `WANTED` that the file has."""


def read(path: Path) -> Recording:
    """What a file holds. BakeoffError names the file and what is wrong, or which forms there are."""
    forms = [cast("Form", import_module(module)) for module in FORMS.values()]
    wanted = {_OF_IRTT, *(key for form in forms for key in form.WANTED)}
    keys, around = _keys(path, wanted)
    for form in forms:
        if set(form.KEYS) <= keys.keys():
            found = form.read({key: keys[key] for key in form.WANTED if key in keys}, path)
            return found.with_warnings([f"ignored text around the JSON: {around}"] if around else [])
    if _OF_IRTT in keys:
        raise RecordingError(f"{path}: a file of irtt, without flows; read it with 'bakeoff trace {path}'")
    if "start" in keys and (error := iperf3_stream.error_in(keys, path)) is not None:
        raise iperf3_stream.failed(error, path)
    expected = "; or ".join(
        f"of {name} an object with {', '.join(sorted(form.KEYS))}" for name, form in zip(FORMS, forms, strict=True)
    )
    raise RecordingError(f"{path}: unknown format; expected {expected}")


def _keys(path: Path, wanted: Collection[str]) -> tuple[Keys, str]:
    """The keys of the one object of a file, and the text around it."""
    text = text_of(path)
    try:
        keys = keys_of(text, wanted, str(path))
        if not iperf3_stream.is_event(keys):
            return keys, ""
    except BakeoffError:
        # Several documents, or a document among other text: looked for only here, because it takes its time.
        objects, around = objects_of(text)
        if not objects:
            iperf3_stream.need_json(text, path)
            raise
        if len(objects) == 1 and not around:
            raise
    else:
        objects, around = [text], b""
    excerpt = around.decode(errors="replace")
    excerpt = "".join(c if c.isprintable() else " " for c in excerpt)[:_SHOWN]
    if len(objects) >= MOST_OBJECTS:
        raise RecordingError(f"{path}: {MOST_OBJECTS:,} JSON documents or more; expected fewer")
    first = keys_of(objects[0], wanted, str(path))
    if iperf3_stream.is_event(first):
        return iperf3_stream.of_events(objects, wanted, path), excerpt
    if len(objects) > 1 or around.lstrip().startswith(b"{"):
        raise RecordingError(f"{path}: several JSON documents; expected one per file ('jq -c .' prints each as a line)")
    return first, excerpt
