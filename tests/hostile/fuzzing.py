"""What all drawn inputs have in common: how many cases there are, odd values, damaged data and damaged text.

`make fuzz` draws many more; BAKEOFF_FUZZ is the number of cases of each test.
"""

import copy
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

from bakeoff import measure, results
from bakeoff.errors import BakeoffError
from bakeoff.tables.records import KINDS, records
from bakeoff.tables.rows import rows

CASES = int(os.environ.get("BAKEOFF_FUZZ", "60"))
drawn = settings(
    max_examples=CASES,
    deadline=None,
    database=None,
    # A case that fails is told as it was drawn: to make it smaller takes minutes, and looks like a hang.
    phases=[Phase.explicit, Phase.generate],
    derandomize="BAKEOFF_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
)

ODD = [
    None, True, -1, 0, 1, 65_536, 2**31, 2**63, 10**400, 1e308, float("nan"), float("inf"), "", " ", "\0",
    "\x1b[2J", "\u202e",
    "..", "../../x", "/dev/zero", "a/b", "p*", "a[b]", "{start}", "{n}", "{", "9" * 5000, "1e999s", "-1ms", "0s", "1ns",
    "99999999999tbit", "fq_codel limit -1", "tbf", "netem delay 1ms distribution ../x", "./x.py:X", "x" * 70_000,
    [], {}, [[]], {"a": {}}, [None], [["0s", "1mbit"], ["1s", "2mbit"]], "x\ny", "é", "{{start}}",
]  # fmt: skip
ANY = st.one_of(st.sampled_from(ODD), st.text(max_size=20), st.integers(), st.floats())


def places(data, at=()):
    """Where something stands in plain data."""
    yield at
    entries = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in entries:
        yield from places(value, (*at, key))


def changed(data, changes):
    """The data with other values, keys, or none, at some of its places."""
    data = copy.deepcopy(data)
    for choice, how, value in changes:
        spots = [spot for spot in places(data) if spot]
        if not spots:
            break
        *above, last = spots[choice % len(spots)]
        part = data
        for key in above:
            part = part[key]
        if how == "drop":
            del part[last]
        elif how == "twice" and isinstance(part, list):
            part.append(part[last])
        elif how == "key" and isinstance(part, dict):
            part[str(value)[:80]] = part.pop(last)
        else:
            part[last] = copy.deepcopy(value)
    return data


CHANGES = st.lists(
    st.tuples(st.integers(0, 10_000), st.sampled_from(["value", "value", "drop", "twice", "key"]), ANY),
    min_size=1, max_size=3,
)  # fmt: skip


def texts(seeds: Sequence[str], words: Sequence[str]) -> st.SearchStrategy[str]:
    """One of the seeds, with words put in or over, or parts left out, at up to four places."""
    word = st.one_of(st.sampled_from(words), st.sampled_from(words), st.text(max_size=4))
    edits = st.lists(st.tuples(st.integers(0, 1000), st.sampled_from([0, 0, 1, 4, 20]), word), max_size=4)
    return st.tuples(st.sampled_from(seeds), edits).map(_edited)


def _edited(drawn: tuple[str, list[tuple[int, int, str]]]) -> str:
    text, edits = drawn
    for choice, gone, word in edits:
        at = choice % (len(text) + 1)
        text = text[:at] + word + text[at + gone :]
    return text


DAMAGE = st.tuples(
    st.lists(st.tuples(st.integers(0, 2**20), st.binary(min_size=1, max_size=8)), max_size=4),
    st.one_of(st.none(), st.none(), st.integers(0, 2**20)),
)
"""Bytes to write over others, and where the rest is cut off."""


def damaged(content: bytes, damage: tuple[list[tuple[int, bytes]], int | None]) -> bytes:
    """The content with such damage."""
    edits, cut = damage
    found = bytearray(content)
    for choice, value in edits:
        at = choice % len(found)
        found[at : at + len(value)] = value
    return bytes(found[: None if cut is None else cut % (len(found) + 1)])


T = TypeVar("T")


def refused(call: Callable[[], T], *also: type[Exception]) -> T | None:
    """What a call returns; None if it refuses its input by a message of a bounded length."""
    try:
        return call()
    except (BakeoffError, *also) as error:
        # The command line shows what the readers of quantities raise as a BakeoffError, which shortens long words.
        assert len(str(BakeoffError(str(error)))) < 20_000  # noqa: PT017 (either is right)
        return None


def read_all(root: Path) -> None:
    """All that is read from files, its measures anew, and every table of it."""
    try:
        found = results.survey(root).results
        for result in found:
            _ = (result.summary, result.counters, result.series if result.ok else None)
            if result.ok:
                measure.summarise(result)
        for kind in KINDS:
            records(rows(found), kind)
    except BakeoffError:
        pass
