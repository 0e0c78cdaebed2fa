"""measured.json: numbers that a user named by an expression, as a run gave them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff import jsonfile
from bakeoff.errors import ResultsError
from bakeoff.results import layout
from bakeoff.results.write import write_json

if TYPE_CHECKING:
    from bakeoff.results.read import Result

_LARGEST = 1 << 20
"""Bytes of a file."""


def write_measured(folder: Path, numbers: Mapping[str, float | None]) -> None:
    """Write the numbers by their expressions; None where a run could not give one."""
    write_json(folder / layout.MEASURED, dict(numbers))


def measured(result: Result) -> dict[str, float | None]:
    """The numbers that lie beside a result by their expressions; {} if there are none.

    BakeoffError names what is wrong with the file.
    """
    path = result.path / layout.MEASURED
    try:
        return jsonfile.read(path, _LARGEST, dict[str, float | None])
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read: {error}") from None
