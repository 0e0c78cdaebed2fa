"""The border to the terminal: all that the command line writes passes here, and what a terminal would obey is shown.

Names, errors and logs come from files, and files from anybody. Only what draws for itself, with texts that it has
cleaned, writes to what lies beneath: tables with colours, bars of progress.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TextIO, cast

import typer

from bakeoff.errors import printable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rich.console import Console

    from bakeoff.text.columns import Column
    from bakeoff.text.markup import Format


class _Stream(ABC):
    """A stream that changes how the one beneath is written to."""

    def __init__(self, beneath: TextIO) -> None:
        self.beneath = beneath

    @abstractmethod
    def write(self, text: str) -> int:
        """Write the text, and return the number of its characters."""

    def writelines(self, lines: list[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 (whatever a stream has)
        return getattr(self.beneath, name)


class Shown(_Stream):
    """A stream that shows control characters as escapes (`\\x1b`); lines and tabs stay."""

    def write(self, text: str) -> int:
        """Write the text, and return the number of its characters."""
        # CSV ends its lines in both characters.
        self.beneath.write("\r\n".join(printable(part) for part in text.split("\r\n")))
        return len(text)


class Lenient(_Stream):
    """A stream for progress and messages: what cannot be written (full disk, reader gone) is lost and ends nothing."""

    def write(self, text: str) -> int:
        """Write the text if that can be, and return the number of its characters."""
        with suppress(OSError):
            self.beneath.write(text)
        return len(text)

    def flush(self) -> None:
        """Write what waits, if that can be."""
        with suppress(OSError):
            self.beneath.flush()


def guard() -> None:
    """Put the border in place, for as long as the process lives."""
    if not isinstance(sys.stdout, Shown):
        sys.stdout = cast("TextIO", Shown(sys.stdout))
    if not isinstance(sys.stderr, Shown):
        sys.stderr = cast("TextIO", Shown(cast("TextIO", Lenient(sys.stderr))))


def discard(stream: TextIO) -> None:
    """Send what is still to be written nowhere: Python would stumble over it once more at its end."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


def end() -> None:
    """Discard what standard error did not take. Otherwise Python ends with a status of its own."""
    stream = beneath(sys.stderr)
    if isinstance(stream, Lenient):
        try:
            stream.beneath.flush()
        except OSError:
            discard(stream.beneath)


def beneath(stream: TextIO) -> TextIO:
    """The stream without the border, for who draws with the terminal's own commands."""
    return stream.beneath if isinstance(stream, Shown) else stream


def print_rendered(text: str, *, colours: bool) -> None:
    """Print a table or a comparison; only one with `colours` is made of texts that were cleaned before."""
    (beneath(sys.stdout) if colours else sys.stdout).write(text)


def print_table(columns: Sequence[Column]) -> None:
    """Print columns, as wide as the terminal has room; texts are folded."""
    from bakeoff.text.columns import WIDE, fitted, plain, terminal_width

    lines, left = fitted(columns, terminal_width() or WIDE)
    for line in lines:
        sys.stdout.write(plain(line.plain.rstrip()) + "\n")
    if left:
        say(f"no room for: {', '.join(column.head for column in left)}; a wider terminal shows them", err=True)


def print_rows(title: str, rows: Sequence[Mapping[str, object]], columns: Sequence[Column], form: Format) -> None:
    """Print plain records as JSON or CSV, or their columns as a table in one of the other formats."""
    import json

    from bakeoff.text import markup

    if form == "terminal":
        print_table(columns)
    elif form == "json":
        typer.echo(json.dumps(rows, indent=2, ensure_ascii=False))
    elif form == "csv":
        sys.stdout.write(markup.as_csv(rows))
    else:
        sys.stdout.write(markup.written(form, [markup.Block(title, columns)], []))


def say(text: str, indent: int = 0, *, err: bool = False) -> None:
    """Print a line; on a terminal what is longer is folded, and its other lines have so many spaces before them."""
    from bakeoff.text.columns import fold, terminal_width

    room = terminal_width()
    first, *rest = [text] if room is None else fold(text, room)
    typer.echo(first, err=err)
    for line in fold(" ".join(rest), max(room - indent, 20)) if rest and room is not None else ():
        typer.echo(" " * indent + line, err=err)


def console(*, err: bool = False) -> Console:
    """What draws on standard output, or on standard error; texts for it have to be clean."""
    from rich.console import Console

    from bakeoff.text.columns import WIDE, terminal_width

    wide = WIDE if not err and terminal_width() is None else None
    return Console(file=beneath(sys.stderr if err else sys.stdout), stderr=err, width=wide, markup=False, emoji=False)


def on_one_line(name: object) -> str:
    """The name of a file, which may hold any character but `/`, so that it cannot pass for a line of our own."""
    return str(name).replace("\n", "\\n").replace("\t", "\\t")


def check_page(path: Path) -> None:
    """BakeoffError, before any run, for a page of `--html` that could not be written after them."""
    from bakeoff import files
    from bakeoff.errors import BakeoffError, UsageError

    try:
        files.check_output(path)
    except BakeoffError as error:
        raise UsageError(f"--html: {error}") from None
    if not path.parent.is_dir():
        raise UsageError(f"--html: {path}: no such folder {path.parent}")
