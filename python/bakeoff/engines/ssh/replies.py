"""What a machine answers, taken in as a stranger's words: of the expected form and size, or an error that names it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired, TypedDict, TypeVar

import msgspec
from msgspec import Meta

from bakeoff.errors import RunError, TestbedError

if TYPE_CHECKING:
    from bakeoff.engines.ssh.connection import Connection
    from bakeoff.scenario import Run

T = TypeVar("T")
_Word = Annotated[str, Meta(max_length=64, pattern=r"^[\x21-\x7e]*$")]
_Device = Annotated[str, Meta(pattern=r"^[!-,.-~][!-~]{0,14}$")]
"""A name that Linux takes, and no option."""
_Size = Annotated[int, Meta(ge=0, le=2**32 - 1)]


class Address(TypedDict):
    """Of a device."""

    local: NotRequired[_Word]
    scope: NotRequired[_Word]


class Link(TypedDict):
    """A device, as `ip -json link` and `ip -json addr` tell it."""

    ifname: _Device
    flags: list[_Word]
    mtu: _Size
    txqlen: NotRequired[_Size]
    master: NotRequired[_Device]
    address: NotRequired[_Word]
    addr_info: NotRequired[list[Address]]


class Qdisc(TypedDict):
    """As `tc -json qdisc` tells it."""

    kind: _Word
    handle: _Word
    root: NotRequired[bool]


def links(machine: Connection, *words: str) -> list[Link]:
    """The devices that `ip` tells of; BakeoffError if they are none."""
    return _decoded(machine, list[Link], words)


def link(machine: Connection, *words: str) -> Link:
    """The one device that `ip` tells of; BakeoffError if it is none."""
    found = links(machine, *words)
    if len(found) != 1:
        raise TestbedError(f"{machine.place}: {' '.join(words)}: reported {len(found)} devices; expected one")
    return found[0]


def qdiscs(machine: Connection, *words: str) -> list[Qdisc]:
    """The qdiscs that `tc` tells of; BakeoffError if they are none."""
    return _decoded(machine, list[Qdisc], words)


def line(machine: Connection, *words: str) -> str:
    """One line of at most 200 characters that can be printed; BakeoffError if it is none."""
    output = machine.ask(*words).strip()
    if not output.isprintable() or not 0 < len(output) <= 200:
        raise TestbedError(f"{machine.place}: {' '.join(words)}: said {output[:80]!r}; expected one line of plain text")
    return output


def _decoded(machine: Connection, form: type[T], words: tuple[str, ...]) -> T:
    output = machine.ask(*words)
    try:
        return msgspec.json.decode(output.strip() or "[]", type=form)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise TestbedError(f"{machine.place}: {' '.join(words)}: {error}; it said {output[:80]!r}") from None


_LAST_LINE: Final = 64 << 20
"""Bytes of the agent's summary."""
_LARGEST: Final = 2.0**64
_SIGNED: Final = ("transit", "delay")
"""Differences of times, of which a clock that is set may turn one round."""
_AROUND_S: Final = 60.0


def need_sane(place: str, tsv: Path, run: Run) -> None:
    """RunError names the machine at `place` if what its agent wrote cannot have been measured.

    Every number is finite and below 2^64, none is negative but instants and differences of times, and samples lie in
    the run's time.
    """
    import polars as pl

    from bakeoff.engines.lab import convert

    try:
        _need_plain(json.loads(_last_line(tsv)[1:] or b"{}", parse_constant=_no_number))
        frame = convert.series(tsv)
    except (ValueError, RecursionError, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise RunError(f"{place}: invalid output from its agent: {reason}") from None
    value, time = pl.col("value"), pl.col("time")
    signed = pl.col("metric").is_in(_SIGNED)
    odd = frame.filter(
        ~(
            value.is_finite()
            & (value.abs() < _LARGEST)
            & ((value >= 0) | signed)
            & time.is_between(-_AROUND_S, run.duration_s + _AROUND_S)
        ).fill_null(value=False)
    )
    if odd.height > 0:
        row = odd.row(0, named=True)
        raise RunError(
            f"{place}: invalid sample from its agent: {str(row['kind'])[:20]} {str(row['name'])[:80]!r} at "
            f"{row['time']} s "
            f"{str(row['metric'])[:20]!r} {row['value']}; expected a finite number, not negative, at a time of the run"
        )


def _last_line(tsv: Path) -> bytes:
    """The last line of a file; ValueError if it is longer than a summary is."""
    with tsv.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - _LAST_LINE))
        last = file.read().rstrip(b"\n").rpartition(b"\n")[2]
    if len(last) >= _LAST_LINE - 1:
        raise ValueError(f"its last line has more than {_LAST_LINE:,} bytes")
    return last if last.startswith(b"#") else b""


def _no_number(word: str) -> float:
    raise ValueError(f"{word} in its summary; expected a number")


def _need_plain(summary: object) -> None:
    """ValueError names a number that nothing counts."""
    for key, number in _numbers(summary):
        least = -_LARGEST if key.endswith("_s") else 0
        if not math.isfinite(number) or not least <= number < _LARGEST:
            raise ValueError(f"unknown counter {key}: {number:g} in its summary")


def _numbers(value: Any, prefix: str = "") -> Iterator[tuple[str, float]]:  # noqa: ANN401 (plain data)
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _numbers(each, f"{prefix}.{key}"[-80:])
    elif isinstance(value, list):
        for each in value:
            yield from _numbers(each, prefix)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            yield prefix.removeprefix("."), float(value)
        except OverflowError:
            yield prefix.removeprefix("."), math.inf
