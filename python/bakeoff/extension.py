"""Which simulator `bakeoff._sim` is: the package's, or the one that the variable BAKEOFF_SIM names."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType

VARIABLE: Final = "BAKEOFF_SIM"
"""Path of an extension that `bakeoff with` built of a crate with congestion controls."""
_NAME: Final = "bakeoff._sim"


class Finder:
    """Finds `bakeoff._sim` in that file, when it is first imported."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The file for `bakeoff._sim`, None for all others. UsageError if it is no file."""
        if name != _NAME:
            return None
        from importlib.machinery import ExtensionFileLoader
        from importlib.util import spec_from_file_location

        from bakeoff.errors import UsageError

        file = os.environ[VARIABLE]
        if not Path(file).is_file():
            raise UsageError(f"{VARIABLE}: '{file}' is no file; expected what 'bakeoff with CRATE' prints")
        return spec_from_file_location(name, file, loader=ExtensionFileLoader(name, file))


def choose() -> None:
    """Let later imports of `bakeoff._sim` load the file that the variable names, if it is set."""
    if os.environ.get(VARIABLE):
        sys.meta_path.insert(0, Finder)


def version() -> dict[str, str]:
    """What a result says of such an extension: `simulator` and the first 16 digits of its SHA-256; else nothing."""
    file = os.environ.get(VARIABLE)
    if not file:
        return {}
    from hashlib import file_digest

    with Path(file).open("rb") as content:
        return {"simulator": file_digest(content, "sha256").hexdigest()[:16]}
