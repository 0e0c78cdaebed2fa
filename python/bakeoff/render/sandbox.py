"""The process in which a template runs: Jinja2 in its sandbox, with bounds, and with no way to a file but to ask.

It reads one JSON object per line from standard input and writes one per line to standard output. What it is told
first are the template's name and the names of the functions. It writes `{"ask": NAME, "args": [...], "named": {...}}`
and reads `{"value": ...}` or `{"error": "..."}`; it ends with `{"page": "..."}`, or with `{"failed": "...", "template":
NAME, "line": N}`. JSON and not pickle: whoever broke out of Jinja2's sandbox would still only have these questions.
"""

from __future__ import annotations

import builtins
import codecs
import errno
import html
import json
import math
import os
import pprint
import resource
import signal
import sys
import traceback
import unicodedata
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NoReturn

# All that Jinja2 and methods of texts import late is imported now: afterwards no file can be opened.
from jinja2 import FunctionLoader, StrictUndefined, TemplateNotFound, Undefined, debug, nodes, runtime
from jinja2.exceptions import SecurityError, TemplateRuntimeError, TemplateSyntaxError, UndefinedError
from jinja2.sandbox import MAX_RANGE, ImmutableSandboxedEnvironment

if TYPE_CHECKING:
    from jinja2.runtime import Context

CPU_S: Final = 2
"""Processor time of a template. Its pictures and measures are made elsewhere, and do not count."""
MEMORY: Final = 512 << 20
"""Bytes of address space."""
LARGEST_PAGE: Final = 4 << 20
"""Characters that a template may write."""
_MOST_BITS: Final = 4096
"""Of a product or a power of whole numbers: some 1200 digits."""
_LATE: Final = (debug, nodes, runtime, html, pprint, unicodedata)
_CODECS: Final = (
    "utf-8", "utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-32-le", "utf-32-be", "ascii", "latin-1", "punycode",
    "idna",
)  # fmt: skip
_FIRST: Final = """{% macro a(b="c") %}{{ b }}{% endmacro %}{{ a() ~ 1.5 | round(1) ~ "%s" | format("é") }}"""


class Refused(Exception):  # noqa: N818 (it is an answer)
    """What was asked for cannot be had; the message says why."""


class OutOfTime(Exception):  # noqa: N818 (it is a bound)
    """The bound on processor time was reached."""


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja2's sandbox, in which no number grows beyond reason either."""

    intercepted_binops = frozenset(["*", "**"])

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401 (any value)
        """A product or a power. OverflowError if it would be a whole number of more than `_MOST_BITS` bits."""
        if isinstance(left, int) and isinstance(right, int):
            bits = left.bit_length() * max(right, 1) if operator == "**" else left.bit_length() + right.bit_length()
            if bits > _MOST_BITS:
                raise OverflowError(f"a number of more than {_MOST_BITS} bits")
        return super().call_binop(context, operator, left, right)


def main() -> None:
    """Render one template. Whatever it does wrong is told on standard output; the exit status is 0."""
    # Jinja2 compiles a number beyond the range of floats into the name that Python prints for it.
    vars(builtins).update(inf=math.inf, nan=math.nan)
    asked = json.loads(sys.stdin.buffer.readline())
    name, functions = asked["template"], asked["functions"]
    sandbox = environment(functions)
    # What is loaded when it is first used, such as a codec, is loaded now: no file can be opened afterwards.
    sandbox.from_string(_FIRST).render()
    for codec in _CODECS:
        codecs.lookup(codec)
    _bound()
    try:
        _tell({"page": _rendered(sandbox, name)})
    except Exception as error:  # whatever a template raises
        _tell(
            {
                "failed": error_message(error, functions),
                **dict(zip(("template", "line"), place(error, name), strict=True)),
            }
        )


def environment(functions: list[str]) -> Sandbox:
    """The sandbox with functions that ask the other process; templates come from there too."""
    made = Sandbox(
        loader=FunctionLoader(_source),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        cache_size=50,
    )
    # Chance has no place on a page that has to come out the same again.
    del made.globals["lipsum"], made.filters["random"]
    made.globals |= {name: _function(name) for name in functions}
    return made


def _rendered(sandbox: Sandbox, name: str) -> str:
    template = sandbox.get_template(name)
    parts: list[str] = []
    size = 0
    written = template.root_render_func(template.new_context())
    try:
        for part in written:
            parts.append(part)
            size += len(part)
            if size > LARGEST_PAGE:
                break
    except Exception:
        sandbox.handle_exception()  # which writes the templates' own lines into the traceback
    if size > LARGEST_PAGE:
        frame = getattr(written, "gi_frame", None)
        raise _TooLong(template.get_corresponding_lineno(frame.f_lineno) if frame else 1)
    return "".join(parts)


