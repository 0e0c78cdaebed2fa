"""Files that other programs recorded, as results folders: with a module for each form of file.

A module of a form has `KEYS`, the keys that a JSON object of the form has, `WANTED`, those that are read of it, and
`read(keys, path)`, which makes a `Recording` or raises BakeoffError. `recording` writes it as the folder of a run.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from bakeoff.errors import BakeoffError
from bakeoff.imports.document import Keys, keys_of

if TYPE_CHECKING:
    from bakeoff.imports.recording import Recording

_OF_IRTT: Final = "round_trips"
"""A key of what irtt's client writes, which is no recording of a network's flows."""
FORMS: Final = {"Flent": "bakeoff.imports.flent", "iperf3": "bakeoff.imports.iperf3"}
"""The forms, by the names of the programs that write them, with their modules."""


class Form(Protocol):
    """A module of a form."""

    KEYS: Collection[str]
    WANTED: Collection[str]

    def read(self, keys: Keys, path: Path) -> Recording:
        """The recording; `keys` are those of `WANTED` that the file has."""


def read(path: Path) -> Recording:
    """What a file holds. BakeoffError names the file and what is wrong, or which forms there are."""
    forms = [cast("Form", import_module(module)) for module in FORMS.values()]
    keys = keys_of(path, {_OF_IRTT, *(key for form in forms for key in form.WANTED)})
    for form in forms:
        if set(form.KEYS) <= keys.keys():
            return form.read({key: keys[key] for key in form.WANTED if key in keys}, path)
    if _OF_IRTT in keys:
        raise BakeoffError(f"{path}: is what irtt's client wrote, and has no flows; 'bakeoff trace {path}' reads it")
    expected = "; or ".join(
        f"of {name} an object with {', '.join(sorted(form.KEYS))}" for name, form in zip(FORMS, forms, strict=True)
    )
    raise BakeoffError(f"{path}: is no file that can be imported; expected {expected}")
