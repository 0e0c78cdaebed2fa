"""The command line: everything heavy is imported where it is used, so that help and completion come at once."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
import warnings
from contextlib import suppress
from typing import TextIO

from bakeoff.cli import output
from bakeoff.errors import BakeoffError

# What the system says of a file descriptor that cannot take what is written to it.
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)


def main() -> None:
    """Run the command line: 0 success, 1 failed runs or differences, 2 invalid input, 130 Ctrl-C.

    143 and 129 after SIGTERM and SIGHUP. A reader of the output that leaves early (`| head`) is no failure.
    """
    from bakeoff.cli.app import app

    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # see bakeoff/__main__.py
        signal.signal(signal.SIGINT, signal.default_int_handler)
    _utf8()
    output.guard()
    warnings.showwarning = _note
    # Nothing here does linear algebra. The threads that numpy starts for it would keep each other core busy for a tenth
    # of a second.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # Ten thousand results are millions of objects that live as long as this process: to look for garbage among them
    # after every 700 new ones takes most of the time.
    gc.set_threshold(200_000, 50, 100)
    stdout, target = sys.stdout, _target()
    status: int | str | None = 0
    try:
        try:
            app(prog_name="bakeoff")
        finally:
            sys.stdout.flush()
    except SystemExit as ended:
        # typer and rich end with 1 when nobody reads what they write, and put something else in its place.
        left = ended.code == 1 and (sys.stdout is not stdout or _target() != target)
        status = 0 if left else ended.code
    except BrokenPipeError:
        output.discard(sys.stdout)
    except BakeoffError as error:
        status = _complain(str(error))
    except OSError as error:
        if error.filename is not None:
            status = _complain(f"{error.filename}: {error.strerror}")
        elif (error.strerror or "").startswith("No usable temporary directory"):
            status = _complain(f"{error.strerror}; expected free space in one of them, or in TMPDIR")
        elif error.errno in _CANNOT_WRITE:
            output.discard(sys.stdout)
            status = _complain(f"standard output: {error.strerror}")
        else:
            raise
    except MemoryError as error:
        status = _complain(f"not enough memory{f': {error}' if str(error) else ''}")
    except KeyboardInterrupt:
        status = 130
    output.end()
    sys.exit(status)


def _utf8() -> None:
    """Names of files and what we print are UTF-8, whatever the locale says: an ASCII one could show neither."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by who started us
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 (as long as we live)
    if not sys.flags.utf8_mode and sys.getfilesystemencoding() != "utf-8":
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])  # noqa: S606 (no shell is meant)
    # A name that is no UTF-8 is written as the bytes that it is.
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="surrogateescape")


def _target() -> tuple[int, int] | None:
    """Where standard output goes: device and inode, or None if it is no file of the system's."""
    try:
        found = os.fstat(sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        return None
    return found.st_dev, found.st_ino


def _note(  # noqa: PLR0917 (as `warnings.showwarning` is called)
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """One line on standard error; notes about the code of libraries are for those who change it."""
    if issubclass(category, FutureWarning):
        with suppress(OSError):
            print(f"bakeoff: note: {message}", file=sys.stderr)


def _complain(message: str) -> int:
    with suppress(OSError):
        print(f"bakeoff: {message}", file=sys.stderr)
    return 2
