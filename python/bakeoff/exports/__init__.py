"""Results in the forms of other programs, with a module for each form.

A module of a form has two functions. `suffixes(result)` tells how the names of the files end that it makes of a run,
and `files(result)` gives these endings with the content, one file after the other. Both raise BakeoffError for a run
that has nothing which the form could hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, cast

from bakeoff import files
from bakeoff.errors import BakeoffError, ExportError

if TYPE_CHECKING:
    from bakeoff.results import Result

FORMS: Final = {name: f"bakeoff.exports.{name}" for name in ("flent", "csv", "parquet", "iperf3", "irtt", "mahimahi")}
"""The forms, by the names of their options, with their modules."""

_LONGEST: Final = 180
"""Bytes of a name before its ending: file systems allow 255 with it."""


class Form(Protocol):
    """A module of a form."""

    def suffixes(self, result: Result) -> list[str]:
        """How the names of the files end that `files` makes; different for each."""

    def files(self, result: Result) -> Iterator[tuple[str, bytes]]:
        """The endings with the content."""


def form(name: str) -> Form:
    """The module of a form."""
    return cast("Form", import_module(FORMS[name]))


def stems(results: Sequence[Result]) -> list[str]:
    """A name for each run, that begins the names of its files: suite_scenario_run, and no two are equal.

    Where runs of several campaigns have one key, the campaign's folder comes first, and then a number.
    """
    names = [_file_name(result.key.replace("/", "_")) for result in results]
    for longer in (_with_campaign, _numbered):
        several = Counter(name.casefold() for name in names)
        names = [
            longer(result, name, names[:index]) if several[name.casefold()] > 1 else name
            for index, (result, name) in enumerate(zip(results, names, strict=True))
        ]
    return names


def _with_campaign(result: Result, name: str, _: Sequence[str]) -> str:
    path = result.path.resolve()
    campaign = path.parents[result.key.count("/")] if len(path.parents) > result.key.count("/") else path
    return _file_name(f"{campaign.name}_{name}")


def _numbered(_: Result, name: str, before: Sequence[str]) -> str:
    same = sum(other.casefold() == name.casefold() for other in before)
    return f"{name}.{same + 1}" if same else name


def _file_name(name: str) -> str:
    import re

    safe = re.sub(r"[^\w.()+~@=,-]", "_", name).lstrip(".")
    return safe.encode()[:_LONGEST].decode(errors="ignore")


def place(out: Path, stem: str, suffix: str) -> Path:
    """Where a file of a run goes."""
    return out / f"{stem}{suffix}"


def write(path: Path, content: bytes, *, replace: bool) -> None:
    """Write a whole file or none, and unless `replace` never in place of one that is there.

    BakeoffError for a file that is there, and for what the system refuses.
    """
    try:
        files.write(path, content, replace=replace)
    except FileExistsError:
        raise taken(path) from None


def taken(path: Path) -> BakeoffError:
    """What is said of a file that is there."""
    return ExportError(f"{path}: already exists; expected --replace, or another --out FOLDER")
