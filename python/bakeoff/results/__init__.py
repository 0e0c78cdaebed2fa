"""The results folder: the only hand-over between engines and everything after them.

docs/results-folder.md has the form; `read` and `scan` are the way in, `writing` and `seal` the way out.
"""

from bakeoff.results.read import Result, Survey, read, read_all, scan, survey
from bakeoff.results.series import digest, write_series
from bakeoff.results.write import discard_partials, seal, write, write_json, writing

__all__ = [
    "Result",
    "Survey",
    "digest",
    "discard_partials",
    "read",
    "read_all",
    "scan",
    "seal",
    "survey",
    "write",
    "write_json",
    "write_series",
    "writing",
]
