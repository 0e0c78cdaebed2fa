"""Which of several runs `-k` means."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from bakeoff.errors import UsageError


def is_named(key: str, only: str | None) -> bool:
    """Whether the run suite/scenario/run has this name: a word in its name, re:REGEX, or a glob on it or its last part.

    Every run without a name.
    """
    if only is not None and only.startswith("re:"):
        try:
            return re.search(only.removeprefix("re:"), key) is not None
        except re.error as error:
            raise UsageError(f"-k: '{only}': invalid regular expression: {error}") from None
    return only is None or only in key or fnmatchcase(key, only) or fnmatchcase(key.rpartition("/")[2], only)