class _TooLong(Exception):  # noqa: N818 (it is a bound)
    """The page is longer than `LARGEST_PAGE`, at this line."""

    def __init__(self, line: int) -> None:
        super().__init__(f"the page has more than {LARGEST_PAGE:,} characters; expected fewer")
        self.line = line


def error_message(error: Exception, functions: list[str]) -> str:  # noqa: PLR0911 (a table of errors)
    """What is wrong, in words for who wrote the template."""
    text = str(error)
    match error:
        case Refused() | _TooLong():
            return text
        case OutOfTime():
            return f"takes more than {CPU_S} s of processor time; expected a template that ends sooner"
        case MemoryError():
            return f"needs more than {MEMORY >> 20} MiB of memory; expected a template that needs less"
        case RecursionError():
            return "is nested too deeply: does a template include itself, or a macro call itself?"
        case OverflowError():
            if "MAX_RANGE" in text:
                return f"a range of more than {MAX_RANGE:,} numbers; expected a shorter one"
            return f"{text}; expected a smaller one"
        case TemplateNotFound():
            return f"unknown template '{text}' in this folder"
        case SecurityError():
            return f"{text.rstrip('.')}; a template may not do that"
        case TemplateSyntaxError():
            return error.message or text
        case UndefinedError():
            word = text.removeprefix("'").partition("'")[0] if text.endswith("is undefined") else ""
            near = get_close_matches(word, functions, n=1) if word else []
            known = f"; expected one of: {', '.join(functions)}" if word else ""
            hint = f"; did you mean '{near[0]}'?" if near else known
            return f"{text}{hint}"
        case TemplateRuntimeError():
            return text
        case OSError(errno=errno.EMFILE):
            return f"needs a module that templates do not have; available codecs: {', '.join(_CODECS)}"
    return f"{text or type(error).__name__}"


def place(error: Exception, name: str) -> tuple[str, int]:
    """The template and the line in which it happened; of a template that cannot be compiled where that is wrong."""
    if isinstance(error, TemplateSyntaxError):
        return error.name or name, error.lineno
    if isinstance(error, _TooLong):
        return name, error.line
    found = [
        (frame.filename.removeprefix(_MARK), frame.lineno or 1)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename.startswith(_MARK)
    ]
    return found[-1] if found else (name, 1)


_MARK: Final = "template:"
"""What tells a template's frames from others in a traceback."""


def _source(name: str) -> tuple[str, str, Callable[[], bool]]:
    return _ask("source", [name], {}), f"{_MARK}{name}", lambda: True


def _function(name: str) -> Callable[..., Any]:
    def ask(*args: Any, **named: Any) -> Any:  # noqa: ANN401 (what a template has)
        return _ask(name, list(args), named)

    return ask


def _ask(name: str, args: list[Any], named: dict[str, Any]) -> Any:  # noqa: ANN401 (JSON)
    def plain(value: Any) -> NoReturn:  # noqa: ANN401 (what JSON does not know)
        if isinstance(value, Undefined):
            str(value)  # raises what is undefined
        raise Refused(f"{name}: a value of type {type(value).__name__}; expected texts, numbers, lists or mappings")

    _tell({"ask": name, "args": args, "named": named}, plain)
    answer = json.loads(sys.stdin.buffer.readline() or b'{"error": "connection closed"}')
    if "error" in answer:
        raise Refused(answer["error"])
    return answer["value"]


def _tell(what: dict[str, Any], default: Callable[[Any], NoReturn] | None = None) -> None:
    sys.stdout.buffer.write(json.dumps(what, default=default).encode() + b"\n")
    sys.stdout.buffer.flush()


def _bound() -> None:
    """Bounds that hold for the rest of the process's life: the system keeps them, whatever Python does."""

    def out_of_time(*_: object) -> NoReturn:
        raise OutOfTime

    signal.signal(signal.SIGXCPU, out_of_time)
    used = resource.getrusage(resource.RUSAGE_SELF)
    seconds = int(used.ru_utime + used.ru_stime) + CPU_S
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 2))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    # Standard input, output and error are open, and nothing else ever will be: no file, no socket.
    os.closerange(3, 64)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))


if __name__ == "__main__":
    main()
