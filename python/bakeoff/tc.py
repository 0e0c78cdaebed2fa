"""tc's language: its rates, times and sizes, and the words of a qdisc.

A scenario's own quantities (`bakeoff.scenario.units`) are stricter: each has a unit, and tc's bytes per second are
refused.

Source: iproute2 `tc/tc_util.c` and `lib/utils.c`; the simulator's parser is `crates/document/src/tc`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final, Literal

from bakeoff.errors import BakeoffError, ScenarioError

RATES: Final[dict[str, int]] = {
    prefix + unit: bits * int(base**power)
    for base, binary in ((1000, ""), (1024, "i"))
    for power, prefix in ((0, ""), *((at + 1, letter + binary) for at, letter in enumerate("kmgt")))
    for unit, bits in (("bit", 1), ("bps", 8))
}
"""bit/s in each unit; those in `bps` are bytes per second."""

_SECONDS: Final = {
    **dict.fromkeys(("s", "sec", "secs"), 1.0),
    **dict.fromkeys(("ms", "msec", "msecs"), 1e-3),
    **dict.fromkeys(("us", "usec", "usecs"), 1e-6),
    **dict.fromkeys(("ns", "nsec", "nsecs"), 1e-9),
}
_BYTES: Final = {
    **dict.fromkeys(("", "b"), 1.0),
    **dict.fromkeys(("k", "kb"), 2.0**10),
    **dict.fromkeys(("m", "mb"), 2.0**20),
    **dict.fromkeys(("g", "gb"), 2.0**30),
    "kbit": 2.0**7,
    "mbit": 2.0**17,
    "gbit": 2.0**27,
}
_QUANTITY: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(?:e(\d+))?([a-z]*)", re.IGNORECASE)
_LARGEST: Final = 2.0**64
"""Of a number before its unit: tc keeps no more than 64 bits."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What is known of a kind of qdisc; the table is `crates/document/src/qdisc/kinds.rs`."""

    name: str
    """As the kernel has it, without a version."""
    least_words: str
    """The fewest words that tc accepts behind the name."""
    rate_word: str | None
    """The word before the rate by which it limits what leaves, if it has no classes: `bandwidth` of those that need no
    shaper above them, `rate` of those that limit only if told to."""
    classful: bool
    alone: bool
    """Nothing is put above it, because its classes shape or because it is a delay."""
    limit_in_bytes: bool
    """Its `limit` is in bytes, not packets."""
    module: str | None
    """bakeoff's own module that has it (`kernel/modules`)."""
    simulated_as: str | None
    """What the simulator, and so a scenario, calls the kind of a module, if not by its own name."""
    tried: bool
    """`bakeoff kernel check` tries to make one."""
    order: int | None
    """Its place in tables; others follow by name."""


@cache
def kinds() -> Mapping[str, Kind]:
    """All kinds, by name."""
    from bakeoff import _sim

    return {found["name"]: Kind(**found) for found in _sim.qdisc_kinds()}


@lru_cache(maxsize=4096)  # thousands of runs have the same few
def rate(word: str) -> float:
    """bit/s of `50mbit`, `1gbps` (bytes per second), `3Mibit` or a bare number of bit/s. BakeoffError if it is none."""
    number, unit = _split(word, "rate", "50mbit")
    if (unit or "bit") not in RATES:
        raise _none("rate", word, "50mbit")
    return number * RATES[unit or "bit"]


def time(word: str, *, bare: Literal["us", "ns"] = "us") -> float:
    """Seconds of `10ms` or `1.5s`; `bare` is the unit of a number without one. BakeoffError if it is no time.

    netem and the few other places that tc reads in 64 bits take a bare number as nanoseconds.
    """
    number, unit = _split(word, "time", "10ms")
    if (unit or bare) not in _SECONDS:
        raise _none("time", word, "10ms")
    return number * _SECONDS[unit or bare]


def size(word: str) -> float:
    """Bytes of `1600b`, `10Kb` (10240) or a bare number of bytes. BakeoffError if it is none."""
    number, unit = _split(word, "size", "10kb")
    if unit not in _BYTES:
        raise _none("size", word, "10kb")
    return number * _BYTES[unit]


def kind(qdisc: str) -> str:
    """`dualpi2@2020` of `dualpi2@2020 target 1ms`; empty if there are no words."""
    return next(iter(qdisc.split()), "")


def kernel_kind(qdisc: str) -> str:
    """`dualpi2` of `dualpi2@2020 target 1ms`: versions are the simulator's, and tc does not know them."""
    return kind(qdisc).partition("@")[0]


@lru_cache(maxsize=4096)
def value(words: str, key: str) -> str | None:
    """What follows `key` in the words of a qdisc or a class: `50mbit` for `rate` in `htb rate 50mbit`."""
    return next((after for word, after in pairwise(words.split()) if word == key), None)


def with_value(words: str, key: str, new: str) -> str:
    """The words with `new` behind each `key` that they have."""
    found = words.split()
    return " ".join(new if before == key else word for before, word in zip(["", *found], found, strict=False))


def shapes_itself(qdisc: str | None) -> bool:
    """Whether the qdisc paces by a `bandwidth` of its own and needs no shaper above it.

    red has a `bandwidth` too, but does not shape.
    """
    return qdisc is not None and limiting_word(qdisc) == "bandwidth"


def with_bandwidth(qdisc: str, new: str) -> str:
    """The line of a qdisc that shapes by itself, with `bandwidth NEW` behind its kind."""
    first, *others = qdisc.split()
    if "bandwidth" in others:
        at = others.index("bandwidth")
        del others[at : at + 2]
    return " ".join([first, "bandwidth", new, *others])


@lru_cache(maxsize=4096)
def limiting_word(qdisc: str) -> str | None:
    """The word that the rate stands behind by which a qdisc without classes limits what leaves; None if it has none."""
    found = kinds().get(kernel_kind(qdisc))
    return found.rate_word if found is not None else None


def _split(word: str, what: str, example: str) -> tuple[float, str]:
    match = _QUANTITY.fullmatch(word)
    if match is None:
        raise _none(what, word, example)
    number, power, unit = match.groups()
    value = float(f"{number}e{power or 0}")
    if not value <= _LARGEST:
        raise ScenarioError(f"'{word}': {what} too large; expected at most 2^64")
    return value, unit.lower()


def _none(what: str, word: str, example: str) -> BakeoffError:
    return ScenarioError(f"'{word}': invalid {what} in tc syntax; expected for example '{example}'")
