"""A page from a template: the sandbox is started, what it asks is answered, and the page is written whole or not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from bakeoff import files, jsonfile
from bakeoff.errors import BakeoffError, RenderError

LARGEST_TEMPLATE: Final = 1 << 20
"""Bytes of a template, or of a file that it includes."""
MOST_QUESTIONS: Final = 5_000
_LARGEST_LINE: Final = 64 << 20
"""Bytes of what the sandbox says at a time: a page's text, escaped."""

_OF_NO_RESULTS: Final = ("source", "include", "kinds")
"""Functions whose answers come from elsewhere."""

Answer = Callable[..., Any]
"""From the arguments of a function, as the template gives them, to what stands in the page. BakeoffError says what is
wrong with them."""


@dataclass
class Page:
    """What came out of a template."""

    text: str
    pictures: dict[str, bytes] = field(default_factory=dict)
    """By path relative to the page."""
    answers: dict[str, Any] = field(default_factory=dict)
    """By question, as `question` writes it."""


def rendered(template: Path, functions: Mapping[str, Answer]) -> Page:
    """The page of a template, with the functions that it may call.

    `source` is one of its own: the text of a file in the template's folder or below. BakeoffError names the template
    and the line, and what is wrong there.
    """
    name = template.name
    known = {**functions, "source": _sources(template.parent)}
    known["include"] = known["source"]
    page = Page("")
    # -P: nothing is imported from the folder that somebody happens to stand in.
    words = [sys.executable, "-P", "-m", "bakeoff.render.sandbox"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        try:
            message = _talk(
                process, {"template": name, "functions": [*functions, "include"]}, known, page, str(template)
            )
        finally:
            process.kill()
    if message is None:
        raise RenderError(f"{template}: rendering was killed; it exceeded the limit of CPU time or memory")
    if "failed" in message:
        source = template if message["template"] == name else template.parent / message["template"]
        raise RenderError(f"{source}:{message['line']}: {message['failed']}")
    page.text = message["page"]
    return page


def _talk(
    process: subprocess.Popen[bytes], first: dict[str, Any], known: Mapping[str, Answer], page: Page, template: str
) -> dict[str, Any] | None:
    """Answer until the sandbox has ended; its last word, or None if there was none."""
    assert process.stdout is not None
    with suppress(BrokenPipeError):
        _say(process, first)
    asked = 0
    while line := process.stdout.readline(_LARGEST_LINE):
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if "ask" not in message:
            return dict(message)
        asked += 1
        if asked > MOST_QUESTIONS:
            reply: dict[str, Any] = {"error": f"more than {MOST_QUESTIONS:,} calls of functions; expected fewer"}
        else:
            reply = _answered(message, known, page)
        with suppress(BrokenPipeError):
            _say(process, reply)
    return None


def _answered(message: dict[str, Any], known: Mapping[str, Answer], page: Page) -> dict[str, Any]:
    name, args, named = message["ask"], message["args"], message["named"]
    if jsonfile.is_deep([args, named]):
        return {"error": f"{name}: its arguments are nested too deeply"}
    asked = question(name, args, named)
    if asked in page.answers:
        return {"value": page.answers[asked]}
    try:
        value = known[name](*args, **named)
    except BakeoffError as error:
        return {"error": f"{error}"}
    if name not in _OF_NO_RESULTS:
        page.answers[asked] = value
    return {"value": value}


def _say(process: subprocess.Popen[bytes], what: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(what).encode() + b"\n")
    process.stdin.flush()


def question(name: str, args: Sequence[Any], named: Mapping[str, Any]) -> str:
    """A call of a function on one line: `measure("goodput(1)", run="suite/scenario/run")`."""
    arguments = [*map(_literal, args), *(f"{key}={_literal(value)}" for key, value in named.items())]
    return f"{name}({', '.join(arguments)})"


def _literal(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _sources(folder: Path) -> Answer:
    def source(*args: Any, **named: Any) -> str:  # noqa: ANN401 (what a template has)
        """The text of a file in the template's folder or below it."""
        if len(args) != 1 or named or not isinstance(args[0], str):
            raise RenderError("include: expected a file name only")
        name = args[0]
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or "\0" in name or not files.is_below(folder / path, folder):
            raise RenderError(f"include: '{name}' is outside the template's folder; expected a file inside it")
        try:
            return files.read(folder / path, LARGEST_TEMPLATE).decode()
        except OSError as error:
            raise RenderError(f"include: '{name}' cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise RenderError(f"include: '{name}' is not UTF-8") from None

    return source


def write(pages: Mapping[Path, Page]) -> list[Path]:
    """Write pages with their pictures, all of them or none; their paths.

    BakeoffError if a file cannot be written; then what was there before is still there.
    """
    contents: dict[Path, bytes] = {}
    for path, page in pages.items():
        contents |= {path.parent / name: content for name, content in page.pictures.items()}
        contents[path] = page.text.encode()
    files.write_all(contents)
    return list(pages)
