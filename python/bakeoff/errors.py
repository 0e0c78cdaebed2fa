"""The exceptions for what a user can put right."""

import re
from typing import Final

_LONGEST: Final = 2000
_LONG: Final = re.compile(rf"\S{{{_LONGEST + 1},}}")


class BakeoffError(Exception):
    """A mistake in what the user gave, or something missing on this machine.

    The message names the place, the value and the expected form. The command line prints it without a traceback and
    exits with 2. A word of more than 2000 characters, which no name or number is, is shown in part.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(_LONG.sub(_in_part, message))


class UnreachableError(BakeoffError):
    """A machine does not answer: no other run is tried, because each would wait as long for it."""


class NoKernelError(BakeoffError):
    """No virtual-time kernel was built: whether it could do a run is not known, but what the run costs is."""


class UserCodeError(BakeoffError):
    """The user's own code raised: the message ends in the traceback of their lines, and ours are not worth keeping."""


def _in_part(word: re.Match[str]) -> str:
    return f"{word[0][:100]}… ({len(word[0]):,} characters) …{word[0][-100:]}"


def printable(text: str) -> str:
    """The text with every character that a terminal would act on, and not show, as an escape; lines stay.

    Names come from files, and files from anybody: an escape code in one could repaint the terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" or "\udc80" <= c <= "\udcff" else ascii(c)[1:-1] for c in text)
